// A JSON object on a line of its own, for `tacho list --json`, and the text values of any JSON of
// tacho-record.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tacho::record {

// A JSON string with its quotes: format::printable_json(), so UTF-8 whatever the bytes.
std::string json_text(std::string_view text);

class JsonLine {
 public:
  void text(std::string_view name, std::string_view value) { member(name, json_text(value)); }
  void texts(std::string_view name, const std::vector<std::string>& values);
  void number(std::string_view name, std::uint64_t value) { member(name, std::to_string(value)); }
  // The line with its end.
  std::string finished() const { return text_ + "}\n"; }

 private:
  void member(std::string_view name, std::string_view value);
  std::string text_ = "{";
};

}  // namespace tacho::record
