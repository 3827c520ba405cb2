#include "report/decode/bpf_functions.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

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
  for (const BpfFunction& function : BpfFunctions(environment).of(program)) names.push_back(function.name);
  return names;
}

using Names = std::vector<std::string>;

TEST(BpfFunctions, HaveTheNamesInTheirBtf) {
  EXPECT_EQ(names_of(program({3, 4}), {btf(6), btf(7)}),
            (Names{"bpf_prog_0123456789abcd00_main_function_of_it", "bpf_prog_0123456789abcd01_helper"}));
  EXPECT_EQ(names_of(program({3}), {btf(7)}), Names{"bpf_prog_0123456789abcd00_main_function_of_it"})
      << "the program's own name is cut";
}

TEST(BpfFunctions, AreCalledAsPerfCallsThemWithoutBtf) {
  for (const auto& without : {program({3, 4}, 0), program({3, 4}, 8), program({3, 4}, 7, 0x1f)})
    EXPECT_EQ(names_of(without, {btf(7)}),
              (Names{"bpf_prog_0123456789abcd00_F", "bpf_prog_0123456789abcd01_F"}));
  EXPECT_EQ(names_of(program({3}, 0), {btf(7)}), Names{"bpf_prog_0123456789abcd00_main_function_o"});
}

TEST(BpfFunctions, HaveNoNameWhereTheirTypeIsNoFunction) {
  for (const std::uint32_t wrong : {0U, 1U, 2U, 5U, ~0U})
    EXPECT_EQ(names_of(program({wrong}), {btf(7)}), Names{"bpf_prog_0123456789abcd00"}) << wrong;
}

TEST(BpfFunctions, TellWhereTheyLie) {
  format::Environment environment;
  const auto functions = BpfFunctions(environment).of(program({3, 4}));
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
  const auto functions = BpfFunctions(environment).of(info);
  ASSERT_EQ(functions.size(), 2u);
  EXPECT_EQ(functions[0].code.size(), 100u);
  ASSERT_EQ(functions[1].code.size(), 50u);
  EXPECT_EQ(functions[1].code[0], std::byte{0xc3});
  info.arrays &= ~std::uint64_t{1};
  EXPECT_TRUE(BpfFunctions(environment).of(info)[0].code.empty());
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
}  // namespace tacho::report
