// work [ROUNDS]: something for each recorder: files, locks, sleep, processes, signals, memory, loopback TCP, names, and functions
// that are called a known number of times: three times in each round.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long sink;
static void *kept[64];
extern char **environ;

NOINLINE long multiplied(long a, long b, long c, long d, long e, const char *text) {
  sink += (unsigned long)text[0];
  return a * b + c * d + e;
}
NOINLINE long calls(long depth) {
  const long below = depth == 0 ? 0 : calls(depth - 1);
  return below + multiplied(depth, 2, 3, 4, 5, "first") + 1;
}

NOINLINE static void uses_files(int round) {
  char name[64], text[4096];
  memset(text, 'x', sizeof text);
  snprintf(name, sizeof name, "/data/known-%d", round);
  const int fd = open(name, O_CREAT | O_RDWR, 0600);
  if (fd < 0) return;
  for (int i = 0; i < 16; ++i)
    if (write(fd, text, sizeof text) < 0) break;
  fsync(fd);
  sink += (unsigned long)pread(fd, text, sizeof text, 0);
  close(fd);
  unlink(name);
  sink += (unsigned long)open("/nonexistent/known", O_RDONLY);
}

static void *waits_for_lock(void *unused) {
  pthread_mutex_lock(&table_lock);
  pthread_mutex_unlock(&table_lock);
  return unused;
}
NOINLINE static void holds_lock(void) {
  pthread_t other;
  pthread_mutex_lock(&table_lock);
  pthread_create(&other, NULL, waits_for_lock, NULL);
  usleep(20000);
  pthread_mutex_unlock(&table_lock);
  pthread_join(other, NULL);
}

NOINLINE static void starts_process(void) {
  char *words[] = {"true", NULL};
  pid_t child;
  if (posix_spawn(&child, "/bin/true", NULL, NULL, words, environ) == 0) waitpid(child, NULL, 0);
}

static void on_signal(int number) { sink += (unsigned long)number; }

static void *accepts(void *listening) {
  char text[16];
  const int peer = accept((int)(long)listening, NULL, NULL);
  usleep(5000);
  sink += (unsigned long)read(peer, text, sizeof text);
  if (write(peer, text, sizeof text) < 0) sink = 0;
  close(peer);
  return NULL;
}
NOINLINE static void asks_server(void) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof at;
  char text[16] = "question";
  pthread_t server;
  const int listening = socket(AF_INET, SOCK_STREAM, 0), asking = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listening, (struct sockaddr *)&at, size) || listen(listening, 1) || getsockname(listening, (struct sockaddr *)&at, &size)) return;
  pthread_create(&server, NULL, accepts, (void *)(long)listening);
  if (connect(asking, (struct sockaddr *)&at, size) == 0 && write(asking, text, sizeof text) > 0)
    sink += (unsigned long)read(asking, text, sizeof text);
  close(asking);
  pthread_join(server, NULL);
  close(listening);
}

NOINLINE static void uses_memory(void) {
  for (int i = 0; i < 64; ++i) {
    free(kept[i]);
    kept[i] = malloc(1000 + (size_t)i);
    sink += (unsigned long)kept[i];
  }
}

NOINLINE static void asks_for_name(void) {
  struct addrinfo *found = NULL;
  if (getaddrinfo("localhost", "80", NULL, &found) == 0) freeaddrinfo(found);
}

int main(int argc, char **argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 5;
  signal(SIGUSR1, on_signal);
  for (int round = 0; round < rounds; ++round) {
    sink += (unsigned long)calls(2);
    uses_files(round);
    holds_lock();
    starts_process();
    raise(SIGUSR1);
    asks_server();
    uses_memory();
    asks_for_name();
    usleep(2000);
  }
  printf("%lu\n", sink);
  return 0;
}
