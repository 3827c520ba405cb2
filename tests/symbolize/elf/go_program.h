// Small Go programs without symbols, made in view of the test: an ELF file with the runtime's tables.
//
//   main.run    [0x401000, 0x401080)  run.go:10, at 0x401010 line 11; from 0x401020 to 0x40103f main.scaled,
//                                     which line 11 calls, is inlined: lib.go:21; in it, from 0x401030 on,
//                                     main.twice, which line 21 calls: lib.go:31; then run.go:12
//   main.main   [0x401080, 0x401100)  run.go:40
#pragma once

#include <elf.h>

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/base/byte_writer.h"
#include "format/base/cursor.h"

namespace tacho::symbolize::test {

struct GoForm {
  std::uint32_t magic = 0xfffffff1;
  std::uint8_t word = 8;  // bytes
  bool is_swapped = false;
  bool has_sections = true;
  std::uint8_t inline_index = 2, tree_index = 3, call_size = 20;
};

class GoProgram {
 public:
  static constexpr std::uint64_t kBase = 0x400000, kText = 0x401000, kMain = 0x401080, kEnd = 0x401100;

  explicit GoProgram(const GoForm& form) : form_(form) {}

  std::string file() {
    constexpr std::uint64_t kTables = 0x2000;
    header();
    out_.zeros(kTables - out_.size());
    const std::size_t size = tables(kTables);
    const std::size_t names_at = out_.size();
    constexpr std::string_view kNames("\0.gopclntab\0.names\0", 19);
    bytes(kNames);
    out_.align(8);
    const std::size_t sections_at = out_.size();
    section(0, SHT_NULL, 0, 0);
    section(1, SHT_PROGBITS, kTables, size);
    section(12, SHT_STRTAB, names_at, kNames.size());
    patch_header(sections_at);
    const auto all = out_.view();
    return {reinterpret_cast<const char*>(all.data()), all.size()};
  }

 private:
  bool is_new() const { return form_.magic != 0xfffffffb; }          // Go 1.16
  bool has_offsets() const { return form_.magic < 0xfffffffa; }      // Go 1.18
  bool has_start_line() const { return form_.magic == 0xfffffff1; }  // Go 1.20
  void u16(std::uint16_t value) { out_.u16(form_.is_swapped ? format::Cursor::swapped(value) : value); }
  void u32(std::uint32_t value) { out_.u32(form_.is_swapped ? format::Cursor::swapped(value) : value); }
  void u64(std::uint64_t value) { out_.u64(form_.is_swapped ? format::Cursor::swapped(value) : value); }
  void word(std::uint64_t value) { form_.word == 4 ? u32(static_cast<std::uint32_t>(value)) : u64(value); }
  void bytes(std::string_view text) { out_.bytes(std::as_bytes(std::span(text))); }
  void set_word(std::size_t at, std::uint64_t value) {
    if (form_.word == 8)
      return out_.patch<std::uint64_t>(at, form_.is_swapped ? format::Cursor::swapped(value) : value);
    set_u32(at, value);
  }
  void set_u32(std::size_t at, std::uint64_t value) {
    const auto number = static_cast<std::uint32_t>(value);
    out_.patch<std::uint32_t>(at, form_.is_swapped ? format::Cursor::swapped(number) : number);
  }

  void header() {
    bytes(
        "\x7f"
        "ELF");
    const bool is_little = (std::endian::native == std::endian::little) != form_.is_swapped;
    out_.u8(form_.word == 8 ? ELFCLASS64 : ELFCLASS32)
        .u8(is_little ? ELFDATA2LSB : ELFDATA2MSB)
        .u8(1)
        .zeros(9);
    u16(ET_EXEC), u16(EM_X86_64), u32(1), word(kText);
    const std::uint16_t head = form_.word == 8 ? 64 : 52;
    word(head);
    sections_at_ = out_.size();
    word(0), u32(0), u16(head), u16(form_.word == 8 ? 56 : 32), u16(1), u16(form_.word == 8 ? 64 : 40);
    u16(0), u16(0);
    segment_at_ = out_.size();
    out_.zeros(form_.word == 8 ? 56 : 32);
  }
  // One segment with the whole file.
  void patch_header(std::size_t sections_at) {
    if (form_.has_sections) set_word(sections_at_, sections_at);
    const std::size_t counts = sections_at_ + form_.word + 10;
    const auto set_u16 = [&](std::size_t at, std::uint16_t value) {
      out_.patch<std::uint16_t>(at, form_.is_swapped ? format::Cursor::swapped(value) : value);
    };
    if (form_.has_sections) set_u16(counts + 2, 3), set_u16(counts + 4, 2);
    const std::size_t size = out_.size();
    if (form_.word == 8) {
      set_u32(segment_at_, PT_LOAD), set_u32(segment_at_ + 4, PF_R);
      set_word(segment_at_ + 16, kBase), set_word(segment_at_ + 24, kBase);
      set_word(segment_at_ + 32, size), set_word(segment_at_ + 40, size);
    } else {
      set_u32(segment_at_, PT_LOAD), set_u32(segment_at_ + 8, kBase), set_u32(segment_at_ + 12, kBase);
      set_u32(segment_at_ + 16, size), set_u32(segment_at_ + 20, size), set_u32(segment_at_ + 24, PF_R);
    }
  }
  void section(std::uint32_t name, std::uint32_t type, std::size_t at, std::size_t size) {
    u32(name), u32(type), word(0), word(at == 0 ? 0 : kBase + at), word(at), word(size), u32(0), u32(0);
    word(1), word(0);
  }

  // A table of values: each value up to an offset in the function.
  void values(const std::vector<std::pair<std::int32_t, std::uint8_t>>& rows) {
    std::int32_t value = -1;
    std::uint8_t end = 0;
    for (const auto& [next, until] : rows) {
      const std::int32_t step = next - value;
      out_.u8(static_cast<std::uint8_t>(step < 0 ? -2 * step - 1 : 2 * step));
      const auto length = static_cast<std::uint8_t>(until - end);
      if (length < 0x80)
        out_.u8(length);
      else
        out_.u8(length).u8(1);  // in 7 bits a byte
      value = next, end = until;
    }
    out_.u8(0);
  }

  struct Offsets {
    std::uint32_t files = 0, lines = 0, inlined = 0;  // tables of values
  };
  void record(std::uint64_t start, std::uint32_t name, const Offsets& at, std::uint64_t tree) {
    has_offsets() ? u32(static_cast<std::uint32_t>(start - kText)) : word(start);
    u32(name), u32(0), u32(0), u32(0), u32(at.files), u32(at.lines);
    const bool has_inlines = at.inlined != 0;
    u32(has_inlines ? form_.inline_index + 1U : 0);
    if (is_new()) u32(1);           // the unit's first file
    if (has_start_line()) u32(10);  // the line at which it starts
    const std::uint8_t funcdata = has_inlines ? form_.tree_index + 1 : 0;
    if (form_.call_size == 16 && !has_start_line())
      u32(funcdata);
    else
      out_.u8(0).u8(0).u8(0).u8(funcdata);
    if (!has_inlines) return;
    for (int i = 0; i < form_.inline_index; ++i) u32(0);
    u32(at.inlined);
    if (!has_offsets()) out_.align(form_.word);
    for (int i = 0; i < form_.tree_index; ++i) has_offsets() ? u32(~0U) : word(0);
    has_offsets() ? u32(static_cast<std::uint32_t>(tree)) : word(kBase + tree);
  }
  void inlined_call(std::int16_t parent, std::uint32_t file, std::uint32_t line, std::uint32_t name,
                    std::uint32_t place) {
    if (has_start_line()) {
      u32(0), u32(name), u32(place), u32(1);
    } else if (form_.call_size == 16) {
      u32(static_cast<std::uint32_t>(std::int32_t{parent})), u32(file), u32(line), u32(name);
    } else {
      u16(static_cast<std::uint16_t>(parent)), u16(0), u32(file), u32(line), u32(name), u32(place);
    }
  }

  // The tables at an offset in the file; returns their size.
  std::size_t tables(std::size_t start) {
    u32(form_.magic), u16(0);
    out_.u8(1).u8(form_.word);
    const std::size_t heads = out_.size();
    const std::size_t counts = is_new() ? (has_offsets() ? 8 : 7) : 1;
    out_.zeros(counts * form_.word);
    const std::size_t functions = out_.size();
    const std::size_t entry = has_offsets() ? 4 : form_.word;
    const auto reserve_functions = [&] { out_.zeros(5 * entry + 4); };
    if (!is_new()) reserve_functions();

    // Of Go 1.2 to 1.15 all offsets are from the start of the tables.
    const std::size_t names = out_.size(), names_base = is_new() ? names : start;
    const std::string_view all_names(
        "\0main.run\0main.main\0main.scaled\0main.twice\0/src/run.go\0/src/lib.go\0", 67);
    bytes(all_names);
    const auto name_of = [&](std::string_view name) {
      return static_cast<std::uint32_t>(names + all_names.find(name) - names_base);
    };
    out_.align(4);
    const std::size_t units = out_.size();  // of Go 1.16: offsets of files; before: the table of files
    u32(is_new() ? ~0U : 3);
    u32(name_of("/src/run.go")), u32(name_of("/src/lib.go"));
    const std::size_t tables_of_values = out_.size(), values_base = is_new() ? tables_of_values : start;
    out_.u8(0);
    const std::int32_t first = is_new() ? 0 : 1;  // number of run.go
    Offsets run, main;
    const auto next = [&] { return static_cast<std::uint32_t>(out_.size() - values_base); };
    run.files = next();
    values({{first, 0x20}, {first + 1, 0x40}, {first, 0x80}});
    run.lines = next();
    values({{10, 0x10}, {11, 0x20}, {21, 0x30}, {31, 0x40}, {12, 0x80}});
    run.inlined = next();
    values({{-1, 0x20}, {0, 0x30}, {1, 0x40}, {-1, 0x80}});
    main.files = next();
    values({{first, 0x80}});
    main.lines = next();
    values({{40, 0x80}});

    out_.align(8);
    const std::size_t tree = out_.size();
    inlined_call(-1, static_cast<std::uint32_t>(first), 11, name_of("main.scaled"), 0x10);
    inlined_call(0, static_cast<std::uint32_t>(first + 1), 21, name_of("main.twice"), 0x20);
    out_.align(8);
    const std::size_t records = out_.size(), records_base = is_new() ? records : start;
    if (is_new()) reserve_functions();
    out_.align(8);
    const std::size_t run_at = out_.size();
    record(kText, name_of("main.run"), run, has_offsets() ? tree - kFuncdata : tree);
    out_.align(8);
    const std::size_t main_at = out_.size();
    record(kMain, name_of("main.main"), main, 0);
    out_.align(8);
    const std::size_t size = out_.size() - start;

    const std::size_t list = is_new() ? records : functions;
    const auto set_entry = [&](std::size_t number, std::uint64_t value) {
      const std::size_t at = list + number * entry;
      entry == 4 ? set_u32(at, value) : set_word(at, value);
    };
    const std::uint64_t origin = has_offsets() ? kText : 0;
    set_entry(0, kText - origin), set_entry(1, run_at - records_base);
    set_entry(2, kMain - origin), set_entry(3, main_at - records_base), set_entry(4, kEnd - origin);
    if (!is_new()) set_u32(functions + 5 * entry, units - start);
    std::size_t at = heads;
    const auto set_head = [&](std::uint64_t value) { set_word(std::exchange(at, at + form_.word), value); };
    set_head(2);
    if (is_new()) {
      set_head(2);
      if (has_offsets()) set_head(kText);
      for (const std::size_t part : {names, units, names, tables_of_values, records}) set_head(part - start);
    }
    if (has_offsets()) module_data(start, names);
    return size;
  }
  void module_data(std::size_t start, std::size_t names) {
    const int gofunc = has_start_line() ? 40 : 38;
    word(kBase + start), word(kBase + names);
    for (int i = 2; i < gofunc; ++i) word(i == 22 ? kText : 0);
    word(kBase + kFuncdata);
  }

  static constexpr std::uint64_t kFuncdata = 0x1800;  // offset in the file to which FUNCDATA is relative
  GoForm form_;
  format::ByteWriter out_;
  std::size_t sections_at_ = 0, segment_at_ = 0;  // fields of the ELF header
};

}  // namespace tacho::symbolize::test
