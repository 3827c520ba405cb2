#include "symbolize/pack_maker.h"

#include <gtest/gtest.h>

#include <array>

#include "symbolize/symbol_source.h"

namespace tacho::symbolize {
namespace {

struct Packing {
  Module module{.kind = ModuleKind::User, .path = "//anon", .short_name = "//anon", .build_id = {}};
  SymbolSource source;
  PackMaker maker{format::PackLevel::Names};

  void add(std::uint64_t shown, std::uint64_t elf, std::optional<Symbol> symbol = std::nullopt) {
    LocationFacts facts;
    facts.module = &module;
    facts.source = &source;
    facts.symbol = symbol;
    facts.shown_address = shown;
    facts.elf_address = elf;
    maker.add_location(facts);
  }
};

TEST(PackMaker, AnAddressThatNothingIsKnownOfIsLeftOut) {
  Packing packing;
  packing.source.missing.text = "is no file";
  packing.add(0x1000, 0x1000);
  packing.add(0x2000, 0x2000, Symbol{.start = 0x2000, .end = 0x2010, .name = "known"});
  packing.add(0x3000, 0x403000);  // what views show of it is not what is shown of an address alone
  const auto pack = packing.maker.finish();
  ASSERT_EQ(pack.modules.size(), 1u);
  const format::PackedModule& module = pack.modules[0];
  EXPECT_EQ(pack.texts[module.missing_reason], "is no file");
  ASSERT_EQ(module.addresses.size(), 2u);
  EXPECT_EQ(module.addresses[0].address, 0x2000u);
  EXPECT_EQ(module.addresses[1].elf_address, 0x403000u);
}

// They differ by their inodes, which a pack does not have.
TEST(PackMaker, FilesWithOnePathStandInTheOrderOfTheirFirstUse) {
  Packing packing;
  const std::array<Module, 3> files{packing.module, packing.module, packing.module};
  const std::array<const char*, 3> reasons{"first", "second", "third"};
  for (std::size_t i = 0; i < files.size(); ++i) {
    SymbolSource source;
    source.missing.text = reasons[i];
    LocationFacts facts;
    facts.module = &files[files.size() - 1 - i];
    facts.source = &source;
    packing.maker.add_location(facts);
  }
  const auto pack = packing.maker.finish();
  ASSERT_EQ(pack.modules.size(), files.size());
  for (std::size_t i = 0; i < files.size(); ++i)
    EXPECT_EQ(pack.texts[pack.modules[i].missing_reason], reasons[i]);
}

TEST(PackMaker, ManyAddressesThatNothingIsKnownOfMakeAPackThatIsRead) {
  Packing packing;
  for (std::uint64_t number = 0; number < 700'000; ++number) packing.add(number * 4096, number * 4096);
  auto pack = packing.maker.finish();
  const auto section = format::write_symbol_pack_section(pack);
  ASSERT_TRUE(section);
  const auto back = format::parse_symbol_pack(*section);
  ASSERT_TRUE(back) << back.error().what;
  EXPECT_EQ(back->modules.size(), 1u);
}

TEST(PackMaker, FunctionsWithoutNamesAreRanges) {
  Packing packing;
  packing.module.path = "/usr/bin/stripped";
  const Symbol unnamed{
      .start = 0x2000, .end = 0x2010, .name = "stripped+0x2000", .binding = Binding::Unnamed};
  const Symbol named{.start = 0x3000, .end = 0x3010, .name = "known"};
  packing.add(0x2004, 0x2004, unnamed);
  packing.add(0x2008, 0x2008, unnamed);
  packing.add(0x3000, 0x3000, named);
  LocationFacts call;  // of the return address 0x3000, in code without symbols
  call.module = &packing.module;
  call.source = &packing.source;
  call.shown_address = call.elf_address = 0x2fff;
  packing.maker.add_location(call, PackMaker::Keep::Always);
  auto pack = packing.maker.finish();
  const auto section = format::write_symbol_pack_section(pack);
  ASSERT_TRUE(section);
  const auto back = format::parse_symbol_pack(*section);
  ASSERT_TRUE(back) << back.error().what;
  const format::PackedModule& module = back->modules.at(0);
  EXPECT_EQ(module.addresses.size(), 2u) << "the range has 0x2004 and 0x2008";

  PackedSource source(module, back->texts);
  SymbolTable& table = source.table();
  const Symbol* const found = table.find_symbol(0x200f);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->name, "stripped+0x2000");
  EXPECT_TRUE(found->is_unnamed());
  EXPECT_EQ(table.find_symbol(0x2010), nullptr);
  ASSERT_NE(table.find_symbol(0x3000), nullptr);
  EXPECT_EQ(table.find_symbol(0x3000)->name, "known");
  EXPECT_EQ(table.find_symbol(0x2fff), nullptr);
  EXPECT_EQ(table.caller_address(0x3000), 0x2fffu) << "the call was looked up: it has no name";

  PackedSource for_perf(module, back->texts);
  EXPECT_EQ(for_perf.table(Unnamed::Addresses).find_symbol(0x2004), nullptr);
}

}  // namespace
}  // namespace tacho::symbolize
