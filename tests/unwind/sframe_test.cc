#include "unwind/sframe.h"

#include <gtest/gtest.h>

#include <string>

#include "format/base/byte_writer.h"
#include "format/base/file.h"
#include "unwind/row_table.h"

namespace tacho::unwind {
namespace {

constexpr std::uint64_t kAddress = 0x402000;
constexpr std::uint8_t kFromField = 4;

struct Made {
  std::int32_t start = 0;  // from the section
  std::uint32_t size = 0;
  std::uint8_t info = 0;  // addresses of one byte
  std::vector<std::vector<std::uint8_t>> rows;
};

// A section of version 2, or 1.
std::vector<std::byte> section(const std::vector<Made>& functions, std::uint8_t version = 2,
                               std::uint8_t flags = 0, std::uint8_t machine = 3) {
  constexpr std::uint32_t kHeader = 28;
  const std::uint32_t each = version == 1 ? 17 : 20;
  format::ByteWriter out, rows;
  std::uint32_t count = 0;
  for (const Made& function : functions) count += static_cast<std::uint32_t>(function.rows.size());
  const auto number = static_cast<std::uint32_t>(functions.size());
  out.u16(0xdee2).u8(version).u8(flags).u8(machine).u8(0).u8(0xf8).u8(0);
  out.u32(number).u32(count).u32(0).u32(0).u32(number * each);
  for (std::uint32_t i = 0; i < number; ++i) {
    const Made& function = functions[i];
    const std::int32_t base = (flags & kFromField) != 0 ? static_cast<std::int32_t>(kHeader + i * each) : 0;
    out.u32(static_cast<std::uint32_t>(function.start - base)).u32(function.size);
    out.u32(static_cast<std::uint32_t>(rows.size()));
    out.u32(static_cast<std::uint32_t>(function.rows.size())).u8(function.info);
    if (version == 2) out.u8(16).u16(0);
    for (const auto& row : function.rows) rows.bytes(std::as_bytes(std::span(row)));
  }
  out.bytes(rows.view());
  return {out.view().begin(), out.view().end()};
}

// push rbp; mov rsp, rbp
const Made kFunction{-0x1000, 0x40, 0, {{0, 0x03, 8}, {1, 0x05, 16, 0xf0}, {4, 0x04, 16, 0xf0}}};

std::string rows_of(const std::vector<std::byte>& bytes) {
  const auto table = build_row_table(bytes, kAddress);
  if (!table) return table.error().what;
  std::string text;
  for (const Row& row : table->rows)
    text += std::to_string(table->base + row.pc - kAddress + 0x1000) + ": " + std::to_string(row.kind) + " " +
            std::to_string(row.cfa) + " " + std::to_string(row.rbp) + "; ";
  return text;
}

TEST(Sframe, AFunctionWithAFramePointerHasThreeRows) {
  constexpr const char* kRows = "0: 7 1 0; 1: 7 2 -2; 4: 6 2 -2; 64: 21 0 0; ";
  EXPECT_EQ(rows_of(section({kFunction})), kRows);
  EXPECT_EQ(rows_of(section({kFunction}, 1)), kRows) << "as binutils 2.40 write it";
  EXPECT_EQ(rows_of(section({kFunction}, 2, kFromField)), kRows) << "as binutils 2.45 write it";
}

TEST(Sframe, FunctionsComeInOrderAndGapsAreNothing) {
  const Made later{-0xf00, 0x10, 0, {{0, 0x03, 8}}};
  EXPECT_EQ(rows_of(section({later, kFunction})),
            "0: 7 1 0; 1: 7 2 -2; 4: 6 2 -2; 64: 21 0 0; 256: 7 1 0; 272: 21 0 0; ");
}

TEST(Sframe, EntriesOfTheLinkageTableAreTold) {
  EXPECT_EQ(rows_of(section({{-0x1000, 0x40, 0x10, {{0, 0x03, 8}, {11, 0x03, 16}}}})),
            "0: 18 1 11; 64: 21 0 0; ");
  EXPECT_EQ(rows_of(section({{-0x1000, 0x40, 0x10, {{0, 0x03, 8}, {11, 0x03, 32}}}})),
            "0: 22 0 0; 64: 21 0 0; ");
}

TEST(Sframe, WhoeverHasNoReturnAddressEndsAStack) {
  EXPECT_EQ(rows_of(section({{-0x1000, 0x40, 0, {{0, 0x01}}}})), "0: 20 0 0; 64: 21 0 0; ");
}

TEST(Sframe, DamageIsOfItsFunctionAlone) {
  const Made falling{-0x1000, 0x40, 0, {{4, 0x03, 8}, {1, 0x03, 16}}}, odd{-0xf00, 0x10, 0, {{0, 0x03, 9}}};
  EXPECT_EQ(rows_of(section({falling, odd})), "0: 22 0 0; 64: 21 0 0; 256: 22 0 0; 272: 21 0 0; ");
}

TEST(Sframe, OtherSectionsHaveNoFunctions) {
  EXPECT_EQ(rows_of(section({kFunction}, 3)), "");
  EXPECT_EQ(rows_of(section({kFunction}, 2, 0, 2)), "") << "arm64";
  EXPECT_EQ(rows_of({}), "");
}

TEST(Sframe, ASectionCutAnywhereIsSurvived) {
  const auto whole = section({kFunction, {-0xf00, 0x10, 0, {{0, 0x03, 8}}}});
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_TRUE(build_row_table(format::Bytes(whole).first(size), kAddress)) << size;
}

TEST(Sframe, FunctionsThatShareTheirRowsAreReadWithinTheSectionsSize) {
  Made all{-0x100000, 0x80, 0, {}};
  for (std::uint8_t pc = 0; pc < 0x80; ++pc) all.rows.push_back({pc, 0x03, 8});
  std::vector<Made> functions{all};
  for (std::int32_t i = 1; i < 2000; ++i) functions.push_back({-0x100000 + i, 0x80, 0, {}});
  auto bytes = section(functions);
  for (std::size_t i = 1; i < functions.size(); ++i)
    bytes[28 + 20 * i + 12] = std::byte{0x80};  // the rows of the first
  for (std::size_t i = 1; i < functions.size(); ++i)
    for (std::size_t byte = 0; byte < 4; ++byte) bytes[28 + 20 * i + 8 + byte] = std::byte{0};
  std::size_t rows = 0;
  const auto count = [&rows](const SframeFunction& function) {
    rows += function.rows.size();
    return true;
  };
  EXPECT_EQ(read_sframe(bytes, kAddress, {}, count), SframeRead::Done);
  EXPECT_LE(rows, bytes.size() / 2);
}

// A file of many gigabytes takes no room on a disk, and its owner says how many functions it has.
TEST(Sframe, MoreFunctionsThanTheLimitAreNotRead) {
  std::vector<Made> functions;
  for (std::int32_t i = 0; i < 9; ++i) functions.push_back({-0x1000 + i, 1, 0, {{0, 0x03, 8}}});
  auto bytes = section(functions);
  const auto none = [](const SframeFunction&) {
    ADD_FAILURE();
    return false;
  };
  EXPECT_EQ(read_sframe(bytes, kAddress, {.most = 8}, none), SframeRead::TooLarge);
  const auto table = build_row_table(bytes, kAddress, {.most_rows = 8});
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().what, "its unwind table is too large");
  for (std::size_t i = 0; i < 4; ++i) bytes[8 + i] = std::byte{0xff};
  bytes.resize(28 + 20 * 1000);
  EXPECT_EQ(read_sframe(bytes, kAddress, {.most = 999}, none), SframeRead::TooLarge)
      << "that it has room for";
}

TEST(Sframe, MoreRowsOfAFunctionThanTheLimitAreNotRead) {
  const auto none = [](const SframeFunction&) {
    ADD_FAILURE();
    return false;
  };
  EXPECT_EQ(read_sframe(section({kFunction}), kAddress, {.most = 2}, none), SframeRead::TooLarge);
  EXPECT_FALSE(build_row_table(section({kFunction}), kAddress, {.most_rows = 2}));
  EXPECT_EQ(read_sframe(section({kFunction}), kAddress, {.most = 3}, [](const auto&) { return true; }),
            SframeRead::Done);
}

TEST(Sframe, StopsWhileFunctionsAreListed) {
  std::vector<Made> functions(9, kFunction);
  std::size_t asked = 0, given = 0;
  const auto stop = [&asked] { return ++asked >= 3; };
  const auto count = [&given](const SframeFunction&) { return ++given != 0; };
  EXPECT_EQ(read_sframe(section(functions), kAddress, {.stop = stop}, count), SframeRead::Done);
  EXPECT_EQ(asked, 3u);
  EXPECT_EQ(given, 0u);
}

TEST(Sframe, StopsWithinAFunction) {
  Made large{-0x100000, 0x10000, 1, {}};  // addresses of two bytes
  for (unsigned pc = 0; pc < 0x8000; ++pc)
    large.rows.push_back({static_cast<std::uint8_t>(pc), static_cast<std::uint8_t>(pc >> 8), 0x03, 8});
  std::size_t asked = 0, rows = 0;
  const auto count = [&rows](const SframeFunction& function) { return rows += function.rows.size(), true; };
  const auto bytes = section({large});
  EXPECT_EQ(read_sframe(bytes, kAddress, {.stop = [&asked] { return ++asked >= 3; }}, count),
            SframeRead::Done);
  EXPECT_EQ(asked, 3u) << "once for the function, then for its rows";
  EXPECT_EQ(rows, 0u);
  EXPECT_EQ(read_sframe(bytes, kAddress, {}, count), SframeRead::Done);
  EXPECT_EQ(rows, 0x8000u);
}

// sframe.so has both sections (tests/data/README.md).
TEST(Sframe, ALinkersSectionSaysWhatItsCallFrameInformationSays) {
  auto file = format::open_input(std::string(TACHO_TEST_DATA) + "/sframe.so");
  ASSERT_TRUE(file) << file.error().what;
  const auto image = ElfImage::open(std::move(*file));
  ASSERT_TRUE(image) << image.error().what;
  const auto both = row_table_of(*image);
  const auto found = image->section(".sframe");
  ASSERT_TRUE(both && found);
  const auto table = build_row_table(found->bytes, found->address);
  ASSERT_TRUE(table) << table.error().what;
  std::size_t compared = 0;
  const auto compare = [&](const SframeFunction& function) {
    for (std::uint64_t pc = function.start; pc < function.end; ++pc) {
      const Row* const one = table->find_row(pc);
      const Row* const other = both->find_row(pc);
      if (one == nullptr || other == nullptr) {
        ADD_FAILURE() << pc;
        return false;
      }
      EXPECT_EQ(
          std::to_string(one->kind) + " " + std::to_string(one->cfa) + " " + std::to_string(one->rbp),
          std::to_string(other->kind) + " " + std::to_string(other->cfa) + " " + std::to_string(other->rbp))
          << pc;
      ++compared;
    }
    return true;
  };
  EXPECT_EQ(read_sframe(found->bytes, found->address, {}, compare), SframeRead::Done);
  EXPECT_GT(compared, 100u);
}

}  // namespace
}  // namespace tacho::unwind
