// LineSource: source lines and inlined calls by the addresses of a file. Readers: DWARF, and Go's own tables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/records/address.h"
#include "symbolize/elf/inline_calls.h"
#include "symbolize/files/source_files.h"

namespace tacho::symbolize {

class LineSource {
 public:
  LineSource() = default;
  LineSource(const LineSource&) = delete;
  LineSource& operator=(const LineSource&) = delete;
  LineSource(LineSource&&) = default;
  LineSource& operator=(LineSource&&) = default;
  virtual ~LineSource() = default;

  // Sets `calls` to the inlined calls at `address`, the innermost first; none if the source does not cover
  // it. `symbol` must outlive this.
  void find_calls(format::ElfAddress address, const LinkerSymbol& symbol, UseSymbolName use_symbol_name,
                  std::vector<Call>& calls) {
    calls.clear();
    const auto info = line_info(address);
    if (!info) return;
    list_calls({{}, info->file, info->line}, info->function, symbol, use_symbol_name, calls,
               [&](std::uint32_t number) -> InlineFunction& { return function(info->unit, number); });
  }

  // The parts of find_calls(), for callers that store them: the source line of the address, and its innermost
  // function as a number in the unit. Nothing if the source does not cover the address.
  struct LineInfo {
    std::string_view file;
    std::uint32_t line = 0;
    std::uint32_t unit = 0, function = InlineFunction::kNone;
  };
  virtual std::optional<LineInfo> line_info(format::ElfAddress address) = 0;
  // A function of line_info(), or one of its callers. Valid until the next call.
  virtual InlineFunction& function(std::uint32_t unit, std::uint32_t number) = 0;

  // The MD5 sums of a source file of line_info() when it was compiled; empty: unknown.
  virtual std::vector<Md5> sums_of(std::string_view file) {
    (void)file;
    return {};
  }

  // The highest line of a source file of line_info() that code comes from, as far as its tables are read; 0:
  // unknown. A file with fewer lines is another text.
  virtual std::uint32_t last_line_of(std::string_view file) {
    (void)file;
    return 0;
  }

  // The first missing or damaged part that a lookup needed; empty: none.
  virtual const std::string& missing_reason() const = 0;
  // Whether a part was ignored because it exceeds the limits for the file's size.
  virtual bool left_out() const = 0;
};

}  // namespace tacho::symbolize
