#include <gtest/gtest.h>

#include <set>
#include <span>
#include <string>
#include <vector>

#include "format/base/byte_writer.h"
#include "format/container/features.h"
#include "symbolize/names/symbol_lists.h"
#include "symbolize/symbol_source.h"

namespace tacho::symbolize {
namespace {

using format::ByteWriter;

constexpr std::uint32_t kKernel = 0, kElf = 2, kDex = 3, kMap = 4;

struct Named {
  std::uint64_t address;
  std::uint32_t length;
  std::string name;
};

// A file as simpleperf writes it; `behind`: what stands behind its symbols.
void put(ByteWriter& section, std::string_view path, std::uint32_t type, std::uint64_t code_address,
         const std::vector<Named>& symbols, const std::vector<std::uint64_t>& behind) {
  ByteWriter file;
  const auto text = [&](std::string_view value) { file.bytes(std::as_bytes(std::span(value))).u8(0); };
  text(path);
  file.u32(type).u64(code_address).u32(static_cast<std::uint32_t>(symbols.size()));
  for (const Named& symbol : symbols) {
    file.u64(symbol.address).u32(symbol.length);
    text(symbol.name);
  }
  for (const std::uint64_t word : behind) file.u64(word);
  section.u32(static_cast<std::uint32_t>(file.size())).bytes(file.view());
}

TEST(CarriedSymbols, NamesAreFoundByPlacesInTheirFile) {
  ByteWriter section;
  put(section, "/lib/b.so", kElf, 0x5000, {{0x5010, 8, "first"}, {0x5020, 4, "second"}}, {0x1000});
  put(section, "[kernel.kallsyms]", kKernel, 0, {{0xffffffff81000000, 16, "start"}}, {});
  put(section, "/a.dex", kDex, 0, {{0x40, 8, "a.Main.run"}}, {});
  CarriedSymbols carried(section.view());
  auto* const library = carried.of("/lib/b.so");
  ASSERT_TRUE(library);
  EXPECT_EQ(library->find(0x1017)->name, "first");
  EXPECT_EQ(library->find(0x1018), nullptr);
  EXPECT_EQ(library->find(0x1020)->name, "second");
  auto* const kernel = carried.of("[kernel.kallsyms]");
  ASSERT_TRUE(kernel);
  EXPECT_EQ(kernel->find(0xffffffff81000008)->name, "start");
  auto* const dex = carried.of("/a.dex");
  ASSERT_TRUE(dex);
  EXPECT_EQ(dex->find(0x44)->name, "a.Main.run");
  EXPECT_FALSE(carried.of("/lib/c.so"));
}

// Anybody can write many build ids for one path.
TEST(CarriedSymbols, ModulesOfOnePathShareItsTable) {
  ByteWriter section;
  put(section, "/lib/b.so", kElf, 0, {{0x10, 8, "first"}}, {0});
  format::Features features;
  const std::vector<std::byte> bytes(section.view().begin(), section.view().end());
  features.raw.push_back({.feature = kCarriedSymbolsFeature, .bytes = bytes});
  CarriedNames names(features);
  std::set<const SymbolTable*> tables;
  for (std::uint8_t build = 0; build < 100; ++build) {
    Module module;
    module.path = "/lib/b.so";
    const std::byte id[] = {std::byte{1}, std::byte{build}};
    module.build_id = format::BuildId::from_bytes(id);
    const auto source = names.source_of(module);
    ASSERT_TRUE(source);
    EXPECT_EQ(source->own, nullptr);
    EXPECT_TRUE(source->has_own_table);
    tables.insert(source->table);
  }
  ASSERT_EQ(tables.size(), 1u);
  ASSERT_NE(*tables.begin(), nullptr);
}

TEST(CarriedSymbols, WhatCannotBePlacedHasNoNames) {
  ByteWriter section;
  put(section, "/old.so", kElf, 0x5000, {{0x5010, 8, "first"}}, {});
  put(section, "/tmp/perf-1.map", kMap, 0, {{0x10, 8, "made"}}, {});
  put(section, "/none.so", kElf, 0, {}, {0});
  CarriedSymbols carried(section.view());
  for (const char* const path : {"/old.so", "/tmp/perf-1.map", "/none.so"})
    EXPECT_FALSE(carried.of(path)) << path;
}

TEST(CarriedSymbols, DamageCostsWhatStandsBehindIt) {
  ByteWriter section;
  put(section, "/a", kElf, 0, {{0x10, 8, "first"}}, {0});
  const std::size_t whole = section.size();
  put(section, "/b", kElf, 0, {{0x10, 8, "second"}}, {0});
  const std::vector<std::byte> bytes(section.view().begin(), section.view().end());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CarriedSymbols carried(format::Bytes(bytes).first(size));
    EXPECT_EQ(carried.of("/a") != nullptr, size >= whole) << size;
    EXPECT_FALSE(carried.of("/b")) << size;
  }
  ByteWriter many;  // more symbols than there is room for
  put(many, "/c", kElf, 0, {}, {0});
  many.patch<std::uint32_t>(sizeof(std::uint32_t) + 3 + 4 + 8, 0x40000000);
  EXPECT_FALSE(CarriedSymbols(many.view()).of("/c"));
}

}  // namespace
}  // namespace tacho::symbolize
