#include "report/views/folded/folded_names.h"

#include "report/perf_text/frame_text.h"

namespace tacho::report {
namespace {

constexpr Fields kLineFields{Field::Ip, Field::Sym, Field::Symoff, Field::Dso};

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

FrameNames folded_frame_names(Session& session, FoldedStacks& folded, const FoldOptions& options,
                              FoldedInlines inlines) {
  const bool tells_places = options.marks.addresses || inlines.context == Context::FileAndLine;
  const auto make = [&folded, options, inlines](const symbolize::Frame& frame, const FramePlace& /*place*/,
                                                bool is_java, std::vector<std::uint32_t>& numbers) {
    if (inlines.are_expanded) {
      if (const auto expanded = expanded_name(frame, inlines.context)) {
        const bool is_the_name = inlines.context == Context::None;
        return numbers.push_back(is_the_name ? folded.name_that_stays(frame.function)
                                             : folded.name(*expanded));
      }
    }
    std::vector<std::string> names;
    if (options.as_perl) {
      TextBuffer line;
      write_frame(line, frame, kLineFields, Names::Raw);
      names = fold_frame(line.view(), options, is_java);
    } else {
      names = names_of_frame(frame, options.marks, is_java);
    }
    for (auto name = names.rbegin(); name != names.rend(); ++name) numbers.push_back(folded.name(*name));
  };
  return {session, tells_places ? FrameNames::Of::Places : FrameNames::Of::Functions, make};
}

}  // namespace tacho::report
