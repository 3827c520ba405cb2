#include "symbolize/names/symbol_lists.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "format/base/byte_writer.h"
#include "format/container/features.h"
#include "symbolize/symbol_source.h"

namespace tacho::symbolize {

namespace {

std::vector<std::byte> bytes(std::string_view text) {
  const auto all = std::as_bytes(std::span(text));
  return {all.begin(), all.end()};
}

Result<Kallsyms> parse(std::string_view text, std::optional<ReferenceSymbol> reference = std::nullopt) {
  return Kallsyms::parse(bytes(text), reference);
}

std::string_view name_at(SymbolTable& table, std::uint64_t address) {
  const Symbol* const found = table.find_symbol(address);
  return found ? found->name : "";
}

constexpr std::string_view kKernelLines =
    "ffffffff81000000 T _stext\n"
    "ffffffff81000000 T _text\n"
    "ffffffff81000010 t do_one\n"
    "ffffffff81000018 a absolute\n"
    "ffffffff81000020 W weak_one\n"
    "ffffffff81000028 r read_only\n"
    "ffffffff81000030 D data_one\n"
    "ffffffffc0201000 t ext4_read\t[ext4]\n"
    "ffffffffc0201040 t ext4_write\t[ext4]\n"
    "ffffffffc0300000 t nfs_read\t[nfs]\n";

TEST(Kallsyms, ASymbolReachesToTheNextOne) {
  auto kallsyms = parse(kKernelLines);
  ASSERT_TRUE(kallsyms);
  EXPECT_EQ(name_at(kallsyms->kernel(), 0xffffffff81000011), "do_one");
  EXPECT_EQ(name_at(kallsyms->kernel(), 0xffffffff8100001f), "do_one") << "absolute symbols are not taken";
  EXPECT_EQ(name_at(kallsyms->kernel(), 0xffffffff8100002f), "weak_one") << "nor read-only ones";
  EXPECT_EQ(name_at(kallsyms->kernel(), 0xffffffff80ffffff), "");
}

TEST(Kallsyms, OfAliasesTheLastIsTaken) {
  auto kallsyms = parse(kKernelLines);
  ASSERT_TRUE(kallsyms);
  EXPECT_EQ(name_at(kallsyms->kernel(), 0xffffffff81000004), "_text");
}

TEST(Kallsyms, TheLastOfTheKernelAndOfAModuleReachToAPageAfter) {
  auto kallsyms = parse(kKernelLines);
  ASSERT_TRUE(kallsyms);
  EXPECT_EQ(kallsyms->kernel().find_symbol(0xffffffff81000030)->end, 0xffffffff81002000u);
  EXPECT_EQ(kallsyms->module("[ext4]")->find_symbol(0xffffffffc0201040)->end, 0xffffffffc0203000u);
}

TEST(Kallsyms, ATextThatComesInPiecesSaysTheSame) {
  for (std::size_t size = 1; size <= kKernelLines.size() + 1; ++size) {
    std::string_view rest = kKernelLines.substr(0, kKernelLines.size() - 1);  // its last line has no end
    auto kallsyms = Kallsyms::parse(
        [&]() -> Result<std::vector<std::byte>> {
          const std::string_view piece = rest.substr(0, size);
          rest.remove_prefix(piece.size());
          return bytes(piece);
        },
        std::nullopt);
    ASSERT_TRUE(kallsyms) << kallsyms.error().what;
    EXPECT_EQ(name_at(kallsyms->kernel(), 0xffffffff81000004), "_text");
    EXPECT_EQ(name_at(kallsyms->kernel(), 0xffffffff81000011), "do_one");
    EXPECT_EQ(kallsyms->kernel().find_symbol(0xffffffff81000030)->end, 0xffffffff81002000u);
    ASSERT_NE(kallsyms->module("[ext4]"), nullptr);
    EXPECT_EQ(name_at(*kallsyms->module("[ext4]"), 0xffffffffc0201040), "ext4_write");
    ASSERT_NE(kallsyms->module("[nfs]"), nullptr);
    EXPECT_EQ(name_at(*kallsyms->module("[nfs]"), 0xffffffffc0300000), "nfs_read");
  }
}

TEST(Kallsyms, APieceThatCannotBeReadIsTheAnswer) {
  bool is_first = true;
  const auto kallsyms = Kallsyms::parse(
      [&]() -> Result<std::vector<std::byte>> {
        if (std::exchange(is_first, false)) return bytes(kKernelLines);
        return Error{"the disk burns", EIO};
      },
      std::nullopt);
  ASSERT_FALSE(kallsyms);
  EXPECT_EQ(kallsyms.error().what, "the disk burns");
}

TEST(Kallsyms, ModulesHaveTablesOfTheirOwn) {
  auto kallsyms = parse(kKernelLines);
  ASSERT_TRUE(kallsyms);
  EXPECT_EQ(name_at(*kallsyms->module("[ext4]"), 0xffffffffc0201008), "ext4_read");
  EXPECT_EQ(name_at(*kallsyms->module("[nfs]"), 0xffffffffc0300000), "nfs_read");
  EXPECT_EQ(kallsyms->module("[xfs]"), nullptr);
  EXPECT_EQ(name_at(kallsyms->kernel(), 0xffffffffc0201008), "");
}

TEST(Kallsyms, TheTextOfAnotherBootIsMoved) {
  auto kallsyms = parse(kKernelLines, ReferenceSymbol{"_text", 0xffffffff90000000});
  ASSERT_TRUE(kallsyms);
  EXPECT_EQ(name_at(kallsyms->kernel(), 0xffffffff90000011), "do_one");
  EXPECT_EQ(kallsyms->kernel().find_symbol(0xffffffff90000011)->start, 0xffffffff90000010u);
  EXPECT_EQ(name_at(kallsyms->kernel(), 0xffffffff81000011), "");
  EXPECT_EQ(kallsyms->module("[ext4]"), nullptr) << "where modules lay at that boot nobody knows";
}

TEST(Kallsyms, AnotherKernelsCodeHasAnotherLength) {
  const std::string text =
      std::string(kKernelLines) + "ffffffff82000abc T _etext\nffffffff82500000 D _edata\n";
  const auto reason = [&](std::uint64_t address, std::uint64_t end) {
    const auto parsed = parse(text, ReferenceSymbol{"_text", address, end});
    return parsed ? std::string() : parsed.error().what;
  };
  constexpr std::uint64_t kHere = 0xffffffff81000000, kThere = 0xffffffff90000000;
  for (const std::uint64_t base : {kHere, kThere}) {
    EXPECT_EQ(reason(base, base + 0x1000abc), "");
    EXPECT_EQ(reason(base, base + 0x1500000), "") << "as perf has it where there is _edata";
    EXPECT_EQ(reason(base, base + 0x1001000), "") << "a whole page";
    EXPECT_EQ(reason(base, base + 0x1000abb),
              "is of another kernel: from _text its code has 16779964 bytes, the recorded kernel's 16779963");
    EXPECT_NE(reason(base, base + 0x1003000), "");
    EXPECT_EQ(reason(base, 0), "") << "the base was not given";
    EXPECT_EQ(reason(base, ~std::uint64_t{0}), "") << "it was not known";
  }
  constexpr std::uint64_t kHigh = 0xffffffffbc000000, kModules = 0xffffffffc0000000;
  EXPECT_EQ(reason(kHigh, kModules), "") << "where modules begin, not where the kernel ends";
  EXPECT_EQ(reason(kHigh, kModules + 0x206000), "");
  EXPECT_NE(reason(kHigh, kModules - 0x1000), "");
  EXPECT_TRUE(parse(kKernelLines, ReferenceSymbol{"_text", kHere, kHere + 0x1003000}))
      << "this list does not say";
}

TEST(Kallsyms, TheEndOfArm64sKernelHasATypeOfItsOwn) {
  const auto is_read = [](std::uint64_t end) {
    return static_cast<bool>(
        parse("ffffa6be01200000 T _text\nffffa6be02180000 D _etext\nffffa6be0360ba00 R _edata\n",
              ReferenceSymbol{"_text", 0xffffa6be01200000, end}));
  };
  EXPECT_TRUE(is_read(0xffffa6be0360ba00)) << "as Linux 6.12 of Debian 13 is recorded";
  EXPECT_TRUE(is_read(0xffffa6be02180000));
  EXPECT_FALSE(is_read(0xffffa6be0360ba01));
}

TEST(Kallsyms, SortsWhatIsNotSorted) {
  auto kallsyms = parse("20 T second\n10 T first\n");
  ASSERT_TRUE(kallsyms);
  EXPECT_EQ(name_at(kallsyms->kernel(), 0x1f), "first");
}

TEST(Kallsyms, SkipsLinesOfAnotherForm) {
  auto kallsyms =
      parse("\n10\n10 T\n10 T \n10  x\nzz T name\n11112222333344445 T too_long\n$x\n30 t $x\n20 T good");
  ASSERT_TRUE(kallsyms);
  EXPECT_EQ(kallsyms->kernel().size(), 1u);
  EXPECT_EQ(name_at(kallsyms->kernel(), 0x20), "good");
}

TEST(Kallsyms, SaysWhyItIsOfNoUse) {
  const auto reason = [](std::string_view text, std::optional<ReferenceSymbol> reference = std::nullopt) {
    const auto parsed = parse(text, reference);
    return parsed ? std::string() : parsed.error().what;
  };
  EXPECT_NE(reason("").find("no line"), std::string::npos);
  EXPECT_NE(reason("0000000000000000 T _text\n0000000000000000 T x\n").find("every address is zero"),
            std::string::npos);
  EXPECT_NE(reason(kKernelLines, ReferenceSymbol{"_other", 1}).find("no symbol _other"), std::string::npos);
}

// 10,000,000 of them take a few kilobytes of a capture.
TEST(Kallsyms, LinesThatAreTooManyForTheirTextAreRefused) {
  std::string text;
  for (int i = 0; i < 400'000; ++i) text += "1 t a\n";
  const auto bytes = std::as_bytes(std::span(text));
  const auto parsed = Kallsyms::parse({bytes.begin(), bytes.end()}, std::nullopt);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, EFBIG);
}

}  // namespace

namespace {

using format::ByteWriter;

constexpr std::uint32_t kKernelList = 0, kElf = 2, kDex = 3, kMap = 4;

struct Named {
  std::uint64_t address;
  std::uint32_t length;
  std::string name;
};

// A file as simpleperf writes it; `behind`: what follows its symbols.
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

TEST(SimpleperfSymbols, NamesAreFoundByPlacesInTheirFile) {
  ByteWriter section;
  put(section, "/lib/b.so", kElf, 0x5000, {{0x5010, 8, "first"}, {0x5020, 4, "second"}}, {0x1000});
  put(section, "[kernel.kallsyms]", kKernelList, 0, {{0xffffffff81000000, 16, "start"}}, {});
  put(section, "/a.dex", kDex, 0, {{0x40, 8, "a.Main.run"}}, {});
  SimpleperfSymbols carried(section.view());
  auto* const library = carried.table_of("/lib/b.so");
  ASSERT_TRUE(library);
  EXPECT_EQ(library->find_symbol(0x1017)->name, "first");
  EXPECT_EQ(library->find_symbol(0x1018), nullptr);
  EXPECT_EQ(library->find_symbol(0x1020)->name, "second");
  auto* const kernel = carried.table_of("[kernel.kallsyms]");
  ASSERT_TRUE(kernel);
  EXPECT_EQ(kernel->find_symbol(0xffffffff81000008)->name, "start");
  auto* const dex = carried.table_of("/a.dex");
  ASSERT_TRUE(dex);
  EXPECT_EQ(dex->find_symbol(0x44)->name, "a.Main.run");
  EXPECT_FALSE(carried.table_of("/lib/c.so"));
}

// Anybody can write many build ids for one path.
TEST(SimpleperfSymbols, ModulesOfOnePathShareItsTable) {
  ByteWriter section;
  put(section, "/lib/b.so", kElf, 0, {{0x10, 8, "first"}}, {0});
  format::Features features;
  const std::vector<std::byte> bytes(section.view().begin(), section.view().end());
  features.raw.push_back({.feature = kSimpleperfFeature, .bytes = bytes});
  SimpleperfNames names(features);
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

TEST(SimpleperfSymbols, WhatCannotBePlacedHasNoNames) {
  ByteWriter section;
  put(section, "/old.so", kElf, 0x5000, {{0x5010, 8, "first"}}, {});
  put(section, "/tmp/perf-1.map", kMap, 0, {{0x10, 8, "made"}}, {});
  put(section, "/none.so", kElf, 0, {}, {0});
  SimpleperfSymbols carried(section.view());
  for (const char* const path : {"/old.so", "/tmp/perf-1.map", "/none.so"})
    EXPECT_FALSE(carried.table_of(path)) << path;
}

TEST(SimpleperfSymbols, DamageCostsWhatStandsAfterIt) {
  ByteWriter section;
  put(section, "/a", kElf, 0, {{0x10, 8, "first"}}, {0});
  const std::size_t whole = section.size();
  put(section, "/b", kElf, 0, {{0x10, 8, "second"}}, {0});
  const std::vector<std::byte> bytes(section.view().begin(), section.view().end());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    SimpleperfSymbols carried(format::Bytes(bytes).first(size));
    EXPECT_EQ(carried.table_of("/a") != nullptr, size >= whole) << size;
    EXPECT_FALSE(carried.table_of("/b")) << size;
  }
  ByteWriter many;  // more symbols than there is room for
  put(many, "/c", kElf, 0, {}, {0});
  many.patch<std::uint32_t>(sizeof(std::uint32_t) + 3 + 4 + 8, 0x40000000);
  EXPECT_FALSE(SimpleperfSymbols(many.view()).table_of("/c"));
}

}  // namespace

namespace {

Result<SymbolTable> parse_map(std::string_view text) {
  const auto all = std::as_bytes(std::span(text));
  return parse_perf_map({all.begin(), all.end()});
}

TEST(PerfMap, NamesMayHoldBlanks) {
  auto table = parse_map("7f0010 20 JS:*fib /tmp/app.js:2:13\n0x7f0030 0x10 stub\n");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->find_symbol(0x7f002f)->name, "JS:*fib /tmp/app.js:2:13");
  EXPECT_EQ(table->find_symbol(0x7f0030)->name, "stub");
  EXPECT_EQ(table->find_symbol(0x7f0040), nullptr);
}

TEST(PerfMap, SkipsLinesOfAnotherForm) {
  auto table = parse_map(
      "\n10\n10 \n10 20\n10 20 \nxyz 20 name\n10 zz name\n10000000000000000 1 too_long\n10 20 good");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->size(), 1u);
  EXPECT_EQ(table->find_symbol(0x10)->name, "good");
}

TEST(PerfMap, ASizeBeyondTheEndOfMemoryIsCut) {
  auto table = parse_map("fffffffffffffff0 ffffffffffffffff high\n");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->find_symbol(0xfffffffffffffff8)->name, "high");
}

TEST(PerfMap, SaysWhenNothingInItIsUsable) {
  const auto table = parse_map("hello\n");
  ASSERT_FALSE(table);
  EXPECT_NE(table.error().what.find("START SIZE NAME"), std::string::npos);
}

}  // namespace

}  // namespace tacho::symbolize
