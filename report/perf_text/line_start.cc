#include "report/perf_text/line_start.h"

#include <ctime>

#include "format/records/perf_abi.h"

namespace tacho::report {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000, kMicrosecond = 1000;  // ns

}  // namespace

std::uint64_t TimeText::since_base(std::uint64_t time) {
  if (base_ == TimeBase::Clock) return time;
  if (base_ == TimeBase::FirstLine) {
    if (first_ == 0) first_ = time;
    return time - first_;
  }
  const std::uint64_t since = before_ == 0 ? 0 : time - before_;
  before_ = time;
  return since;
}

void TimeText::write_second(TextBuffer& out, std::uint64_t second) {
  if (second_size_ == 0 || second != shown_second_) {
    TextBuffer text;
    text.decimal(second, 5);  // 12 with the point and six digits
    text.character('.');
    second_size_ = text.view().copy(second_text_, sizeof second_text_);
    shown_second_ = second;
  }
  out.short_text(second_text_, second_size_);
}

void TimeText::write_fraction(TextBuffer& out, std::uint64_t time) const {
  if (digits_ == TimeDigits::Nanoseconds) {
    out.zero_filled(time % kSecond, 9);
  } else {
    out.zero_filled(time % kSecond / kMicrosecond, 6);
  }
}

void TimeText::write(TextBuffer& out, std::uint64_t time) {
  time = since_base(time);
  write_second(out, time / kSecond);
  write_fraction(out, time);
  out.text(": ");
}

void TimeText::write_of_day(TextBuffer& out, std::uint64_t time) const {
  if (!clock_) return;
  const std::uint64_t wall = clock_->wall_ns + (time - clock_->clock_ns);
  const auto seconds = static_cast<std::time_t>(wall / kSecond);
  std::tm parts{};
  char date[64];
  if (::localtime_r(&seconds, &parts) == nullptr ||
      std::strftime(date, sizeof date, "%F %H:%M:%S", &parts) == 0)
    return out.text("failed ");  // perf's word for a time outside of the calendar
  out.text(date);
  out.character('.');
  write_fraction(out, wall);
  out.character(' ');
}

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
