#include "record/session/record_loop.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <exception>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "record/output/file_series.h"
#include "record/output/record_queue.h"
#include "record/output/writing_thread.h"
#include "record/session/control.h"
#include "record/session/cpu_hotplug.h"
#include "record/session/poller.h"
#include "record/session/round.h"

namespace tacho::record {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kQueueLimit = std::size_t{64} << 20, kLeastQueueLimit = std::size_t{4} << 20;
constexpr milliseconds kLongestWait{100};  // see Round for the time from the ring to the disk
// A signalled command has this long to end; then the recorder stops waiting for it.
constexpr milliseconds kGrace{1500};
constexpr int kReaderNice = -10;
// Deferred stacks are unwound within milliseconds, unless a file has to be read from disk.
constexpr milliseconds kPatienceWithStacks{1000}, kStackWait{1};

// After a failed allocation the loop tries again, at most this often while no batch is being written.
constexpr milliseconds kMemoryWait{10};
constexpr int kPatienceWithMemory = 20;

// At the end of a recording the queue must be written within kWritingBound; a signal ends the wait. A message
// says so after kQuietWait.
constexpr milliseconds kQuietWait{1000}, kWritingBound{30'000};
// A write in progress then has this long to return; after that its thread is detached.
constexpr milliseconds kStuckBound{2000};

constexpr const char* kNoRecord = "the kernel's ring has bytes that are not a record; recording stops here";

}  // namespace

class RecordLoop::Loop {
 public:
  Loop(RunningRecording& recording, const StopSignals& signals)
      : recording_(recording),
        events_(recording.events()),
        workload_(recording.workload()),
        signals_(signals),
        control_(recording.control()),
        stacks_(recording.stacks()),
        channels_(recording.channels().rings()),
        summaries_(recording.channels().summaries()),
        switches_(recording.switches()),
        schedule_(recording.schedule()),
        switch_rule_(recording.options().files.switch_rule),
        cpus_(
            events_, recording.later_cpus(), [&recording](int cpu) { return recording.reopen_cpu(cpu); },
            [&recording](std::string_view line) { recording.say(line); }),
        queue_(queue_limit(switch_rule_)),
        round_(recording.channels().target_filter(), stacks_, recording.pinner()),
        writing_(recording.output(), queue_,
                 {recording.options().files.most_bytes, recording.options().files.least_free,
                  recording.options().output},
                 [&recording](const RecordCounts& counts) { return recording.write_end(counts); }) {
    if (control_ == nullptr) return;
    control_handler_.emplace(
        *control_, events_,
        ControlHandler::Callbacks{[this] { handle_stop_request(SIGTERM, false); },
                                  [this] { return begin_snapshot(); },
                                  [this](std::string_view line) { recording_.say(line); }});
  }

  Result<> start() {
    // A higher priority: events are lost when the loop is off the CPU for some ms.
    const int usual = getpriority(PRIO_PROCESS, static_cast<id_t>(gettid()));
    setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kReaderNice);
    recording_.drop_rights();
    if (auto done = writing_.start(usual); !done) return done;
    return watch_everything();
  }

  LoopReport run() {
    began_at_ = file_began_at_ = Clock::now();
    while (is_recording()) {
      try {
        wait(until_next_step());
        keep_schedule();
        pass();
        hand_over_if_due();
        keep_switching();
        recording_.pack_finished();
        check_limits();
        check_command();
        if (auto done = cpus_.follow_cpus(poller_, since_start()); !done) fail(std::move(done.error()));
      } catch (const std::bad_alloc&) {
        fail(Error{"out of memory"});
      } catch (const std::exception& bug) {
        fail(Error{bug.what()});
      }
    }
    // Drained while events are enabled: their records belong to the recording.
    if (auto done = recording_.end_objects(); !done && !report_.failure)
      report_.failure = std::move(done.error());
    events_.disable();
    read_summaries();
    drain_all();
    take_snapshot();
    hand_over(true);
    queue_.close_queue();
    wait_for_writing();
    // The snapshot that is being written now answers waiting snapshot commands.
    if (control_handler_) control_handler_->answer_waiting(report_.failure);
    return std::move(report_);
  }
  void leave_writer_behind() { writing_.leave_behind(); }

 private:
  Result<> watch_everything() {
    return poller_.watch(events_, {.signals = signals_.fd(),
                                   .writer = writing_.ended_fd(),
                                   .reader = recording_.options().files.to_screen ? STDOUT_FILENO : -1,
                                   .view = recording_.options().files.view,
                                   .control = control_ == nullptr ? -1 : control_->fd(),
                                   .command = workload_ == nullptr ? -1 : workload_->end_fd(),
                                   .channels = channels_ == nullptr ? std::vector<int>() : channels_->fds(),
                                   .switches = switches_ == nullptr ? std::vector<int>() : switches_->fds()});
  }

  void wait(milliseconds patience) {
    const auto ready = poller_.wait(patience);
    if (!ready) return fail(ready.error());
    if (ready->signals) take_signals();
    if (ready->control) take_commands();
    if (ready->switches) take_switch_events();
    if (ready->writer) leave_command();  // the thread ends by itself only after a failure
    if (ready->reader_gone) take_end_of_view();
    if (ready->last_task_ended && workload_ == nullptr) end_recording();
    report_.wakeups += ready->rings ? 1 : 0;
  }

  // Without a screen it is as if a write had failed: the command goes on.
  void take_end_of_view() {
    if (!recording_.options().files.to_screen) return fail(output_error("the view has ended", EPIPE));
    if (stop_signals_ == 0) handle_stop_request(SIGTERM, false);
  }

  // The next file begins later; records until then go into the old one.
  void take_switch_events() {
    const std::uint64_t happened = switches_->take_events();
    if (happened == 0) return;
    report_.switch_events += happened;
    report_.merged_switches += happened - (is_switch_wanted_ ? 0 : 1);
    is_switch_wanted_ = true;
  }

  bool is_recording() const { return phase_ == Phase::Recording; }
  void end_recording() {
    if (!is_recording()) return;
    phase_ = Phase::Writing;
    ended_at_ = Clock::now();
  }

  void fail(Error error) {
    if (!report_.failure) report_.failure = std::move(error);
    leave_command();
  }

  void take_signals() {
    while (const auto signal = signals_.take_signal()) {
      if (signal->is_snapshot()) {
        if (auto begun = begin_snapshot(); !begun) recording_.say("SIGUSR2: " + begun.error().what);
      } else if (!is_recording()) {
        is_hurried_ = true;
      } else {
        if (report_.stop_signal == 0) report_.stop_signal = signal->number;
        handle_stop_request(signal->for_command, signal->from_terminal, signal->number);
      }
    }
  }

  void take_commands() {
    control_handler_->handle_commands();
    if (!control_->is_closed()) return;
    if (auto done = poller_.stop_watching_control(); !done) fail(std::move(done.error()));
  }

  Result<> begin_snapshot() {
    if (!switch_rule_.is_on) return Error{"snapshots need --switch-output or --overwrite"};
    is_switch_wanted_ = true;
    return Done{};
  }

  // Batches in the queue when a file is full go into the next one, whatever its size.
  static std::size_t queue_limit(const SwitchRule& rule) {
    return rule.bytes == 0 ? kQueueLimit
                           : static_cast<std::size_t>(
                                 std::clamp<std::uint64_t>(rule.bytes, kLeastQueueLimit, kQueueLimit));
  }

  // Queued data goes into this file too; its compressed size is not known yet.
  std::uint64_t bytes_of_file() {
    return writing_.bytes() + (!recording_.options().compression_level ? queue_.bytes() : 0);
  }
  bool is_switch_due() {
    return is_switch_wanted_ || (switch_rule_.bytes != 0 && bytes_of_file() >= switch_rule_.bytes) ||
           (switch_rule_.period.count() != 0 && Clock::now() - file_began_at_ >= switch_rule_.period);
  }

  // Starts the next file, while recording goes on.
  void keep_switching() {
    if (!switch_rule_.is_on || !is_recording()) return;
    if (switching_ == Switching::No) {
      if (!is_switch_due()) return;
      is_switch_wanted_ = true;
      push_step(FileStep::PrepareNext);
      switching_ = Switching::Prepares;
    } else if (writing_.steps_taken() == steps_asked_) {
      if (switching_ == Switching::Prepares) {
        const FileSeries* const series = recording_.output().series();
        if (series == nullptr || series->is_next_prepared()) begin_next_file();
        return;
      }
      switching_ = Switching::No;
      recording_.file_begun();
      if (control_handler_) control_handler_->snapshot_done();
    }
  }

  // Hands over the present contents of the rings, which belong to the old file, and begins the next one.
  void begin_next_file() {
    // Samples stop first, mappings are drained second: so no sample lacks its mapping.
    events_.pause_backward_rings(true);
    read_summaries();
    const bool is_passed = pass() && settle();
    if (is_passed) take_snapshot();
    events_.pause_backward_rings(false);
    if (!is_passed) return;
    if (switches_ != nullptr) take_switch_events();
    is_switch_wanted_ = false;
    if (control_handler_) control_handler_->snapshot_begun();
    hand_over(true);
    if (stacks_ != nullptr) stacks_->begin_file();
    push_step(FileStep::BeginNext);
    switching_ = Switching::Begins;
    file_began_at_ = Clock::now();
  }

  void take_snapshot() {
    const auto taken = round_.take_snapshot(events_.rings(), report_.counts);
    if (taken == Round::Taken::Damage) fail(Error{kNoRecord});
    if (taken == Round::Taken::NoMemory) fail(Error{"out of memory for a snapshot"});
  }

  void push_step(FileStep step) {
    push(Batch{.counts = report_.counts, .step = step});
    ++steps_asked_;
  }

  void check_limits() {
    report_.limit = writing_.limit();
    if (report_.limit != Limit::None && is_recording()) leave_command();
  }

  // Handles a stop signal: it is passed on to the command, unless the terminal sent it to both. A second one
  // ends the wait for the command.
  void handle_stop_request(int for_command, bool from_terminal, int number = SIGTERM) {
    if (workload_ == nullptr) return end_recording();
    if (!from_terminal) workload_->send(for_command);
    const bool is_second = stop_signals_++ > 0;
    if (is_second) stop_waiting_for_command();
    if (!command_deadline_) command_deadline_ = Clock::now() + kGrace;
    last_signal_ = number;
  }

  milliseconds since_start() const {
    return std::chrono::duration_cast<milliseconds>(Clock::now() - began_at_);
  }
  milliseconds until_next_step() const {
    const auto most = summaries_ == nullptr ? kLongestWait : summaries_->until_due(kLongestWait);
    const auto next = schedule_.next_step();
    return next ? std::clamp(*next - since_start(), milliseconds(0), most) : most;
  }
  void keep_schedule() {
    while (const auto due = schedule_.take_due(since_start())) {
      if (*due == Due::Stop) {
        end_recording();
      } else {
        (void)events_.set_samples(*due == Due::Enable ? Sampling::On : Sampling::Off, {});
      }
    }
  }

  void stop_waiting_for_command() {
    end_recording();
    report_.command_status = workload_->status();
    if (report_.command_status) return;
    report_.command_left_running = true;
    report_.command_status = 128 + last_signal_;
  }

  // After a failure of the recorder the command goes on, but is not recorded.
  void leave_command() {
    end_recording();
    report_.command_left_running = workload_ != nullptr && !workload_->status();
  }

  void check_command() {
    if (workload_ == nullptr || !is_recording()) return;
    report_.command_status = workload_->status();
    if (report_.command_status) end_recording();
    if (is_recording() && command_deadline_ && Clock::now() >= *command_deadline_) stop_waiting_for_command();
  }

  // An allocation failed: records stay in the ring (the kernel counts losses) until the queue was written and
  // has freed its memory.
  void wait_for_memory() {
    const bool is_all_written = queue_.bytes() == 0 && round_.is_empty();
    if (is_all_written && ++failed_allocations_ > kPatienceWithMemory) return fail(Error{"out of memory"});
    if (!is_all_written) failed_allocations_ = 0;
    if (!round_.is_empty()) hand_over(false);
    if (round_.is_empty()) round_.free_room();
    queue_.free_spares();
    std::this_thread::sleep_for(kMemoryWait);
  }

  void drain_all() {
    while (!(pass() && settle()) && phase_ != Phase::Abandoned && !report_.failure) {
      if (has_waited_long_enough()) abandon_queue();
    }
  }

  // Waits for the stacks of deferred samples, and queues these. False: an allocation failed.
  bool settle() {
    if (stacks_ == nullptr) return true;
    const auto end = Clock::now() + kPatienceWithStacks;
    for (const std::uint64_t last = stacks_->last_pass(); stacks_->holds_samples_until(last);) {
      const auto now = Clock::now();
      if (now >= end) stacks_->give_up_stacks();
      if (now >= end + kPatienceWithStacks) break;  // a stack waits for a file that does not answer
      if (!pass()) return false;
      std::this_thread::sleep_for(kStackWait);
    }
    return true;
  }

  // One pass over all rings; false: an allocation failed.
  bool pass() {
    for (std::size_t i = 0; i < events_.rings().size(); ++i) {
      PerfRing& ring = events_.rings()[i];
      if (ring.kind() == RingKind::Backward) continue;
      const auto content = events_.holds_sideband(i) ? Round::Content::Sideband : Round::Content::Samples;
      if (!is_taken(round_.take_ring(ring, report_.counts, content))) return false;
    }
    if (!is_taken(round_.end_pass(report_.counts))) return false;
    if (channels_ != nullptr && !is_taken(round_.take_channel_rings(*channels_, report_.counts)))
      return false;
    // After the end run() does the last pass.
    if (summaries_ != nullptr && is_recording() && summaries_->is_due()) read_summaries();
    while (summaries_ != nullptr && summaries_->has_more())
      if (!is_taken(round_.take_summaries(*summaries_, report_.counts))) return false;
    failed_allocations_ = 0;
    return true;
  }

  void read_summaries() {
    if (summaries_ == nullptr) return;
    if (auto done = summaries_->read_maps(!is_recording()); !done && !report_.failure)
      report_.failure = std::move(done.error());
  }

  bool is_taken(Round::Taken taken) {
    if (taken == Round::Taken::NoMemory) {
      wait_for_memory();
      return false;
    }
    if (taken == Round::Taken::Damage) fail(Error{kNoRecord});
    if (round_.is_large()) hand_over(false);
    return true;
  }

  void hand_over_if_due() {
    if (round_.is_due()) hand_over(stacks_ == nullptr || stacks_->try_end_round());
  }

  void hand_over(bool ends_round) {
    if (ends_round && !round_.is_open()) return;
    push(round_.hand_over(ends_round, report_.counts, queue_.spare_buffer()));
  }

  void push(Batch batch) {
    // The queue is full, since the disk is slower than the events. Rings fill up meanwhile, but signals and
    // the command are handled.
    while (!queue_.push_batch(batch, kLongestWait)) {
      wait(milliseconds{0});
      check_command();
      if (has_waited_long_enough()) abandon_queue();
    }
  }

  // At the end: waits for the queue to be written, for a bounded time, since a disk may never answer.
  void wait_for_writing() {
    while (phase_ != Phase::Abandoned && !writing_has_ended(kLongestWait)) {
      take_signals();
      if (has_waited_long_enough()) abandon_queue();
    }
    if (phase_ == Phase::Abandoned && !writing_has_ended(kStuckBound)) {
      report_.writer_is_stuck = true;
      return;
    }
    auto failure = writing_.join();
    if (failure && !report_.failure) report_.failure = std::move(failure);
    report_.kept = writing_.kept();
    report_.limit = writing_.limit();
  }

  bool writing_has_ended(milliseconds patience) const {
    std::array<pollfd, 2> poller{{{writing_.ended_fd(), POLLIN, 0}, {signals_.fd(), POLLIN, 0}}};
    const bool only_the_end = phase_ == Phase::Abandoned;
    (void)poll(poller.data(), only_the_end ? 1 : 2, static_cast<int>(patience.count()));
    return (poller[0].revents & POLLIN) != 0;
  }

  double megabytes_left() { return static_cast<double>(queue_.bytes()) / (1 << 20); }

  bool has_waited_long_enough() {
    if (phase_ != Phase::Writing) return false;
    const auto waited = Clock::now() - ended_at_;
    if (waited < kQuietWait) return false;
    if (!has_warned_of_wait_) {
      has_warned_of_wait_ = true;
      recording_.say(fmt::format(
          "writing the last {:.1f} MB takes long; waiting {} s at most, another signal gives them up",
          megabytes_left(), kWritingBound / std::chrono::seconds(1)));
    }
    return is_hurried_ || waited >= kWritingBound;
  }

  void abandon_queue() {
    phase_ = Phase::Abandoned;
    const double left = megabytes_left();
    queue_.abandon();
    report_.failure = output_error(
        fmt::format("the last {:.1f} MB were not written {}", left,
                    is_hurried_ ? "before a second signal gave them up"
                                : fmt::format("within {} s", kWritingBound / std::chrono::seconds(1))));
  }

  RunningRecording& recording_;
  KernelEvents& events_;
  Workload* workload_;
  const StopSignals& signals_;
  Control* control_;
  StackUnwinding* stacks_;
  ChannelRings* channels_;
  Summaries* summaries_;
  SwitchEvents* switches_;
  Schedule& schedule_;
  SwitchRule switch_rule_;
  enum class Switching : std::uint8_t { No, Prepares, Begins };
  Switching switching_ = Switching::No;
  bool is_switch_wanted_ = false;
  std::uint64_t steps_asked_ = 0;
  std::optional<ControlHandler> control_handler_;
  CpuHotplug cpus_;
  RecordQueue queue_;
  LoopReport report_;
  Poller poller_;
  Round round_;
  int failed_allocations_ = 0;  // consecutive failed allocations with an empty queue
  Clock::time_point began_at_, file_began_at_;
  // It only goes forward.
  enum class Phase : std::uint8_t {
    Recording,
    Writing,    // what is in the rings and the queue goes to the disk
    Abandoned,  // the disk does not take it; the queue was dropped
  };
  Phase phase_ = Phase::Recording;
  Clock::time_point ended_at_;  // the end of Recording
  int stop_signals_ = 0, last_signal_ = 0;
  std::optional<Clock::time_point> command_deadline_;  // the command is not awaited for longer
  bool is_hurried_ = false;                            // a signal came while writing
  bool has_warned_of_wait_ = false;
  WritingThread writing_;  // destroyed first: it uses the members above
};

RecordLoop::RecordLoop(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
RecordLoop::RecordLoop(RecordLoop&&) noexcept = default;
RecordLoop::~RecordLoop() = default;

Result<RecordLoop> RecordLoop::create(RunningRecording& recording, const StopSignals& signals) {
  auto loop = std::make_unique<Loop>(recording, signals);
  if (auto done = loop->start(); !done) return std::move(done.error());
  return RecordLoop(std::move(loop));
}

LoopReport RecordLoop::run_loop() {
  LoopReport report = loop_->run();
  if (report.writer_is_stuck) {
    // Leaked: the detached thread may use its queue until the process exits.
    loop_->leave_writer_behind();
    (void)loop_.release();
  }
  return report;
}

}  // namespace tacho::record
