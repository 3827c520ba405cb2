#include "record/stacks/deferred_unwinder.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <new>
#include <system_error>
#include <utility>

#include "format/base/file.h"
#include "record/host/attachments.h"
#include "record/host/host.h"
#include "record/host/process_maps.h"
#include "record/host/running_processes.h"
#include "unwind/unwind_row.h"

namespace tacho::record {
namespace {

constexpr std::size_t kMostOpen = 256, kMostOpenBytes = std::size_t{64} << 20;
constexpr std::chrono::seconds kIdle{2}, kPatienceWithThread{2};
constexpr int kDeferredNice = -10;  // stacks wait for it in memory, of which there is a limit
// CPU time for one stack: most need some microseconds, the first one in a compiler a few milliseconds.
constexpr std::chrono::milliseconds kMostTime{20};
constexpr std::chrono::milliseconds kMostTimeOfFile{200};  // to list the rules of a file without an index

const tacho_code_range* range_at(const CodeMaps::Ranges& ranges, std::uint64_t address) {
  const auto after = std::ranges::upper_bound(ranges, address, {}, &tacho_code_range::start);
  if (after == ranges.begin()) return nullptr;
  const tacho_code_range& found = *std::prev(after);
  return address < found.end ? &found : nullptr;
}

// Anonymous code never has a table: all of it has one name.
std::string name_of(const MappedFile& file) {
  return is_code_of_no_file(file.name) ? std::string("//") : identity(file);
}

}  // namespace

DeferredUnwinder::DeferredUnwinder(std::size_t most_frames, std::shared_ptr<ForeignReader> reader,
                                   ImageOf images)
    : most_frames_(most_frames),
      reader_(std::move(reader)),
      image_of_(images ? std::move(images) : [this](const MappedFile& file) -> Result<unwind::ElfImage> {
        if (file.name == "[vdso]") return unwind::ElfImage::in_memory(own_vdso());
        auto opened = open_binary(file, *reader_);
        if (!opened) return std::move(opened.error());
        return image_of_file(std::move(*opened));
      }) {}

Result<> DeferredUnwinder::start() {
  try {
    thread_ = std::thread([self = shared_from_this()] { self->unwind_stacks(); });
  } catch (const std::system_error& refused) {
    return system_error("a thread that finishes stacks", refused.code().value());
  }
  return Done{};
}

void DeferredUnwinder::end_thread() {
  if (!thread_.joinable()) return;
  std::unique_lock lock(mutex_);
  is_over_ = true;
  is_given_up_ = true;
  has_work_.notify_all();
  const bool has_ended = has_ended_.wait_for(lock, kPatienceWithThread, [this] { return is_thread_over_; });
  lock.unlock();
  if (has_ended) {
    thread_.join();
  } else {
    thread_.detach();  // it shares ownership of what it uses
  }
}

std::uint32_t DeferredUnwinder::number_of(const MappedFile& file) {
  std::string name = name_of(file);
  const std::lock_guard lock(mutex_);
  if (const auto known = numbers_.find(name); known != numbers_.end()) return known->second;
  if (order_.size() == kMostFiles) {
    const auto oldest = files_.find(order_.front());
    numbers_.erase(name_of(oldest->second));
    files_.erase(oldest);
    order_.pop_front();
  }
  const std::uint32_t number = ++last_number_;
  files_.emplace(number, file);
  order_.push_back(number);
  numbers_.emplace(std::move(name), number);
  return number;
}

MappedFile DeferredUnwinder::mapped_file(std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  const auto known = files_.find(number);
  return known == files_.end() ? MappedFile{} : known->second;
}

void DeferredUnwinder::give_stacks(Stacks stacks) {
  if (stacks.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    while (!stacks.empty() && waiting_.size() < kMostWaiting)
      waiting_.splice(waiting_.end(), stacks, stacks.begin());
    done_.splice(done_.end(), stacks);
  }
  has_work_.notify_all();
}

void DeferredUnwinder::give_up_stacks() {
  const std::lock_guard lock(mutex_);
  if (!begun_.empty()) is_given_up_ = true;
  done_.splice(done_.end(), begun_);
  done_.splice(done_.end(), waiting_);
}

DeferredUnwinder::Stacks DeferredUnwinder::take_finished() {
  const std::lock_guard lock(mutex_);
  return std::exchange(done_, {});
}

void DeferredUnwinder::unwind_stacks() {
  // This thread opens files that any user may have made.
  (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kDeferredNice);
  (void)drop_rights({.reads_binaries = true}, "");
  std::unique_lock lock(mutex_);
  for (;;) {
    const bool has_news = has_work_.wait_for(lock, kIdle, [this] { return is_over_ || !waiting_.empty(); });
    if (is_over_) break;
    if (!has_news) {  // tables stay valid while work comes
      open_.clear();
      continue;
    }
    try {
      Work work = begin_next();
      const bool is_last = waiting_.empty();
      lock.unlock();
      finish_unwind(work.walk, work.copy, most_frames_,
                    [&](std::uint64_t address, bool is_return, std::uint16_t& end) {
                      return row_at(work, address, is_return, end);
                    });
      if (is_last) {  // files that could not be found may exist by then
        looked_up_.clear();
        std::erase_if(open_, [](const auto& each) { return !each.second.rows && !each.second.is_bare; });
      }
      lock.lock();
      if (!begun_.empty()) begun_.front().sample.walk = std::move(work.walk);
    } catch (const std::bad_alloc&) {
      open_.clear();  // the stack stays as the BPF walk left it
      if (!lock.owns_lock()) lock.lock();
    }
    done_.splice(done_.end(), begun_);  // empty if it was given up
  }
  is_thread_over_ = true;
  has_ended_.notify_all();
}

DeferredUnwinder::Work DeferredUnwinder::begin_next() {
  begun_.splice(begun_.end(), waiting_, waiting_.begin());
  is_given_up_ = is_over_;
  Stack& stack = begun_.front();
  return {stack.sample.walk, std::move(stack.copy), std::move(stack.maps), stack.sample.process,
          thread_cpu_time()};
}

// A file may have any content, and a hostile one takes any time.
bool DeferredUnwinder::shall_stop(const Work& work) const {
  return is_given_up_ || thread_cpu_time() - work.begin > kMostTime;
}

const tacho_code_range* DeferredUnwinder::mapped_at(const Work& work, std::uint64_t address) {
  const tacho_code_range* const range = work.maps.ranges ? range_at(*work.maps.ranges, address) : nullptr;
  if (range != nullptr || !work.maps.is_now) return range;  // the process runs another program now
  if (!looked_up_.contains(work.process) && looked_up_.size() < kMostLookedUp)
    looked_up_[work.process] = ranges_of_running(work.process);
  const auto now = looked_up_.find(work.process);
  return now == looked_up_.end() ? nullptr : range_at(now->second, address);
}

std::optional<unwind::RowFinder::Found> DeferredUnwinder::row_at(const Work& work, std::uint64_t address,
                                                                 bool is_return, std::uint16_t& end) {
  const tacho_code_range* const range = mapped_at(work, address);
  // Checked even if no time is left: a guessed return address that is not code must not stay in the stack.
  end = range == nullptr ? TACHO_END_NO_MAPPING : TACHO_END_NO_TABLE;
  if (range == nullptr || shall_stop(work)) return std::nullopt;
  File& file = opened_file(*range, work.process);
  if (!file.rows && !file.is_bare) return std::nullopt;
  file.last_used = ++uses_;
  if (!file.rows) return unwind::RowFinder::Found{{0, 0, 0, TACHO_UNWIND_NOTHING}};
  return file.rows->row_at_offset(address - range->bias - (is_return ? 1 : 0));
}

CodeMaps::Ranges DeferredUnwinder::ranges_of_running(std::uint32_t process) {
  CodeMaps::Ranges ranges;
  each_code_mapping(process, *reader_, [&](const format::MmapRecord& mapping) {
    const MappedFile file = file_of(mapping);
    const std::uint32_t module =
        is_code_of_no_file(file.name) ? TACHO_MODULE_OF_NO_FILE : TACHO_MODULE_REQUESTED;
    ranges.push_back({file.start, file.end, file.start - mapping.page_offset, module, number_of(file)});
    return ranges.size() < TACHO_MOST_RANGES_OF_PROCESS;
  });
  return ranges;
}

DeferredUnwinder::File& DeferredUnwinder::opened_file(const tacho_code_range& range, std::uint32_t process) {
  if (const auto known = open_.find(range.file); known != open_.end()) return known->second;
  make_room();
  File& made = open_[range.file];
  MappedFile file = mapped_file(range.file);
  if (file.name.empty()) return made;
  if (is_code_of_no_file(file.name)) {
    made.is_bare = true;
    return made;
  }
  file.process = process;
  file.start = range.start;
  file.end = range.end;
  const auto image = image_of_(file);
  if (!image) {
    made.is_bare = image.error().code != kNotOpened;
    return made;
  }
  const auto debug = file.name == "[vdso]" ? std::nullopt : debug_image_of(file, *image, *reader_);
  const auto begin = thread_cpu_time();
  auto rows = unwind::RowFinder::create(
      *image, [&] { return is_given_up_ || thread_cpu_time() - begin > kMostTimeOfFile; },
      debug ? &*debug : nullptr);
  made.is_bare = !rows && !is_given_up_;
  if (rows) made.rows = std::move(*rows);
  return made;
}

void DeferredUnwinder::make_room() {
  const auto bytes_of = [](const File& file) { return file.rows ? file.rows->bytes() : 0; };
  std::size_t bytes = 0;  // since the last time, rows were made
  for (const auto& [number, file] : open_) bytes += bytes_of(file);
  while (!open_.empty() && (open_.size() >= kMostOpen || bytes >= kMostOpenBytes)) {
    const auto oldest =
        std::ranges::min_element(open_, {}, [](const auto& each) { return each.second.last_used; });
    bytes -= bytes_of(oldest->second);
    open_.erase(oldest);
  }
}

}  // namespace tacho::record
