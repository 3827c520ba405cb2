#include "report/views/folded/folded_inlines.h"

namespace tacho::report {
namespace {

bool is_asked_for(const symbolize::Module& module) {
  using symbolize::ModuleKind;
  return module.kind == ModuleKind::User && module.path.find("kernel.") == std::string::npos &&
         module.path.find('[') == std::string::npos;
}

}  // namespace

std::optional<std::string> expanded_name(const symbolize::Frame& frame, Context context) {
  if (frame.module == nullptr || !is_asked_for(*frame.module)) return std::nullopt;
  // addr2line knows no name in a procedure linkage table.
  if (frame.function.empty() || frame.function == "??" || frame.function.ends_with("@plt"))
    return std::nullopt;
  std::string name(frame.function);
  if (context == Context::None) return name;
  const bool has_file = frame.line_state == symbolize::LineState::Known && !frame.file.empty();
  const std::string_view file = has_file ? frame.file.substr(frame.file.rfind('/') + 1) : "??";
  name += ':';
  name += file;
  return name + ':' + (has_file && frame.line != 0 ? std::to_string(frame.line) : "?");
}

}  // namespace tacho::report
