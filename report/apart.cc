#include "report/apart.h"

#include <sys/wait.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <new>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "report/output/printable.h"
#include "report/worker.h"

namespace tacho::report {
namespace {

constexpr std::size_t kMostFiles = 8;     // that are left out one by one; then no further file is read
constexpr std::size_t kMostAtNoFile = 4;  // deaths that no file explains
constexpr std::size_t kLongestPath = 4096;

// The two kinds of reading, each by one thread at a time and in the same order every time.
enum Lane : std::uint8_t { kNames, kStacks, kLanes };

struct LeftOut {
  std::string path;  // empty: every file
  std::string how;
  std::array<std::uint64_t, kLanes> from{};  // turns: before that it was read, and stands in the text
};

class ViewGate final : public symbolize::FileGate {
 public:
  ViewGate(WorkPlace& place, Lane lane, const std::vector<LeftOut>& left_out)
      : place_(place), lane_(lane), left_out_(left_out) {}
  void at(std::string_view path) override {
    // Where memory ran out at a file, that is the file.
    if (path.empty() && std::uncaught_exceptions() > 0) return;
    place_.at(path);
  }
  std::string lack(std::string_view path) const override {
    path = path.substr(0, kLongestPath);
    for (const LeftOut& one : left_out_)
      if ((one.path.empty() || one.path == path) && place_.turn() >= one.from.at(lane_))
        return one.path.empty() ? "no more files are read" : "the process that read it died: " + one.how;
    return std::string(place_.is_closed() ? kOutOfTime : std::string_view());
  }

 private:
  WorkPlace& place_;
  Lane lane_;
  const std::vector<LeftOut>& left_out_;
};

// What was written by now, and whether a worker that begins anew makes the same of it.
class Written {
 public:
  Written() { reset(all_); }
  bool is_empty() const { return size_ == 0; }
  void begin_anew() {
    reset(again_);
    left_ = size_;
  }
  // Cuts off `text` what was written before; false: it was something else.
  bool take(std::string_view& text) {
    const std::size_t known = std::min<std::uint64_t>(text.size(), left_);
    if (known > 0) {
      XXH3_128bits_update(&again_, text.data(), known);
      text.remove_prefix(known);
      left_ -= known;
      if (left_ == 0 && !XXH128_isEqual(XXH3_128bits_digest(&again_), XXH3_128bits_digest(&all_)))
        return false;
    }
    XXH3_128bits_update(&all_, text.data(), text.size());
    size_ += text.size();
    return true;
  }
  bool is_whole() const { return left_ == 0; }

 private:
  static void reset(XXH3_state_t& state) {
    XXH3_INITSTATE(&state);
    XXH3_128bits_reset(&state);
  }
  XXH3_state_t all_, again_;
  std::uint64_t size_ = 0, left_ = 0;  // bytes
};

enum class End : std::uint8_t { Done, Died, Unconfined };

// One view, by as many workers as it takes.
class Shower {
 public:
  explicit Shower(const ApartTask& task) : task_(task), watch_(task.times, places_) {}

  Result<cli::ExitStatus> run(bool& is_confined);

 private:
  [[noreturn]] void be_worker(TextChannel& channel, pid_t parent) noexcept;
  void show(TextChannel& channel);
  Result<End> run_worker();
  Result<End> serve(TextChannel& channel, const WorkerErrors& errors, pid_t worker, StoppedTogether& stops);
  Result<bool> serve(TextChannel& channel, const TextChannel::Question& question);
  Result<> write(TextChannel& channel, std::string_view text);
  Result<> blame(std::optional<int> status, std::optional<Lane> stuck_at);
  Result<> end_there(std::string what);
  void leave_out(const std::string& path, std::string how);
  void tell() const;
  bool is_out_of_time() const;

  const ApartTask& task_;
  std::array<WorkPlace, kLanes> places_;
  FileWatch watch_;
  std::vector<LeftOut> left_out_;
  std::size_t at_no_file_ = 0;
  bool in_step_ = false, is_begun_ = false;
  std::optional<OutputFile> output_;
  bool is_finished_ = false, is_reader_gone_ = false;
  bool is_behind_walls_ = false;  // a worker was, once: it may have read the capture
  Written written_;
  std::optional<cli::ExitStatus> status_;
  std::optional<Error> error_;
};

// Whether it ended. The pipe does not tell while a child of it holds the other end.
bool has_died(pid_t worker) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(worker), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == worker;
}

void Shower::show(TextChannel& channel) {
  try {
    ViewGate names(places_[kNames], kNames, left_out_), stacks(places_[kStacks], kStacks, left_out_);
    ApartView view{channel, names, stacks, in_step_};
    if (auto status = task_.show(view); status)
      channel.end(*status);
    else
      channel.fail(status.error());
  } catch (const std::bad_alloc&) {
    ::_exit(kNoMemory);
  } catch (const std::exception& fault) {
    // Thrown at a file, it costs that file.
    if (places_[kNames].is_at_file() || places_[kStacks].is_at_file()) std::abort();
    channel.fail(Error{fault.what()});
  }
}

// Nothing of the parent's is unwound or destroyed here.
void Shower::be_worker(TextChannel& channel, pid_t parent) noexcept {
  // Ctrl-C is the parent's affair, which may wait for a pager; with it this process ends.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGQUIT, SIG_IGN);
  std::vector<int> kept = task_.kept;
  std::ranges::copy(channel.be_worker(), std::back_inserter(kept));
  if (task_.input == "-") kept.push_back(STDIN_FILENO);
  if (output_) output_->leave_to_parent();
  if (const auto done = become_worker(task_.reach, parent, kept); done) {
    channel.begin();
    show(channel);
  } else {
    channel.fail(done.error());
  }
  std::fflush(stderr);
  ::_exit(0);  // what it has goes with it
}

Result<> Shower::write(TextChannel& channel, std::string_view text) {
  if (!is_reader_gone_ && !written_.take(text))
    return Error{"what is shown the second time is not what was written before: the text ends there"};
  if (!text.empty() && !is_reader_gone_) {
    if (output_->is_for_person()) watch_.be_quiet();
    if (is_finished_) return Error{"more text comes when it was finished"};
    const auto reader = output_->write(text);
    if (!reader) return reader.error();
    is_reader_gone_ = *reader == OutputFile::Reader::Gone;
  }
  return channel.answer(is_reader_gone_ ? TextChannel::Answer::ReaderGone : TextChannel::Answer::Yes);
}

// False: that was the last one.
Result<bool> Shower::serve(TextChannel& channel, const TextChannel::Question& question) {
  using Asks = TextChannel::Asks;
  if ((question.asks == Asks::Write || question.asks == Asks::Finish) && !output_)
    return Error{"the process that reads the files writes before it asks"};
  switch (question.asks) {
    case Asks::Begin:
      is_behind_walls_ = true;
      return true;
    case Asks::Open:
      if (!output_) {
        auto output = task_.open_output();
        if (!output) return std::move(output.error());
        output_.emplace(std::move(*output));
      }
      if (auto done =
              channel.answer(output_->is_for_person() ? TextChannel::Answer::Yes : TextChannel::Answer::No);
          !done)
        return std::move(done.error());
      return true;
    case Asks::Write:
      if (auto done = write(channel, question.text); !done) return std::move(done.error());
      return true;
    case Asks::Finish:
      if (!is_reader_gone_ && !written_.is_whole())
        return Error{"the text became shorter when a file was left out"};
      if (!std::exchange(is_finished_, true))
        if (auto done = output_->finish(); !done) return std::move(done.error());
      if (auto done = channel.answer(TextChannel::Answer::Yes); !done) return std::move(done.error());
      return true;
    case Asks::Fail:
      error_ = question.error;
      return false;
    case Asks::End:
      if (output_ && !is_finished_) return Error{"the process that reads the files ends before its text"};
      status_ = question.status;
      return false;
  }
  return false;
}

Result<End> Shower::serve(TextChannel& channel, const WorkerErrors& errors, pid_t worker,
                          StoppedTogether& stops) {
  std::optional<Lane> stuck_at;
  std::optional<Error> failure;
  bool is_dead = false;
  while (!status_ && !error_ && !failure && !channel.has_ended()) {
    if (task_.is_asked_to_stop && task_.is_asked_to_stop()) channel.ask_to_stop();
    errors.pass_on();
    if (const WorkPlace* const stuck = watch_.look(); stuck != nullptr) {
      stuck_at = stuck == &places_[kNames] ? kNames : kStacks;
      break;
    }
    auto question = channel.next(static_cast<int>(FileWatch::kLookEvery.count()));
    if (!question) {
      failure = std::move(question.error());
    } else if (*question) {
      if (auto more = serve(channel, **question); !more) failure = std::move(more.error());
    } else if (is_dead) {
      break;  // and all that it said was heard
    } else if ((is_dead = has_died(worker))) {
      kill_group(worker);
    }
  }
  const auto status = end_worker(worker, stops);
  errors.pass_on();
  if (failure) return std::move(*failure);
  // Behind the walls its word for it is nothing: whoever reads the capture without them would believe it.
  if (error_ && !is_behind_walls_) return End::Unconfined;
  if (status_ || error_) return End::Done;
  if (auto done = blame(status, stuck_at); !done) return std::move(done.error());
  return status_ ? End::Done : End::Died;
}

Result<End> Shower::run_worker() {
  auto channel = TextChannel::make();
  if (!channel) return std::move(channel.error());
  WorkerErrors errors = WorkerErrors::make();
  watch_.begin();
  written_.begin_anew();
  if (std::exchange(is_begun_, true) && task_.begin_anew)
    if (auto done = task_.begin_anew(); !done) return std::move(done.error());
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  const pid_t worker = ::fork();
  if (worker < 0) {
    error_ = system_error("a process that reads the files", errno);
    return is_behind_walls_ ? End::Done : End::Unconfined;
  }
  if (worker == 0) {
    errors.be_worker();
    be_worker(*channel, parent);
  }
  (void)::setpgid(worker, worker);  // whichever of the two comes first
  errors.be_parent();
  channel->be_parent();
  StoppedTogether stops(worker);
  return serve(*channel, errors, worker, stops);
}

void Shower::leave_out(const std::string& path, std::string how) {
  const bool is_known = std::ranges::find(left_out_, path, &LeftOut::path) != left_out_.end();
  const bool is_last = left_out_.size() >= kMostFiles;
  LeftOut one{is_last ? std::string() : path, std::move(how), {}};
  // What stands in the text of this file stays. It died of it a second time: then that cannot be.
  if (!written_.is_empty() && !is_known)
    for (const Lane lane : {kNames, kStacks}) one.from.at(lane) = places_.at(lane).turn();
  left_out_.push_back(std::move(one));
}

// Which file it died of. Where two threads were at one each, the next worker has one thread, and dies again.
Result<> Shower::blame(std::optional<int> status, std::optional<Lane> stuck_at) {
  std::string how = how_it_ended(status, stuck_at.has_value(), watch_.times());
  const int signal = status && WIFSIGNALED(*status) ? WTERMSIG(*status) : 0;
  const bool is_wanted = signal == SIGTERM || signal == SIGHUP || signal == SIGXCPU;
  const bool at_names = places_[kNames].is_at_file(), at_stacks = places_[kStacks].is_at_file();
  const bool is_known = stuck_at || at_names != at_stacks;
  const Lane lane = stuck_at ? *stuck_at : at_stacks ? kStacks : kNames;
  const std::string path = is_known ? places_.at(lane).path() : std::string();
  const std::string at = is_known ? " at " + printable(path) : "";
  if (is_wanted) return Error{"the process that reads the files was ended" + at + ": " + how};
  if (!task_.can_begin_again) return end_there("the process that reads the files died" + at + ": " + how);
  if (task_.begin_anew && is_finished_)
    return Error{"the process that reads the files died" + at + " when all was written: " + how};
  if (!is_known && in_step_ && status && WIFEXITED(*status) && WEXITSTATUS(*status) == kNoMemory)
    return Error{"there is not enough memory", ENOMEM};
  const bool is_last = left_out_.size() > kMostFiles;
  if ((is_last || !is_known) && ++at_no_file_ > kMostAtNoFile)
    return Error{"the process that reads the files died again and again" + at + ": " + how};
  in_step_ = true;
  if (is_known && !is_last) leave_out(path, std::move(how));
  return Done{};
}

// What came through a pipe is gone. What was made of it by then is not.
Result<> Shower::end_there(std::string what) {
  what += "; what comes through a pipe cannot be read again";
  const bool has_output = output_ && (task_.begin_anew || !written_.is_empty());
  if (!has_output || task_.is_whole_or_nothing) return Error{what + ": put it into a file"};
  if (!std::exchange(is_finished_, true))
    if (auto done = output_->finish(); !done) return done;
  std::fprintf(stderr, "tacho: %s: %s: what was written before that is kept\n",
               printable(task_.input).c_str(), what.c_str());
  status_ = cli::kIncomplete;
  return Done{};
}

void Shower::tell() const {
  for (const LeftOut& one : left_out_) {
    const std::string what =
        one.path.empty() ? "no further file was read" : printable(one.path) + " was left out";
    std::fprintf(stderr, "tacho: %s: %s: the process that read %s died: %s\n", printable(task_.input).c_str(),
                 what.c_str(), one.path.empty() ? "them" : "it", one.how.c_str());
  }
  if (is_out_of_time()) std::fputs(out_of_time(task_.input, watch_.times()).c_str(), stderr);
}

bool Shower::is_out_of_time() const { return std::ranges::any_of(places_, &WorkPlace::has_refused); }

Result<cli::ExitStatus> Shower::run(bool& is_confined) {
  std::signal(SIGCHLD, SIG_DFL);  // ignored by whoever started us, its end would not be told
  is_confined = true;
  for (;;) {
    const auto end = run_worker();
    if (!end) return end.error();
    is_confined = *end != End::Unconfined;
    if (*end == End::Died) continue;
    if (error_) return std::move(*error_);
    tell();
    const bool is_whole = left_out_.empty() && !is_out_of_time();
    return *status_ == cli::kWhole && !is_whole ? cli::kIncomplete : *status_;
  }
}

}  // namespace

Result<cli::ExitStatus> show_apart(const ApartTask& task, bool& is_confined) {
  return Shower(task).run(is_confined);
}

Result<cli::ExitStatus> show_apart_or(const ApartTask& task,
                                      const std::function<Result<cli::ExitStatus>()>& here) {
  bool is_confined = false;
  auto status = show_apart(task, is_confined);
  if (is_confined) return status;
  const std::string why = "no process that may only read: " + printable(status.error().what);
  if (::geteuid() == 0)
    return Error{why + "; with --no-worker this process reads the files, with all its rights"};
  std::fprintf(stderr, "tacho: %s; this process reads the files\n", why.c_str());
  return here();
}

}  // namespace tacho::report
