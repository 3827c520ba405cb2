// Servers and their peers, on loopback.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <deque>

#include "planted.h"

static sockaddr_in backend_address;

static int listen_somewhere() {
  const int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  backend_address.sin_family = AF_INET;
  backend_address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* address = reinterpret_cast<sockaddr*>(&backend_address);
  socklen_t size = sizeof backend_address;
  if (bind(listening, address, size) != 0 || listen(listening, 64) != 0 ||
      getsockname(listening, address, &size) != 0) {
    fail("listen");
  }
  return listening;
}

static int connect_there() {
  const int there = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(there, reinterpret_cast<sockaddr*>(&backend_address), sizeof backend_address) != 0)
    fail("connect");
  return there;
}

static std::string peer_name() { return "127.0.0.1:" + std::to_string(ntohs(backend_address.sin_port)); }

static void await_input_of(int polled, int file) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = file}};
  if (epoll_ctl(polled, EPOLL_CTL_ADD, file, &event) != 0) fail("epoll_ctl");
}

static constexpr int kAnswersAfter = 20;  // ms

// Answers each byte later. It waits in epoll alone, which is the wait of a process without work.
static void answer_late(int listening) {
  struct Answer {
    long due;
    int connection;
  };
  std::deque<Answer> answers;
  const int polled = epoll_create1(0);
  await_input_of(polled, listening);
  for (;;) {
    const long now = now_ms();
    for (; !answers.empty() && answers.front().due <= now; answers.pop_front()) {
      if (write(answers.front().connection, "!", 1) != 1) _exit(0);
    }
    epoll_event event{};
    if (epoll_wait(polled, &event, 1, answers.empty() ? -1 : static_cast<int>(answers.front().due - now)) !=
        1)
      continue;
    char byte = 0;
    if (event.data.fd == listening) {
      await_input_of(polled, accept(listening, nullptr, nullptr));
    } else if (read(event.data.fd, &byte, 1) == 1) {
      answers.push_back({now_ms() + kAnswersAfter, event.data.fd});
    } else {
      close(event.data.fd);
    }
  }
}

static void start_backend() {
  const int listening = listen_somewhere();
  start_child("backend", answer_late, listening);
  close(listening);
}

static void call_backend(int backend) {
  char answer = 0;
  if (write(backend, "?", 1) != 1 || recv(backend, &answer, 1, 0) != 1) fail("backend");
}

static void serve_from_backend(Thread& me) {
  const int backend = connect_there();
  while (!me.is_over()) {
    const Times before = me.now();
    call_backend(backend);
    me.cause += me.now() - before;
    compute(500);
  }
  close(backend);
}

int peer() {
  start_backend();
  return run({"network", "call_backend", &Times::blocked, {{"peer", quoted(peer_name())}}},
             {{"worker", 4, serve_from_backend}});
}

// A queue of jobs of the pool, and those who wait for a job.
struct Job {
  int connection = -1;
  bool is_done = false;
};
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_job = PTHREAD_COND_INITIALIZER;
static pthread_cond_t has_done = PTHREAD_COND_INITIALIZER;
static std::deque<Job*> jobs;
static bool pool_ends;

static void add_job(Job* job) {
  pthread_mutex_lock(&queue_lock);
  jobs.push_back(job);
  pthread_cond_signal(&has_job);
  pthread_mutex_unlock(&queue_lock);
}

static Job* next_job(Thread& me) {
  const Times before = me.now();
  pthread_mutex_lock(&queue_lock);
  while (jobs.empty() && !pool_ends) pthread_cond_wait(&has_job, &queue_lock);
  Job* job = nullptr;
  if (!jobs.empty()) {
    job = jobs.front();
    jobs.pop_front();
  }
  pthread_mutex_unlock(&queue_lock);
  me.idle += me.now() - before;
  return job;
}

static void end_pool() {
  pthread_mutex_lock(&queue_lock);
  pool_ends = true;
  pthread_cond_broadcast(&has_job);
  pthread_mutex_unlock(&queue_lock);
}

// Both workers are always in call_backend, so callers wait in submit. The cause is what the workers wait for:
// more threads would only move the queue to the backend. The callers' wait for a condition is that of a
// thread without work, and counts as such; "waits" says where it is, for an answer that follows it to its
// wakers.
static void submit(Thread& me) {
  Job job;
  const Times before = me.now();
  add_job(&job);
  pthread_mutex_lock(&queue_lock);
  while (!job.is_done) pthread_cond_wait(&has_done, &queue_lock);
  pthread_mutex_unlock(&queue_lock);
  me.idle += me.now() - before;
}

static constexpr int kCallers = 6;

static void serve_callers(Thread& me) {
  static int ended;
  while (!me.is_over()) {
    submit(me);
    compute(20);
  }
  if (__atomic_add_fetch(&ended, 1, __ATOMIC_RELAXED) == kCallers) end_pool();
}

static void work_with_backend(Thread& me) {
  const int backend = connect_there();
  while (Job* job = next_job(me)) {
    const Times before = me.now();
    call_backend(backend);
    me.cause += me.now() - before;
    compute(50);
    pthread_mutex_lock(&queue_lock);
    job->is_done = true;
    pthread_cond_broadcast(&has_done);
    pthread_mutex_unlock(&queue_lock);
  }
  close(backend);
}

int pool() {
  start_backend();
  return run({"network",
              "call_backend",
              &Times::blocked,
              {{"peer", quoted(peer_name())},
               {"waits", R"({"comm":"caller-*","function":"submit","for":"worker-*"})"}}},
             {{"worker", 2, work_with_backend}, {"caller", kCallers, serve_callers}});
}

// Connections to the backend are fewer than the threads that need one.
static pthread_mutex_t connections_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_connection = PTHREAD_COND_INITIALIZER;
static std::deque<int> connections;

static int get_connection() {
  pthread_mutex_lock(&connections_lock);
  while (connections.empty()) pthread_cond_wait(&has_connection, &connections_lock);
  const int connection = connections.front();
  connections.pop_front();
  pthread_mutex_unlock(&connections_lock);
  return connection;
}

static void put_connection(int connection) {
  pthread_mutex_lock(&connections_lock);
  connections.push_back(connection);
  pthread_cond_signal(&has_connection);
  pthread_mutex_unlock(&connections_lock);
}

static void serve_from_pool(Thread& me) {
  while (!me.is_over()) {
    const Times before = me.now();
    const int connection = get_connection();
    me.cause += me.now() - before;
    call_backend(connection);
    put_connection(connection);
    compute(200);
  }
}

int few_connections() {
  start_backend();
  for (int i = 0; i < 2; ++i) connections.push_back(connect_there());
  return run({"condition",
              "get_connection",
              &Times::blocked,
              {{"lock", quoted("has_connection")},
               {"holder", R"({"comm":"worker-*","function":"call_backend","doing":"network"})"}}},
             {{"worker", 6, serve_from_pool}});
}

static int listening_server = -1;

// A request each 5 ms. It waits in epoll alone, too.
static void ask_now_and_then(int) {
  const int server = connect_there(), polled = epoll_create1(0), nothing = epoll_create1(0);
  await_input_of(polled, server);
  epoll_event event{};
  char answer = 0;
  for (;;) {
    if (write(server, "?", 1) != 1 || epoll_wait(polled, &event, 1, -1) != 1 || read(server, &answer, 1) != 1)
      _exit(0);
    epoll_wait(nothing, &event, 1, 5);
  }
}

static void serve_connections(Thread& me) {
  const int polled = epoll_create1(0);
  await_input_of(polled, listening_server);
  static Job job;  // there is one connection, with one request at a time
  while (!me.is_over()) {
    const Times before = me.now();
    epoll_event event{};
    const int count = epoll_wait(polled, &event, 1, 100);
    me.idle += me.now() - before;
    if (count != 1) continue;
    char byte = 0;
    if (event.data.fd == listening_server) {
      await_input_of(polled, accept(listening_server, nullptr, nullptr));
    } else if (read(event.data.fd, &byte, 1) == 1) {
      job.connection = event.data.fd;
      add_job(&job);
    }
  }
  end_pool();
  close(polled);
}

static void handle_request(const Job& job) {
  compute(200);
  if (write(job.connection, "!", 1) != 1) fail("answer");
}

static void work(Thread& me) {
  while (const Job* job = next_job(me)) handle_request(*job);
}

int healthy() {
  listening_server = listen_somewhere();
  start_child("client", ask_now_and_then, 0);
  return run({.cause = "idle"}, {{"server", 1, serve_connections}, {"worker", 4, work}});
}
