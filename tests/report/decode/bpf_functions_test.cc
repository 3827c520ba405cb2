#include "report/decode/bpf_functions.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "report/decode/bpf_instructions.h"

namespace tacho::report {
namespace {

std::string number(std::uint64_t value, std::size_t size) {
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(value >> 8 * i);
  return bytes;
}

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string type(std::uint32_t name, std::uint32_t kind, std::uint32_t members,
                 const std::string& behind = {}) {
  return number(name, 4) + number(kind << 24 | members, 4) + number(0, 4) + behind;
}

// Types 1 to 4: a number, what a function takes, and two functions.
format::BtfBlob btf(std::uint32_t id) {
  const std::string strings("\0int\0main_function_of_it\0helper\0", 33);
  const std::string types =
      type(1, 1, 0, number(0, 4)) + type(0, 13, 1, number(0, 8)) + type(5, 12, 1) + type(25, 12, 0);
  return {id, bytes_of(number(0xeb9f, 2) + number(1, 1) + number(0, 1) + number(24, 4) + number(0, 4) +
                       number(types.size(), 4) + number(types.size(), 4) + number(strings.size(), 4) + types +
                       strings)};
}

constexpr std::uint64_t kAllArrays = 0x7f;

// Program 42 whose functions are of these types of BTF 7.
format::BpfProgramInfo program(const std::vector<std::uint32_t>& types, std::uint32_t btf_id = 7,
                               std::uint64_t arrays = kAllArrays) {
  std::string addresses, sizes, tags, names;
  for (std::size_t i = 0; i < types.size(); ++i) {
    addresses += number(0xffffffffc0001000 + 256 * i, 8);
    sizes += number(100 + i, 4);
    tags += std::string("\x01\x23\x45\x67\x89\xab\xcd", 7) + static_cast<char>(i);
    names += number(8 * i, 4) + number(types[i], 4);
  }
  std::string info(208, '\0');
  const auto put = [&](std::size_t at, const std::string& field) { info.replace(at, field.size(), field); };
  put(4, number(42, 4));
  put(64, "main_function_o");
  put(104, number(types.size(), 4));
  put(108, number(types.size(), 4));
  put(112, number(0, 8));
  put(120, number(addresses.size(), 8));
  put(128, number(btf_id, 4));
  put(132, number(8, 4));
  put(136, number(addresses.size() + sizes.size(), 8));
  put(144, number(types.size(), 4));
  put(184, number(addresses.size() + sizes.size() + names.size(), 8));
  return {bytes_of(info), arrays, bytes_of(addresses + sizes + names + tags)};
}

std::vector<std::string> names_of(const format::BpfProgramInfo& program,
                                  const std::vector<format::BtfBlob>& blobs) {
  format::Environment environment;
  environment.btf = blobs;
  std::vector<std::string> names;
  for (const BpfFunction& function : BpfFunctions(environment).functions_of(program))
    names.push_back(function.name);
  return names;
}

using NameList = std::vector<std::string>;

TEST(BpfFunctions, HaveTheNamesInTheirBtf) {
  EXPECT_EQ(names_of(program({3, 4}), {btf(6), btf(7)}),
            (NameList{"bpf_prog_0123456789abcd00_main_function_of_it", "bpf_prog_0123456789abcd01_helper"}));
  EXPECT_EQ(names_of(program({3}), {btf(7)}), NameList{"bpf_prog_0123456789abcd00_main_function_of_it"})
      << "the program's own name is cut";
}

TEST(BpfFunctions, AreCalledAsPerfCallsThemWithoutBtf) {
  for (const auto& without : {program({3, 4}, 0), program({3, 4}, 8), program({3, 4}, 7, 0x1f)})
    EXPECT_EQ(names_of(without, {btf(7)}),
              (NameList{"bpf_prog_0123456789abcd00_F", "bpf_prog_0123456789abcd01_F"}));
  EXPECT_EQ(names_of(program({3}, 0), {btf(7)}), NameList{"bpf_prog_0123456789abcd00_main_function_o"});
}

TEST(BpfFunctions, HaveNoNameWhereTheirTypeIsNoFunction) {
  for (const std::uint32_t wrong : {0U, 1U, 2U, 5U, ~0U})
    EXPECT_EQ(names_of(program({wrong}), {btf(7)}), NameList{"bpf_prog_0123456789abcd00"}) << wrong;
}

TEST(BpfFunctions, TellWhereTheyLie) {
  format::Environment environment;
  const auto functions = BpfFunctions(environment).functions_of(program({3, 4}));
  ASSERT_EQ(functions.size(), 2u);
  EXPECT_EQ(functions[1].address, 0xffffffffc0001100);
  EXPECT_EQ(functions[1].size, 101u);
  EXPECT_EQ(BpfFunctions::id(program({3})), 42u);
}

TEST(BpfFunctions, HaveTheirPartOfTheCode) {
  format::Environment environment;
  format::BpfProgramInfo info = program({3, 4});
  const std::size_t data = info.data.size();
  info.data.resize(data + 150);  // the code of the second function is cut short
  info.data[data + 100] = std::byte{0xc3};
  const auto put = [&info](std::size_t at, std::uint64_t value, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) info.info[at + i] = static_cast<std::byte>(value >> (8 * i));
  };
  put(16, 201, 4);
  put(24, data, 8);
  const auto functions = BpfFunctions(environment).functions_of(info);
  ASSERT_EQ(functions.size(), 2u);
  EXPECT_EQ(functions[0].code.size(), 100u);
  ASSERT_EQ(functions[1].code.size(), 50u);
  EXPECT_EQ(functions[1].code[0], std::byte{0xc3});
  info.arrays &= ~std::uint64_t{1};
  EXPECT_TRUE(BpfFunctions(environment).functions_of(info)[0].code.empty());
}

TEST(BpfFunctions, OfDamagedBytesAreFewOrNameless) {
  for (std::size_t size = 0; size < btf(7).bytes.size(); ++size) {
    format::BtfBlob cut = btf(7);
    cut.bytes.resize(size);
    EXPECT_EQ(names_of(program({3, 4}), {cut}).size(), 2u);
  }
  for (std::size_t size = 0; size < 208; ++size) {
    auto cut = program({3, 4});
    cut.info.resize(size);
    EXPECT_EQ(names_of(cut, {btf(7)}).size(), size < 192 ? 0u : 2u);
  }
  auto no_data = program({3, 4});
  no_data.data.clear();
  EXPECT_EQ(names_of(no_data, {btf(7)}).size(), 2u);
}

}  // namespace

namespace {

struct Encoded {
  unsigned code = 0, destination = 0, source = 0;
  int offset = 0;
  std::int64_t immediate = 0;
};

std::vector<std::byte> code_bytes(const std::vector<Encoded>& all) {
  std::vector<std::byte> bytes;
  for (const Encoded& one : all) {
    const auto low = static_cast<std::uint64_t>(one.immediate) & 0xffffffffU;
    std::uint64_t word = one.code | one.destination << 8U | one.source << 12U;
    word |= (static_cast<std::uint64_t>(one.offset) & 0xffffU) << 16U | low << 32U;
    for (unsigned i = 0; i < 8; ++i) bytes.push_back(static_cast<std::byte>(word >> 8 * i));
  }
  return bytes;
}

std::string text(const Encoded& one, const BpfCallName& names = {}) {
  const auto lines = disassemble_bpf(code_bytes({one}), names);
  return lines.size() == 1 ? lines[0].text : "not one line";
}

struct Row {
  Encoded one;
  const char* text;
};

void expect(const std::vector<Row>& rows) {
  for (const Row& row : rows) EXPECT_EQ(text(row.one), row.text);
}

TEST(BpfInstructions, Arithmetic) {
  expect({{{0x07, 1, 0, 0, 8}, "(07) r1 += 8"},
          {{0x07, 1, 0, 0, -8}, "(07) r1 += -8"},
          {{0x0f, 1, 2}, "(0f) r1 += r2"},
          {{0x04, 1, 0, 0, 8}, "(04) w1 += 8"},
          {{0x0c, 1, 2}, "(0c) w1 += w2"},
          {{0x1f, 3, 4}, "(1f) r3 -= r4"},
          {{0x27, 3, 0, 0, 7}, "(27) r3 *= 7"},
          {{0x37, 3, 0, 0, 1000}, "(37) r3 /= 1000"},
          {{0x4f, 3, 4}, "(4f) r3 |= r4"},
          {{0x57, 3, 0, 0, 255}, "(57) r3 &= 255"},
          {{0x67, 3, 0, 0, 32}, "(67) r3 <<= 32"},
          {{0x77, 3, 0, 0, 32}, "(77) r3 >>= 32"},
          {{0x87, 3}, "(87) r3 = -r3"},
          {{0x84, 3}, "(84) w3 = -w3"},
          {{0x97, 3, 0, 0, 10}, "(97) r3 %= 10"},
          {{0xaf, 3, 4}, "(af) r3 ^= r4"},
          {{0xb7, 3, 0, 0, -1}, "(b7) r3 = -1"},
          {{0xb4, 3, 0, 0, 1}, "(b4) w3 = 1"},
          {{0xbf, 3, 10}, "(bf) r3 = r10"},
          {{0xbc, 3, 4}, "(bc) w3 = w4"},
          {{0xc7, 3, 0, 0, 32}, "(c7) r3 s>>= 32"},
          {{0xe7, 3}, "(e7) BUG_alu_e7"},
          {{0xff, 3}, "(ff) BUG_alu_ff"}});
}

TEST(BpfInstructions, SignedArithmeticAndMoves) {
  expect({{{0x37, 3, 0, 1, 10}, "(37) r3 s/= 10"},
          {{0x9c, 3, 4, 1}, "(9c) w3 s%= w4"},
          {{0xbf, 3, 4, 8}, "(bf) r3 = (s8)r4"},
          {{0xbf, 3, 4, 16}, "(bf) r3 = (s16)r4"},
          {{0xbf, 3, 4, 32}, "(bf) r3 = (s32)r4"},
          {{0xbc, 3, 4, 16}, "(bc) w3 = (s16)w4"},
          {{0xbf, 3, 4, 1, 0x10000}, "(bf) r3 = addr_space_cast(r4, 1, 0)"},
          {{0xbf, 3, 4, 1, 1}, "(bf) r3 = addr_space_cast(r4, 0, 1)"},
          {{0xbf, 3, 4, -1}, "(bf) r3 = &(void __percpu *)(r4)"}});
}

TEST(BpfInstructions, ByteOrders) {
  expect({{{0xd4, 1, 0, 0, 16}, "(d4) r1 = le16 r1"},
          {{0xdc, 1, 0, 0, 64}, "(dc) r1 = be64 r1"},
          {{0xd7, 1, 0, 0, 32}, "(d7) r1 = bswap32 r1"}});
}

TEST(BpfInstructions, LoadsAndStores) {
  expect({{{0x61, 1, 10, -4}, "(61) r1 = *(u32 *)(r10 -4)"},
          {{0x69, 1, 2, 0}, "(69) r1 = *(u16 *)(r2 +0)"},
          {{0x71, 1, 2, 8}, "(71) r1 = *(u8 *)(r2 +8)"},
          {{0x79, 1, 2, 8}, "(79) r1 = *(u64 *)(r2 +8)"},
          {{0x81, 1, 2, 8}, "(81) r1 = *(s32 *)(r2 +8)"},
          {{0x89, 1, 2, 8}, "(89) r1 = *(s16 *)(r2 +8)"},
          {{0x91, 1, 2, 8}, "(91) r1 = *(s8 *)(r2 +8)"},
          {{0x62, 10, 0, -4, 7}, "(62) *(u32 *)(r10 -4) = 7"},
          {{0x7a, 10, 0, -8, -1}, "(7a) *(u64 *)(r10 -8) = -1"},
          {{0x63, 10, 2, -4}, "(63) *(u32 *)(r10 -4) = r2"},
          {{0x7b, 10, 2, -8}, "(7b) *(u64 *)(r10 -8) = r2"},
          {{0x73, 10, 2, -1}, "(73) *(u8 *)(r10 -1) = r2"},
          {{0xc2, 0}, "(c2) nospec"},
          {{0xa1, 1, 2}, "(a1) BUG_ldx_a1"},
          {{0x82, 1}, "(82) BUG_st_82"},
          {{0x83, 1}, "(83) BUG_83"},
          {{0x20, 0, 0, 0, 12}, "(20) r0 = *(u32 *)skb[12]"},
          {{0x48, 0, 7, 0, 14}, "(48) r0 = *(u16 *)skb[r7 + 14]"},
          {{0x60, 0}, "(60) BUG_ld_60"}});
}

TEST(BpfInstructions, Atomics) {
  expect({{{0xdb, 1, 2, 8, 0x00}, "(db) lock *(u64 *)(r1 +8) += r2"},
          {{0xc3, 1, 2, -8, 0x40}, "(c3) lock *(u32 *)(r1 -8) |= r2"},
          {{0xdb, 1, 2, 0, 0x50}, "(db) lock *(u64 *)(r1 +0) &= r2"},
          {{0xdb, 1, 2, 0, 0xa0}, "(db) lock *(u64 *)(r1 +0) ^= r2"},
          {{0xdb, 1, 2, 0, 0x01}, "(db) r2 = atomic64_fetch_add((u64 *)(r1 +0), r2)"},
          {{0xc3, 1, 2, 0, 0x41}, "(c3) r2 = atomic_fetch_or((u32 *)(r1 +0), r2)"},
          {{0xdb, 1, 2, 0, 0x51}, "(db) r2 = atomic64_fetch_and((u64 *)(r1 +0), r2)"},
          {{0xdb, 1, 2, 0, 0xa1}, "(db) r2 = atomic64_fetch_xor((u64 *)(r1 +0), r2)"},
          {{0xdb, 1, 2, 0, 0xe1}, "(db) r2 = atomic64_xchg((u64 *)(r1 +0), r2)"},
          {{0xc3, 1, 2, 0, 0xf1}, "(c3) r0 = atomic_cmpxchg((u32 *)(r1 +0), r0, r2)"},
          {{0xdb, 1, 2, 8, 0x100}, "(db) r1 = load_acquire((u64 *)(r2 +8))"},
          {{0xd3, 1, 2, 8, 0x110}, "(d3) store_release((u8 *)(r1 +8), r2)"},
          {{0xdb, 1, 2, 8, 0x60}, "(db) BUG_db"}});
}

TEST(BpfInstructions, Jumps) {
  expect({{{0x05, 0, 0, 3}, "(05) goto pc+3"},
          {{0x05, 0, 0, -3}, "(05) goto pc-3"},
          {{0x06, 0, 0, 0, 70000}, "(06) gotol pc+70000"},
          {{0x0d, 2}, "(0d) gotox r2"},
          {{0xe5, 0, 0, 2}, "(e5) may_goto pc+2"},
          {{0x15, 1, 0, 5, 0}, "(15) if r1 == 0x0 goto pc+5"},
          {{0x15, 1, 0, 5, -1}, "(15) if r1 == 0xffffffff goto pc+5"},
          {{0x1d, 1, 2, 5}, "(1d) if r1 == r2 goto pc+5"},
          {{0x16, 1, 0, 5, 16}, "(16) if w1 == 0x10 goto pc+5"},
          {{0x1e, 1, 2, -5}, "(1e) if w1 == w2 goto pc-5"},
          {{0x25, 1, 0, 5, 1}, "(25) if r1 > 0x1 goto pc+5"},
          {{0x35, 1, 0, 5, 1}, "(35) if r1 >= 0x1 goto pc+5"},
          {{0x45, 1, 0, 5, 1}, "(45) if r1 & 0x1 goto pc+5"},
          {{0x55, 1, 0, 5, 1}, "(55) if r1 != 0x1 goto pc+5"},
          {{0x65, 1, 0, 5, 1}, "(65) if r1 s> 0x1 goto pc+5"},
          {{0x75, 1, 0, 5, 1}, "(75) if r1 s>= 0x1 goto pc+5"},
          {{0xa5, 1, 0, 5, 1}, "(a5) if r1 < 0x1 goto pc+5"},
          {{0xb5, 1, 0, 5, 1}, "(b5) if r1 <= 0x1 goto pc+5"},
          {{0xc5, 1, 0, 5, 1}, "(c5) if r1 s< 0x1 goto pc+5"},
          {{0xde, 1, 2, 5}, "(de) if w1 s<= w2 goto pc+5"},
          {{0x95}, "(95) exit"},
          {{0x96}, "(96) BUG_jmp_96"},
          {{0x8d}, "(8d) BUG_jmp_8d"},
          {{0xf5}, "(f5) BUG_jmp_f5"}});
}

TEST(BpfInstructions, CallsHaveTheNamesOfWhatTheyCall) {
  const BpfCallName names = [](const BpfInstruction& one) -> std::optional<std::string> {
    if (one.immediate == 5000) return "__htab_map_lookup_elem";
    return one.calls_own_function() ? std::optional<std::string>("+7#bpf_prog_0123456789abcdef_helper")
                                    : std::nullopt;
  };
  EXPECT_EQ(text({0x85, 0, 0, 0, 1}), "(85) call bpf_map_lookup_elem#1");
  EXPECT_EQ(text({0x85, 0, 0, 0, 0}), "(85) call bpf_unspec#0");
  EXPECT_EQ(text({0x85, 0, 0, 0, 5000}, names), "(85) call __htab_map_lookup_elem#5000");
  EXPECT_EQ(text({0x85, 0, 0, 0, -5000}, names), "(85) call unknown#-5000");
  EXPECT_EQ(text({0x85, 0, 2, 0, 5000}, names), "(85) call __htab_map_lookup_elem#5000");
  EXPECT_EQ(text({0x85, 0, 2, 0, 17}, names), "(85) call kernel-function#17");
  EXPECT_EQ(text({0x85, 0, 1, 7, 1}, names), "(85) call pc+7#bpf_prog_0123456789abcdef_helper");
  EXPECT_EQ(text({0x85, 0, 1, 7, 12}), "(85) call pc+12");
}

TEST(BpfInstructions, ImmediatesOf64BitsAreTwo) {
  const auto lines = disassemble_bpf(code_bytes({{0x18, 1, 0, 0, 0x89abcdef},
                                                 {0, 0, 0, 0, 0x01234567},
                                                 {0x18, 2, 1, 0, 12},
                                                 {},
                                                 {0x18, 3, 2, 0, 12},
                                                 {0, 0, 0, 0, 40},
                                                 {0x18, 4, 6, 0, 3},
                                                 {0, 0, 0, 0, 8},
                                                 {0x18, 5, 4, 0, -6},
                                                 {},
                                                 {0x95}}),
                                     {});
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(lines[0].text, "(18) r1 = 0x123456789abcdef");
  EXPECT_EQ(lines[1].text, "(18) r2 = map[id:12]");
  EXPECT_EQ(lines[1].number, 2u);
  EXPECT_EQ(lines[2].text, "(18) r3 = map[id:12][0]+40");
  EXPECT_EQ(lines[3].text, "(18) r4 = map[idx:3]+8");
  EXPECT_EQ(lines[4].text, "(18) r5 = subprog[-6]");
  EXPECT_EQ(lines[5].number, 10u);
}

TEST(BpfInstructions, JumpsLeadInsideTheCodeOrNowhere) {
  const auto lines = disassemble_bpf(code_bytes({{0x05, 0, 0, 1},
                                                 {0x06, 0, 0, 0, 1},
                                                 {0x15, 1, 0, -3},
                                                 {0x15, 1, 0, 1},
                                                 {0x85, 0, 1, -5, 1},
                                                 {0x95}}),
                                     {});
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(lines[0].target, 2u);
  EXPECT_EQ(lines[1].target, 3u);
  EXPECT_EQ(lines[2].target, 0u);
  EXPECT_EQ(lines[3].target, 5u);
  EXPECT_EQ(lines[4].target, 0u);
  EXPECT_FALSE(lines[5].target);
  EXPECT_FALSE(disassemble_bpf(code_bytes({{0x05, 0, 0, -2}}), {})[0].target);
  EXPECT_FALSE(disassemble_bpf(code_bytes({{0x05, 0, 0, 0}}), {})[0].target);
}

TEST(BpfInstructions, OfCutCode) {
  auto bytes = code_bytes({{0x95}, {0x18, 1, 0, 0, 5}});
  ASSERT_EQ(disassemble_bpf(bytes, {}).size(), 2u);
  EXPECT_EQ(disassemble_bpf(bytes, {})[1].text, "(18) r1 = 0x5");
  bytes.pop_back();
  EXPECT_EQ(disassemble_bpf(bytes, {}).size(), 1u);
  EXPECT_TRUE(disassemble_bpf({}, {}).empty());
}

TEST(BpfInstructions, EveryCodeHasAText) {
  for (unsigned code = 0; code < 256; ++code)
    for (const int offset : {0, 1, -1, 8, 0x7fff, -0x8000})
      for (const std::int64_t immediate : {0L, 1L, 0x7fffffffL, -0x80000000L})
        EXPECT_GT(text({code, 15, 15, offset, immediate}).size(), 5u) << code;
}

}  // namespace

}  // namespace tacho::report
