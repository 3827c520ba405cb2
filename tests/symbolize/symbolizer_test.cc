#include "symbolize/symbolizer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/records/perf_abi.h"
#include "symbolize/elf/elf_file.h"
#include "symbolize/elf/module_files.h"
#include "tests/symbolize/pinned.h"
#include "tests/symbolize/symbolizer_case.h"

namespace tacho::symbolize {
namespace {

namespace abi = format::abi;

constexpr std::uint64_t kText = 0x500;  // names.so: see tests/data/symbolize/names.s
constexpr std::uint64_t kKernel = 0xffffffff81000000;
constexpr std::string_view kKallsyms =
    "ffffffff80000000 T _text\nffffffff80000100 T vfs_read\nffffffff80000200 T vfs_write\n"
    "ffffffffc0000000 t ext4_read\t[ext4]\n";

class SymbolizerTest : public test::SymbolizerCase {
 protected:
  SymbolizerTest() { map_kernel(kKernel, 0x1000, kKernel, "[kernel.kallsyms]_text"); }
  void attach(std::string name, std::string_view content) {
    auto packed = format::pack_attachment(std::move(name), "origin", std::as_bytes(std::span(content)));
    ASSERT_TRUE(packed);
    features.attachments.push_back(std::move(*packed));
  }
  Frame frame(std::uint64_t ip, std::uint8_t mode = abi::kCpumodeUser) {
    return resolve(ip, Origin::Alone, mode)[0];
  }
};

TEST_F(SymbolizerTest, NothingMappedGivesANamelessFrame) {
  const Frame found = frame(0x1234);
  EXPECT_EQ(found.module, nullptr);
  EXPECT_EQ(found.function, "");
  EXPECT_EQ(found.shown_address, 0x1234u);
  EXPECT_EQ(missing(), "");
}

TEST_F(SymbolizerTest, NamesUserCodeFromTheFileBelowSymfs) {
  root.copy(kData + "/names.so", "/opt/names.so");
  map("/opt/names.so", "0123456789abcdef0123456789abcdef01234567");
  const Frame found = frame(kStart + kText + 0x64);
  EXPECT_EQ(found.function, "geo::volume");
  EXPECT_EQ(found.shown_address, kText + 0x64);
  EXPECT_EQ(found.function_start, kText + 0x60);
  EXPECT_EQ(found.function_end, kText + 0x70);
  EXPECT_EQ(found.source, 'd');
  EXPECT_EQ(found.cpumode, abi::kCpumodeUser);
  EXPECT_EQ(missing(), "");
}

TEST_F(SymbolizerTest, ASecondLookupGivesTheSameFrames) {
  root.copy(kData + "/names.so", "/opt/names.so");
  map("/opt/names.so");
  const Frame first = frame(kStart + kText);
  for (std::uint64_t i = 0; i < 1000; ++i) frame(kStart + i);
  const Frame second = frame(kStart + kText);
  EXPECT_EQ(second.function.data(), first.function.data());
  EXPECT_EQ(second.function_start, first.function_start);
  EXPECT_EQ(symbolizer().resolve(nullptr, {kStart + kText}, abi::kCpumodeUser)[0].module, nullptr)
      << "the same address without a mapping is another question";
  EXPECT_EQ(frame(kStart + kText, abi::kCpumodeUnknown).cpumode, abi::kCpumodeUnknown);
}

TEST_F(SymbolizerTest, NamesStayMangledWhenAskedFor) {
  options.demangle = Demangle::No;
  root.copy(kData + "/names.so", "/opt/names.so");
  map("/opt/names.so");
  EXPECT_EQ(frame(kStart + kText + 0x60).function, "_ZN3geo6volumeEi");
}

TEST_F(SymbolizerTest, AFileOfAnotherBuildIsNotUsed) {
  root.copy(kData + "/names.so", "/opt/names.so");
  map("/opt/names.so", "ffffffffffffffffffffffffffffffffffffffff");
  const Frame found = frame(kStart + kText);
  EXPECT_EQ(found.function, "");
  EXPECT_EQ(found.module->path, "/opt/names.so");
  EXPECT_EQ(found.shown_address, kText) << "the address is there nevertheless";
  EXPECT_EQ(found.source, '!');
  EXPECT_EQ(missing(), root.path() +
                           "/opt/names.so: has another build id, 0123456789abcdef0123456789abcdef01234567; " +
                           "build id ffffffffffffffffffffffffffffffffffffffff was recorded\n");
}

TEST_F(SymbolizerTest, ADeletedFileIsFoundByItsBuildIdWhereItWas) {
  root.copy(kData + "/names.so", "/opt/names.so");
  map("/opt/names.so (deleted)", "0123456789abcdef0123456789abcdef01234567");
  EXPECT_EQ(frame(kStart + kText).function, "outer");
  EXPECT_EQ(frame(kStart + kText).module->path, "/opt/names.so (deleted)");
  map("/opt/names.so (deleted)", "", kStart + 0x10000);
  EXPECT_EQ(frame(kStart + 0x10000 + kText).function, "") << "without an id it may be any file's successor";
}

TEST_F(SymbolizerTest, ADebugFileIsFoundByBuildIdByLinkAndByPath) {
  struct Row {
    const char* path;
    char source;
  };
  constexpr Row kRows[] = {
      {"/usr/lib/debug/.build-id/01/23456789abcdef0123456789abcdef01234567.debug", 'b'},
      {"/usr/lib/debug/opt/x.so.debug", 'f'},
      {"/opt/.debug/names.debug", 'l'},
  };
  std::uint64_t start = kStart;
  for (const Row& row : kRows) {
    const test::Folder host;
    options.symfs = host.path();
    made.reset();
    host.copy(kData + "/names-stripped.so", "/opt/x.so");
    host.copy(kData + "/names.debug", row.path);
    map("/opt/x.so", "", start);
    EXPECT_EQ(frame(start + kText + 0x20).function, "outer") << row.path;
    EXPECT_EQ(frame(start + kText + 0x20).source, row.source);
    start += 0x10000;
  }
}

TEST_F(SymbolizerTest, NamesTheKernelFromTheAttachedKallsymsMovedToTheRecordedBase) {
  attach("kallsyms", kKallsyms);
  map_kernel(0xffffffffc0000000, 0x1000, 0, "[ext4]");
  const Frame found = frame(kKernel + 0x104, abi::kCpumodeKernel);
  EXPECT_EQ(found.function, "vfs_read");
  EXPECT_EQ(found.function_start, kKernel + 0x100);
  EXPECT_EQ(found.shown_address, kKernel + 0x104);
  EXPECT_EQ(found.source, 'k');
  EXPECT_EQ(frame(0xffffffffc0000010, abi::kCpumodeKernel).function, "ext4_read");
}

TEST_F(SymbolizerTest, AKernelModuleThatKallsymsLacksIsNamedFromItsFile) {
  constexpr std::uint64_t kModule = 0xffffffffc0000000;
  constexpr std::string_view kPath = "/lib/modules/6.1.0/kernel/drivers/my-module.ko";
  attach("kallsyms", kKallsyms);
  root.copy(kData + "/module.ko", std::string(kPath));
  map_kernel(kModule, 0x1000, 0, kPath);
  const Frame& found = frame(kModule + 4, abi::kCpumodeKernel);
  EXPECT_EQ(found.function, "module_read");
  EXPECT_EQ(found.function_start, kModule);
  EXPECT_EQ(found.shown_address, kModule + 4);
  EXPECT_EQ(found.module->path, "[my_module]");
  EXPECT_EQ(found.source, 'K');
  // 25 bytes of .text, then .text.unlikely at the next 16; what starts the module is loaded elsewhere.
  EXPECT_EQ(frame(kModule + 0x1c, abi::kCpumodeKernel).function, "");
  EXPECT_EQ(frame(kModule + 0x21, abi::kCpumodeKernel).function, "module_read.cold");
  EXPECT_EQ(frame(kModule + 0x40, abi::kCpumodeKernel).function, "");
  EXPECT_EQ(missing(), "");

  // Loaded a second time, elsewhere.
  map_kernel(kModule + 0x10000, 0x1000, 0, kPath);
  EXPECT_EQ(frame(kModule + 0x10004, abi::kCpumodeKernel).function, "module_read");
}

TEST_F(SymbolizerTest, AModuleThatLayElsewhereInTheListsBootHasNoNames) {
  attach("kallsyms", kKallsyms);
  map_kernel(0xffffffffbffe0000, 0x40000, 0, "[ext4]");
  EXPECT_EQ(frame(0xffffffffc0000010, abi::kCpumodeKernel).function, "");
  EXPECT_NE(missing().find("kallsyms has it at other addresses (of another boot)"), std::string::npos)
      << missing();
}

// perf names a module after the table's file, where that lists it, and by its short name otherwise.
TEST_F(SymbolizerTest, AKernelModuleThatTheBuildIdTableListsGoesByItsPath) {
  constexpr std::uint64_t kListed = 0xffffffffc0000000, kOther = 0xffffffffc1000000;
  attach("kallsyms", std::string(kKallsyms) + "ffffffffc1000000 t my_read\t[my_other]\n");
  const auto id = format::BuildId::from_hex("0123456789abcdef0123456789abcdef01234567");
  spaces.add_build_id(
      {.pid = -1, .misc = abi::kCpumodeKernel, .build_id = *id, .filename = "/lib/modules/6.1.0/ext4.ko"});
  spaces.add_build_id(
      {.pid = -1, .misc = abi::kCpumodeUser, .build_id = *id, .filename = "/home/u/my-other.ko"});
  map_kernel(kListed, 0x1000, 0, "[ext4]");
  map_kernel(kOther, 0x1000, 0, "/lib/modules/6.1.0/my-other.ko");
  const Frame listed = frame(kListed + 0x10, abi::kCpumodeKernel);
  EXPECT_EQ(listed.module->path, "/lib/modules/6.1.0/ext4.ko");
  EXPECT_EQ(listed.module->short_name, "[ext4]");
  EXPECT_EQ(listed.function, "ext4_read");
  const Frame other = frame(kOther + 0x10, abi::kCpumodeKernel);
  EXPECT_EQ(other.module->path, "[my_other]") << "the table's is no kernel module";
  EXPECT_EQ(other.function, "my_read");
}

TEST_F(SymbolizerTest, TheKernelsCodeAroundBpfProgramsIsNamedByTheAttachedKallsyms) {
  constexpr std::uint64_t kTrampoline = 0xffffffffc0200000;
  const std::string text = std::string(kKallsyms) + "ffffffffc0200000 t bpf_trampoline_6442536467\t[bpf]\n" +
                           "ffffffffc0201000 t bpf_dispatcher_xdp\t[bpf]\n";
  attach("kallsyms", text);
  const Frame found = frame(kTrampoline + 0x45, abi::kCpumodeKernel);
  EXPECT_EQ(found.function, "bpf_trampoline_6442536467");
  EXPECT_EQ(found.shown_address - found.function_start, 0x45u);
  ASSERT_NE(found.module, nullptr);
  EXPECT_EQ(found.module->kind, ModuleKind::Bpf);
  EXPECT_EQ(found.module->path, "bpf_trampoline_6442536467");
  EXPECT_EQ(frame(kTrampoline + 0x1020, abi::kCpumodeKernel).function, "bpf_dispatcher_xdp");
  EXPECT_EQ(frame(kTrampoline + 0x45, abi::kCpumodeUser).module, nullptr);
  EXPECT_EQ(frame(kTrampoline - 0x100000, abi::kCpumodeKernel).module, nullptr);
}

// As perf: only the capture's own list says which BPF code lay where.
TEST_F(SymbolizerTest, AKallsymsThatTheUserNamesDoesNotNameBpfCode) {
  root.write("/given", "ffffffff80000000 T _text\nffffffffc0200000 t bpf_trampoline_1\t[bpf]\n");
  options.kallsyms = root.path() + "/given";
  EXPECT_EQ(frame(0xffffffffc0200010, abi::kCpumodeKernel).module, nullptr);
}

TEST_F(SymbolizerTest, AnAttachmentOfAFewBytesThatUnpacksToMillionsIsLeftOut) {
  auto packed =
      format::pack_attachment("kallsyms", "/proc/kallsyms", std::vector<std::byte>(std::size_t{32} << 20));
  ASSERT_TRUE(packed);
  features.attachments.push_back(std::move(*packed));
  EXPECT_EQ(frame(kKernel + 4, abi::kCpumodeKernel).function, "");
  format::Diagnostics diagnostics;
  symbolizer().report_missing(diagnostics);
  EXPECT_TRUE(diagnostics.incomplete());
  EXPECT_NE(missing().find("the attached 'kallsyms' would take 33554432 bytes"), std::string::npos)
      << missing();
}

TEST_F(SymbolizerTest, AKernelModulesFileMustBeTheOneThatWasLoaded) {
  constexpr std::uint64_t kModule = 0xffffffffc0000000;
  constexpr std::string_view kPath = "/lib/modules/6.1.0/my.ko";
  attach("kallsyms", kKallsyms);
  root.copy(kData + "/module.ko", std::string(kPath));
  const auto other = format::BuildId::from_hex("ffffffffffffffffffffffffffffffffffffffff");
  spaces.add_build_id({.pid = -1, .misc = 0, .build_id = *other, .filename = std::string(kPath)});
  map_kernel(kModule, 0x1000, 0, kPath);
  EXPECT_EQ(frame(kModule + 4, abi::kCpumodeKernel).function, "");
  EXPECT_EQ(missing(), "[my]: kallsyms has no symbols of it; " + root.path() +
                           "/lib/modules/6.1.0/my.ko: has another build id, "
                           "0123456789abcdef0123456789abcdef01234569\n");
}

TEST_F(SymbolizerTest, APackedKernelModuleIsUnpacked) {
  constexpr std::uint64_t kModule = 0xffffffffc0000000;
  attach("kallsyms", kKallsyms);
  root.copy(kData + "/module.ko.xz", "/lib/a.ko.xz");
  root.copy(kData + "/module.ko.zst", "/lib/b.ko.zst");
  root.write("/lib/c.ko.xz", "damaged");
  map_kernel(kModule, 0x1000, 0, "/lib/a.ko.xz");
  map_kernel(kModule + 0x1000, 0x1000, 0, "/lib/b.ko.zst");
  map_kernel(kModule + 0x2000, 0x1000, 0, "/lib/c.ko.xz");
  EXPECT_EQ(frame(kModule + 4, abi::kCpumodeKernel).function, "module_read");
  EXPECT_EQ(frame(kModule + 4, abi::kCpumodeKernel).source, 'm');
  EXPECT_EQ(frame(kModule + 0x1004, abi::kCpumodeKernel).function, "module_read");
  EXPECT_EQ(frame(kModule + 0x2004, abi::kCpumodeKernel).function, "");
  EXPECT_EQ(missing(),
            "[c]: kallsyms has no symbols of it; " + root.path() + "/lib/c.ko.xz: its xz part is damaged\n");
}

TEST_F(SymbolizerTest, TheKernelReachesAsFarAsItsSymbols) {
  // The map ends at 0x1000, as at _etext; the code of the kernel's start lies behind.
  attach("kallsyms", "ffffffff81000000 T _text\nffffffff81003000 t start_kernel\nffffffff81003100 t end\n");
  const Frame start = frame(kKernel + 0x3080, abi::kCpumodeKernel);
  EXPECT_EQ(start.function, "start_kernel");
  ASSERT_NE(start.module, nullptr);
  EXPECT_EQ(start.module->path, "[kernel.kallsyms]");
  EXPECT_EQ(start.shown_address, kKernel + 0x3080);
  EXPECT_EQ(frame(kKernel + 0x40000000, abi::kCpumodeKernel).module, nullptr) << "beyond every symbol";
  EXPECT_EQ(frame(kKernel + 0x3080, abi::kCpumodeUser).module, nullptr) << "user code is not the kernel's";
}

TEST_F(SymbolizerTest, AKallsymsThatTheUserNamesComesFirst) {
  attach("kallsyms", "ffffffff81000000 T _text\nffffffff81000100 T attached\n");
  root.write("/given", "ffffffff81000000 T _text\nffffffff81000100 T given\n");
  options.kallsyms = root.path() + "/given";
  EXPECT_EQ(frame(kKernel + 0x104, abi::kCpumodeKernel).function, "given");
}

TEST_F(SymbolizerTest, WithoutKallsymsTheReasonIsTold) {
  EXPECT_EQ(frame(kKernel + 4, abi::kCpumodeKernel).function, "");
  EXPECT_NE(missing().find("[kernel.kallsyms]: no kallsyms in the capture"), std::string::npos);
}

TEST_F(SymbolizerTest, ADamagedKallsymsAttachmentIsToldAndNothingElseSuffers) {
  attach("kallsyms", kKallsyms);
  features.attachments[0].packed.resize(4);
  root.copy(kData + "/names.so", "/opt/names.so");
  map("/opt/names.so");
  EXPECT_EQ(frame(kKernel + 4, abi::kCpumodeKernel).function, "");
  EXPECT_EQ(frame(kStart + kText).function, "outer");
  EXPECT_NE(missing().find("[kernel.kallsyms]: "), std::string::npos);
}

TEST_F(SymbolizerTest, ABpfProgramIsItsOwnFunction) {
  spaces.apply(
      format::KsymbolRecord{.address = 0xffffffffc1000000, .length = 64, .type = 1, .name = "bpf_prog_1_x"},
      0);
  const Frame found = frame(0xffffffffc1000010, abi::kCpumodeKernel);
  EXPECT_EQ(found.function, "bpf_prog_1_x");
  EXPECT_EQ(found.shown_address - found.function_start, 0x10u);
  EXPECT_EQ(found.function_end, 0xffffffffc1000040u);
}

TEST_F(SymbolizerTest, ACallerIsTheFunctionOfTheCall) {
  attach("kallsyms", kKallsyms);
  const auto caller = [&](std::uint64_t ip) {
    return symbolizer().resolve(spaces.find_mapping(7, {ip - 1}, abi::kCpumodeKernel), {ip},
                                abi::kCpumodeKernel, Origin::Chain, AddressKind::Return)[0];
  };
  const Frame found = caller(kKernel + 0x200);  // the call was the last instruction of vfs_read
  EXPECT_EQ(found.function, "vfs_read");
  EXPECT_EQ(found.shown_address, kKernel + 0x200);
  EXPECT_EQ(found.ip.value, kKernel + 0x200);
  EXPECT_EQ(found.function_start, kKernel + 0x100);
  EXPECT_EQ(caller(kKernel + 0x201).function, "vfs_write");
  EXPECT_EQ(frame(kKernel + 0x200, abi::kCpumodeKernel).function, "vfs_write") << "sampled there";
}

// The kernel makes a handler return to the trampoline's first instruction.
TEST_F(SymbolizerTest, ASignalTrampolineWasNotCalled) {
  root.write("/tmp/perf-7.map",
             "7f0000000000 100 before\n7f0000000100 9 __restore_rt\n7f0000000109 9 behind\n");
  map("//anon");
  const auto caller = [&](std::uint64_t ip) {
    return symbolizer()
        .resolve(spaces.find_mapping(7, {ip - 1}, abi::kCpumodeUser), {ip}, abi::kCpumodeUser, Origin::Chain,
                 AddressKind::Return)[0]
        .function;
  };
  EXPECT_EQ(caller(kStart + 0x100), "__restore_rt");
  EXPECT_EQ(caller(kStart + 0x109), "__restore_rt");
  EXPECT_EQ(caller(kStart + 0x10a), "behind");
}

TEST_F(SymbolizerTest, NoLinkToAMapIsFollowed) {
  constexpr std::string_view kMap = "7f0000000000 100 linked\n";
  root.write("/tmp/elsewhere", std::string(kMap));
  ASSERT_EQ(::symlink("elsewhere", (root.path() + "/tmp/perf-7.map").c_str()), 0);
  map("//anon");
  EXPECT_EQ(frame(kStart + 4).function, "");
  EXPECT_NE(missing().find("is a link, which is not followed"), std::string::npos) << missing();
}

TEST_F(SymbolizerTest, MemoryWithANameLikeThatOfAPerfMapHasNoNames) {
  constexpr std::uint32_t kMapHugetlb = 0x40000;
  format::MmapRecord record;
  record.pid = record.tid = 7;
  record.length = kLength;
  record.is_mmap2 = true;
  record.flags = kMapHugetlb;
  for (const char* const name : {"/tmp/perf-a/b", "/tmp/perf-", "/tmp/perf-7.ma", "/tmp/perf-a/.map"}) {
    record.start = kStart;
    record.filename = name;
    spaces.apply(record, abi::kCpumodeUser);
    EXPECT_EQ(frame(kStart + 4).function, "") << name;
  }
}

TEST_F(SymbolizerTest, NamesJitCodeFromTheNamedFolderTheCaptureOrTmp) {
  constexpr std::string_view kMap = "7f0000000000 100 ";
  root.write("/tmp/perf-7.map", std::string(kMap) + "from tmp\n");
  map("//anon");
  EXPECT_EQ(frame(kStart + 4).function, "from tmp");
  EXPECT_EQ(frame(kStart + 4).source, 'j');
  made.reset();
  attach("perf-map/7", std::string(kMap) + "attached\n");
  EXPECT_EQ(frame(kStart + 4).function, "attached");
  made.reset();
  root.write("/maps/perf-7.map", std::string(kMap) + "from the folder\n");
  options.perf_map_dir = root.path() + "/maps";
  EXPECT_EQ(frame(kStart + 4).function, "from the folder");
}

TEST_F(SymbolizerTest, WhatWasHeldOpenComesBeforeTheFileOfThatNameAndNothingAfterSeveral) {
  constexpr std::string_view kMap = "7f0000000000 100 ";
  root.write("/tmp/perf-7.map", std::string(kMap) + "since\n");
  root.copy(kData + "/names.so", "/lib/names.so");
  map("//anon");
  map("/lib/names.so", "", kStart + 0x100000);
  ASSERT_EQ(frame(kStart + 0x100000 + kText).function, "outer");
  test::Held once, twice;
  once.map(7, std::string(kMap) + "ran\n");
  twice.map(7, "").map(7, "").file("/lib/names.so", "").file("/lib/names.so", "");
  options.pinned = once.files();
  made.reset();
  EXPECT_EQ(frame(kStart + 4).function, "ran");
  options.pinned = twice.files();
  made.reset();
  EXPECT_EQ(frame(kStart + 4).function, "");
  EXPECT_EQ(frame(kStart + 0x100000 + kText).function, "");
  const std::string lines = missing();
  EXPECT_NE(lines.find("/lib/names.so: several files had this name"), std::string::npos) << lines;
  EXPECT_NE(lines.find("several processes had this pid"), std::string::npos) << lines;
}

TEST_F(SymbolizerTest, NamesTheVdsoWhenItIsAttached) {
  map("[vdso]");
  EXPECT_EQ(frame(kStart + kText).function, "");
  EXPECT_EQ(missing(), "[vdso]: it is not attached to the capture: --symfs names another machine\n");
  made.reset();
  options.symfs = "";
  EXPECT_EQ(frame(kStart + kText).function, "");
  EXPECT_EQ(missing(), "[vdso]: it is not attached to the capture: the capture does not have its build id\n");
  made.reset();
  options.symfs = root.path();
  const auto image = format::read_file(kData + "/names.so");
  ASSERT_TRUE(image);
  attach("vdso", format::as_text(*image));
  EXPECT_EQ(frame(kStart + kText).function, "outer");
}

TEST_F(SymbolizerTest, TheVdsoOfThisMachineServesACaptureOfTheSameKernel) {
  options.symfs.clear();
  const auto other = running_vdso(*format::BuildId::from_hex("ffffffffffffffffffffffffffffffffffffffff"));
  ASSERT_FALSE(other);
  const std::string seen = other.error().what;  // "this kernel's has another build id, 0123..."
  const auto id = format::BuildId::from_hex(seen.substr(seen.rfind(' ') + 1));
  if (!id) GTEST_SKIP() << seen;
  const auto bytes = running_vdso(*id);
  ASSERT_TRUE(bytes);
  auto elf = ElfFile::in_memory(*bytes);
  auto table = elf ? read_symbols(*elf, *elf, nullptr) : Result<SymbolTable>(elf.error());
  ASSERT_TRUE(table);
  spaces.add_build_id({.pid = -1, .misc = 0, .build_id = *id, .filename = "[vdso]"});
  map("[vdso]");
  std::uint64_t named = 0;
  while (named < kLength && !table->find_symbol(named)) named += 16;
  ASSERT_LT(named, kLength);
  EXPECT_EQ(frame(kStart + named).function, table->find_symbol(named)->name);
  EXPECT_EQ(missing(), "");
}

TEST_F(SymbolizerTest, EachModuleWithoutNamesIsToldOnce) {
  map("/opt/a.so");
  map("/opt/b.so", "", kStart + 0x10000);
  for (std::uint64_t i = 0; i < 10; ++i) {
    frame(kStart + i);
    frame(kStart + 0x10000 + i);
  }
  EXPECT_EQ(missing(), root.path() + "/opt/a.so: No such file or directory\n" + root.path() +
                           "/opt/b.so: No such file or directory\n");
}

TEST_F(SymbolizerTest, WhereCallChainsEndedStandsInTheModulesLine) {
  map("/opt/a.so");
  map("/opt/b.so", "", kStart + 0x10000);
  map("/opt/c.so", "", kStart + 0x20000);
  const auto module = [&](std::uint64_t ip) {
    return spaces.find_mapping(7, {ip}, abi::kCpumodeUser)->module;
  };
  frame(kStart);
  frame(kStart + 0x10000);
  const std::string a = root.path() + "/opt/a.so: No such file or directory";
  const std::vector<EndedChains> ended = {
      {module(kStart), a},
      {module(kStart + 0x10000), root.path() + "/opt/b.so: has no .eh_frame"},
      {module(kStart + 0x20000), "is damaged"}};
  format::Diagnostics diagnostics;
  symbolizer().report_missing(diagnostics, ended);
  ASSERT_EQ(diagnostics.findings().size(), 3u);
  EXPECT_EQ(diagnostics.findings()[0].first, a) << "the same reason once";
  EXPECT_EQ(diagnostics.findings()[1].first, root.path() +
                                                 "/opt/b.so: No such file or directory; "
                                                 "call chains end there: has no .eh_frame");
  EXPECT_EQ(diagnostics.findings()[2].first, "/opt/c.so: call chains end there: is damaged");
  EXPECT_EQ(diagnostics.findings()[1].kind, format::Damage::NoSymbols);
  EXPECT_EQ(diagnostics.findings()[2].kind, format::Damage::Note) << "nobody asked it for a name";
}

TEST_F(SymbolizerTest, TheReasonThatTheVdsoLacksNamesAndRulesIsToldOnce) {
  map("[vdso]");
  frame(kStart);
  const std::vector<EndedChains> ended = {
      {spaces.find_mapping(7, {kStart}, abi::kCpumodeUser)->module, kVdsoNotAttached}};
  format::Diagnostics diagnostics;
  symbolizer().report_missing(diagnostics, ended);
  ASSERT_EQ(diagnostics.findings().size(), 1u);
  EXPECT_EQ(diagnostics.findings()[0].first, std::string("[vdso]: ") + kVdsoNotAttached);
}

}  // namespace
}  // namespace tacho::symbolize
