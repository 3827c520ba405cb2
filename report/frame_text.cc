#include "report/frame_text.h"

namespace tacho::report {
namespace {

constexpr std::string_view kUnknown = "[unknown]";

bool is_shown_as_it_ran(const symbolize::Frame& frame) {  // kernel code, and what lies nowhere
  using symbolize::ModuleKind;
  if (frame.module == nullptr) return true;
  const ModuleKind kind = frame.module->kind;
  return kind == ModuleKind::Kernel || kind == ModuleKind::KernelModule || kind == ModuleKind::Bpf;
}

}  // namespace

void write_symbol(TextBuffer& out, const symbolize::Frame& frame, const Fields& fields, Names names) {
  if (frame.function.empty()) {
    out.text(kUnknown);
    return;
  }
  out.text(printable(frame.function, names));
  if (!fields.has(Field::Symoff)) return;
  out.text("+0x");
  out.hex(frame.shown_address - frame.function_start);
}

void write_module(TextBuffer& out, const symbolize::Frame& frame, Names names) {
  out.text(" (");
  out.text(frame.module == nullptr ? std::string(kUnknown) : printable(frame.module->path, names));
  out.character(')');
}

void write_frame(TextBuffer& out, const symbolize::Frame& frame, const Fields& fields, Names names) {
  out.character('\t');
  out.hex(is_shown_as_it_ran(frame) ? frame.ip.value : frame.shown_address, 16);
  if (fields.has(Field::Sym)) {
    out.character(' ');
    write_symbol(out, frame, fields, names);
  }
  if (fields.has(Field::Dso) && !frame.is_inlined) write_module(out, frame, names);
  if (frame.is_inlined) out.text(" (inlined)");
  out.character('\n');
}

}  // namespace tacho::report
