#include "symbolize/files/debug_files.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>

#include "format/base/parse_text.h"
#include "format/extensions/map_owner.h"
#include "symbolize/symbol_options.h"

namespace tacho::symbolize {
namespace {

constexpr std::size_t kLargestListing = std::size_t{1} << 22;  // bytes
constexpr std::string_view kNoId = "-";

bool is_file(int file) {
  struct stat status {};
  return ::fstat(file, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

Result<PinnedFiles> PinnedFiles::read(int listing) {
  if (!is_file(listing)) return Error{"it is not a list of files"};
  const auto bytes = format::read_at(listing, 0, kLargestListing);
  if (!bytes) return bytes.error();
  PinnedFiles pinned;
  for (std::string_view rest = format::as_text(*bytes); !rest.empty();) {
    const bool is_terminated = rest.find('\0') != std::string_view::npos;
    std::string_view name = format::take_until(rest, '\0');
    std::array<std::string_view, 4> words;
    for (std::string_view& word : words) word = format::take_until(name, ' ');
    const bool is_perf_map = words[1] == "m";
    const auto file = format::whole_number<int>(words[0]);
    const auto process = format::whole_number<std::uint32_t>(words[2]);
    const auto id =
        words[3] == kNoId ? std::optional(format::BuildId{}) : format::BuildId::from_hex(words[3]);
    const bool is_known = is_terminated && (is_perf_map || words[1] == "b") && file && process && id;
    // Without a look at the file: its file system may not answer.
    if (!is_known || ::fcntl(*file, F_GETFD) < 0) return Error{"it is not a list of files"};
    pinned.rows_.push_back({*file, is_perf_map, *process, *id, std::string(name)});
  }
  return pinned;
}

std::vector<int> PinnedFiles::descriptors() const {
  std::vector<int> all;
  for (const Row& row : rows_) all.push_back(row.file);
  return all;
}

void PinnedFiles::add_file(format::Fd file, const format::BuildId& id) {
  rows_.push_back({.file = file.get(), .build_id = id});
  own_.push_back(std::move(file));
}

template <class IsWanted>
Result<format::Fd> PinnedFiles::duplicate(IsWanted&& is_wanted) const {
  const auto found = std::ranges::find_if(rows_, is_wanted);
  if (found == rows_.end()) return Error{"it was not pinned", ENOENT};
  format::Fd file(::fcntl(found->file, F_DUPFD_CLOEXEC, 0));
  return file ? std::move(file) : Result<format::Fd>(system_error("a pinned file", errno));
}

Result<format::Fd> PinnedFiles::binary(std::string_view name, const format::BuildId& id) const {
  const auto is_wanted = [&](const Row& row) {
    return !row.is_perf_map && (id.empty() ? row.name == name : row.build_id == id);
  };
  if (id.empty() && std::ranges::count_if(rows_, is_wanted) > 1)
    return Error{"several files had this name", ENOTUNIQ};
  return duplicate(is_wanted);
}

Result<format::Fd> PinnedFiles::perf_map(std::uint32_t process) const {
  const auto is_wanted = [&](const Row& row) { return row.is_perf_map && row.process == process; };
  if (std::ranges::count_if(rows_, is_wanted) > 1) return Error{"several processes had this pid", ENOTUNIQ};
  return duplicate(is_wanted);
}

namespace {

// From debuginfod.h of elfutils; a stable interface.
using Begin = void* (*)();
using Find = int (*)(void* client, const unsigned char* id, int size, char** path);
using End = void (*)(void* client);

template <class Function>
bool load(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

}  // namespace

struct Debuginfod::State {
  Begin begin = nullptr;
  End end = nullptr;
  Find find_debug = nullptr, find_executable = nullptr;
  void* client = nullptr;
  std::string failure;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (client) end(client);
  }
  Result<format::Fd> ask(Find find, const format::BuildId& id);
};

Debuginfod::Debuginfod(std::unique_ptr<State> state) : state_(std::move(state)) {}
Debuginfod::Debuginfod(Debuginfod&&) noexcept = default;
Debuginfod& Debuginfod::operator=(Debuginfod&&) noexcept = default;
Debuginfod::~Debuginfod() = default;

Result<Debuginfod> Debuginfod::connect() {
  const char* const urls = std::getenv("DEBUGINFOD_URLS");
  if (!urls || *urls == '\0') return Error{"debuginfod: DEBUGINFOD_URLS names no server; set it to its URL"};
#ifdef TACHO_STATIC  // glibc's dlopen() would need the glibc that the program was linked with
  return Error{"debuginfod: this static tacho-report loads no libraries; that of the packages does"};
#endif
  auto state = std::make_unique<State>();
  // Never unloaded, since its dependencies (curl, gnutls) do not support that.
  void* const library = ::dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) return Error{"debuginfod: libdebuginfod.so.1 is missing; install libdebuginfod1"};
  if (!load(library, "debuginfod_begin", state->begin) || !load(library, "debuginfod_end", state->end) ||
      !load(library, "debuginfod_find_debuginfo", state->find_debug) ||
      !load(library, "debuginfod_find_executable", state->find_executable)) {
    return Error{"debuginfod: libdebuginfod.so.1 lacks a function; install another version"};
  }
  state->client = state->begin();
  if (!state->client) return Error{"debuginfod: the library could not be started"};
  return Debuginfod(std::move(state));
}

Result<format::Fd> Debuginfod::State::ask(Find find, const format::BuildId& id) {
  if (id.empty()) return Error{"debuginfod: no build id to ask for"};
  const int fd = find(client, id.bytes.data(), id.size, nullptr);
  if (fd >= 0) return format::Fd(fd);
  Error refused = system_error("debuginfod: build id " + id.hex(), -fd);
  const bool is_unknown_file = fd == -ENOENT;
  if (!is_unknown_file && failure.empty())
    failure = refused.what + "; symbols may be missing that the servers in DEBUGINFOD_URLS have";
  return refused;
}

Result<format::Fd> Debuginfod::debug_information(const format::BuildId& id) {
  return state_->ask(state_->find_debug, id);
}
Result<format::Fd> Debuginfod::executable(const format::BuildId& id) {
  return state_->ask(state_->find_executable, id);
}
const std::string& Debuginfod::failure() const { return state_->failure; }

namespace {

constexpr const char* kDebugFolder = "/usr/lib/debug";
constexpr int kOpenFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

std::string by_build_id(const format::BuildId& id) {
  const std::string hex = id.hex();
  return "/.build-id/" + hex.substr(0, 2) + "/" + hex.substr(2);
}

// Opens a path with `root` as its root folder (openat2 RESOLVE_IN_ROOT); empty: this machine's.
int open_below(const std::string& root, const std::string& path, int flags) {
  if (root.empty()) return ::open(path.c_str(), flags);
  const format::Fd folder(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return -1;
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags);
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const long fd = ::syscall(SYS_openat2, folder.get(), path.c_str(), &how, sizeof how);
  if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) return static_cast<int>(fd);
  // Before Linux 5.6, or if a sandbox forbids openat2.
  format::Fd file(::open((root + path).c_str(), flags | O_NOFOLLOW));
  if (!file || is_below(root + path, root)) return file.release();
  errno = EXDEV;
  return -1;
}

// Opening a device or a FIFO has effects, so the file is first opened with O_PATH and checked, then reopened.
Result<format::Fd> open_regular(const std::string& root, const std::string& path, int more_flags = 0) {
  if (root == kNoFiles) return Error{path + ": is not in the capture, and no file is read", ENOENT};
  const format::Fd seen(open_below(root, path, O_PATH | O_CLOEXEC | more_flags));
  struct stat status {};
  if (!seen || ::fstat(seen.get(), &status) != 0) return system_error(root + path, errno);
  if (S_ISLNK(status.st_mode)) return Error{root + path + ": is a link, which is not followed", ELOOP};
  if (S_ISDIR(status.st_mode)) return Error{root + path + ": is a directory", EISDIR};
  if (!S_ISREG(status.st_mode) || is_pseudo_file(seen.get()))
    return Error{root + path + ": is not a regular file", EINVAL};
  format::Fd file(::open(("/proc/self/fd/" + std::to_string(seen.get())).c_str(), kOpenFlags));
  if (file || errno != ENOENT)
    return file ? std::move(file) : Result<format::Fd>(system_error(root + path, errno));
  // Without /proc: opened again by its name.
  file = format::Fd(open_below(root, path, kOpenFlags | more_flags));
  struct stat again {};
  if (!file || ::fstat(file.get(), &again) != 0) return system_error(root + path, errno);
  const bool is_same = status.st_dev == again.st_dev && status.st_ino == again.st_ino;
  if (!is_same) return Error{root + path + ": changed while it was opened", EINVAL};
  return file;
}

Result<std::vector<std::byte>> read_whole(const Result<format::Fd>& file, const std::string& name,
                                          std::uint64_t limit) {
  return file ? DebugFiles::read_opened(*file, name, limit) : Result<std::vector<std::byte>>(file.error());
}

}  // namespace

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

bool is_below(const std::string& path, const std::string& root) {
  const auto resolved = [](const std::string& name) {
    const std::unique_ptr<char, decltype(&std::free)> real(::realpath(name.c_str(), nullptr), &std::free);
    return std::string(real ? real.get() : "");
  };
  std::string folder = resolved(root);
  if (folder.empty()) return false;
  if (!folder.ends_with('/')) folder += '/';
  return resolved(path).starts_with(folder);
}

bool is_pseudo_file(int file) {
  struct statfs system {};
  constexpr std::array kMagics = {PROC_SUPER_MAGIC, SYSFS_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC};
  return ::fstatfs(file, &system) == 0 && std::ranges::find(kMagics, system.f_type) != kMagics.end();
}

Result<std::vector<std::byte>> DebugFiles::read_opened(const format::Fd& file, const std::string& name,
                                                       std::uint64_t limit) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return system_error(name, errno);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > limit) return Error{name + ": larger than " + std::to_string(limit) + " bytes"};
  return format::read_at(file.get(), 0, size);
}

Result<format::Fd> DebugFiles::open_file(const std::string& path) const { return open_regular(root_, path); }
Result<format::Fd> DebugFiles::open_itself(const std::string& path) const {
  return open_regular(root_, path, O_NOFOLLOW);
}

Result<std::vector<std::byte>> DebugFiles::read_file(const std::string& path, std::uint64_t limit) const {
  return read_whole(open_file(path), local_path(path), limit);
}

Result<format::Fd> DebugFiles::open_candidate(const Candidate& candidate) const {
  return candidate.host == Host::This ? open_regular({}, candidate.path) : open_file(candidate.path);
}

Result<format::Fd> DebugFiles::open_pinned(std::string_view path, const format::BuildId& id) const {
  return pinned_ != nullptr ? pinned_->binary(path, id)
                            : Result<format::Fd>(Error{"there are no pinned files", ENOENT});
}

Result<std::vector<std::byte>> DebugFiles::read_pinned(std::string_view path, const format::BuildId& id,
                                                       std::uint64_t limit) const {
  return read_whole(open_pinned(path, id), std::string(path), limit);
}

Result<std::vector<std::byte>> DebugFiles::read_pinned_map(std::string_view process,
                                                           std::uint64_t limit) const {
  const auto number = format::take_number<std::uint32_t>(process);
  if (pinned_ == nullptr || !number) return Error{"there are no pinned files", ENOENT};
  return read_whole(pinned_->perf_map(*number), "its map", limit);
}

bool is_this_host(const format::Environment& environment) {
  utsname running{};
  return ::uname(&running) == 0 && environment.hostname == running.nodename &&
         environment.os_release == running.release;
}

Result<> DebugFiles::check_mapped(const format::Fd& file, const Module& module) const {
  const MappedFile& mapped = module.mapped;
  if (features_ == nullptr || !root_.empty() || mapped.inode == 0 || !is_this_host(features_->environment))
    return Done{};
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return Done{};
  long generation = 0;  // stays 0 on file systems without generations and on old kernels
  (void)::ioctl(file.get(), FS_IOC_GETVERSION, &generation);
  const MappedFile file_now{.major = ::gnu_dev_major(status.st_dev),
                            .minor = ::gnu_dev_minor(status.st_dev),
                            .inode = status.st_ino,
                            .generation = static_cast<std::uint32_t>(generation)};
  if (!file_now.is_other_than(mapped)) return Done{};
  const auto& times = features_->environment.sample_time;
  const auto last = format::time_of_day(times ? times->second : 0);
  constexpr std::int64_t kSecond = 1'000'000'000;
  const bool is_newer = last && status.st_mtim.tv_sec * kSecond + status.st_mtim.tv_nsec > *last;
  if (!module.build_id.empty() && is_newer) return Done{};
  const bool is_number = file_now.inode != mapped.inode;
  return Error{
      fmt::format(
          "{}: is another file than the one that was mapped ({} {}; {} was recorded); --symfs / takes it",
          local_path(std::string(module.path)), is_number ? "inode" : "inode generation",
          is_number ? file_now.inode : file_now.generation, is_number ? mapped.inode : mapped.generation),
      ENOTUNIQ};
}

std::string DebugFiles::local_path(const std::string& path) const {
  return root_ == kNoFiles ? path : root_ + path;
}

std::string DebugFiles::message(const std::string& path, const std::string& reason,
                                std::string_view note) const {
  const std::string here = local_path(path) + ": ";
  return reason.starts_with(here) ? here + std::string(note) + reason.substr(here.size())
                                  : path + ": " + std::string(note) + reason;
}

std::vector<Candidate> DebugFiles::candidates(const std::string& module, const format::BuildId& id,
                                              const std::string& debuglink) const {
  const std::string folder = folder_of(module);
  std::vector<Candidate> found;
  if (!debuglink.empty()) {
    found.push_back({folder + debuglink, 'l'});
    found.push_back({folder + ".debug/" + debuglink, 'l'});
    found.push_back({kDebugFolder + folder + debuglink, 'l'});
  }
  if (!cache_.empty() && id.size > 1) {
    found.push_back({cache_ + by_build_id(id) + "/elf", 'B', Host::This});
    found.push_back({cache_ + by_build_id(id) + "/debug", 'D', Host::This});
  }
  found.push_back({kDebugFolder + module + ".debug", 'f'});
  found.push_back({kDebugFolder + module, 'u'});
  if (id.size > 1) found.push_back({kDebugFolder + by_build_id(id) + ".debug", 'b'});
  return found;
}

std::vector<Candidate> DebugFiles::supplementary_files(const Candidate& file, const std::string& link,
                                                       const format::BuildId& id) {
  std::vector<Candidate> found;
  if (!link.empty()) {
    const std::string path = link.starts_with('/') ? link : folder_of(file.path) + link;
    found.push_back({path, file.source, file.host});
  }
  if (id.size > 1) found.push_back({kDebugFolder + by_build_id(id) + ".debug", 'b'});
  return found;
}

}  // namespace tacho::symbolize
