#include "record/host/running_kernel.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "format/base/file.h"
#include "format/records/record.h"
#include "format/records/record_view.h"

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

TEST(RunningKernel, TrampolinesAndDispatchersAreImagesAndProgramsAreNot) {
  const std::string kallsyms =
      "ffffffff81000000 T _text\n"
      "ffffffffc0201000 t bpf_prog_6deef7357e7b4530_on_read\t[bpf]\n"
      "ffffffffc0200000 t bpf_trampoline_6442466132\t[bpf]\n"
      "ffffffffc0204000 t bpf_dispatcher_xdp\t[bpf]\n"
      "ffffffffc0204040 t bpf_trampoline_6442466133\t[bpf]\n"
      "ffffffffc0300000 t bpf_trampoline_of_a_module\t[other]\n";
  const auto images = find_bpf_images(kallsyms, 4096);
  ASSERT_EQ(images.size(), 3u);
  EXPECT_EQ(images[0].name, "bpf_trampoline_6442466132");
  EXPECT_EQ(images[0].start, 0xffffffffc0200000u);
  EXPECT_EQ(images[0].length, 4096u) << "a page, as in the record of a new one";
  EXPECT_EQ(images[1].length, 0x40u) << "newer kernels lay several into a page";
  EXPECT_EQ(images[2].length, 4096u);
  EXPECT_TRUE(find_bpf_images("0000000000000000 t bpf_trampoline_1\t[bpf]\n", 4096).empty()) << "hidden";
}

TEST(RunningKernel, ImagesBecomeKsymbolRecords) {
  format::ByteWriter out;
  write_image_records(out, {{"bpf_trampoline_6442466132", 0xffffffffc0200000, 4096}}, 0);
  format::Cursor in(out.view());
  format::RecordView view;
  view.bytes = out.view();
  view.type = in.u32();
  view.misc = in.u16();
  const auto record = format::parse_record(view, format::EventAttr{});
  ASSERT_TRUE(record);
  const auto* symbol = std::get_if<format::KsymbolRecord>(&*record);
  ASSERT_NE(symbol, nullptr);
  EXPECT_EQ(symbol->address, 0xffffffffc0200000u);
  EXPECT_EQ(symbol->length, 4096u);
  EXPECT_EQ(symbol->name, "bpf_trampoline_6442466132");
}

}  // namespace

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

TEST(KernelFunctions, DataIsNoFunction) { EXPECT_EQ(why_not("jiffies"), "'jiffies' is not a function"); }

TEST(KernelFunctions, OffsetsEndWithTheFunction) {
  EXPECT_EQ(why_not("vfs_read", 0x9f), "");
  EXPECT_EQ(why_not("vfs_read", 0xa0), "'vfs_read' is 160 bytes long, and 160 is after its end");
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

namespace {

TEST(KernelSymbols, WhatIsReadAheadIsTakenOnce) {
  constexpr std::size_t kPage = 4096;
  KernelSymbolsAhead ahead(kPage);
  const auto first = ahead.take_symbols();
  ASSERT_TRUE(first);
  ASSERT_TRUE(*first) << first->error().what;
  EXPECT_FALSE(ahead.take_symbols()) << "a later capture reads the list as it is then";
  const KernelSymbols& symbols = **first;
  EXPECT_EQ(symbols.missing_reason.empty(), symbols.list.has_value()) << symbols.missing_reason;
  if (!symbols.list) GTEST_SKIP() << symbols.missing_reason;
  ASSERT_TRUE(symbols.text);
  const auto list = format::unpack_attachment(*symbols.list);
  ASSERT_TRUE(list) << list.error().what;
  EXPECT_NE(format::as_text(*list).find(" T " + symbols.text->reference + "\n"), std::string_view::npos);
}

}  // namespace

}  // namespace tacho::record
