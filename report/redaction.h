// The rules of tacho redact: for each class of private content, whether it is kept, dropped, hashed or moved.
#pragma once

#include <array>
#include <cstddef>
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
  Last,  // only the last part of a path stays
  Move,  // kernel addresses (KaslrRemap)
};
// The word for it in the feature section CONTENT.
std::string_view state_of(How how);

class Redaction {
 public:
  Redaction();  // each class has its default

  How how_of(Content content) const { return how_[static_cast<std::size_t>(content)]; }
  bool hides(Content content) const { return how_of(content) != How::Keep; }
  PathRule path_rule() const;

  // `classes` is "comm,paths" or "all". Refused when a class is unknown or does not allow the treatment.
  Result<> keep(std::string_view classes);
  Result<> hide(std::string_view classes);  // as by default
  Result<> drop(std::string_view classes);
  Result<> hash(std::string_view classes);

  // "cmdline  dropped  can be kept or hashed": a line for each class, for --help.
  static std::string table();

 private:
  Result<> set(std::string_view option, std::string_view classes, How how, bool is_usual);

  std::array<How, format::kContentCount> how_{};
};

}  // namespace tacho::report
