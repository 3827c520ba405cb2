#include "report/perf_text/sample_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "format/records/perf_abi.h"
#include "report/decode/coded_values.h"
#include "report/perf_text/frame_text.h"
#include "symbolize/address_space.h"

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

}  // namespace tacho::report
