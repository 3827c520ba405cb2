#include "record/host/running_kernel.h"

#include <gtest/gtest.h>

namespace tacho::record {
namespace {

TEST(RunningKernel, TheTextIsFoundInKallsyms) {
  const auto text = find_kernel_text(
      "0000000000000000 A fixed_percpu_data\n"
      "ffffffff81000000 T _stext\n"
      "ffffffff81000000 T _text\n"
      "ffffffff8220bb08 T _etext\n"
      "ffffffffc0201000 t x\t[module]\n");
  ASSERT_TRUE(text);
  EXPECT_EQ(text->reference, "_text");
  EXPECT_EQ(text->start, 0xffffffff81000000u);
  EXPECT_EQ(text->end, 0xffffffff8220bb08u);
}

TEST(RunningKernel, HiddenAddressesAreNoText) {
  EXPECT_FALSE(find_kernel_text("0000000000000000 T _text\n0000000000000000 T _stext\n"));
  EXPECT_FALSE(find_kernel_text(""));
}

TEST(RunningKernel, AModuleLineGivesItsPlace) {
  const auto module = parse_module_line("ext4 1003520 1 - Live 0xffffffffc0a00000 (E)");
  ASSERT_TRUE(module);
  EXPECT_EQ(module->name, "ext4");
  EXPECT_EQ(module->size, 1003520u);
  EXPECT_EQ(module->start, 0xffffffffc0a00000u);
  EXPECT_EQ(module->path, "[ext4]");
  EXPECT_FALSE(parse_module_line("ext4 1003520 1 - Live 0x0000000000000000"));
  EXPECT_FALSE(parse_module_line(""));
}

}  // namespace
}  // namespace tacho::record
