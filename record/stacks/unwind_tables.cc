#include "record/stacks/unwind_tables.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <limits>
#include <new>
#include <system_error>
#include <utility>

#include "format/file.h"
#include "record/host/attachments.h"
#include "record/host/rights.h"
#include "unwind/elf_image.h"

namespace tacho::record {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kHeadOfBinary = std::size_t{64} << 10;  // holds the build id
constexpr std::uint64_t kSegmentBytes = TACHO_SEGMENT_BLOCKS * sizeof(tacho_unwind_block);
constexpr std::uint32_t kSegmentsAtOnce = 2;
constexpr milliseconds kLook{50};                            // evicted tables that are wanted again
constexpr std::chrono::nanoseconds kMostCpu{5'000'000'000};  // for one file; libclang takes 0.4 s
constexpr std::size_t kMostCodeSegments = 256;               // linkers make one or two
constexpr int kNotOpened = ENOENT;
constexpr int kNice = -5;  // the stacks of what just began wait for it

std::chrono::nanoseconds cpu_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

// What makes two mappings those of one file.
std::string identity(const MappedFile& file) {
  if (file.name == "[vdso]") return file.name;
  if (!file.build_id.empty()) return file.build_id.hex();
  return fmt::format("{}:{}:{}", file.major, file.minor, file.inode);
}

bool is_the_same(const format::Fd& opened, const MappedFile& file) {
  if (file.build_id.empty()) {
    struct stat info {};
    return fstat(opened.get(), &info) == 0 && info.st_ino == file.inode;
  }
  const auto head = format::read_at(opened.get(), 0, kHeadOfBinary);
  const auto id = head ? format::build_id_in_elf(*head) : std::nullopt;
  return id && *id == file.build_id;
}

// The mapping itself, which is right also for deleted files; its path as the process sees it; the path here,
// when the process is gone.
Result<unwind::ElfImage> open_image(const MappedFile& file, const std::string& proc) {
  const std::string folder = fmt::format("{}/{}", proc, file.process);
  for (const std::string& path : {fmt::format("{}/map_files/{:x}-{:x}", folder, file.start, file.end),
                                  folder + "/root" + file.name, file.name}) {
    auto opened = format::open_input(path);
    if (opened && is_the_same(*opened, file)) return unwind::ElfImage::open(std::move(*opened));
  }
  return Error{file.name + ": cannot be opened", kNotOpened};
}

// From ELF addresses to places in the file. Segments with code mostly lie in it as they do in memory.
void count_from_file(unwind::RowTable& table, const unwind::ElfImage& image) {
  const auto segments = image.code_segments();
  if (segments.empty() || table.rows.empty()) return;
  if (segments.size() > kMostCodeSegments) {
    table.rows.clear();
    return;
  }
  const auto shift = [](const unwind::ElfImage::Code& code) { return code.address - code.offset; };
  const bool is_even = std::ranges::all_of(
      segments, [&](const auto& segment) { return shift(segment) == shift(segments.front()); });
  if (is_even) {
    table.base -= shift(segments.front());
    return;
  }
  std::vector<unwind::Row> moved;
  const std::uint64_t old_base = table.base;
  table.base = 0;
  for (const unwind::Row& row : table.rows) {
    const std::uint64_t address = old_base + row.pc;
    for (const auto& segment : segments) {
      if (address < segment.address || address > segment.address + segment.size) continue;
      const std::uint64_t place = address - shift(segment);
      if (place >= std::numeric_limits<std::uint32_t>::max()) continue;
      moved.push_back(row);
      moved.back().pc = static_cast<std::uint32_t>(place);
      if (address < segment.address + segment.size) break;
    }
  }
  std::ranges::stable_sort(moved, {}, &unwind::Row::pc);
  table.rows = std::move(moved);
}

}  // namespace

Result<unwind::RowTable> table_of_file(const MappedFile& file, const unwind::RowLimits& limits,
                                       const std::string& proc) {
  auto image = file.name == "[vdso]" ? unwind::ElfImage::in_memory(own_vdso()) : open_image(file, proc);
  if (!image) return std::move(image.error());
  auto table = unwind::row_table_of(*image, limits);
  if (!table) return std::move(table.error()).in(file.name);
  count_from_file(*table, *image);
  return table;
}

UnwindTables::UnwindTables(bpf::StackWalker& walker, std::uint64_t budget)
    : walker_(walker),
      published_(walker.modules()),
      most_blocks_(static_cast<std::uint32_t>(budget / kSegmentBytes * TACHO_SEGMENT_BLOCKS)) {
  facts_.budget = budget;
  modules_.emplace_back();
  set_state(kBare, TACHO_MODULE_BARE);
}

UnwindTables::~UnwindTables() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  has_work_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Result<> UnwindTables::start() {
  walker_.set_now(now_);
  if (!grow()) return Error{"the kernel has no memory for unwind tables"};
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& refused) {
    return system_error("a thread that builds unwind tables", refused.code().value());
  }
  return Done{};
}

std::uint32_t UnwindTables::module_of(const MappedFile& file) {
  if (!file.name.starts_with('/') && file.name != "[vdso]") return kBare;
  if (file.name.starts_with("//anon") || file.name.starts_with("/dev/") || file.name.starts_with("/memfd:") ||
      file.name.starts_with("/SYSV"))
    return kBare;
  const std::lock_guard lock(mutex_);
  const auto [known, is_new] =
      numbers_.try_emplace(identity(file), static_cast<std::uint32_t>(modules_.size()));
  if (!is_new) {
    Module& module = modules_[known->second];
    if (!module.is_unopened) return known->second;
    // The process whose view of the file system it was seen in is gone; this one's may still have it.
    module.is_unopened = false;
    module.file = file;
    --facts_.bare;
    set_state(known->second, TACHO_MODULE_PENDING);
    wanted_.push_back(known->second);
    has_work_.notify_one();
    return known->second;
  }
  if (modules_.size() == published_.size()) {
    numbers_.erase(known);
    return kBare;
  }
  const std::uint32_t number = known->second;
  modules_.push_back({file, 0, 0});
  wanted_.push_back(number);
  ++facts_.files;
  has_work_.notify_one();
  return number;
}

bool UnwindTables::wait(milliseconds patience) {
  std::unique_lock lock(mutex_);
  return is_idle_.wait_for(lock, patience, [&] { return wanted_.empty() && !is_building_; });
}

TableFacts UnwindTables::facts() {
  const std::lock_guard lock(mutex_);
  return facts_;
}

void UnwindTables::run() {
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kNice);
  // This thread opens files that anybody may have made.
  (void)drop_rights({.reads_binaries = true}, "");
  auto second = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  while (!is_over_) {
    if (wanted_.empty()) {
      is_idle_.notify_all();
      has_work_.wait_for(lock, kLook, [&] { return is_over_ || !wanted_.empty(); });
    }
    if (std::chrono::steady_clock::now() - second >= std::chrono::seconds(1)) {
      second = std::chrono::steady_clock::now();
      walker_.set_now(++now_);
    }
    if (is_over_) break;
    if (wanted_.empty()) {
      ask_for_evicted();
      continue;
    }
    const std::uint32_t number = wanted_.front();
    wanted_.pop_front();
    const MappedFile file = modules_[number].file;
    is_building_ = true;
    lock.unlock();
    const auto begin = cpu_time();
    try {
      build(number, file);
    } catch (const std::bad_alloc&) {
      set_state(number, TACHO_MODULE_BARE);
    }
    const auto taken = cpu_time() - begin;
    lock.lock();
    is_building_ = false;
    facts_.building += std::chrono::duration_cast<std::chrono::microseconds>(taken);
    facts_.bytes = blocks_.taken() * sizeof(tacho_unwind_block);
  }
}

void UnwindTables::build(std::uint32_t number, const MappedFile& file) {
  const auto begin = cpu_time();
  const auto table = table_of_file(file, {.stop = [&] { return is_over_ || cpu_time() - begin > kMostCpu; }});
  if (table && !table->rows.empty() && publish(number, *table)) return;
  set_state(number, TACHO_MODULE_BARE);
  const std::lock_guard lock(mutex_);
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
  for (;;) {
    const auto found = blocks_.take(blocks, NumberRuns::Clock::now());
    if (found || (is_over_)) return found;
    if (grow()) continue;
    if (!evict_one()) return std::nullopt;
    std::this_thread::sleep_for(NumberRuns::kRest);  // until no walk is in it any more
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

// The table that no stack led through for longest.
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
  blocks_.give_back(modules_[oldest].first_block, modules_[oldest].blocks, NumberRuns::Clock::now());
  modules_[oldest].blocks = 0;
  ++facts_.evicted;
  return true;
}

// A stack led to code whose table had to go. With the mutex held.
void UnwindTables::ask_for_evicted() {
  for (std::uint32_t number = 1; number < modules_.size(); ++number) {
    const tacho_unwind_module& module = published_[number];
    if (module.state == TACHO_MODULE_PENDING && module.last_used + 1 >= now_ && module.last_used != 0)
      wanted_.push_back(number);
  }
}

// What was written before is there for whoever sees the state.
void UnwindTables::set_state(std::uint32_t number, std::uint32_t state) {
  std::atomic_ref(published_[number].state).store(state, std::memory_order_release);
}

}  // namespace tacho::record
