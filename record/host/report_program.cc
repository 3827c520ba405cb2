#include "record/host/report_program.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "format/base/file.h"
#include "format/base/trusted_path.h"
#include "record/parse_text.h"

extern char** environ;

namespace tacho::record {

namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr int kLookEvery = 50;  // ms
using Clock = std::chrono::steady_clock;

enum class Ending : std::uint8_t { ByItself, Stopped, TooLong, TooMuch };

Ending read_all(int from, const ReportRun& run, Clock::time_point until, std::string& out) {
  std::array<char, 4096> piece{};
  for (;;) {
    if (run.stop && run.stop()) return Ending::Stopped;
    if (Clock::now() >= until) return Ending::TooLong;
    pollfd news{from, POLLIN, 0};
    if (::poll(&news, 1, kLookEvery) <= 0) continue;
    const ssize_t got = ::read(from, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Ending::ByItself;
    out.append(piece.data(), static_cast<std::size_t>(got));
    if (out.size() > kMostBytes) return Ending::TooMuch;
  }
}

// Waits for the child, which closed its output, to end. Sets `status` if it did; else the caller has to kill
// and reap it.
Result<Ending> wait_for(pid_t child, const ReportRun& run, Clock::time_point until, int& status) {
  for (int patience = 1;; patience = std::min(2 * patience, kLookEvery)) {
    const pid_t got = ::waitpid(child, &status, WNOHANG);
    if (got == child) return Ending::ByItself;
    if (got < 0 && errno != EINTR) return system_error("waiting for tacho-report", errno);
    if (run.stop && run.stop()) return Ending::Stopped;
    if (Clock::now() >= until) return Ending::TooLong;
    (void)::poll(nullptr, 0, patience);
  }
}

Result<> kill_group(pid_t child) {
  ::kill(-child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return system_error("waiting for tacho-report", errno);
  return Done{};
}

}  // namespace

std::optional<std::string> report_program() {
  std::error_code failed;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (failed) return std::nullopt;
  std::string path = self.parent_path() / "tacho-report";
  if (::access(path.c_str(), X_OK) != 0 || !format::check_beside(self, path)) return std::nullopt;
  return path;
}

Result<pid_t> start_report_program(std::vector<std::string> words, int output, int errors,
                                   std::span<const int> inherited) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  if (errors >= 0)
    posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  else
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  // adddup2 of a descriptor to itself clears its close-on-exec flag.
  for (const int one : inherited) posix_spawn_file_actions_adddup2(&actions, one, one);
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  // In a process group of its own: terminal signals reach only this process, which ends it.
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  pid_t child = -1;
  const int code =
      posix_spawn(&child, words.front().c_str(), &actions, &attributes, pointers.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (code != 0) return system_error(words.front(), code);
  return child;
}

Result<std::string> ask_report_program(const std::string& program, const ReportRun& run) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return system_error("pipe", errno);
  const format::Fd from(ends[0]);
  format::Fd to(ends[1]);
  std::vector<std::string> words{program};
  words.insert(words.end(), run.arguments.begin(), run.arguments.end());
  const auto child = start_report_program(std::move(words), to.get(), kNowhere);
  if (!child) return child.error();
  to = format::Fd();
  std::string out;
  const auto until = Clock::now() + run.longest;
  Ending ending = read_all(from.get(), run, until, out);
  int status = 0;
  if (ending == Ending::ByItself) {
    const auto waited = wait_for(*child, run, until, status);
    if (!waited) return waited.error();
    ending = *waited;
  }
  if (ending != Ending::ByItself)
    if (auto done = kill_group(*child); !done) return std::move(done.error());
  if (ending == Ending::Stopped) return Error{"stopped by a signal", EINTR};
  if (ending == Ending::TooLong)
    return Error{"tacho-report took more than " + std::to_string(run.longest.count()) + " s"};
  if (ending == Ending::TooMuch) return Error{"the output of tacho-report is too long", EFBIG};
  if (WIFSIGNALED(status)) return Error{"tacho-report died of signal " + std::to_string(WTERMSIG(status))};
  if (WEXITSTATUS(status) != 0)
    return Error{"tacho-report ended with status " + std::to_string(WEXITSTATUS(status))};
  return out;
}

namespace {

using bpf::ProbeArgument;
using Source = ProbeArgument::Source;
using Shape = ProbeArgument::Shape;

constexpr std::size_t kMostPointers = 8;

// Sets `value` to the number that `text` is; false: it is none.
template <class Number>
bool read_number(std::string_view text, Number& value) {
  const auto number = whole_number<Number>(text);
  value = number.value_or(Number{});
  return number.has_value();
}

// Parses "value rdi 0 8 pointer memory 16 24". Untrusted: it comes from a child that read a foreign file.
std::optional<ProbeArgument> argument_of(std::string_view line) {
  constexpr std::size_t kFixed = 7;  // words
  std::vector<std::string_view> words;
  while (!line.empty()) words.push_back(take_until(line, ' '));
  if (words.size() < kFixed || words.size() > kFixed + kMostPointers || words[0] != "value")
    return std::nullopt;
  ProbeArgument out;
  const auto field = bpf::register_field(words[1]);
  if (!field || field->size != 8) return std::nullopt;
  out.register_offset = field->offset;
  if (!read_number(words[2], out.shift) || out.shift >= 64) return std::nullopt;
  if (!read_number(words[3], out.size)) return std::nullopt;
  if (out.size != 1 && out.size != 2 && out.size != 4 && out.size != 8) return std::nullopt;
  const std::string_view kind = words[4], from = words[5];
  out.is_signed = kind == "signed";
  if (kind == "pointer") out.shape = Shape::Hex;
  if (kind == "text") out.shape = Shape::UserText;
  if (from == "memory") out.source = Source::Memory;
  if (from == "address") out.source = Source::Address;
  if (!read_number(words[6], out.displacement)) return std::nullopt;
  for (std::size_t i = kFixed; i < words.size(); ++i) {
    std::int32_t pointer = 0;
    if (!read_number(words[i], pointer)) return std::nullopt;
    out.pointers.push_back(pointer);
  }
  return out;
}

}  // namespace

Result<std::vector<NamedArgument>> parse_user_arguments(std::string_view lines,
                                                        std::span<const std::string> names) {
  constexpr std::string_view kError = "error ";
  std::vector<NamedArgument> out;
  while (!lines.empty()) {
    std::string_view line = take_until(lines, '\n');
    if (take_prefix(line, kError)) return use_error(std::string(line));
    auto argument = argument_of(line);
    if (!argument || out.size() == names.size())
      return Error{"the output of tacho-report is not understood (another version?)"};
    out.push_back({names[out.size()], std::move(*argument)});
  }
  if (out.size() != names.size()) return Error{"the output of tacho-report lacks some arguments"};
  return out;
}

Result<std::vector<NamedArgument>> user_arguments(const UserFunction& function,
                                                  std::span<const ArgumentRequest> requests,
                                                  const std::function<bool()>& stop) {
  std::vector<std::string> names;
  for (const ArgumentRequest& one : requests)
    if (needs_debug_information(one) && std::ranges::find(names, one.source) == names.end())
      names.push_back(one.source);
  if (names.empty()) return std::vector<NamedArgument>();
  const auto program = report_program();
  if (!program)
    return Error{"names are read by tacho-report, which is not installed beside tacho-record", ENOENT};
  ReportRun run{.arguments = {"parameters", function.path, std::to_string(function.offset), function.symbol},
                .stop = stop};
  run.arguments.insert(run.arguments.end(), names.begin(), names.end());
  const auto lines = ask_report_program(*program, run);
  if (!lines) return lines.error();
  return parse_user_arguments(*lines, names);
}

namespace {

// Functions in one request: the output for 2000 of a C program is less than its limit of 1 MB. Each request
// reads the debug information again.
constexpr std::size_t kMostAtOnce = 2000;
constexpr std::size_t kGrowsAfter = 4;   // outputs below the limit
constexpr std::size_t kMostInVain = 64;  // outputs above it

}  // namespace

std::unordered_map<std::uint64_t, std::uint64_t> texts_of_functions(std::string_view lines) {
  constexpr unsigned kRegisters = 6;
  std::unordered_map<std::uint64_t, std::uint64_t> all;
  std::uint64_t function = 0;
  bool is_known = false;
  while (!lines.empty()) {
    std::string_view line = take_until(lines, '\n');
    const std::string_view what = take_until(line, '\t'), number = take_until(line, '\t');
    const bool is_text = line.starts_with('t');
    if (what == "function") {
      is_known = read_number(number, function);
      if (is_known && is_text) all[function] |= kReturnsText;
    } else if (what == "argument") {
      unsigned word = 0;
      if (is_known && is_text && read_number(number, word) && word < kRegisters)
        all[function] |= std::uint64_t{1} << word;
    }
  }
  return all;
}

FunctionTypes gather_types(std::span<const std::uint64_t> offsets, const AskTypes& ask) {
  FunctionTypes types;
  std::vector<std::string> answers;
  std::size_t at_once = kMostAtOnce, too_long = 0, in_vain = 0, fitting = 0;
  while (!offsets.empty()) {
    if (in_vain > kMostInVain) {
      types.missing_reason = "they are too long";
      break;
    }
    const auto batch = offsets.first(std::min(at_once, offsets.size()));
    auto answer = ask(batch);
    const bool is_too_long = !answer && answer.error().code == EFBIG;
    in_vain += is_too_long ? 1 : 0;
    fitting = is_too_long ? 0 : fitting + 1;
    if (is_too_long && batch.size() > 1) {
      at_once = batch.size() / 2;
      continue;
    }
    offsets = offsets.subspan(batch.size());
    if (is_too_long) {  // it was the only function of the request
      ++too_long;
      at_once = kMostAtOnce;
      continue;
    }
    if (fitting % kGrowsAfter == 0) at_once = std::min(kMostAtOnce, 2 * at_once);
    if (!answer) {
      types.missing_reason = answer.error().what;
      break;
    }
    for (const auto& [function, texts] : texts_of_functions(*answer)) types.texts[function] |= texts;
    // Each output numbers its enumerations from 0.
    if (!answer->empty()) answers.push_back(std::move(*answer));
  }
  if (types.missing_reason.empty() && too_long != 0)
    types.missing_reason = "of " + std::to_string(too_long) + " functions they are too long";
  for (const std::string& answer : answers) types.text += (types.text.empty() ? "" : "begin\n") + answer;
  return types;
}

FunctionTypes function_types(const std::string& path, const std::vector<std::uint64_t>& offsets,
                             const std::function<bool()>& stop) {
  const auto program = report_program();
  if (!program)
    return {.text = {},
            .texts = {},
            .missing_reason = "types are read by tacho-report, which is not installed beside tacho-record"};
  return gather_types(offsets, [&](std::span<const std::uint64_t> some) -> Result<std::string> {
    ReportRun run{.arguments = {"prototypes", path}, .stop = stop};
    for (const std::uint64_t offset : some) run.arguments.push_back(std::to_string(offset));
    auto answer = ask_report_program(*program, run);
    if (!answer) return answer;
    constexpr std::string_view kError = "error\t", kTooLong = "too-long\n";
    if (answer->starts_with(kTooLong)) return Error{"the answer would be too long", EFBIG};
    if (answer->starts_with(kError))
      return Error{answer->substr(kError.size(), answer->find('\n') - kError.size())};
    return answer;
  });
}

}  // namespace tacho::record
