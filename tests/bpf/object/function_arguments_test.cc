#include <gtest/gtest.h>
#include <unistd.h>

#include "bpf/object/kernel_btf.h"

namespace tacho::bpf {
namespace {

TEST(FunctionArgumentsLive, AreThoseOfTheRunningKernel) {
  if (::access("/sys/kernel/btf/vmlinux", R_OK) != 0) GTEST_SKIP() << "needs a kernel with BTF";
  const auto found = kernel_function_arguments("vfs_read");
  ASSERT_TRUE(found) << found.error().what;
  ASSERT_EQ(found->size(), 4U);
  EXPECT_EQ((*found)[0].name, "file");
  EXPECT_TRUE((*found)[0].is_pointer);
  EXPECT_EQ((*found)[2].name, "count");
  EXPECT_EQ((*found)[2].size, sizeof(long));
  EXPECT_FALSE((*found)[2].is_signed || (*found)[2].is_pointer);
  const auto none = kernel_function_arguments("no_such_function_here");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().what.find("has no arguments of no_such_function_here"), std::string::npos);
}

TEST(FunctionArgumentsLive, NumbersHaveTheirSizeAndSign) {
  if (::access("/sys/kernel/btf/vmlinux", R_OK) != 0) GTEST_SKIP() << "needs a kernel with BTF";
  const auto found = kernel_function_arguments("do_exit");  // (long code)
  if (!found) GTEST_SKIP() << found.error().what;
  ASSERT_EQ(found->size(), 1U);
  EXPECT_TRUE((*found)[0].is_signed && !(*found)[0].is_pointer);
  EXPECT_EQ((*found)[0].size, sizeof(long));
}

TEST(FunctionArgumentsLive, StructsByValueTakeTheirRegisters) {
  if (::access("/sys/kernel/btf/vmlinux", R_OK) != 0) GTEST_SKIP() << "needs a kernel with BTF";
  const auto found =
      kernel_function_arguments("tcp_setsockopt");  // (sk, level, optname, sockptr_t optval, optlen)
  if (!found || found->size() != 5) GTEST_SKIP() << "another function than known";
  EXPECT_EQ((*found)[3].number, 4U);
  EXPECT_EQ((*found)[3].size, 0);  // in two registers
  EXPECT_EQ((*found)[4].number, 6U);
}

}  // namespace
}  // namespace tacho::bpf
