// The tables of the Go runtime (.gopclntab): functions, source lines and inlined calls. Programs without
// symbols and DWARF (-ldflags="-s -w", strip) have them too. Formats of Go 1.2 and later.
//
//   header      magic (by it the version: Go 1.2, 1.16, 1.18, 1.20), quantum of addresses, size of a word,
//               counts of functions and files; offsets of the tables
//   functions   address of each function, ascending, and offset of its record; then the end of the last one
//   record      address, name, tables of file and line, then the offsets of PCDATA and FUNCDATA tables
//   table       values by address: pairs of differences (value, address), as variable-length numbers
//   PCDATA      such tables; one of them has the number of the innermost inlined call
//   FUNCDATA    data of the function; one of them is the tree of its inlined calls, each with name and caller
//
// Which PCDATA and FUNCDATA these are depends on the version of Go, which the file does not state. So the
// layouts are tried, and the first one by which the trees of functions can be read is used.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/base/cursor.h"
#include "symbolize/elf/line_source.h"
#include "unwind/elf_image.h"

namespace tacho::symbolize {

class GoTables final : public LineSource {
 public:
  // Nothing: the file has no such tables.
  static std::optional<GoTables> find_in(unwind::ElfImage image);

  struct Function {
    std::uint64_t start = 0, end = 0;  // ELF addresses
    std::string_view name;             // valid as long as this
  };
  std::size_t size() const { return static_cast<std::size_t>(count_); }
  // By number, ascending by address; nothing: its record is damaged.
  std::optional<Function> function_at(std::size_t number) const;

  std::optional<LineInfo> line_info(format::ElfAddress address) override;
  InlineFunction& function(std::uint32_t unit, std::uint32_t number) override;
  const std::string& missing_reason() const override { return missing_reason_; }
  bool left_out() const override { return !missing_reason_.empty(); }

 private:
  enum class Version : std::uint8_t { Go2, Go16, Go18, Go20 };  // of the format: Go 1.2, 1.16, ...
  // The content of the file's segments, by address; each is read once.
  class Memory {
   public:
    explicit Memory(unwind::ElfImage image) : image_(std::move(image)) {}
    // From `address` to the end of its segment; empty: no segment of the file has it.
    format::Bytes from(std::uint64_t address);
    // A word that the dynamic linker may set.
    std::optional<std::uint64_t> word(std::uint64_t address, std::uint8_t size);
    std::optional<std::uint64_t> relocation(std::uint64_t address);
    // The first word that the dynamic linker sets to `value` and that `is_wanted` accepts.
    template <class IsWanted>
    std::optional<std::uint64_t> find_relocation(std::uint64_t value, IsWanted&& is_wanted);
    unwind::ElfImage& image() { return image_; }

   private:
    void read_relocations();

    unwind::ElfImage image_;
    std::deque<unwind::ElfImage::Section> segments_;
    std::uint64_t bytes_ = 0;                                                          // of segments_
    std::optional<std::vector<std::pair<std::uint64_t, std::uint64_t>>> relocations_;  // address, addend
  };
  // How a version stores inlined calls.
  struct Inlining {
    Version first, last;
    std::uint8_t index;      // of PCDATA
    std::uint8_t tree;       // of FUNCDATA
    std::uint8_t call_size;  // bytes: 16 and 20 up to Go 1.19 with caller, file and line; or 16 without
  };
  static const Inlining kInlinings[];
  // An inlined call in a function's tree.
  struct InlinedCall {
    std::string_view name, file;
    std::uint32_t line = 0;
    std::int64_t caller = -1;  // its number in the tree; -1: the function itself
  };
  // The record of a function.
  struct Record {
    std::uint64_t start = 0, end = 0;                                    // ELF addresses
    std::uint64_t at = 0;                                                // offset in records_
    std::uint64_t tables_at = 0;                                         // of its PCDATA offsets
    std::uint32_t name = 0, files = 0, lines = 0, unit = 0, pcdata = 0;  // offsets, and a count
    std::uint32_t funcdata = 0;                                          // count
  };

  explicit GoTables(unwind::ElfImage image) : memory_(std::move(image)) {}
  bool open_at(std::uint64_t address, std::uint64_t size);
  bool open_anywhere();
  bool read_header(std::uint64_t address, format::Bytes table);
  std::optional<std::uint64_t> find_module_data();

  std::optional<std::uint64_t> number(format::Bytes table, std::uint64_t at, std::uint8_t size) const;
  std::optional<std::uint32_t> word32(format::Bytes table, std::uint64_t at) const;
  std::optional<std::uint64_t> entry(std::uint64_t index) const;
  std::optional<std::uint64_t> entry_offset(std::uint64_t index) const;
  std::optional<std::uint64_t> function_number(std::uint64_t address) const;
  std::optional<Record> record(std::uint64_t number) const;
  std::string_view name_at(std::uint64_t offset) const;
  std::string_view file_of(const Record& function, std::int64_t number) const;
  template <class Visit>
  void each_value(const Record& function, std::uint32_t table, Visit&& visit);
  std::int64_t value_at(const Record& function, std::uint32_t table, std::uint64_t address);
  std::uint32_t pcdata_at(const Record& function, std::uint32_t index) const;

  const Inlining* choose_inlining();
  bool makes_sense(const Inlining& inlining);
  format::Bytes tree_of(const Record& function, const Inlining& inlining);
  std::optional<InlinedCall> inlined_call(const Record& function, const Inlining& inlining,
                                          std::int64_t number);
  std::int64_t inlined_at(const Record& function, const Inlining& inlining, std::uint64_t address);

  mutable Memory memory_;
  std::endian order_ = std::endian::little;
  Version version_ = Version::Go2;
  std::uint8_t quantum_ = 1, word_ = 8;
  std::uint64_t address_ = 0, count_ = 0, text_ = 0;
  bool is_relocated_ = false;  // addresses of functions are set by the dynamic linker
  format::Bytes table_, names_, units_, files_, values_, functions_, records_;
  std::optional<std::uint64_t> funcdata_base_;  // since Go 1.18
  std::optional<const Inlining*> inlining_;     // null: none makes sense
  std::uint64_t steps_ = 0;                     // taken in tables of values, of kMostSteps
  std::size_t module_searches_ = 0;             // of kMostModuleSearches
  std::string missing_reason_;
  std::unordered_map<std::uint64_t, InlineFunction> known_;  // by number of function and of inlined call
};

}  // namespace tacho::symbolize
