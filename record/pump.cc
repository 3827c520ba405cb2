#include "record/pump.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "record/output/record_queue.h"

namespace tacho::record {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kQueueLimit = std::size_t{64} << 20;
constexpr std::size_t kBatchBytes = std::size_t{1} << 20;    // handed over even in the middle of a pass
constexpr std::size_t kRoundBytes = std::size_t{256} << 10;  // worth a round of its own: what one frame holds
// Half a second is promised from the kernel's ring to the disk: waiting, merging, and room for the writing.
constexpr milliseconds kLongestWait{100};
constexpr milliseconds kLongestMerge{200};
// A command that was told to end by a signal has this long before we leave it alone.
constexpr milliseconds kGrace{1500};
constexpr int kReaderNice = -10;

// The thread that compresses and writes. Its first failure ends the recording through `failed_fd`.
class WritingThread {
 public:
  WritingThread(format::CaptureWriter& writer, RecordQueue& queue)
      : writer_(writer),
        queue_(queue),
        failed_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        thread_([this] { run(); }) {}
  int failed_fd() const { return failed_fd_.get(); }
  // What stands in whole rounds of the file. After join().
  const RecordCounts& kept() const { return kept_; }
  // Waits until everything is written; the failure, if there was one.
  std::optional<Error> join() {
    queue_.close();
    thread_.join();
    return std::move(failure_);
  }

 private:
  void run() {
    while (auto batch = queue_.pop()) {
      if (auto done = write(*batch); !done) {
        failure_ = std::move(done.error());
        queue_.abandon();
        eventfd_write(failed_fd_.get(), 1);
        return;
      }
      queue_.give_back(std::move(batch->records));
    }
  }
  Result<> write(const Batch& batch) {
    if (!batch.records.empty()) {
      if (auto done = writer_.write_records(batch.records); !done) return done;
    }
    if (!batch.ends_round) return Done{};
    if (auto done = writer_.finish_round(); !done) return done;
    kept_ = batch.counts;
    return Done{};
  }

  format::CaptureWriter& writer_;
  RecordQueue& queue_;
  format::Fd failed_fd_;
  std::optional<Error> failure_;
  RecordCounts kept_;
  std::thread thread_;  // last: it uses what stands above
};

// One entry of epoll: whose descriptor became ready.
enum class Source : std::uint32_t { Ring, Signals, Command, Writer };
std::uint64_t tag(Source source, std::size_t index) {
  return static_cast<std::uint64_t>(source) << 32 | index;
}

// Where a ring's news come from: one event of it, of each task in turn. Any of them hears of the whole ring.
struct RingWatch {
  std::size_t event = 0;    // index in the plan
  std::vector<int> fds;     // of the tasks
  std::size_t watched = 0;  // index of the one in epoll
};

class Pump {
 public:
  Pump(KernelEvents& events, format::CaptureWriter& writer, Workload* workload, const StopSignals& signals)
      : events_(events),
        workload_(workload),
        signals_(signals),
        queue_(kQueueLimit),
        writing_(writer, queue_) {}

  PumpReport run() {
    // Being off the CPU for some ms is what loses events; more than our share is not needed otherwise.
    setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kReaderNice);
    watch_everything();
    while (!stopped_) {
      wait();
      pass();
      hand_over_if_due();
      check_command();
    }
    events_.disable();
    pass();
    hand_over(true);
    if (auto failure = writing_.join(); failure && !report_.failure) report_.failure = std::move(failure);
    report_.kept = writing_.kept();
    return std::move(report_);
  }

 private:
  void watch_everything() {
    epoll_ = format::Fd(epoll_create1(EPOLL_CLOEXEC));
    ring_watches_.resize(events_.rings().size());
    for (const OpenEvent& event : events_.open_events()) {
      RingWatch& watch = ring_watches_[event.ring];
      if (watch.fds.empty()) watch.event = event.event;
      if (watch.event == event.event) watch.fds.push_back(event.fd.get());
    }
    for (std::size_t ring = 0; ring < ring_watches_.size(); ++ring) {
      watch(ring_watches_[ring].fds.front(), tag(Source::Ring, ring));
    }
    live_rings_ = ring_watches_.size();
    watch(signals_.fd(), tag(Source::Signals, 0));
    watch(writing_.failed_fd(), tag(Source::Writer, 0));
    if (workload_ != nullptr && workload_->end_fd() >= 0) watch(workload_->end_fd(), tag(Source::Command, 0));
  }

  void watch(int fd, std::uint64_t data) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = data;
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  }

  void wait() {
    std::array<epoll_event, 16> ready{};
    const int count = epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()),
                                 static_cast<int>(kLongestWait.count()));
    bool woken_by_ring = false;
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = ready.at(static_cast<std::size_t>(i));
      const auto source = static_cast<Source>(event.data.u64 >> 32);
      if (source == Source::Ring) {
        woken_by_ring |= (event.events & EPOLLIN) != 0;
        if ((event.events & (EPOLLHUP | EPOLLERR)) != 0)
          task_ended(static_cast<std::uint32_t>(event.data.u64));
      }
      if (source == Source::Signals) take_signals();
      if (source == Source::Writer) stop_for_failure();
    }
    report_.wakeups += woken_by_ring ? 1 : 0;
  }

  // The task whose descriptor told us of this ring is gone; another task of the ring tells us from now on.
  void task_ended(std::size_t ring) {
    RingWatch& ended = ring_watches_[ring];
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, ended.fds[ended.watched], nullptr);
    if (++ended.watched < ended.fds.size()) {
      watch(ended.fds[ended.watched], tag(Source::Ring, ring));
    } else if (--live_rings_ == 0 && workload_ == nullptr) {
      stopped_ = true;
    }
  }

  void take_signals() {
    while (const auto signal = signals_.take()) {
      if (workload_ == nullptr) {
        stopped_ = true;
        return;
      }
      // From the terminal it reached the command as well; else we pass it on. A second one ends the waiting.
      if (!signal->from_terminal) workload_->send(signal->for_command);
      const bool is_second = stop_signals_++ > 0;
      if (is_second) give_up_command();
      if (!give_up_at_) give_up_at_ = Clock::now() + kGrace;
      last_signal_ = signal->number;
    }
  }

  void give_up_command() {
    stopped_ = true;
    report_.command_status = workload_->status();
    if (report_.command_status) return;
    report_.command_left_running = true;
    report_.command_status = 128 + last_signal_;
  }

  // The command is not harmed by our failure, only no longer watched.
  void stop_for_failure() {
    stopped_ = true;
    report_.command_left_running = workload_ != nullptr && !workload_->status();
  }

  void check_command() {
    if (workload_ == nullptr || stopped_) return;
    report_.command_status = workload_->status();
    if (report_.command_status) stopped_ = true;
    if (!stopped_ && give_up_at_ && Clock::now() >= *give_up_at_) give_up_command();
  }

  // One look at every ring.
  void pass() {
    for (PerfRing& ring : events_.rings()) {
      const std::size_t begin = buffer_.size();
      ring.drain([this](format::Bytes run) { buffer_.insert(buffer_.end(), run.begin(), run.end()); });
      if (buffer_.size() == begin) continue;
      if (!has_open_round_) {
        has_open_round_ = true;
        round_began_ = Clock::now();
      }
      if (!count_records(format::Bytes(buffer_).subspan(begin), report_.counts)) {
        report_.failure = Error{"the kernel's ring holds something that is no record; recording stops here"};
        buffer_.resize(begin);
        stop_for_failure();
      }
      if (buffer_.size() >= kBatchBytes) hand_over(false);
    }
  }

  void hand_over_if_due() {
    if (!has_open_round_) return;
    if (buffer_.size() >= kRoundBytes || Clock::now() - round_began_ >= kLongestMerge) hand_over(true);
  }

  void hand_over(bool ends_round) {
    if (ends_round && !has_open_round_) return;
    queue_.push({std::move(buffer_), ends_round, report_.counts});
    buffer_ = queue_.spare_buffer();
    if (ends_round) has_open_round_ = false;
  }

  KernelEvents& events_;
  Workload* workload_;
  const StopSignals& signals_;
  RecordQueue queue_;
  WritingThread writing_;
  PumpReport report_;
  format::Fd epoll_;
  std::vector<RingWatch> ring_watches_;
  std::size_t live_rings_ = 0;
  std::vector<std::byte> buffer_;
  bool has_open_round_ = false;
  Clock::time_point round_began_;
  bool stopped_ = false;
  int stop_signals_ = 0, last_signal_ = 0;
  std::optional<Clock::time_point> give_up_at_;
};

}  // namespace

PumpReport pump(KernelEvents& events, format::CaptureWriter& writer, Workload* workload,
                const StopSignals& signals) {
  return Pump(events, writer, workload, signals).run();
}

}  // namespace tacho::record
