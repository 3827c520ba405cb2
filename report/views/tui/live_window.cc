#include "report/views/tui/live_window.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "format/records/perf_abi.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;
using format::Bytes;
using format::RecordView;

constexpr std::uint32_t kKernelPid = ~0U;
constexpr std::size_t kMiscAt = 4, kPidAt = format::kRecordHeaderSize;  // offsets in a record
// Most processes kept. Lost EXIT records leave ended ones; beyond this number the least recently seen are
// removed.
constexpr std::size_t kMostProcesses = std::size_t{1} << 16;
constexpr std::size_t kMostOfKernel = std::size_t{1} << 14;  // mappings
// Most mappings kept of a process. No record says that one is gone; beyond this number those between the
// first half (the program and its libraries) and the last quarter are removed.
constexpr std::size_t kMostMappings = std::size_t{1} << 14;

template <class Number>
void put(std::byte* at, Number value) {
  std::memcpy(at, &value, sizeof value);
}

// Offset of the time in a record other than a sample; 0: it has none.
std::size_t time_offset(const RecordView& view, const format::EventAttr& attr) {
  const std::size_t trailer = format::sample_id_size(attr);
  if (trailer == 0 || !attr.samples(abi::kSampleTime)) return 0;
  const std::size_t before = attr.samples(abi::kSampleTid) ? sizeof(std::uint64_t) : 0;
  if (view.bytes.size() < format::kRecordHeaderSize + trailer) return 0;
  return view.bytes.size() - trailer + before;
}

}  // namespace

void LiveWindow::append(Bytes record) {
  newer_.records.insert(newer_.records.end(), record.begin(), record.end());
}

// A copy of a record that starts with pid and tid, with these ids.
void LiveWindow::append_as(const Kept& kept, std::uint32_t pid, std::uint32_t tid, std::uint64_t time) {
  if (kept.bytes == nullptr) return;
  const std::size_t start = newer_.records.size();
  append(*kept.bytes);
  std::byte* const record = newer_.records.data() + start;
  put(record + kPidAt, pid);
  put(record + kPidAt + sizeof pid, tid);
  if (kept.time_at != 0) put(record + kept.time_at, time);
}

LiveWindow::Process& LiveWindow::process(std::uint32_t pid) {
  Process& one = processes_[pid];
  one.last_record = number_;
  return one;
}

LiveWindow::Thread& LiveWindow::thread(std::uint32_t pid, std::uint32_t tid) {
  const auto known = threads_.find(tid);
  if (known != threads_.end() && known->second.pid == pid) return known->second;
  end_thread(tid);  // of another process: its EXIT record was lost
  ++process(pid).threads;
  Thread& one = threads_[tid];
  one.pid = pid;
  return one;
}

void LiveWindow::begin_thread(std::uint32_t pid, std::uint32_t tid, std::uint32_t parent_pid,
                              std::uint32_t parent_tid) {
  end_thread(tid);  // the EXIT record was lost, or the tid is used again
  Thread from;
  if (const auto parent = threads_.find(parent_tid); parent != threads_.end()) from = parent->second;
  if (pid != parent_pid) {
    const auto parent = processes_.find(parent_pid);
    Process& child = process(pid);
    child.mappings = parent == processes_.end() ? nullptr : parent->second.mappings;
    child.written_in = 0;
  }
  Thread& one = thread(pid, tid);
  one.name = std::move(from.name);
  one.namespaces = std::move(from.namespaces);
  one.has_ended = false;
}

void LiveWindow::end_thread(std::uint32_t tid) {
  const auto one = threads_.find(tid);
  if (one == threads_.end()) return;
  const auto owner = processes_.find(one->second.pid);
  if (owner != processes_.end() && --owner->second.threads == 0) processes_.erase(owner);
  threads_.erase(one);
}

void LiveWindow::take_mapping(const RecordView& view, const Kept& kept) {
  format::Cursor in = view.body();
  const std::uint32_t pid = in.u32(), tid = in.u32();
  const std::uint64_t begin = in.u64(), length = in.u64();
  if (in.failed()) return;
  if (pid == kKernelPid) {
    if (kernel_.size() < kMostOfKernel) kernel_.push_back(kept);
    return append(view.bytes);
  }
  (void)thread(pid, tid);
  Process& owner = process(pid);
  if (owner.mappings == nullptr) {
    owner.mappings = std::make_shared<Mappings>();
  } else if (owner.mappings.use_count() > 1) {
    owner.mappings = std::make_shared<Mappings>(*owner.mappings);
  }
  const std::uint64_t end = begin + length < begin ? ~std::uint64_t{0} : begin + length;
  std::erase_if(*owner.mappings, [&](const Mapping& one) { return one.begin >= begin && one.end <= end; });
  owner.mappings->push_back({begin, end, kept});
  if (owner.mappings->size() > kMostMappings) {
    constexpr auto kQuarter = static_cast<std::ptrdiff_t>(kMostMappings / 4);
    owner.mappings->erase(owner.mappings->begin() + 2 * kQuarter, owner.mappings->begin() + 3 * kQuarter);
  }
  if (owner.written_in == number_) append(view.bytes);
}

void LiveWindow::take_name(const RecordView& view, Kept kept) {
  format::Cursor in = view.body();
  const std::uint32_t pid = in.u32(), tid = in.u32();
  if (in.failed()) return;
  Thread& one = thread(pid, tid);
  Process& owner = process(pid);
  if ((view.misc & abi::kMiscCommExec) != 0) owner.mappings = nullptr;
  if (owner.written_in == number_ && one.written_in == number_) append(view.bytes);
  auto plain = std::make_shared<std::vector<std::byte>>(*kept.bytes);
  put(plain->data() + kMiscAt, static_cast<std::uint16_t>(view.misc & ~abi::kMiscCommExec));
  one.name = {std::move(plain), kept.time_at};
}

// KSYMBOL: registered or unregistered.
void LiveWindow::take_symbol(const RecordView& view, Kept kept) {
  format::Cursor in = view.body();
  const std::uint64_t address = in.u64();
  (void)in.u32();  // its length
  (void)in.u16();  // its type
  const bool is_gone = (in.u16() & 1U) != 0;
  if (in.failed()) return;
  if (is_gone)
    symbols_.erase(address);
  else if (symbols_.size() < kMostOfKernel)
    symbols_[address] = std::move(kept);
  append(view.bytes);
}

// Writes the records of the sample's process and thread if this half does not have them.
void LiveWindow::append_process(std::uint32_t pid, std::uint32_t tid, std::uint64_t time) {
  Thread& one = thread(pid, tid);
  Process& owner = process(pid);
  const bool has_process = std::exchange(owner.written_in, number_) == number_;
  const auto leader = threads_.find(pid);
  if (!has_process && pid != tid && leader != threads_.end() && leader->second.pid == pid) {
    append_as(leader->second.name, pid, pid, time);
    leader->second.written_in = number_;
  }
  if (std::exchange(one.written_in, number_) != number_) {
    append_as(one.name, pid, tid, time);
    append_as(one.namespaces, pid, tid, time);
  }
  if (!has_process && owner.mappings != nullptr)
    for (const Mapping& mapping : *owner.mappings) append_as(mapping.record, pid, pid, time);
}

void LiveWindow::take_record(const OrderedRecord& record, const format::EventAttr& attr) {
  const RecordView& view = record.view;
  const auto kept = [&] {
    return Kept{std::make_shared<const std::vector<std::byte>>(view.bytes.begin(), view.bytes.end()),
                time_offset(view, attr)};
  };
  format::Cursor in = view.body();
  switch (view.type) {
    case abi::kRecordSample:
      if (const format::Sample* const start = parser_.parse_start(view, attr))
        if (attr.samples(abi::kSampleTid)) append_process(start->pid, start->tid, record.time);
      return append(view.bytes);
    case abi::kRecordMmap:
    case abi::kRecordMmap2:
      return take_mapping(view, kept());
    case abi::kRecordComm:
      return take_name(view, kept());
    case abi::kRecordFork: {
      const std::uint32_t pid = in.u32(), parent_pid = in.u32(), tid = in.u32(), parent_tid = in.u32();
      if (!in.failed()) begin_thread(pid, tid, parent_pid, parent_tid);
      return;
    }
    case abi::kRecordExit: {
      (void)in.u64();
      const std::uint32_t tid = in.u32();
      const auto one = in.failed() ? threads_.end() : threads_.find(tid);
      if (one == threads_.end()) return;
      if (one->second.written_in == number_) append(view.bytes);
      if (!std::exchange(one->second.has_ended, true)) ended_.push_back(tid);
      return;
    }
    case abi::kRecordNamespaces: {
      const std::uint32_t pid = in.u32(), tid = in.u32();
      if (in.failed()) return;
      Thread& one = thread(pid, tid);
      one.namespaces = kept();
      if (one.written_in == number_) append(view.bytes);
      return;
    }
    case abi::kRecordKsymbol:
      return take_symbol(view, kept());
    case abi::kRecordBpfEvent: {
      const std::uint16_t type = in.u16();
      (void)in.u16();
      const std::uint32_t id = in.u32();
      if (in.failed()) return;
      if (type == 2)
        programs_.erase(id);
      else if (programs_.size() < kMostOfKernel)
        programs_[id] = kept();
      return append(view.bytes);
    }
    case abi::kRecordCgroup: {
      const std::uint64_t id = in.u64();
      if (in.failed()) return;
      if (cgroups_.size() < kMostOfKernel) cgroups_[id] = kept();
      return append(view.bytes);
    }
    case abi::kRecordLost:
      (void)in.u64();
      newer_.lost += in.u64();
      return append(view.bytes);
    default:
      return append(view.bytes);
  }
}

void LiveWindow::forget_unseen() {
  if (processes_.size() <= kMostProcesses) return;
  std::vector<std::uint64_t> seen;
  for (const auto& [pid, one] : processes_) seen.push_back(one.last_record);
  const auto middle = seen.begin() + static_cast<std::ptrdiff_t>(seen.size() / 2);
  std::ranges::nth_element(seen, middle);
  const std::uint64_t least = std::min(*middle + 1, number_);
  std::erase_if(processes_, [least](const auto& one) { return one.second.last_record < least; });
  std::erase_if(threads_, [this](const auto& one) { return !processes_.contains(one.second.pid); });
}

// A reader shows records up to the round before the last one, so two FINISHED_ROUND records make it show all.
void LiveWindow::finish_round() {
  std::array<std::byte, format::kRecordHeaderSize> mark{};
  put(mark.data(), static_cast<std::uint32_t>(abi::kRecordFinishedRound));
  put(mark.data() + kMiscAt + sizeof(std::uint16_t), static_cast<std::uint16_t>(mark.size()));
  append(mark);
  append(mark);
  for (const std::uint32_t tid : std::exchange(ended_, {}))
    if (const auto one = threads_.find(tid); one != threads_.end() && one->second.has_ended) end_thread(tid);
}

void LiveWindow::begin_half(Clock::time_point now) {
  ++number_;
  forget_unseen();
  older_ = std::exchange(newer_, {});
  newer_.records.reserve(older_.records.size());
  newer_.begin = now;
  for (const Kept& one : kernel_) append(*one.bytes);
  for (const auto* const table : {&symbols_, &cgroups_, &programs_})
    for (const auto& [key, one] : *table) append(*one.bytes);
}

}  // namespace tacho::report
