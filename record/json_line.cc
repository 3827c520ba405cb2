#include "record/json_line.h"

#include "format/printable.h"

namespace tacho::record {

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char letter : format::printable_json(text)) {
    if (letter == '"' || letter == '\\') out += '\\';
    out += letter;
  }
  return out + '"';
}

void JsonLine::member(std::string_view name, std::string_view value) {
  if (text_.size() > 1) text_ += ',';
  text_.append(json_text(name)).append(":").append(value);
}

void JsonLine::texts(std::string_view name, const std::vector<std::string>& values) {
  std::string list = "[";
  for (const std::string& value : values) list.append(list.size() > 1 ? "," : "").append(json_text(value));
  member(name, list + "]");
}

}  // namespace tacho::record
