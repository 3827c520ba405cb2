#include "record/session/repeated_recording.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "cli/exit_status.h"
#include "cli/message_text.h"
#include "record/messages.h"
#include "record/session/record_capture.h"

namespace tacho::record {
namespace {

constexpr const char* kFolder = "captures";

// Signals that end a series after the capture that is being made; they are passed on to its process.
class SeriesSignals {
 public:
  SeriesSignals() {
    sigemptyset(&signals_);
    for (const int one : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) sigaddset(&signals_, one);
    sigprocmask(SIG_BLOCK, &signals_, &before_);
  }
  void restore() const { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  bool has_come() const { return has_come_; }

  // Waits for the end of a child: its exit status, or 128 + its signal.
  int wait_for(pid_t child) {
    for (;;) {
      int how = 0;
      const pid_t ended = waitpid(child, &how, WNOHANG);
      if (ended == child) {
        look();
        return WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how);
      }
      if (ended < 0 && errno != EINTR) return cli::kUnreadable;
      siginfo_t info{};
      const int number = sigwaitinfo(&signals_, &info);
      if (number <= 0 || number == SIGCHLD) continue;
      has_come_ = true;
      // A terminal sends its signals to all processes of the group.
      if (info.si_code != SI_KERNEL) kill(child, number);
    }
  }

 private:
  // Takes the signals that came with the child's end.
  void look() {
    constexpr timespec kNow{};
    for (int number = sigtimedwait(&signals_, nullptr, &kNow); number > 0;
         number = sigtimedwait(&signals_, nullptr, &kNow))
      has_come_ |= number != SIGCHLD;
  }

  sigset_t signals_{}, before_{};
  bool has_come_ = false;
};

class Series {
 public:
  Series(const RecordOptions& options, const std::vector<std::string>& command_line)
      : options_(options),
        command_line_(command_line),
        folder_(options.files.is_named ? options.output : kFolder),
        commands_(repeated_commands(options.repeat, options.command)),
        good_(commands_.size()),
        messages_(options) {}

  int run() {
    if (auto made = make_folders(); !made) return report_failure(made.error());
    const RepeatOptions& repeat = options_.repeat;
    for (std::uint64_t i = 0; i < repeat.warm_ups && !signals_.has_come(); ++i) run_round(i, 0);
    for (std::uint64_t i = 0; i < repeat.captures && !signals_.has_come(); ++i) run_round(i, i + 1);
    say_end();
    return status_;
  }

 private:
  std::string folder_of(std::size_t command) const {
    return commands_[command].name.empty() ? folder_ : folder_ + "/" + commands_[command].name;
  }

  // A series never mixes with an older one.
  Result<> make_folders() {
    namespace fs = std::filesystem;
    for (std::size_t i = 0; i < commands_.size(); ++i) {
      std::error_code code;
      fs::create_directories(folder_of(i), code);
      if (code) return output_error(folder_of(i), code.value());
      for (fs::directory_iterator at(folder_of(i), code), end; !code && at != end; at.increment(code))
        if (at->path().extension() == ".data")
          return use_error(folder_of(i) + " has captures already; -o names another folder");
      if (code) return output_error(folder_of(i), code.value());
    }
    return Done{};
  }

  // Each command once. Every other round runs in the opposite order, so that what drifts is equal for all.
  void run_round(std::uint64_t round, std::uint64_t number) {
    for (std::size_t i = 0; i < commands_.size() && !signals_.has_come(); ++i)
      run_one(round % 2 == 0 ? i : commands_.size() - 1 - i, number);
  }

  // `number`: 0 for a warm-up.
  void run_one(std::size_t command, std::uint64_t number) {
    const std::string stem =
        folder_of(command) + "/" + (number == 0 ? "warm-up" : fmt::format("{:03}", number));
    const std::string file = stem + ".data";
    const auto status = record_one(commands_[command].words, file);
    if (!status || signals_.has_come()) return leave_unfinished(file);
    if (number == 0) ::unlink(file.c_str());
    if (*status == 0) {
      if (number > 0) ++good_[command];
      return;
    }
    if (status_ == 0) status_ = *status;
    ++failed_;
    const bool is_kept = number > 0 && ::rename(file.c_str(), (stem + ".failed").c_str()) == 0;
    messages_.warn(fmt::format("{}: the run failed with exit status {} and is not counted{}", file, *status,
                               is_kept ? "; its capture is " + stem + ".failed" : ""));
  }

  void leave_unfinished(const std::string& file) {
    ::unlink(file.c_str());
    if (status_ == 0) status_ = cli::kIncomplete;
  }

  std::optional<int> record_one(const std::vector<std::string>& words, const std::string& file) {
    const pid_t child = fork();
    if (child < 0) {
      report_failure(system_error("fork", errno));
      return std::nullopt;
    }
    if (child > 0) return signals_.wait_for(child);
    signals_.restore();
    RecordOptions options = options_;
    options.command = words;
    options.output = file;
    options.files.is_named = true;
    options.quiet = !options.verbose;
    std::_Exit(record_capture(options, command_line_));
  }

  void say_end() const {
    std::string counts, files;
    for (std::size_t i = 0; i < commands_.size(); ++i) {
      counts += (i == 0 ? "" : ", ") + cli::counted(good_[i], "capture") + " in " + folder_of(i);
      files += (i == 0 ? "" : i == 1 ? " --to " : " ") + cli::shell_word(folder_of(i)) + "/*.data";
    }
    if (failed_ > 0) counts += fmt::format("; {} failed", cli::counted(failed_, "run"));
    messages_.bracketed(counts);
    if (std::ranges::find(good_, 0) != good_.end() && commands_.size() > 1)
      messages_.note("with --interleave each word is a command; quote a command that has arguments");
    else if (commands_.size() == 2)
      messages_.note("compare them with: tacho diff " + files);
  }

  const RecordOptions& options_;
  const std::vector<std::string>& command_line_;
  std::string folder_;
  std::vector<RepeatedCommand> commands_;
  std::vector<std::uint64_t> good_;  // captures, by command
  std::uint64_t failed_ = 0;
  int status_ = 0;
  SeriesSignals signals_;
  Messages messages_;
};

// Options that name files otherwise, or record until they are stopped.
Result<> check_series(const RecordOptions& options) {
  if (options.output == "-") return use_error("--repeat: captures are files; -o names their folder");
  if (options.files.switch_rule.is_on || options.files.overwrite || options.files.is_named_by_time)
    return use_error(
        "--repeat: --switch-output, --overwrite and --timestamp-filename make files of their own names");
  if (options.time.control) return use_error("--repeat: --control is for one recording");
  return Done{};
}

}  // namespace

int record_repeatedly(const RecordOptions& options, const std::vector<std::string>& command_line) {
  if (auto checked = check_series(options); !checked) return report_failure(checked.error());
  return Series(options, command_line).run();
}

}  // namespace tacho::record
