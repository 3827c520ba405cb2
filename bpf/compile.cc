#include "bpf/compile.h"

#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "bpf/header_cache.h"
#include "bpf/kernel_support.h"
#include "format/file.h"
#include "format/trusted_path.h"

namespace tacho::bpf {
namespace {

struct ArchitectureRow {
  std::string_view machine;  // as uname has it
  const char* target;        // what bpf_tracing.h asks for
  const char* includes;      // Debian's folder of the headers that differ from machine to machine
};
constexpr ArchitectureRow kArchitectures[] = {
    {"x86_64", "x86", "/usr/include/x86_64-linux-gnu"},
    {"aarch64", "arm64", "/usr/include/aarch64-linux-gnu"},
    {"s390x", "s390", "/usr/include/s390x-linux-gnu"},
    {"ppc64le", "powerpc", "/usr/include/powerpc64le-linux-gnu"},
    {"riscv64", "riscv", "/usr/include/riscv64-linux-gnu"},
    {"loongarch64", "loongarch", "/usr/include/loongarch64-linux-gnu"},
};

std::vector<std::string> search_path() {
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
  std::vector<std::string> folders;
  while (!rest.empty()) {
    const auto colon = rest.find(':');
    if (colon != 0) folders.emplace_back(rest.substr(0, colon));
    rest.remove_prefix(colon == std::string_view::npos ? rest.size() : colon + 1);
  }
  return folders;
}

// The number of "clang-14"; 0 for every other name.
unsigned clang_version(std::string_view name) {
  constexpr std::string_view kPrefix = "clang-";
  if (!name.starts_with(kPrefix)) return 0;
  const std::string_view digits = name.substr(kPrefix.size());
  unsigned version = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), version);
  return code == std::errc() && end == digits.data() + digits.size() ? version : 0;
}

// Empty: there is none that may be run; `refusal` gets the reason of one that may not.
std::string newest_numbered_clang(const std::vector<std::string>& folders, Error& refusal) {
  std::string best;
  unsigned best_version = 0;
  for (const std::string& folder : folders) {
    std::error_code code;
    for (std::filesystem::directory_iterator entry(folder, code), end; !code && entry != end;
         entry.increment(code)) {
      const std::string path = entry->path().string();
      const unsigned version = clang_version(entry->path().filename().string());
      if (version <= best_version || ::access(path.c_str(), X_OK) != 0) continue;
      if (auto checked = format::check_program(path); !checked) {
        refusal = std::move(checked.error());
        continue;
      }
      best_version = version;
      best = path;
    }
  }
  return best;
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
}

std::vector<std::string> arguments(const std::string& clang, const std::string& source,
                                   const std::vector<std::string>& header_folders) {
  std::vector<std::string> words{clang, "-target", "bpf", "-O2", "-g"};
  const std::string machine = kernel_name().machine;
  const auto row = std::ranges::find(kArchitectures, std::string_view(machine), &ArchitectureRow::machine);
  if (row != std::end(kArchitectures)) words.push_back("-D__TARGET_ARCH_" + std::string(row->target));
  words.push_back("-I" + folder_of(source));
  for (const std::string& folder : header_folders) words.push_back("-I" + folder);
  if (row != std::end(kArchitectures)) words.insert(words.end(), {"-idirafter", row->includes});
  words.insert(words.end(), {"-c", "-o", "-", "--", source});
  return words;
}

// Attributes of a child that behaves as if started from a shell: the recorder handles signals its own way.
class SpawnSetup {
 public:
  explicit SpawnSetup(int output) {
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawn_file_actions_init(&actions_);
    sigset_t none;
    sigset_t all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    // A group of its own: it can be ended with all that it started.
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setflags(&attributes_,
                               POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    ::posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;
  SpawnSetup(SpawnSetup&&) = delete;
  SpawnSetup& operator=(SpawnSetup&&) = delete;
  ~SpawnSetup() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  const posix_spawnattr_t* attributes() const { return &attributes_; }
  const posix_spawn_file_actions_t* actions() const { return &actions_; }

 private:
  posix_spawnattr_t attributes_{};
  posix_spawn_file_actions_t actions_{};
};

// The wait status of the child, once it has ended.
Result<int> wait_for(pid_t child, const Stop& stop) {
  constexpr timespec kMoment{0, 5'000'000};
  int status = 0;
  for (;;) {
    const pid_t ended = ::waitpid(child, &status, stop ? WNOHANG : 0);
    if (ended == child) return status;
    if (ended < 0 && errno != EINTR) return system_error("waiting for the compiler", errno);
    if (!stop) continue;
    if (stop()) break;
    ::nanosleep(&kMoment, nullptr);
  }
  ::kill(-child, SIGKILL);
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return Error{"the compiler was stopped by a signal", EINTR};
}

// The wait status of the finished program, whose standard output went into `output`.
Result<int> run(std::vector<std::string> words, int output, const Stop& stop) {
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const SpawnSetup setup(output);
  pid_t child = 0;
  const int code = ::posix_spawnp(&child, argv[0], setup.actions(), setup.attributes(), argv.data(), environ);
  if (code != 0) return system_error("cannot run '" + words[0] + "'", code);
  return wait_for(child, stop);
}

std::string outcome(int status) {
  if (WIFSIGNALED(status)) return "was killed by signal " + std::to_string(WTERMSIG(status));
  return "ended with status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

Result<std::string> find_clang() {
  if (const char* named = std::getenv("TACHO_CLANG"); named != nullptr && *named != '\0') {
    const std::string name = named;
    if (name.find('/') == std::string::npos) return format::find_program(name);
    auto checked = format::check_program(name);
    return checked ? Result<std::string>(name) : std::move(checked.error());
  }
  auto found = format::find_program("clang");
  if (found) return found;
  if (std::string numbered = newest_numbered_clang(search_path(), found.error()); !numbered.empty())
    return numbered;
  if (found.error().code == EPERM) return found;
  return Error{
      "compiling C source needs clang, which was not found; install it (apt-get install clang), name it in "
      "TACHO_CLANG, or compile elsewhere and give the .bpf.o"};
}

Result<std::vector<std::byte>> compile(const std::string& source, const Log& log, const Stop& stop) {
  if (auto readable = format::open_input(source); !readable) return std::move(readable.error());
  const auto clang = find_clang();
  if (!clang) return Error{clang.error()}.in(source);
  auto headers = HeaderCache::open(log);
  if (!headers) return std::move(headers.error());
  // The object never has a name under which somebody could put another one in its place.
  const format::Fd object(::memfd_create("program.bpf.o", MFD_CLOEXEC));
  if (!object) return system_error("memory for the object", errno);
  const auto words = arguments(*clang, source, headers->folders());
  std::string command;
  for (const std::string& word : words) command += (command.empty() ? "" : " ") + word;
  say(log, command);
  const auto status = run(words, object.get(), stop);
  if (!status) return Error{status.error()}.in(source);
  if (*status != 0)
    return Error{source + ": not compiled: " + *clang + " " + outcome(*status) +
                 " (its messages stand above)"};
  struct stat made {};
  if (::fstat(object.get(), &made) != 0) return system_error("the object", errno);
  return format::read_at(object.get(), 0, static_cast<std::size_t>(made.st_size));
}

}  // namespace tacho::bpf
