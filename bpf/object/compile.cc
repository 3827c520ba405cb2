#include "bpf/object/compile.h"

#include <bpf/btf.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>

#include "bpf/support/kernel_support.h"
#include "bpf/support/libbpf_owned.h"
#include "bpf/support/shipped_files.h"
#include "format/base/digest.h"
#include "format/base/file.h"
#include "format/base/parse_text.h"
#include "format/base/trusted_path.h"

namespace tacho::bpf {

namespace {

void remove(const std::string& path) {
  if (path.empty()) return;
  std::error_code ignored;  // a folder that cannot be removed does no harm
  std::filesystem::remove_all(path, ignored);
}

}  // namespace

Result<PrivateFolder> PrivateFolder::create(const std::string& parent) {
  const char* temporary = std::getenv("TMPDIR");
  std::string path = parent;
  if (parent.empty() && temporary != nullptr && *temporary != '\0' && format::check_trusted_path(temporary))
    path = temporary;
  if (path.empty()) path = "/tmp";
  if (auto trusted = format::check_trusted_path(path); !trusted)
    return std::move(trusted.error()).in("a private folder in " + path);
  path += "/tacho.XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) return system_error("cannot make a private folder " + path, errno);
  return PrivateFolder(std::move(path));
}

PrivateFolder& PrivateFolder::operator=(PrivateFolder&& other) noexcept {
  if (this != &other) {
    remove(path_);
    path_ = std::exchange(other.path_, {});
  }
  return *this;
}

PrivateFolder::~PrivateFolder() { remove(path_); }

bool PrivateFolder::rename_to(const std::string& path) {
  if (std::rename(path_.c_str(), path.c_str()) != 0) return false;  // ENOTEMPTY: another recorder was faster
  path_.clear();
  return true;
}

namespace {

constexpr const char* kKernelBtf = "/sys/kernel/btf/vmlinux";

std::string hex(std::uint64_t value) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(value));
  return digits;
}

// The folder of cached headers. They are compiled into programs that root loads, so no other user may be able
// to write there.
Result<std::string> own_cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  std::string path;
  if (cache != nullptr && *cache == '/') {
    path = cache;
  } else if (home != nullptr && *home == '/') {
    path = std::string(home) + "/.cache";
  } else {
    return Error{"neither XDG_CACHE_HOME nor HOME names a folder"};
  }
  std::error_code code;
  std::filesystem::create_directories(path, code);
  path += "/tacho";
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return system_error(path, errno);
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return system_error(path, errno);
  if (!S_ISDIR(status.st_mode) || status.st_uid != ::geteuid() || (status.st_mode & 077) != 0)
    return Error{path + " is not a folder that only this user can enter (mode 0700)"};
  if (auto trusted = format::check_trusted_path(path); !trusted) return std::move(trusted.error());
  return path;
}

Result<> write_file(const std::string& path, std::string_view content) {
  std::error_code code;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), code);
  const format::Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return system_error(path, errno);
  return format::write_at(file.get(), 0, std::as_bytes(std::span(content)));
}

struct HeaderFile {
  std::string path;
  std::string_view content;
};

// Makes the folder `parent`/`name` with these files: under another name first, then renamed, so that a folder
// with the final name is complete.
Result<std::string> make_folder(const std::string& parent, const std::string& name,
                                std::span<const HeaderFile> files) {
  const std::string path = parent + "/" + name;
  auto folder = PrivateFolder::create(parent);
  if (!folder) return std::move(folder.error());
  for (const HeaderFile& file : files)
    if (auto written = write_file(folder->path() + "/" + file.path, file.content); !written)
      return std::move(written.error());
  if (!folder->rename_to(path) && ::access(path.c_str(), R_OK | X_OK) != 0) return system_error(path, errno);
  return path;
}

Result<std::string> shipped_folder(const std::string& parent) {
  std::uint64_t state = 0;
  std::vector<HeaderFile> files;
  for (const ShippedHeader& header : shipped_headers()) {
    for (const std::string_view text : {header.path, header.content})
      state = format::digest(std::as_bytes(std::span(text)), state);
    files.push_back({std::string(header.path), header.content});
  }
  const std::string name = "headers-" + hex(state);
  if (::access((parent + "/" + name).c_str(), R_OK | X_OK) == 0) return parent + "/" + name;
  return make_folder(parent, name, files);
}

struct FreeDump {
  void operator()(btf_dump* dump) const noexcept { btf_dump__free(dump); }
};

void append(void* context, const char* format, va_list arguments) noexcept {
  append_formatted(*static_cast<std::string*>(context), format, arguments);
}

// CO-RE: accesses to types of the kernel are relocated when the program is loaded.
constexpr std::string_view kHead =
    "#ifndef __VMLINUX_H__\n#define __VMLINUX_H__\n\n"
    "#ifndef BPF_NO_PRESERVE_ACCESS_INDEX\n"
    "#pragma clang attribute push (__attribute__((preserve_access_index)), apply_to = record)\n"
    "#endif\n\n";
constexpr std::string_view kTail =
    "#ifndef BPF_NO_PRESERVE_ACCESS_INDEX\n#pragma clang attribute pop\n#endif\n\n#endif /* __VMLINUX_H__ "
    "*/\n";

// The text of vmlinux.h: every type in the kernel's BTF as C.
Result<std::string> vmlinux_header(format::Bytes bytes) {
  LibbpfLog log;
  const OwnedBtf types = parse_btf(bytes);
  if (types == nullptr) return Error{"the kernel's BTF cannot be read"};
  std::string text(kHead);
  const std::unique_ptr<btf_dump, FreeDump> dump(btf_dump__new(types.get(), append, &text, nullptr));
  if (dump == nullptr) return Error{"the kernel's BTF cannot be written as C"};
  for (std::uint32_t id = 1; id < btf__type_cnt(types.get()); ++id)
    if (const int code = btf_dump__dump_type(dump.get(), id); code != 0)
      return system_error("the kernel's BTF cannot be written as C: type " + std::to_string(id), -code);
  text += kTail;
  return text;
}

// The folder with vmlinux.h; nothing if this kernel has no BTF: programs that do not include it still
// compile.
Result<std::optional<std::string>> vmlinux_folder(const std::string& parent, const Log& log) {
  if (::access(kKernelBtf, R_OK) != 0) {
    say(log, "this kernel has no BTF (CONFIG_DEBUG_INFO_BTF): compiling without vmlinux.h");
    return std::optional<std::string>();
  }
  auto btf = format::read_file(kKernelBtf);
  if (!btf) return std::move(btf.error());
  const std::string name = "vmlinux-" + kernel_name().release + "-" + hex(format::digest(*btf));
  if (::access((parent + "/" + name).c_str(), R_OK | X_OK) == 0) return std::optional(parent + "/" + name);
  auto text = vmlinux_header(*btf);
  if (!text) return std::move(text.error());
  const HeaderFile file{"vmlinux.h", *text};
  auto folder = make_folder(parent, name, std::span(&file, 1));
  if (!folder) return std::move(folder.error());
  say(log, "made " + *folder + "/vmlinux.h from the running kernel's BTF");
  return std::optional(std::move(*folder));
}

Result<std::vector<std::string>> folders_in(const std::string& parent, const Log& log) {
  auto shipped = shipped_folder(parent);
  if (!shipped) return std::move(shipped.error());
  auto vmlinux = vmlinux_folder(parent, log);
  if (!vmlinux) return std::move(vmlinux.error());
  std::vector<std::string> folders{std::move(*shipped)};
  if (*vmlinux) folders.push_back(std::move(**vmlinux));
  return folders;
}

// Include folders for BPF programs: the embedded headers, and vmlinux.h of the running kernel.
struct Headers {
  std::vector<std::string> folders;
  std::optional<PrivateFolder> temporary;  // has them, if they are not cached
};

// Cached in $XDG_CACHE_HOME/tacho or ~/.cache/tacho; if that is impossible, or another user can write there,
// in a private folder for this run.
Result<Headers> headers_for_programs(const Log& log) {
  const auto cache = own_cache_folder();
  auto cached = cache ? folders_in(*cache, log) : cache.error();
  if (cached) return Headers{std::move(*cached), {}};
  say(log, "headers are not kept: " + cached.error().what);
  auto temporary = PrivateFolder::create();
  if (!temporary) return std::move(temporary.error());
  auto folders = folders_in(temporary->path(), log);
  if (!folders) return std::move(folders.error());
  return Headers{std::move(*folders), std::move(*temporary)};
}

struct ArchitectureRow {
  std::string_view machine;  // of uname
  const char* target;        // macro that bpf_tracing.h needs
  const char* includes;      // Debian's folder of machine-dependent headers
};
constexpr ArchitectureRow kArchitectures[] = {
    {"x86_64", "x86", "/usr/include/x86_64-linux-gnu"},
    {"aarch64", "arm64", "/usr/include/aarch64-linux-gnu"},
    {"s390x", "s390", "/usr/include/s390x-linux-gnu"},
    {"ppc64le", "powerpc", "/usr/include/powerpc64le-linux-gnu"},
    {"riscv64", "riscv", "/usr/include/riscv64-linux-gnu"},
    {"loongarch64", "loongarch", "/usr/include/loongarch64-linux-gnu"},
};

// 14 for "clang-14"; 0 for other names.
unsigned clang_version(std::string_view name) {
  return format::take_prefix(name, "clang-") ? format::whole_number<unsigned>(name).value_or(0) : 0;
}

// The path of the newest clang-N on the PATH that is safe to run; empty: none. `refusal`: why one was
// refused.
std::string newest_numbered_clang(Error& refusal) {
  const char* path_variable = std::getenv("PATH");
  std::string_view rest = path_variable == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path_variable;
  std::string best;
  unsigned best_version = 0;
  while (!rest.empty()) {
    const std::filesystem::path folder(format::take_until(rest, ':'));
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

// Waits for the child and returns its wait status.
Result<int> wait_for(pid_t child, const Stop& stop) {
  constexpr timespec kPollInterval{0, 5'000'000};
  int status = 0;
  for (;;) {
    const pid_t ended = ::waitpid(child, &status, stop ? WNOHANG : 0);
    if (ended == child) return status;
    if (ended < 0 && errno != EINTR) return system_error("waiting for the compiler", errno);
    if (!stop) continue;
    if (stop()) break;
    ::nanosleep(&kPollInterval, nullptr);
  }
  ::kill(-child, SIGKILL);
  (void)TEMP_FAILURE_RETRY(::waitpid(child, &status, 0));
  return Error{"the compiler was stopped by a signal", EINTR};
}

// Runs a program with its standard output into `output` and returns its wait status.
Result<int> run(std::vector<std::string> words, int output, const Stop& stop) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  // The recorder blocks and handles signals. A process group, to end the compiler with its children.
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  pid_t child = 0;
  const int code = ::posix_spawnp(&child, argv[0], &actions, &attributes, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (code != 0) return system_error("cannot run '" + words[0] + "'", code);
  return wait_for(child, stop);
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
  if (std::string numbered = newest_numbered_clang(found.error()); !numbered.empty()) return numbered;
  if (found.error().code == EPERM) return found;
  return Error{
      "compiling C source needs clang, which was not found; install it (apt-get install clang), name it in "
      "TACHO_CLANG, or compile elsewhere and give the .bpf.o"};
}

Result<std::vector<std::byte>> compile(const std::string& source, const Log& log, const Stop& stop) {
  if (auto readable = format::open_input(source); !readable) return std::move(readable.error());
  const auto clang = find_clang();
  if (!clang) return Error{clang.error()}.in(source);
  const auto headers = headers_for_programs(log);
  if (!headers) return headers.error();
  // A memfd: no other user can replace the object.
  const format::Fd object(::memfd_create("program.bpf.o", MFD_CLOEXEC));
  if (!object) return system_error("memory for the object", errno);
  const auto words = arguments(*clang, source, headers->folders);
  std::string command;
  for (const std::string& word : words) command += (command.empty() ? "" : " ") + word;
  say(log, command);
  const auto status = run(words, object.get(), stop);
  if (!status) return Error{status.error()}.in(source);
  if (*status != 0)
    return Error{source + ": not compiled: " + *clang +
                 (WIFSIGNALED(*status) ? " was killed by signal " + std::to_string(WTERMSIG(*status))
                                       : " ended with status " + std::to_string(WEXITSTATUS(*status))) +
                 " (see its messages above)"};
  struct stat made {};
  if (::fstat(object.get(), &made) != 0) return system_error("the object", errno);
  return format::read_at(object.get(), 0, static_cast<std::size_t>(made.st_size));
}

}  // namespace tacho::bpf
