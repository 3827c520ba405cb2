// The DWARF of one file, opened by libdw, and the part of it that it shares with other files.
#pragma once

#include <elfutils/libdw.h>

#include <memory>
#include <optional>
#include <string_view>

#include "format/base/file.h"
#include "format/base/result.h"
#include "symbolize/elf/debug_image.h"
#include "symbolize/elf/shared_part.h"

namespace tacho::symbolize {

class DwarfFile {
 public:
  // The file stays the caller's. The error does not name it.
  static Result<DwarfFile> open(const format::Fd& file);
  DwarfFile(DwarfFile&&) noexcept = default;
  DwarfFile& operator=(DwarfFile&&) = delete;  // what it has would end in the wrong order
  ~DwarfFile() = default;

  Dwarf* get() const { return dwarf_.get(); }
  const DebugImage& image() const { return image_; }
  // To be given before anything is looked up; without it what stands in that file is missing.
  std::optional<SharedPart> shared_part() const;
  Result<> use_shared_part(const format::Fd& file);
  bool has_shared_part() const { return shared_ != nullptr; }

  // The attribute (DW_AT_*) as a text; empty without it, and when it stands in a part that is not here.
  std::string_view text(Dwarf_Die& die, unsigned name) const;
  // The entry that the attribute refers to; false likewise.
  bool follow(Dwarf_Die& die, unsigned name, Dwarf_Die& target) const;

 private:
  struct End {
    void operator()(Dwarf* dwarf) const noexcept { dwarf_end(dwarf); }
  };
  DwarfFile() = default;
  static Result<> open_into(const format::Fd& file, DebugImage& image, std::unique_ptr<Dwarf, End>& dwarf);
  bool may_read(unsigned form) const;

  DebugImage image_, shared_image_;
  std::unique_ptr<Dwarf, End> shared_;
  std::unique_ptr<Dwarf, End> dwarf_;  // ended before what it refers to
};

// The reason of libdw's last failure.
Error libdw_error();

}  // namespace tacho::symbolize
