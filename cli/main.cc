// tacho: one name for both programs. `tacho record ...`, `tacho live ...`, `tacho doctor` and `tacho stacks
// -p PID` run tacho-record, `tacho doctor FILE`, `tacho stacks FILE` and every other word is a command of
// tacho-report. They are looked for beside this program, then in PATH.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "cli/completion.h"
#include "cli/exit_status.h"
#include "cli/nearest.h"
#include "format/base/parse_text.h"
#include "format/base/printable.h"
#include "format/base/trusted_path.h"

extern char** environ;

namespace {

using namespace tacho;

// Commands of perf 6 and 7 that are not here, and what to do instead.
struct AbsentCommand {
  std::string_view name, instead;
};
constexpr AbsentCommand kAbsentCommands[] = {
    {"archive", "tacho pack FILE puts the names that a capture needs into it"},
    {"bench", "perf bench"},
    {"buildid-cache",
     "tacho pack FILE puts names into the capture; --buildid-dir and --debuginfod find files by build id"},
    {"buildid-list",
     "tacho header --json has the build ids that a capture names, tacho dump those of its mappings"},
    {"c2c", "perf c2c record makes captures that tacho report --mem-mode --sort dcacheline,sym reads"},
    {"config", "there is no configuration file, only options (tacho help COMMAND)"},
    {"daemon",
     "tacho record -a -g --switch-output=50M --switch-max-files 20, as a service (docs/recording.md)"},
    {"data", "tacho convert rewrites captures, tacho script --json prints them"},
    {"ftrace",
     "tacho record -e func/name='vfs_*'/ counts and times functions of the kernel, -e follow prints the way "
     "of an object"},
    {"inject",
     "names of JIT code need none; AUX traces become samples by perf inject --itrace=i1ms, which tacho "
     "reads"},
    {"iostat", "tacho record -e bio -a, then tacho table --by disk,op"},
    {"kallsyms",
     "tacho record puts them into each capture; grep NAME /proc/kallsyms shows those of this kernel"},
    {"kmem", "tacho record -e kalloc -a, then tacho report"},
    {"kvm",
     "tacho record -e 'kvm:kvm_exit,kvm:kvm_entry' -a, then tacho hist --between kvm:kvm_exit,kvm:kvm_entry"},
    {"kwork",
     "tacho record -e 'irq:irq_handler_*' -a, then tacho hist --between "
     "irq:irq_handler_entry,irq:irq_handler_exit"},
    {"lock",
     "tacho record -e lock -p PID (a program's locks) or -e klock -a (the kernel's), then tacho report"},
    {"mem", "perf mem record makes captures that tacho report --mem-mode reads"},
    {"probe",
     "probes need no definition: tacho record -e kprobe:FUNCTION, -e uprobe:FILE:FUNCTION; tacho list "
     "uprobe:FILE: lists them"},
    {"recorders", "tacho list recorders; tacho record -e NAME records with one"},
    {"sched",
     "tacho record -e runqlat -a, then tacho hist; tacho record -e offcpu,waking -a, then tacho report"},
    {"test", "script/test in the sources"},
    {"timechart", "tacho script --importer is drawn over time by Firefox Profiler and speedscope"},
    {"trace", "tacho live syscall -p PID, or tacho record -e 'raw_syscalls:*' -- COMMAND, then tacho script"},
};

int say(const std::string& message, cli::ExitStatus status) {
  std::fprintf(stderr, "tacho: %s\n", format::printable(message).c_str());
  return status;
}

// The path of the program: in the folder of this one, else in PATH. Root runs none that other users may
// change.
Result<std::string> find(const std::string& program) {
  std::array<char, PATH_MAX> self{};
  const ssize_t length = readlink("/proc/self/exe", self.data(), self.size());
  const std::string path(self.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  const std::string sibling = path.substr(0, path.rfind('/') + 1) + program;
  if (path.empty() || access(sibling.c_str(), X_OK) != 0) return format::find_program(program);
  auto checked = format::check_beside(path, sibling);
  return checked ? Result<std::string>(sibling) : std::move(checked.error());
}

std::vector<char*> argv_of(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

// Executes `program`; returns only on failure.
int execute(const std::string& program, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), program);
  const auto path = find(program);
  if (path) {
    execv(path->c_str(), argv_of(arguments).data());
    return say(program + ": " + std::strerror(errno), cli::kUnreadable);
  }
  if (path.error().code != ENOENT) return say(path.error().what, cli::kUnreadable);
  return say(program + " is not installed here (looked beside tacho and in PATH)" +
                 (program == "tacho-record" ? "; recording needs it, reading captures does not" : ""),
             cli::kUnreadable);
}

// The commands of tacho-report with their help, one a line; empty when it is not installed.
std::string report_commands() {
  const auto program = find("tacho-report");
  std::array<int, 2> ends{};
  if (!program || pipe(ends.data()) != 0) return {};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  std::vector<std::string> words{"tacho-report", "--list-commands"};
  pid_t child = 0;
  const int failed = posix_spawn(&child, program->c_str(), &actions, nullptr, argv_of(words).data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string out;
  std::array<char, 4096> piece;
  for (ssize_t got = 0; failed == 0 && (got = read(ends[0], piece.data(), piece.size())) > 0;)
    out.append(piece.data(), static_cast<std::size_t>(got));
  close(ends[0]);
  int status = failed;
  if (failed == 0) waitpid(child, &status, 0);
  return status == 0 ? out : std::string();
}

struct Command {
  std::string name, help;
};

std::vector<Command> commands() {
  std::vector<Command> out{
      {"why", "where the time of a program or the system goes, and what it waits for, with the evidence"},
      {"record", "record events with stacks into a capture"},
      {"live", "record and show at once what comes"},
      {"top", "what runs now, on the terminal: functions with their call graphs"},
      {"stat", "count events of a command, of processes or of the system, without samples"},
      {"list", "list the events that can be recorded here, and the ready-made recorders"},
      {"doctor",
       "what can be recorded on this host; doctor FILE: what a capture lacks when it is read elsewhere"}};
  const std::string lines = report_commands();
  for (std::string_view rest = lines; !rest.empty();) {
    std::string_view line = format::take_until(rest, '\n');
    const std::string name(format::take_until(line, '\t'));
    const bool is_known = std::ranges::find(out, name, &Command::name) != out.end();
    if (!name.empty() && !is_known) out.push_back({name, std::string(line)});
  }
  return out;
}

// The groups of --help. Commands that are in none of them show captures.
struct Task {
  std::string_view title;
  std::string_view commands;  // each between blanks
};
constexpr Task kTasks[] = {
    {"Record, and see what can be recorded:", " record live top stat list doctor "},
    {"Look at what is slow, and at captures:", ""},
    {"Compare captures:", " diff check fleet "},
    {"Share captures with others, and with other tools:", " pack redact export import convert "}};

bool is_of_task(const Command& command, const Task& task) {
  const auto has = [&command](const Task& one) {
    return one.commands.find(" " + command.name + " ") != std::string_view::npos;
  };
  return task.commands.empty() ? std::ranges::none_of(kTasks, has) : has(task);
}

void print_help(std::FILE* to) {
  std::fputs(
      "Usage: tacho COMMAND [OPTIONS]\n\n"
      "Records events with stacks on a host and reads the capture anywhere. Captures are perf.data files.\n"
      "Something is slow: tacho why -p PID (tacho help slow says more).\n",
      to);
  const std::vector<Command> all = commands();
  for (const Task& task : kTasks) {
    if (std::ranges::none_of(all, [&task](const Command& one) { return is_of_task(one, task); })) continue;
    std::fprintf(to, "\n%s\n", std::string(task.title).c_str());
    for (const Command& command : all)
      if (is_of_task(command, task))
        std::fprintf(to, "  %-12s %s\n", command.name.c_str(), command.help.c_str());
  }
  std::fputs(
      "\nEach has its own help: tacho help COMMAND. Exit statuses: 0 whole, 1 wrong use, 2 input "
      "unreadable\n"
      "or refused by the kernel, 3 result incomplete, 4 output not written; record returns its command's.\n",
      to);
}

// `tacho help slow`.
constexpr std::string_view kSlow =
    "Something is slow: what do I type?\n\n"
    "  tacho why -p PID             where its time goes: functions, locks and who holds them, disks, peers, "
    "CPUs\n"
    "  tacho why -a                 the same of the whole system; -G CGROUP: of a container or a service\n"
    "  tacho why -- COMMAND         of a command, until it ends\n"
    "  tacho why -p PID --of ./srv:handle_request    what the slowest 1 % of its calls have more of\n"
    "  tacho why -p PID -o FILE     keeps the capture, for the commands that the answer names\n"
    "  tacho why -p PID --page FILE    also a page for a browser, in which each finding selects its samples\n"
    "  tacho stacks -p PID          it hangs: where each thread is, which mutex it waits for, and who has "
    "it\n"
    "  tacho top -p PID             what runs now, on the terminal\n"
    "  tacho doctor                 what can be recorded here, and what to do about the rest\n";

// Flushes stdout and returns the exit status.
int finished() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return cli::kWhole;
  if (errno == EPIPE) return cli::kWhole;  // the reader closed the pipe, as `head` does
  return say("standard output cannot be written: " + std::string(std::strerror(errno)), cli::kNoOutput);
}

// A suggestion for a misspelled command of tacho-record (tacho-report suggests its own). tacho-report is only
// run for its commands if the word is similar to one of tacho-record's.
bool means_record(const std::string& word) {
  const std::vector<std::string> record{"record"};
  if (cli::nearest(word, record).empty()) return false;
  std::vector<std::string> names;
  for (Command& command : commands()) names.push_back(std::move(command.name));
  // Without tacho-report its commands are unknown.
  return names.size() > 7 && std::ranges::find(names, word) == names.end() &&
         cli::nearest(word, names) == "record";
}

bool has_input_option(const std::vector<std::string>& arguments) {
  return std::ranges::any_of(arguments, [](const std::string& argument) {
    return argument.starts_with("-i") || argument.starts_with("--input");
  });
}

// `tacho doctor FILE` checks a capture, `tacho doctor` this host.
bool names_a_capture(const std::vector<std::string>& arguments) {
  return has_input_option(arguments) ||
         std::any_of(arguments.begin() + 1, arguments.end(), [](const std::string& argument) {
           return !argument.starts_with('-') || argument == "-";
         });
}

// `tacho stacks FILE` and `tacho bpf FILE` show a capture, without FILE what runs here.
bool names_a_capture_first(const std::vector<std::string>& arguments) {
  return has_input_option(arguments) || (arguments.size() > 1 && !arguments[1].starts_with('-'));
}

// The program that runs a command, and its arguments.
struct Route {
  std::string program;
  std::vector<std::string> arguments;
};

// `arguments`: the command and what follows it.
Route route_of(std::vector<std::string> arguments, bool asks_for_help) {
  const std::string word = arguments.front();
  if (word == "record") {
    arguments.erase(arguments.begin());
    return {"tacho-record", std::move(arguments)};
  }
  if ((word == "doctor" && names_a_capture(arguments)) || (word == "why" && has_input_option(arguments)) ||
      (word == "stacks" && names_a_capture_first(arguments)) ||
      (word == "bpf" && (names_a_capture_first(arguments) || asks_for_help)))
    return {"tacho-report", std::move(arguments)};
  if (word == "list" || word == "live" || word == "top" || word == "stat" || word == "doctor" ||
      word == "stacks" || word == "bpf" || word == "why") {
    arguments.front() = word == "list" ? "--list-events" : word == "stat" ? "--count-events" : "--" + word;
    return {"tacho-record", std::move(arguments)};
  }
  return {"tacho-report", std::move(arguments)};
}

// `tacho complete WORDS...`, for the completion of shells: prints what can stand in place of the last word
// (cli/completion.h). `words`: those after "tacho" on the line that is completed.
int complete_words(std::vector<std::string> words) {
  if (words.size() > 1 && words[0] == "help") words.erase(words.begin());
  if (words.size() < 2) {
    std::vector<cli::Candidate> candidates;
    for (Command& command : commands())
      candidates.push_back({std::move(command.name), std::move(command.help)});
    candidates.insert(
        candidates.end(),
        {{"help", "commands, or the help of one"}, {"--help", "the commands"}, {"--version", "the version"}});
    cli::print_candidates({.text = words.empty() ? "" : words.back()}, candidates);
    return cli::kWhole;
  }
  const bool is_record = words.front() == "record";  // the others have a word for the command
  Route route = route_of(std::move(words), true);
  route.arguments.insert(route.arguments.begin() + (is_record ? 0 : 1), std::string(cli::kCompleteOption));
  return execute(route.program, std::move(route.arguments));
}

}  // namespace

int main(int count, char** texts) {
  std::vector<std::string> arguments(texts + std::min(count, 1), texts + count);
  if (arguments.empty()) {
    print_help(stderr);
    return cli::kWrongUse;
  }
  // `tacho help WORD` is `tacho WORD --help`.
  if (arguments.front() == "help" && arguments.size() > 1 && arguments[1] != "help")
    arguments = {arguments[1], "--help"};
  if (arguments.size() == 2 && arguments[0] == "slow" && arguments[1] == "--help") {
    std::fwrite(kSlow.data(), 1, kSlow.size(), stdout);
    return finished();
  }
  const std::string word = arguments.front();
  if (word == "--help" || word == "-h" || word == "help") {
    print_help(stdout);
    return finished();
  }
  if (word == "--version" || word == "-v" || word == "version") {
    std::puts("tacho " TACHO_VERSION);
    return finished();
  }
  if (word.starts_with('-')) return say("unknown option '" + word + "'; see tacho --help", cli::kWrongUse);
  if (word == "complete") return complete_words({arguments.begin() + 1, arguments.end()});
  const auto* const absent = std::ranges::find(kAbsentCommands, word, &AbsentCommand::name);
  if (absent != std::end(kAbsentCommands))
    return say("'" + word + "' is not here; instead: " + std::string(absent->instead), cli::kWrongUse);
  if (word != "record" && means_record(word))
    return say("there is no command '" + word + "'; did you mean 'record'?", cli::kWrongUse);
  const bool asks_for_help = std::ranges::find(arguments, "--help") != arguments.end();
  Route route = route_of(std::move(arguments), asks_for_help);
  return execute(route.program, std::move(route.arguments));
}
