#include "record/host/running_kernel.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "format/record.h"
#include "format/record_view.h"

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
  EXPECT_EQ(images[0].length, 4096u) << "a page, as the kernel tells of new ones";
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
}  // namespace tacho::record
