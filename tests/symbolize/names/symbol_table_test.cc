#include "symbolize/names/symbol_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "symbolize/names/function_ranges.h"

namespace tacho::symbolize {
namespace {

std::string_view as_is(std::string_view name) { return name; }

std::string_view table_name_at(SymbolTable& table, std::uint64_t address) {
  const Symbol* const found = table.find_symbol(address);
  return found ? found->name : "";
}

TEST(SymbolTable, FindsNothingInAnEmptyTable) {
  SymbolTable table;
  table.fix_up(as_is);
  table.finish();
  EXPECT_EQ(table.find_symbol(0), nullptr);
}

TEST(SymbolTable, ASymbolWithoutAnEndReachesToTheNextOne) {
  SymbolTable table;
  table.add_symbol({.start = 0x30, .end = 0x38, .name = "sized"});
  table.add_symbol({.start = 0x10, .end = 0x10, .name = "open"});
  table.fix_up(as_is);
  table.finish();
  EXPECT_EQ(table_name_at(table, 0x2f), "open");
  EXPECT_EQ(table_name_at(table, 0x37), "sized");
  EXPECT_EQ(table_name_at(table, 0x38), "");
  EXPECT_EQ(table_name_at(table, 0x0f), "");
}

TEST(SymbolTable, TheLastSymbolWithoutAnEndReachesAPageFurther) {
  SymbolTable table;
  table.add_symbol({.start = 0x1010, .end = 0x1010, .name = "last"});
  table.fix_up(as_is);
  table.finish();
  EXPECT_EQ(table.find_symbol(0x2fff)->end, 0x3000u);
  EXPECT_EQ(table.find_symbol(0x3000), nullptr);
}

// Some far away from all others, as a kernel's symbols of processor data, and many at one place.
TEST(SymbolTable, FindsTheSymbolBeforeAnAddressHoweverTheyAreSpread) {
  std::mt19937_64 random(7);
  for (const std::size_t count : {1, 2, 3, 31, 64, 1000}) {
    SymbolTable table;
    std::set<std::uint64_t> starts;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t start = i % 10 == 0  ? random() >> random() % 64
                                  : i % 3 == 0 ? 0xffffffff81000000 + random() % 0x100
                                               : 0xffffffff81000000 + random() % 0x1000000;
      if (starts.insert(start).second)
        table.add_symbol({.start = start, .end = start, .name = "x", .binding = Binding::Global});
    }
    table.fix_up(as_is);
    table.finish();
    std::vector<std::uint64_t> asked(starts.begin(), starts.end());
    for (int i = 0; i < 1000; ++i) asked.push_back(0xffffffff81000000 + random() % 0x1000000);
    std::set<std::uint32_t> rows;
    for (const std::uint64_t address : asked) {
      const auto after = starts.upper_bound(address);
      const auto row = table.row_at(address);
      if (row) rows.insert(*row);
      const Symbol* const found = table.find_symbol(address);
      ASSERT_EQ(found != nullptr, row.has_value());
      if (found != nullptr) {
        ASSERT_EQ(found->start, *std::prev(after)) << address;
      }
      if (after != starts.end() && after != starts.begin()) {
        ASSERT_NE(found, nullptr) << address;
      }
    }
    EXPECT_EQ(rows.size(), starts.size()) << "each symbol has a row of its own";
  }
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
  table.add_symbol({.start = 0x10, .end = 0x10, .name = "init"});
  table.add_symbol({.start = 0x50, .end = 0x60, .name = "start"});
  table.fix_up(as_is);
  table.add_symbol({.start = 0x20, .end = 0x30, .name = "read@plt"});
  table.finish();
  EXPECT_EQ(table_name_at(table, 0x18), "init");
  EXPECT_EQ(table_name_at(table, 0x28), "read@plt");
  EXPECT_EQ(table_name_at(table, 0x38), "init") << "goes on after it";
}

TEST(SymbolTable, ASecondRoundOfSymbolsIsSettledWithTheFirst) {
  SymbolTable table;
  table.add_symbol({.start = 0x10, .end = 0x20, .name = "_hidden"});
  table.fix_up(as_is);
  table.add_symbol({.start = 0x10, .end = 0x20, .name = "exported", .binding = Binding::Global});
  table.add_symbol({.start = 0x20, .end = 0x28, .name = "other"});
  table.fix_up(as_is);
  table.finish();
  EXPECT_EQ(table_name_at(table, 0x1f), "exported");
  EXPECT_EQ(table_name_at(table, 0x27), "other");
}

// The rule of find_symbol(), one symbol after another.
std::string_view name_by_the_rule(const std::vector<std::vector<Symbol>>& rounds, std::size_t settled,
                                  std::uint64_t address) {
  std::vector<Symbol> kept;
  for (std::size_t round = 0; round < rounds.size(); ++round) {
    kept.insert(kept.end(), rounds[round].begin(), rounds[round].end());
    if (round >= settled) continue;
    std::ranges::stable_sort(kept, {}, &Symbol::start);
    for (std::size_t i = 0; i < kept.size(); ++i) {
      const bool is_last = i + 1 == kept.size();
      if (kept[i].size() == 0)
        kept[i].end = is_last ? (kept[i].start + 4095) / 4096 * 4096 + 4096 : kept[i + 1].start;
    }
    for (std::size_t i = 1; i < kept.size();) {
      if (kept[i - 1].start != kept[i].start) {
        ++i;
        continue;
      }
      const bool keeps_first = is_better_alias(kept[i - 1], kept[i], as_is);
      kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(keeps_first ? i : i - 1));
    }
  }
  const Symbol* found = nullptr;
  for (const Symbol& symbol : kept) {
    const bool covers = symbol.start <= address && (address < symbol.end || address == symbol.start);
    if (covers && (found == nullptr || symbol.start >= found->start)) found = &symbol;
  }
  return found == nullptr ? std::string_view() : found->name;
}

TEST(SymbolTable, TheSymbolThatStartsLastHasTheAddress) {
  std::mt19937 random(7);  // NOLINT(cert-msc51-cpp): the same symbols each time
  const auto below = [&](std::uint64_t count) { return random() % count; };
  constexpr std::string_view kNames[] = {"a", "_a", "__a", "aa", "SyS_a", "b", "_b", "bb", "c", "ccc"};
  for (int turn = 0; turn < 300; ++turn) {
    SymbolTable table;
    std::vector<std::vector<Symbol>> rounds;
    std::deque<std::string> names;
    const auto add_some = [&] {
      auto& round = rounds.emplace_back();
      for (std::uint64_t left = below(turn % 10 == 0 ? 200 : 8); left > 0; --left) {
        const std::uint64_t start = 4 * below(turn % 3 == 0 ? 100 : 8);
        const std::uint64_t size = below(3) == 0 ? 0 : below(4) == 0 ? 4 * below(20) : 4;
        names.push_back(std::string(kNames[below(std::size(kNames))]) + std::to_string(names.size() % 10));
        round.push_back({start, start + size, names.back(), static_cast<Binding>(below(3))});
        table.add_symbol(round.back());
      }
    };
    const std::uint64_t settled = below(3);
    for (std::uint64_t round = 0; round < settled; ++round) {
      add_some();
      table.fix_up(as_is);
    }
    if (below(2) == 0) add_some();
    table.finish();
    for (std::uint64_t address = 0; address < 420; ++address) {
      ASSERT_EQ(table_name_at(table, address), name_by_the_rule(rounds, settled, address))
          << "turn " << turn << ", address " << address;
    }
  }
}

TEST(SymbolTable, MangledNamesAreShownOnlyWhereTheyDecide) {
  SymbolTable table;
  int asked = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    table.add_symbol({.start = 16 * i, .end = 16 * i + 16, .name = "_ZC1"});
    table.add_symbol({.start = 16 * i, .end = 16 * i + 16, .name = "_ZC2"});
  }
  table.fix_up([&](std::string_view name) {
    ++asked;
    return name;
  });
  table.finish();
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(table_name_at(table, 0x104), "_ZC1");
  EXPECT_EQ(table_name_at(table, 0x108), "_ZC1");
  EXPECT_EQ(asked, 2);
}

TEST(SymbolTable, OfKnownAddressesEachHasTheRowItWasGivenAndNoOtherHasOne) {
  SymbolTable table;
  for (const char* const name : {"a", "b", "c"}) table.add_symbol({.start = 0, .end = 0, .name = name});
  // One alone among 64, several rows among 64, the last and the first of two such runs, and the highest.
  const std::vector<SymbolTable::Answer> answers = {{0x7, 2},       {0x40, 0}, {0x41, 1}, {0x50, 0},
                                                    {0x7f, 2},      {0x80, 1}, {0x8f, 1}, {0x1000, 0},
                                                    {~0ULL - 1, 1}, {~0ULL, 2}};
  table.finish_with(answers);
  std::size_t known = 0;
  const auto check = [&](std::uint64_t address) {
    const auto row = table.row_at(address);
    const auto answer = std::ranges::find(answers, address, &SymbolTable::Answer::address);
    ASSERT_EQ(row.has_value(), answer != answers.end()) << address;
    if (row) {
      EXPECT_EQ(*row, answer->row) << address;
    }
    known += row ? 1 : 0;
  };
  for (std::uint64_t address = 0; address < 0x2000; ++address) check(address);
  for (std::uint64_t before = 0; before < 0x100; ++before) check(~before);
  EXPECT_EQ(known, answers.size());
}

TEST(SymbolTable, KnownAddressesMayBeNone) {
  SymbolTable table;
  table.finish_with({});
  EXPECT_EQ(table.find_symbol(0), nullptr);
}

TEST(SymbolTable, OwnedNamesSurviveAMove) {
  SymbolTable table;
  table.add_symbol({.start = 1, .end = 2, .name = table.own("kept")});
  table.finish();
  SymbolTable moved = std::move(table);
  EXPECT_EQ(table_name_at(moved, 1), "kept");
}

// Packs of earlier versions know return addresses, and not the calls before them.
TEST(SymbolTable, OfAnswersAReturnAddressStandsForACallThatIsNotKnown) {
  SymbolTable table;
  table.add_symbol({.start = 0x100, .end = 0x200, .name = "caller", .binding = Binding::Global});
  table.finish_with({{0x150, 0}, {0x17f, 0}, {0x180, 0}});
  EXPECT_EQ(table.caller_address(0x150), 0x150u);
  EXPECT_EQ(table.caller_address(0x180), 0x17fu);
  EXPECT_EQ(table.caller_address(0x190), 0x18fu) << "nothing is known of it";
}

TEST(SymbolTable, CodeWithoutASymbolIsOfTheFunctionAroundIt) {
  SymbolTable table;
  table.add_symbol({.start = 0x100, .end = 0x120, .name = "known"});
  table.finish();
  int asked = 0;
  table.add_unnamed("a.so+0x", [&asked] {
    ++asked;
    return std::make_unique<FunctionRanges>(
        std::vector<FunctionRanges::Range>{{0x200, 0x240}, {0x100, 0x140}, {0x240, 0x250}});
  });
  ASSERT_NE(table.find_symbol(0x110), nullptr);
  EXPECT_EQ(table.find_symbol(0x110)->name, "known");
  EXPECT_EQ(asked, 0) << "ranges are looked for where no symbol is";
  EXPECT_EQ(table.size(), 1u);
  const auto row = table.row_at(0x23f);
  ASSERT_TRUE(row);
  EXPECT_LT(*row, table.size());
  EXPECT_EQ(table.row_at(0x200), row);
  EXPECT_NE(table.row_at(0x240), row);
  const Symbol found = *table.find_symbol(0x23f);
  EXPECT_EQ(found.name, "a.so+0x200");
  EXPECT_EQ(found.start, 0x200u);
  EXPECT_EQ(found.end, 0x240u);
  EXPECT_TRUE(found.is_unnamed());
  EXPECT_EQ(table.find_symbol(0x130)->name, "a.so+0x100") << "what the symbol leaves of its function";
  EXPECT_EQ(table.find_symbol(0x250), nullptr);
  EXPECT_EQ(table.caller_address(0x240), 0x23fu);
  EXPECT_EQ(asked, 1);
}

// What any thread may see is what the questions answer, or that they must be asked.
TEST(SymbolTable, WhatIsSeenIsWhatIsFound) {
  using Kind = SymbolTable::RowLookup::Kind;
  std::mt19937 random(11);
  std::size_t symbols = 0, nothing = 0, unsure = 0;
  for (int round = 0; round < 200; ++round) {
    SymbolTable table;
    const auto add = [&](std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t start = 0x100 + random() % 0x200;
        const char* const names[] = {"one", "other", "__restore_rt", "_third"};
        table.add_symbol({.start = start,
                          .end = start + random() % 4 * (random() % 20),
                          .name = names[random() % 4],
                          .binding = random() % 2 == 0 ? Binding::Global : Binding::Local});
      }
    };
    add(random() % 30);
    table.fix_up(as_is);
    add(random() % 4);
    table.finish();
    for (std::uint64_t address = 0xf0; address < 0x340; ++address) {
      const auto seen = table.try_row_at(address), caller = table.try_caller_row_at(address);
      const auto row = table.row_at(address), of_caller = table.row_at(table.caller_address(address));
      if (seen.kind == Kind::Symbol) {
        ASSERT_EQ(row, seen.row) << address;
      }
      if (seen.kind == Kind::None) {
        ASSERT_FALSE(row) << address;
      }
      if (caller.kind == Kind::Symbol) {
        ASSERT_EQ(of_caller, caller.row) << address;
      }
      if (caller.kind == Kind::None) {
        ASSERT_FALSE(of_caller) << address;
      }
      ++(seen.kind == Kind::Symbol ? symbols : seen.kind == Kind::None ? nothing : unsure);
    }
  }
  EXPECT_GT(symbols, 10'000u);
  EXPECT_GT(nothing, 10'000u);
  EXPECT_GT(unsure, 1'000u);
}

TEST(SymbolTable, OfAnswersWhatIsSeenIsWhatIsFound) {
  using Kind = SymbolTable::RowLookup::Kind;
  SymbolTable table;
  table.add_symbol({.start = 0x100, .end = 0x120, .name = "one"});
  table.add_symbol({.start = 0x120, .end = 0x140, .name = "__restore_rt"});
  table.finish_with({{0x110, 0}, {0x11f, 0}, {0x120, 1}, {0x128, 1}, {0x200, SymbolTable::kNoSymbol}});
  for (std::uint64_t address = 0x100; address < 0x210; ++address) {
    const auto seen = table.try_row_at(address), caller = table.try_caller_row_at(address);
    if (seen.kind == Kind::Symbol) {
      EXPECT_EQ(table.row_at(address), seen.row);
    }
    if (seen.kind == Kind::None) {
      EXPECT_FALSE(table.row_at(address));
    }
    if (caller.kind == Kind::Symbol) {
      EXPECT_EQ(table.row_at(table.caller_address(address)), caller.row);
    }
    if (caller.kind == Kind::None) {
      EXPECT_FALSE(table.row_at(table.caller_address(address)));
    }
  }
  EXPECT_EQ(table.try_row_at(0x110).row, 0u);
  EXPECT_EQ(table.try_row_at(0x128).kind, Kind::Symbol);
  EXPECT_EQ(table.try_caller_row_at(0x120).kind, Kind::Ambiguous) << "a signal trampoline may begin there";
}

}  // namespace

namespace {

constexpr std::uint32_t kNobody = 99;

TEST(RangeIndex, AnEmptyOneHoldsNothing) {
  EXPECT_FALSE(RangeIndex().find_range(0));
  EXPECT_FALSE(RangeIndex({{5, 5, 0, 1}, {9, 3, 0, 2}}).find_range(5));
}

TEST(RangeIndex, TheLowestRankHasAnAddressAndGivesItBackAtItsEnd) {
  const RangeIndex index({{0, 100, 100, 0}, {20, 60, 40, 1}, {30, 40, 10, 2}, {200, 201, 1, 3}});
  const auto owner = [&](std::uint64_t address) { return index.find_range(address).value_or(kNobody); };
  EXPECT_EQ(owner(0), 0u);
  EXPECT_EQ(owner(19), 0u);
  EXPECT_EQ(owner(20), 1u);
  EXPECT_EQ(owner(30), 2u);
  EXPECT_EQ(owner(39), 2u);
  EXPECT_EQ(owner(40), 1u);
  EXPECT_EQ(owner(60), 0u);
  EXPECT_EQ(owner(100), kNobody);
  EXPECT_EQ(owner(200), 3u);
  EXPECT_EQ(owner(201), kNobody);
  EXPECT_EQ(owner(~std::uint64_t{0}), kNobody);
}

TEST(RangeIndex, OfEqualRanksTheHighestOwnerHasIt) {
  const RangeIndex index({{0, 10, 10, 4}, {0, 10, 10, 7}, {0, 10, 10, 5}});
  EXPECT_EQ(index.find_range(3), 7u);
}

TEST(RangeIndex, AnEndedRangeThatNeverCameUpIsForgotten) {
  const RangeIndex index({{0, 50, 1, 0}, {10, 20, 2, 1}, {0, 60, 3, 2}});
  EXPECT_EQ(index.find_range(15), 0u);
  EXPECT_EQ(index.find_range(55), 2u) << "1 ended at 20 below 0";
}

}  // namespace

}  // namespace tacho::symbolize
