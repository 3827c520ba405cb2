#include "report/views/page/page_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
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

std::vector<PageColumn> shared_columns(const PageParts& parts, const PageTree::Order& order) {
  std::vector<PageColumn> columns;
  PageColumn sizes("text.size", ColumnForm::Numbers), bytes("text.bytes", ColumnForm::Byte);
  for (std::uint32_t i = 0; i < parts.texts.size(); ++i) {
    sizes.add(parts.texts[i].size());
    bytes.add_bytes(parts.texts[i]);
  }
  PageColumn name("frame.name", ColumnForm::Numbers), module("frame.module", ColumnForm::Numbers),
      kind("frame.kind", ColumnForm::Byte);
  for (const PageFrame& frame : parts.tree.frames()) {
    name.add(frame.name);
    module.add(frame.module);
    kind.add_byte(static_cast<char>(frame.kind));
  }
  // A caller stands behind: how far.
  PageColumn parent("node.parent", ColumnForm::Numbers), frame("node.frame", ColumnForm::Numbers);
  for (std::size_t i = 0; i < order.nodes.size(); ++i) {
    const PageTree::Node& node = parts.tree.nodes()[order.nodes[i]];
    parent.add(order.places[node.parent] - i);
    frame.add(node.frame);
  }
  for (PageColumn* column : {&sizes, &bytes, &name, &module, &kind, &parent, &frame})
    columns.push_back(std::move(*column));
  return columns;
}

std::string four_bytes(std::size_t size) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(size >> shift);
  return bytes;
}

}  // namespace

Result<> write_page(TextOutput& out, const std::string& head, const PageParts& parts,
                    const PageTree::Order& order, std::vector<PageColumn> columns, format::WorkerPool& pool) {
  std::vector<PageColumn> all = shared_columns(parts, order);
  std::ranges::move(columns, std::back_inserter(all));
  std::string list;
  for (const PageColumn& column : all)
    list += fmt::format("{}[\"{}\",\"{}\",{},{}]", list.empty() ? "" : ",", column.name(),
                        static_cast<char>(column.form()), column.count(), column.bytes().size());
  const std::string json = fmt::format("{{\"columns\":[{}],\"head\":{}}}", list, head);

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
      "<noscript><p>This page shows a capture of tacho by the script inside; the script is not allowed to "
      "run "
      "here. It asks no network for anything.</p></noscript></main>\n");
  PackedElements packed(out, pool);
  packed.add(four_bytes(json.size()));
  packed.add(json);
  for (const PageColumn& column : all) packed.add(column.bytes());
  if (auto done = packed.finish(); !done) return std::move(done.error());
  out.text("<script>");
  out.text(kPageScript);
  out.text("</script>\n</body>\n</html>\n");
  return Done{};
}

}  // namespace tacho::report
