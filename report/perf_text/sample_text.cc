#include "report/perf_text/sample_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <limits>
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
  const symbolize::SourceText& source = files_.text_of(frame.module, frame.file, frame.line);
  if (frame.line > source.lines()) return;
  out.text(fmt::format("|{:<8} ", frame.line));
  // Tabs are kept: source is indented with them.
  const std::string_view rest = source.line(frame.line);
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
  for (const LocationId number : sample.stack->frames) {
    const symbolize::Mapping* const mapping = resolver_->location(number).mapping;
    if (mapping != nullptr) used_.insert(mapping->module);
  }
}

// Writes one end of a branch, with its module if modules are shown.
void BranchText::write_end(TextBuffer& out, const ResolvedSample& sample, std::uint64_t address,
                           const Fields& fields) {
  const Location& location = sample.locate(address);
  const symbolize::Frame& frame = resolver_->frame(location);
  if (!fields.has(Field::Brstack) && fields.has(Field::Brstacksym)) {
    Fields with_offset = fields;
    with_offset.add_field(Field::Symoff);
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
  for (std::size_t i = 0; i < sample.fields->branch_count(); ++i) {
    const format::BranchEntry branch = sample.fields->branch(i);
    if (!is_symbolic) out.character(' ');
    write_end(out, sample, branch.from, fields);
    out.character('/');
    write_end(out, sample, branch.to, fields);
    write_flags(out, branch.flags);
  }
}

SampleFieldsText::SampleFieldsText(Session& session, Names names)
    : arch_(register_machine(session.features().environment.arch)),
      names_(names),
      branches_(session.resolver(), names) {}

// Writes " ABI:2    AX:0x1    BX:0x2 "; nothing for a sample without registers.
void SampleFieldsText::write_registers(TextBuffer& out, const format::Registers& registers) {
  constexpr unsigned kRegisters = 64;  // bits of a mask
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

void SampleFieldsText::write_before_location(TextBuffer& out, const ResolvedSample& sample,
                                             const Fields& fields) {
  if (fields.has(Field::DataSrc)) {
    const std::string text = data_source_text(sample.fields->data_source);
    source_width_ = std::max(source_width_, text.size());
    out.left(text, source_width_);
  }
  if (fields.has(Field::Weight)) out.decimal(sample.fields->weight, 16);
  if (fields.has(Field::InsLat)) out.decimal(sample.fields->weight2, 16);
}

void SampleFieldsText::write_after_location(TextBuffer& out, const ResolvedSample& sample,
                                            const Fields& fields) {
  const format::EventAttr& attr = sample.event().attr;
  if (fields.has(Field::Iregs) && attr.samples(format::abi::kSampleRegsIntr))
    write_registers(out, sample.fields->interrupt_registers);
  if (fields.has(Field::Uregs) && attr.samples(format::abi::kSampleRegsUser))
    write_registers(out, sample.fields->user_registers);
  if (fields.has_any({Field::Brstack, Field::Brstacksym, Field::Brstackoff}))
    branches_.write(out, sample, fields);
}

void SampleFieldsText::write_at_end(TextBuffer& out, const ResolvedSample& sample,
                                    const Fields& fields) const {
  if (fields.has(Field::PhysAddr)) out.hex(sample.fields->phys_addr, 16);
  for (const auto& [field, size] : {std::pair(Field::DataPageSize, sample.fields->data_page_size),
                                    std::pair(Field::CodePageSize, sample.fields->code_page_size)}) {
    if (!fields.has(field)) continue;
    out.character(' ');
    out.text(page_size_text(size));
  }
  if (fields.has(Field::Cgroup)) {
    out.character(' ');
    out.text(printable(sample.cgroup(), names_));
  }
}

namespace {

constexpr std::size_t kMostStore = std::size_t{16} << 20;   // bytes of functions' texts
constexpr std::size_t kMostWholes = std::size_t{24} << 20;  // bytes of texts of single locations

}  // namespace

void FrameLines::write(TextBuffer& out, const Location& location, std::uint8_t more_mode) {
  const auto mode = static_cast<std::uint8_t>((location.cpumode & 7) | (location.is_unwound ? kUnwound : 0) |
                                              (location.is_caller ? kCaller : 0) | more_mode);
  const std::size_t at =
      format::fold_product(location.ip.value + mode, reinterpret_cast<std::uintptr_t>(location.mapping) | 1) %
      kLines;
  Line& line = lines_[at];
  if (line.mapping != location.mapping || line.ip != location.ip.value || line.mode != mode) {
    forget_if_large();
    Found found;
    const std::uint32_t function = location.is_unwound ? kNone : look_up(location, found);
    if (function == kNone) {
      const auto whole = wholes_.find(LocationKey{location.mapping, location.ip.value, mode});
      return whole != wholes_.end() ? out.text(whole->second) : resolve(out, at, location, mode, found);
    }
    const std::uint64_t shown =
        location.mapping == nullptr ? location.ip.value : location.mapping->shown_address(location.ip);
    line = {.mapping = location.mapping,
            .ip = location.ip.value,
            .address = functions_[function].is_shown_as_it_ran ? location.ip.value : shown,
            .function = function,
            .offset = static_cast<std::uint32_t>(shown - found.start),
            .mode = mode};
  }
  write_line(out, at);
}

FrameLines::ModuleNames& FrameLines::names_of(const symbolize::Mapping& mapping) {
  const auto [known, is_new] = modules_.try_emplace(mapping.module);
  ModuleNames& names = known->second;
  const bool may_change = options_.is_pipe && mapping.module->is_unsure();
  if (!is_new || may_change || !resolver_->names_are_plain()) return names;
  const auto held = lock();
  const auto sources = resolver_->names_of(mapping);
  names.is_plain = sources.is_all;
  names.table = sources.table;
  return names;
}

// Looks the function of an address up in tables. kNone: only the resolver can name it.
std::uint32_t FrameLines::look_up(const Location& location, Found& found) {
  using Kind = symbolize::SymbolTable::RowLookup::Kind;
  if (location.mapping == nullptr) {
    // Kernel code may be outside of all mappings.
    if (location.cpumode == format::abi::kCpumodeKernel) return kNone;
    if (nowhere_ == kNone) nowhere_ = function_of({});
    return nowhere_;
  }
  ModuleNames& names = names_of(*location.mapping);
  if (!names.is_plain) return kNone;
  found.names = &names;
  if (names.table == nullptr) return names.unknown;
  const std::uint64_t shown = location.mapping->shown_address(location.ip);
  const auto found_row =
      location.is_caller ? names.table->try_caller_row_at(shown) : names.table->try_row_at(shown);
  if (found_row.kind == Kind::None) {
    if (!names.table->has_unnamed()) return names.unknown;
    if (names.unnamed == nullptr) return kNone;
    const auto function = names.unnamed->find_function(location.is_caller ? shown - 1 : shown);
    if (!function) return names.unknown;
    found.row = function->number | kRangeRow;
    found.start = function->range.start;
  } else {
    if (found_row.row == symbolize::SymbolTable::kNoSymbol) return kNone;
    found.row = found_row.row;
    found.start = names.table->start_of(found_row.row);
  }
  const auto row = names.rows.find(found.row);
  if (row == names.rows.end()) return kNone;
  const std::uint64_t offset = shown - found.start - (location.is_caller ? 1 : 0);
  return offset < row->second.size ? row->second.function : kNone;
}

// Resolves the address, writes its text, and caches it.
void FrameLines::resolve(TextBuffer& out, std::size_t at, const Location& location, std::uint8_t mode,
                         const Found& found) {
  Line& line = lines_[at];
  const bool is_alone = (mode & kAlone) != 0;
  auto held = lock();
  const auto frames = is_alone ? std::span(&resolver_->frame(location), 1) : resolver_->frames(location);
  const symbolize::Frame frame = frames.front();
  if (found.names != nullptr && found.names->table != nullptr)
    found.names->unnamed = found.names->table->unnamed_functions();
  const std::uint64_t offset = frame.shown_address - frame.function_start;
  const bool is_simple = frames.size() == 1 && !frame.is_inlined && !options_.fields.has(Field::Srcline) &&
                         (frame.function.empty() || offset >> 32 == 0);
  if (!is_simple) {
    scratch_.clear();
    if (is_alone) {
      if (options_.fields.has(Field::Sym)) {
        scratch_.character(' ');
        write_symbol(scratch_, frame, options_.fields, options_.names);
      }
      if (options_.fields.has(Field::Dso)) write_module(scratch_, frame, options_.names);
      if (options_.fields.has(Field::Srcline))
        write_source_line(scratch_, frame, options_.names, options_.source_path);
    } else {
      for (const symbolize::Frame& one : frames)
        write_frame(scratch_, one, options_.fields, options_.names, options_.source_path);
    }
    out.text(scratch_.view());
    if (whole_store_.size() + scratch_.size() <= kMostWholes)
      wholes_[{location.mapping, location.ip.value, mode}] = whole_store_.keep(scratch_.view());
    return;
  }
  if (held) held.unlock();
  line = {.mapping = location.mapping, .ip = location.ip.value, .address = 0, .mode = mode};
  line.function = function_of(frame);
  line.address = address_in_chain(frame);
  line.offset = static_cast<std::uint32_t>(offset);
  write_line(out, at);
  if (found.names == nullptr) return;
  if (frame.function.empty()) {
    found.names->unknown = line.function;
  } else if (found.row != kNone && frame.function_start == found.start) {
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
    const std::uint64_t size = std::max<std::uint64_t>(frame.function_end - frame.function_start, 1);
    found.names->rows[found.row] = {line.function, static_cast<std::uint32_t>(std::min(size, kMost))};
  }
}

std::uint32_t FrameLines::function_of(const symbolize::Frame& frame) {
  const std::string_view name = frame.function;
  const std::uint64_t hash = by_name_.hash(reinterpret_cast<std::uintptr_t>(name.data()),
                                           reinterpret_cast<std::uintptr_t>(frame.module));
  return by_name_.find_or_make(
      hash,
      [&](std::uint32_t number) {
        const Function& known = functions_[number];
        return known.name.data() == name.data() && known.name.size() == name.size() &&
               known.module == frame.module;
      },
      [&] {
        Function made{.name = name, .module = frame.module, .before = {}, .after = {}};
        const Fields& fields = options_.fields;
        made.has_offset = fields.has(Field::Sym) && fields.has(Field::Symoff) && !name.empty();
        made.is_shown_as_it_ran = is_shown_as_it_ran(frame);
        Fields without_offset = fields;
        without_offset.remove(Field::Symoff);
        scratch_.clear();
        if (fields.has(Field::Sym)) {
          scratch_.character(' ');
          write_symbol(scratch_, frame, without_offset, options_.names);
        }
        if (made.has_offset) scratch_.text("+0x");
        made.before = store_.keep(scratch_.view());
        scratch_.clear();
        if (fields.has(Field::Dso)) write_module(scratch_, frame, options_.names);
        made.after = store_.keep(scratch_.view());
        functions_.push_back(made);
        return static_cast<std::uint32_t>(functions_.size() - 1);
      });
}

void FrameLines::write_line(TextBuffer& out, std::size_t at) const {
  const Line& line = lines_[at];
  const bool is_alone = (line.mode & kAlone) != 0;
  const Function& function = functions_[line.function];
  if (!is_alone) {
    out.character('\t');
    out.hex(line.address, 16);
  }
  out.text(function.before);
  if (function.has_offset) out.hex(line.offset);
  out.text(function.after);
  if (!is_alone) out.character('\n');
}

// Limits the caches: names may be long, and a capture may have any number of them.
void FrameLines::forget_if_large() {
  if (store_.size() <= kMostStore) return;
  std::ranges::fill(lines_, Line());
  functions_.clear();
  nowhere_ = kNone;
  by_name_.forget();
  modules_.clear();
  store_ = {};
}

namespace {

constexpr std::uint64_t kMostBlock = 16384 - 15, kLongest = 15;  // bytes of a block, of an instruction

bool is_kernel(std::uint64_t address) { return static_cast<std::int64_t>(address) < 0; }

// "insn: 48 89 e5 ", or "<bad>" for no bytes.
std::string instruction_text(format::Bytes code) {
  std::string text = code.empty() ? "<bad>" : "insn: ";
  for (const std::byte byte : code) text += fmt::format("{:02x} ", std::to_integer<unsigned>(byte));
  return text;
}

}  // namespace

struct InstructionText::Walk {
  TextBuffer& out;
  const ResolvedSample& sample;
  const Fields& fields;
  SourceCode& source;
  std::optional<symbolize::Frame> last_function;
  std::uint64_t cycles = 0;  // of the jumps so far
};

InstructionText::InstructionText(Session& session, Names names, std::size_t most_blocks)
    : resolver_(&session.resolver()),
      names_(names),
      most_blocks_(most_blocks),
      wide_(session.features().environment.arch.value_or(""), WordSize::Bits64),
      narrow_(session.features().environment.arch.value_or(""), WordSize::Bits32) {}

// The code from `start` to the end of the instruction at `end`.
InstructionText::Block InstructionText::block(const ResolvedSample& sample, std::uint64_t start,
                                              std::uint64_t end) {
  Block found;
  if (start == 0 || end == 0) return found;
  found.crosses_over = is_kernel(start) != is_kernel(end);
  if (found.crosses_over || end - start > kMostBlock) return found;
  const Location& location = sample.locate(start);
  if (location.mapping == nullptr) return found;
  found.code = resolver_->code(location, start, end - start + kLongest);
  found.is_64_bit = resolver_->is_64_bit(location);
  return found;
}

void InstructionText::write_own(TextBuffer& out, const ResolvedSample& sample, const Fields& fields) {
  const Block here = block(sample, sample.fields->ip, sample.fields->ip);
  const std::size_t size = decoder(here.is_64_bit).first_of(here.code).size;
  if (fields.has(Field::Insnlen)) out.text(fmt::format(" ilen: {}", size));
  if (!fields.has(Field::Insn) || size == 0) return;
  std::string text = " " + instruction_text(here.code.first(size));
  text.pop_back();
  out.text(text);
}

// Writes "        main+32:" if another function than in the line before begins.
void InstructionText::write_function(Walk& walk, std::uint64_t address) {
  const symbolize::Frame& frame = resolver_->frame(walk.sample.locate(address));
  const auto& last = walk.last_function;
  if (last && last->module == frame.module && frame.shown_address >= last->function_start &&
      frame.shown_address < last->function_end)
    return;
  if (frame.function.empty()) return;
  walk.out.character('\t');
  walk.out.text(printable(frame.function, names_));
  if (frame.shown_address != frame.function_start)
    walk.out.text(fmt::format("+{}", frame.shown_address - frame.function_start));
  walk.out.character(':');
  if (walk.fields.has(Field::Srcline)) write_source_line(walk.out, frame, names_, SourcePath::Last, "\t");
  walk.out.character('\n');
  walk.last_function = frame;
}

// Returns the instruction's size; 0 if there is none.
std::size_t InstructionText::write_instruction(Walk& walk, std::uint64_t address, const Block& from,
                                               std::size_t offset) {
  const format::Bytes code = from.code.subspan(std::min(offset, from.code.size()));
  const std::size_t size = decoder(from.is_64_bit).first_of(code).size;
  walk.out.text(fmt::format("\t{:016x}\t{}", address, instruction_text(code.first(size))));
  if (walk.fields.has(Field::Brstackinsnlen)) walk.out.text(fmt::format("\tilen: {}", size));
  walk.out.character('\n');
  return size;
}

void InstructionText::write_jump(Walk& walk, std::uint64_t address, std::uint64_t flags, const Block& from,
                                 std::size_t offset, std::size_t count) {
  const format::Bytes code = from.code.subspan(std::min(offset, from.code.size()));
  const std::size_t size = decoder(from.is_64_bit).first_of(code).size;
  walk.out.text(fmt::format("\t{:016x}\t{:<30}\t", address, instruction_text(code.first(size))));
  if (walk.fields.has(Field::Brstackinsnlen)) walk.out.text(fmt::format("ilen: {}\t", size));
  walk.out.character('#');
  for (const auto& [bit, word] :
       {std::pair(kBranchPredicted, " PRED"), std::pair(kBranchMispredicted, " MISPRED"),
        std::pair(kBranchInTransaction, " INTX"), std::pair(kBranchAborted, " ABORT")}) {
    if ((flags & bit) != 0) walk.out.text(word);
  }
  if (const std::uint64_t cycles = branch_cycles(flags); cycles != 0) {
    walk.cycles += cycles;
    walk.out.text(fmt::format(" {} cycles [{}]", cycles, walk.cycles));
    if (count != 0)
      walk.out.text(fmt::format(" {:.2f} IPC", static_cast<float>(count) / static_cast<float>(cycles)));
  }
  walk.out.character('\n');
}

// Writes the code from the target of one branch to the start of the next.
void InstructionText::write_between(Walk& walk, std::uint64_t start, std::uint64_t end, std::uint64_t flags,
                                    const Block& code) {
  std::size_t offset = 0, count = 0;
  while (offset < code.code.size()) {
    const std::uint64_t address = start + offset;
    write_function(walk, address);
    if (address == end) {
      write_jump(walk, address, flags, code, offset, ++count);
      write_source(walk, address);
      break;
    }
    const std::size_t size = write_instruction(walk, address, code, offset);
    if (size == 0) break;
    write_source(walk, address);
    ++count;
    offset += size;
  }
  if (offset != end - start) walk.out.text("\tmismatch of LBR data and executable\n");
}

// Writes the code from the last branch to the sample; if branches are missing between, up to the next branch.
void InstructionText::write_last(Walk& walk) {
  const format::BranchEntry last = walk.sample.fields->branch(0);
  const std::uint64_t ip = walk.sample.fields->ip;
  if (last.from == ip || (last.flags & kBranchAborted) != 0) return;
  constexpr std::uint64_t kScan = 128;  // bytes
  const std::uint64_t start = last.to, end = ip < start ? start + kScan : ip;
  Block code = block(walk.sample, start, end);
  write_function(walk, start);
  if (code.code.empty()) {
    code = block(walk.sample, ip, ip);
    if (code.code.empty()) return;
    write_instruction(walk, ip, code, 0);
    return write_source(walk, ip);
  }
  const std::uint64_t filter = walk.sample.event().attr.branch_sample_type;
  for (std::size_t offset = 0; offset <= end - start;) {
    const std::size_t size = write_instruction(walk, start + offset, code, offset);
    if (size == 0) return;
    const bool may_jump = decoder(code.is_64_bit).first_of(code.code.subspan(offset)).is_branch;
    if (may_jump && start + offset != ip && (filter == 0 || (filter & abi::kBranchAny) != 0))
      return walk.out.text("\t... not reaching sample ...\n");
    write_source(walk, start + offset);
    offset += size;
  }
}

void InstructionText::write_source(Walk& walk, std::uint64_t address) {
  if (!walk.fields.has(Field::Srccode)) return;
  walk.source.write(walk.out, *walk.sample.thread, resolver_->frame(walk.sample.locate(address)));
}

// The record has the newest branch first, the text the oldest.
void InstructionText::write_branches(Walk& walk) {
  const format::Sample& fields = *walk.sample.fields;
  std::size_t count = fields.branch_count();
  if (count == 0) return;
  if (most_blocks_ != 0) count = std::min(count, most_blocks_ + 1);
  walk.out.character('\n');
  const format::BranchEntry first = fields.branch(count - 1);
  if (const Block code = block(walk.sample, first.from, first.from); !code.code.empty()) {
    write_function(walk, first.from);
    write_jump(walk, first.from, first.flags, code, 0, 0);
    write_source(walk, first.from);
  }
  for (std::size_t i = count - 1; i-- > 0;) {
    const std::uint64_t start = fields.branch(i + 1).to;
    std::uint64_t end = fields.branch(i).from;
    Block code = block(walk.sample, start, end);
    if (code.crosses_over && i > 0) {  // the branch between was not recorded
      end = fields.branch(--i).from;
      code = block(walk.sample, start, end);
    }
    if (!code.code.empty()) write_between(walk, start, end, fields.branch(i).flags, code);
  }
  write_last(walk);
}

void InstructionText::write(TextBuffer& out, const ResolvedSample& sample, const Fields& fields,
                            SourceCode& source) {
  if (fields.has_any({Field::Insn, Field::Insnlen})) write_own(out, sample, fields);
  if (!fields.has_any({Field::Brstackinsn, Field::Brstackinsnlen})) return;
  Walk walk{out, sample, fields, source, {}};
  write_branches(walk);
}

}  // namespace tacho::report
