#include "format/extensions/symbol_pack.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "format/base/byte_writer.h"
#include "format/codec/compression.h"

namespace tacho::format {
namespace {

constexpr std::uint32_t kNone = PackedFunction::kNone;

// Two functions in a file, one of them inlined into the other, and one address that nothing is known of.
SymbolPack example_pack() {
  SymbolPack pack;
  PackedModule module;
  module.flags = PackedModule::kHasNames | PackedModule::kHasLines;
  module.letter = 'd';
  module.path = pack.texts.number_of("/bin/prog");
  const std::uint8_t id[] = {1, 2, 3, 4, 5, 6, 7, 8};
  module.build_id = BuildId::from_bytes(std::as_bytes(std::span(id)));
  const std::uint32_t file = pack.texts.number_of("/src/a.cc");
  module.symbols = {{0x2000, 0x2100, pack.texts.number_of("late"), false},
                    {0x1000, 0x1800, pack.texts.number_of("early"), true}};
  module.functions = {{pack.texts.number_of("outer"), true, 0x401000, kNone, 0, 0},
                      {pack.texts.number_of("inner"), false, 0x401010, 0, file, 17}};
  module.addresses = {{0x2004, 0x402004, 0, kNone, 0, 0},
                      {0x1010, 0x401010, 1, 1, file, 33},
                      {0x9000, 0x409000, kNone, kNone, 0, 0}};
  pack.modules.push_back(std::move(module));
  return pack;
}

std::vector<std::byte> example_section() {
  SymbolPack pack = example_pack();
  auto section = write_symbol_pack_section(pack);
  return section ? std::move(*section) : std::vector<std::byte>{};
}

TEST(SymbolPack, ComesBackInOrder) {
  const auto section = example_section();
  ASSERT_FALSE(section.empty());
  const auto back = parse_symbol_pack(section);
  ASSERT_TRUE(back) << back.error().what;
  EXPECT_EQ(back->level, PackLevel::Inlines);
  ASSERT_EQ(back->modules.size(), 1u);
  const PackedModule& module = back->modules[0];
  EXPECT_EQ(back->texts[module.path], "/bin/prog");
  EXPECT_EQ(module.build_id.hex(), "0102030405060708");
  ASSERT_EQ(module.symbols.size(), 2u);
  EXPECT_EQ(module.symbols[0].start, 0x1000u);
  EXPECT_TRUE(module.symbols[0].is_data);
  ASSERT_EQ(module.addresses.size(), 3u);
  const PackedAddress& first = module.addresses[0];
  EXPECT_EQ(first.address, 0x1010u);
  EXPECT_EQ(first.elf_address, 0x401010u);
  EXPECT_EQ(back->texts[module.symbols[first.symbol].name], "early") << "symbols were put in order below it";
  EXPECT_EQ(back->texts[module.functions[first.function].name], "inner");
  EXPECT_EQ(module.functions[first.function].caller, 0u);
  EXPECT_EQ(module.functions[first.function].call_line, 17u);
  EXPECT_EQ(first.line, 33u);
  EXPECT_EQ(back->texts[module.symbols[module.addresses[1].symbol].name], "late");
  EXPECT_EQ(module.addresses[2].symbol, kNone);
}

TEST(SymbolPack, AnAddressIsThereOnce) {
  SymbolPack pack = example_pack();
  pack.modules[0].addresses.push_back(pack.modules[0].addresses[0]);
  const auto section = write_symbol_pack_section(pack);
  ASSERT_TRUE(section);
  const auto back = parse_symbol_pack(*section);
  ASSERT_TRUE(back) << back.error().what;
  EXPECT_EQ(back->modules[0].addresses.size(), 3u);
}

SymbolPack with_code() {
  SymbolPack pack = example_pack();
  pack.level = PackLevel::Code;
  PackedModule& module = pack.modules[0];
  module.flags |= PackedModule::kHasCode;
  module.is_64_bit = true;
  module.code = {{.start = 0x1000, .size = 3}, {.start = 0x1002, .size = 2}};
  for (const int byte : {1, 2, 3, 4, 5}) module.code_bytes.push_back(static_cast<std::byte>(byte));
  return pack;
}

TEST(SymbolPack, CodeComesBack) {
  SymbolPack pack = with_code();
  const auto section = write_symbol_pack_section(pack);
  ASSERT_TRUE(section);
  const auto back = parse_symbol_pack(*section);
  ASSERT_TRUE(back) << back.error().what;
  EXPECT_EQ(back->level, PackLevel::Code);
  const PackedModule& module = back->modules[0];
  EXPECT_TRUE(module.is_64_bit);
  ASSERT_EQ(module.code.size(), 2u);
  EXPECT_EQ(module.code[1].start, 0x1002u);
  EXPECT_EQ(module.code[1].size, 2u);
  EXPECT_EQ(module.code[1].offset, 3u);
  EXPECT_EQ(module.code_bytes, pack.modules[0].code_bytes);
}

TEST(SymbolPack, CodeThatIsNotThereIsRefused) {
  SymbolPack fewer = with_code();
  fewer.modules[0].code_bytes.pop_back();
  SymbolPack mixed = with_code();
  mixed.modules[0].code[1].start = 0x900;
  SymbolPack beyond = with_code();
  beyond.modules[0].code[1].start = ~std::uint64_t{0};
  for (SymbolPack* const pack : {&fewer, &mixed, &beyond}) {
    const auto section = write_symbol_pack_section(*pack);
    ASSERT_TRUE(section);
    EXPECT_FALSE(parse_symbol_pack(*section));
  }
}

TEST(SymbolPack, OneCutShortAnywhereIsRefused) {
  const auto section = example_section();
  for (std::size_t size = 0; size + 8 <= section.size(); ++size)
    EXPECT_FALSE(parse_symbol_pack(Bytes(section).first(size))) << size;
}

TEST(SymbolPack, ACallerMustStandBeforeWhomItCalls) {
  SymbolPack pack = example_pack();
  pack.modules[0].functions[0].caller = 1;  // and 1 is called by 0: a circle
  const auto section = write_symbol_pack_section(pack);
  ASSERT_TRUE(section);
  EXPECT_FALSE(parse_symbol_pack(*section));
}

TEST(SymbolPack, NumbersThatNameNothingAreRefused) {
  for (const int which : {0, 1, 2}) {
    SymbolPack pack = example_pack();
    if (which == 0) pack.modules[0].addresses[0].function = 2;
    if (which == 1) pack.modules[0].functions[1].caller = 5;
    if (which == 2) pack.modules[0].symbols[0].end = 0x1fff;  // ends before it starts
    const auto section = write_symbol_pack_section(pack);
    ASSERT_TRUE(section);
    EXPECT_FALSE(parse_symbol_pack(*section)) << which;
  }
}

TEST(SymbolPack, ANumberOfATextHas32Bits) {
  // One text, the empty one, and one module of nothing but its path and the reason why it has no names.
  const auto parsed = [](std::string_view path, std::string_view reason) {
    const std::string raw =
        std::string("\1\0\1\0\0\0\0", 7) + std::string(path) + std::string(reason) + std::string(3, '\0');
    const auto frame = compress_whole(std::as_bytes(std::span(raw)), 1);
    ByteWriter out;
    out.u32(1).u32(1).u64(raw.size()).u64(frame->size()).bytes(*frame);
    return static_cast<bool>(parse_symbol_pack(out.view()));
  };
  constexpr std::string_view kLargest = "\xff\xff\xff\xff\x0f", kTooLarge = "\x80\x80\x80\x80\x10";
  EXPECT_TRUE(parsed(kLargest, kLargest));
  EXPECT_FALSE(parsed(kTooLarge, kLargest));
  EXPECT_FALSE(parsed(kLargest, kTooLarge));
}

TEST(SymbolPack, ATextThatIsNotThereIsEmpty) {
  SymbolPack pack = example_pack();
  pack.modules[0].path = 1000;
  const auto section = write_symbol_pack_section(pack);
  ASSERT_TRUE(section);
  const auto back = parse_symbol_pack(*section);
  ASSERT_TRUE(back) << back.error().what;
  EXPECT_EQ(back->texts[back->modules[0].path], "");
}

TEST(SymbolPack, ASizeThatItsFrameDeniesReservesNothing) {
  auto section = example_section();
  const std::uint64_t claimed = std::uint64_t{15} << 20;
  std::memcpy(section.data() + 8, &claimed, sizeof claimed);
  EXPECT_FALSE(parse_symbol_pack(section));
  const std::uint64_t huge = std::uint64_t{1} << 50;
  std::memcpy(section.data() + 8, &huge, sizeof huge);
  const auto refused = parse_symbol_pack(section);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, EFBIG);
}

TEST(SymbolPack, AnUnknownVersionIsSaid) {
  auto section = example_section();
  section[0] = std::byte{9};
  const auto checked = check_symbol_pack(section);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().what, "version 9 is not known, 1 is");
}

}  // namespace
}  // namespace tacho::format
