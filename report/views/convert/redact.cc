#include "report/views/convert/redact.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>

#include "cli/message_text.h"
#include "format/base/file.h"
#include "format/base/seeded_hash.h"
#include "format/base/text_pool.h"
#include "format/extensions/attachment.h"
#include "format/extensions/symbol_pack.h"
#include "format/records/record.h"
#include "format/records/sample.h"
#include "report/decode/bpf_functions.h"
#include "report/output/output_file.h"
#include "report/samples/session.h"
#include "symbolize/files/decompress.h"
#include "symbolize/frame.h"
#include "symbolize/jit/jitdump.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;
using format::Bytes;
using format::CaptureReader;
using format::EventAttr;
using format::Features;
using format::FieldKind;
using format::RecordView;
using symbolize::ModuleKind;

constexpr std::size_t kCommonFields = 8;  // bytes of every tracepoint: its number, flags and the thread
constexpr std::uint64_t kKernelHalf = std::uint64_t{1} << 63;

struct ByteRange {
  std::size_t begin = 0, size = 0;
};

// The bytes of a field, cut at the end of the payload.
ByteRange bytes_of(const PayloadField& field, std::size_t available) {
  const std::uint64_t begin = field.bit_offset / 8;
  if (begin >= available) return {};
  std::uint64_t bits = field.bit_offset % 8;
  if (is_located(field))
    bits += 32;
  else if (field.count == 0)
    return {static_cast<std::size_t>(begin), available - static_cast<std::size_t>(begin)};
  else
    bits += std::uint64_t{field.bit_size} * field.count;
  return {static_cast<std::size_t>(begin),
          static_cast<std::size_t>(std::min<std::uint64_t>((bits + 7) / 8, available - begin))};
}

bool is_byte_array(const PayloadField& field) { return field.bit_size == 8 && is_list(field); }
bool is_number(const PayloadField& field) {
  return field.kind == FieldKind::Unsigned || field.kind == FieldKind::Signed;
}
// FORMAT("kaddr"), of any sign and size.
bool is_kernel_address(const PayloadField& field) { return field.format == "kaddr" && is_number(field); }
// So may any unsigned number of 64 bits be, as pointers have no FORMAT.
bool can_be_address(const PayloadField& field) {
  return is_kernel_address(field) ||
         (field.bit_size == 64 && field.kind == FieldKind::Unsigned && field.bit_offset % 8 == 0);
}
bool is_whole_word(const PayloadField& field) {
  return field.bit_offset % 8 == 0 && (field.bit_size == 64 || field.bit_size == 32);
}

// Clears the bits of a field in the bytes that it touches.
void clear_bits(const PayloadField& field, std::span<std::byte> bytes) {
  const std::size_t begin = field.bit_offset % 8;
  const std::size_t bits = field.count == 0 ? bytes.size() * 8 : std::size_t{field.bit_size} * field.count;
  for (std::size_t bit = begin; bit < begin + bits && bit / 8 < bytes.size(); ++bit)
    bytes[bit / 8] &= ~(std::byte{1} << (bit % 8));
}

// Fields may overlap (a union), and the last one written counts: fields that stay unchanged come first, then
// others, and texts outside the fixed part at the end.
enum class Step : std::uint8_t { Numbers, Addresses, Bytes };

Step step_of(const PayloadField& field) {
  if (is_byte_array(field)) return Step::Bytes;
  return can_be_address(field) ? Step::Addresses : Step::Numbers;
}

}  // namespace

void PayloadRedaction::hide(std::span<std::byte> bytes, FieldKind kind) {
  if (redaction_->of(Content::Payload) == How::Drop) {
    std::ranges::fill(bytes, std::byte{});
    return;
  }
  if (kind != FieldKind::Text) return aliases_->replace(bytes);
  const std::string alias = aliases_->of(format::text_of(bytes));
  std::ranges::fill(bytes, std::byte{});
  if (bytes.empty()) return;
  std::memcpy(bytes.data(), alias.data(), std::min(alias.size(), bytes.size() - 1));
}

void PayloadRedaction::move_addresses(const PayloadField& field, std::span<std::byte> bytes) {
  if (!can_be_address(field) || !redaction_->hides(Content::Kernel)) return;
  if (!is_whole_word(field)) return clear_bits(field, bytes);  // a part of an address cannot be moved
  if (field.bit_size == 32) {
    // The lower half of an address in the last 4 GiB, where the kernel's code is.
    constexpr std::uint64_t kUpperHalf = std::uint64_t{0xFFFFFFFF} << 32;
    for (std::size_t at = 0; at + sizeof(std::uint32_t) <= bytes.size(); at += sizeof(std::uint32_t)) {
      std::uint32_t low = 0;
      std::memcpy(&low, bytes.data() + at, sizeof low);
      if (low == 0 || (kUpperHalf | low) >= format::abi::kContextMax) continue;
      low = static_cast<std::uint32_t>(kernel_->hidden(kUpperHalf | low, *aliases_));
      std::memcpy(bytes.data() + at, &low, sizeof low);
    }
    return;
  }
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= bytes.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    if (value < kKernelHalf || value >= format::abi::kContextMax) continue;
    value = kernel_->hidden(value, *aliases_);
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
}

// Copies the field's own bytes: for __data_loc, offset and length.
void PayloadRedaction::copy_field(const PayloadField& field, std::span<std::byte> raw) {
  if (field.kind == FieldKind::Text && !is_located(field)) return;
  const ByteRange range = bytes_of(field, raw.size());
  const std::span<std::byte> bytes = raw.subspan(range.begin, range.size);
  std::ranges::copy(std::span(before_).subspan(range.begin, range.size), bytes.begin());
  if (is_byte_array(field)) return hide(bytes, field.kind);
  move_addresses(field, bytes);
}

void PayloadRedaction::hide_text(const PayloadField& field, std::span<std::byte> raw) {
  if (field.kind != FieldKind::Text) return;
  const auto room = room_of_text(field, before_, std::endian::native);
  if (!room || room->empty()) return;
  const std::span<std::byte> to =
      raw.subspan(static_cast<std::size_t>(room->data() - before_.data()), room->size());
  std::ranges::copy(*room, to.begin());
  hide(to, FieldKind::Text);
}

void PayloadRedaction::change(std::size_t event, std::span<std::byte> raw) {
  const PayloadSchema* const schema = schemas_.of(event);
  if (!redaction_->hides(Content::Payload)) {
    if (schema == nullptr) return;
    for (const PayloadField& field : schema->fields) {
      const ByteRange range = bytes_of(field, raw.size());
      move_addresses(field, raw.subspan(range.begin, range.size));
    }
    return;
  }
  before_.assign(raw.begin(), raw.end());
  std::ranges::fill(raw, std::byte{});
  const bool is_tracepoint = (*events_)[event].attr.type == format::abi::kTracepoint;
  if (is_tracepoint) std::copy_n(before_.begin(), std::min(kCommonFields, raw.size()), raw.begin());
  if (schema == nullptr) return;
  for (const Step step : {Step::Numbers, Step::Addresses, Step::Bytes})
    for (const PayloadField& field : schema->fields)
      if (step_of(field) == step) copy_field(field, raw);
  for (const PayloadField& field : schema->fields) hide_text(field, raw);
}

namespace {

constexpr std::uint32_t kKernel = ~std::uint32_t{0};  // its pid in mappings

// perf's own records that may be about several processes.
constexpr std::uint32_t kOfAllProcesses[] = {abi::kRecordThreadMap, abi::kRecordBuildId, abi::kRecordAuxtrace,
                                             abi::kRecordAuxtraceInfo, abi::kRecordAuxtraceError};

std::string_view without_deleted(std::string_view path) {
  constexpr std::string_view kDeleted = " (deleted)";
  if (path.ends_with(kDeleted)) path.remove_suffix(kDeleted.size());
  return path;
}

// The pid in "perf-map/1234" or "/tmp/perf-1234.map"; nullopt: the name has another form.
std::optional<std::uint32_t> pid_in(std::string_view name, std::string_view before, std::string_view after) {
  if (!name.starts_with(before) || !name.ends_with(after) || name.size() < before.size() + after.size())
    return std::nullopt;
  name.remove_prefix(before.size());
  name.remove_suffix(after.size());
  std::uint32_t pid = 0;
  const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), pid);
  return failed == std::errc{} && end == name.data() + name.size() ? std::optional(pid) : std::nullopt;
}

// redact --pid: drops what belongs to other processes. A process that was forked inherits mappings and the
// name of its parent: of that, and of the parent's own parents, they stay as far as they are from before.
class RedactProcesses {
 public:
  // Empty: keep all processes.
  explicit RedactProcesses(const std::vector<std::uint32_t>& pids) : pids_(pids.begin(), pids.end()) {}

  // To be called first for every record: collects forks, and the files that processes map.
  void see(const RecordView& record, const format::EventSet& events) {
    const bool is_mapping = record.type == abi::kRecordMmap || record.type == abi::kRecordMmap2;
    if (pids_.empty() || (!is_mapping && record.type != abi::kRecordFork)) return;
    const auto event = events.event_of(record);
    if (!event) return;
    const auto parsed = format::parse_record(record, events[*event].attr);
    if (!parsed) return;
    if (const auto* const task = std::get_if<format::TaskRecord>(&*parsed))
      // A recorder describes processes that run already with time 0; they have mappings of their own.
      if (task->pid != task->parent_pid && task->time != 0) forks_.push_back(*task);
    if (const auto* const mapping = std::get_if<format::MmapRecord>(&*parsed)) {
      const std::uint64_t time = format::record_time(record, events[*event].attr).value_or(0);
      const auto [first, is_new] =
          files_.try_emplace({mapping->pid, std::string(without_deleted(mapping->filename))}, time);
      if (!is_new) first->second = std::min(first->second, time);
    }
  }

  // To be called after the last see(): finds the parents of the kept processes, and the files of both.
  void finish() {
    std::ranges::stable_sort(forks_, std::ranges::greater(), &format::TaskRecord::time);
    for (const format::TaskRecord& fork : forks_)  // the last one of each parent is the first here
      if (lends(fork.pid, fork.time)) lent_until_.try_emplace(fork.parent_pid, fork.time);
    for (const auto& [file, time] : files_)
      if (file.first == kKernel || lends(file.first, time)) mapped_.insert(file.second);
  }

  // False for records of other processes, samples without a pid, lists of threads and AUX traces. True for
  // records of no process: mappings and functions of the kernel, cgroups, lost events.
  bool keeps(const RecordView& record, const format::EventSet& events) const {
    if (pids_.empty()) return true;
    if (record.type >= abi::kRecordUserStart)
      return std::ranges::find(kOfAllProcesses, record.type) == std::end(kOfAllProcesses);
    const auto event = events.event_of(record);
    if (!event) return false;
    const EventAttr& attr = events[*event].attr;
    switch (record.type) {
      case abi::kRecordSample: {
        const auto sample = format::parse_sample(record, attr);
        return sample && attr.samples(abi::kSampleTid) && is_kept(sample->pid);
      }
      case abi::kRecordMmap:
      case abi::kRecordMmap2: {
        const std::uint32_t pid = record.body().u32();
        return pid == kKernel || lends(pid, format::record_time(record, attr).value_or(0));
      }
      case abi::kRecordComm:
        return lends(record.body().u32(), format::record_time(record, attr).value_or(0));
      case abi::kRecordFork:
      case abi::kRecordExit:
      case abi::kRecordNamespaces:
      case abi::kRecordRead:
        return is_kept(record.body().u32());
      case abi::kRecordSwitch:
      case abi::kRecordSwitchCpuWide:
        return attr.samples(abi::kSampleTid) && is_kept(format::parse_sample_id(record, attr).pid);
      case abi::kRecordAux:
      case abi::kRecordItraceStart:
      case abi::kRecordAuxOutputHwId:
        return false;
      default:
        return true;
    }
  }

  // Drops perf maps of other processes, packed symbols and build ids of files that no kept process maps, and
  // lists of processes. Those of the kernel stay. An error when the symbol pack cannot be read.
  Result<> reduce(Features& features) const {
    if (pids_.empty()) return Done{};
    std::erase_if(features.attachments, [&](const format::Attachment& attachment) {
      if (const auto pid = pid_in(attachment.name, "perf-map/", "")) return !is_kept(*pid);
      if (attachment.name.starts_with(symbolize::kAttachedJitdump)) {
        const auto pid = pid_in(attachment.name.substr(attachment.name.rfind('/') + 1), "jit-", ".dump");
        return !pid || !is_kept(*pid);
      }
      return attachment.name != "vdso" && attachment.name != format::kKallsymsAttachment &&
             attachment.name != kBpfCallsAttachment;
    });
    std::erase_if(features.environment.build_ids, [&](const format::BuildIdEntry& entry) {
      return (entry.misc & abi::kCpumodeMask) != abi::kCpumodeKernel && !is_mapped(entry.filename);
    });
    features.tracing.saved_cmdlines.clear();
    return reduce_pack(features.symbol_pack);
  }

 private:
  bool is_kept(std::uint32_t pid) const { return pids_.contains(pid); }
  // Whether a kept process has the mappings and names that the process had at this time.
  bool lends(std::uint32_t pid, std::uint64_t time) const {
    const auto lent = lent_until_.find(pid);
    return is_kept(pid) || (lent != lent_until_.end() && time <= lent->second);
  }
  bool is_mapped(std::string_view path) const { return mapped_.contains(std::string(without_deleted(path))); }

  Result<> reduce_pack(std::vector<std::byte>& section) const {
    if (section.empty()) return Done{};
    auto pack = format::parse_symbol_pack(section);
    if (!pack) return std::move(pack.error()).in("the symbol pack");
    std::erase_if(pack->modules, [&](const format::PackedModule& module) {
      const std::string_view path = pack->texts[module.path];
      const auto kind = static_cast<ModuleKind>(module.kind);
      if (kind != ModuleKind::User && kind != ModuleKind::Anonymous) return false;
      if (const auto pid = pid_in(path, "/tmp/perf-", ".map")) return !is_kept(*pid);
      return !is_mapped(path);
    });
    auto written = format::write_symbol_pack_section(*pack);
    if (!written) return std::move(written.error());
    section = std::move(*written);
    return Done{};
  }

  std::unordered_set<std::uint32_t> pids_;
  std::vector<format::TaskRecord> forks_;  // of processes
  // The time of the first mapping, by pid and file, without " (deleted)".
  std::map<std::pair<std::uint32_t, std::string>, std::uint64_t> files_;
  std::unordered_map<std::uint32_t, std::uint64_t> lent_until_;  // time of the last fork, by the parent's pid
  std::unordered_set<std::string> mapped_;                       // files of kept processes and their parents
};

constexpr std::size_t kHead = format::kRecordHeaderSize, kWordBytes = sizeof(std::uint64_t);

// Where the text of a record begins, in bytes from its start.
constexpr std::size_t kMmapName = kHead + 32, kMmap2Name = kHead + 64, kCommName = kHead + 8,
                      kKsymbolName = kHead + 16, kCgroupPath = kHead + 8, kBuildIdName = kHead + 28;

// The bytes of a CPU_MAP's body: a list, a bitmap (before words of 8 bytes come 4 of padding), or a range.
std::size_t size_of_cpu_map(format::Cursor in) {
  constexpr std::uint16_t kList = 0, kMask = 1;
  const std::uint16_t kind = in.u16(), count = in.u16(), word = in.u16();
  if (kind == kList) return std::size_t{4} + std::size_t{2} * count;
  if (kind == kMask) return std::size_t{word == kWordBytes ? 10U : 6U} + std::size_t{word} * count;
  return 8;
}

// The bytes of the body of perf's own records that hold numbers alone; nullopt: the record is another one.
std::optional<std::size_t> size_of_numbers(const RecordView& record) {
  constexpr std::size_t kIdEntry = 32, kGuestEntry = 16, kSetting = 16;
  const std::size_t body = record.bytes.size() - kHead;
  const auto list = [&](std::size_t entry) {
    const std::uint64_t count = record.body().u64();
    return count <= body / entry ? kWordBytes + static_cast<std::size_t>(count) * entry : body + 1;
  };
  switch (record.type) {
    case abi::kRecordFinishedInit:
      return 0;
    case abi::kRecordIdIndex:
      return list(kIdEntry + kGuestEntry) <= body ? list(kIdEntry + kGuestEntry) : list(kIdEntry);
    case abi::kRecordCpuMap:
      return size_of_cpu_map(record.body());
    case abi::kRecordStatConfig:
      return list(kSetting);
    case abi::kRecordStat:
      return 40;
    case abi::kRecordStatRound:
      return 16;
    case abi::kRecordTimeConv:
      return body < 42 ? 24 : 42;
    default:
      return std::nullopt;
  }
}

std::size_t fixed_words(std::uint64_t sample_type, std::uint64_t fields) {
  return static_cast<std::size_t>(std::popcount(sample_type & fields));
}

std::string_view text_behind(const RecordView& record, std::size_t fixed, std::size_t trailer) {
  if (record.bytes.size() < fixed + trailer) return {};
  return format::text_of(record.bytes.subspan(fixed, record.bytes.size() - fixed - trailer));
}

// All unwound call chains of a capture, made before redact drops the copied stacks.
class UnwoundChains : private Sink {
 public:
  // Reads the capture and the files of its modules.
  static Result<UnwoundChains> read(const RedactOptions& options) {
    SessionOptions reading;
    reading.input = options.copy.input;
    reading.capture = options.copy.capture;
    reading.symbols.access = options.copy.access;
    reading.symbols.name_access = options.name_access;
    reading.in_step = options.in_step;
    reading.max_stack = 1024;
    reading.keeps_addresses = true;
    auto session = Session::open(std::move(reading));
    if (!session) return std::move(session.error());
    UnwoundChains made;
    session->run(made);
    made.chains_.resize(made.stacks_.size());
    for (std::size_t number = 0; number < made.stacks_.size(); ++number) {
      if (made.stacks_[number] == nullptr) continue;
      for (const LocationId frame : made.stacks_[number]->frames)
        if (const Location& location = session->resolver().location(frame); location.is_unwound)
          made.chains_[number].push_back(location.ip.value);
    }
    made.stacks_ = {};
    return made;
  }

  // The user part of the call chain of a sample (given by its bytes), leaf first; may be empty.
  std::span<const std::uint64_t> of(Bytes sample) const {
    const auto found = stack_of_.find(hash_(format::as_text(sample)));
    return found == stack_of_.end() ? std::span<const std::uint64_t>() : chains_[index_of(found->second)];
  }

 private:
  UnwoundChains() = default;

  Flow on_sample(const ResolvedSample& sample) override {
    if (sample.stack == nullptr || sample.fields->user_stack.empty()) return Flow::Continue;
    const StackId stack = sample.stack->id;
    stack_of_[hash_(format::as_text(sample.record->bytes))] = stack;
    if (index_of(stack) >= stacks_.size()) stacks_.resize(index_of(stack) + 1);
    stacks_[index_of(stack)] = sample.stack;
    return Flow::Continue;
  }

  format::SeededTextHash hash_;
  std::unordered_map<std::uint64_t, StackId, format::SeededHash>
      stack_of_;                                    // by a hash of the sample's bytes
  std::vector<const Stack*> stacks_;                // by id; the session has them
  std::vector<std::vector<std::uint64_t>> chains_;  // by id
};

// Redacts the records of a capture.
class RecordRedaction {
 public:
  // `events` and `features` are those of the input. All arguments must outlive this. `time_shift` (ns) is
  // subtracted from each time. `chains` has the call chains of copied stacks; null: they are dropped with the
  // stacks.
  RecordRedaction(const format::EventSet& events, const Features& features, const Redaction& redaction,
                  const Aliases& aliases, const KaslrRemap& kernel, std::uint64_t time_shift,
                  const UnwoundChains* chains)
      : events_(&events),
        redaction_(&redaction),
        aliases_(&aliases),
        kernel_(&kernel),
        payloads_(events, features, redaction, aliases, kernel),
        time_shift_(time_shift),
        chains_(chains) {}

  // The redacted record, in `out`; nullopt: dropped. Only known fields are copied; other bytes and records of
  // unknown types are dropped.
  std::optional<RecordView> change(const RecordView& record, format::ByteWriter& out);
  // The number of records that were dropped because their type is unknown or the result would be too long.
  std::uint64_t not_understood() const { return not_understood_; }

 private:
  // Bytes of a record that are replaced by `words`.
  struct Cut {
    std::size_t begin = 0, size = 0;
    std::vector<std::uint64_t> words{0};
  };
  bool change_sample(const RecordView& record, std::size_t event, format::ByteWriter& out);
  void change_registers(const format::Registers& registers, const RecordView& record);
  void add_unwound(const format::Sample& sample, const RecordView& record);
  void change_user_stack(const format::Sample& sample, const RecordView& record);
  void change_words(const format::U64Array& words, const RecordView& record, std::size_t step);
  bool change_kernel_record(const RecordView& record, const EventAttr& attr, format::ByteWriter& out);
  bool change_own_record(const RecordView& record, format::ByteWriter& out);
  bool with_body(const RecordView& record, std::size_t size, format::ByteWriter& out);
  bool change_mapping(const RecordView& record, const EventAttr& attr, format::ByteWriter& out);
  bool change_namespaces(const RecordView& record, std::size_t trailer, format::ByteWriter& out);
  void change_thread_map(const RecordView& record, format::ByteWriter& out);
  // Writes the first `fixed` bytes of the record, `text`, and the last `trailer` bytes. False: the record is
  // too short.
  static bool with_text(const RecordView& record, std::size_t fixed, std::string_view text,
                        std::size_t trailer, format::ByteWriter& out);
  std::string comm(std::string_view name) const;
  std::string container(std::string_view path) const;
  std::uint64_t moved(std::uint64_t address) const {
    return redaction_->hides(Content::Kernel) ? kernel_->moved(address) : address;
  }
  // Changes one word of `bytes`, if they are long enough.
  template <class Change>
  static void patch(std::vector<std::byte>& bytes, std::size_t at, Change&& change);
  void shift_time(std::vector<std::byte>& bytes, std::size_t at) const;

  const format::EventSet* events_;
  const Redaction* redaction_;
  const Aliases* aliases_;
  const KaslrRemap* kernel_;
  PayloadRedaction payloads_;
  std::uint64_t time_shift_;
  const UnwoundChains* chains_;
  std::uint64_t not_understood_ = 0;
  format::SampleParser samples_;
  std::vector<std::byte> bytes_;  // scratch: a copy of the record, changed in place
  std::vector<Cut> cuts_;
};

template <class Change>
void RecordRedaction::patch(std::vector<std::byte>& bytes, std::size_t at, Change&& change) {
  if (bytes.size() < kWordBytes || at > bytes.size() - kWordBytes) return;
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data() + at, kWordBytes);
  word = change(word);
  std::memcpy(bytes.data() + at, &word, kWordBytes);
}

void RecordRedaction::shift_time(std::vector<std::byte>& bytes, std::size_t at) const {
  if (time_shift_ == 0) return;
  patch(bytes, at, [this](std::uint64_t time) {
    return time < time_shift_ || time == ~std::uint64_t{0} ? time : time - time_shift_;
  });
}

bool RecordRedaction::with_text(const RecordView& record, std::size_t fixed, std::string_view text,
                                std::size_t trailer, format::ByteWriter& out) {
  if (record.bytes.size() < fixed + trailer) return false;
  out.bytes(record.bytes.first(fixed)).padded_text(text, kWordBytes);
  out.bytes(record.bytes.last(trailer));
  return true;
}

std::string RecordRedaction::comm(std::string_view name) const {
  switch (redaction_->of(Content::Comm)) {
    case How::Keep:
      return std::string(name);
    case How::Drop:
      return "-";
    default:
      return aliases_->of(name);
  }
}

// Each part of the path becomes an alias, so that the nesting stays.
std::string RecordRedaction::container(std::string_view path) const {
  if (!redaction_->hides(Content::Containers)) return std::string(path);
  std::string hidden;
  while (!path.empty()) {
    const auto slash = path.find('/');
    hidden += aliases_->of(path.substr(0, slash));
    if (slash == std::string_view::npos) break;
    hidden += '/';
    path.remove_prefix(slash + 1);
  }
  return hidden;
}

std::optional<RecordView> RecordRedaction::change(const RecordView& record, format::ByteWriter& out) {
  out.clear();
  bool stays = false;
  if (record.type >= abi::kRecordUserStart) {
    stays = change_own_record(record, out);
  } else if (const auto event = events_->event_of(record); event) {
    const EventAttr& attr = (*events_)[*event].attr;
    stays = record.type == abi::kRecordSample ? change_sample(record, *event, out)
                                              : change_kernel_record(record, attr, out);
    constexpr std::uint64_t kBeforeTime = abi::kSampleIdentifier | abi::kSampleIp | abi::kSampleTid;
    if (stays && time_shift_ != 0 && attr.samples(abi::kSampleTime)) {
      const std::size_t trailer = format::sample_id_size(attr);
      bytes_.assign(out.view().begin(), out.view().end());
      if (record.type == abi::kRecordSample)
        shift_time(bytes_, kHead + kWordBytes * fixed_words(attr.sample_type, kBeforeTime));
      else if (trailer != 0 && bytes_.size() >= kHead + trailer)
        shift_time(bytes_, bytes_.size() - trailer + (attr.samples(abi::kSampleTid) ? kWordBytes : 0));
      out.clear();
      out.bytes(bytes_);
    }
  }
  if (stays && out.size() > kLongestRecord) {  // by aliases, or a call chain in place of a small stack
    ++not_understood_;
    stays = false;
  }
  if (!stays) return std::nullopt;
  out.patch<std::uint16_t>(6, static_cast<std::uint16_t>(out.size()));
  RecordView view = record;
  view.bytes = out.view();
  view.order = std::endian::native;
  return view;
}

void RecordRedaction::change_words(const format::U64Array& words, const RecordView& record,
                                   std::size_t step) {
  if (words.empty() || !redaction_->hides(Content::Kernel)) return;
  const auto at = static_cast<std::size_t>(words.bytes().data() - record.bytes.data());
  for (std::size_t i = 0; i < words.size(); ++i)
    if (step == 1 || i % step != step - 1)  // of a branch the third word is flags
      patch(bytes_, at + i * kWordBytes, [this](std::uint64_t word) {
        return word >= kKernelHalf && word < abi::kContextMax ? moved(word) : word;
      });
}

void RecordRedaction::change_registers(const format::Registers& registers, const RecordView& record) {
  if (registers.abi == 0) return;
  if (!redaction_->hides(Content::Registers)) return change_words(registers.values, record, 1);
  const Bytes values = registers.values.bytes();
  if (values.data() == nullptr) return;
  cuts_.push_back({.begin = static_cast<std::size_t>(values.data() - record.bytes.data()) - kWordBytes,
                   .size = kWordBytes + values.size()});
}

// Appends the unwound call chain of the copied stack, in the kernel's form of user chains.
void RecordRedaction::add_unwound(const format::Sample& sample, const RecordView& record) {
  if (chains_ == nullptr || !redaction_->hides(Content::Stacks)) return;
  const auto unwound = chains_->of(record.bytes);
  const Bytes chain = sample.callchain.bytes();
  if (unwound.empty() || chain.data() == nullptr) return;
  Cut cut{static_cast<std::size_t>(chain.data() - record.bytes.data()) - kWordBytes,
          kWordBytes + chain.size(),
          {}};
  cut.words.push_back(sample.callchain.size() + 1 + unwound.size());
  for (std::size_t i = 0; i < sample.callchain.size(); ++i) {
    const std::uint64_t word = sample.callchain[i];
    cut.words.push_back(word < abi::kContextMax ? moved(word) : word);
  }
  cut.words.push_back(abi::kContextUser);
  cut.words.insert(cut.words.end(), unwound.begin(), unwound.end());
  cuts_.push_back(std::move(cut));
}

// u64 size, bytes, u64 how many of them are valid.
void RecordRedaction::change_user_stack(const format::Sample& sample, const RecordView& record) {
  if (sample.user_stack.data() == nullptr) return;
  const auto at = static_cast<std::size_t>(sample.user_stack.data() - record.bytes.data());
  std::uint64_t size = 0;
  std::memcpy(&size, record.bytes.data() + at - kWordBytes, kWordBytes);
  if (redaction_->hides(Content::Stacks)) {
    cuts_.push_back({.begin = at - kWordBytes, .size = static_cast<std::size_t>(size) + 2 * kWordBytes});
    return;
  }
  const auto begin = bytes_.begin() + static_cast<std::ptrdiff_t>(at);
  std::fill(begin + static_cast<std::ptrdiff_t>(sample.user_stack.size()),
            begin + static_cast<std::ptrdiff_t>(size), std::byte{});
}

bool RecordRedaction::change_sample(const RecordView& record, std::size_t event, format::ByteWriter& out) {
  const EventAttr& attr = (*events_)[event].attr;
  const format::Sample* const sample = samples_.parse(record, attr);
  if (sample == nullptr) {
    ++not_understood_;
    return false;
  }
  const std::uint64_t type = attr.sample_type;
  bytes_.assign(record.bytes.begin(), record.bytes.end() - static_cast<std::ptrdiff_t>(sample->unread));
  cuts_.clear();
  if (type & abi::kSampleIp)
    patch(bytes_, kHead + kWordBytes * fixed_words(type, abi::kSampleIdentifier),
          [this](std::uint64_t ip) { return moved(ip); });
  const bool hides_addresses = redaction_->hides(Content::Addresses);
  const auto hidden_address = [&](std::uint64_t address) { return hides_addresses ? 0 : moved(address); };
  constexpr std::uint64_t kBeforeAddress =
      abi::kSampleIdentifier | abi::kSampleIp | abi::kSampleTid | abi::kSampleTime;
  if (type & abi::kSampleAddr)
    patch(bytes_, kHead + kWordBytes * fixed_words(type, kBeforeAddress), hidden_address);
  if (type & abi::kSampleCallchain) {
    change_words(sample->callchain, record, 1);
    add_unwound(*sample, record);
  }
  if (type & abi::kSampleRaw && !sample->raw.empty())
    payloads_.change(
        event, std::span(bytes_).subspan(static_cast<std::size_t>(sample->raw.data() - record.bytes.data()),
                                         sample->raw.size()));
  if (type & abi::kSampleBranchStack) change_words(sample->branches, record, 3);
  if (type & abi::kSampleRegsUser) change_registers(sample->user_registers, record);
  if (type & abi::kSampleStackUser) change_user_stack(*sample, record);
  if (type & abi::kSampleRegsIntr) change_registers(sample->interrupt_registers, record);
  // The fields after it are words, and the AUX data with its size.
  std::size_t end = bytes_.size();
  if (type & abi::kSampleAux) {
    const std::size_t data = sample->aux.size();
    end -= data + kWordBytes;
    if (redaction_->hides(Content::Traces)) cuts_.push_back({.begin = end, .size = data + kWordBytes});
  }
  if (type & abi::kSamplePhysAddr && hides_addresses)
    patch(bytes_,
          end - kWordBytes * (1 + fixed_words(type, abi::kSampleCgroup | abi::kSampleDataPageSize |
                                                        abi::kSampleCodePageSize)),
          [](std::uint64_t) { return std::uint64_t{0}; });
  std::size_t at = 0;
  for (const Cut& cut : cuts_) {
    out.bytes(Bytes(bytes_).subspan(at, cut.begin - at));
    for (const std::uint64_t word : cut.words) out.u64(word);
    at = cut.begin + cut.size;
  }
  out.bytes(Bytes(bytes_).subspan(at));
  return true;
}

// MMAP and MMAP2. The record of the kernel itself has the address of its text twice.
bool RecordRedaction::change_mapping(const RecordView& record, const EventAttr& attr,
                                     format::ByteWriter& out) {
  const auto parsed = format::parse_record(record, attr);
  const auto* const mapping = parsed ? std::get_if<format::MmapRecord>(&*parsed) : nullptr;
  if (mapping == nullptr) return false;
  const std::string name = hidden_path(mapping->filename, redaction_->path_rule(), *aliases_);
  if (!with_text(record, record.type == abi::kRecordMmap2 ? kMmap2Name : kMmapName, name,
                 format::sample_id_size(attr), out))
    return false;
  if (mapping->start >= kKernelHalf) {
    out.patch(kHead + kWordBytes, moved(mapping->start));
    if (mapping->page_offset >= kKernelHalf) out.patch(kHead + 3 * kWordBytes, moved(mapping->page_offset));
  }
  return true;
}

// u32 pid, u32 tid, u64 count, then u64 device and u64 inode of each.
bool RecordRedaction::change_namespaces(const RecordView& record, std::size_t trailer,
                                        format::ByteWriter& out) {
  if (redaction_->of(Content::Containers) == How::Drop) return false;
  bytes_.assign(record.bytes.begin(), record.bytes.end());
  constexpr std::size_t kLinks = kHead + 2 * kWordBytes;
  if (redaction_->hides(Content::Containers))
    for (std::size_t at = kLinks + kWordBytes; at + kWordBytes + trailer <= bytes_.size();
         at += 2 * kWordBytes)
      patch(bytes_, at, [this](std::uint64_t inode) { return aliases_->of_number(inode) & 0xffffffff; });
  out.bytes(bytes_);
  return true;
}

bool RecordRedaction::change_kernel_record(const RecordView& record, const EventAttr& attr,
                                           format::ByteWriter& out) {
  const std::size_t trailer = format::sample_id_size(attr);
  const auto parsed = format::parse_record(record, attr);
  if (!parsed || format::unread_bytes(record, attr) != 0) {
    ++not_understood_;
    return false;
  }
  switch (record.type) {
    case abi::kRecordMmap:
    case abi::kRecordMmap2:
      return change_mapping(record, attr, out);
    case abi::kRecordComm:
      return with_text(record, kCommName, comm(text_behind(record, kCommName, trailer)), trailer, out);
    case abi::kRecordCgroup:
      if (redaction_->of(Content::Containers) == How::Drop) return false;
      return with_text(record, kCgroupPath, container(text_behind(record, kCgroupPath, trailer)), trailer,
                       out);
    case abi::kRecordNamespaces:
      return change_namespaces(record, trailer, out);
    case abi::kRecordKsymbol:
      if (!with_text(record, kKsymbolName, text_behind(record, kKsymbolName, trailer), trailer, out))
        return false;
      out.patch(kHead, moved(std::get<format::KsymbolRecord>(*parsed).address));
      return true;
    // Code of the kernel: calls in it tell distances between functions, and no view needs it.
    case abi::kRecordTextPoke:
      if (redaction_->hides(Content::Kernel)) return false;
      break;
    case abi::kRecordAux:
    case abi::kRecordItraceStart:
    case abi::kRecordAuxOutputHwId:
      if (redaction_->hides(Content::Traces)) return false;
      break;
    case abi::kRecordFork:
    case abi::kRecordExit:
    case abi::kRecordThrottle:
    case abi::kRecordUnthrottle: {
      bytes_.assign(record.bytes.begin(), record.bytes.end());
      const bool is_task = record.type == abi::kRecordFork || record.type == abi::kRecordExit;
      shift_time(bytes_, kHead + (is_task ? 2 * kWordBytes : 0));
      out.bytes(bytes_);
      return true;
    }
    default:
      break;
  }
  if (std::holds_alternative<format::OtherRecord>(*parsed)) {
    ++not_understood_;
    return false;
  }
  out.bytes(record.bytes);
  return true;
}

// u64 count, then {u64 tid, char comm[16]} for each.
void RecordRedaction::change_thread_map(const RecordView& record, format::ByteWriter& out) {
  constexpr std::size_t kName = 16;
  out.bytes(record.bytes);
  for (std::size_t at = kHead + 2 * kWordBytes; at + kName <= record.bytes.size(); at += kName + kWordBytes) {
    const std::string name = comm(format::text_of(record.bytes.subspan(at, kName)));
    for (std::size_t i = 0; i < kName; ++i)
      out.patch(at + i, static_cast<std::uint8_t>(i < std::min(name.size(), kName - 1) ? name[i] : 0));
  }
}

// Copies the first `size` bytes of the body, and zeros up to a multiple of 8. False when it has fewer.
bool RecordRedaction::with_body(const RecordView& record, std::size_t size, format::ByteWriter& out) {
  if (size > record.bytes.size() - kHead) {
    ++not_understood_;
    return false;
  }
  bytes_.assign(record.bytes.begin(), record.bytes.begin() + static_cast<std::ptrdiff_t>(kHead + size));
  bytes_.resize((bytes_.size() + kWordBytes - 1) / kWordBytes * kWordBytes);
  out.bytes(bytes_);
  return true;
}

bool RecordRedaction::change_own_record(const RecordView& record, format::ByteWriter& out) {
  if (const auto size = size_of_numbers(record)) return with_body(record, *size, out);
  const PathRule rule = redaction_->path_rule();
  switch (record.type) {
    case abi::kRecordThreadMap:
      change_thread_map(record, out);
      return true;
    case abi::kRecordBuildId:
      return with_text(record, kBuildIdName,
                       hidden_path(text_behind(record, kBuildIdName, 0), rule, *aliases_), 0, out);
    case abi::kRecordEventUpdate: {
      constexpr std::size_t kText = kHead + 2 * kWordBytes;
      constexpr std::uint64_t kUnit = 0, kName = 2;
      const std::uint64_t kind = record.body().u64();
      const std::string_view text = text_behind(record, kText, 0);
      if (kind == kUnit) return with_text(record, kText, text, 0, out);  // "MiB/s": the PMU's own word
      if (kind == kName) {
        const std::string name = hidden_event(text, rule, *aliases_);
        return with_text(record, kText,
                         redaction_->hides(Content::Kernel) ? kernel_->hidden_in(name, *aliases_) : name, 0,
                         out);
      }
      constexpr std::uint64_t kScale = 1, kCpus = 3;
      constexpr std::size_t kFixed = 2 * kWordBytes;  // kind and id
      if (kind == kScale) return with_body(record, kFixed + sizeof(double), out);
      if (kind == kCpus) {
        format::Cursor in = record.body();
        in.skip(kFixed);
        return with_body(record, kFixed + size_of_cpu_map(in), out);
      }
      ++not_understood_;
      return false;
    }
    case abi::kRecordAuxtraceInfo:
    case abi::kRecordAuxtrace:
    case abi::kRecordAuxtraceError:
      if (redaction_->hides(Content::Traces)) return false;
      out.bytes(record.bytes);
      return true;
    default:
      ++not_understood_;
      return false;
  }
}

// Calls change(line, changed) for each line, which appends the new line to `changed`.
template <class Change>
std::string changed_lines(std::string_view text, Change&& change) {
  std::string changed;
  changed.reserve(text.size());
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    change(text.substr(0, end), changed);
    if (end < text.size()) changed += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return changed;
}

// Redacts event names and feature sections, with the symbol pack and attached files.
class HeadRedaction {
 public:
  // All arguments must outlive this. `time_shift` (ns) is subtracted from each time.
  HeadRedaction(const Redaction& redaction, const Aliases& aliases, const KaslrRemap& kernel,
                std::uint64_t time_shift)
      : redaction_(redaction),
        aliases_(aliases),
        kernel_(kernel),
        time_shift_(time_shift),
        path_rule_(redaction.path_rule()) {}

  // Drops everything without a rule: sections that are not parsed, unknown attachments. An error when the
  // symbol pack cannot be read, since its content is unknown then.
  Result<> change(format::EventSet& events, Features& features) const {
    features.raw.clear();
    format::EventSet changed_events;
    for (const format::Event& event : events) changed_events.add(changed(event));
    events = std::move(changed_events);
    for (format::Event& event : features.event_descriptions) event = changed(std::move(event));
    change_environment(features.environment);
    features.tracing.printk_formats = moved_lines(features.tracing.printk_formats);
    if (hides(Content::Comm)) features.tracing.saved_cmdlines.clear();  // a thread and its name on each line
    for (format::PayloadSchema& schema : features.schemas) schema.event = event_name(schema.event);
    change_attachments(features.attachments);
    return change_pack(features.symbol_pack);
  }

 private:
  void change_environment(format::Environment& environment) const {
    if (hides(Content::Host) && environment.hostname) {
      if (how(Content::Host) == How::Hash)
        environment.hostname = aliases_.of(*environment.hostname);
      else
        environment.hostname.reset();
    }
    if (how(Content::CommandLine) == How::Drop) environment.command_line.clear();
    if (how(Content::CommandLine) == How::Hash)
      for (std::string& word : environment.command_line) word = aliases_.of(word);
    for (format::BuildIdEntry& entry : environment.build_ids) entry.filename = path(entry.filename);
    for (format::EventGroup& group : environment.groups) group.name = event_name(group.name);
    if (hides(Content::Time)) environment.clock_data.reset();
    if (environment.sample_time) {
      environment.sample_time->first = shifted(environment.sample_time->first);
      environment.sample_time->second = shifted(environment.sample_time->second);
    }
    // The kernel's description of BPF programs has their code, with addresses in it.
    if (hides(Content::Kernel)) {
      environment.bpf_programs.clear();
      environment.btf.clear();
      environment.bpf_maps.clear();
    }
    if (hides(Content::Kernel) || hides(Content::Paths)) environment.bpf_places.clear();
    for (format::EventLoss& loss : environment.losses.events) {
      loss.event = event_name(loss.event);
      if (hides(Content::Containers)) loss.cgroup = loss.cgroup.empty() ? "" : aliases_.of(loss.cgroup);
    }
    for (auto& [what, value] : environment.user_stacks) what = numbers_in(paths_in(what));
    for (format::AttachedProgram& program : environment.attached_programs) {
      program.object = path(program.object);
      program.section = numbers_in(hidden_section(program.section, path_rule_, aliases_));
      program.state = numbers_in(paths_in(program.state));
    }
  }

  void change_attachments(std::vector<format::Attachment>& attachments) const {
    std::vector<format::Attachment> kept;
    const bool hides_processes = hides(Content::CommandLine) || hides(Content::Paths) ||
                                 hides(Content::Containers) || hides(Content::Host);
    for (format::Attachment& attachment : attachments) {
      Result<> done = Done{};
      if (attachment.name == format::kKallsymsAttachment || attachment.name == kBpfCallsAttachment) {
        done = change_text(attachment, &HeadRedaction::moved_lines);
      } else if (attachment.name.starts_with("perf-map/")) {
        done = change_text(attachment, &HeadRedaction::paths_in_lines);
        attachment.origin = path(attachment.origin);
      } else if (attachment.name.starts_with(symbolize::kAttachedJitdump)) {
        done = change_jitdump(attachment);
      } else if (attachment.name != "vdso" && (attachment.name != "processes" || hides_processes)) {
        continue;
      }
      if (done) kept.push_back(std::move(attachment));  // drop what cannot be decompressed
    }
    attachments = std::move(kept);
  }

  Result<> change_pack(std::vector<std::byte>& section) const {
    if (section.empty()) return Done{};
    auto pack = format::parse_symbol_pack(section);
    if (!pack) return std::move(pack.error()).in("the symbol pack");
    format::SymbolPack changed;
    changed.level = pack->level;
    for (format::PackedModule& module : pack->modules) pack_module(pack->texts, module, changed.texts);
    changed.modules = std::move(pack->modules);
    auto written = format::write_symbol_pack_section(changed);
    if (!written) return std::move(written.error());
    section = std::move(*written);
    return Done{};
  }

  // The attr of probes and breakpoints has an address.
  format::Event changed(format::Event event) const {
    event.name = event_name(event.name);
    if (!hides(Content::Kernel)) return event;
    // Of other events than breakpoints it may be no address.
    const bool is_address = event.attr.type == abi::kBreakpoint;
    for (std::uint64_t* const word : {&event.attr.config1, &event.attr.config2})
      if (*word >= kKernelHalf && *word < abi::kContextMax)
        *word = is_address ? kernel_.hidden(*word, aliases_) : moved(*word);
    return event;
  }

  bool hides(Content content) const { return redaction_.hides(content); }
  How how(Content content) const { return redaction_.of(content); }
  std::string path(std::string_view text) const { return hidden_path(text, path_rule_, aliases_); }
  std::string paths_in(std::string_view text) const { return hidden_paths_in(text, path_rule_, aliases_); }
  std::string numbers_in(std::string text) const {
    return hides(Content::Kernel) ? kernel_.hidden_in(text, aliases_) : text;
  }
  std::string event_name(std::string_view name) const {
    return numbers_in(hidden_event(name, path_rule_, aliases_));
  }
  std::uint64_t moved(std::uint64_t address) const {
    return hides(Content::Kernel) ? kernel_.moved(address) : address;
  }
  std::uint64_t shifted(std::uint64_t time) const { return time < time_shift_ ? time : time - time_shift_; }
  // Lines that begin with an address, as /proc/kallsyms has them and printk_formats (with 0x).
  std::string moved_lines(std::string_view text) const {
    if (!hides(Content::Kernel)) return std::string(text);
    return changed_lines(text, [this](std::string_view line, std::string& changed) {
      const std::string_view before = line.starts_with("0x") ? line.substr(0, 2) : std::string_view();
      line.remove_prefix(before.size());
      std::uint64_t address = 0;
      const auto [number_end, failed] = std::from_chars(line.data(), line.data() + line.size(), address, 16);
      if (failed != std::errc{}) return;
      const auto digits = static_cast<std::size_t>(number_end - line.data());
      changed += before;
      changed += fmt::format("{:0{}x}", moved(address), digits);
      changed += line.substr(digits);
    });
  }

  Result<> change_text(format::Attachment& attachment,
                       std::string (HeadRedaction::*change)(std::string_view) const) const {
    const auto content = format::unpack_attachment(attachment);
    if (!content) return content.error();
    const std::string text = (this->*change)(format::as_text(*content));
    auto packed = format::pack_attachment(attachment.name, attachment.origin, std::as_bytes(std::span(text)));
    if (!packed) return std::move(packed.error());
    attachment = std::move(*packed);
    return Done{};
  }

  // Names of JIT code: "LazyCompile:*run /home/me/app.js:7".
  std::string paths_in_lines(std::string_view text) const {
    return changed_lines(text,
                         [this](std::string_view line, std::string& changed) { changed += paths_in(line); });
  }

  // Redacts the names of code and source files in a jitdump that `tacho pack` attached.
  Result<> change_jitdump(format::Attachment& attachment) const {
    auto content = symbolize::unpack_attached_text(attachment);
    if (!content) return content.error();
    const auto dump = symbolize::Jitdump::parse(std::move(*content));
    if (!dump) return dump.error();
    std::vector<symbolize::JitEvent> events = dump->events();
    format::TextPool texts;
    std::unordered_map<const char*, std::string_view> files;  // one long name may be that of a million lines
    for (symbolize::JitEvent& event : events) {
      event.name = texts.keep(paths_in(event.name));
      for (symbolize::JitLine& line : event.lines) {
        const auto [file, is_new] = files.try_emplace(line.file.data());
        if (is_new) file->second = texts.keep(path(line.file));
        line.file = file->second;
      }
    }
    std::vector<const symbolize::JitEvent*> all;
    for (const symbolize::JitEvent& event : events) all.push_back(&event);
    const std::string where = path(attachment.name.substr(symbolize::kAttachedJitdump.size()));
    auto attached = symbolize::attach_jitdump(where, dump->pid(), all);
    if (!attached) return std::move(attached.error());
    attachment = std::move(attached->attachment);
    return Done{};
  }

  void pack_module(const format::PackTexts& texts, format::PackedModule& module,
                   format::PackTexts& to) const {
    const auto kind = static_cast<ModuleKind>(module.kind);
    const bool is_kernel =
        kind == ModuleKind::Kernel || kind == ModuleKind::KernelModule || kind == ModuleKind::Bpf;
    const bool has_made_names = kind == ModuleKind::Anonymous;
    const auto name = [&](std::uint32_t number) {
      return to.number_of(has_made_names ? paths_in(texts[number]) : std::string(texts[number]));
    };
    const auto file = [&](std::uint32_t number) { return to.number_of(path(texts[number])); };
    module.path = file(module.path);
    module.missing_reason = to.number_of(paths_in(texts[module.missing_reason]));
    for (format::PackedSymbol& symbol : module.symbols) {
      symbol.name = name(symbol.name);
      if (!is_kernel) continue;
      const std::uint64_t length = symbol.end - symbol.start;
      symbol.start = moved(symbol.start);
      symbol.end = symbol.start + length;
    }
    for (format::PackedFunction& function : module.functions) {
      function.name = name(function.name);
      function.call_file = file(function.call_file);
    }
    for (format::PackedAddress& address : module.addresses) {
      address.file = file(address.file);
      if (!is_kernel) continue;
      const std::uint64_t before = address.address;
      address.address = moved(before);
      // Without a file the ELF address equals the shown one; an address in a file is no secret.
      if (address.elf_address == before) address.elf_address = address.address;
    }
  }

  const Redaction& redaction_;
  const Aliases& aliases_;
  const KaslrRemap& kernel_;
  std::uint64_t time_shift_;
  PathRule path_rule_;
};

// The first reading of the capture, before the copy is written.
struct Scan {
  Census census;
  RedactProcesses processes;
};

class Redacting : public CaptureChange {
 public:
  Redacting(const RedactOptions& options, const Aliases& aliases, const Scan& scan,
            const UnwoundChains* chains, std::vector<format::ContentClass> content)
      : options_(options), aliases_(aliases), scan_(scan), chains_(chains), content_(std::move(content)) {}

  Result<> change_head(format::EventSet& events, Features& features) override {
    events_ = events;
    descriptions_.tracing = features.tracing;
    descriptions_.schemas = features.schemas;
    const Census& census = scan_.census;
    const std::uint64_t shift = options_.redaction.hides(Content::Time) ? census.time_shift() : 0;
    records_.emplace(events_, descriptions_, options_.redaction, aliases_, census.kernel(), shift, chains_);
    if (auto reduced = scan_.processes.reduce(features); !reduced) return reduced;
    features.environment.content = content_;
    return HeadRedaction(options_.redaction, aliases_, census.kernel(), shift).change(events, features);
  }

  std::optional<RecordView> change(const RecordView& record, format::ByteWriter& scratch) override {
    if (!scan_.processes.keeps(record, events_)) return std::nullopt;
    return records_->change(record, scratch);
  }

  std::uint64_t not_understood() const { return records_ ? records_->not_understood() : 0; }

 private:
  const RedactOptions& options_;
  const Aliases& aliases_;
  const Scan& scan_;
  const UnwoundChains* chains_;
  std::vector<format::ContentClass> content_;
  format::EventSet events_;  // of the copy, before they are changed
  Features descriptions_;    // of payloads, as they were recorded
  std::optional<RecordRedaction> records_;
};

Result<> check(const CaptureReader& reader, const std::string& input) {
  const std::string remedy =
      "; 'tacho convert -i " + cli::shell_word(input) + " -o FILE' makes one that can be";
  if (reader.layout().is_pipe)
    return Error{input + ": has the form of a pipe, which is not redacted" + remedy};
  if (reader.layout().order != std::endian::native)
    return Error{input + ": was recorded in the other byte order and is not redacted" + remedy};
  return Done{};
}

Result<Scan> scan_capture(const RedactOptions& options, format::Diagnostics& diagnostics) {
  auto reader = CaptureReader::open(options.copy.input, diagnostics, options.copy.capture);
  if (!reader) return std::move(reader.error());
  if (auto checked = check(*reader, options.copy.input); !checked) return std::move(checked.error());
  Scan scan{{}, RedactProcesses(options.pids)};
  scan.census.see_head(reader->events(), reader->features());
  while (const auto record = reader->next()) {
    scan.census.see(*record, reader->events());
    scan.processes.see(*record, reader->events());
  }
  scan.processes.finish();
  if (options.in_place)
    if (auto whole = check_whole(*reader, diagnostics, options.copy.input, "replaced"); !whole)
      return std::move(whole.error());
  return scan;
}

Result<Aliases> make_aliases(const RedactOptions& options) {
  return options.key.empty() ? Aliases::create() : Result<Aliases>(Aliases::of_key(options.key));
}

std::string alias_of(Content content, How how, const std::string& example, const RedactOptions& options,
                     const Aliases& aliases) {
  if (example.empty() || how == How::Drop || content == Content::Containers) return {};
  if (content == Content::Paths) return hidden_path(example, options.redaction.path_rule(), aliases);
  return how == How::Hash ? aliases.of(example) : example;
}

Redacted described(const RedactOptions& options, const Census& census, const Aliases& aliases) {
  Redacted redacted;
  const auto counts = census.counts();
  for (const format::ContentRow& row : format::kContents) {
    const Census::Count& count = counts[static_cast<std::size_t>(row.content)];
    const How how = options.redaction.of(row.content);
    redacted.classes.push_back({row.content, how, count.number, count.unit, count.example,
                                alias_of(row.content, how, count.example, options, aliases)});
  }
  return redacted;
}

}  // namespace

Result<Redacted> examine_for_redaction(const RedactOptions& options, format::Diagnostics& diagnostics) {
  auto aliases = make_aliases(options);
  if (!aliases) return std::move(aliases.error());
  const auto scan = scan_capture(options, diagnostics);
  if (!scan) return scan.error();
  return described(options, scan->census, *aliases);
}

Result<Redacted> redact(const RedactOptions& options, const CopyOutput& output,
                        format::Diagnostics& diagnostics) {
  auto aliases = make_aliases(options);
  if (!aliases) return std::move(aliases.error());
  format::Diagnostics seen_again;  // of damage that the copy reports
  ConvertOptions copying = options.copy;
  const auto scan = scan_capture(options, seen_again);
  if (!scan) return scan.error();
  Redacted redacted = described(options, scan->census, *aliases);
  std::vector<format::ContentClass> content;
  for (const RedactedClass& one : redacted.classes)
    if (one.number > 0)
      content.push_back({std::string(name_of(one.content)), std::string(state_of(one.how))});
  std::optional<UnwoundChains> chains;
  if (options.redaction.hides(Content::Stacks) && scan->census.has_stacks()) {
    auto read = UnwoundChains::read(options);
    if (read)
      chains = std::move(*read);
    else
      diagnostics.add_line(
          format::Damage::Note,
          "the calls in copied stacks go with these, they could not be unwound: " + read.error().what);
  }
  Redacting change(options, *aliases, *scan, chains ? &*chains : nullptr, std::move(content));
  copying.change = &change;
  copying.is_whole_or_nothing = true;
  copying.pids = options.pids;
  if (auto done = convert(copying, output, diagnostics); !done) return std::move(done.error());
  redacted.not_understood = change.not_understood();
  return redacted;
}

}  // namespace tacho::report
