// The text after --where: any text gives a tree whose nodes stand after their parts, or a message.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "cli/expression.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto expression = tacho::cli::parse_expression("--where", text);
  if (!expression) return expression.error().what.empty() ? std::abort(), 0 : 0;
  const auto& nodes = expression->nodes;
  if (nodes.empty()) std::abort();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const bool is_leaf = nodes[i].operation <= tacho::cli::Operation::Name;
    if (!is_leaf && (nodes[i].left >= i || nodes[i].right >= i)) std::abort();
  }
  tacho::cli::looks_like(text, text.substr(0, size / 2));
  return 0;
}
