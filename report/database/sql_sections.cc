#include "report/database/sql_sections.h"

#include <algorithm>

namespace tacho::report {
namespace {

constexpr std::string_view kBegin = "-- section: ";
constexpr int kDeepest = 8;  // sections in sections

// Without the comments that stand before the next section.
std::string_view without_trailing_comments(std::string_view text) {
  while (!text.empty()) {
    const std::size_t line = text.substr(0, text.size() - 1).rfind('\n') + 1;
    const std::string_view last = text.substr(line);
    if (last != "\n" && !last.starts_with("--")) break;
    text = text.substr(0, line);
  }
  return text;
}

std::string_view section_text(std::string_view file, std::string_view name) {
  const std::string head = std::string(kBegin) + std::string(name) + "\n";
  const auto at = file.find(head);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = file.substr(at + head.size());
  return without_trailing_comments(rest.substr(0, rest.find(kBegin)));
}

Result<std::string> expanded(std::string_view file, std::string_view name, const SqlParts& parts, int depth) {
  std::string_view text = section_text(file, name);
  if (text.empty() || depth == 0) return Error{"no section '" + std::string(name) + "' in fleet's SQL"};
  std::string sql;
  for (;;) {
    const auto begin = text.find('@');
    sql += text.substr(0, begin);
    if (begin == std::string_view::npos) return sql;
    const auto end = text.find('@', begin + 1);
    if (end == std::string_view::npos) return Error{"'@' without its end in fleet's SQL"};
    const std::string_view part = text.substr(begin + 1, end - begin - 1);
    if (const auto given = parts.find(part); given != parts.end()) {
      sql += given->second;
    } else {
      const auto inner = expanded(file, part, parts, depth - 1);
      if (!inner) return inner;
      sql += *inner;
    }
    text.remove_prefix(end + 1);
  }
}

}  // namespace

Result<std::string> sql_section(std::string_view file, std::string_view name, const SqlParts& parts) {
  return expanded(file, name, parts, kDeepest);
}

std::vector<std::string> sql_statements(std::string_view text) {
  std::vector<std::string> statements;
  std::size_t begin = 0;
  bool has_words = false;
  const auto end_at = [&](std::size_t end) {
    if (has_words) statements.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
    has_words = false;
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("--") || rest.starts_with("/*")) {
      const std::string_view close = rest[0] == '-' ? "\n" : "*/";
      const auto length = rest.find(close, 2);
      at = length == std::string_view::npos ? text.size() : at + length + close.size() - 1;
    } else if (rest[0] == '\'' || rest[0] == '"') {
      has_words = true;
      at = std::min(text.find(rest[0], at + 1), text.size());
    } else if (rest[0] == ';') {
      end_at(at);
    } else {
      has_words = has_words || std::string_view(" \t\r\n").find(rest[0]) == std::string_view::npos;
    }
  }
  end_at(text.size());
  return statements;
}

std::string sql_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "''" : std::string(1, c);
  return quoted + "'";
}

SqlParts sql_quoted(SqlParts parts) {
  for (auto& [name, text] : parts) text = sql_quoted(std::string_view(text));
  return parts;
}

}  // namespace tacho::report
