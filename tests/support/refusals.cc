// Refuses one call of a program, to see how the program takes it: LD_PRELOAD this library, and set
//   TACHO_REFUSE=NAME:N            the Nth call of NAME since main() fails, as it does when the system has
//   nothing left TACHO_REFUSE=NAME:N:for-ever   it never returns, as on a disk that hangs TACHO_REFUSALS=FILE
//   the number of calls of each name goes there, a line each ("open 12")
// The names stand in the table below. Globals and C's ways throughout: it stands in for C functions.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

namespace {

enum Name {
  kOpen,
  kRead,
  kWrite,
  kMmap,
  kEpollCreate,
  kEpollControl,
  kEpollWait,
  kEventfd,
  kSignalfd,
  kThread,
  kFork,
  kPipe,
  kIoctl,
  kSync,
  kTruncate,
  kSpawn,
  kPerfEventOpen,
  kBpf,
  kPidfdOpen,
  kOpenat2,
  kCapset,
  kMemory,
  kNames
};
struct Row {
  const char* name;
  int code;
};
constexpr Row kRows[kNames] = {
    {"open", EMFILE},
    {"read", EIO},
    {"write", ENOSPC},
    {"mmap", ENOMEM},
    {"epoll_create", EMFILE},
    {"epoll_ctl", ENOMEM},
    {"epoll_wait", EINVAL},
    {"eventfd", EMFILE},
    {"signalfd", EMFILE},
    {"thread", EAGAIN},
    {"fork", EAGAIN},
    {"pipe", EMFILE},
    {"ioctl", ENOMEM},
    {"sync", EIO},
    {"truncate", EIO},
    {"spawn", EAGAIN},
    {"perf_event_open", EMFILE},
    {"bpf", ENOMEM},
    {"pidfd_open", EMFILE},
    {"openat2", ENOSYS},  // as before Linux 5.6
    {"capset", EPERM},
    {"memory", ENOMEM},
};

bool is_armed;  // from main() on, in this process
long counts[kNames];
int refused = -1;
bool hangs;
long refused_call;

// Whether this call is the one; errno says why then.
bool refuses(Name which) {
  if (!__atomic_load_n(&is_armed, __ATOMIC_ACQUIRE)) return false;
  const long call = __atomic_add_fetch(&counts[which], 1, __ATOMIC_RELAXED);
  if (which != refused || call != refused_call) return false;
  while (hangs) pause();
  errno = kRows[which].code;
  return true;
}

void write_counts() {
  const char* const path = getenv("TACHO_REFUSALS");
  __atomic_store_n(&is_armed, false, __ATOMIC_RELEASE);
  if (path == nullptr) return;
  FILE* const file = fopen(path, "w");
  if (file == nullptr) return;
  for (int i = 0; i < kNames; ++i) fprintf(file, "%s %ld\n", kRows[i].name, counts[i]);
  fclose(file);
}

void arm() {
  if (const char* const text = getenv("TACHO_REFUSE")) {
    const char* const colon = strchr(text, ':');
    const size_t length = colon == nullptr ? 0 : static_cast<size_t>(colon - text);
    for (int i = 0; i < kNames; ++i) {
      if (strlen(kRows[i].name) == length && strncmp(kRows[i].name, text, length) == 0) refused = i;
    }
    if (refused < 0) {
      fprintf(stderr, "refusals: '%s' is not NAME:N\n", text);
      _exit(125);
    }
    char* end = nullptr;
    refused_call = strtol(colon + 1, &end, 10);
    hangs = strcmp(end, ":for-ever") == 0;
  }
  atexit(write_counts);
  __atomic_store_n(&is_armed, true, __ATOMIC_RELEASE);
}

// The function that this library stands in front of.
template <class Function>
Function* next_of(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

using Main = int(int, char**, char**);
Main* real_main;
int main_with_refusals(int argc, char** argv, char** environment) {
  arm();
  return real_main(argc, argv, environment);
}

int open_any(int folder, const char* path, int flags, mode_t mode) {
  if (refuses(kOpen)) return -1;
  return static_cast<int>(syscall(SYS_openat, folder, path, flags | O_LARGEFILE, mode));
}

}  // namespace

// Each definition has a name of its own in C++ and libc's in the library, so that no header is contradicted.
#define STANDS_FOR(result, symbol, own, ...)          \
  extern "C" result own(__VA_ARGS__) __asm__(symbol); \
  extern "C" result own(__VA_ARGS__)
#define FORWARD(which, failed, result, symbol, own, arguments, ...) \
  STANDS_FOR(result, symbol, own, __VA_ARGS__) {                    \
    if (refuses(which)) return failed;                              \
    static auto* const next = next_of<result(__VA_ARGS__)>(symbol); \
    return next arguments;                                          \
  }
#define OPEN_MODE                             \
  mode_t mode = 0;                            \
  if ((flags & (O_CREAT | O_TMPFILE)) != 0) { \
    va_list more;                             \
    va_start(more, flags);                    \
    mode = va_arg(more, mode_t);              \
    va_end(more);                             \
  }

// What runs before main() is the loader's and the libraries' own.
STANDS_FOR(int, "__libc_start_main", start_main, Main* main, int argc, char** argv, void* init, void* fini,
           void* rtld_fini, void* stack_end) {
  real_main = main;
  auto* const next = next_of<int(Main*, int, char**, void*, void*, void*, void*)>("__libc_start_main");
  return next(main_with_refusals, argc, argv, init, fini, rtld_fini, stack_end);
}

// A child made by fork() is another program soon, or tries what may fail; its calls are not counted.
STANDS_FOR(pid_t, "fork", own_fork) {
  if (refuses(kFork)) return -1;
  const pid_t child = next_of<pid_t()>("fork")();
  if (child == 0) {
    __atomic_store_n(&is_armed, false, __ATOMIC_RELEASE);
    unsetenv("LD_PRELOAD");
  }
  return child;
}

STANDS_FOR(int, "open", own_open, const char* path, int flags, ...) {
  OPEN_MODE
  return open_any(AT_FDCWD, path, flags, mode);
}
STANDS_FOR(int, "open64", own_open64, const char* path, int flags, ...) {
  OPEN_MODE
  return open_any(AT_FDCWD, path, flags, mode);
}
STANDS_FOR(int, "openat", own_openat, int folder, const char* path, int flags, ...) {
  OPEN_MODE
  return open_any(folder, path, flags, mode);
}
STANDS_FOR(int, "openat64", own_openat64, int folder, const char* path, int flags, ...) {
  OPEN_MODE
  return open_any(folder, path, flags, mode);
}
FORWARD(kOpen, nullptr, FILE*, "fopen", own_fopen, (path, mode), const char* path, const char* mode)
FORWARD(kOpen, nullptr, FILE*, "fopen64", own_fopen64, (path, mode), const char* path, const char* mode)
FORWARD(kOpen, nullptr, void*, "opendir", own_opendir, (path), const char* path)

FORWARD(kRead, -1, ssize_t, "read", own_read, (fd, to, size), int fd, void* to, size_t size)
FORWARD(kRead, -1, ssize_t, "pread", own_pread, (fd, to, size, at), int fd, void* to, size_t size, off_t at)
FORWARD(kRead, -1, ssize_t, "pread64", own_pread64, (fd, to, size, at), int fd, void* to, size_t size,
        off_t at)
FORWARD(kWrite, -1, ssize_t, "write", own_write, (fd, from, size), int fd, const void* from, size_t size)
FORWARD(kWrite, -1, ssize_t, "pwrite", own_pwrite, (fd, from, size, at), int fd, const void* from,
        size_t size, off_t at)
FORWARD(kWrite, -1, ssize_t, "pwrite64", own_pwrite64, (fd, from, size, at), int fd, const void* from,
        size_t size, off_t at)
FORWARD(kMmap, reinterpret_cast<void*>(-1), void*, "mmap", own_mmap, (at, size, rights, flags, fd, offset),
        void* at, size_t size, int rights, int flags, int fd, off_t offset)
FORWARD(kMmap, reinterpret_cast<void*>(-1), void*, "mmap64", own_mmap64,
        (at, size, rights, flags, fd, offset), void* at, size_t size, int rights, int flags, int fd,
        off_t offset)
FORWARD(kEpollCreate, -1, int, "epoll_create1", own_epoll_create1, (flags), int flags)
FORWARD(kEpollControl, -1, int, "epoll_ctl", own_epoll_ctl, (epoll, what, fd, event), int epoll, int what,
        int fd, void* event)
FORWARD(kEpollWait, -1, int, "epoll_wait", own_epoll_wait, (epoll, events, most, patience), int epoll,
        void* events, int most, int patience)
FORWARD(kEventfd, -1, int, "eventfd", own_eventfd, (value, flags), unsigned value, int flags)
FORWARD(kSignalfd, -1, int, "signalfd", own_signalfd, (fd, set, flags), int fd, const void* set, int flags)
FORWARD(kPipe, -1, int, "pipe2", own_pipe2, (ends, flags), int* ends, int flags)
FORWARD(kPipe, -1, int, "pipe", own_pipe, (ends), int* ends)
FORWARD(kSync, -1, int, "fsync", own_fsync, (fd), int fd)
FORWARD(kSync, -1, int, "fdatasync", own_fdatasync, (fd), int fd)
FORWARD(kTruncate, -1, int, "ftruncate", own_ftruncate, (fd, size), int fd, off_t size)
FORWARD(kTruncate, -1, int, "ftruncate64", own_ftruncate64, (fd, size), int fd, off_t size)
FORWARD(kThread, kRows[kThread].code, int, "pthread_create", own_pthread_create,
        (thread, attributes, run, argument), pthread_t* thread, const pthread_attr_t* attributes,
        void* (*run)(void*), void* argument)
FORWARD(kSpawn, kRows[kSpawn].code, int, "posix_spawnp", own_posix_spawnp,
        (child, file, actions, attributes, argv, environment), pid_t* child, const char* file,
        const void* actions, const void* attributes, char* const* argv, char* const* environment)

STANDS_FOR(int, "ioctl", own_ioctl, int fd, unsigned long request, ...) {
  va_list more;
  va_start(more, request);
  void* const argument = va_arg(more, void*);
  va_end(more);
  if (refuses(kIoctl)) return -1;
  return static_cast<int>(syscall(SYS_ioctl, fd, request, argument));
}
STANDS_FOR(long, "syscall", own_syscall, long number, ...) {
  va_list more;
  va_start(more, number);
  long words[6];
  for (long& word : words) word = va_arg(more, long);
  va_end(more);
  if (number == SYS_perf_event_open && refuses(kPerfEventOpen)) return -1;
  if (number == SYS_bpf && refuses(kBpf)) return -1;
  if (number == SYS_pidfd_open && refuses(kPidfdOpen)) return -1;
  if (number == SYS_openat2 && refuses(kOpenat2)) return -1;
  if (number == SYS_capset && refuses(kCapset)) return -1;
  static auto* const next = next_of<long(long, ...)>("syscall");
  return next(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

// dlsym() itself wants memory, so these go to glibc's own names.
extern "C" void* __libc_malloc(size_t size);
extern "C" void* __libc_calloc(size_t count, size_t size);
extern "C" void* __libc_realloc(void* old, size_t size);
extern "C" void* __libc_memalign(size_t alignment, size_t size);
STANDS_FOR(void*, "malloc", own_malloc, size_t size) {
  return refuses(kMemory) ? nullptr : __libc_malloc(size);
}
STANDS_FOR(void*, "calloc", own_calloc, size_t count, size_t size) {
  return refuses(kMemory) ? nullptr : __libc_calloc(count, size);
}
STANDS_FOR(void*, "realloc", own_realloc, void* old, size_t size) {
  return refuses(kMemory) ? nullptr : __libc_realloc(old, size);
}
STANDS_FOR(void*, "aligned_alloc", own_aligned_alloc, size_t alignment, size_t size) {
  return refuses(kMemory) ? nullptr : __libc_memalign(alignment, size);
}
STANDS_FOR(int, "posix_memalign", own_posix_memalign, void** out, size_t alignment, size_t size) {
  if (refuses(kMemory)) return ENOMEM;
  *out = __libc_memalign(alignment, size);
  return *out == nullptr ? ENOMEM : 0;
}
