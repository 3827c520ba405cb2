// SPDX-License-Identifier: Apache-2.0
// Reads blocks of 2 MiB and adds up their bytes: a program to record, with functions that have names.
//
//   cc -O1 -g -o checksum examples/checksum.c
//   ./checksum /dev/zero 200
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BLOCK (2 << 20)

__attribute__((noinline)) static ssize_t read_block(int fd, unsigned char *block) { return read(fd, block, BLOCK); }

__attribute__((noinline)) static unsigned long add_up(const unsigned char *bytes, ssize_t count) {
  unsigned long sum = 1;
  for (ssize_t i = 0; i < count; ++i) sum = sum * 31 + bytes[i];
  return sum;
}

__attribute__((noinline)) static unsigned long checksum(int fd, int blocks, unsigned char *block) {
  unsigned long sum = 0;
  for (int i = 0; i < blocks; ++i) {
    ssize_t count = read_block(fd, block);
    if (count <= 0) break;
    sum += add_up(block, count);
  }
  return sum;
}

int main(int count, char **words) {
  int fd = open(count > 1 ? words[1] : "/dev/zero", O_RDONLY);
  unsigned char *block = malloc(BLOCK);
  if (fd < 0 || !block) {
    perror("checksum");
    return 1;
  }
  printf("%lx\n", checksum(fd, count > 2 ? atoi(words[2]) : 3, block));
  return 0;
}
