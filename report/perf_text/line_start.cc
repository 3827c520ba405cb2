#include "report/perf_text/line_start.h"

#include "format/records/perf_abi.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

void write_misc(TextBuffer& out, std::uint16_t misc, std::uint32_t type) {
  const auto has = [&](unsigned bits) { return (misc & bits) == bits; };
  const std::size_t before = out.size();
  if (has(abi::kCpumodeKernel)) out.character('K');
  if (has(abi::kCpumodeUser)) out.character('U');
  if (has(abi::kCpumodeHypervisor)) out.character('H');
  if (has(abi::kCpumodeGuestKernel)) out.character('G');
  if (has(abi::kCpumodeGuestUser)) out.character('g');
  if ((type == abi::kRecordMmap || type == abi::kRecordMmap2) && has(abi::kMiscMmapData)) out.character('M');
  if (type == abi::kRecordComm && has(abi::kMiscCommExec)) out.character('E');
  if ((type == abi::kRecordSwitch || type == abi::kRecordSwitchCpuWide) && has(abi::kMiscSwitchOut)) {
    out.character('S');
    if (has(abi::kMiscSwitchOutPreempt)) out.character('p');
  }
  const std::size_t written = out.size() - before;
  out.blanks(written < 6 ? 6 - written : 1);
}

}  // namespace

void write_line_start(TextBuffer& out, const Fields& fields, const LineStart& start, TimeText& times) {
  if (fields.has(Field::Comm)) {
    out.padded(start.comm, start.is_comm_padded ? 16 : 0);
    out.character(' ');
  }
  const auto pid = static_cast<std::int32_t>(start.pid), tid = static_cast<std::int32_t>(start.tid);
  if (fields.has(Field::Pid) && fields.has(Field::Tid)) {
    out.signed_decimal(pid, 5);
    out.character('/');
    const std::size_t before = out.size();
    out.signed_decimal(tid);
    const std::size_t written = out.size() - before;
    out.blanks(written < 5 ? 6 - written : 1);
  } else if (fields.has(Field::Pid) || fields.has(Field::Tid)) {
    out.signed_decimal(fields.has(Field::Pid) ? pid : tid, 5);
    out.character(' ');
  }
  if (fields.has(Field::Cpu)) {
    out.character('[');
    if (start.cpu == ~0U) {
      out.text("-01");
    } else {
      out.zero_filled(start.cpu, 3);
    }
    out.text("] ");
  }
  if (fields.has(Field::Misc)) write_misc(out, start.misc, start.record_type);
  if (fields.has(Field::Tod)) times.write_of_day(out, start.time);
  if (fields.has(Field::Time)) times.write(out, start.time);
}

}  // namespace tacho::report
