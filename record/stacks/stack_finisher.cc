#include "record/stacks/stack_finisher.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <new>
#include <string_view>
#include <system_error>
#include <utility>

#include "format/file.h"
#include "record/host/attachments.h"
#include "record/host/rights.h"
#include "record/host/running_processes.h"

namespace tacho::record {
namespace {

constexpr std::size_t kMostOpen = 256, kMostOpenBytes = std::size_t{64} << 20;
constexpr std::chrono::seconds kIdle{2};
constexpr std::size_t kMostLookedUp = 64;  // processes, in one go

const tacho_code_range* range_at(const CodeMaps::Ranges& ranges, std::uint64_t address) {
  const auto after = std::ranges::upper_bound(ranges, address, {}, &tacho_code_range::start);
  if (after == ranges.begin()) return nullptr;
  const tacho_code_range& found = *std::prev(after);
  return address < found.end ? &found : nullptr;
}

// What is no file has no table wherever it is: one name does for all of it.
std::string name_of(const MappedFile& file) {
  return is_code_of_no_file(file.name) ? std::string("//") : identity(file);
}

Result<unwind::ElfImage> image_of(const MappedFile& file) {
  if (file.name == "[vdso]") return unwind::ElfImage::in_memory(own_vdso());
  auto opened = open_binary(file);
  if (!opened) return std::move(opened.error());
  return unwind::ElfImage::open(std::move(*opened));
}

}  // namespace

StackFinisher::~StackFinisher() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  has_work_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Result<> StackFinisher::start() {
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& refused) {
    return system_error("a thread that finishes stacks", refused.code().value());
  }
  return Done{};
}

std::uint32_t StackFinisher::number_of(const MappedFile& file) {
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

MappedFile StackFinisher::mapped_file(std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  const auto known = files_.find(number);
  return known == files_.end() ? MappedFile{} : known->second;
}

void StackFinisher::give(std::vector<Stack> stacks) {
  if (stacks.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    waiting_.insert(waiting_.end(), std::make_move_iterator(stacks.begin()),
                    std::make_move_iterator(stacks.end()));
  }
  has_work_.notify_all();
}

void StackFinisher::give_up() {
  const std::lock_guard lock(mutex_);
  done_.insert(done_.end(), std::make_move_iterator(waiting_.begin()),
               std::make_move_iterator(waiting_.end()));
  waiting_.clear();
}

std::vector<StackFinisher::Stack> StackFinisher::take_done() {
  const std::lock_guard lock(mutex_);
  return std::exchange(done_, {});
}

void StackFinisher::run() {
  // This thread opens files that anybody may have made.
  (void)drop_rights({.reads_binaries = true}, "");
  std::unique_lock lock(mutex_);
  for (;;) {
    const bool has_news = has_work_.wait_for(lock, kIdle, [this] { return is_over_ || !waiting_.empty(); });
    if (is_over_) return;
    if (!has_news) {  // tables are there meanwhile
      open_.clear();
      open_bytes_ = 0;
      continue;
    }
    Stack stack = std::move(waiting_.front());
    waiting_.pop_front();
    const bool is_last = waiting_.empty();
    lock.unlock();
    try {
      finish(stack);
    } catch (const std::bad_alloc&) {
      open_.clear();  // the stack stays as the kernel's walk left it
      open_bytes_ = 0;
    }
    if (is_last) {  // others may find what could not be found just now
      looked_up_.clear();
      std::erase_if(open_, [](const auto& each) { return !each.second.rows && !each.second.is_bare; });
    }
    lock.lock();
    stack.copy.bytes = {};
    done_.push_back(std::move(stack));
  }
}

void StackFinisher::finish(Stack& stack) {
  walk_rest(stack.sample.walk, stack.copy, most_frames_,
            [&](std::uint64_t address, bool is_return, std::uint16_t& end) {
              return row_at(stack, address, is_return, end);
            });
}

std::optional<unwind::RowFinder::Found> StackFinisher::row_at(const Stack& stack, std::uint64_t address,
                                                              bool is_return, std::uint16_t& end) {
  const tacho_code_range* range = stack.ranges ? range_at(*stack.ranges, address) : nullptr;
  if (range == nullptr) {
    const std::uint32_t process = stack.sample.process;
    if (!looked_up_.contains(process) && looked_up_.size() < kMostLookedUp)
      looked_up_[process] = ranges_of_running(process);
    const auto now = looked_up_.find(process);
    if (now != looked_up_.end()) range = range_at(*now->second, address);
  }
  if (range == nullptr) {
    end = TACHO_END_NO_MAPPING;
    return std::nullopt;
  }
  File& file = opened_file(*range, stack.sample.process);
  if (!file.rows && !file.is_bare) {
    end = TACHO_END_NO_TABLE;
    return std::nullopt;
  }
  file.last_used = ++uses_;
  if (!file.rows) return unwind::RowFinder::Found{{0, 0, 0, TACHO_UNWIND_NOTHING}};
  return file.rows->row_at_offset(address - range->bias - (is_return ? 1 : 0));
}

// What a process has mapped now: of those that ran before anybody told of them.
std::shared_ptr<const CodeMaps::Ranges> StackFinisher::ranges_of_running(std::uint32_t process) {
  auto ranges = std::make_shared<CodeMaps::Ranges>();
  const auto maps = format::read_file(fmt::format("/proc/{}/maps", process));
  std::string_view text = maps ? format::as_text(*maps) : std::string_view{};
  while (!text.empty() && ranges->size() < TACHO_MOST_RANGES_OF_PROCESS) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const auto parsed = parse_maps_line(line);
    if (!parsed || !parsed->is_executable) continue;
    MappedFile file = file_of(parsed->mapping);
    file.process = process;
    ranges->push_back({file.start, file.end, file.start - parsed->mapping.page_offset, 0, number_of(file)});
  }
  return ranges;
}

StackFinisher::File& StackFinisher::opened_file(const tacho_code_range& range, std::uint32_t process) {
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
  const auto image = image_of(file);
  if (!image) {
    made.is_bare = image.error().code != kNotOpened;
    return made;
  }
  auto rows = unwind::RowFinder::create(*image);
  made.is_bare = !rows;
  if (!rows) return made;
  open_bytes_ += rows->bytes();
  made.rows = std::move(*rows);
  return made;
}

void StackFinisher::make_room() {
  while (!open_.empty() && (open_.size() >= kMostOpen || open_bytes_ >= kMostOpenBytes)) {
    const auto oldest =
        std::ranges::min_element(open_, {}, [](const auto& each) { return each.second.last_used; });
    if (oldest->second.rows) open_bytes_ -= std::min(open_bytes_, oldest->second.rows->bytes());
    open_.erase(oldest);
  }
}

}  // namespace tacho::record
