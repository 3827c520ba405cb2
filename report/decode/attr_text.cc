#include "report/decode/attr_text.h"

#include <fmt/format.h>

#include <iterator>
#include <span>

#include "format/records/perf_abi.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;
using format::EventAttr;

struct BitName {
  std::uint64_t bit;
  std::string_view name;
};

// In perf's order, which is not that of the bits.
constexpr BitName kSampleTypes[] = {
    {abi::kSampleIp, "IP"},
    {abi::kSampleTid, "TID"},
    {abi::kSampleTime, "TIME"},
    {abi::kSampleAddr, "ADDR"},
    {abi::kSampleRead, "READ"},
    {abi::kSampleCallchain, "CALLCHAIN"},
    {abi::kSampleId, "ID"},
    {abi::kSampleCpu, "CPU"},
    {abi::kSamplePeriod, "PERIOD"},
    {abi::kSampleStreamId, "STREAM_ID"},
    {abi::kSampleRaw, "RAW"},
    {abi::kSampleBranchStack, "BRANCH_STACK"},
    {abi::kSampleRegsUser, "REGS_USER"},
    {abi::kSampleStackUser, "STACK_USER"},
    {abi::kSampleIdentifier, "IDENTIFIER"},
    {abi::kSampleRegsIntr, "REGS_INTR"},
    {abi::kSampleDataSrc, "DATA_SRC"},
    {abi::kSampleWeight, "WEIGHT"},
    {abi::kSamplePhysAddr, "PHYS_ADDR"},
    {abi::kSampleAux, "AUX"},
    {abi::kSampleCgroup, "CGROUP"},
    {abi::kSampleDataPageSize, "DATA_PAGE_SIZE"},
    {abi::kSampleCodePageSize, "CODE_PAGE_SIZE"},
    {abi::kSampleWeightStruct, "WEIGHT_STRUCT"},
};
constexpr BitName kReadFormats[] = {
    {abi::kReadTimeEnabled, "TOTAL_TIME_ENABLED"},
    {abi::kReadTimeRunning, "TOTAL_TIME_RUNNING"},
    {abi::kReadId, "ID"},
    {abi::kReadGroup, "GROUP"},
    {abi::kReadLost, "LOST"},
};
constexpr BitName kBranchTypes[] = {
    {1 << 0, "USER"},       {1 << 1, "KERNEL"},     {1 << 2, "HV"},         {1 << 3, "ANY"},
    {1 << 4, "ANY_CALL"},   {1 << 5, "ANY_RETURN"}, {1 << 6, "IND_CALL"},   {1 << 7, "ABORT_TX"},
    {1 << 8, "IN_TX"},      {1 << 9, "NO_TX"},      {1 << 10, "COND"},      {1 << 11, "CALL_STACK"},
    {1 << 12, "IND_JUMP"},  {1 << 13, "CALL"},      {1 << 14, "NO_FLAGS"},  {1 << 15, "NO_CYCLES"},
    {1 << 16, "TYPE_SAVE"}, {1 << 17, "HW_INDEX"},  {1 << 18, "PRIV_SAVE"},
};
constexpr BitName kFlags[] = {
    {abi::kDisabled, "disabled"},
    {abi::kInherit, "inherit"},
    {abi::kPinned, "pinned"},
    {abi::kExclusive, "exclusive"},
    {abi::kExcludeUser, "exclude_user"},
    {abi::kExcludeKernel, "exclude_kernel"},
    {abi::kExcludeHv, "exclude_hv"},
    {abi::kExcludeIdle, "exclude_idle"},
    {abi::kMmap, "mmap"},
    {abi::kComm, "comm"},
    {abi::kFreq, "freq"},
    {abi::kInheritStat, "inherit_stat"},
    {abi::kEnableOnExec, "enable_on_exec"},
    {abi::kTask, "task"},
    {abi::kWatermark, "watermark"},
    {3ULL << abi::kPreciseIpShift, "precise_ip"},
    {abi::kMmapData, "mmap_data"},
    {abi::kSampleIdAll, "sample_id_all"},
    {abi::kExcludeHost, "exclude_host"},
    {abi::kExcludeGuest, "exclude_guest"},
    {abi::kExcludeCallchainKernel, "exclude_callchain_kernel"},
    {abi::kExcludeCallchainUser, "exclude_callchain_user"},
    {abi::kMmap2, "mmap2"},
    {abi::kCommExec, "comm_exec"},
    {abi::kUseClockid, "use_clockid"},
    {abi::kContextSwitch, "context_switch"},
    {abi::kWriteBackward, "write_backward"},
    {abi::kNamespaces, "namespaces"},
    {abi::kKsymbol, "ksymbol"},
    {abi::kBpfEvent, "bpf_event"},
    {abi::kAuxOutput, "aux_output"},
    {abi::kCgroup, "cgroup"},
    {abi::kTextPoke, "text_poke"},
    {abi::kBuildId, "build_id"},
    {abi::kInheritThread, "inherit_thread"},
    {abi::kRemoveOnExec, "remove_on_exec"},
    {abi::kSigtrap, "sigtrap"},
};

std::string bit_names(std::uint64_t bits, std::span<const BitName> names) {
  std::string text;
  for (const BitName& row : names) {
    if ((bits & row.bit) == 0) continue;
    if (!text.empty()) text += '|';
    text += row.name;
  }
  return text;
}

std::string decimal(std::uint64_t value) { return std::to_string(value); }
std::string hex(std::uint64_t value) { return fmt::format("{:#x}", value); }

struct FieldRow {
  std::string_view name;
  std::uint64_t (*value)(const EventAttr&);
  std::string (*show)(std::uint64_t);
};

constexpr FieldRow kBeforeFlags[] = {
    {"type", [](const EventAttr& a) -> std::uint64_t { return a.type; }, decimal},
    {"size", [](const EventAttr& a) -> std::uint64_t { return a.size; }, decimal},
    {"config", [](const EventAttr& a) { return a.config; }, hex},
    {"{ sample_period, sample_freq }", [](const EventAttr& a) { return a.sample_period; }, decimal},
    {"sample_type", [](const EventAttr& a) { return a.sample_type; },
     [](std::uint64_t bits) { return bit_names(bits, kSampleTypes); }},
    {"read_format", [](const EventAttr& a) { return a.read_format; },
     [](std::uint64_t bits) { return bit_names(bits, kReadFormats); }},
};
constexpr FieldRow kAfterFlags[] = {
    {"{ wakeup_events, wakeup_watermark }", [](const EventAttr& a) -> std::uint64_t { return a.wakeup; },
     decimal},
    {"bp_type", [](const EventAttr& a) -> std::uint64_t { return a.bp_type; }, decimal},
    {"{ bp_addr, config1 }", [](const EventAttr& a) { return a.config1; }, hex},
    {"{ bp_len, config2 }", [](const EventAttr& a) { return a.config2; }, hex},
    {"branch_sample_type", [](const EventAttr& a) { return a.branch_sample_type; },
     [](std::uint64_t bits) { return bit_names(bits, kBranchTypes); }},
    {"sample_regs_user", [](const EventAttr& a) { return a.sample_regs_user; }, hex},
    {"sample_stack_user", [](const EventAttr& a) -> std::uint64_t { return a.sample_stack_user; }, decimal},
    {"clockid", [](const EventAttr& a) { return static_cast<std::uint64_t>(a.clockid); },
     [](std::uint64_t value) { return std::to_string(static_cast<std::int64_t>(value)); }},
    {"sample_regs_intr", [](const EventAttr& a) { return a.sample_regs_intr; }, hex},
    {"aux_watermark", [](const EventAttr& a) -> std::uint64_t { return a.aux_watermark; }, decimal},
    {"sample_max_stack", [](const EventAttr& a) -> std::uint64_t { return a.sample_max_stack; }, decimal},
    {"aux_sample_size", [](const EventAttr& a) -> std::uint64_t { return a.aux_sample_size; }, decimal},
    {"sig_data", [](const EventAttr& a) { return a.sig_data; }, decimal},
};

}  // namespace

std::string attr_text(const EventAttr& attr, AttrList form) {
  std::string text;
  const auto add = [&](std::string_view name, const std::string& value) {
    if (form == AttrList::Header || !text.empty()) text += ", ";
    text += name;
    text += form == AttrList::Header ? " = " : ": ";
    text += value;
  };
  const auto add_rows = [&](std::span<const FieldRow> rows) {
    for (const FieldRow& row : rows) {
      if (const auto value = row.value(attr); value != 0) add(row.name, row.show(value));
    }
  };
  add_rows(kBeforeFlags);
  for (const BitName& flag : kFlags) {
    // One bit, or the two of precise_ip: their value counts from their lowest bit.
    if (const auto bits = attr.flags & flag.bit; bits != 0)
      add(flag.name, decimal(bits / (flag.bit & (~flag.bit + 1))));
  }
  add_rows(kAfterFlags);
  return text;
}

}  // namespace tacho::report
