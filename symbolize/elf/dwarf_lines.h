// Looks up source lines and inlined calls of addresses in DWARF, read by libdw.
//
// Names and lines equal those of addr2line (binutils 2.40), which perf 6.1 prints. Each compilation unit is
// read when an address first falls into it, and then indexed: a lookup is two binary searches.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "format/base/file.h"
#include "format/base/result.h"
#include "format/records/address.h"
#include "symbolize/elf/debug_image.h"
#include "symbolize/elf/inline_calls.h"
#include "symbolize/elf/line_source.h"

namespace tacho::symbolize {

class DwarfLines final : public LineSource {
 public:
  // `file` is open for reading. `root` is the folder that holds the recording host's "/" (--symfs). Files of
  // split DWARF (.dwo) are looked for in the file's folder and where the compiler wrote them, if that is
  // below `root`. The error does not name the file.
  static Result<DwarfLines> open(format::Fd file, std::string root);
  DwarfLines(DwarfLines&&) noexcept;
  DwarfLines& operator=(DwarfLines&&) noexcept;
  ~DwarfLines() override;

  // Sets the supplementary file. Call it before the first lookup; without it names in that file are missing.
  std::optional<SupplementaryFile> supplementary_file() const;
  Result<> use_supplementary_file(format::Fd file);

  std::optional<LineInfo> line_info(format::ElfAddress address) override;
  // Valid as long as this.
  InlineFunction& function(std::uint32_t unit, std::uint32_t number) override;
  const std::string& missing_reason() const override;
  bool left_out() const override;
  std::vector<Md5> sums_of(std::string_view file) override;
  std::uint32_t last_line_of(std::string_view file) override;

 private:
  struct State;
  explicit DwarfLines(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tacho::symbolize
