#include "symbolize/jit/jitdump.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "format/base/byte_writer.h"
#include "format/container/features.h"
#include "format/extensions/attachment.h"
#include "symbolize/files/decompress.h"
#include "symbolize/jit/jit_code.h"
#include "symbolize/unwind/unwind_module.h"
#include "tests/symbolize/folder.h"
#include "tests/symbolize/pinned.h"
#include "tests/unwind/cfi_image.h"

namespace tacho::symbolize {
namespace {

using format::Bytes;
using format::ByteWriter;
using format::MmapRecord;

// A jitdump in this machine's order, or every number of it in the other one.
class Dump {
 public:
  explicit Dump(bool is_swapped = false, std::uint64_t flags = 0) : is_swapped_(is_swapped) {
    u32(0x4A695444).u32(1).u32(40).u32(62).u32(0).u32(7).u64(0).u64(flags);
  }
  Dump& load(std::uint64_t time, std::uint64_t index, std::uint64_t address, std::uint64_t size,
             std::string_view name) {
    u32(0).u32(static_cast<std::uint32_t>(16 + 40 + name.size() + 1 + size)).u64(time);
    u32(7).u32(8).u64(address).u64(address).u64(size).u64(index).text(name);
    out_.zeros(size);
    return *this;
  }
  Dump& move(std::uint64_t time, std::uint64_t index, std::uint64_t from, std::uint64_t to,
             std::uint64_t size) {
    return u32(1).u32(64).u64(time).u32(7).u32(8).u64(from).u64(from).u64(to).u64(size).u64(index);
  }
  struct Line {
    std::uint64_t address;
    std::uint32_t line;
    std::string_view file;
  };
  Dump& lines(std::uint64_t address, const std::vector<Line>& lines) {
    std::size_t size = 32;
    for (const Line& line : lines) size += 17 + line.file.size();
    u32(2).u32(static_cast<std::uint32_t>(size)).u64(0).u64(address).u64(lines.size());
    for (const Line& line : lines) u64(line.address).u32(line.line).u32(0).text(line.file);
    return *this;
  }
  Dump& unwinding(Bytes eh_frame, std::uint64_t header_size) {
    const std::uint64_t size = eh_frame.size() + header_size;
    u32(4).u32(static_cast<std::uint32_t>(16 + 24 + size)).u64(0).u64(size).u64(header_size).u64(0);
    out_.bytes(eh_frame);
    out_.zeros(header_size);
    return *this;
  }
  Dump& other(std::uint32_t id) { return u32(id).u32(24).u64(0).u64(0); }
  Dump& u32(std::uint32_t value) {
    out_.u32(is_swapped_ ? __builtin_bswap32(value) : value);
    return *this;
  }
  Dump& u64(std::uint64_t value) {
    out_.u64(is_swapped_ ? __builtin_bswap64(value) : value);
    return *this;
  }
  Dump& text(std::string_view value) {
    out_.bytes(std::as_bytes(std::span(value)));
    out_.zeros(1);
    return *this;
  }
  std::vector<std::byte> bytes() const { return {out_.view().begin(), out_.view().end()}; }

 private:
  ByteWriter out_;
  bool is_swapped_;
};

class JitdumpOrders : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(BothByteOrders, JitdumpOrders, testing::Bool());

TEST_P(JitdumpOrders, TellsLoadsMovesAndLines) {
  const auto dump = Jitdump::parse(Dump(GetParam())
                                       .lines(0x1000, {{0x1008, 12, "\377"}, {0x1000, 10, "a.js"}})
                                       .load(100, 3, 0x1000, 0x20, "first")
                                       .other(4)
                                       .load(110, 4, 0x2000, 0x10, "second")
                                       .move(120, 3, 0x1000, 0x3000, 0x20)
                                       .other(3)
                                       .bytes());
  ASSERT_TRUE(dump);
  EXPECT_EQ(dump->pid(), 7u);
  EXPECT_FALSE(dump->is_cut_short());
  ASSERT_EQ(dump->events().size(), 3u);
  const JitEvent& first = dump->events()[0];
  EXPECT_EQ(std::tuple(first.time, first.address, first.size, first.index, first.name),
            std::tuple(100u, 0x1000u, 0x20u, 3u, "first"));
  EXPECT_EQ(first.code.size(), 0x20u);
  EXPECT_TRUE(dump->events()[2].code.empty());
  ASSERT_EQ(first.lines.size(), 2u);
  EXPECT_EQ(line_at(first.lines, 0)->line, 10u) << "lines are put in order";
  EXPECT_EQ(line_at(first.lines, 7)->file, "a.js");
  EXPECT_EQ(line_at(first.lines, 0x1f)->line, 12u);
  EXPECT_TRUE(dump->events()[1].lines.empty()) << "lines belong to the next load only";
  EXPECT_TRUE(dump->events()[2].is_move);
  EXPECT_EQ(dump->events()[2].address, 0x3000u);
}

TEST(Jitdump, AFileNamedByTheMarkIsTheOneBefore) {
  const auto dump =
      Jitdump::parse(Dump().lines(0, {{0, 1, "a.js"}, {1, 2, "\377"}}).load(1, 0, 0, 2, "f").bytes());
  ASSERT_TRUE(dump);
  EXPECT_EQ(line_at(dump->events()[0].lines, 1)->file, "a.js");
}

TEST(Jitdump, WhatEndsWithinARecordGivesWhatStandsBefore) {
  auto bytes = Dump().load(1, 0, 0x1000, 8, "whole").load(2, 1, 0x2000, 8, "cut").bytes();
  bytes.resize(bytes.size() - 20);
  const auto dump = Jitdump::parse(bytes);
  ASSERT_TRUE(dump);
  EXPECT_TRUE(dump->is_cut_short());
  EXPECT_EQ(dump->events().size(), 1u);
}

TEST(Jitdump, RefusesWhatIsNone) {
  EXPECT_FALSE(Jitdump::parse({}));
  EXPECT_FALSE(Jitdump::parse(std::vector<std::byte>(64)));
  auto long_header = Dump().load(1, 0, 0x1000, 8, "f").bytes();
  long_header[10] = std::byte{1};  // its size is 65,576 bytes
  const auto cut = Jitdump::parse(long_header);
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().what, "a jitdump with a truncated header");
  auto bytes = Dump().bytes();
  bytes[4] = std::byte{2};
  const auto newer = Jitdump::parse(bytes);
  ASSERT_FALSE(newer);
  EXPECT_NE(newer.error().what.find("version 2"), std::string::npos);
  bytes.resize(20);
  EXPECT_FALSE(Jitdump::parse(bytes));
}

MmapRecord mapping(std::uint32_t pid, std::string_view name) {
  MmapRecord record;
  record.pid = record.tid = pid;
  record.is_mmap2 = true;
  record.protection = 4;
  record.filename = name;
  return record;
}

void write(const test::Folder& folder, const std::string& name, const std::vector<std::byte>& bytes) {
  folder.write(name, format::as_text(bytes));
}

std::vector<std::string> lines_of(const JitCode& jit) {
  format::Diagnostics diagnostics;
  jit.report(diagnostics);
  std::vector<std::string> lines;
  for (const auto& finding : diagnostics.findings()) lines.push_back(finding.first);
  return lines;
}

TEST(JitCode, FunctionsBecomeMappingsAtTheirTimes) {
  test::Folder folder;
  write(folder, "/jit-7.dump",
        Dump()
            .load(100, 0, 0x1000, 8, "a")
            .move(300, 0, 0x1000, 0x5000, 8)
            .load(200, 1, 0x1000, 16, "b")
            .bytes());
  JitCode jit(folder.path(), DebugFiles({}));
  EXPECT_FALSE(jit.consumes(mapping(7, "//anon"), JitClock::Monotonic)) << "nothing is known yet";
  EXPECT_TRUE(jit.consumes(mapping(7, "/work/jit-7.dump"), JitClock::Monotonic));
  EXPECT_TRUE(jit.consumes(mapping(7, "//anon"), JitClock::Monotonic));
  EXPECT_FALSE(jit.consumes(mapping(8, "//anon"), JitClock::Monotonic)) << "another process";
  EXPECT_FALSE(jit.is_due(99));
  ASSERT_TRUE(jit.is_due(250));
  const auto first = jit.due(250), second = jit.due(250);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->filename, "/work/jitted-7-0.so");
  EXPECT_EQ(std::tuple(first->start, first->length, first->page_offset), std::tuple(0x1000u, 8u, 0x80u));
  EXPECT_EQ(second->filename, "/work/jitted-7-1.so");
  EXPECT_FALSE(jit.due(250));
  const auto moved = jit.due(300);
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->filename, "/work/jitted-7-0.so");
  EXPECT_EQ(moved->start, 0x5000u);
  EXPECT_FALSE(jit.is_due(~std::uint64_t{0} - 1));
  ASSERT_NE(jit.find_function("/work/jitted-7-1.so"), nullptr);
  EXPECT_EQ(jit.find_function("/work/jitted-7-1.so")->name, "b");
  EXPECT_EQ(jit.find_function("/work/jitted-7-2.so"), nullptr);
  EXPECT_TRUE(lines_of(jit).empty());
}

TEST(JitCode, WhatWasHeldOpenComesBeforeTheFileOfThatName) {
  test::Folder folder;
  write(folder, "/tmp/jit-7.dump", Dump().load(1, 0, 0x1000, 8, "since").bytes());
  const auto ran = Dump().load(1, 0, 0x1000, 8, "ran").bytes();
  test::Held once, twice;
  once.file("/tmp/jit-7.dump", format::as_text(ran));
  twice.file("/tmp/jit-7.dump", format::as_text(ran)).file("/tmp/jit-7.dump", format::as_text(ran));
  JitCode jit({}, DebugFiles(folder.path(), {}, once.files()));
  ASSERT_TRUE(jit.consumes(mapping(7, "/tmp/jit-7.dump"), JitClock::Monotonic));
  ASSERT_NE(jit.find_function("/tmp/jitted-7-0.so"), nullptr);
  EXPECT_EQ(jit.find_function("/tmp/jitted-7-0.so")->name, "ran");
  JitCode unsure({}, DebugFiles(folder.path(), {}, twice.files()));
  EXPECT_FALSE(unsure.consumes(mapping(7, "/tmp/jit-7.dump"), JitClock::Monotonic));
  EXPECT_EQ(lines_of(unsure), (std::vector<std::string>{"/tmp/jit-7.dump: several files had this name"}));
}

AttachedJitdump attached(const std::vector<const JitEvent*>& events) {
  auto made = attach_jitdump("/tmp/jit-7.dump", 7, events);
  EXPECT_TRUE(made);
  EXPECT_TRUE(check_attached_size(made->attachment));
  return std::move(*made);
}

std::vector<const JitEvent*> events_of(const Jitdump& dump) {
  std::vector<const JitEvent*> events;
  for (const JitEvent& event : dump.events()) events.push_back(&event);
  return events;
}

// Compilers write the name of a file once, and a mark of one byte at each line after.
TEST(AttachedJitdump, TheFileBeforeStaysAMark) {
  constexpr std::uint32_t kEntries = 5000;
  const std::string text(20000, 'f');
  const std::string_view file = text, mark = "\377";
  std::vector<Dump::Line> lines;
  for (std::uint32_t i = 0; i < kEntries; ++i) lines.push_back({0x1000 + i, i, i == 0 ? file : mark});
  const auto bytes = Dump().lines(0x1000, lines).load(1, 0, 0x1000, kEntries, "f").bytes();
  const auto dump = Jitdump::parse(bytes);
  ASSERT_TRUE(dump);
  const AttachedJitdump made = attached(events_of(*dump));
  EXPECT_LE(made.attachment.raw_size, bytes.size());
  EXPECT_EQ(std::pair(made.lacks_lines, made.left_out), std::pair(false, std::size_t{0}));
  const auto read = Jitdump::parse(*unpack_attached_text(made.attachment));
  ASSERT_TRUE(read);
  ASSERT_EQ(read->events().size(), 1u);
  ASSERT_EQ(read->events()[0].lines.size(), kEntries);
  EXPECT_EQ(read->events()[0].lines.back().file, file);
}

// Lines are put in order: then names that were written once each may stand at every other line.
TEST(AttachedJitdump, LinesGoBeforeNames) {
  for (const std::uint32_t count : {5000, 200000}) {  // 50 MB that pack too well, and 2 GB
    const std::string all_a(10000, 'a'), all_b(10000, 'b');
    const std::string_view a = all_a, b = all_b, mark = "\377";
    std::vector<Dump::Line> lines;
    for (std::uint32_t i = 0; i < count; i += 2) lines.push_back({0x1000 + i, i, i == 0 ? a : mark});
    for (std::uint32_t i = 1; i < count; i += 2) lines.push_back({0x1000 + i, i, i == 1 ? b : mark});
    const auto dump = Jitdump::parse(Dump().lines(0x1000, lines).load(1, 0, 0x1000, count, "f").bytes());
    ASSERT_TRUE(dump);
    const AttachedJitdump made = attached(events_of(*dump));
    EXPECT_EQ(std::pair(made.lacks_lines, made.left_out), std::pair(true, std::size_t{0}));
    const auto read = Jitdump::parse(*unpack_attached_text(made.attachment));
    ASSERT_TRUE(read);
    ASSERT_EQ(read->events().size(), 1u);
    EXPECT_EQ(read->events()[0].name, "f");
    EXPECT_TRUE(read->events()[0].lines.empty());
  }
}

TEST(AttachedJitdump, OfTooManyNamesTheFirstStay) {
  const std::string name(std::size_t{1} << 20, 'n');
  for (const std::size_t count : {30, 300}) {  // packs too well; more than is ever read
    JitEvent event;
    event.size = 8;
    event.name = name;
    const AttachedJitdump made = attached(std::vector<const JitEvent*>(count, &event));
    EXPECT_FALSE(made.lacks_lines) << "there were none";
    EXPECT_EQ(made.left_out, count - 23);
    const auto read = Jitdump::parse(*unpack_attached_text(made.attachment));
    ASSERT_TRUE(read);
    EXPECT_FALSE(read->is_cut_short());
    EXPECT_EQ(read->events().size(), 23u);
  }
}

// What travels in a capture: of each jitdump the functions that were hit.
TEST(JitCode, WhatWasHitIsReadFromTheCaptureAsFromTheFile) {
  test::Folder folder;
  write(folder, "/jit-7.dump",
        Dump()
            .load(100, 0, 0x1000, 8, "a")
            .lines(0x2000, {{0x2000, 3, "a.js"}, {0x2004, 4, "a.js"}})
            .load(200, 1, 0x2000, 16, "b")
            .move(300, 1, 0x2000, 0x5000, 16)
            .bytes());
  auto others = Dump().load(1, 0, 0x1000, 8, "c").bytes();
  others[20] = std::byte{8};  // the process
  write(folder, "/jit-8.dump", others);
  JitCode whole(folder.path(), DebugFiles({}));
  for (const std::uint32_t pid : {7, 8})
    ASSERT_TRUE(
        whole.consumes(mapping(pid, "/work/jit-" + std::to_string(pid) + ".dump"), JitClock::Monotonic));
  const auto reduced = whole.reduced([](const std::string& path) { return path == "/work/jitted-7-1.so"; });
  ASSERT_EQ(reduced.size(), 2u);
  format::Features features;
  for (const auto& dump : reduced) features.attachments.push_back(dump.attached->attachment);
  JitCode jit({}, DebugFiles("/nowhere"));
  jit.use(features);
  ASSERT_TRUE(jit.consumes(mapping(7, "/work/jit-7.dump"), JitClock::Monotonic));
  EXPECT_EQ(jit.find_function("/work/jitted-7-0.so"), nullptr);
  const auto* const known = jit.find_function("/work/jitted-7-1.so");
  ASSERT_NE(known, nullptr);
  EXPECT_EQ(known->name, "b");
  ASSERT_EQ(known->lines.size(), 2u);
  EXPECT_EQ(known->lines[1].offset, 4u);
  EXPECT_EQ(known->lines[1].file, "a.js");
  const auto loaded = jit.due(250), moved = jit.due(1000);
  ASSERT_TRUE(loaded && moved);
  EXPECT_EQ(loaded->start, 0x2000u);
  EXPECT_EQ(moved->start, 0x5000u);
  EXPECT_FALSE(jit.consumes(mapping(8, "//anon"), JitClock::Monotonic))
      << "nothing of it was mapped here yet";
  EXPECT_TRUE(jit.consumes(mapping(8, "/work/jit-8.dump"), JitClock::Monotonic));
  EXPECT_TRUE(jit.consumes(mapping(8, "//anon"), JitClock::Monotonic))
      << "nothing of it was hit, and it is there";
  EXPECT_TRUE(lines_of(jit).empty());
}

// The CFA of a function is 16 above the stack pointer from its second byte on. Its .eh_frame is made for the
// place right behind the code, where perf's files have it.
TEST(JitCode, UnwindingInformationBelongsToTheNextFunction) {
  constexpr std::uint64_t kSize = 0x1d, kRounded = 0x20;
  constexpr std::uint64_t kBase = unwind::test::kBase;
  const auto frames =
      unwind::test::eh_frame({{.start = 0, .size = kSize, .program = {0x41, 0x0e, 16}}}, kBase + kRounded);
  const auto bytes = Dump()
                         .unwinding(frames.bytes, 20)
                         .load(100, 3, 0x1000, kSize, "described")
                         .load(110, 4, 0x2000, kSize, "plain")
                         .unwinding({}, 20)
                         .load(120, 5, 0x3000, kSize, "builtin")
                         .bytes();
  const auto dump = Jitdump::parse(bytes);
  ASSERT_TRUE(dump);
  const auto again = Jitdump::parse(*unpack_attached_text(attached(events_of(*dump)).attachment));
  ASSERT_TRUE(again);
  for (const Jitdump* const each : {&*dump, &*again}) {
    ASSERT_EQ(each->events().size(), 3u);
    ASSERT_TRUE(each->events()[0].eh_frame);
    EXPECT_TRUE(std::ranges::equal(*each->events()[0].eh_frame, frames.bytes));
    EXPECT_FALSE(each->events()[1].eh_frame);
    ASSERT_TRUE(each->events()[2].eh_frame) << "known to have no rules";
    EXPECT_TRUE(each->events()[2].eh_frame->empty());
  }
  JitCode::Function function{.size = kSize, .eh_frame = dump->events()[0].eh_frame, .order = dump->order()};
  EXPECT_EQ(function.eh_frame_address(), JitCode::kTextOffset + kRounded);
  CfiTable table = CfiTable::from_jit(function);
  ASSERT_TRUE(table.find_rules(JitCode::kTextOffset).row);
  EXPECT_EQ(table.find_rules(JitCode::kTextOffset).row->cfa.offset, 8);
  EXPECT_EQ(table.find_rules(JitCode::kTextOffset + 1).row->cfa.offset, 16);
  EXPECT_FALSE(table.find_rules(JitCode::kTextOffset + kSize).row);
}

TEST(JitCode, SaysWhyAJitdumpIsNotUsed) {
  test::Folder folder;
  write(folder, "/jit-7.dump", Dump(false, 1).bytes());
  write(folder, "/jit-8.dump", Dump().load(1, 0, 0x1000, 8, "a").bytes());
  JitCode jit(folder.path(), DebugFiles({}));
  EXPECT_FALSE(jit.consumes(mapping(7, "/jit-7.dump"), JitClock::Monotonic));
  EXPECT_FALSE(jit.consumes(mapping(8, "/jit-8.dump"), JitClock::Other));
  EXPECT_FALSE(jit.consumes(mapping(9, "/jit-9.dump"), JitClock::Monotonic));
  write(folder, "/jit-10.dump", Dump().load(1, 0, 0x1000, 8, "of 7").bytes());
  EXPECT_FALSE(jit.consumes(mapping(10, "/jit-10.dump"), JitClock::Monotonic));
  EXPECT_FALSE(jit.consumes(mapping(9, "/jit-8.dump"), JitClock::Monotonic)) << "of another process";
  const auto lines = lines_of(jit);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_NE(lines[0].find("ticks"), std::string::npos);
  EXPECT_NE(lines[1].find("-k mono"), std::string::npos);
  EXPECT_NE(lines[2].find("No such file"), std::string::npos);
  EXPECT_NE(lines[3].find("is of another process, 7"), std::string::npos);
}

}  // namespace
}  // namespace tacho::symbolize
