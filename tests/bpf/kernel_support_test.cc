#include "bpf/kernel_support.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "bpf/private_folder.h"

namespace tacho::bpf {
namespace {

TEST(KernelSupport, ATracepointExistsWhenTracefsHasItsId) {
  const auto tracefs = PrivateFolder::create();
  ASSERT_TRUE(tracefs);
  std::filesystem::create_directories(tracefs->path() + "/events/block/block_rq_issue");
  std::ofstream(tracefs->path() + "/events/block/block_rq_issue/id") << "1";
  EXPECT_FALSE(missing_hook({Hook::Tracepoint, "block/block_rq_issue"}, tracefs->path()));
  const auto missing = missing_hook({Hook::Tracepoint, "block/no_such"}, tracefs->path());
  ASSERT_TRUE(missing);
  EXPECT_NE(missing->find("no tracepoint 'block/no_such'"), std::string::npos) << *missing;
}

TEST(KernelSupport, AProbeNeedsItsFile) {
  const auto tracefs = PrivateFolder::create();
  ASSERT_TRUE(tracefs);
  std::ofstream(tracefs->path() + "/uprobe_events") << "";
  EXPECT_FALSE(missing_hook({Hook::Uprobe, "/proc/self/exe:main"}, tracefs->path()));
  EXPECT_FALSE(missing_hook({Hook::Uprobe, "libsomewhere.so:main"}, tracefs->path()))
      << "libbpf searches for it";
  const auto missing = missing_hook({Hook::Uprobe, "/no/such/file:main"}, tracefs->path());
  ASSERT_TRUE(missing);
  EXPECT_EQ(*missing, "'/no/such/file': no such file");
}

TEST(KernelSupport, AKernelFunctionMustBeInKallsyms) {
  const auto tracefs = PrivateFolder::create();
  ASSERT_TRUE(tracefs);
  std::ofstream(tracefs->path() + "/kprobe_events") << "";
  std::ifstream symbols("/proc/kallsyms");
  if (symbols.peek() == std::ifstream::traits_type::eof()) GTEST_SKIP() << "no /proc/kallsyms here";
  EXPECT_FALSE(missing_hook({Hook::Kprobe, "vfs_read+0x4"}, tracefs->path()));
  const auto missing = missing_hook({Hook::Kprobe, "vfs_raed"}, tracefs->path());
  ASSERT_TRUE(missing);
  EXPECT_NE(missing->find("no function 'vfs_raed'"), std::string::npos);
}

TEST(KernelSupport, RefusalsHaveWordsWithTheTargetInThem) {
  EXPECT_EQ(refusal_in_words({Hook::Function, "vfs_read"}, ESRCH),
            "this kernel's BTF has no function 'vfs_read'");
  EXPECT_EQ(refusal_in_words({Hook::RawTracepoint, "nope"}, ENOENT),
            "this kernel has no raw tracepoint 'nope'");
  EXPECT_EQ(refusal_in_words({Hook::Tracepoint, "a/b"}, EIO), "");
}

TEST(KernelSupport, TheKernelHasAName) {
  EXPECT_FALSE(kernel_name().release.empty());
  EXPECT_FALSE(kernel_name().machine.empty());
}

}  // namespace
}  // namespace tacho::bpf
