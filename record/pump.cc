#include "record/pump.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "record/commander.h"
#include "record/output/record_queue.h"
#include "record/output/writing_thread.h"

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

// Memory that was refused is asked for again after a moment, and so often in vain while nothing of ours is on
// its way to the disk.
constexpr milliseconds kMemoryWait{10};
constexpr int kPatienceWithMemory = 20;

// After the end of a recording the disk has this long to take what is queued; a signal shortens it. What is
// waited for is told after a second.
constexpr milliseconds kTellOfWaiting{1000};
constexpr milliseconds kWritingBound{30'000};
// Given up, a write that is under way has this long to return, else its thread is left behind.
constexpr milliseconds kStuckBound{2000};

constexpr const char* kNoRecord = "the kernel's ring holds something that is no record; recording stops here";

// One entry of epoll: whose descriptor became ready.
enum class Source : std::uint32_t { Ring, Signals, Command, Control, Writer };
std::uint64_t tag(Source source, std::size_t index) {
  return static_cast<std::uint64_t>(source) << 32 | index;
}

// Where a ring's news come from: one event of it, of each task in turn. Any of them hears of the whole ring.
struct RingWatch {
  std::size_t event = 0;    // index in the plan
  std::vector<int> fds;     // of the tasks
  std::size_t watched = 0;  // index of the one in epoll
};

}  // namespace

class Pump::Loop {
 public:
  explicit Loop(Pump::Parts parts)
      : events_(parts.events),
        workload_(parts.workload),
        signals_(parts.signals),
        control_(parts.control),
        schedule_(std::move(parts.schedule)),
        switch_rule_(parts.switch_rule),
        on_switch_(std::move(parts.on_switch)),
        say_(std::move(parts.say)),
        queue_(kQueueLimit),
        writing_(parts.output, queue_, std::move(parts.limits), std::move(parts.closing)) {
    if (control_ == nullptr) return;
    commander_.emplace(*control_, events_,
                       Commander::Means{[this] { stop_by_hand(SIGTERM, false); },
                                        [this] { return begin_snapshot(); }, say_});
  }

  Result<> start() {
    if (auto done = writing_.start(); !done) return done;
    return watch_everything();
  }

  PumpReport run() {
    // Being off the CPU for some ms is what loses events; more than our share is not needed otherwise.
    setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kReaderNice);
    began_at_ = file_began_at_ = Clock::now();
    while (!stopped_at_) {
      wait(until_next_step());
      keep_schedule();
      pass();
      hand_over_if_due();
      keep_switching();
      check_limits();
      check_command();
    }
    events_.disable();
    take_the_rest();
    take_snapshot();
    hand_over(true);
    queue_.close();
    wait_for_writing();
    return std::move(report_);
  }
  void leave_writer_behind() { writing_.leave_behind(); }

 private:
  Result<> watch_everything() {
    epoll_ = format::Fd(epoll_create1(EPOLL_CLOEXEC));
    if (!epoll_) return system_error("epoll", errno);
    ring_watches_.resize(events_.rings().size());
    for (const OpenEvent& event : events_.open_events()) {
      RingWatch& watch = ring_watches_[event.ring];
      if (watch.fds.empty()) watch.event = event.event;
      if (watch.event == event.event) watch.fds.push_back(event.fd.get());
    }
    for (std::size_t ring = 0; ring < ring_watches_.size(); ++ring) {
      // One that is written over and over has no news.
      if (events_.rings()[ring].kind() == RingKind::Backward) continue;
      ++live_rings_;
      if (auto done = watch(ring_watches_[ring].fds.front(), tag(Source::Ring, ring)); !done) return done;
    }
    if (auto done = watch(signals_.fd(), tag(Source::Signals, 0)); !done) return done;
    if (auto done = watch(writing_.ended_fd(), tag(Source::Writer, 0)); !done) return done;
    if (control_ != nullptr) {
      if (auto done = watch(control_->fd(), tag(Source::Control, 0)); !done)
        return std::move(done.error()).in("--control");
    }
    // Without it the end of the command is seen when the longest wait is over.
    if (workload_ == nullptr || workload_->end_fd() < 0) return Done{};
    return watch(workload_->end_fd(), tag(Source::Command, 0));
  }

  Result<> watch(int fd, std::uint64_t data) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = data;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return Done{};
    return system_error("epoll", errno);
  }

  void wait(milliseconds patience) {
    std::array<epoll_event, 16> ready{};
    const int count = epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()),
                                 static_cast<int>(patience.count()));
    if (count < 0 && errno != EINTR) return fail(system_error("epoll", errno));
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
      if (source == Source::Control) take_commands();
      if (source == Source::Writer) stop_for_failure();  // it ends by itself only when it failed
    }
    report_.wakeups += woken_by_ring ? 1 : 0;
  }

  // The task whose descriptor told us of this ring is gone; another task of the ring tells us from now on.
  void task_ended(std::size_t ring) {
    RingWatch& ended = ring_watches_[ring];
    if (ended.watched >= ended.fds.size()) return;
    // A descriptor that stays watched tells of its end again and again, and the loop would never rest.
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, ended.fds[ended.watched], nullptr) != 0)
      return fail(system_error("epoll", errno));
    if (++ended.watched < ended.fds.size()) {
      auto done = watch(ended.fds[ended.watched], tag(Source::Ring, ring));
      if (!done) fail(std::move(done.error()));
    } else if (--live_rings_ == 0 && workload_ == nullptr) {
      stop();
    }
  }

  void stop() {
    if (!stopped_at_) stopped_at_ = Clock::now();
  }

  void fail(Error error) {
    if (!report_.failure) report_.failure = std::move(error);
    stop_for_failure();
  }

  void take_signals() {
    while (const auto signal = signals_.take()) {
      if (signal->asks_for_snapshot()) {
        if (auto begun = begin_snapshot(); !begun) say_("SIGUSR2: " + begun.error().what);
      } else if (stopped_at_) {
        shall_not_wait_ = true;
      } else {
        stop_by_hand(signal->for_command, signal->from_terminal, signal->number);
      }
    }
  }

  void take_commands() {
    commander_->obey();
    if (control_->is_closed() && epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, control_->fd(), nullptr) != 0)
      return fail(system_error("epoll", errno));
  }

  Result<> begin_snapshot() {
    if (!switch_rule_.is_on)
      return Error{"the capture is one file; it goes on in others with --switch-output"};
    is_switch_wanted_ = true;
    return Done{};
  }

  bool is_switch_due() const {
    return is_switch_wanted_ || (switch_rule_.bytes != 0 && writing_.bytes() >= switch_rule_.bytes) ||
           (switch_rule_.period.count() != 0 && Clock::now() - file_began_at_ >= switch_rule_.period);
  }

  // From one file to the next, while everything else goes on.
  void keep_switching() {
    if (!switch_rule_.is_on || stopped_at_) return;
    if (switching_ == Switching::No) {
      if (!is_switch_due()) return;
      is_switch_wanted_ = false;
      push_step(FileStep::PrepareNext);
      switching_ = Switching::Prepares;
    } else if (writing_.steps_taken() == steps_asked_) {
      if (switching_ == Switching::Prepares) return begin_next_file();
      switching_ = Switching::No;
      if (on_switch_) on_switch_();
      if (commander_) commander_->snapshot_done();
    }
  }

  // What the rings hold by now belongs to the old file.
  void begin_next_file() {
    // First nothing comes any more, then mappings are taken: so none is missing that a sample needs.
    events_.pause_backward_rings(true);
    const bool is_passed = pass();
    if (is_passed) take_snapshot();
    events_.pause_backward_rings(false);
    if (!is_passed) return;
    hand_over(true);
    push_step(FileStep::BeginNext);
    switching_ = Switching::Begins;
    file_began_at_ = Clock::now();
  }

  // What the rings hold that are written over and over; it stays there, for the next snapshot.
  void take_snapshot() {
    try {
      std::vector<std::byte> records;
      for (const PerfRing& ring : events_.rings()) {
        if (ring.kind() == RingKind::Backward) ring.copy_records(records);
      }
      buffer_.insert(buffer_.end(), records.begin(), records.end());
      has_open_round_ |= !records.empty();
      if (!count_records(records, report_.counts)) fail(Error{kNoRecord});
    } catch (const std::bad_alloc&) {
      fail(Error{"out of memory for a snapshot"});
    }
  }

  void push_step(FileStep step) {
    push(Batch{{}, false, report_.counts, step});
    ++steps_asked_;
  }

  void check_limits() {
    report_.limit = writing_.limit();
    if (report_.limit != Limit::None && !stopped_at_) stop_for_failure();
  }

  // Somebody wants the recording to end. From the terminal the command heard it as well; else we tell it. A
  // second time ends the waiting for it.
  void stop_by_hand(int for_command, bool from_terminal, int number = SIGTERM) {
    if (workload_ == nullptr) return stop();
    if (!from_terminal) workload_->send(for_command);
    const bool is_second = stop_signals_++ > 0;
    if (is_second) give_up_command();
    if (!give_up_at_) give_up_at_ = Clock::now() + kGrace;
    last_signal_ = number;
  }

  milliseconds since_start() const {
    return std::chrono::duration_cast<milliseconds>(Clock::now() - began_at_);
  }
  milliseconds until_next_step() const {
    const auto next = schedule_.next();
    return next ? std::clamp(*next - since_start(), milliseconds(0), kLongestWait) : kLongestWait;
  }
  void keep_schedule() {
    while (const auto due = schedule_.take(since_start())) {
      if (*due == Due::Stop) {
        stop();
      } else {
        (void)events_.set_samples(*due == Due::Enable ? Sampling::On : Sampling::Off, {});
      }
    }
  }

  void give_up_command() {
    stop();
    report_.command_status = workload_->status();
    if (report_.command_status) return;
    report_.command_left_running = true;
    report_.command_status = 128 + last_signal_;
  }

  // The command is not harmed by our failure, only no longer watched.
  void stop_for_failure() {
    stop();
    report_.command_left_running = workload_ != nullptr && !workload_->status();
  }

  void check_command() {
    if (workload_ == nullptr || stopped_at_) return;
    report_.command_status = workload_->status();
    if (report_.command_status) stop();
    if (!stopped_at_ && give_up_at_ && Clock::now() >= *give_up_at_) give_up_command();
  }

  // Memory may be refused for what a ring holds: it stays there, and there is memory again when the disk took
  // what is queued.
  bool drain(PerfRing& ring) {
    const std::size_t begin = buffer_.size();
    try {
      ring.drain([this](format::Bytes run) { buffer_.insert(buffer_.end(), run.begin(), run.end()); });
      return true;
    } catch (const std::bad_alloc&) {
      buffer_.resize(begin);
      return false;
    }
  }

  // No memory for one more ring: the rings fill, and the kernel counts what finds no room.
  void wait_for_memory() {
    const bool is_all_written = queue_.bytes() == 0 && buffer_.empty();
    if (is_all_written && ++refused_in_vain_ > kPatienceWithMemory) return fail(Error{"out of memory"});
    if (!is_all_written) refused_in_vain_ = 0;
    if (!buffer_.empty()) hand_over(false);
    if (buffer_.empty()) buffer_ = {};  // its room may be too small, and in the way of a larger one
    queue_.free_spares();
    std::this_thread::sleep_for(kMemoryWait);
  }

  void take_the_rest() {
    while (!pass() && !gave_up_ && !report_.failure) {
      if (has_waited_long_enough()) give_up_writing();
    }
  }

  // One look at every ring; false when memory was refused.
  bool pass() {
    for (PerfRing& ring : events_.rings()) {
      if (ring.kind() == RingKind::Backward) continue;
      const std::size_t begin = buffer_.size();
      if (!drain(ring)) {
        wait_for_memory();
        return false;
      }
      if (buffer_.size() == begin) continue;
      if (!has_open_round_) {
        has_open_round_ = true;
        round_began_ = Clock::now();
      }
      if (!count_records(format::Bytes(buffer_).subspan(begin), report_.counts)) {
        buffer_.resize(begin);
        fail(Error{kNoRecord});
      }
      if (buffer_.size() >= kBatchBytes) hand_over(false);
    }
    refused_in_vain_ = 0;
    return true;
  }

  void hand_over_if_due() {
    if (!has_open_round_) return;
    if (buffer_.size() >= kRoundBytes || Clock::now() - round_began_ >= kLongestMerge) hand_over(true);
  }

  void hand_over(bool ends_round) {
    if (ends_round && !has_open_round_) return;
    push(Batch{std::move(buffer_), ends_round, report_.counts});
    buffer_ = queue_.spare_buffer();
    if (ends_round) has_open_round_ = false;
  }

  void push(Batch batch) {
    // The disk is slower than the events: the rings fill meanwhile, but signals and the command are heard.
    while (!queue_.push(batch, kLongestWait)) {
      wait(milliseconds{0});
      check_command();
      if (has_waited_long_enough()) give_up_writing();
    }
  }

  // What is left to write when the recording is over; bounded, since a disk may never answer.
  void wait_for_writing() {
    while (!gave_up_ && !writing_has_ended(kLongestWait)) {
      take_signals();
      if (has_waited_long_enough()) give_up_writing();
    }
    if (gave_up_ && !writing_has_ended(kStuckBound)) {
      report_.writer_is_stuck = true;
      return;
    }
    auto failure = writing_.join();
    if (failure && !report_.failure) report_.failure = std::move(failure);
    report_.kept = writing_.kept();
  }

  bool writing_has_ended(milliseconds patience) const {
    std::array<pollfd, 2> news{{{writing_.ended_fd(), POLLIN, 0}, {signals_.fd(), POLLIN, 0}}};
    const bool only_the_end = gave_up_;
    (void)poll(news.data(), only_the_end ? 1 : 2, static_cast<int>(patience.count()));
    return (news[0].revents & POLLIN) != 0;
  }

  bool has_waited_long_enough() {
    if (!stopped_at_ || gave_up_) return false;
    const auto waited = Clock::now() - *stopped_at_;
    if (waited < kTellOfWaiting) return false;
    if (!is_waiting_told_) {
      is_waiting_told_ = true;
      say_(fmt::format(
          "waiting for the disk to take the last {:.1f} MB, {} s at most; another signal gives them up",
          static_cast<double>(queue_.bytes()) / (1 << 20), kWritingBound / std::chrono::seconds(1)));
    }
    return shall_not_wait_ || waited >= kWritingBound;
  }

  void give_up_writing() {
    gave_up_ = true;
    const double left = static_cast<double>(queue_.bytes()) / (1 << 20);
    queue_.abandon();
    report_.failure = output_error(
        fmt::format("the disk did not take the last {:.1f} MB {}", left,
                    shall_not_wait_ ? "before a second signal gave them up"
                                    : fmt::format("within {} s", kWritingBound / std::chrono::seconds(1))));
  }

  KernelEvents& events_;
  Workload* workload_;
  const StopSignals& signals_;
  Control* control_;
  Schedule schedule_;
  SwitchRule switch_rule_;
  std::function<void()> on_switch_;
  enum class Switching : std::uint8_t { No, Prepares, Begins };
  Switching switching_ = Switching::No;
  bool is_switch_wanted_ = false;
  std::uint64_t steps_asked_ = 0;
  Say say_;
  std::optional<Commander> commander_;
  RecordQueue queue_;
  PumpReport report_;
  format::Fd epoll_;
  std::vector<RingWatch> ring_watches_;
  std::size_t live_rings_ = 0;
  std::vector<std::byte> buffer_;
  int refused_in_vain_ = 0;  // times in a row that memory was refused with nothing left to write
  bool has_open_round_ = false;
  Clock::time_point round_began_, began_at_, file_began_at_;
  std::optional<Clock::time_point> stopped_at_;  // the recording is over; only writing is left
  int stop_signals_ = 0, last_signal_ = 0;
  std::optional<Clock::time_point> give_up_at_;  // the command
  bool shall_not_wait_ = false;                  // a signal came when the recording was over
  bool is_waiting_told_ = false, gave_up_ = false;
  WritingThread writing_;  // last: it uses what stands above
};

Pump::Pump(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
Pump::Pump(Pump&&) noexcept = default;
Pump::~Pump() = default;

Result<Pump> Pump::create(Parts parts) {
  auto loop = std::make_unique<Loop>(std::move(parts));
  if (auto done = loop->start(); !done) return std::move(done.error());
  return Pump(std::move(loop));
}

PumpReport Pump::run() {
  PumpReport report = loop_->run();
  if (report.writer_is_stuck) {
    // The thread may come back to its queue at any time until the process is gone: both must stay.
    loop_->leave_writer_behind();
    (void)loop_.release();
  }
  return report;
}

}  // namespace tacho::record
