#include "symbolize/other_packs.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace tacho::symbolize {
namespace {

using format::PackedFunction;
using format::PackedModule;

const format::BuildId kId = *format::BuildId::from_hex("0123456789abcdef0123456789abcdef01234567");
const format::BuildId kOther = *format::BuildId::from_hex("ffffffffffffffffffffffffffffffffffffffff");

// One module with a function at each address, named "NAMEn", with a call "inlined n" in it.
std::vector<std::byte> pack_of(const std::string& name, const std::vector<std::uint64_t>& addresses,
                               ModuleKind kind = ModuleKind::User, const format::BuildId& id = kId,
                               std::uint8_t flags = PackedModule::kHasNames | PackedModule::kHasLines) {
  format::SymbolPack pack;
  PackedModule module;
  module.kind = static_cast<std::uint8_t>(kind);
  module.flags = flags;
  module.build_id = id;
  module.path = pack.texts.number_of("/opt/" + name);
  for (const std::uint64_t address : addresses) {
    const auto number = static_cast<std::uint32_t>(module.symbols.size());
    const std::string text = name + std::to_string(address);
    module.symbols.push_back({address - 1, address + 1, pack.texts.number_of(text), false});
    module.functions.push_back({.name = pack.texts.number_of(text), .is_linkage_name = true});
    module.functions.push_back({.name = pack.texts.number_of("inlined " + text),
                                .caller = 2 * number,
                                .call_file = pack.texts.number_of(name + ".c"),
                                .call_line = 7});
    module.addresses.push_back({.address = address,
                                .elf_address = address + 0x1000,
                                .symbol = number,
                                .function = 2 * number + 1,
                                .file = pack.texts.number_of(name + ".h"),
                                .line = 3});
  }
  pack.modules.push_back(module);
  const auto section = format::write_symbol_pack_section(pack);
  EXPECT_TRUE(section);
  return *section;
}

Module module_of(const format::BuildId& id, std::string_view path = "/elsewhere/program",
                 ModuleKind kind = ModuleKind::User) {
  Module module;
  module.kind = kind;
  module.path = path;
  module.build_id = id;
  return module;
}

std::string text_at(PackedSource& source, std::uint64_t address) {
  const Symbol* const symbol = source.table().find_symbol(address);
  const auto* const packed = source.at(address);
  if (symbol == nullptr || packed == nullptr) return "";
  const InlineFunction& inner = source.function(packed->function);
  return std::string(symbol->name) + " " + std::string(inner.name) + " in " +
         std::string(source.function(inner.caller).name) + " " + std::string(inner.call_file) + " " +
         std::string(source.text(packed->file)) + ":" + std::to_string(packed->line);
}

TEST(OtherPacks, ManyOfOneBuildAreOne) {
  OtherPacks others;
  ASSERT_TRUE(others.add_pack("a.data", pack_of("a", {0x30, 0x10})));
  ASSERT_TRUE(others.add_pack("b.data", pack_of("b", {0x20, 0x10, 0x50})));
  const Module module = module_of(kId);
  PackedSource* const source = others.find_source(module);
  ASSERT_NE(source, nullptr);
  EXPECT_TRUE(others.omissions().empty());
  EXPECT_EQ(text_at(*source, 0x10), "a16 inlined a16 in a16 a.c a.h:3") << "the first one's stays";
  EXPECT_EQ(text_at(*source, 0x20), "b32 inlined b32 in b32 b.c b.h:3");
  EXPECT_EQ(text_at(*source, 0x30), "a48 inlined a48 in a48 a.c a.h:3");
  EXPECT_EQ(text_at(*source, 0x50), "b80 inlined b80 in b80 b.c b.h:3");
  EXPECT_EQ(text_at(*source, 0x11), "") << "nobody hit it";
  EXPECT_EQ(source->elf_address_of(0x50), 0x1050u);
}

// Pieces of code, each of the bytes that its address has as its lowest ones.
std::vector<std::byte> pack_of_code(const std::vector<std::pair<std::uint64_t, std::size_t>>& pieces) {
  format::SymbolPack pack;
  PackedModule module;
  module.kind = static_cast<std::uint8_t>(ModuleKind::User);
  module.flags = PackedModule::kHasNames | PackedModule::kHasCode;
  module.build_id = kId;
  module.path = pack.texts.number_of("/opt/program");
  for (const auto& [start, size] : pieces) {
    module.code.push_back({.start = start, .size = static_cast<std::uint32_t>(size)});
    for (std::size_t i = 0; i < size; ++i) module.code_bytes.push_back(static_cast<std::byte>(start + i));
  }
  pack.modules.push_back(module);
  const auto section = format::write_symbol_pack_section(pack);
  EXPECT_TRUE(section);
  return *section;
}

TEST(OtherPacks, PiecesOfCodeAreOneWhereTheyTouch) {
  OtherPacks others;
  // A long one with short ones in it, some of one start, one that goes on after another, and a gap.
  ASSERT_TRUE(
      others.add_pack("a.data", pack_of_code({{0x10, 8}, {0x10, 20}, {0x10, 4}, {0x18, 2}, {0x24, 6}})));
  ASSERT_TRUE(others.add_pack("b.data", pack_of_code({{0x28, 8}, {0x40, 4}})));
  PackedSource* const source = others.find_source(module_of(kId));
  ASSERT_NE(source, nullptr);
  constexpr std::uint64_t kEnd = 0x30;
  for (std::uint64_t address = 0x10; address < kEnd; ++address) {
    const format::Bytes code = source->code_at(address, 64);
    ASSERT_EQ(code.size(), kEnd - address);
    for (std::size_t i = 0; i < code.size(); ++i) EXPECT_EQ(code[i], static_cast<std::byte>(address + i));
  }
  EXPECT_EQ(source->code_at(0x12, 5).size(), 5u);
  for (const std::uint64_t nowhere : {0x0, 0xf, 0x30, 0x3f, 0x44})
    EXPECT_TRUE(source->code_at(nowhere, 4).empty());
  EXPECT_EQ(source->code_at(0x40, 64).size(), 4u);
}

TEST(OtherPacks, OnlyFilesWithTheBuildIdAreTaken) {
  OtherPacks others;
  ASSERT_TRUE(others.add_pack("a.data", pack_of("a", {0x10})));
  ASSERT_TRUE(others.add_pack("k.data", pack_of("k", {0x10}, ModuleKind::Kernel, kOther)));
  ASSERT_TRUE(others.add_pack("n.data", pack_of("n", {0x10}, ModuleKind::User, {})));
  EXPECT_EQ(others.find_source(module_of(kOther)), nullptr);
  EXPECT_EQ(others.find_source(module_of({})), nullptr);
  EXPECT_EQ(others.find_source(module_of(kOther, "[kernel.kallsyms]", ModuleKind::Kernel)), nullptr);
  EXPECT_EQ(others.other_build_of(module_of(kOther, "/opt/a")),
            "; a.data has the names of build id 0123456789abcdef0123456789abcdef01234567");
  EXPECT_EQ(others.other_build_of(module_of(kOther)), "");
}

TEST(OtherPacks, NamesOfAnotherFormDoNotMix) {
  OtherPacks others;
  ASSERT_TRUE(others.add_pack("a.data", pack_of("a", {0x10})));
  ASSERT_TRUE(others.add_pack("b.data", pack_of("b", {0x20}, ModuleKind::User, kId,
                                                PackedModule::kHasNames | PackedModule::kIsMangled)));
  PackedSource* const source = others.find_source(module_of(kId));
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(source->at(0x20), nullptr);
  ASSERT_EQ(others.omissions().size(), 1u) << "and it is said";
  EXPECT_EQ(others.omissions().front(),
            "b.data: the names of /opt/b are ignored: an earlier capture has names of the same file in "
            "another form (mangled, or of a file without .symtab)");
}

TEST(OtherPacks, SaysWhatCannotBeUsed) {
  OtherPacks others;
  const auto empty = others.add_pack("a.data", {});
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().what,
            "a.data: it has no packed symbols; run tacho pack on the host where it was recorded");
  const std::vector<std::byte> damaged(40);
  EXPECT_FALSE(others.add_pack("a.data", damaged));
}

}  // namespace
}  // namespace tacho::symbolize
