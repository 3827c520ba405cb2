// Causes on the CPU. The loops stand in the functions themselves: a sample shows the function, not what it
// calls.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "planted.h"

static void hot_function() {
  unsigned value = 1;
  for (int i = 0; i < 600'000; ++i) {
    value = value * 1664525 + 1013904223;
    asm volatile("" : "+r"(value));
  }
}
static void parse_request() { compute(80); }
static void write_reply() { compute(60); }

static void handle_request(Thread& me) {
  parse_request();
  const Times before = me.now();
  hot_function();
  me.cause += me.now() - before;
  write_reply();
}

static void serve(Thread& me) {
  while (!me.is_over()) handle_request(me);
}

int hot() {
  return run({"cpu", "hot_function", &Times::on_cpu, {{"callers", R"(["handle_request","serve"])"}}},
             {{"worker", 2, serve}});
}

static void sort_rows() {
  unsigned value = 1;
  for (int i = 0; i < 500'000; ++i) {
    value = value * 1664525 + 1013904223;
    asm volatile("" : "+r"(value));
  }
}
static void hash_rows() {
  unsigned value = 1;
  for (int i = 0; i < 300'000; ++i) {
    value = value * 69069 + 1234567;
    asm volatile("" : "+r"(value));
  }
}

static void answer_query(Thread& me) {
  const Times first = me.now();
  sort_rows();
  const Times second = me.now();
  hash_rows();
  me.cause += second - first;
  me.second += me.now() - second;
}

static void serve_queries(Thread& me) {
  while (!me.is_over()) {
    answer_query(me);
    write_reply();
  }
}

int two_hot() {
  return run(
      {"cpu", "sort_rows", &Times::on_cpu, {{"callers", R"(["answer_query","serve_queries"])"}}, "hash_rows"},
      {{"worker", 2, serve_queries}});
}

// The owner of the flag sleeps with it, as a thread does that is preempted or waits for a page.
static bool table_is_taken;

static void spin_until_free() {
  while (__atomic_exchange_n(&table_is_taken, true, __ATOMIC_ACQUIRE)) {
    while (__atomic_load_n(&table_is_taken, __ATOMIC_RELAXED)) {
#ifdef __x86_64__
      __builtin_ia32_pause();
#endif
    }
  }
}
static void yield_until_free() {
  while (__atomic_exchange_n(&table_is_taken, true, __ATOMIC_ACQUIRE)) sched_yield();
}
static void free_table() { __atomic_store_n(&table_is_taken, false, __ATOMIC_RELEASE); }

template <void (*Take)()>
static void update_table(Thread& me) {
  while (!me.is_over()) {
    Take();
    const Times before = me.now();
    usleep(20'000);
    me.idle += me.now() - before;
    free_table();
    compute(100);
  }
}

template <void (*Take)()>
static void read_table(Thread& me) {
  while (!me.is_over()) {
    const Times before = me.now();
    Take();
    me.cause += me.now() - before;
    free_table();
    compute(50);
  }
}

int spin() {
  return run({"spin", "spin_until_free", &Times::on_cpu},
             {{"updater", 1, update_table<spin_until_free>}, {"worker", 2, read_table<spin_until_free>}});
}

int yield() {
  return run({"spin", "yield_until_free", &Times::on_cpu, {{"call", quoted("sched_yield")}}},
             {{"updater", 1, update_table<yield_until_free>}, {"worker", 2, read_table<yield_until_free>}});
}

static long read_bytes(int file, long count) {
  long sum = 0;
  char byte = 0;
  for (long i = 0; i < count && read(file, &byte, 1) == 1; ++i) sum += byte;
  return sum;
}

static void count_bytes(Thread& me) {
  const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (file < 0) fail("/proc/self/exe");
  while (!me.is_over()) {
    const Times before = me.now();
    read_bytes(file, 5000);
    me.cause += me.now() - before;
    if (lseek(file, 0, SEEK_SET) < 0) fail("lseek");
    compute(100);
  }
  close(file);
}

int syscalls() {
  return run({"syscall", "read_bytes", &Times::on_cpu, {{"call", quoted("read")}}},
             {{"worker", 2, count_bytes}});
}
