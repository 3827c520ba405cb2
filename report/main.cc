// tacho-report COMMAND [options]: finds the command in the table and runs it.
#include <malloc.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/guarded_main.h"
#include "cli/message_text.h"
#include "cli/nearest.h"
#include "report/commands.h"

namespace {

using tacho::report::Command;
using tacho::report::commands;

void print_commands(std::FILE* to) {
  std::fputs("usage: tacho COMMAND [options]; tacho help COMMAND lists them\n\n", to);
  for (const Command& command : commands()) {
    if (command.help.empty()) continue;
    std::fprintf(to, "  %-8s  %.*s\n", std::string(command.name).c_str(),
                 static_cast<int>(command.help.size()), command.help.data());
  }
}

// Prints one command a line, for the dispatcher's --help and its suggestions for misspelled commands.
void list_commands() {
  for (const Command& command : commands()) {
    if (command.help.empty()) continue;
    std::printf("%s\t%s\n", std::string(command.name).c_str(), std::string(command.help).c_str());
  }
}

// Flushes stdout; the exit status. A closed pipe (`head`) is no failure.
int flushed() {
  if ((std::fflush(stdout) == 0 && std::ferror(stdout) == 0) || errno == EPIPE) return tacho::cli::kWhole;
  std::fprintf(stderr, "tacho: standard output cannot be written: %s\n", std::strerror(errno));
  return tacho::cli::kNoOutput;
}

std::string suggestion(const std::string& word) {
  std::vector<std::string> names;
  for (const Command& command : commands())
    if (!command.help.empty()) names.emplace_back(command.name);
  return tacho::cli::suggestion(word, names);
}

int run(const Command& command, const std::vector<std::string>& arguments) {
  auto status = command.run(arguments);
  if (status) return *status;
  std::fprintf(stderr, "tacho: %s\n", tacho::cli::printable_message(status.error().what).c_str());
  return tacho::cli::status_of(status.error());
}

// pprof runs a program of this name for a capture: perf_to_profile -i INPUT -o OUTPUT -f.
bool is_named_as_converter(int count, char** values) {
  const std::string_view program = count > 0 ? values[0] : "";
  return program.substr(program.rfind('/') + 1) == "perf_to_profile";
}

// The arguments of tacho export for those of perf_to_profile. pprof has the output open already, so it is
// written in place, as standard output; export would give the name to another file.
std::optional<std::vector<std::string>> arguments_of_converter(std::vector<std::string> given) {
  const auto option = std::ranges::find(given, "-o");
  if (option != given.end() && std::next(option) != given.end()) {
    const std::string path = *std::next(option);
    if (std::freopen(path.c_str(), "w", stdout) == nullptr) {
      std::fprintf(stderr, "perf_to_profile: %s: %s\n", tacho::report::printable(path).c_str(),
                   std::strerror(errno));
      return std::nullopt;
    }
    given.erase(option, std::next(option, 2));
  }
  given.insert(given.begin(), {"export", "--to", "pprof"});
  return given;
}

int run_main(int count, char** values) {
  // A closed pipe then shows as EPIPE of write(), which is no error.
  std::signal(SIGPIPE, SIG_IGN);
  std::vector<std::string> arguments(values + std::min(count, 1), values + count);
  if (is_named_as_converter(count, values)) {
    auto of_export = arguments_of_converter(std::move(arguments));
    if (!of_export) return tacho::cli::kNoOutput;
    arguments = std::move(*of_export);
  }
  if (arguments.empty()) {
    print_commands(stderr);
    return tacho::cli::kWrongUse;
  }
  // `tacho-report help COMMAND` is `tacho-report COMMAND --help`.
  if (arguments.front() == "help" && arguments.size() > 1 && arguments[1] != "help")
    arguments = {arguments[1], "--help"};
  const std::string name = arguments.front();
  if (name == "--help" || name == "-h" || name == "help") {
    print_commands(stdout);
    return flushed();
  }
  if (name == "--version" || name == "-v" || name == "version") {
    std::puts("tacho " TACHO_VERSION);
    return flushed();
  }
  if (name == "--list-commands") {
    list_commands();
    return flushed();
  }
  const auto command = std::ranges::find(commands(), name, &Command::name);
  if (command == commands().end()) {
    const std::string guess = suggestion(name);
    std::fprintf(stderr, "tacho: there is no command '%s'%s\n", tacho::report::printable(name).c_str(),
                 guess.empty()
                     ? "; tacho --help lists the commands, tacho list recorders the names for tacho record -e"
                     : guess.c_str());
    return tacho::cli::kWrongUse;
  }
  arguments.erase(arguments.begin());
  return run(*command, arguments);
}

}  // namespace

int main(int count, char** values) {
  // Pieces of a capture are freed as soon as they are shown. From 512 KiB on, malloc() maps them, so that
  // free() returns the memory to the kernel; glibc's arena of the reading thread would keep it.
  ::mallopt(M_MMAP_THRESHOLD, 512 * 1024);
  return tacho::cli::guarded_main("tacho", [&] { return run_main(count, values); });
}
