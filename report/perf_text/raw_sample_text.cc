#include "report/perf_text/raw_sample_text.h"

#include <fmt/format.h>

#include <string>

#include "report/decode/branch_flags.h"
#include "report/decode/register_names.h"
#include "report/perf_text/sample_fields_text.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

void write_chain(TextBuffer& out, const format::Sample& sample) {
  out.text(fmt::format("... FP chain: nr:{}\n", sample.callchain.size()));
  for (std::size_t i = 0; i < sample.callchain.size(); ++i)
    out.text(fmt::format("..... {:2}: {:016x}\n", i, sample.callchain[i]));
}

void write_branches(TextBuffer& out, const format::Sample& sample, const format::EventAttr& attr) {
  const bool is_call_stack = (attr.branch_sample_type & abi::kBranchCallStack) != 0;
  constexpr unsigned kReservedAt = 33;  // the first bit of the flags that perf 6.1 has no name for
  out.text(
      fmt::format("... branch {}: nr:{}\n", is_call_stack ? "callstack" : "stack", sample.branch_count()));
  for (std::size_t i = 0; i < sample.branch_count(); ++i) {
    const format::BranchEntry branch = sample.branch(i);
    if (is_call_stack) {  // perf leaves out all but where the calls went, the last one's caller aside
      if (i == 0) out.text(fmt::format("..... {:2}: {:016x}\n", i, branch.to));
      out.text(fmt::format("..... {:2}: {:016x}\n", i + 1, branch.from));
      continue;
    }
    const auto mark = [&](std::uint64_t bit, char letter) {
      return (branch.flags & bit) != 0 ? letter : ' ';
    };
    out.text(fmt::format("..... {:2}: {:016x} -> {:016x} {} cycles {}{}{}{} {:x} {}\n", i, branch.from,
                         branch.to, branch_cycles(branch.flags), mark(kBranchMispredicted, 'M'),
                         mark(kBranchPredicted, 'P'), mark(kBranchAborted, 'A'),
                         mark(kBranchInTransaction, 'T'), branch.flags >> kReservedAt,
                         branch_type_name(branch_type(branch.flags))));
  }
}

void write_registers(TextBuffer& out, std::string_view whose, const format::Registers& registers,
                     std::string_view arch) {
  if (registers.abi == 0) return;
  out.text(fmt::format("... {} regs: mask {:#x} ABI {}\n", whose, registers.mask,
                       registers.abi == 1   ? "32-bit"
                       : registers.abi == 2 ? "64-bit"
                                            : "unknown"));
  std::size_t at = 0;
  for (unsigned number = 0; number < 64 && at < registers.values.size(); ++number) {
    if ((registers.mask >> number & 1) == 0) continue;
    out.text(fmt::format(".... {:<5} 0x{:016x}\n", register_name(arch, number), registers.values[at++]));
  }
}

void write_values(TextBuffer& out, const format::ReadValues& values) {
  const auto has = [&](std::uint64_t bit) { return (values.read_format & bit) != 0; };
  out.text("... sample_read:\n");
  if (has(abi::kReadTimeEnabled)) out.text(fmt::format("...... time enabled {:016x}\n", values.time_enabled));
  if (has(abi::kReadTimeRunning)) out.text(fmt::format("...... time running {:016x}\n", values.time_running));
  if (has(abi::kReadGroup)) out.text(fmt::format(".... group nr {}\n", values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto entry = values.entry(i);
    out.text(fmt::format("..... id {:016x}, value {:016x}", entry.id, entry.value));
    if (has(abi::kReadLost)) out.text(fmt::format(", lost {}", entry.lost));
    out.character('\n');
  }
}

// Where the size of the copied stack stands, as perf counts: bytes from the record's begin.
std::size_t stack_offset(const format::RecordView& record, const format::Sample& sample) {
  return static_cast<std::size_t>(sample.user_stack.data() - record.bytes.data()) - sizeof(std::uint64_t);
}

}  // namespace

void write_raw_sample(TextBuffer& out, const format::RecordView& record, const format::Sample& sample,
                      const format::EventAttr& attr, std::string_view arch) {
  out.text(fmt::format("(IP, {:#x}): {}/{}: {:#x} period: {} addr: {}\n", record.misc,
                       static_cast<std::int32_t>(sample.pid), static_cast<std::int32_t>(sample.tid),
                       sample.ip, sample.period, sample.addr == 0 ? "0" : fmt::format("{:#x}", sample.addr)));
  const auto has = [&](abi::SampleType bit) { return attr.samples(bit); };
  if (has(abi::kSampleCallchain)) write_chain(out, sample);
  if (has(abi::kSampleBranchStack)) write_branches(out, sample, attr);
  if (has(abi::kSampleRegsUser)) write_registers(out, "user", sample.user_registers, arch);
  if (has(abi::kSampleRegsIntr)) write_registers(out, "intr", sample.interrupt_registers, arch);
  if (has(abi::kSampleStackUser)) {
    out.text(fmt::format("... ustack: size {}, offset {:#x}\n", sample.user_stack.size(),
                         sample.user_stack.empty() ? 0 : stack_offset(record, sample)));
  }
  if (has(abi::kSampleWeight)) out.text(fmt::format("... weight: {}\n", sample.weight));
  if (has(abi::kSampleWeightStruct)) {  // the last part has a meaning to perf on POWER alone
    out.text(fmt::format("... weight: {},{:#x},{:#x}\n", sample.weight, sample.weight2,
                         arch.starts_with("ppc") ? sample.weight3 : 0));
  }
  if (has(abi::kSampleDataSrc)) out.text(fmt::format(" . data_src: 0x{:x}\n", sample.data_source));
  if (has(abi::kSamplePhysAddr)) out.text(fmt::format(" .. phys_addr: 0x{:x}\n", sample.phys_addr));
  if (has(abi::kSampleDataPageSize))
    out.text(fmt::format(" .. data page size: {}\n", page_size_text(sample.data_page_size)));
  if (has(abi::kSampleCodePageSize))
    out.text(fmt::format(" .. code page size: {}\n", page_size_text(sample.code_page_size)));
  if (has(abi::kSampleTransaction)) out.text(fmt::format("... transaction: {:x}\n", sample.transaction));
  if (has(abi::kSampleRead)) write_values(out, sample.read);
}

}  // namespace tacho::report
