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
#include "record/host/running_processes.h"

namespace tacho::record {

namespace {

constexpr std::uint64_t kWordBytes = sizeof(std::uint64_t);
constexpr int kRbx = 3;                                 // DWARF's number of rbx
constexpr int kSignalRbx = 16;                          // words above rsp in a signal frame
constexpr std::uint64_t kFramePointerReach = 0x100000;  // maximum distance to the caller's frame for a guess

class UserStackUnwinder {
 public:
  UserStackUnwinder(CallchainMerger::Walk& walk, const StackCopy& copy, const RowOfAddress& row_of)
      : walk_(walk),
        copy_(copy),
        row_of_(row_of),
        sp_(copy.sp),
        bp_(copy.bp),
        rbx_(copy.rbx),
        is_return_(copy.is_return),
        is_bp_known_(copy.is_bp_known),
        is_rbx_known_(copy.is_rbx_known) {}

  // Moves from the last frame to its caller. False: the walk ended, and its end is set.
  bool step() {
    std::uint16_t end = TACHO_END_NO_MAPPING;
    const auto row = row_of_(walk_.frames.back(), is_return_, end);
    if (!row && is_guess_ && end == TACHO_END_NO_MAPPING) {
      walk_.frames.pop_back();  // not code: a word of the stack, which may be private data
      return ends(TACHO_END_NO_RULE);
    }
    if (!row) return ends(end);
    return follow(row->row, row->rbx);
  }

 private:
  bool ends(std::uint16_t how) {
    walk_.end = how;
    return false;
  }

  std::optional<std::uint64_t> word(std::uint64_t address) const {
    const std::uint64_t offset = address - copy_.sp;
    if (offset >= copy_.bytes.size() || copy_.bytes.size() - offset < kWordBytes) return std::nullopt;
    std::uint64_t value = 0;
    std::memcpy(&value, copy_.bytes.data() + offset, sizeof value);
    return value;
  }
  // `words` above `address`.
  static std::uint64_t above(std::uint64_t address, std::int64_t words) {
    return address + static_cast<std::uint64_t>(words) * kWordBytes;
  }

  bool follow(const tacho_unwind_row& row, std::int8_t rbx) {
    const Saved saved{row.rbp, rbx};
    switch (row.kind) {
      case TACHO_UNWIND_RSP:
        return return_from(above(sp_, row.cfa), saved);
      case TACHO_UNWIND_RBP:
        if (!is_bp_known_) return ends(TACHO_END_ODD_RULE);
        return return_from(above(bp_, row.cfa), saved);
      case kRbx:
        if (!is_rbx_known_) return ends(TACHO_END_ODD_RULE);
        return return_from(above(rbx_, row.cfa), saved);
      case TACHO_UNWIND_PLT: {
        const auto place = static_cast<std::int8_t>(walk_.frames.back() & 15);
        return return_from(above(sp_, row.cfa) + (place >= row.rbp ? kWordBytes : 0),
                           {TACHO_UNWIND_RBP_SAME, rbx});
      }
      case TACHO_UNWIND_AT_RBP: {
        if (!is_bp_known_) return ends(TACHO_END_ODD_RULE);
        const auto cfa = word(above(bp_, row.cfa));
        return cfa ? return_from(*cfa, saved) : ends(TACHO_END_COPY);
      }
      case TACHO_UNWIND_AT_RSP: {
        const auto cfa = word(above(sp_, row.cfa));
        return cfa ? load_caller(*cfa + kWordBytes, saved) : ends(TACHO_END_COPY);
      }
      case TACHO_UNWIND_SIGNAL:
        return leave_signal_frame();
      case TACHO_UNWIND_END:
        return ends(TACHO_END_WHOLE);
      case TACHO_UNWIND_NOTHING:
        return guess();
      default:
        return ends(TACHO_END_ODD_RULE);  // or a register is not in the copy
    }
  }

  // Where the rows say the caller's registers are saved.
  struct Saved {
    std::int8_t rbp, rbx;
  };

  bool return_from(std::uint64_t cfa, Saved saved) {
    return cfa <= sp_ ? ends(TACHO_END_LOOP) : load_caller(cfa, saved);
  }

  bool load_caller(std::uint64_t cfa, Saved saved) {
    const auto caller = word(cfa - kWordBytes);
    if (!caller) return ends(TACHO_END_COPY);
    // Before rbp changes, by which rbx may be found.
    is_rbx_known_ = load(rbx_, is_rbx_known_, cfa, saved.rbx);
    const bool is_bp_lost = saved.rbp == TACHO_UNWIND_RBP_LOST;
    is_bp_known_ = load(bp_, is_bp_known_, cfa, saved.rbp);
    if (!is_bp_known_ && !is_bp_lost && saved.rbp != TACHO_UNWIND_RBP_SAME) return ends(TACHO_END_COPY);
    // The sampled function is in its epilogue, in a way that unwind rules do not describe.
    if (*caller == 0) return ends(walk_.frames.size() == 1 ? TACHO_END_NO_RULE : TACHO_END_WHOLE);
    return go_to(*caller, cfa, true, false);
  }

  // Whether the caller's value becomes known.
  bool load(std::uint64_t& value, bool is_known, std::uint64_t cfa, std::int8_t place) const {
    if (place == TACHO_UNWIND_RBP_SAME) return is_known;
    if (place == TACHO_UNWIND_RBP_LOST || (place > 0 && !is_bp_known_)) return false;
    const auto saved = word(place < 0 ? above(cfa, place) : bp_);
    value = saved.value_or(0);
    return saved.has_value();
  }

  bool leave_signal_frame() {
    const auto ip = word(above(sp_, TACHO_UNWIND_SIGNAL_RIP)), bp = word(above(sp_, TACHO_UNWIND_SIGNAL_RBP)),
               sp = word(above(sp_, TACHO_UNWIND_SIGNAL_RSP)), rbx = word(above(sp_, kSignalRbx));
    if (!ip || !bp || !sp) return ends(TACHO_END_COPY);
    bp_ = *bp;
    rbx_ = rbx.value_or(0);
    is_bp_known_ = true;
    is_rbx_known_ = rbx.has_value();
    walk_.frames.push_back(TACHO_INTERRUPTED);
    return go_to(*ip, *sp, false, false);
  }

  // Code without unwind information may keep a frame pointer.
  bool guess() {
    if (!is_bp_known_ || walk_.frames.size() == 1) return ends(TACHO_END_NO_RULE);  // it may keep none
    if (bp_ == 0) return ends(TACHO_END_FRAME_ZERO);
    if (bp_ % kWordBytes != 0 || bp_ < sp_ || bp_ - sp_ > kFramePointerReach) return ends(TACHO_END_NO_RULE);
    const auto saved = word(bp_), caller = word(bp_ + kWordBytes);
    if (!saved || !caller) return ends(TACHO_END_COPY);
    if (*caller == 0) return ends(TACHO_END_FRAME_ZERO);
    const std::uint64_t sp = bp_ + 2 * kWordBytes;
    bp_ = *saved;
    is_rbx_known_ = false;
    return go_to(*caller, sp, true, true);
  }

  bool go_to(std::uint64_t ip, std::uint64_t sp, bool is_return, bool is_guess) {
    sp_ = sp;
    is_return_ = is_return;
    is_guess_ = is_guess;
    walk_.frames.push_back(ip);
    return true;
  }

  CallchainMerger::Walk& walk_;
  const StackCopy& copy_;
  const RowOfAddress& row_of_;
  std::uint64_t sp_, bp_, rbx_;
  bool is_return_, is_bp_known_, is_rbx_known_, is_guess_ = false;
};

}  // namespace

std::optional<StackCopy> stack_copy_of(format::Bytes written) {
  format::Cursor in(written);
  StackCopy copy;
  copy.number = in.u64();
  copy.sp = in.u64();
  copy.bp = in.u64();
  copy.rbx = in.u64();
  copy.frames = in.u32();
  copy.is_return = in.u8() != 0;
  copy.is_bp_known = in.u8() != 0;
  copy.is_rbx_known = in.u8() != 0;
  copy.part = in.u8();
  if (in.failed() || copy.frames == 0) return std::nullopt;
  const format::Bytes rest = in.take(in.left());
  copy.bytes.assign(rest.begin(), rest.end());
  return copy;
}

bool add_part(StackCopy& copy, const StackCopy& part) {
  if (part.number != copy.number || part.sp != copy.sp + copy.bytes.size()) return false;
  copy.bytes.insert(copy.bytes.end(), part.bytes.begin(), part.bytes.end());
  return true;
}

void finish_unwind(CallchainMerger::Walk& walk, const StackCopy& copy, std::size_t most,
                   const RowOfAddress& row_of) {
  if (copy.frames == 0 || copy.frames > walk.frames.size()) return;
  const CallchainMerger::Walk before = walk;
  walk.frames.resize(copy.frames);
  UserStackUnwinder rest(walk, copy, row_of);
  while (rest.step()) {
    if (walk.frames.size() <= most) continue;
    walk.frames.pop_back();
    walk.end = TACHO_END_CUT;
    break;
  }
  // The kernel's walk may be better: a file may be gone, and the kernel sees the code of functions without
  // unwind information.
  if (walk.end > TACHO_END_FRAME_ZERO && walk.frames.size() < before.frames.size()) walk = before;
}

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
    thread_ = std::thread([self = shared_from_this()] { self->run(); });
  } catch (const std::system_error& refused) {
    return system_error("a thread that finishes stacks", refused.code().value());
  }
  return Done{};
}

void DeferredUnwinder::end() {
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

void DeferredUnwinder::give(Stacks stacks) {
  if (stacks.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    while (!stacks.empty() && waiting_.size() < kMostWaiting)
      waiting_.splice(waiting_.end(), stacks, stacks.begin());
    done_.splice(done_.end(), stacks);
  }
  has_work_.notify_all();
}

void DeferredUnwinder::give_up() {
  const std::lock_guard lock(mutex_);
  if (!begun_.empty()) is_given_up_ = true;
  done_.splice(done_.end(), begun_);
  done_.splice(done_.end(), waiting_);
}

DeferredUnwinder::Stacks DeferredUnwinder::take_done() {
  const std::lock_guard lock(mutex_);
  return std::exchange(done_, {});
}

void DeferredUnwinder::run() {
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

namespace {

using Clock = std::chrono::steady_clock;
// The longest time that a slow file delays the end of a round.
constexpr std::chrono::milliseconds kPatience{1000};

}  // namespace

Result<> DeferredSamples::start() {
  if (auto done = unwinder_->start(); !done) return done;
  source_.begin();
  return Done{};
}

void DeferredSamples::take_copies() {
  source_.take([this](format::Bytes written) {
    auto copy = stack_copy_of(written);
    if (!copy || bytes_ + copy->bytes.size() > kMostBytes) return;  // its sample is written unfinished
    const std::uint64_t number = copy->number;
    const std::size_t size = copy->bytes.size();
    if (copy->part != 0) {
      const auto first = copies_.find(number);
      if (first != copies_.end() && add_part(first->second.stack, *copy)) bytes_ += size;
      return;
    }
    if (copies_.try_emplace(number, Copy{std::move(*copy), pass_}).second) bytes_ += size;
  });
}

// The sideband up to these samples has been read.
void DeferredSamples::give_ripe(const CodeMaps& maps) {
  DeferredUnwinder::Stacks stacks(ripe_.size());  // all memory at once: no sample is lost between two lists
  auto next = stacks.begin();
  for (CallchainMerger::Deferred& sample : ripe_) {
    DeferredUnwinder::Stack& stack = *next++;
    const auto copy = copies_.find(sample.walk.copy);
    if (copy != copies_.end()) {
      stack.copy = std::move(copy->second.stack);
      copies_.erase(copy);
    }
    stack.copied_bytes = stack.copy.bytes.size();
    stack.maps = maps.ranges_at(sample.process, sample.time);
    stack.pass = pass_ - 1;
    stack.sample = std::move(sample);
  }
  ripe_.clear();
  unwinder_->give(std::move(stacks));
  if (const auto held = held_.find(pass_ - 1); held != held_.end() && !held->second.given)
    held->second.given = Clock::now();
  // Copies of samples that were lost or filtered out.
  std::erase_if(copies_, [this](const auto& each) {
    if (each.second.pass + 1 >= pass_) return false;
    bytes_ -= each.second.stack.bytes.size();
    return true;
  });
}

void DeferredSamples::put_done(CallchainMerger& merger, std::vector<std::byte>& records) {
  done_.splice(done_.end(), unwinder_->take_done());
  while (!done_.empty()) {
    const DeferredUnwinder::Stack& stack = done_.front();
    merger.write_finished(stack.sample, records);
    bytes_ -= stack.copied_bytes;
    const auto held = held_.find(stack.pass);
    if (held != held_.end() && --held->second.samples == 0) held_.erase(held);
    done_.pop_front();
  }
}

bool DeferredSamples::waits_too_long() const {
  if (held_.empty()) return false;
  const auto& given = held_.begin()->second.given;
  return given && Clock::now() - *given > kPatience;
}

void DeferredSamples::end_pass(const CodeMaps& maps, CallchainMerger& merger,
                               std::vector<std::byte>& records) {
  try {
    take_copies();
    give_ripe(maps);
    if (!fresh_.empty()) held_[pass_].samples = fresh_.size();
    ripe_ = std::exchange(fresh_, {});
    ++pass_;
    put_done(merger, records);
    if (waits_too_long()) {
      give_up();
      put_done(merger, records);
    }
  } catch (const std::bad_alloc&) {
    // The others wait for the next pass.
  }
}

bool DeferredSamples::end_round() {
  constexpr std::uint64_t kPasses = 2;
  if (round_end_ && !held_.empty() && held_.begin()->first < *round_end_ + kPasses) return false;
  round_end_ = pass_ - 1;
  return true;
}

}  // namespace tacho::record
