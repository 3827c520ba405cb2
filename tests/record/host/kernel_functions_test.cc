#include "record/host/kernel_functions.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tacho::record {
namespace {

constexpr std::string_view kKallsyms =
    "ffffffff81000000 T _text\n"
    "ffffffff81366a80 T vfs_write\n"
    "ffffffff813669e0 T vfs_read\n"
    "ffffffff82000010 D jiffies\n"
    "ffffffffc0a01230 t ext4_file_open\t[ext4]\n"
    "garbage\n"
    "ffffffff8136\n"
    "ffffffffc0a01290 t ext4_file_close\t[ext4\n";

std::string why_not(std::string_view name, std::uint64_t offset = 0) {
  auto done = check_kernel_function(kKallsyms, name, offset);
  return done ? "" : done.error().what;
}

TEST(KernelFunctions, AreFoundByName) {
  EXPECT_EQ(why_not("vfs_read"), "");
  EXPECT_EQ(why_not("ext4_file_open"), "");
}

TEST(KernelFunctions, AreListed) {
  EXPECT_EQ(
      kernel_function_names(kKallsyms),
      (std::vector<std::string>{"_text", "vfs_write", "vfs_read", "ext4_file_open", "ext4_file_close"}));
}

TEST(KernelFunctions, TheNearestIsOffered) {
  EXPECT_EQ(why_not("vfs_raed"), "this kernel has no function 'vfs_raed'; did you mean 'vfs_read'?");
  EXPECT_EQ(why_not("something_else_altogether"), "this kernel has no function 'something_else_altogether'");
  EXPECT_EQ(why_not(""), "this kernel has no function ''");
}

TEST(KernelFunctions, DataIsNoFunction) { EXPECT_EQ(why_not("jiffies"), "'jiffies' is no function"); }

TEST(KernelFunctions, OffsetsEndWithTheFunction) {
  EXPECT_EQ(why_not("vfs_read", 0x9f), "");
  EXPECT_EQ(why_not("vfs_read", 0xa0), "'vfs_read' is 160 bytes long, and 160 lies behind it");
}

TEST(KernelFunctions, HiddenAddressesLeaveOffsetsToTheKernel) {
  constexpr std::string_view kHidden = "0000000000000000 T vfs_read\n0000000000000000 T vfs_write\n";
  EXPECT_TRUE(check_kernel_function(kHidden, "vfs_read", 1 << 20));
}

TEST(KernelFunctions, ManyAreFoundByAPatternAmongThoseThatCanBeTraced) {
  using Addresses = std::vector<std::uint64_t>;
  constexpr std::string_view kAddresses =
      "ffffffff81360004 vfs_write\nffffffff81350004 vfs_read\nffffffffc0a01004 ext4_file_open [ext4]\n"
      "ffffffff81350004 vfs_read\nbroken\n0000000000000000 vfs_hidden\nffff";
  EXPECT_EQ(traceable_functions(kAddresses, true, "", "vfs_*"),
            (Addresses{0xffffffff81350004, 0xffffffff81360004}));
  EXPECT_EQ(traceable_functions(kAddresses, true, "", "ext4_file_open"), (Addresses{0xffffffffc0a01004}));
  EXPECT_EQ(traceable_functions(kAddresses, true, "", "nothing*"), Addresses{});
  constexpr std::string_view kNames = "vfs_write\nvfs_read\next4_file_open [ext4]\nvfs_not_in_kallsyms\n\n";
  const auto found = traceable_functions(kNames, false, kKallsyms, "vfs_*");
  ASSERT_EQ(found.size(), 2u) << "with addresses from kallsyms";
  EXPECT_LT(found[0], found[1]);
  EXPECT_EQ(traceable_functions("jiffies\n", false, kKallsyms, "*"), Addresses{}) << "data";
}

TEST(KernelFunctions, PlacesAreThoseOfTheListWithAllThatShareAName) {
  constexpr std::string_view kSymbols =
      "ffffffff81000200 t helper\nffffffff81000100 t helper\nffffffff81000300 T submit\n"
      "ffffffff81000400 D state\n0000000000000000 T hidden\nffffffff81000500 T not_listed\n"
      "ffffffffc0000100 t of_module\t[loop]\nffffffff81000300 T submit\n";
  const std::vector<std::string> names{"helper", "submit",     "state",    "hidden",
                                       "absent", "not_listed", "of_module"};
  using Addresses = std::vector<std::uint64_t>;
  auto found = function_places("helper\nsubmit\nhelper\nof_module [loop]\nstate\nhidden\n", kSymbols, names);
  EXPECT_EQ(found.size(), 3u);
  EXPECT_EQ(found["helper"], (Addresses{0xffffffff81000100, 0xffffffff81000200}));
  EXPECT_EQ(found["submit"], Addresses{0xffffffff81000300});
  EXPECT_EQ(found["of_module"], Addresses{0xffffffffc0000100});
  found = function_places("", kSymbols, names);
  EXPECT_EQ(found["not_listed"], Addresses{0xffffffff81000500}) << "the kernel keeps no list";
  EXPECT_TRUE(function_places("vfs_read\n", kSymbols, names).empty());
}

}  // namespace
}  // namespace tacho::record
