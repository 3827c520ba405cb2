// Small ELF files with call frame information, made in view of the test.
#pragma once

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/base/byte_writer.h"

namespace tacho::unwind::test {

using Code = std::vector<std::uint8_t>;  // DW_CFA or DW_OP bytes

inline std::span<const std::byte> as_bytes(const Code& code) { return std::as_bytes(std::span(code)); }

// rsp + 8, the return address below it: every x86-64 function's first row.
inline const Code kX86Entry{0x0c, 7, 8, 0x90, 1};
// sp + 0, the return address in x30.
inline const Code kArmEntry{0x0c, 31, 0};

struct Function {
  std::uint64_t start = 0, size = 0;  // file offsets; addresses are kBase above
  Code program;
  Code entry = kX86Entry;
  std::string augmentation = "zR";
  std::uint8_t return_register = 16;
};

inline constexpr std::uint64_t kBase = 0x400000;  // ELF address of the file's first byte
inline constexpr std::uint64_t kText = 0x1000;    // file offsets
inline constexpr std::uint64_t kFrames = 0x2000, kHeader = 0x3000, kNames = 0x4000, kSections = 0x4100;

enum class Search : std::uint8_t { Table, Index };
enum class Headers : std::uint8_t { Sections, SegmentsOnly };

struct Frames {
  std::vector<std::byte> bytes;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> places;  // function, its FDE: ELF addresses
};

// A CIE and an FDE for each function, as .eh_frame at `address` has them.
inline Frames eh_frame(const std::vector<Function>& functions, std::uint64_t address) {
  Frames frames;
  format::ByteWriter out;
  for (const Function& function : functions) {
    format::ByteWriter cie;
    cie.u32(0).u8(1).padded_text(function.augmentation, 1);
    cie.u8(1).u8(0x78).u8(function.return_register).u8(1).u8(0x1b);  // factors 1 and -8; pc-relative, 32 bits
    cie.bytes(as_bytes(function.entry)).align(4);
    const auto cie_at = static_cast<std::uint32_t>(out.size());
    out.u32(static_cast<std::uint32_t>(cie.size())).bytes(cie.view());

    const std::uint64_t at = out.size();
    frames.places.emplace_back(kBase + function.start, address + at);
    format::ByteWriter fde;
    fde.u32(static_cast<std::uint32_t>(at + 4 - cie_at));
    fde.u32(static_cast<std::uint32_t>(kBase + function.start - (address + at + 8)));
    fde.u32(static_cast<std::uint32_t>(function.size)).u8(0).bytes(as_bytes(function.program)).align(4);
    out.u32(static_cast<std::uint32_t>(fde.size())).bytes(fde.view());
  }
  out.u32(0);
  frames.bytes = std::move(out).take_bytes();
  return frames;
}

// The same as .debug_frame has them: a CIE for each, and absolute addresses.
inline std::vector<std::byte> debug_frame(const std::vector<Function>& functions) {
  format::ByteWriter out;
  for (const Function& function : functions) {
    format::ByteWriter cie;
    cie.u32(0xffffffff).u8(1).u8(0).u8(1).u8(0x78).u8(function.return_register);
    cie.bytes(as_bytes(function.entry)).align(4);
    const auto cie_at = static_cast<std::uint32_t>(out.size());
    out.u32(static_cast<std::uint32_t>(cie.size())).bytes(cie.view());
    format::ByteWriter fde;
    fde.u32(cie_at).u64(function.start == 0 ? 0 : kBase + function.start).u64(function.size);
    fde.bytes(as_bytes(function.program)).align(4);
    out.u32(static_cast<std::uint32_t>(fde.size())).bytes(fde.view());
  }
  return std::move(out).take_bytes();
}

inline std::vector<std::byte> search_table(Frames& frames) {
  std::ranges::sort(frames.places);
  format::ByteWriter out;
  out.u8(1).u8(0x1b).u8(0x03).u8(0x3b);
  out.u32(static_cast<std::uint32_t>(kBase + kFrames - (kBase + kHeader + 4)));
  out.u32(static_cast<std::uint32_t>(frames.places.size()));
  for (const auto& [function, fde] : frames.places) {
    out.u32(static_cast<std::uint32_t>(function - (kBase + kHeader)));
    out.u32(static_cast<std::uint32_t>(fde - (kBase + kHeader)));
  }
  return std::move(out).take_bytes();
}

inline void write_section(format::ByteWriter& out, std::uint32_t name, std::uint64_t offset,
                          std::size_t size) {
  out.u32(name).u32(SHT_PROGBITS).u64(SHF_ALLOC).u64(kBase + offset).u64(offset).u64(size);
  out.u32(0).u32(0).u64(8).u64(0);
}

// .debug_frame of a file made here.
struct DebugFrame {
  std::vector<std::byte> bytes = {};
  bool is_compressed = false;  // the bytes begin with an Elf64_Chdr
};

// The whole file as its bytes. `text` lies at kText.
inline std::string elf_image(const std::vector<Function>& functions, Search search = Search::Table,
                             Headers headers = Headers::Sections, const Code& text = {},
                             std::uint16_t machine = EM_X86_64, const DebugFrame& debug = {}) {
  Frames frames = eh_frame(functions, kBase + kFrames);
  const auto table = search == Search::Table ? search_table(frames) : std::vector<std::byte>{};
  const bool has_sections = headers == Headers::Sections;
  format::ByteWriter out;
  const auto pad_to = [&](std::uint64_t offset) { out.zeros(offset - out.size()); };
  out.bytes(std::as_bytes(std::span(std::string_view("\x7f"
                                                     "ELF\x02\x01\x01",
                                                     7))))
      .zeros(9);
  out.u16(ET_DYN).u16(machine).u32(1).u64(0).u64(64).u64(has_sections ? kSections : 0).u32(0);
  out.u16(64).u16(56).u16(2).u16(64).u16(has_sections ? 5 : 0).u16(has_sections ? 3 : 0);
  out.u32(PT_LOAD).u32(PF_R | PF_X).u64(0).u64(kBase).u64(kBase).u64(kSections).u64(kSections).u64(4096);
  out.u32(PT_GNU_EH_FRAME).u32(PF_R).u64(kHeader).u64(kBase + kHeader).u64(0).u64(table.size()).u64(0).u64(4);
  pad_to(kText);
  out.bytes(as_bytes(text));
  pad_to(kFrames);
  out.bytes(frames.bytes);
  pad_to(kHeader);
  out.bytes(table);
  pad_to(kNames);
  constexpr std::string_view kNameTable("\0.eh_frame\0.eh_frame_hdr\0.names\0.debug_frame\0", 45);
  out.bytes(std::as_bytes(std::span(kNameTable)));
  pad_to(kSections);
  if (has_sections) {
    out.zeros(64);
    write_section(out, 1, kFrames, frames.bytes.size());
    write_section(out, table.empty() ? 0 : 11, kHeader, table.size());
    write_section(out, 25, kNames, kNameTable.size());
    constexpr std::uint64_t kAfterHeaders = kSections + 5 * 64;
    const std::uint64_t flags = debug.is_compressed ? SHF_COMPRESSED : 0;
    out.u32(debug.bytes.empty() ? 0 : 32).u32(SHT_PROGBITS).u64(flags).u64(0).u64(kAfterHeaders);
    out.u64(debug.bytes.size()).u32(0).u32(0).u64(8).u64(0).bytes(debug.bytes);
  }
  const auto view = out.view();
  return std::string(reinterpret_cast<const char*>(view.data()), view.size());
}

}  // namespace tacho::unwind::test
