#include "report/views/page/page_names.h"

#include "report/output/text_output.h"

namespace tacho::report {

std::string PageNames::name_of(Content content, std::string_view text) const {
  switch (how(content)) {
    case How::Keep:
      return printable(text);
    case How::Hash:
      return aliases_->alias_of(text);
    default:
      return std::string(text.empty() ? "" : kHidden);
  }
}
std::string PageNames::path(std::string_view path) const {
  return printable(hidden_path(path, redaction_->path_rule(), *aliases_));
}
std::string PageNames::event(std::string_view name) const {
  return printable(hidden_event(name, redaction_->path_rule(), *aliases_));
}
std::string PageNames::text_with_paths(std::string_view text) const {
  return printable(hidden_paths_in(text, redaction_->path_rule(), *aliases_));
}

}  // namespace tacho::report
