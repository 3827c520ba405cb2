#include "report/views/page/page_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace tacho::report {

// The script and the style of pages with their SHA-256 in hexadecimal (cmake/join_modules.cmake).
extern const std::string_view kPageScript, kPageScriptHash, kPageStyle, kPageStyleHash;

namespace {

std::string policy_hash(std::string_view hex) {
  std::string bytes;
  for (std::size_t at = 0; at + 1 < hex.size(); at += 2) {
    const auto digit = [&](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
    bytes += static_cast<char>(digit(hex[at]) << 4 | digit(hex[at + 1]));
  }
  return "'sha256-" + base64(bytes) + "'";
}

std::vector<PackedColumn> shared_columns(const PageParts& parts, const PageTree::Order& order) {
  PackedTexts texts;
  for (std::uint32_t i = 0; i < parts.texts.size(); ++i) texts.add_text(parts.texts[i]);
  std::vector<PackedColumn> columns = std::move(texts).columns();
  PackedColumn name("frame.name", ColumnForm::Numbers), module("frame.module", ColumnForm::Numbers),
      kind("frame.kind", ColumnForm::Byte);
  for (const PageFrame& frame : parts.tree.frames()) {
    name.add_number(frame.name);
    module.add_number(frame.module);
    kind.add_byte(static_cast<char>(frame.kind));
  }
  // The distance to the caller, which is after its callees.
  PackedColumn parent("node.parent", ColumnForm::Numbers), frame("node.frame", ColumnForm::Numbers);
  for (std::size_t i = 0; i < order.nodes.size(); ++i) {
    const PageTree::Node& node = parts.tree.nodes()[order.nodes[i]];
    parent.add_number(order.positions[node.parent] - i);
    frame.add_number(node.frame);
  }
  for (PackedColumn* column : {&name, &module, &kind, &parent, &frame}) columns.push_back(std::move(*column));
  return columns;
}

}  // namespace

Result<> write_page(TextOutput& out, const std::string& head, const PageParts& parts,
                    const PageTree::Order& order, std::vector<PackedColumn> columns,
                    format::WorkerPool& pool) {
  std::vector<PackedColumn> all = shared_columns(parts, order);
  std::ranges::move(columns, std::back_inserter(all));
  out.text("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
  out.text(
      fmt::format("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src {}; "
                  "style-src {}; base-uri 'none'; form-action 'none'\">\n",
                  policy_hash(kPageScriptHash), policy_hash(kPageStyleHash)));
  out.text(
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>tacho page</title>\n<style>");
  out.text(kPageStyle);
  out.text(
      "</style>\n</head>\n<body>\n<main id=\"page\"><p id=\"opening\">Opening ...</p>"
      "<noscript><p>This page shows a capture of tacho with a script, and this browser does not run scripts. "
      "The script needs no network.</p></noscript></main>\n");
  if (auto done = write_packed_data(out, head, all, pool); !done) return done;
  out.text("<script>");
  out.text(kPageScript);
  out.text("</script>\n</body>\n</html>\n");
  return Done{};
}

}  // namespace tacho::report
