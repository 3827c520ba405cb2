#include "record/stat/command_stat.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "cli/exit_status.h"
#include "cli/message_text.h"
#include "format/base/file.h"
#include "format/base/output.h"
#include "format/base/trusted_path.h"
#include "format/extensions/tracing_data.h"
#include "record/events/target.h"
#include "record/host/answers.h"
#include "record/host/host.h"
#include "record/host/probes.h"
#include "record/kernel/perf_event.h"
#include "record/parse_text.h"
#include "record/plan/requests.h"
#include "record/session/workload.h"
#include "record/stat/counters.h"
#include "record/stat/stat_options.h"
#include "record/stat/stat_output.h"

namespace tacho::record {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

void say(std::string_view line) {
  std::fprintf(stderr, "tacho stat: %s\n", cli::printable_message(line).c_str());
}

// Where counts are printed: standard error, or a file.
class StatOutput {
 public:
  static Result<StatOutput> open(const StatOptions& options) {
    StatOutput out;
    if (options.output.empty()) return out;
    if (options.appends) {
      if (auto checked = ::geteuid() == 0 ? format::check_trusted_path(options.output) : Result<>(Done{});
          !checked && checked.error().code == EPERM)
        return output_error(checked.error().what);
      constexpr int kMode = 0644;
      out.appended_ = format::Fd(
          ::open(options.output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, kMode));
      if (!out.appended_) return output_system_error(options.output, errno);
    } else {
      auto file = format::WholeOutput::create(options.output, format::WholeOutput::Old::Replaced);
      if (!file) return std::move(file.error());
      out.file_.emplace(std::move(*file));
    }
    if (options.form == StatForm::Text) {
      std::array<char, 64> now{};
      const std::time_t time = std::time(nullptr);
      std::tm local{};
      (void)std::strftime(now.data(), now.size(), "%a %b %e %H:%M:%S %Y", ::localtime_r(&time, &local));
      if (auto done = out.write("# started on " + std::string(now.data()) + "\n\n"); !done)
        return std::move(done.error());
    }
    return out;
  }
  Result<> write(std::string_view text) const {
    const int fd = appended_ ? appended_.get() : file_ ? file_->descriptor() : STDERR_FILENO;
    while (!text.empty()) {
      const ssize_t got = ::write(fd, text.data(), text.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return output_system_error("the counts cannot be written", errno);
      text.remove_prefix(static_cast<std::size_t>(got));
    }
    return Done{};
  }
  Result<> finish() { return file_ ? file_->finish() : Result<>(Done{}); }

 private:
  std::optional<format::WholeOutput> file_;
  format::Fd appended_;
};

// Adds up counts of the same row: of all CPUs and threads, or of each.
std::vector<StatRow> rows_of(const std::vector<Counters::Reading>& readings,
                             std::span<const CountedEvent> events, const StatOptions& options) {
  const StatRows which = options.rows;
  using Key = std::tuple<std::size_t, int, int>;
  std::map<Key, Count> sums;
  for (std::size_t event = 0; event < events.size(); ++event) sums[{event, -1, -1}];
  for (const Counters::Reading& one : readings) {
    Key key{one.event, which == StatRows::Cpus ? one.cpu : -1, which == StatRows::Threads ? one.thread : -1};
    Count count = one.count;
    if (options.scales) count.value = scaled(count);
    sums[key] += count;
    if (which != StatRows::All) sums.erase({one.event, -1, -1});
  }
  std::vector<StatRow> rows;
  for (const auto& [key, count] : sums) {
    StatRow row{.event = std::get<0>(key), .cpu = std::get<1>(key), .thread = std::get<2>(key)};
    if (row.thread > 0)
      row.thread_name = trimmed(text_of_file("/proc/" + std::to_string(row.thread) + "/comm"));
    row.count.add_value(static_cast<double>(count.value));
    row.enabled_ns.add_value(static_cast<double>(count.enabled_ns));
    row.running_ns.add_value(static_cast<double>(count.running_ns));
    row.is_counted = count.running_ns != 0;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<Counters::Reading> difference(std::vector<Counters::Reading> now,
                                          const std::vector<Counters::Reading>& before) {
  for (std::size_t i = 0; i < std::min(now.size(), before.size()); ++i)
    now[i].count = now[i].count - before[i].count;
  return now;
}

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

// CPU time of children that were waited for.
std::pair<double, double> time_of_children() {
  rusage usage{};
  (void)::getrusage(RUSAGE_CHILDREN, &usage);
  return {seconds(usage.ru_utime), seconds(usage.ru_stime)};
}

class Run {
 public:
  Run(const StatOptions& options, const std::vector<EventRequest>& requests, const TargetTasks& tasks,
      const Host& host, const StopSignals& signals, const StatOutput& output)
      : options_(options),
        requests_(requests),
        tasks_(tasks),
        host_(host),
        signals_(signals),
        output_(output) {}

  // Counts once. The rows are added to those of earlier runs.
  Result<> count() {
    if (options_.syncs) ::sync();
    std::optional<Workload> workload;
    if (!options_.command.empty()) {
      auto created = Workload::create(options_.command);
      if (!created) return std::move(created.error());
      workload.emplace(std::move(*created));
    }
    const int command = workload ? static_cast<int>(workload->pid()) : 0;
    auto counters = Counters::open(requests_, options_, tasks_.threads, command, host_);
    if (!counters) return std::move(counters.error());
    for (const std::string& note : counters->notes())
      if (runs_ == 0) say(note);
    const bool by_exec = options_.target.watch == Watch::Command && options_.delay.count() == 0;
    is_enabled_ = options_.delay.count() == 0;
    if (is_enabled_ && !by_exec)
      if (auto done = counters->start(); !done) return done;
    const auto children = time_of_children();
    began_ = Clock::now();
    if (workload)
      if (auto done = workload->start(); !done) return done;
    if (auto done = wait(*counters, workload ? &*workload : nullptr); !done) return done;
    const double elapsed = seconds(Clock::now() - began_);
    if (!by_exec) counters->stop();
    const auto after = time_of_children();
    times_.user_s = after.first - children.first;
    times_.system_s = after.second - children.second;
    ++runs_;
    auto readings = counters->read_counters();
    if (options_.interval) {
      if (options_.most_intervals != 0 && intervals_ >= options_.most_intervals) return Done{};
      return print_interval(*counters, std::move(readings));
    }
    times_.elapsed_s.add_value(elapsed);
    add(rows_of(readings, counters->events(), options_));
    events_ = counters->events();
    return Done{};
  }

  Result<> print() const {
    if (options_.interval) return Done{};
    return output_.write(stat_text({events_, rows_, times_}, options_));
  }
  bool is_interrupted() const { return is_interrupted_; }
  int status() const { return status_; }

 private:
  static std::tuple<std::size_t, int, int> key_of(const StatRow& row) {
    return {row.event, row.cpu, row.thread};
  }
  // A thread that has ended has no rows in later runs.
  void add(std::vector<StatRow> rows) {
    for (StatRow& row : rows) {
      const auto known = std::ranges::lower_bound(rows_, key_of(row), {}, key_of);
      if (known == rows_.end() || key_of(*known) != key_of(row)) {
        rows_.insert(known, std::move(row));
        continue;
      }
      known->count.add_value(row.count.value());
      known->enabled_ns.add_value(row.enabled_ns.value());
      known->running_ns.add_value(row.running_ns.value());
      known->is_counted |= row.is_counted;
    }
  }

  Result<> print_interval(const Counters& counters, std::vector<Counters::Reading> readings) {
    const auto now = Clock::now();
    StatTimes times;
    times.elapsed_s.add_value(seconds(now - std::exchange(interval_began_, now)));
    times.at_s = seconds(now - began_);
    const auto rows = rows_of(difference(readings, before_), counters.events(), options_);
    before_ = std::move(readings);
    return output_.write(stat_text({counters.events(), rows, std::move(times), intervals_++ == 0}, options_));
  }

  bool is_alive() const {
    return std::ranges::any_of(tasks_.threads,
                               [](int thread) { return ::kill(thread, 0) == 0 || errno == EPERM; });
  }

  void take_signals(Workload* workload) {
    while (const auto signal = signals_.take_signal()) {
      if (signal->is_snapshot()) continue;
      constexpr milliseconds kGrace{1500};
      if (workload != nullptr && !signal->from_terminal) workload->send(signal->for_command);
      give_up_at_ = is_interrupted_ || workload == nullptr ? Clock::now() : Clock::now() + kGrace;
      is_interrupted_ = true;
      status_ = 128 + signal->number;
    }
  }

  // Until the command or all processes have ended, the time is over, or a signal comes.
  Result<> wait(const Counters& counters, Workload* workload) {
    constexpr milliseconds kLongest{100};
    interval_began_ = began_;
    before_.clear();
    auto next = began_ + options_.interval.value_or(kLongest);
    const bool has_tasks = !tasks_.threads.empty();
    for (;;) {
      const auto now = Clock::now();
      auto until = now + kLongest;
      if (options_.interval) until = std::min(until, next);
      if (!is_enabled_) until = std::min(until, began_ + options_.delay);
      if (options_.duration) until = std::min(until, began_ + *options_.duration);
      const auto patience = std::chrono::ceil<milliseconds>(std::max(until - now, Clock::duration(0)));
      std::array<pollfd, 2> news{
          {{signals_.fd(), POLLIN, 0}, {workload != nullptr ? workload->end_fd() : -1, POLLIN, 0}}};
      (void)::poll(news.data(), news.size(), static_cast<int>(patience.count()));
      take_signals(workload);
      if (workload != nullptr)
        if (const auto status = workload->status()) {
          status_ = *status;
          return Done{};
        }
      const auto then = Clock::now();
      if (give_up_at_ && then >= *give_up_at_) return Done{};
      if (options_.duration && then >= began_ + *options_.duration) return Done{};
      if (workload == nullptr && has_tasks && !is_alive()) return Done{};
      if (!is_enabled_ && then >= began_ + options_.delay) {
        is_enabled_ = true;
        if (auto done = counters.start(); !done) return done;
      }
      if (options_.interval && then >= next) {
        next += *options_.interval;
        if (next <= then) next = then + *options_.interval;  // this process was late
        if (auto done = print_interval(counters, counters.read_counters()); !done) return done;
        if (options_.most_intervals != 0 && intervals_ >= options_.most_intervals) return Done{};
      }
    }
  }

  const StatOptions& options_;
  const std::vector<EventRequest>& requests_;
  const TargetTasks& tasks_;
  const Host& host_;
  const StopSignals& signals_;
  const StatOutput& output_;
  std::vector<CountedEvent> events_;
  std::vector<StatRow> rows_;
  StatTimes times_;
  std::uint64_t runs_ = 0, intervals_ = 0;
  std::vector<Counters::Reading> before_;  // of the interval before
  Clock::time_point began_, interval_began_;
  std::optional<Clock::time_point> give_up_at_;
  bool is_enabled_ = false, is_interrupted_ = false;
  int status_ = cli::kWhole;
};

}  // namespace

Result<int> run_stat(const std::vector<std::string>& arguments) {
  const auto parsed = parse_stat_options(arguments);
  if (!parsed) return parsed.error();
  if (parsed->outcome == cli::Parsed::HelpShown) return cli::kWhole;
  const StatOptions& options = parsed->options;
  auto host = read_host();
  if (!host) return std::move(host.error());
  auto tasks = tasks_of(options.target);
  if (!tasks) return std::move(tasks.error());
  for (const int id : tasks->gone)
    say("warning: there is no process or thread " + std::to_string(id) + "; the others are counted");
  const auto reader = ForeignReader::start();
  if (auto done = check_target_answers(*reader, options.command, options.target.watch, *tasks); !done)
    return std::move(done.error());
  if (auto done = check_files_answer(*reader, options.events); !done) return std::move(done.error());
  auto signals = StopSignals::block();
  if (!signals) return std::move(signals.error());
  auto probes = find_probes(options.events, [&] { return signals->ends_start(); });
  if (!probes) return std::move(probes.error());
  for (const std::string& warning : warnings_of_return_probes(*probes)) say("warning: " + warning);
  format::TracingData tracing;
  auto requests = resolve_tracepoints(*probes, tracing);
  if (!requests) return std::move(requests.error());
  if (options.target.watch != Watch::System && is_kept_out_of_kernel(*host)) (void)exclude_kernel(*requests);
  raise_descriptor_limit();
  auto output = StatOutput::open(options);
  if (!output) return std::move(output.error());
  Run run(options, *requests, *tasks, *host, *signals, *output);
  for (std::uint64_t i = 0; i < options.runs && !run.is_interrupted(); ++i)
    if (auto done = run.count(); !done) return std::move(done.error());
  if (auto done = run.print(); !done) return std::move(done.error());
  if (auto done = output->finish(); !done) return std::move(done.error());
  if (options.command.empty()) return cli::kWhole;
  return run.status();
}

}  // namespace tacho::record
