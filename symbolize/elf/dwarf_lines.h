// Looks up source lines and inlined calls of addresses in DWARF, read by libdw.
//
// Names and lines equal those of addr2line (binutils 2.40), which perf 6.1 prints. Each compilation unit is
// read when an address first falls into it, and then indexed: a lookup is two binary searches.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/file.h"
#include "format/base/result.h"
#include "format/records/address.h"
#include "symbolize/elf/debug_image.h"
#include "symbolize/elf/inline_calls.h"

namespace tacho::symbolize {

class DwarfLines {
 public:
  // `file` is open for reading. `root` is the folder that holds the recording host's "/" (--symfs). Files of
  // split DWARF (.dwo) are looked for in the file's folder and where the compiler wrote them, if that is
  // below `root`. The error does not name the file.
  static Result<DwarfLines> open(format::Fd file, std::string root);
  DwarfLines(DwarfLines&&) noexcept;
  DwarfLines& operator=(DwarfLines&&) noexcept;
  ~DwarfLines();

  // Sets the supplementary file. Call it before the first lookup; without it names in that file are missing.
  std::optional<SupplementaryFile> supplementary_file() const;
  Result<> use_supplementary_file(format::Fd file);

  // Sets `calls` to the inlined calls at `address`, the innermost first; none if the DWARF does not cover it.
  // `symbol` must outlive this.
  void find(format::ElfAddress address, const LinkerSymbol& symbol, UseSymbolName use_symbol_name,
            std::vector<Call>& calls);

  // The parts of find(), for callers that store them: the source line of the address, and its innermost
  // function as a number in the unit. Nothing if the DWARF does not cover the address.
  struct LineInfo {
    std::string_view file;
    std::uint32_t line = 0;
    std::uint32_t unit = 0, function = InlineFunction::kNone;
  };
  std::optional<LineInfo> line_info(format::ElfAddress address);
  // A function of line_info(), or one of its callers. Valid as long as this.
  InlineFunction& function(std::uint32_t unit, std::uint32_t number);

  // The first missing or damaged part that a lookup needed; empty: none.
  const std::string& missing_reason() const;
  // Whether a part was ignored because it exceeds the limits for the file's size.
  bool left_out() const;

 private:
  struct State;
  explicit DwarfLines(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tacho::symbolize
