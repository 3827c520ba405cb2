#include "record/stacks/unwind_tables.h"

#include <elf.h>
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <limits>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include "format/base/file.h"
#include "record/host/host.h"
#include "record/host/process_maps.h"
#include "record/host/running_processes.h"
#include "record/parse_text.h"
#include "unwind/elf_image.h"

namespace tacho::record {
namespace {

using format::Bytes;
using format::Cursor;

constexpr std::size_t kMostLibraries = 128, kMostEntries = 1U << 16;
// Limits for one file, and for looking up files in the folders that it names.
constexpr std::size_t kMostNames = 128, kMostFolders = 64, kMostLooks = 1U << 14;
constexpr std::size_t kLongestName = NAME_MAX, kLongestPath = PATH_MAX - 1;

// The text at an offset; empty: it is longer than `longest`.
std::string_view short_text_at(Bytes bytes, std::uint64_t offset, std::size_t longest) {
  if (offset >= bytes.size()) return {};
  const Bytes rest = bytes.subspan(static_cast<std::size_t>(offset));
  const std::string_view text = format::text_of(rest.first(std::min(rest.size(), longest + 1)));
  return text.size() <= longest ? text : std::string_view{};
}

// The libraries that one file needs.
struct Needs {
  std::string interpreter;
  std::vector<std::string> names, folders;
};

std::vector<std::string> split_folders(std::string_view folders, const std::string& origin) {
  std::vector<std::string> found;
  while (!folders.empty() && found.size() < kMostFolders) {
    const std::string_view written = take_until(folders, ':');
    if (written.size() > kLongestPath) continue;
    std::string one(written);
    for (const std::string_view word : {"$ORIGIN", "${ORIGIN}"})
      if (one.starts_with(word)) one = origin + one.substr(word.size());
    if (one.starts_with('/') && one.size() <= kLongestPath) found.push_back(std::move(one));
  }
  return found;
}

Needs needs_of(const std::string& path) {
  Needs needs;
  auto file = format::open_input(path);
  if (!file) return needs;
  const auto image = unwind::ElfImage::open(std::move(*file));
  if (!image) return needs;
  if (const auto name = image->section(".interp"))
    needs.interpreter = short_text_at(name->bytes, 0, kLongestPath);
  const auto dynamic = image->section(".dynamic"), texts = image->section(".dynstr");
  if (!dynamic || !texts) return needs;
  const std::string origin = path.substr(0, path.rfind('/'));
  std::size_t left = kMostEntries;
  bool has_folders = false;  // one of the two reports them, once
  for (Cursor in(dynamic->bytes, image->order()); in.left() >= sizeof(Elf64_Dyn) && left > 0; --left) {
    const std::uint64_t tag = in.u64(), value = in.u64();
    if (tag == DT_NULL) break;
    if (tag == DT_NEEDED && needs.names.size() < kMostNames) {
      const std::string_view name = short_text_at(texts->bytes, value, kLongestName);
      if (!name.empty()) needs.names.emplace_back(name);
    }
    if ((tag == DT_RPATH || tag == DT_RUNPATH) && !std::exchange(has_folders, true))
      needs.folders = split_folders(short_text_at(texts->bytes, value, kMostFolders * PATH_MAX), origin);
  }
  return needs;
}

std::optional<std::string> find_library(const std::string& name, const std::vector<std::string>& folders,
                                        const LibraryPaths& known, std::size_t& looks) {
  if (name.starts_with('/')) return name;
  for (const std::string& folder : folders) {
    if (looks == 0) break;
    --looks;
    if (const std::string path = folder + "/" + name; format::open_input(path)) return path;
  }
  const auto found = known.find(name);
  return found == known.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

std::vector<std::string> needed_libraries(const std::string& program, const LibraryPaths& known,
                                          const std::function<bool()>& stop) {
  std::vector<std::string> found;
  std::size_t looks = kMostLooks;
  const auto add = [&found](const std::string& path) {
    const bool is_new = std::ranges::find(found, path) == found.end();
    if (is_new && found.size() < kMostLibraries) found.push_back(path);
  };
  const Needs first = needs_of(program);
  if (first.interpreter.starts_with('/')) add(first.interpreter);
  const auto add_needs = [&](const Needs& needs) {
    for (const std::string& name : needs.names) {
      if (stop && stop()) return;
      if (const auto path = find_library(name, needs.folders, known, looks)) add(*path);
    }
  };
  add_needs(first);
  for (std::size_t at = 0; at < found.size() && !(stop && stop()); ++at)
    add_needs(needs_of(std::string(found[at])));
  return found;
}

namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kSegmentBytes = TACHO_SEGMENT_BLOCKS * sizeof(tacho_unwind_block);
constexpr std::uint32_t kSegmentsAtOnce = 2;
constexpr milliseconds kLook{50};                            // evicted tables that are needed again
constexpr std::chrono::nanoseconds kMostCpu{5'000'000'000};  // for one file; libclang takes 0.4 s
constexpr std::uint32_t kLooksPerClock = 256;
// Building takes 0.25 s of CPU in all on a host of compilers, but on a busy host that was seconds at nice -5:
// a third of the stacks of a recording of 3 s had no table.
constexpr int kNice = -15;
constexpr std::chrono::seconds kRequestTimeout{1}, kPatienceAtEnd{2};
constexpr std::size_t kMostOpenRequests = 1024, kMostSeen = 16384, kMostKeysOfModule = 64;
constexpr std::size_t kNumbersAtOnce = 1024;
constexpr std::uint32_t kEvictedPart = 16;  // fraction of all blocks that is evicted at once

}  // namespace

UnwindTables::UnwindTables(bpf::StackWalker& walker, std::uint64_t budget,
                           std::shared_ptr<ForeignReader> reader, TableOf tables)
    : walker_(walker),
      reader_(std::move(reader)),
      table_of_(
          tables ? std::move(tables)
                 : [this](const MappedFile& file,
                          const unwind::RowLimits& limits) { return table_of_file(file, *reader_, limits); }),
      reads_mappings_(walker.reads_mappings()),
      published_(walker.modules()),
      most_blocks_(static_cast<std::uint32_t>(budget / kSegmentBytes * TACHO_SEGMENT_BLOCKS)) {
  facts_.budget = budget;
  modules_.emplace_back();
  set_state(kBare, TACHO_MODULE_BARE);
}

UnwindTables::~UnwindTables() {
  (void)end_thread();
  if (thread_.joinable()) thread_.join();
}

bool UnwindTables::end_thread() {
  if (!thread_.joinable()) return true;
  std::unique_lock lock(mutex_);
  is_over_ = true;
  wake();
  return has_ended_.wait_for(lock, kPatienceAtEnd, [this] { return is_thread_over_; });
}

Result<> UnwindTables::start() {
  walker_.set_now(now_);
  if (!grow()) return Error{"the kernel has no memory for unwind tables"};
  news_ = format::Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!news_) return system_error("an eventfd", errno);
  MappedFile vdso;
  vdso.name = "[vdso]";
  if (module_of(vdso) != TACHO_MODULE_OF_VDSO) return Error{"the vdso is not the first module"};
  try {
    thread_ = std::thread([this] { build_tables(); });
  } catch (const std::system_error& refused) {
    return system_error("a thread that builds unwind tables", refused.code().value());
  }
  return Done{};
}

void UnwindTables::wake() const {
  const std::uint64_t one = 1;
  if (news_) (void)!write(news_.get(), &one, sizeof one);
}

std::uint32_t UnwindTables::module_of(const MappedFile& file) {
  if (is_code_of_no_file(file.name)) return kBare;
  const std::lock_guard lock(mutex_);
  const std::uint32_t number = number_of(file, false);
  if (!reads_mappings_ || file.process == 0) return number;
  const MmapKey place{file.process, file.start};
  std::erase_if(open_requests_, [&](const OpenRequest& open) {
    if (MmapKey{open.request.process, open.request.start} != place) return false;
    bind(open.request.key, number);
    return true;
  });
  history_.note(place, number);
  return number;
}

void UnwindTables::forget(std::uint32_t process) {
  const std::lock_guard lock(mutex_);
  history_.forget(process);
}

// Call it with the mutex held. `is_first`: a stack waits for it.
std::uint32_t UnwindTables::number_of(const MappedFile& file, bool is_first) {
  const auto want = [&](std::uint32_t number) {
    modules_[number].is_waiting = true;
    if (is_first)
      wanted_.push_front(number);
    else
      wanted_.push_back(number);
    wake();
    return number;
  };
  const std::string name = identity(file);
  const auto known = numbers_.find(name);
  if (known != numbers_.end()) {
    const std::uint32_t number = known->second;
    Module& module = modules_[number];
    if (!module.is_unopened) return number;
    // The process through which it was opened is gone; this one may still see it.
    module.is_unopened = false;
    module.file = file;
    --facts_.bare;
    set_state(number, TACHO_MODULE_PENDING);
    return want(number);
  }
  const std::uint32_t number = free_number();
  if (number == kBare) return kBare;
  numbers_.emplace(name, number);
  modules_[number].file = file;
  ++facts_.files;
  return want(number);
}

// A number for another module; kBare: there is none. Modules that no stack used for longest are removed, a
// few at a time, if only this class uses their numbers. Call it with the mutex held.
std::uint32_t UnwindTables::free_number() {
  if (modules_.size() < published_.size()) {
    modules_.emplace_back();
    return static_cast<std::uint32_t>(modules_.size() - 1);
  }
  if (!reads_mappings_) return kBare;
  const auto now = std::chrono::steady_clock::now();
  if (resting_.empty()) {
    std::vector<std::uint32_t> old;
    for (std::uint32_t number = TACHO_MODULE_OF_VDSO + 1; number < modules_.size(); ++number)
      if (!modules_[number].is_waiting) old.push_back(number);
    const auto middle = old.begin() + static_cast<std::ptrdiff_t>(std::min(kNumbersAtOnce, old.size()));
    std::ranges::nth_element(old, middle, {},
                             [this](std::uint32_t number) { return published_[number].last_used; });
    old.erase(middle, old.end());
    for (const std::uint32_t number : old) {
      Module& module = modules_[number];
      for (const tacho_file_key& key : module.keys) walker_.remove_file(key);
      numbers_.erase(identity(module.file));
      set_state(number, TACHO_MODULE_PENDING);
      published_[number].last_used = 0;
      if (module.blocks != 0) given_up_.push_back({module.first_block, module.blocks});
      module = {};
      resting_.emplace_back(now, number);
    }
    history_.forget_modules({old.begin(), old.end()});
  }
  if (resting_.empty() || now - resting_.front().first < IdRangeAllocator::kQuarantine) return kBare;
  const std::uint32_t number = resting_.front().second;
  resting_.pop_front();
  return number;
}

// The program finds the module by this key from now on. Call it with the mutex held.
void UnwindTables::bind(const tacho_file_key& key, std::uint32_t number) {
  if (number != kBare) {
    std::vector<tacho_file_key>& keys = modules_[number].keys;
    const auto is_key = [&key](const tacho_file_key& each) {
      return std::memcmp(&each, &key, sizeof key) == 0;
    };
    if (std::ranges::none_of(keys, is_key)) {
      if (keys.size() == kMostKeysOfModule) {
        walker_.remove_file(keys.front());
        keys.erase(keys.begin());
      }
      keys.push_back(key);
    }
    if (walker_.set_file(key, number)) return;
  }
  walker_.remove_file(key);  // the program will ask again
}

void UnwindTables::look_at(std::span<const int> processes) {
  const std::lock_guard lock(mutex_);
  processes_.insert(processes_.end(), processes.begin(), processes.end());
  wake();
}

void UnwindTables::look_no_further() {
  const std::lock_guard lock(mutex_);
  processes_.clear();
}

bool UnwindTables::wait(milliseconds patience) {
  std::unique_lock lock(mutex_);
  return is_idle_.wait_for(lock, patience,
                           [&] { return wanted_.empty() && processes_.empty() && !is_building_; });
}

bool UnwindTables::wait_for(std::uint32_t number, milliseconds patience) {
  std::unique_lock lock(mutex_);
  return is_built_.wait_for(lock, patience, [&] { return !modules_[number].is_waiting; });
}

TableFacts UnwindTables::facts() {
  const std::lock_guard lock(mutex_);
  return facts_;
}

void UnwindTables::build_tables() {
  (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);
  // This thread opens files that any user may have made.
  (void)drop_rights({.reads_binaries = true}, "");
  auto second = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  while (!is_over_) {
    if (wanted_.empty() && processes_.empty()) wait_for_work(lock);
    if (std::chrono::steady_clock::now() - second >= std::chrono::seconds(1)) {
      second = std::chrono::steady_clock::now();
      walker_.set_now(++now_);
    }
    if (is_over_) break;
    try {
      if (reads_mappings_) serve_file_requests(lock);
    } catch (const std::bad_alloc&) {
      if (!lock.owns_lock()) lock.lock();  // those files are walked by frame pointers
    }
    if (wanted_.empty() && !processes_.empty()) {
      const int process = processes_.front();
      processes_.pop_front();
      is_building_ = true;
      lock.unlock();
      try {
        look_at_one(process);
      } catch (const std::bad_alloc&) {
        // Its stacks are walked by frame pointers.
      }
      if (!lock.owns_lock()) lock.lock();
      is_building_ = false;
      continue;
    }
    if (wanted_.empty()) {
      try {
        ask_for_evicted();
      } catch (const std::bad_alloc&) {
        // Tries again later.
      }
      continue;
    }
    const std::uint32_t number = take_wanted();
    if (!modules_[number].is_waiting) continue;
    is_building_ = true;
    const auto begin = thread_cpu_time();
    try {
      const MappedFile file = modules_[number].file;
      lock.unlock();
      build(number, file);
    } catch (const std::bad_alloc&) {
      set_state(number, TACHO_MODULE_BARE);
    }
    const auto taken = thread_cpu_time() - begin;
    if (!lock.owns_lock()) lock.lock();
    is_building_ = false;
    has_built_ = true;
    modules_[number].is_waiting = false;
    is_built_.notify_all();
    facts_.building += std::chrono::duration_cast<std::chrono::microseconds>(taken);
    facts_.bytes = blocks_.taken() * sizeof(tacho_unwind_block);
  }
  is_thread_over_ = true;
  has_ended_.notify_all();
}

// The module whose table is built next: the one that stacks need now, or else the first. Call it with the
// mutex held.
std::uint32_t UnwindTables::take_wanted() {
  const auto next = std::ranges::max_element(
      wanted_, {}, [this](std::uint32_t number) { return published_[number].last_used; });
  const std::uint32_t number = *next;
  wanted_.erase(next);
  return number;
}

// Waits for a wake-up or a file request, or until it is time to check for evicted tables that are needed
// again.
void UnwindTables::wait_for_work(std::unique_lock<std::mutex>& lock) {
  is_idle_.notify_all();
  lock.unlock();
  // glibc would keep the memory that building needed: 25 MB after libc and cc1plus, more after libLLVM.
  if (std::exchange(has_built_, false)) ::malloc_trim(0);
  std::array<pollfd, 2> fds{
      {{news_.get(), POLLIN, 0}, {reads_mappings_ ? walker_.file_requests_fd() : -1, POLLIN, 0}}};
  (void)poll(fds.data(), fds.size(), static_cast<int>(kLook.count()));
  std::uint64_t count = 0;
  (void)!read(news_.get(), &count, sizeof count);
  lock.lock();
}

// Files are read without the mutex: one that does not answer takes a while.
void UnwindTables::serve_file_requests(std::unique_lock<std::mutex>& lock) {
  std::vector<tacho_file_request> requests;
  walker_.take_file_requests([&requests](const tacho_file_request& request) { requests.push_back(request); });
  for (const tacho_file_request& request : requests) {
    lock.unlock();
    const auto file = requested_file(request, *reader_);
    lock.lock();
    if (is_over_) return;
    ++facts_.asked;
    if (file) {
      bind(request.key, number_of(*file, true));
    } else if (const auto known = history_.module_at({request.process, request.start})) {
      bind(request.key, *known);
    } else {
      open_requests_.push_back({request, std::chrono::steady_clock::now()});
    }
  }
  const auto now = std::chrono::steady_clock::now();
  while (!open_requests_.empty() && (open_requests_.size() > kMostOpenRequests ||
                                     now - open_requests_.front().since >= kRequestTimeout)) {
    walker_.remove_file(open_requests_.front().request.key);
    open_requests_.pop_front();
  }
}

// Builds tables of all files that a process maps. A file mapped by many is opened once.
void UnwindTables::look_at_one(int process) {
  each_code_mapping(static_cast<std::uint32_t>(process), *reader_, [this](const format::MmapRecord& mapping) {
    MappedFile file = file_of(mapping);
    if (mapping.inode == 0 || is_code_of_no_file(file.name) || !seen_.insert(identity(file)).second)
      return true;
    if (seen_.size() > kMostSeen) seen_.clear();
    if (auto opened = open_binary(file, *reader_)) know(file, *opened);
    const std::lock_guard lock(mutex_);
    (void)number_of(file, false);
    return true;
  });
}

void UnwindTables::build(std::uint32_t number, const MappedFile& file) {
  const auto begin = thread_cpu_time();
  std::uint32_t looks = 0;  // checked for each function: reading the clock costs as much as one
  const auto stop = [&] {
    return is_over_ || (++looks % kLooksPerClock == 0 && thread_cpu_time() - begin > kMostCpu);
  };
  const auto table = table_of_(file, {.stop = stop});
  const bool has_rows = table && !table->rows.rows.empty() && publish(number, table->rows);
  if (!has_rows) set_state(number, TACHO_MODULE_BARE);
  const std::lock_guard lock(mutex_);
  if (reads_mappings_ && table && table->key) bind(*table->key, number);
  if (has_rows) return;
  ++facts_.bare;
  modules_[number].is_unopened = !table && table.error().code == kNotOpened;
}

bool UnwindTables::publish(std::uint32_t number, const unwind::RowTable& table) {
  constexpr unwind::Row kEnd{std::numeric_limits<std::uint32_t>::max(), 0, 0, TACHO_UNWIND_NOTHING};
  const auto blocks =
      static_cast<std::uint32_t>((table.rows.size() + TACHO_BLOCK_ROWS - 1) / TACHO_BLOCK_ROWS);
  const auto first = room_for(blocks);
  if (!first) return false;
  for (std::uint32_t block = 0; block < blocks; ++block) {
    const std::uint32_t place = *first + block;
    tacho_unwind_block& to = segments_[place / TACHO_SEGMENT_BLOCKS][place % TACHO_SEGMENT_BLOCKS];
    const auto from = std::span(table.rows).subspan(std::size_t{block} * TACHO_BLOCK_ROWS);
    const auto count = std::min<std::size_t>(from.size(), TACHO_BLOCK_ROWS);
    const auto end = std::ranges::copy(from.first(count), std::begin(to.rows)).out;
    std::fill(end, std::end(to.rows), kEnd);
  }
  tacho_unwind_module& module = published_[number];
  module.base = table.base;
  module.first_block = *first;
  module.blocks = blocks;
  module.last_used = now_;
  set_state(number, TACHO_MODULE_READY);
  const std::lock_guard lock(mutex_);
  modules_[number].first_block = *first;
  modules_[number].blocks = blocks;
  return true;
}

std::optional<std::uint32_t> UnwindTables::room_for(std::uint32_t blocks) {
  if (blocks > most_blocks_) return std::nullopt;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [first, count] : given_up_)
      blocks_.give_back(first, count, IdRangeAllocator::Clock::now());
    given_up_.clear();
  }
  for (;;) {
    const auto found = blocks_.take_range(blocks, IdRangeAllocator::Clock::now());
    if (found || is_over_) return found;
    if (grow()) continue;
    // Evicts all at once, and some more for the next tables, because other tables wait each time. Freed
    // blocks may be scattered: nearly all tables would have to be evicted until enough blocks were adjacent.
    while (!blocks_.will_have(blocks, most_blocks_ / kEvictedPart) && evict_one()) continue;
    if (!blocks_.will_have(blocks)) return std::nullopt;
    std::this_thread::sleep_for(IdRangeAllocator::kQuarantine);  // until no walk uses them any more
  }
}

bool UnwindTables::grow() {
  bool has_grown = false;
  for (std::uint32_t i = 0; i < kSegmentsAtOnce; ++i) {
    if (blocks_.size() + TACHO_SEGMENT_BLOCKS > most_blocks_) break;
    const auto segment = walker_.add_segment();
    if (!segment) break;
    segments_.push_back(*segment);
    blocks_.grow(TACHO_SEGMENT_BLOCKS);
    has_grown = true;
  }
  return has_grown;
}

// Evicts the table that no stack used for longest.
bool UnwindTables::evict_one() {
  const std::lock_guard lock(mutex_);
  std::uint32_t oldest = 0;
  for (std::uint32_t number = 1; number < modules_.size(); ++number) {
    if (modules_[number].blocks == 0) continue;
    if (oldest == 0 || published_[number].last_used < published_[oldest].last_used) oldest = number;
  }
  if (oldest == 0) return false;
  set_state(oldest, TACHO_MODULE_PENDING);
  published_[oldest].last_used = 0;
  blocks_.give_back(modules_[oldest].first_block, modules_[oldest].blocks, IdRangeAllocator::Clock::now());
  modules_[oldest].blocks = 0;
  ++facts_.evicted;
  return true;
}

// Requests tables that were evicted and are needed by stacks. Call it with the mutex held.
void UnwindTables::ask_for_evicted() {
  for (std::uint32_t number = 1; number < modules_.size(); ++number) {
    const tacho_unwind_module& module = published_[number];
    if (module.state != TACHO_MODULE_PENDING || module.last_used + 1 < now_ || module.last_used == 0)
      continue;
    modules_[number].is_waiting = true;
    wanted_.push_back(number);
  }
}

// Release order: a reader that sees the state also sees what was written before.
void UnwindTables::set_state(std::uint32_t number, std::uint32_t state) {
  std::atomic_ref(published_[number].state).store(state, std::memory_order_release);
}

}  // namespace tacho::record
