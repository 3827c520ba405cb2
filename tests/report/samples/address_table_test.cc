#include "report/samples/address_table.h"

#include <gtest/gtest.h>

#include <ctime>

namespace tacho::report {
namespace {

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

TEST(AddressTable, KeepsANumberForEachAddressOfEachSpace) {
  AddressTable table;
  std::uint32_t made = 0;
  const auto number = [&](std::uint32_t space, std::uint64_t ip) {
    return table.find_or_make(space, ip, [&] { return made++; });
  };
  EXPECT_EQ(number(1, 0x1000), 0u);
  EXPECT_EQ(number(2, 0x1000), 1u);
  EXPECT_EQ(number(1, 0x1000), 0u);
  for (std::uint64_t ip = 0; ip < 4096; ++ip) number(3, ip << 52);
  EXPECT_EQ(made, 4098u);
  EXPECT_EQ(number(3, std::uint64_t{17} << 52), 19u);
}

// Process i runs at address 16 i: joined by XOR, space and address were the same key for all of them.
TEST(AddressTable, SpacesAndAddressesThatCountTogetherCostNoMoreThanOthers) {
  constexpr std::uint32_t kCount = 60000;
  const double before = processor_seconds();
  AddressTable table;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    table.find_or_make(i << 4, std::uint64_t{i} << 4, [&] { return i; });
    table.find_or_make(i, ~std::uint64_t{i}, [&] { return i; });
  }
  EXPECT_LT(processor_seconds() - before, 1.0);
}

}  // namespace
}  // namespace tacho::report
