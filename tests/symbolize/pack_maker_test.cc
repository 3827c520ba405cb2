#include "symbolize/pack_maker.h"

#include <gtest/gtest.h>

#include "symbolize/name_source.h"

namespace tacho::symbolize {
namespace {

struct Packing {
  Module module{.kind = ModuleKind::User, .path = "//anon", .short_name = "//anon", .build_id = {}};
  Source source;
  PackMaker maker{format::PackLevel::Names};

  void add(std::uint64_t shown, std::uint64_t elf, std::optional<Symbol> symbol = std::nullopt) {
    PlaceFacts facts;
    facts.module = &module;
    facts.source = &source;
    facts.symbol = symbol;
    facts.shown_address = shown;
    facts.elf_address = elf;
    maker.add(facts);
  }
};

TEST(PackMaker, AnAddressThatNothingIsKnownOfIsLeftOut) {
  Packing packing;
  packing.source.lack = "is no file";
  packing.add(0x1000, 0x1000);
  packing.add(0x2000, 0x2000, Symbol{.start = 0x2000, .end = 0x2010, .name = "known"});
  packing.add(0x3000, 0x403000);  // what views show of it is not what is shown of an address alone
  const auto pack = packing.maker.finish();
  ASSERT_EQ(pack.modules.size(), 1u);
  const format::PackedModule& module = pack.modules[0];
  EXPECT_EQ(pack.texts[module.lack], "is no file");
  ASSERT_EQ(module.addresses.size(), 2u);
  EXPECT_EQ(module.addresses[0].address, 0x2000u);
  EXPECT_EQ(module.addresses[1].elf_address, 0x403000u);
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

}  // namespace
}  // namespace tacho::symbolize
