// What is taken out of a capture, class by class, and how.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "format/base/result.h"
#include "format/container/content_classes.h"
#include "report/aliases.h"

namespace tacho::report {

using format::Content;

enum class How : std::uint8_t {
  Keep,
  Drop,
  Hash,  // aliases (Aliases)
  Last,  // of paths the last part stays
  Move,  // kernel addresses (KernelPlaces)
};
// As the section CONTENT says it.
std::string_view state_of(How how);

class Redaction {
 public:
  Redaction();  // each class in its usual way

  How of(Content content) const { return how_[static_cast<std::size_t>(content)]; }
  bool hides(Content content) const { return of(content) != How::Keep; }
  PathRule path_rule() const;

  // "comm,paths" or "all". An error when a class is not known, or cannot be treated so.
  Result<> keep(std::string_view classes);
  Result<> hide(std::string_view classes);  // in its usual way
  Result<> drop(std::string_view classes);
  Result<> hash(std::string_view classes);

  // "cmdline  dropped  can be kept or hashed": a line for each class, for --help.
  static std::string table();

 private:
  Result<> set(std::string_view option, std::string_view classes, How how, bool is_usual);

  std::array<How, format::kContentCount> how_{};
};

}  // namespace tacho::report
