#include "record/session/pinned_files.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <iterator>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "format/extensions/map_owner.h"
#include "record/host/host.h"
#include "record/host/process_maps.h"
#include "record/host/running_processes.h"
#include "record/parse_text.h"
#include "record/stacks/file_table.h"

namespace tacho::record {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kMostNewsBytes = std::size_t{4} << 20, kMostKnown = 1 << 16, kMostMaps = 256;
constexpr milliseconds kPatience{2000};
// Intervals of looks for a perf map, which appears some time after the code's first mapping.
constexpr milliseconds kSoon{100}, kLater{1000};
constexpr int kSoonTries = 20, kMostTries = 80;
constexpr int kNice = 5;

// Whether the file belongs to a package of the system: only an upgrade replaces it.
bool is_of_system(std::string_view name) {
  constexpr std::array<std::string_view, 7> kFolders = {"/usr/",  "/lib/",       "/lib64/", "/bin/",
                                                        "/sbin/", "/nix/store/", "/snap/"};
  return std::ranges::any_of(kFolders, [&](std::string_view folder) { return name.starts_with(folder); });
}

bool is_jitdump(std::string_view name) {
  const std::string_view last = name.substr(name.rfind('/') + 1);
  return last.starts_with("jit-") && last.ends_with(".dump");
}

bool is_same(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

std::string folder_of(std::uint32_t process) { return folder_of_process(process); }

// The process's pid in its own namespace, which is in the name of its perf map; nullopt: it has ended.
std::optional<std::uint32_t> own_number(std::uint32_t process) {
  const std::string status = text_of_file(folder_of(process) + "/status");
  if (status.empty()) return std::nullopt;
  const std::string numbers = numbers_in_namespaces(status);
  if (numbers.empty()) return process;  // before Linux 4.1
  return whole_number<std::uint32_t>(std::string_view(numbers).substr(numbers.rfind(',') + 1));
}

struct PerfMap {
  format::Fd file;
  std::int64_t start = 0;  // start of the process (format::MapOwner)
  struct stat status {};
};

// Opens /tmp/perf-PID.map in the process's root, without following links out of it. The file must have been
// made by the process's user or root while the process ran: an older one is of another process with that pid.
Result<PerfMap> open_perf_map(std::uint32_t process, ForeignReader& reader) {
  const auto number = own_number(process);
  const auto owner = format::running_owner(process);
  if (!number || !owner) return Error{"the process has ended"};
  const std::string path = fmt::format("/tmp/perf-{}.map", *number);
  auto opened =
      reader.open_file({folder_of(process) + "/root", path}, scope_of_file(0, 0, path, folder_of(process)));
  if (!opened) return std::move(opened.error());
  if (auto checked = format::check_map(opened->status(), *owner); !checked)
    return std::move(checked.error()).in(path);
  auto pin = opened->pin();
  if (!pin) return std::move(pin.error());
  return PerfMap{std::move(*pin), owner->start, opened->status()};
}

}  // namespace

// The list (symbolize/files/pinned_files.h) has for each file its descriptor, kind, process, build id and
// name, ended by a NUL.
Result<PinnedArguments> arguments_for(const PinnedFiles& pinned) {
  PinnedArguments made;
  if (pinned.files.empty()) return made;
  std::string text;
  for (const PinnedFile& one : pinned.files) {
    text += fmt::format("{} {} {} {} {}", one.file.get(), one.kind == PinnedFile::Kind::PerfMap ? 'm' : 'b',
                        one.process, one.build_id.empty() ? "-" : one.build_id.hex(), one.name) +
            '\0';
    made.inherited.push_back(one.file.get());
  }
  made.listing = format::Fd(::memfd_create("pinned files", MFD_CLOEXEC));
  if (!made.listing) return system_error("memory for the list of pinned files", errno);
  if (auto done = format::write_at(made.listing.get(), 0, std::as_bytes(std::span(text))); !done)
    return std::move(done.error());
  made.inherited.push_back(made.listing.get());
  made.words = {"--pinned-files", std::to_string(made.listing.get())};
  return made;
}

// Shared by both threads.
struct FilePinner::State {
  explicit State(std::shared_ptr<ForeignReader> foreign) : reader(std::move(foreign)) {}
  const std::shared_ptr<ForeignReader> reader;
  std::mutex mutex;  // guards all members below
  std::condition_variable has_news, has_changed;
  std::vector<MmapEvent> news;
  std::size_t news_bytes = 0;
  std::vector<int> processes;  // to look at
  PinnedFiles held;
  bool has_begun = false;  // the thread has dropped its rights
  bool is_over = false, is_done = false;
  std::atomic<bool> is_left = false;  // the thread is abandoned; not guarded
};

// The work of the thread.
class FilePinner::Work {
 public:
  Work(State& state, ForeignReader& reader) : state_(state), reader_(reader) {
    (void)::stat("/", &own_root_);
    rlimit limit{};
    // Pinned files may use only a part of the available descriptors.
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0)
      most_ = std::min<std::size_t>(most_, static_cast<std::size_t>(limit.rlim_cur) / 4);
  }

  void note(const MmapEvent& news) {
    if (news.kind == MmapEvent::Kind::Map) return consider(news.file);
    views_.erase(news.process);
    const auto map = maps_.find(news.process);
    if (map == maps_.end()) return;
    if (news.kind == MmapEvent::Kind::Exit) look_for_map(news.process, map->second);
    maps_.erase(map);
  }

  // Pins files of a process that was running at the start.
  void look_at(int process) {
    each_code_mapping(static_cast<std::uint32_t>(process), reader_,
                      [this](const format::MmapRecord& mapping) {
                        if (!state_.is_left) consider(file_of(mapping));
                        return !state_.is_left;
                      });
  }

  void look_for_maps(bool is_last) {
    const auto now = Clock::now();
    for (auto& [process, map] : maps_) {
      if (map.is_held || (!is_last && (map.tries >= kMostTries || map.next > now))) continue;
      if (state_.is_left) return;
      map.next = now + (++map.tries < kSoonTries ? kSoon : kLater);
      look_for_map(process, map);
    }
  }
  bool waits_for_maps() const {
    return std::ranges::any_of(
        maps_, [](const auto& map) { return !map.second.is_held && map.second.tries < kMostTries; });
  }

  void replace_maps() {
    for (auto& [process, map] : maps_)
      if (map.is_held && !state_.is_left) look_for_map(process, map);
  }

  // Perf maps, and files that are being written, grow while they are open.
  void close_what_grew() {
    std::vector<int> numbers, closed;
    {
      const std::lock_guard lock(state_.mutex);
      for (const PinnedFile& held : state_.held.files) numbers.push_back(held.file.get());
    }
    std::uint64_t bytes = 0;
    for (const int number : numbers) {
      const std::string own = fmt::format("/proc/{}/fd/{}", ::getpid(), number);
      const auto file = reader_.open_file({"", own}, own);
      if (!file) continue;
      const auto size = static_cast<std::uint64_t>(file->status().st_size);
      if (size > kMostPinnedBytes - bytes)
        closed.push_back(number);
      else
        bytes += size;
    }
    const std::lock_guard lock(state_.mutex);
    if (closed.empty() || state_.is_left) return;
    state_.held.refused += std::erase_if(state_.held.files, [&](const PinnedFile& held) {
      return std::ranges::count(closed, held.file.get()) != 0;
    });
  }

 private:
  enum class Risk : std::uint8_t { None, Some, Sure };
  struct Map {
    Clock::time_point next;
    int tries = 0;
    bool is_held = false;
  };

  void consider(const MappedFile& file) {
    const bool is_in_memory = file.name.starts_with("/memfd:");
    if (file.name.starts_with("[v")) return;
    // Generated code may be in anonymous files (.NET: a memfd that is mapped twice).
    const bool is_hidden = is_in_memory || file.name.ends_with(" (deleted)");
    if (is_hidden && file.build_id.empty()) expect_map(file.process);
    if (is_code_of_no_file(file.name) && !is_in_memory) return expect_map(file.process);
    const Risk risk = risk_of(file);
    if (risk == Risk::None) return;
    if (known_.size() > kMostKnown) known_.clear();
    const auto [key, is_new] = known_.insert(identity(file));
    if (!is_new) return;
    if (!has_room(risk)) return refuse();
    auto opened = open_binary(file, reader_);
    if (!opened) {  // try again when another process maps it
      known_.erase(key);
      return;
    }
    // Do not keep a removable file system busy for a file that probably stays.
    if (risk == Risk::Some && opened->status().st_dev != own_root_.st_dev) return;
    const format::BuildId id = file.build_id.empty() ? build_id_of(*opened) : file.build_id;
    // From /proc the file is known by its inode, from the kernel's records by its build id.
    if (file.build_id.empty() && !id.empty() && !known_.insert(id.hex()).second) return;
    auto pin = opened->pin();
    if (!pin) return;
    (void)hold({PinnedFile::Kind::Binary, file.process, id, file.name, std::move(*pin), 0}, opened->status(),
               risk);
  }

  Risk risk_of(const MappedFile& file) {
    if (file.name.ends_with(" (deleted)") || file.name.starts_with("/memfd:") || is_jitdump(file.name))
      return Risk::Sure;
    if (view_of(file.process) == View::Other && !known_.contains(key_here(file)) && !is_seen_here(file))
      return Risk::Sure;
    return is_of_system(file.name) ? Risk::None : Risk::Some;
  }

  View view_of(std::uint32_t process) {
    if (views_.size() > kMostKnown) views_.clear();
    const auto [entry, is_new] = views_.try_emplace(process, View::Ours);
    if (!is_new) return entry->second;
    return entry->second = record::view_of(folder_of(process));
  }

  // Services have their own mount namespaces, but nearly all of their files are those of the host.
  bool is_seen_here(const MappedFile& file) {
    const auto here = reader_.open_file({"/", file.name}, scope_of_file(0, 0, file.name, "/proc/self"));
    if (!here) return false;
    const auto there =
        reader_.open_file({folder_of(file.process) + "/root", file.name}, scope_of(file), file.name);
    const bool is_it = there && is_same(there->status(), here->status());
    if (is_it) known_.insert(key_here(file));
    return is_it;
  }

  // A file of the host's namespace is checked once for all processes.
  static std::string key_here(const MappedFile& file) { return identity(file) + " " + file.name; }

  // A perf map that was rewritten is another file. Files are opened without the lock, since that may take a
  // while.
  void look_for_map(std::uint32_t process, Map& map) {
    auto found = open_perf_map(process, reader_);
    if (!found) return;
    std::unique_lock lock(state_.mutex);
    for (PinnedFile& held : state_.held.files) {
      const bool is_its_own = held.kind == PinnedFile::Kind::PerfMap && held.process == process;
      if (!is_its_own || held.start != found->start) continue;
      std::swap(held.file, found->file);
      map.is_held = true;
      return;
    }
    lock.unlock();
    // A map of an earlier process with this pid is kept separately.
    if (!map.is_held)
      map.is_held = hold({PinnedFile::Kind::PerfMap, process, {}, {}, std::move(found->file), found->start},
                         found->status, Risk::Sure);
  }

  void expect_map(std::uint32_t process) {
    if (maps_.size() >= kMostMaps && !maps_.contains(process))
      std::erase_if(maps_,
                    [](const auto& map) { return !map.second.is_held && map.second.tries >= kMostTries; });
    if (maps_.size() >= kMostMaps && !maps_.contains(process)) return refuse();
    Map& map = maps_[process];
    map.tries = std::min(map.tries, kMostTries / 2);
  }

  // Files that may vanish get half of the limit; the rest is for files that will vanish for sure.
  bool has_room(Risk risk) const {
    return count_ < most_ && (risk == Risk::Sure || unsure_ < most_ / 2) && bytes_ < kMostPinnedBytes;
  }
  void refuse() {
    const std::lock_guard lock(state_.mutex);
    ++state_.held.refused;
  }

  bool hold(PinnedFile file, const struct stat& status, Risk risk) {
    const auto size = static_cast<std::uint64_t>(status.st_size);
    if (!has_room(risk) || size > kMostPinnedBytes - bytes_) {
      refuse();
      return false;
    }
    ++count_;
    unsure_ += risk == Risk::Sure ? 0 : 1;
    bytes_ += size;
    const std::lock_guard lock(state_.mutex);
    if (state_.is_left) return false;
    state_.held.files.push_back(std::move(file));
    return true;
  }

  State& state_;
  ForeignReader& reader_;
  struct stat own_root_ {};
  std::size_t most_ = kMostPinnedFiles, count_ = 0, unsure_ = 0;
  std::uint64_t bytes_ = 0;
  std::unordered_map<std::uint32_t, View> views_;
  std::unordered_set<std::string> known_;  // pinned or refused files
  std::unordered_map<std::uint32_t, Map> maps_;
};

FilePinner::FilePinner(std::shared_ptr<ForeignReader> reader)
    : state_(std::make_shared<State>(std::move(reader))) {}

FilePinner::~FilePinner() { (void)take_pinned(); }

void FilePinner::pin_files(const std::shared_ptr<State>& state) {
  // The thread reads files of any user, so it drops its rights first; if that fails, it ends.
  if (const auto dropped = drop_rights({.holds_files = true}, ""); !dropped) {
    const std::lock_guard lock(state->mutex);
    state->held.failure = "its rights cannot be dropped: " + dropped.error().what;
    state->has_begun = state->is_done = true;
    state->has_changed.notify_all();
    return;
  }
  (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);
  Work work(*state, *state->reader);
  std::unique_lock lock(state->mutex);
  state->has_begun = true;
  state->has_changed.notify_all();
  for (bool is_last = false; !is_last;) {
    const auto has_work = [&] { return state->is_over || !state->news.empty() || !state->processes.empty(); };
    if (!has_work()) {
      if (work.waits_for_maps())
        (void)state->has_news.wait_for(lock, kSoon, has_work);
      else
        state->has_news.wait(lock, has_work);
    }
    is_last = state->is_over;
    const std::vector<MmapEvent> news = std::exchange(state->news, {});  // does not allocate
    const std::vector<int> processes = std::exchange(state->processes, {});
    state->news_bytes = 0;
    lock.unlock();
    try {
      for (const int process : processes)
        if (!state->is_left) work.look_at(process);
      for (const MmapEvent& one : news)
        if (!state->is_left) work.note(one);
      work.look_for_maps(is_last);
      if (is_last) work.replace_maps();
      if (is_last) work.close_what_grew();
    } catch (const std::bad_alloc&) {
      // Mappings for which there was no memory are not pinned.
    }
    lock.lock();
  }
  state->is_done = true;
  state->has_changed.notify_all();
}

Result<> FilePinner::start(const format::EventAttr& attr, std::vector<int> processes) {
  attr_ = attr;
  state_->processes = std::move(processes);
  try {
    std::thread([state = state_] { pin_files(state); }).detach();
  } catch (const std::system_error& refused) {
    return system_error("the thread that pins files", refused.code().value());
  }
  is_running_ = true;
  std::unique_lock lock(state_->mutex);
  (void)state_->has_changed.wait_for(lock, kPatience, [&] { return state_->has_begun; });
  if (!state_->held.failure.empty()) return Error{state_->held.failure};
  return Done{};
}

void FilePinner::pin_mapped(format::Bytes records) {
  if (!is_running_) return;
  try {
    events_.clear();
    parse_mmap_events(records, attr_, events_);
    std::erase_if(events_, [](const MmapEvent& news) { return news.kind == MmapEvent::Kind::Fork; });
    if (events_.empty()) return;
    std::size_t bytes = 0;
    for (const MmapEvent& news : events_) bytes += sizeof news + news.file.name.size();
    const std::lock_guard lock(state_->mutex);
    if (state_->is_done) return;
    if (state_->news_bytes + bytes > kMostNewsBytes) {
      state_->held.refused += events_.size();
      return;
    }
    state_->news_bytes += bytes;
    std::ranges::move(events_, std::back_inserter(state_->news));
    state_->has_news.notify_one();
  } catch (const std::bad_alloc&) {
    // Recording goes on without pinning.
  }
}

void FilePinner::use(const std::function<void(const PinnedFiles&)>& what) {
  const std::lock_guard lock(state_->mutex);
  what(state_->held);
}

PinnedFiles FilePinner::take_pinned() {
  if (!std::exchange(is_running_, false)) return {};
  std::unique_lock lock(state_->mutex);
  state_->is_over = true;
  state_->has_news.notify_one();
  state_->is_left = !state_->has_changed.wait_for(lock, kPatience, [&] { return state_->is_done; });
  return std::exchange(state_->held, {});
}

}  // namespace tacho::record
