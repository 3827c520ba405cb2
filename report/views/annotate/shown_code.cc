#include "report/views/annotate/shown_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "symbolize/names/demangle.h"

namespace tacho::report {

SourceWalk::Step SourceWalk::next(const CodeLine& line) {
  Step step;
  const bool is_known = !line.file.empty() && line.line != 0;
  // Two instances of a generic function may be shown by one name.
  const bool is_other = line.function != function_ || line.function_linker != function_linker_;
  step.enters_function = !line.function.empty() && (is_first_ || is_other);
  if (step.enters_function) line_ = 0;
  is_first_ = is_first_ && line.function.empty();
  if (!line.function.empty()) {
    function_ = line.function;
    function_linker_ = line.function_linker;
  }
  if (!is_known) return step;
  step.file = line.file;
  step.line = line.line;
  step.names_line = line.line != line_;
  line_ = line.line;
  source_ = line.source;
  if (!source_.empty()) {
    step.first = step.names_line ? line.line : 1;
    step.last = step.names_line ? line.line : 0;
    return step;
  }
  const std::size_t count = files_->lines_of(line.file).size();
  if (count == 0) return step;
  Printed& printed = printed_[line.file];
  if (line.line == printed.last_line) return step;
  constexpr std::uint32_t kBefore = 5;
  std::uint32_t first = line.line > kBefore ? line.line - kBefore : 1;
  if (printed.highest >= first) first = printed.highest < line.line ? printed.highest + 1 : line.line;
  printed.highest = std::max(printed.highest, line.line);
  printed.last_line = line.line;
  step.first = first;
  step.last = static_cast<std::uint32_t>(std::min<std::size_t>(line.line, count));
  return step;
}

std::string_view SourceWalk::text(std::string_view file, std::uint32_t number) const {
  if (!source_.empty() && number == line_) return source_;
  const auto& lines = files_->lines_of(file);
  return number == 0 || number > lines.size() ? std::string_view() : std::string_view(lines[number - 1]);
}

std::string instruction_text(const CodeLine& line, std::size_t mnemonic_width) {
  const DisassembledInstruction& instruction = line.instruction;
  std::string text = instruction.operands;
  if (instruction.target) {
    text += fmt::format("{:x}", *instruction.target);
    if (!line.target_name.empty()) text += ' ' + line.target_name;
  }
  if (!text.empty()) text = fmt::format("{:<{}} {}", instruction.mnemonic, mnemonic_width, text);
  if (text.empty()) text = instruction.mnemonic;
  if (instruction.memory && !instruction.target) {
    text += fmt::format("        # {:x}", *instruction.memory);
    if (!line.target_name.empty()) text += ' ' + line.target_name;
  }
  return text;
}

std::string bytes_text(format::Bytes bytes) {
  std::string text;
  for (const std::byte byte : bytes)
    text += fmt::format("{}{:02x}", text.empty() ? "" : " ", std::to_integer<unsigned>(byte));
  return text;
}

namespace {

std::optional<std::string> demangled(std::string_view name, std::string_view linker_name) {
  const bool was_mangled = !linker_name.empty() && name != linker_name;
  return was_mangled ? symbolize::demangle(linker_name, symbolize::NameForm::Whole) : std::nullopt;
}

}  // namespace

std::string whole_name(std::string_view name, std::string_view linker_name) {
  return demangled(name, linker_name).value_or(std::string(name));
}

std::string heading_name(std::string_view name, std::string_view linker_name) {
  return demangled(name, linker_name).value_or(std::string(name) + "()");
}

std::string_view shown_path(std::string_view path, const CodeOptions& options) {
  return options.has_full_paths ? path : path.substr(path.rfind('/') + 1);
}

}  // namespace tacho::report
