#include "report/perf_text/branch_text.h"

#include <string_view>

namespace tacho::report {
namespace {

// A branch's flags: one bit each, then fields of several (the kernel's struct perf_branch_entry).
constexpr std::uint64_t kMispredicted = 1, kPredicted = 2, kInTransaction = 4, kAborted = 8;
constexpr unsigned kCyclesAt = 4, kTypeAt = 20, kNewTypeAt = 26;

constexpr std::string_view kTypes[] = {"",         "COND", "UNCOND",  "IND",    "CALL",
                                       "IND_CALL", "RET",  "SYSCALL", "SYSRET", "COND_CALL",
                                       "COND_RET", "ERET", "IRQ",     "SERROR", "NO_TX"};
constexpr unsigned kExtended = 15;  // the type is in a field of its own
constexpr std::string_view kNewTypes[] = {"FAULT_ALGN", "FAULT_DATA", "FAULT_INST", "ARCH_1",
                                          "ARCH_2",     "ARCH_3",     "ARCH_4",     "ARCH_5"};

std::string_view type_name(std::uint64_t flags) {
  const std::size_t type = flags >> kTypeAt & 15, new_type = flags >> kNewTypeAt & 15;
  if (type != kExtended) return kTypes[type];
  return new_type < std::size(kNewTypes) ? kNewTypes[new_type] : "(null)";  // as perf prints it
}

// "/P/-/-/12/CALL "
void write_flags(TextBuffer& out, std::uint64_t flags) {
  const char prediction = (flags & kPredicted) != 0 ? 'P' : (flags & kMispredicted) != 0 ? 'M' : '-';
  out.character('/');
  out.character(prediction);
  out.text((flags & kInTransaction) != 0 ? "/X" : "/-");
  out.text((flags & kAborted) != 0 ? "/A/" : "/-/");
  out.decimal(flags >> kCyclesAt & 0xffff);
  out.character('/');
  out.text(type_name(flags));
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
