#include "report/perf_text/frame_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace tacho::report {
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

}  // namespace tacho::report
