#include "bpf/support/kernel_support.h"

#include <bpf/btf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "bpf/object/compile.h"

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

namespace {

// Types of a kernel in little: members at places that no kernel has, mappings after a struct without a name.
class Kernel {
 public:
  explicit Kernel(const std::string& maple_slot = "slot", std::uint32_t contexts = 1)
      : types_(btf__new_empty(), btf__free) {
    btf* const types = types_.get();
    word_ = btf__add_int(types, "long unsigned int", 8, 0);
    const int pair = btf__add_array(types, word_, word_, static_cast<int>(contexts));
    begin("maple_tree", 16);
    member("ma_root", 8);
    const int tree = end();
    begin("vdso_context", 16);
    member("vdso", 8);
    const int context = btf__add_typedef(types, "mm_context_t", end());
    plain("uprobes_state", {"xol_area"});
    const int probes = end();
    btf__add_struct(types, nullptr, 64);
    btf__add_field(types, "mm_mt", tree, 16 * 8, 0);
    btf__add_field(types, "context", context, 40 * 8, 0);
    const int nameless = last();
    btf__add_struct(types, "mm_struct", 96);
    btf__add_field(types, "", nameless, 32 * 8, 0);
    btf__add_field(types, "uprobes_state", probes, 16 * 8, 0);
    btf__add_struct(types, "task_struct", 64);
    btf__add_field(types, "mm", word_, 24 * 8, 0);
    btf__add_field(types, "utask", word_, 56 * 8, 0);
    btf__add_field(types, "perf_event_ctxp", pair, 48 * 8, 0);
    plain("vm_area_struct", {"vm_start", "vm_end", "vm_mm", "vm_flags", "vm_pgoff", "vm_file"});
    plain("file", {"f_inode"});
    plain("inode", {"i_ino", "i_size", "i_generation", "i_sb"});
    plain("super_block", {"s_dev"});
    begin("maple_range_64", 256);
    member("pivot", 8);
    member(maple_slot.c_str(), 128);
    begin("maple_arange_64", 256);
    member("pivot", 8);
    member("slot", 80);
  }
  void add_returns(const char* address = "orig_ret_vaddr") {
    plain("uprobe_task", {"return_instances", "vaddr", "xol_vaddr"});
    plain("return_instance", {"stack", address, "next"});
    plain("xol_area", {"vaddr"});
  }
  Result<tacho_kernel_layout> layout() const {
    std::uint32_t size = 0;
    const void* const data = btf__raw_data(types_.get(), &size);
    return kernel_layout_in({static_cast<const std::byte*>(data), size});
  }

 private:
  void begin(const char* name, std::uint32_t size) { btf__add_struct(types_.get(), name, size); }
  void member(const char* name, std::uint32_t offset) {
    btf__add_field(types_.get(), name, word_, offset * 8, 0);
  }
  int last() const { return static_cast<int>(btf__type_cnt(types_.get())) - 1; }
  int end() const { return last(); }
  void plain(const char* name, const std::vector<const char*>& members) {
    begin(name, static_cast<std::uint32_t>(members.size() + 1) * 8);
    for (std::uint32_t i = 0; i < members.size(); ++i) member(members[i], (i + 1) * 8);
  }

  std::unique_ptr<btf, void (*)(btf*)> types_;
  int word_ = 0;
};

TEST(KernelLayout, OffsetsAreThoseOfTheKernelsOwnTypes) {
  const auto layout = Kernel().layout();
  ASSERT_TRUE(layout) << layout.error().what;
  EXPECT_EQ(layout->is_known, 1u);
  EXPECT_EQ(layout->task_mm, 24u);
  EXPECT_EQ(layout->task_perf_contexts, 48u);
  EXPECT_EQ(layout->perf_contexts, 1u);
  EXPECT_EQ(layout->mm_mappings, 32u + 16 + 8) << "through a struct without a name";
  EXPECT_EQ(layout->mm_vdso, 32u + 40 + 8) << "through a typedef";
  EXPECT_EQ(layout->vma_start, 8u);
  EXPECT_EQ(layout->inode_changed, 0u) << "not all kernels have it";
  EXPECT_EQ(layout->vma_file, 48u);
  EXPECT_EQ(layout->inode_super_block, 32u);
  EXPECT_EQ(layout->has_uprobes, 0u) << "a kernel without probes";
  EXPECT_EQ(Kernel("slot", 2).layout()->perf_contexts, 2u) << "as before Linux 6.2";
}

TEST(KernelLayout, WhereReturnAddressesAreKeptIsKnownWholeOrNotAtAll) {
  Kernel kernel;
  kernel.add_returns();
  const auto layout = kernel.layout();
  ASSERT_TRUE(layout) << layout.error().what;
  EXPECT_EQ(layout->has_uprobes, 1u);
  EXPECT_EQ(layout->utask_returns, 8u);
  EXPECT_EQ(layout->return_stack, 8u);
  EXPECT_EQ(layout->return_address, 16u);
  EXPECT_EQ(layout->return_next, 24u);
  EXPECT_EQ(layout->mm_xol_area, 16u + 8);
  EXPECT_EQ(layout->xol_area_address, 8u);
  EXPECT_EQ(layout->utask_address, 16u);
  EXPECT_EQ(layout->utask_xol_address, 24u);
  Kernel other;
  other.add_returns("return_address");
  ASSERT_TRUE(other.layout());
  EXPECT_EQ(other.layout()->has_uprobes, 0u);
}

TEST(KernelLayout, AnotherTreeIsNotTaken) {
  const auto layout = Kernel("slots").layout();
  ASSERT_FALSE(layout);
  EXPECT_NE(layout.error().what.find("maple_range_64.slot"), std::string::npos) << layout.error().what;
}

TEST(KernelLayout, WhatIsNoBtfIsNotTaken) {
  EXPECT_FALSE(kernel_layout_in({}));
  const std::string text = "no types at all";
  EXPECT_FALSE(kernel_layout_in(std::as_bytes(std::span(text))));
}

TEST(KernelLayout, ThisKernelsMappingsBeginWithTheirAddresses) {
  if (access("/sys/kernel/btf/vmlinux", R_OK) != 0) GTEST_SKIP() << "this kernel has no BTF";
  const auto layout = kernel_layout();
  if (!layout) GTEST_SKIP() << layout.error().what;
  EXPECT_EQ(layout->vma_end, layout->vma_start + 8);
  EXPECT_NE(layout->mm_mappings, 0u);
}

}  // namespace

}  // namespace tacho::bpf
