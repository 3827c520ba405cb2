#include "report/perf_text/sample_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <string_view>
#include <utility>

#include "format/records/perf_abi.h"
#include "report/decode/coded_values.h"

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

void TimeText::write(TextBuffer& out, std::uint64_t time) {
  time = since_base(time);
  write_second(out, time / kSecond);
  if (digits_ == TimeDigits::Nanoseconds) {
    out.zero_filled(time % kSecond, 9);
  } else {
    out.zero_filled(time % kSecond / kMicrosecond, 6);
  }
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
  if (digits_ == TimeDigits::Nanoseconds) {
    out.zero_filled(wall % kSecond, 9);
  } else {
    out.zero_filled(wall % kSecond / kMicrosecond, 6);
  }
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

namespace {

constexpr std::string_view kUnknownSymbol = "[unknown]";

void write_name(TextBuffer& out, std::string_view name, Names names) {
  if (names == Names::Raw || is_plain(name)) return out.text(name);
  out.text(printable(name, names));
}

}  // namespace

bool is_shown_as_it_ran(const symbolize::Frame& frame) {
  using symbolize::ModuleKind;
  if (frame.module == nullptr) return true;
  const ModuleKind kind = frame.module->kind;
  return kind == ModuleKind::Kernel || kind == ModuleKind::KernelModule || kind == ModuleKind::Bpf;
}

void write_symbol(TextBuffer& out, const symbolize::Frame& frame, const Fields& fields, Names names) {
  if (frame.function.empty()) {
    out.text(kUnknownSymbol);
    return;
  }
  write_name(out, frame.function, names);
  if (!fields.has(Field::Symoff)) return;
  out.text("+0x");
  out.hex(frame.shown_address - frame.function_start);
}

void write_module_name(TextBuffer& out, const symbolize::Frame& frame, Names names) {
  write_name(out, frame.module == nullptr ? kUnknownSymbol : std::string_view(frame.module->path), names);
}

void write_module(TextBuffer& out, const symbolize::Frame& frame, Names names) {
  out.text(" (");
  write_module_name(out, frame, names);
  out.character(')');
}

void write_source_line(TextBuffer& out, const symbolize::Frame& frame, Names names, SourcePath path,
                       std::string_view before) {
  using symbolize::LineState;
  if (frame.module == nullptr) return;
  if (frame.line_state == LineState::Known) {
    out.text(before);
    write_name(out, path == SourcePath::Whole ? frame.file : frame.file.substr(frame.file.rfind('/') + 1),
               names);
    out.character(':');
    out.decimal(frame.line);
  } else if (frame.line_state == LineState::NoSource) {
    out.text(before);
    write_name(out, frame.module->short_name, names);
    out.character('[');
    out.hex(frame.elf_address);
    out.character(']');
  }
}

std::uint64_t address_in_chain(const symbolize::Frame& frame) {
  return is_shown_as_it_ran(frame) ? frame.ip.value : frame.shown_address;
}

void write_frame(TextBuffer& out, const symbolize::Frame& frame, const Fields& fields, Names names,
                 SourcePath path) {
  out.character('\t');
  out.hex(address_in_chain(frame), 16);
  if (fields.has(Field::Sym)) {
    out.character(' ');
    write_symbol(out, frame, fields, names);
  }
  if (fields.has(Field::Dso) && !frame.is_inlined) write_module(out, frame, names);
  if (fields.has(Field::Srcline)) write_source_line(out, frame, names, path);
  if (frame.is_inlined) out.text(" (inlined)");
  out.character('\n');
}

void SourceCode::write(TextBuffer& out, const Thread& thread, const symbolize::Frame& frame) {
  if (frame.line_state != symbolize::LineState::Known || frame.line == 0) return;
  auto& [file, line] = shown_last_[&thread];
  if (file == frame.file && line == frame.line) return;
  const auto& lines = files_.lines_of(frame.file);
  if (frame.line > lines.size()) return;
  out.text(fmt::format("|{:<8} ", frame.line));
  // A tab is what source is indented with, and no danger.
  std::string_view rest = lines[frame.line - 1];
  for (std::size_t at = 0; at <= rest.size();) {
    const std::size_t tab = std::min(rest.find('\t', at), rest.size());
    out.text(printable(rest.substr(at, tab - at), names_));
    if (tab < rest.size()) out.character('\t');
    at = tab + 1;
  }
  out.character('\n');
  file = frame.file;
  line = frame.line;
}

namespace {

// "/P/-/-/12/CALL "
void write_flags(TextBuffer& out, std::uint64_t flags) {
  const char prediction = (flags & kBranchPredicted) != 0      ? 'P'
                          : (flags & kBranchMispredicted) != 0 ? 'M'
                                                               : '-';
  out.character('/');
  out.character(prediction);
  out.text((flags & kBranchInTransaction) != 0 ? "/X" : "/-");
  out.text((flags & kBranchAborted) != 0 ? "/A/" : "/-/");
  out.decimal(branch_cycles(flags));
  out.character('/');
  out.text(branch_type_name(branch_type(flags)));
  out.character(' ');
}

bool is_kernel_mapping(const symbolize::Mapping& mapping) {
  return mapping.module->kind == symbolize::ModuleKind::Kernel;
}

// perf's brstackoff shows kernel addresses, but addresses in a user module only until perf has read its
// symbols, which happens when a sample hits the module.
std::uint64_t offset_in(const symbolize::Mapping& mapping, std::uint64_t address) {
  return is_kernel_mapping(mapping) ? address - mapping.start : mapping.shown_address({address});
}

}  // namespace

void BranchText::note_used(const ResolvedSample& sample, const Fields& fields) {
  if (!fields.has(Field::Brstackoff)) return;
  if (sample.location->mapping != nullptr) used_.insert(sample.location->mapping->module);
  if (sample.stack == nullptr) return;
  for (const std::uint32_t number : sample.stack->frames) {
    const symbolize::Mapping* const mapping = resolver_->location(number).mapping;
    if (mapping != nullptr) used_.insert(mapping->module);
  }
}

// One end of a branch, with its module when modules are shown.
void BranchText::write_end(TextBuffer& out, const ResolvedSample& sample, std::uint64_t address,
                           const Fields& fields) {
  const Location& location = sample.locate(address);
  const symbolize::Frame& frame = resolver_->frame(location);
  if (!fields.has(Field::Brstack) && fields.has(Field::Brstacksym)) {
    Fields with_offset = fields;
    with_offset.add(Field::Symoff);
    write_symbol(out, frame, with_offset, names_);
  } else {
    const bool is_relative =
        !fields.has(Field::Brstack) && location.mapping != nullptr &&
        (is_kernel_mapping(*location.mapping) || !used_.contains(location.mapping->module));
    out.text("0x");
    out.hex(is_relative ? offset_in(*location.mapping, address) : address);
  }
  if (!fields.has(Field::Dso)) return;
  out.character('(');
  write_module_name(out, frame, names_);
  out.character(')');
}

void BranchText::write(TextBuffer& out, const ResolvedSample& sample, const Fields& fields) {
  note_used(sample, fields);
  const bool is_symbolic = !fields.has(Field::Brstack) && fields.has(Field::Brstacksym);
  for (std::size_t i = 0; i < sample.raw->branch_count(); ++i) {
    const format::BranchEntry branch = sample.raw->branch(i);
    if (!is_symbolic) out.character(' ');
    write_end(out, sample, branch.from, fields);
    out.character('/');
    write_end(out, sample, branch.to, fields);
    write_flags(out, branch.flags);
  }
}

namespace {

constexpr unsigned kRegisters = 64;  // bits of a mask

}  // namespace

std::string page_size_text(std::uint64_t size) {
  static constexpr std::string_view kUnits = "BKMG";
  if (size == 0) return "N/A";
  std::size_t unit = 0;
  for (; size / 1024 > 1 && unit + 1 < kUnits.size(); ++unit) size /= 1024;
  return fmt::format("{}{}", size, kUnits[unit]);
}

SampleFieldsText::SampleFieldsText(Session& session, Names names)
    : arch_(register_machine(session.features().environment.arch)),
      names_(names),
      branches_(session.resolver(), names) {}

// " ABI:2    AX:0x1    BX:0x2 "; nothing for a sample that was taken where there are none.
void SampleFieldsText::write_registers(TextBuffer& out, const format::Registers& registers) {
  if (registers.abi == 0) return;
  if (register_names_.empty()) {
    for (unsigned number = 0; number < kRegisters; ++number)
      register_names_.push_back(fmt::format("{:>5}:0x", register_name(arch_, number)));
  }
  out.text(" ABI:");
  out.decimal(registers.abi);
  out.character(' ');
  std::size_t at = 0;
  for (unsigned number = 0; number < kRegisters && at < registers.values.size(); ++number) {
    if ((registers.mask >> number & 1) == 0) continue;
    out.text(register_names_[number]);
    out.hex(registers.values[at++]);
    out.character(' ');
  }
}

void SampleFieldsText::write_before_place(TextBuffer& out, const ResolvedSample& sample,
                                          const Fields& fields) {
  if (fields.has(Field::DataSrc)) {
    const std::string text = data_source_text(sample.raw->data_source);
    source_width_ = std::max(source_width_, text.size());
    out.left(text, source_width_);
  }
  if (fields.has(Field::Weight)) out.decimal(sample.raw->weight, 16);
  if (fields.has(Field::InsLat)) out.decimal(sample.raw->weight2, 16);
}

void SampleFieldsText::write_after_place(TextBuffer& out, const ResolvedSample& sample,
                                         const Fields& fields) {
  const format::EventAttr& attr = sample.event().attr;
  if (fields.has(Field::Iregs) && attr.samples(format::abi::kSampleRegsIntr))
    write_registers(out, sample.raw->interrupt_registers);
  if (fields.has(Field::Uregs) && attr.samples(format::abi::kSampleRegsUser))
    write_registers(out, sample.raw->user_registers);
  if (fields.has_any({Field::Brstack, Field::Brstacksym, Field::Brstackoff}))
    branches_.write(out, sample, fields);
}

void SampleFieldsText::write_at_end(TextBuffer& out, const ResolvedSample& sample,
                                    const Fields& fields) const {
  if (fields.has(Field::PhysAddr)) out.hex(sample.raw->phys_addr, 16);
  for (const auto& [field, size] : {std::pair(Field::DataPageSize, sample.raw->data_page_size),
                                    std::pair(Field::CodePageSize, sample.raw->code_page_size)}) {
    if (!fields.has(field)) continue;
    out.character(' ');
    out.text(page_size_text(size));
  }
  if (fields.has(Field::Cgroup)) {
    out.character(' ');
    out.text(printable(sample.cgroup(), names_));
  }
}

}  // namespace tacho::report
