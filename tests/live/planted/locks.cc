// Locks, whose waiters wait in a function of their own. What they measure ends when they have the lock.
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "planted.h"

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t index_lock = PTHREAD_RWLOCK_INITIALIZER;

static void parse_request() { compute(50); }
static void find_in_cache() { compute(1000); }

static void lookup_under_lock(Thread& me) {
  const Times before = me.now();
  pthread_mutex_lock(&cache_lock);
  me.cause += me.now() - before;
  find_in_cache();
  pthread_mutex_unlock(&cache_lock);
}

static void look_up(Thread& me) {
  while (!me.is_over()) {
    lookup_under_lock(me);
    parse_request();
  }
}

int convoy() {
  return run({"lock",
              "lookup_under_lock",
              &Times::blocked,
              {{"lock", quoted("cache_lock")},
               {"holder", R"({"comm":"worker-*","function":"find_in_cache","doing":"cpu"})"}}},
             {{"worker", 5, look_up}});
}

static void store_under_lock(Thread& me) {
  const Times before = me.now();
  pthread_mutex_lock(&cache_lock);
  me.cause += me.now() - before;
  compute(5);
  pthread_mutex_unlock(&cache_lock);
}

static void store(Thread& me) {
  while (!me.is_over()) {
    compute(300);  // time in which the flusher takes the lock again
    store_under_lock(me);
  }
}

static void flush_log(int file) {
  static char entries[16 << 10];
  pthread_mutex_lock(&cache_lock);
  for (long part = 0; part < 16; ++part) {
    if (pwrite(file, entries, sizeof entries, part << 20) != sizeof entries || fsync(file) != 0) fail("log");
  }
  pthread_mutex_unlock(&cache_lock);
}

static void flush(Thread& me) {
  const int file = open(big_file().c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) fail(big_file().c_str());
  while (!me.is_over()) {
    flush_log(file);
    compute(100);
  }
  close(file);
}

int fsync_lock() {
  if (!is_on_disk()) return skip("the current folder is on no disk");
  big_file();  // made before the threads run
  return run({"lock",
              "store_under_lock",
              &Times::blocked,
              {{"lock", quoted("cache_lock")},
               {"holder", R"({"comm":"flusher","function":"flush_log","doing":"disk"})"}}},
             {{"flusher", 1, flush}, {"worker", 3, store}});
}

// Workers wait for table_lock. The compactor, which has it, waits for log_lock; the flusher, which has that,
// computes.
static void read_under_lock(Thread& me) {
  const Times before = me.now();
  pthread_mutex_lock(&table_lock);
  me.cause += me.now() - before;
  compute(5);
  pthread_mutex_unlock(&table_lock);
}

// Requests come at times, so that CPUs are free.
static void read_tables(Thread& me) {
  while (!me.is_over()) {
    const Times before = me.now();
    usleep(300);
    me.idle += me.now() - before;
    parse_request();
    read_under_lock(me);
  }
}

static void append_to_log(Thread& me) {
  const Times before = me.now();
  pthread_mutex_lock(&log_lock);
  me.second += me.now() - before;
  compute(20);
  pthread_mutex_unlock(&log_lock);
}

static void compact_under_lock(Thread& me) {
  pthread_mutex_lock(&table_lock);
  append_to_log(me);
  pthread_mutex_unlock(&table_lock);
}

static void compact(Thread& me) {
  while (!me.is_over()) {
    compact_under_lock(me);
    compute(100);
  }
}

static void compress_log() {
  pthread_mutex_lock(&log_lock);
  compute(5000);
  pthread_mutex_unlock(&log_lock);
}

static void keep_log(Thread& me) {
  while (!me.is_over()) {
    compress_log();
    compute(600);  // time in which the compactor, which wakes up, takes the lock
  }
}

int lock_chain() {
  return run(
      {"lock",
       "read_under_lock",
       &Times::blocked,
       {{"lock", quoted("table_lock")},
        {"holder", R"({"comm":"compactor","function":"append_to_log","doing":"lock"})"},
        {"then",
         R"({"lock":"log_lock","holder":{"comm":"flusher","function":"compress_log","doing":"cpu"}})"}},
       "append_to_log"},
      {{"flusher", 1, keep_log}, {"compactor", 1, compact}, {"worker", 4, read_tables}});
}

// Readers come before a writer that waits, so it waits until by chance none of them has the lock.
static void scan_index() {
  pthread_rwlock_rdlock(&index_lock);
  compute(5000);
  pthread_rwlock_unlock(&index_lock);
}

static void scan(Thread& me) {
  while (!me.is_over()) {
    scan_index();
    compute(500);
  }
}

static void update_under_lock(Thread& me) {
  const Times before = me.now();
  pthread_rwlock_wrlock(&index_lock);
  me.cause += me.now() - before;
  compute(5);
  pthread_rwlock_unlock(&index_lock);
}

static void update(Thread& me) {
  while (!me.is_over()) {
    update_under_lock(me);
    compute(50);
  }
}

int rwlock() {
  return run({"lock", "update_under_lock", &Times::blocked, {{"lock", quoted("index_lock")}}},
             {{"reader", 2, scan}, {"updater", 4, update}});
}
