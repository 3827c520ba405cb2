#include "record/objects/ring_event.h"

#include <cstring>

#include "format/base/byte_writer.h"
#include "format/records/perf_abi.h"
#include "record/plan/plan.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

constexpr std::uint32_t kBitsOfTid = 32;
constexpr std::uint32_t kHead = 0x32434154;               // TACHO_HEAD of tacho/emit.h
constexpr std::uint32_t kHeadWithoutCgroup = 0x31434154;  // of programs that were compiled with an older one
constexpr std::size_t kMostRecordBytes = 65528;

// The CPU mode of the chain's first address.
std::uint16_t side_of(const std::vector<std::uint64_t>& chain) {
  if (chain.size() < 2) return 0;
  return chain.front() == abi::kContextKernel ? abi::kCpumodeKernel : abi::kCpumodeUser;
}

}  // namespace

std::optional<RingEvent> parse_ring_event(format::Bytes bytes) {
  format::Cursor in(bytes);
  const std::uint32_t magic = in.u32();
  RingEvent event;
  event.cpu = in.u32();
  event.time = in.u64();
  event.process = in.u32();
  event.thread = in.u32();
  if (magic == kHead) event.cgroup = in.u64();
  if (in.failed() || (magic != kHead && magic != kHeadWithoutCgroup)) return std::nullopt;
  event.payload = in.take_bytes(in.left());
  return event;
}

bool append_sample(std::vector<std::byte>& to, const RingEvent& event, std::uint64_t id,
                   const format::EventAttr& attr, const RingLayout& layout) {
  if (!attr.samples(abi::kSampleCallchain))
    return append_sample(to, event, id, attr, SampleParts{{}, layout.period_of(event.payload)});
  RingEvent rest = event;
  rest.payload = layout.rest_of(event.payload);
  return append_sample(to, rest, id, attr,
                       SampleParts{layout.chain_of(event.payload), layout.period_of(event.payload)});
}

bool append_sample(std::vector<std::byte>& to, const RingEvent& event, std::uint64_t id,
                   const format::EventAttr& attr, const SampleParts& parts) {
  const bool has_chain = attr.samples(abi::kSampleCallchain);
  const auto& chain = parts.chain;
  const format::Bytes payload = event.payload;
  // As in the kernel: the raw data, with its size, is padded to whole words.
  const std::size_t padded = (sizeof(std::uint32_t) + payload.size() + 7) / 8 * 8;
  format::ByteWriter out;
  out.u32(abi::kRecordSample);
  out.u16(side_of(chain));  // misc
  out.u16(0);               // size
  out.u64(id);
  out.u64(chain.size() < 2
              ? 0
              : chain[1]);  // ip: the address after the first context marker, as in the kernel's samples
  out.u32(event.process);
  out.u32(event.thread);
  out.u64(event.time);
  if (attr.samples(abi::kSampleAddr)) out.u64(0);
  if (attr.samples(abi::kSampleCpu)) {
    out.u32(event.cpu.value_or(0));
    out.u32(0);
  }
  if (attr.samples(abi::kSamplePeriod)) out.u64(parts.period);
  if (has_chain) {
    out.u64(chain.size());
    for (const std::uint64_t address : chain) out.u64(address);
  }
  // Other fields after the payload are unknown here: zeros.
  format::ByteWriter later_fields;
  for (const std::uint64_t each : kFieldsBehindPayload)
    if (attr.samples(static_cast<abi::SampleType>(each)))
      later_fields.u64(each == abi::kSampleCgroup ? event.cgroup : 0);
  const std::size_t head = out.view().size(), size = head + padded + later_fields.view().size();
  if (size > kMostRecordBytes) return false;
  out.u32(static_cast<std::uint32_t>(padded - sizeof(std::uint32_t)));
  // The only step that may throw: then nothing was added. Half a record would damage all later ones.
  const std::size_t begin = to.size();
  to.resize(begin + size);
  std::byte* const record = to.data() + begin;
  std::memcpy(record, out.view().data(), out.view().size());
  if (!payload.empty()) std::memcpy(record + out.view().size(), payload.data(), payload.size());
  if (!later_fields.view().empty())
    std::memcpy(record + head + padded, later_fields.view().data(), later_fields.view().size());
  const auto length = static_cast<std::uint16_t>(size);
  std::memcpy(record + 6, &length, sizeof length);
  return true;
}

OwnNumbers::OwnNumbers(const std::optional<bpf::PidNumbers>& numbers, const format::PayloadSchema* schema)
    : numbers_(numbers ? &*numbers : nullptr) {
  if (numbers_ == nullptr || schema == nullptr) return;
  for (const format::PayloadField& field : schema->fields) {
    const std::string_view name = std::string_view(field.name).substr(field.name.rfind('.') + 1);
    const bool is_number = name == "pid" || name == "tid" || name.ends_with("_pid") || name.ends_with("_tid");
    const bool is_whole = field.bit_size == kBitsOfTid || field.bit_size == 2 * kBitsOfTid;
    if (is_number && is_whole && field.bit_offset % 8 == 0 && field.count == 1)
      members_.emplace_back(field.bit_offset / 8, field.bit_size / 8);
  }
}

void OwnNumbers::translate(RingEvent& event) {
  if (numbers_ == nullptr) return;
  if (event.thread != ~0U) {
    const auto own = numbers_->own(event.thread);
    event.process = own.process;
    event.thread = own.thread;
  } else if (event.process != ~0U) {
    event.process = numbers_->own(event.process).process;
  }
  if (members_.empty()) return;
  payload_.assign(event.payload.begin(), event.payload.end());
  for (const auto& [at, size] : members_) {
    std::uint64_t tid = 0;  // little-endian, as BPF programs run on x86-64 only
    if (at + size > payload_.size()) continue;
    std::memcpy(&tid, payload_.data() + at, size);
    tid = tid == 0 ? 0 : numbers_->own(static_cast<std::uint32_t>(tid)).thread;
    std::memcpy(payload_.data() + at, &tid, size);
  }
  event.payload = payload_;
}

}  // namespace tacho::record
