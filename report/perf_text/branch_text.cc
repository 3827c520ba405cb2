#include "report/perf_text/branch_text.h"

#include "report/decode/branch_flags.h"

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

// perf's brstackoff shows addresses within the kernel, and those within a program's modules only as long as
// it has not read the module's symbols, which it does when a sample ran there.
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

}  // namespace tacho::report
