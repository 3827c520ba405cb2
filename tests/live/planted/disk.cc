// Waits for the disk. They read a file of the current folder, never from the page cache.
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "planted.h"

static const std::string& file_name() {
  static const std::string name = "planted-" + std::to_string(getpid()) + ".dat";
  return name;
}

static void remove_big_file() { unlink(file_name().c_str()); }

static void make_big_file() {
  const int file = open(file_name().c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) fail(file_name().c_str());
  std::atexit(remove_big_file);
  std::array<unsigned, 16384> block{};
  std::minstd_rand random;
  for (std::size_t done = 0; done < kBigFile; done += sizeof block) {
    std::generate(block.begin(), block.end(), [&] { return static_cast<unsigned>(random()); });
    if (write(file, block.data(), sizeof block) != sizeof block) fail(file_name().c_str());
  }
  if (fsync(file) != 0 || posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) != 0) fail(file_name().c_str());
  close(file);
}

const std::string& big_file() {
  static const bool made = (make_big_file(), true);
  (void)made;
  return file_name();
}

bool is_on_disk() {
  struct statfs found {};
  if (statfs(".", &found) != 0) fail("statfs");
  return found.f_type != TMPFS_MAGIC && found.f_type != RAMFS_MAGIC;
}

// As in /sys/class/block; empty for a file system that does not stand on one.
static std::string device() {
  struct stat found {};
  if (stat(".", &found) != 0) fail("stat");
  const std::string link =
      "/sys/dev/block/" + std::to_string(major(found.st_dev)) + ":" + std::to_string(minor(found.st_dev));
  std::error_code none;
  return std::filesystem::read_symlink(link, none).filename();
}

static Truth truth_of_disk() {
  Truth truth{"disk", "read_block", &Times::blocked, {{"file", quoted(big_file())}}};
  if (!device().empty()) truth.more.emplace_back("device", quoted(device()));
  return truth;
}

static constexpr long kBlock = 256 << 10;

static void read_block(int file, void* block, long at) {
  if (pread(file, block, kBlock, at) != kBlock) fail("pread");
}

static void serve_blocks(Thread& me) {
  const int file = open(big_file().c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
  void* block = std::aligned_alloc(4096, kBlock);
  if (file < 0 || block == nullptr) fail(big_file().c_str());
  std::minstd_rand random(static_cast<unsigned>(gettid()));
  while (!me.is_over()) {
    const Times before = me.now();
    read_block(file, block, static_cast<long>(random() % (kBigFile / kBlock)) * kBlock);
    me.cause += me.now() - before;
    compute(20);
  }
  std::free(block);
  close(file);
}

int disk() {
  if (!is_on_disk()) return skip("the current folder is on no disk");
  return run(truth_of_disk(), {{"worker", 3, serve_blocks}});
}

static char touch_page(const char* page) { return *static_cast<const volatile char*>(page); }

static void drop_pages(void* mapped, long size, int file, long at) {
  if (madvise(mapped, static_cast<std::size_t>(size), MADV_DONTNEED) != 0) fail("madvise");
  posix_fadvise(file, at, size, POSIX_FADV_DONTNEED);
}

// Each thread has a part of its own of the file, whose pages it touches far from each other.
static void look_up_pages(Thread& me) {
  const int file = open(big_file().c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail(big_file().c_str());
  const long size = kBigFile / 4, begin = (me.name().back() - '0') * size;
  void* mapped = mmap(nullptr, size, PROT_READ, MAP_SHARED, file, begin);
  if (mapped == MAP_FAILED || madvise(mapped, size, MADV_RANDOM) != 0) fail("mmap");
  const long pages = size / 4096, together = 16;  // so that the measuring is a small part
  for (long i = 0; !me.is_over(); i += together) {
    if (i % pages == 0) drop_pages(mapped, size, file, begin);
    const Times before = me.now();
    for (long k = i; k < i + together; ++k) touch_page(static_cast<char*>(mapped) + k * 1021 % pages * 4096);
    me.cause += me.now() - before;
  }
  munmap(mapped, size);
  close(file);
}

int faults() {
  if (!is_on_disk()) return skip("the current folder is on no disk");
  // Which file a page is of is in no event.
  big_file();
  return run({"fault", "touch_page", &Times::without_runnable}, {{"worker", 3, look_up_pages}});
}
