#include <elf.h>
#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

#include "bpf/object/object.h"
#include "format/base/byte_writer.h"

namespace tacho::bpf {
namespace {

using format::ByteWriter;

struct Piece {
  std::string name;
  std::uint32_t type;
  std::vector<std::byte> content;
  std::uint32_t link = 0;
};

// An object of these sections, after the empty one that ELF begins with and before the one with their names.
std::vector<std::byte> elf_of(std::vector<Piece> pieces, std::uint16_t machine = EM_BPF,
                              std::uint16_t type = ET_REL) {
  ByteWriter names;
  names.u8(0);
  std::vector<std::uint32_t> name_offsets;
  pieces.push_back({".shstrtab", SHT_STRTAB, {}});
  for (const Piece& piece : pieces) {
    name_offsets.push_back(static_cast<std::uint32_t>(names.size()));
    names.padded_text(piece.name, 1);
  }
  pieces.back().content.assign(names.view().begin(), names.view().end());

  ByteWriter out;
  out.u8(0x7f).u8('E').u8('L').u8('F').u8(ELFCLASS64);
  out.u8(std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB).u8(EV_CURRENT).zeros(9);
  out.u16(type).u16(machine).u32(EV_CURRENT).u64(0).u64(0);
  std::uint64_t body = sizeof(Elf64_Ehdr);
  std::uint64_t table = body;
  for (const Piece& piece : pieces) table += piece.content.size();
  out.u64(table).u32(0).u16(sizeof(Elf64_Ehdr)).u16(0).u16(0).u16(sizeof(Elf64_Shdr));
  out.u16(static_cast<std::uint16_t>(pieces.size() + 1)).u16(static_cast<std::uint16_t>(pieces.size()));
  for (const Piece& piece : pieces) out.bytes(piece.content);
  out.zeros(sizeof(Elf64_Shdr));
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    out.u32(name_offsets[i]).u32(pieces[i].type).u64(0).u64(0).u64(body).u64(pieces[i].content.size());
    out.u32(pieces[i].link).u32(0).u64(1).u64(0);
    body += pieces[i].content.size();
  }
  return std::move(out).take_bytes();
}

std::string refusal(const std::vector<std::byte>& file) {
  const auto object = parse_elf_object(file);
  return object ? "" : object.error().what;
}

TEST(ElfObject, FindsSectionsByName) {
  const auto file =
      elf_of({{"kprobe/x", SHT_PROGBITS, {std::byte{1}, std::byte{2}}}, {".BTF", SHT_PROGBITS, {}}});
  const auto object = parse_elf_object(file);
  ASSERT_TRUE(object) << object.error().what;
  ASSERT_NE(object->find_section("kprobe/x"), nullptr);
  EXPECT_EQ(object->find_section("kprobe/x")->content.size(), 2u);
  EXPECT_NE(object->find_section(".BTF"), nullptr);
  EXPECT_EQ(object->find_section("license"), nullptr);
}

TEST(ElfObject, SaysWhatAFileIsThatIsNoBpfObject) {
  EXPECT_NE(refusal({}).find("not an ELF object"), std::string::npos);
  EXPECT_NE(refusal(std::vector<std::byte>(100)).find("not an ELF object"), std::string::npos);
  EXPECT_NE(refusal(elf_of({}, EM_X86_64)).find("an ELF file for x86-64, not for BPF"), std::string::npos);
  EXPECT_NE(refusal(elf_of({}, 0x1234)).find("an ELF file for machine 4660"), std::string::npos);
  EXPECT_NE(refusal(elf_of({}, EM_BPF, ET_EXEC)).find("not a relocatable"), std::string::npos);
  auto other_order = elf_of({});
  other_order[EI_DATA] = std::byte{std::endian::native == std::endian::little ? ELFDATA2MSB : ELFDATA2LSB};
  EXPECT_NE(refusal(other_order).find("other byte order"), std::string::npos);
}

TEST(ElfObject, AFileCutAnywhereIsRefusedAndReadNoFurther) {
  const auto file = elf_of({{"maps", SHT_PROGBITS, std::vector<std::byte>(20)}});
  for (std::size_t size = 0; size < file.size(); ++size) {
    const std::vector<std::byte> cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(parse_elf_object(cut)) << size;
  }
  EXPECT_TRUE(parse_elf_object(file));
}

TEST(ElfObject, MapsOfTheOldKindAreRefusedWithTheDefinitionToWrite) {
  ByteWriter maps;
  maps.u32(99).u32(99).u32(99).u32(99).u32(0);  // another map, which no symbol names
  maps.u32(1).u32(8).u32(16).u32(1024).u32(0);  // hash
  ByteWriter names;
  names.u8(0).padded_text("counts", 1);
  ByteWriter symbols;
  symbols.zeros(sizeof(Elf64_Sym));
  symbols.u32(1).u16(0).u16(1).u64(20).u64(20);
  const auto file = elf_of({{"maps", SHT_PROGBITS, std::move(maps).take_bytes()},
                            {".strtab", SHT_STRTAB, std::move(names).take_bytes()},
                            {".symtab", SHT_SYMTAB, std::move(symbols).take_bytes(), 2}});
  const auto object = parse_elf_object(file);
  ASSERT_TRUE(object) << object.error().what;
  const auto refused = refuse_legacy_maps(*object);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find(
                "struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(key_size, 8); __uint(value_size, "
                "16); __uint(max_entries, 1024); } counts SEC(\".maps\");"),
            std::string::npos)
      << refused.error().what;
}

TEST(ElfObject, MapsDefinedWithBtfAreNotOld) {
  const auto file = elf_of({{".maps", SHT_PROGBITS, std::vector<std::byte>(32)}});
  const auto object = parse_elf_object(file);
  ASSERT_TRUE(object);
  EXPECT_TRUE(refuse_legacy_maps(*object));
}

}  // namespace
}  // namespace tacho::bpf
