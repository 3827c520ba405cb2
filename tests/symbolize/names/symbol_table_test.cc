#include "symbolize/names/symbol_table.h"

#include <gtest/gtest.h>

namespace tacho::symbolize {
namespace {

std::string_view as_is(std::string_view name) { return name; }

std::string_view name_at(SymbolTable& table, std::uint64_t address) {
  const Symbol* const found = table.find(address);
  return found ? found->name : "";
}

TEST(SymbolTable, FindsNothingInAnEmptyTable) {
  SymbolTable table;
  table.settle(as_is);
  table.finish();
  EXPECT_EQ(table.find(0), nullptr);
}

TEST(SymbolTable, ASymbolWithoutAnEndReachesToTheNextOne) {
  SymbolTable table;
  table.add({.start = 0x30, .end = 0x38, .name = "sized"});
  table.add({.start = 0x10, .end = 0x10, .name = "open"});
  table.settle(as_is);
  table.finish();
  EXPECT_EQ(name_at(table, 0x2f), "open");
  EXPECT_EQ(name_at(table, 0x37), "sized");
  EXPECT_EQ(name_at(table, 0x38), "");
  EXPECT_EQ(name_at(table, 0x0f), "");
}

TEST(SymbolTable, TheLastSymbolWithoutAnEndReachesAPageFurther) {
  SymbolTable table;
  table.add({.start = 0x1010, .end = 0x1010, .name = "last"});
  table.settle(as_is);
  table.finish();
  EXPECT_EQ(table.find(0x2fff)->end, 0x3000u);
  EXPECT_EQ(table.find(0x3000), nullptr);
}

TEST(SymbolTable, KeepsTheBestOfSeveralAliases) {
  const auto better = [](Symbol a, Symbol b) {
    EXPECT_NE(is_better_alias(a, b, as_is), is_better_alias(b, a, as_is)) << a.name << " and " << b.name;
    return is_better_alias(a, b, as_is);
  };
  const Symbol plain{.start = 0, .end = 8, .name = "read"};
  EXPECT_TRUE(better(plain, {.start = 0, .end = 0, .name = "much_longer"})) << "has a size";
  EXPECT_TRUE(better(plain, {.start = 0, .end = 8, .name = "longer", .binding = Binding::Weak}));
  EXPECT_TRUE(better({.start = 0, .end = 8, .name = "r", .binding = Binding::Global}, plain));
  EXPECT_TRUE(better(plain, {.start = 0, .end = 8, .name = "__underscored"}));
  EXPECT_TRUE(better({.start = 0, .end = 8, .name = "reader"}, plain)) << "the longer name";
}

TEST(SymbolTable, AmongEqualAliasesTheFirstStaysUnlessItIsASyscallWrapper) {
  EXPECT_TRUE(is_better_alias({.name = "aaaa"}, {.name = "bbbb"}, as_is));
  EXPECT_FALSE(is_better_alias({.name = "SyS_read"}, {.name = "sys_read"}, as_is));
}

TEST(SymbolTable, AliasesAreComparedByWhatIsShown) {
  const auto shown = [](std::string_view name) { return name == "_Zlong" ? std::string_view("x") : name; };
  EXPECT_FALSE(is_better_alias({.name = "_Zlong"}, {.name = "abc"}, shown));
}

// What is added after settling stands beside what was there, as PLT entries under a function of unknown size.
TEST(SymbolTable, LateSymbolsMayOverlap) {
  SymbolTable table;
  table.add({.start = 0x10, .end = 0x10, .name = "init"});
  table.add({.start = 0x50, .end = 0x60, .name = "start"});
  table.settle(as_is);
  table.add({.start = 0x20, .end = 0x30, .name = "read@plt"});
  table.finish();
  EXPECT_EQ(name_at(table, 0x18), "init");
  EXPECT_EQ(name_at(table, 0x28), "read@plt") << "inserted third, it rises above the first";
  EXPECT_EQ(name_at(table, 0x38), "") << "and hides what lies right of it";
}

TEST(SymbolTable, ASecondRoundOfSymbolsIsSettledWithTheFirst) {
  SymbolTable table;
  table.add({.start = 0x10, .end = 0x20, .name = "_hidden"});
  table.settle(as_is);
  table.add({.start = 0x10, .end = 0x20, .name = "exported", .binding = Binding::Global});
  table.add({.start = 0x20, .end = 0x28, .name = "other"});
  table.settle(as_is);
  table.finish();
  EXPECT_EQ(table.size(), 2u);
  EXPECT_EQ(name_at(table, 0x1f), "exported");
  EXPECT_EQ(name_at(table, 0x27), "other");
}

TEST(SymbolTable, OwnedNamesSurviveAMove) {
  SymbolTable table;
  table.add({.start = 1, .end = 2, .name = table.own("kept")});
  table.finish();
  SymbolTable moved = std::move(table);
  EXPECT_EQ(name_at(moved, 1), "kept");
}

}  // namespace
}  // namespace tacho::symbolize
