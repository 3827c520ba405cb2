#include "symbolize/address_space.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <random>

#include "format/records/perf_abi.h"

namespace tacho::symbolize {

namespace {

namespace abi = format::abi;

constexpr std::uint32_t kUnknownPid = static_cast<std::uint32_t>(-1);

format::MmapRecord mmap(std::uint32_t pid, std::uint64_t start, std::uint64_t length,
                        std::uint64_t page_offset, std::string_view filename) {
  format::MmapRecord record;
  record.pid = record.tid = pid;
  record.start = start;
  record.length = length;
  record.page_offset = page_offset;
  record.filename = filename;
  record.is_mmap2 = true;
  record.protection = 5;
  return record;
}

class AddressSpacesTest : public testing::Test {
 protected:
  void user(const format::MmapRecord& record) { spaces.apply(record, abi::kCpumodeUser); }
  void kernel(const format::MmapRecord& record) { spaces.apply(record, abi::kCpumodeKernel); }
  void comm(std::uint32_t pid, std::uint32_t tid, std::string_view name, bool is_exec = false) {
    spaces.apply(format::CommRecord{pid, tid, name, is_exec}, 0);
  }
  void fork(std::uint32_t pid, std::uint32_t tid, std::uint32_t parent_pid, std::uint32_t parent_tid,
            std::uint16_t misc = 0) {
    spaces.apply(
        format::TaskRecord{.pid = pid, .parent_pid = parent_pid, .tid = tid, .parent_tid = parent_tid}, misc);
  }
  const Mapping* at(std::uint32_t pid, std::uint64_t ip, std::uint8_t mode = abi::kCpumodeUser) {
    return spaces.find_mapping(pid, {ip}, mode);
  }
  std::string path_at(std::uint32_t pid, std::uint64_t ip, std::uint8_t mode = abi::kCpumodeUser) {
    const Mapping* const found = at(pid, ip, mode);
    return found ? std::string(found->module->path) : "";
  }

  AddressSpaces spaces;
};

TEST_F(AddressSpacesTest, MemoryBehindTheDataOfAFileMayHaveItsVariables) {
  auto data = mmap(7, 0x4000, 0x1000, 0x3000, "/bin/x"), zeroed = mmap(7, 0x5000, 0x8000, 0, "//anon");
  auto split = mmap(7, 0x6000, 0x1000, 0, "//anon"), apart = mmap(7, 0x20000, 0x1000, 0, "//anon");
  auto behind_code = mmap(7, 0x2000, 0x1000, 0, "//anon");
  data.protection = zeroed.protection = split.protection = apart.protection = behind_code.protection = 3;
  user(mmap(7, 0x1000, 0x1000, 0x1000, "/bin/x"));
  for (const auto& each : {behind_code, data, zeroed, split, apart}) user(each);
  ASSERT_NE(at(7, 0x5010), nullptr);
  EXPECT_EQ(path_at(7, 0x5010), "//anon");
  const Mapping* const beyond = at(7, 0x5010)->beyond_file;
  ASSERT_NE(beyond, nullptr);
  EXPECT_EQ(beyond->module->path, "/bin/x");
  EXPECT_EQ(beyond->shown_address({0x5010}), 0x4010u);
  ASSERT_NE(at(7, 0x6010)->beyond_file, nullptr);
  EXPECT_EQ(at(7, 0x6010)->beyond_file->shown_address({0x6010}), 0x5010u);
  EXPECT_EQ(at(7, 0x20000)->beyond_file, nullptr);
  EXPECT_EQ(at(7, 0x2000)->beyond_file, nullptr) << "behind code";
}

TEST_F(AddressSpacesTest, AMappingHoldsItsStartAndNotItsEnd) {
  user(mmap(7, 0x1000, 0x1000, 0x3000, "/bin/x"));
  EXPECT_EQ(path_at(7, 0xfff), "");
  EXPECT_EQ(path_at(7, 0x1000), "/bin/x");
  EXPECT_EQ(path_at(7, 0x1fff), "/bin/x");
  EXPECT_EQ(path_at(7, 0x2000), "");
  EXPECT_EQ(path_at(8, 0x1000), "") << "another process";
  EXPECT_EQ(at(7, 0x1010)->shown_address({0x1010}), 0x3010u);
}

TEST_F(AddressSpacesTest, ANewMappingCutsTheOldOne) {
  user(mmap(7, 0x1000, 0x9000, 0, "/bin/old"));
  user(mmap(7, 0x3000, 0x2000, 0, "/bin/new"));
  EXPECT_EQ(path_at(7, 0x2fff), "/bin/old");
  EXPECT_EQ(path_at(7, 0x3000), "/bin/new");
  EXPECT_EQ(path_at(7, 0x4fff), "/bin/new");
  EXPECT_EQ(path_at(7, 0x5000), "/bin/old");
  EXPECT_EQ(at(7, 0x5000)->shown_address({0x5000}), 0x4000u) << "what is left keeps its file offsets";
  EXPECT_EQ(path_at(7, 0x9fff), "/bin/old");
}

TEST_F(AddressSpacesTest, ANewMappingCoversSeveralOldOnes) {
  for (std::uint64_t i = 0; i < 5; ++i) user(mmap(7, 0x1000 + i * 0x1000, 0x1000, 0, "/bin/old"));
  user(mmap(7, 0x1800, 0x3000, 0, "/bin/new"));
  EXPECT_EQ(path_at(7, 0x17ff), "/bin/old");
  EXPECT_EQ(path_at(7, 0x1800), "/bin/new");
  EXPECT_EQ(path_at(7, 0x47ff), "/bin/new");
  EXPECT_EQ(path_at(7, 0x4800), "/bin/old");
}

TEST_F(AddressSpacesTest, MappingsOutliveTheirCovering) {
  user(mmap(7, 0x1000, 0x1000, 0, "/bin/old"));
  const Mapping* const old = at(7, 0x1000);
  user(mmap(7, 0x1000, 0x1000, 0, "/bin/new"));
  EXPECT_EQ(old->module->path, "/bin/old");
  EXPECT_NE(at(7, 0x1000), old);
}

TEST_F(AddressSpacesTest, WhatIsToldTwiceStaysOneMapping) {
  user(mmap(7, 0x1000, 0x1000, 0, "/bin/x"));
  const Mapping* const first = at(7, 0x1000);
  user(mmap(7, 0x1000, 0x1000, 0, "/bin/x"));
  EXPECT_EQ(at(7, 0x1000), first);
}

TEST_F(AddressSpacesTest, AMappingOfNoLengthOrBeyondTheEndOfMemoryDoesNoHarm) {
  user(mmap(7, 0x1000, 0, 0, "/bin/x"));
  EXPECT_EQ(path_at(7, 0x1000), "");
  user(mmap(7, 0xfffffffffffff000, 0xffffffffffffffff, 0, "/bin/high"));
  EXPECT_EQ(path_at(7, 0xfffffffffffff800), "/bin/high");
}

TEST_F(AddressSpacesTest, AChildHasItsParentsMappingsAndThenItsOwn) {
  user(mmap(7, 0x1000, 0x1000, 0, "/bin/sh"));
  fork(8, 8, 7, 7);
  EXPECT_EQ(at(8, 0x1000), at(7, 0x1000));
  user(mmap(8, 0x1000, 0x1000, 0, "/bin/ls"));
  EXPECT_EQ(path_at(7, 0x1000), "/bin/sh");
  EXPECT_EQ(path_at(8, 0x1000), "/bin/ls");
}

TEST_F(AddressSpacesTest, ThreadsShare) {
  user(mmap(7, 0x1000, 0x1000, 0, "/bin/x"));
  fork(7, 9, 7, 7);
  user(mmap(7, 0x5000, 0x1000, 0, "/lib/y"));
  EXPECT_EQ(path_at(7, 0x1000), "/bin/x");
  EXPECT_EQ(path_at(7, 0x5000), "/lib/y");
}

TEST_F(AddressSpacesTest, ForksMadeUpByTheRecorderCopyNothing) {
  user(mmap(7, 0x1000, 0x1000, 0, "/bin/sh"));
  fork(8, 8, 7, 7, abi::kMiscForkExec);
  EXPECT_EQ(path_at(8, 0x1000), "");
}

TEST_F(AddressSpacesTest, AReusedPidStartsAnew) {
  user(mmap(8, 0x1000, 0x1000, 0, "/bin/old"));
  comm(8, 8, "old");
  user(mmap(7, 0x2000, 0x1000, 0, "/bin/sh"));
  fork(8, 8, 7, 7);
  EXPECT_EQ(path_at(8, 0x1000), "");
  EXPECT_EQ(path_at(8, 0x2000), "/bin/sh");
  EXPECT_EQ(spaces.comm(8, 8), ":8");
}

// Samples inside execve: the name is the new program's, the user addresses are still the old one's.
TEST_F(AddressSpacesTest, AfterExecOldMappingsLastUntilCovered) {
  user(mmap(7, 0x1000, 0x1000, 0, "/bin/sh"));
  comm(7, 7, "ls", true);
  EXPECT_EQ(path_at(7, 0x1000), "/bin/sh");
  user(mmap(7, 0x1000, 0x1000, 0, "/bin/ls"));
  EXPECT_EQ(path_at(7, 0x1000), "/bin/ls");
}

TEST_F(AddressSpacesTest, PidZeroOfManyProcessesHasNoMappingsAndNoName) {
  for (const std::uint32_t unknown : {0U, kUnknownPid}) {
    user(mmap(unknown, 0x1000, 0x1000, 0, "/bin/outside"));
    comm(unknown, unknown, "outside");
    EXPECT_EQ(path_at(unknown, 0x1000), "");
    // A process that a program outside put into the namespace.
    fork(7, 7, unknown, unknown);
    EXPECT_EQ(path_at(7, 0x1000), "");
    EXPECT_EQ(spaces.comm(7, 7), ":7");
  }
  EXPECT_EQ(spaces.comm(0, 0), "swapper");
  EXPECT_EQ(spaces.comm(kUnknownPid, kUnknownPid), ":-1");
  kernel(mmap(kUnknownPid, 0xffffffff81000000, 0x1000, 0, "[kernel.kallsyms]_text"));
  EXPECT_EQ(path_at(0, 0xffffffff81000000, abi::kCpumodeKernel), "[kernel.kallsyms]");
}

TEST_F(AddressSpacesTest, PidZeroIsOneProcessAsInPerfIfItIsKept) {
  spaces.keep_pid_zero();
  user(mmap(0, 0x1000, 0x1000, 0, "/bin/outside"));
  comm(0, 0, "outside");
  EXPECT_EQ(path_at(0, 0x1000), "/bin/outside");
  EXPECT_EQ(spaces.comm(0, 0), "outside");
}

TEST_F(AddressSpacesTest, NamesOfThreads) {
  EXPECT_EQ(spaces.comm(0, 0), "swapper");
  EXPECT_EQ(spaces.comm(5, 5), ":5");
  EXPECT_EQ(spaces.comm(kUnknownPid, kUnknownPid), ":-1");
  comm(5, 5, "sh");
  const std::string_view before = spaces.comm(5, 5);
  fork(6, 6, 5, 5);
  EXPECT_EQ(spaces.comm(6, 6), "sh") << "until it has a name of its own";
  comm(5, 5, "");
  EXPECT_EQ(spaces.comm(5, 5), "") << "no name is a name";
  EXPECT_EQ(before, "sh") << "what was given out stays valid";
}

TEST_F(AddressSpacesTest, ExitKeepsWhatLateSamplesNeed) {
  user(mmap(7, 0x1000, 0x1000, 0, "/bin/x"));
  comm(7, 7, "x");
  spaces.apply(format::TaskRecord{.pid = 7, .parent_pid = 1, .tid = 7, .parent_tid = 1, .is_exit = true}, 0);
  EXPECT_EQ(path_at(7, 0x1000), "/bin/x");
  EXPECT_EQ(spaces.comm(7, 7), "x");
}

TEST_F(AddressSpacesTest, TheKernelIsOneForAllAndTellsItsReference) {
  kernel(mmap(kUnknownPid, 0xffffffff81000000, 0x1000000, 0xffffffff81000000, "[kernel.kallsyms]_text"));
  const Mapping* const found = at(7, 0xffffffff81000010, abi::kCpumodeKernel);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->module->path, "[kernel.kallsyms]");
  EXPECT_EQ(found->shown_address({0xffffffff81000010}), 0xffffffff81000010u);
  EXPECT_EQ(at(8, 0xffffffff81000010, abi::kCpumodeKernel), found);
  EXPECT_EQ(at(7, 0xffffffff81000010), nullptr) << "not for user mode";
  ASSERT_TRUE(spaces.kernel_text());
  EXPECT_EQ(spaces.kernel_text()->reference_symbol, "_text");
  EXPECT_EQ(spaces.kernel_text()->reference_address, 0xffffffff81000000u);
}

TEST_F(AddressSpacesTest, AHiddenKernelAddressIsNoReference) {
  kernel(mmap(kUnknownPid, 0, 0, 0, "[kernel.kallsyms]_text"));
  EXPECT_EQ(path_at(7, 0xffffffff81000010, abi::kCpumodeKernel), "[kernel.kallsyms]");
  EXPECT_EQ(spaces.kernel_text()->reference_symbol, "");
}

TEST_F(AddressSpacesTest, ModulesAreNamedAsTheKernelNamesThem) {
  kernel(mmap(kUnknownPid, 0xffffffffc0000000, 0x1000, 0, "/lib/modules/6.1/kernel/fs/nfs-layout.ko.xz"));
  kernel(mmap(kUnknownPid, 0xffffffffc0001000, 0x1000, 0, "[ext4]"));
  EXPECT_EQ(path_at(7, 0xffffffffc0000001, abi::kCpumodeKernel), "[nfs_layout]");
  EXPECT_EQ(path_at(7, 0xffffffffc0001001, abi::kCpumodeKernel), "[ext4]");
}

TEST_F(AddressSpacesTest, BpfProgramsComeAndGo) {
  constexpr std::string_view kName = "bpf_prog_108f5ffaf1fc8d1e_on_write";
  spaces.apply(format::KsymbolRecord{.address = 0xffffffffc002213c, .length = 119, .type = 1, .name = kName},
               0);
  EXPECT_EQ(path_at(7, 0xffffffffc002213d, abi::kCpumodeKernel), kName);
  spaces.apply(
      format::KsymbolRecord{.address = 0xffffffffc002213c, .length = 119, .type = 1, .flags = 1, .name = ""},
      0);
  EXPECT_EQ(path_at(7, 0xffffffffc002213d, abi::kCpumodeKernel), "");
}

TEST_F(AddressSpacesTest, UnregisteringDoesNotTakeTheKernelAway) {
  kernel(mmap(kUnknownPid, 0xffffffff81000000, 0x1000000, 0xffffffff81000000, "[kernel.kallsyms]_text"));
  spaces.apply(
      format::KsymbolRecord{.address = 0xffffffff81000100, .length = 16, .type = 2, .flags = 1, .name = ""},
      0);
  EXPECT_EQ(path_at(7, 0xffffffff81000100, abi::kCpumodeKernel), "[kernel.kallsyms]");
}

TEST_F(AddressSpacesTest, GuestsAndTheHypervisorHaveNoMappings) {
  spaces.apply(mmap(kUnknownPid, 0xffffffff81000000, 0x1000000, 0, "[guest.kernel.kallsyms]_text"),
               abi::kCpumodeGuestKernel);
  for (const abi::Misc mode : {abi::kCpumodeGuestKernel, abi::kCpumodeGuestUser, abi::kCpumodeHypervisor}) {
    EXPECT_EQ(at(7, 0xffffffff81000010, static_cast<std::uint8_t>(mode)), nullptr);
  }
  EXPECT_EQ(at(7, 0xffffffff81000010, abi::kCpumodeKernel), nullptr);
}

TEST_F(AddressSpacesTest, AnUnknownCpumodeTriesUserAndKernel) {
  user(mmap(7, 0x1000, 0x1000, 0, "/bin/x"));
  kernel(mmap(kUnknownPid, 0xffffffff81000000, 0x1000, 1, "[kernel.kallsyms]_text"));
  EXPECT_EQ(path_at(7, 0x1000, abi::kCpumodeUnknown), "/bin/x");
  EXPECT_EQ(path_at(7, 0xffffffff81000000, abi::kCpumodeUnknown), "[kernel.kallsyms]");
}

TEST_F(AddressSpacesTest, CodeWithoutAFileIsNamedByItsMap) {
  user(mmap(699, 0x1000, 0x1000, 0x10, "//anon"));
  const Mapping* const jit = at(699, 0x1000);
  ASSERT_NE(jit, nullptr);
  EXPECT_EQ(jit->module->path, "/tmp/perf-699.map");
  EXPECT_EQ(jit->module->short_name, "[JIT] tid 699");
  EXPECT_EQ(jit->shown_address({0x1004}), 0x1004u) << "its map gives runtime addresses";
  auto data = mmap(699, 0x4000, 0x1000, 0, "[stack]");
  data.protection = 3;
  user(data);
  EXPECT_EQ(path_at(699, 0x4000), "[stack]");
}

TEST_F(AddressSpacesTest, MemoryWithoutAFileIsToldFromFilesAsPerfTellsThem) {
  struct Row {
    std::string_view name;
    ModuleKind kind;
    std::uint64_t shown;  // of the mapping's byte 4
  };
  constexpr Row kRows[] = {
      {"//anon", ModuleKind::Anonymous, 0x1004},
      {"[heap]", ModuleKind::Anonymous, 0x1004},
      {"/dev/zero (deleted)", ModuleKind::Anonymous, 0x1004},
      {"/anon_hugepage (deleted)", ModuleKind::Anonymous, 0x1004},
      {"/SYSV00000000 (deleted)", ModuleKind::Anonymous, 0x1004},
      {"/memfd:code cache (deleted)", ModuleKind::User, 0x204},
      {"/opt/gone.so (deleted)", ModuleKind::User, 0x204},
      {"[anon:arena]", ModuleKind::User, 0x204},
  };
  for (const Row& row : kRows) {
    user(mmap(7, 0x1000, 0x1000, 0x200, row.name));
    EXPECT_EQ(at(7, 0x1004)->module->kind, row.kind) << row.name;
    EXPECT_EQ(at(7, 0x1004)->shown_address({0x1004}), row.shown) << row.name;
  }
  auto huge = mmap(7, 0x1000, 0x1000, 0x200, "/huge/pages");
  huge.flags = 0x40000;  // MAP_HUGETLB
  user(huge);
  EXPECT_EQ(at(7, 0x1004)->module->kind, ModuleKind::Anonymous);
}

// Programs map such a file twice, to write code and to run it; loaders map theirs privately.
TEST_F(AddressSpacesTest, SharedCodeInAFileThatIsNowhereWasMadeAtRunTime) {
  constexpr std::uint32_t kShared = 1, kPrivate = 2;
  const auto kind_of = [&](std::string_view name, std::uint32_t flags, std::uint32_t protection = 5,
                           bool has_build_id = false) {
    auto record = mmap(7, 0x1000, 0x1000, 0x200, name);
    record.is_mmap2 = true;
    record.protection = protection;
    record.flags = flags;
    if (has_build_id) record.build_id = *format::BuildId::from_hex("0123456789abcdef");
    user(record);
    return at(7, 0x1004)->module->kind;
  };
  for (const std::string_view name :
       {"/memfd:doublemapper (deleted)", "/tmp/cache (deleted)", "/dev/shm/code"}) {
    EXPECT_EQ(kind_of(name, kShared), ModuleKind::Anonymous) << name;
    EXPECT_EQ(path_at(7, 0x1004), "/tmp/perf-7.map") << name;
    EXPECT_EQ(at(7, 0x1004)->shown_address({0x1004}), 0x1004u) << "its map gives runtime addresses";
    EXPECT_EQ(kind_of(name, kPrivate), ModuleKind::User) << name;
    EXPECT_EQ(kind_of(name, kShared, 5, true), ModuleKind::User) << name << ", an ELF file";
    EXPECT_EQ(kind_of(name, kShared, 3), ModuleKind::User) << name << ", data";
  }
  EXPECT_EQ(kind_of("/tmp/cache", kShared), ModuleKind::User) << "a file that is there";
  spaces.keep_memory_files();
  EXPECT_EQ(kind_of("/memfd:doublemapper (deleted)", kShared), ModuleKind::User) << "as perf";
}

TEST_F(AddressSpacesTest, TheKernelGoesByItsNameInTheTableOfBuildIds) {
  spaces.add_build_id(
      {-1, abi::kCpumodeKernel, *format::BuildId::from_hex("0123456789abcdef"), "/tmp/vmlinux"});
  kernel(mmap(kUnknownPid, 0xffffffff81000000, 0x1000, 1, "[kernel.kallsyms]_text"));
  const Mapping* const text = at(7, 0xffffffff81000010, abi::kCpumodeKernel);
  EXPECT_EQ(text->module->path, "/tmp/vmlinux");
  EXPECT_EQ(text->module->short_name, "[kernel.vmlinux]");
  EXPECT_EQ(text->module->build_id.hex(), "0123456789abcdef");
}

TEST_F(AddressSpacesTest, CodeOfAModuleWithoutNamesCountsFromItsBegin) {
  kernel(mmap(kUnknownPid, 0xffffffffc0100000, 0x2000, 0, "[kvm_intel]"));
  const Mapping* const module = at(7, 0xffffffffc0101b1e, abi::kCpumodeKernel);
  EXPECT_EQ(module->shown_address({0xffffffffc0101b1e}), 0xffffffffc0101b1eu);
  EXPECT_EQ(module->nameless_address({0xffffffffc0101b1e}), 0x1b1eu);
}

// The code is another; its name and its place stay.
TEST_F(AddressSpacesTest, PatchedKernelTextAndNamespacesChangeNoMapping) {
  user(mmap(7, 0x1000, 0x1000, 0, "/bin/x"));
  kernel(mmap(kUnknownPid, 0xffffffff81000000, 0x1000, 1, "[kernel.kallsyms]_text"));
  const Mapping* const text = at(7, 0xffffffff81000010, abi::kCpumodeKernel);
  const Mapping* const code = at(7, 0x1010);
  format::TextPokeRecord patched;
  patched.address = 0xffffffff81000010;
  spaces.apply(patched, 0);
  format::NamespacesRecord namespaces;
  namespaces.pid = namespaces.tid = 7;
  spaces.apply(namespaces, 0);
  EXPECT_EQ(at(7, 0xffffffff81000010, abi::kCpumodeKernel), text);
  EXPECT_EQ(at(7, 0x1010), code);
}

TEST_F(AddressSpacesTest, TheVdsoIsShownFromItsStart) {
  user(mmap(7, 0x7fff0000, 0x2000, 0x7fff0000, "[vdso]"));
  EXPECT_EQ(at(7, 0x7fff0a00)->shown_address({0x7fff0a00}), 0xa00u);
  EXPECT_EQ(at(7, 0x7fff0a00)->module->kind, ModuleKind::Vdso);
}

TEST_F(AddressSpacesTest, AModuleIsItsPathAndBuildId) {
  const auto id = format::BuildId::from_hex("0102").value(),
             other = format::BuildId::from_hex("0304").value();
  auto first = mmap(7, 0x1000, 0x1000, 0, "/lib/x"), again = mmap(8, 0x1000, 0x1000, 0, "/lib/x");
  auto newer = mmap(9, 0x1000, 0x1000, 0, "/lib/x");
  first.build_id = again.build_id = id;
  newer.build_id = other;
  for (const auto& record : {first, again, newer}) user(record);
  EXPECT_EQ(at(7, 0x1000)->module, at(8, 0x1000)->module);
  EXPECT_NE(at(7, 0x1000)->module, at(9, 0x1000)->module);
}

TEST_F(AddressSpacesTest, TheHeadersBuildIdIsTakenBeforeAndAfterTheMapping) {
  const auto id = format::BuildId::from_hex("0102").value();
  spaces.add_build_id({.pid = -1, .build_id = id, .filename = "/lib/x"});
  user(mmap(7, 0x1000, 0x1000, 0, "/lib/x"));
  EXPECT_EQ(at(7, 0x1000)->module->build_id, id);
  user(mmap(7, 0x2000, 0x1000, 0, "/lib/y"));
  EXPECT_TRUE(at(7, 0x2000)->module->build_id.empty());
  spaces.add_build_id({.pid = -1, .build_id = id, .filename = "/lib/y"});
  EXPECT_EQ(at(7, 0x2000)->module->build_id, id) << "a pipe has it at its end";
}

TEST_F(AddressSpacesTest, RecordsThatSayNothingAboutProcessesAreIgnored) {
  spaces.apply(format::LostRecord{1, 2}, 0);
  spaces.apply(format::OtherRecord{}, 0);
  EXPECT_EQ(at(1, 2), nullptr);
}

}  // namespace

namespace {

constexpr std::uint64_t kSpace = 300;

// Which mapping stands at each address, without any cleverness.
using Plain = std::array<const Mapping*, kSpace>;

class MappingListTest : public testing::Test {
 protected:
  void put(MappingList& list, Plain& plain, std::uint64_t start, std::uint64_t end) {
    for (const Mapping* const old : list.take_range(start, end)) {
      keep_part(list, plain, *old, old->start, std::min(old->end, start));
      keep_part(list, plain, *old, std::max(old->start, end), old->end);
    }
    add(list, plain, start, end);
  }
  void add(MappingList& list, Plain& plain, std::uint64_t start, std::uint64_t end) {
    mappings.push_back({.start = start, .end = end});
    list.add_mapping(&mappings.back(), static_cast<std::uint32_t>(start * 2654435761u));
    for (std::uint64_t at = start; at < end; ++at) plain[at] = &mappings.back();
  }
  void keep_part(MappingList& list, Plain& plain, const Mapping& old, std::uint64_t start,
                 std::uint64_t end) {
    if (start < end && start >= old.start) add(list, plain, start, end);
  }
  static void expect_same(const MappingList& list, const Plain& plain) {
    for (std::uint64_t at = 0; at < kSpace; ++at) {
      const AddressRange range = list.range_at(at);
      ASSERT_EQ(range.mapping, plain[at]) << at;
      ASSERT_LE(range.first, at);
      ASSERT_GE(range.last, at);
      for (std::uint64_t other = range.first; other <= std::min(range.last, kSpace - 1); ++other)
        ASSERT_EQ(plain[other], plain[at]) << other << " as well as " << at;
    }
  }
  std::deque<Mapping> mappings;
};

TEST_F(MappingListTest, FindsWhatASimpleTableFindsAfterAnyWrites) {
  std::mt19937 random(4);
  MappingList list;
  Plain plain{};
  for (int i = 0; i < 500; ++i) {
    const std::uint64_t start = random() % (kSpace - 1);
    const std::uint64_t end = start + 1 + random() % std::min<std::uint64_t>(kSpace - start - 1, 40);
    put(list, plain, start, end);
    expect_same(list, plain);
  }
  const std::vector<const Mapping*> all = list.all();
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_LE(all[i - 1]->end, all[i]->start);
}

TEST_F(MappingListTest, AWriteToACopyDoesNotShowInTheOther) {
  std::mt19937 random(5);
  std::vector<std::pair<MappingList, Plain>> copies(1);
  for (int i = 0; i < 600; ++i) {
    auto [list, plain] = copies[random() % copies.size()];
    const std::uint64_t start = random() % (kSpace - 20);
    put(list, plain, start, start + 1 + random() % 19);
    copies.emplace_back(std::move(list), plain);
  }
  for (const auto& [list, plain] : copies) expect_same(list, plain);
}

}  // namespace

}  // namespace tacho::symbolize
