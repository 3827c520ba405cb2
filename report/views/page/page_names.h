// Names in a page, of which some may be hidden.
#pragma once

#include <string>
#include <string_view>

#include "report/aliases.h"
#include "report/redaction.h"

namespace tacho::report {

// Names in a page: as they are, hidden, or as pseudonyms.
class PageNames {
 public:
  static constexpr std::string_view kHidden = "[hidden]";  // in place of a name

  // Both must outlive this.
  PageNames(const Redaction& redaction, const Aliases& aliases)
      : redaction_(&redaction), aliases_(&aliases) {}

  How how(Content content) const { return redaction_->how_of(content); }
  // Safe to print.
  std::string name_of(Content content, std::string_view text) const;
  std::string path(std::string_view path) const;
  std::string event(std::string_view name) const;
  std::string text_with_paths(std::string_view text) const;

 private:
  const Redaction* redaction_;
  const Aliases* aliases_;
};

}  // namespace tacho::report
