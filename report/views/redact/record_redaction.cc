#include "report/views/redact/record_redaction.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>
#include <variant>

#include "format/records/cpu_map.h"
#include "report/views/convert/convert.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;
using format::Bytes;
using format::EventAttr;
using format::RecordView;

constexpr std::size_t kHead = format::kRecordHeaderSize, kWordBytes = sizeof(std::uint64_t);

// Where the text of a record begins, in bytes from its start.
constexpr std::size_t kMmapName = kHead + 32, kMmap2Name = kHead + 64, kCommName = kHead + 8,
                      kKsymbolName = kHead + 16, kCgroupPath = kHead + 8, kBuildIdName = kHead + 28;

std::size_t cpu_map_size(format::Cursor body) { return parse_cpu_map(body).size; }

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
      return cpu_map_size(record.body());
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

}  // namespace

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
  switch (redaction_->how_of(Content::Comm)) {
    case How::Keep:
      return std::string(name);
    case How::Drop:
      return "-";
    default:
      return aliases_->alias_of(name);
  }
}

// Each part of the path becomes an alias, so that the nesting stays.
std::string RecordRedaction::container(std::string_view path) const {
  if (!redaction_->hides(Content::Containers)) return std::string(path);
  std::string hidden;
  while (!path.empty()) {
    const auto slash = path.find('/');
    hidden += aliases_->alias_of(path.substr(0, slash));
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
  const auto unwound = chains_->chain_of(record.bytes);
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
  if (redaction_->how_of(Content::Containers) == How::Drop) return false;
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
      if (redaction_->how_of(Content::Containers) == How::Drop) return false;
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
    // Counts, numbers of tasks and CPUs, and addresses of user code.
    case abi::kRecordLost:
    case abi::kRecordRead:
    case abi::kRecordLostSamples:
    case abi::kRecordSwitch:
    case abi::kRecordSwitchCpuWide:
    case abi::kRecordBpfEvent:
    case abi::kRecordCallchainDeferred:
      break;
    default:  // a type that was added to the parser and not here is not given away
      ++not_understood_;
      return false;
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
        return with_body(record, kFixed + cpu_map_size(in), out);
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

}  // namespace tacho::report
