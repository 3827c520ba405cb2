#include "report/perf_text/sample_fields_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "report/decode/coded_values.h"

namespace tacho::report {

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

bool is_kernel(const symbolize::Mapping& mapping) {
  return mapping.module->kind == symbolize::ModuleKind::Kernel;
}

// perf's brstackoff shows kernel addresses, but addresses in a user module only until perf has read its
// symbols, which happens when a sample hits the module.
std::uint64_t offset_in(const symbolize::Mapping& mapping, std::uint64_t address) {
  return is_kernel(mapping) ? address - mapping.start : mapping.shown_address({address});
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
    const bool is_relative = !fields.has(Field::Brstack) && location.mapping != nullptr &&
                             (is_kernel(*location.mapping) || !used_.contains(location.mapping->module));
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
