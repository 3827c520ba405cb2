#include "symbolize/unwind/unwind.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "format/extensions/attachment.h"
#include "format/records/perf_abi.h"
#include "symbolize/files/file_access.h"
#include "tests/symbolize/folder.h"
#include "tests/symbolize/pinned.h"
#include "tests/unwind/cfi_image.h"

namespace tacho::symbolize {
namespace {

namespace abi = format::abi;
using unwind::test::Function;
using Chain = std::vector<std::uint64_t>;

constexpr std::uint64_t kLoad = 0x7f0000000000, kStack = 0x7ffc00000000;
constexpr std::uint64_t kLeaf = kLoad + 0x1000, kCaller = kLoad + 0x1100, kMain = kLoad + 0x1200;
constexpr std::uint64_t kX86Mask = 0xff0fff, kArmMask = 0x1ffffffff;
// Numbers in sample_regs_user.
enum X86 : std::uint8_t { kBp = 6, kSp = 7, kIp = 8 };
enum Arm : std::uint8_t { kFp = 29, kLr = 30, kArmSp = 31, kPc = 32 };

// A leaf that pushed nothing, a caller with 16 bytes of its own, and main, which nobody called.
const std::vector<Function> kProgram{
    {.start = 0x1000, .size = 0x100, .program = {}},
    {.start = 0x1100, .size = 0x100, .program = {0x0e, 24}},
    {.start = 0x1200, .size = 0x100, .program = {0x07, 16}},
};

class UnwindTest : public testing::Test {
 protected:
  void SetUp() override { options.symfs = root.path(); }

  void map(std::string_view path, std::uint64_t start = kLoad, std::uint64_t length = 0x5000,
           std::string_view build_id = "") {
    format::MmapRecord record;
    record.pid = record.tid = 7;
    record.start = start;
    record.length = length;
    record.filename = path;
    record.is_mmap2 = true;
    record.protection = path.starts_with("[stack") ? 3 : 5;
    if (!build_id.empty()) record.build_id = *format::BuildId::from_hex(build_id);
    spaces.apply(record, abi::kCpumodeUser);
  }
  void run(const std::vector<Function>& functions, unwind::test::Search search = unwind::test::Search::Table,
           const unwind::test::Code& text = {}) {
    root.write("/bin/app", unwind::test::elf_image(functions, search, unwind::test::Headers::Sections, text));
    map("/bin/app");
  }
  Unwinder& unwinder() {
    if (!made) made.emplace(options, features);
    return *made;
  }
  // Registers by their numbers in the sample; the others are zero.
  Chain unwind(const std::map<int, std::uint64_t>& registers, const std::vector<std::uint64_t>& stack,
               std::uint64_t mask = kX86Mask, std::size_t max = 127) {
    std::vector<std::uint64_t> values;
    for (int bit = 0; bit < 64; ++bit) {
      const auto known = registers.find(bit);
      if ((mask >> bit & 1) != 0) values.push_back(known == registers.end() ? 0 : known->second);
    }
    format::Sample sample;
    sample.pid = sample.tid = 7;
    sample.user_registers = {register_abi, mask,
                             format::U64Array(std::as_bytes(std::span(values)), std::endian::native)};
    sample.user_stack = std::as_bytes(std::span(stack));
    const auto chain = unwinder().unwind(sample, spaces.version(sample.pid), max);
    return {chain.begin(), chain.end()};
  }

  test::Folder root;
  SymbolOptions options;
  format::Features features;
  AddressSpaces spaces;
  std::uint64_t register_abi = 2;
  std::optional<Unwinder> made;
};

const std::vector<std::uint64_t> kTwoCallers{kCaller + 5, 0, 0, kMain + 9, 0, 0, 0};

TEST_F(UnwindTest, CallersAreReturnAddressesMinusOne) {
  run(kProgram);
  EXPECT_EQ(unwind({{kIp, kLeaf + 3}, {kSp, kStack}}, kTwoCallers),
            (Chain{kLeaf + 3, kCaller + 4, kMain + 8}));
}

TEST_F(UnwindTest, WithoutASearchTableTheSectionIsListed) {
  run(kProgram, unwind::test::Search::Index);
  EXPECT_EQ(unwind({{kIp, kLeaf + 3}, {kSp, kStack}}, kTwoCallers),
            (Chain{kLeaf + 3, kCaller + 4, kMain + 8}));
}

TEST_F(UnwindTest, ACallAtTheEndOfAFunctionBelongsToIt) {
  run(kProgram);
  // The return address is main's first byte, but the call was the caller's last instruction.
  EXPECT_EQ(unwind({{kIp, kLeaf}, {kSp, kStack}}, {kMain, 0, 0, kMain + 9, 0, 0, 0}),
            (Chain{kLeaf, kMain - 1, kMain + 8}));
}

TEST_F(UnwindTest, SavedRegistersAreFoundLater) {
  // The leaf saves rbp, and changes it; its caller's frame hangs on rbp.
  run({{.start = 0x1000, .size = 0x100, .program = {0x0e, 16, 0x86, 2}},
       {.start = 0x1100, .size = 0x100, .program = {0x0c, 6, 16, 0x86, 2}},
       {.start = 0x1200, .size = 0x100, .program = {0x07, 16}}});
  EXPECT_EQ(
      unwind({{kIp, kLeaf}, {kSp, kStack}, {kBp, 1}}, {kStack + 32, kCaller + 5, 0, 0, 0, kMain + 9, 0, 0}),
      (Chain{kLeaf, kCaller + 4, kMain + 8}));
}

TEST_F(UnwindTest, StackPointerAndAddressAreEnoughWhereNothingElseIsAskedFor) {
  run(kProgram);
  EXPECT_EQ(unwind({{kIp, kLeaf + 3}, {kSp, kStack}}, kTwoCallers, 1U << kIp | 1U << kSp),
            (Chain{kLeaf + 3, kCaller + 4, kMain + 8}));
}

TEST_F(UnwindTest, ALostFramePointerMarksTheOutermostFrame) {
  run({{.start = 0x1000, .size = 0x100, .program = {0x07, 6}}, kProgram[1], kProgram[2]});
  EXPECT_EQ(unwind({{kIp, kLeaf + 3}, {kSp, kStack}}, kTwoCallers), (Chain{kLeaf + 3}));
}

TEST_F(UnwindTest, TheNumberOfFramesIsLimited) {
  run(kProgram);
  const std::map<int, std::uint64_t> registers{{kIp, kLeaf + 3}, {kSp, kStack}};
  EXPECT_EQ(unwind(registers, kTwoCallers, kX86Mask, 2), (Chain{kLeaf + 3, kCaller + 4}));
  EXPECT_EQ(unwind(registers, kTwoCallers, kX86Mask, 1), (Chain{kLeaf + 3}));
  EXPECT_TRUE(unwind(registers, kTwoCallers, kX86Mask, 0).empty());
}

TEST_F(UnwindTest, AfterTheCopiedStackTheChainEndsAsPerfEndsIt) {
  run(kProgram);
  const std::vector<std::uint64_t> cut{kCaller + 5, 0, 0};
  EXPECT_EQ(unwind({{kIp, kLeaf}, {kSp, kStack}}, cut), (Chain{kLeaf, kCaller + 4}))
      << "nothing is mapped there";
  map("[stack]", kStack - 0x1000, 0x3000);
  EXPECT_EQ(unwind({{kIp, kLeaf}, {kSp, kStack}}, cut), (Chain{kLeaf, kCaller + 4, ~std::uint64_t{0}}))
      << "the stack is mapped, but was not copied: it reads as zero";
}

TEST_F(UnwindTest, WhatMarksACutStackIsLeftOutWhenAskedTo) {
  run(kProgram);
  map("[stack]", kStack - 0x1000, 0x3000);
  options.cut_mark = CutMark::None;
  EXPECT_EQ(unwind({{kIp, kLeaf}, {kSp, kStack}}, {kCaller + 5, 0, 0}), (Chain{kLeaf, kCaller + 4}));
}

TEST_F(UnwindTest, EachCutStackIsMarkedWhenAskedTo) {
  run(kProgram);
  options.cut_mark = CutMark::All;
  const std::map<int, std::uint64_t> registers{{kIp, kLeaf}, {kSp, kStack}};
  const std::vector<std::uint64_t> cut{kCaller + 5, 0, 0};
  const Chain marked{kLeaf, kCaller + 4, ~std::uint64_t{0}};
  EXPECT_EQ(unwind(registers, cut), marked) << "perf does not mark it where nothing is mapped";
  map("[stack]", kStack - 0x1000, 0x3000);
  EXPECT_EQ(unwind(registers, cut), marked) << "once";
  EXPECT_EQ(unwind(registers, kTwoCallers), (Chain{kLeaf, kCaller + 4, kMain + 8})) << "it is whole";
}

TEST_F(UnwindTest, TheLastWordOfTheCopyIsNotRead) {
  run(kProgram);
  EXPECT_EQ(unwind({{kIp, kLeaf}, {kSp, kStack}}, {kCaller + 5}), (Chain{kLeaf})) << "as perf has it";
}

TEST_F(UnwindTest, WithoutRegistersOrStackThereIsNoChain) {
  run(kProgram);
  EXPECT_TRUE(unwind({{kIp, kLeaf}, {kSp, kStack}}, {}).empty());
  EXPECT_TRUE(unwind({}, kTwoCallers, 0x0f).empty()) << "neither ip nor sp was sampled";
  register_abi = 0;
  EXPECT_TRUE(unwind({{kIp, kLeaf}, {kSp, kStack}}, kTwoCallers).empty()) << "a kernel thread";
}

// Segments of one file may lie at different distances from their places in it, and share pages of it.
TEST_F(UnwindTest, EachSegmentWithCodeHasItsOwnPlaceInTheFile) {
  std::string image = unwind::test::elf_image(kProgram, unwind::test::Search::Index);
  format::ByteWriter segments;
  const auto code = [&](std::uint64_t offset, std::uint64_t address, std::uint64_t size) {
    segments.u32(PT_LOAD)
        .u32(PF_R | PF_X)
        .u64(offset)
        .u64(address)
        .u64(address)
        .u64(size)
        .u64(size)
        .u64(4096);
  };
  constexpr std::uint64_t kMoved = 0x600;  // bytes: the callers lie so much further back in the file
  code(0x1000, unwind::test::kBase + 0x1000, 0x100);
  code(0x1100 + kMoved, unwind::test::kBase + 0x1100, 0x200);
  const auto bytes = segments.view();
  image.replace(64, bytes.size(), reinterpret_cast<const char*>(bytes.data()), bytes.size());
  root.write("/bin/app", image);
  map("/bin/app");
  EXPECT_EQ(
      unwind({{kIp, kLeaf + 3}, {kSp, kStack}}, {kCaller + kMoved + 5, 0, 0, kMain + kMoved + 9, 0, 0, 0}),
      (Chain{kLeaf + 3, kCaller + kMoved + 4, kMain + kMoved + 8}));
}

// i386.so as gcc made it: sub, call and three pushes between its frames.
TEST_F(UnwindTest, StacksOf32BitProcessesHaveWordsOf4Bytes) {
  constexpr std::uint64_t kLow = 0xf7c00000, kLowStack = 0xffc00000;
  constexpr std::uint64_t kInLeaf = kLow + 0x1035, kInMiddle = kLow + 0x1072, kInOuter = kLow + 0x109b;
  root.copy(std::string(TACHO_TEST_DATA) + "/i386.so", "/lib/i386.so");
  map("/lib/i386.so", kLow, 0x4000, "0123456789abcdef0123456789abcdef0123456b");
  constexpr std::size_t kMiddlesFrame = 172 / 4, kOutersFrame = 32 / 4;  // words
  std::vector<std::uint32_t> words(80);
  words[0] = kInMiddle;
  words[kMiddlesFrame] = kInOuter;
  words[kMiddlesFrame + kOutersFrame] = kLow + 0x10a7;  // of outer: whoever called it
  std::vector<std::uint64_t> stack(words.size() / 2);
  std::memcpy(stack.data(), words.data(), stack.size() * sizeof stack[0]);
  register_abi = 1;
  const std::map<int, std::uint64_t> registers{{kIp, kInLeaf}, {kSp, kLowStack}};
  EXPECT_EQ(unwind(registers, stack, kX86Mask, 4),
            (Chain{kInLeaf, kInMiddle - 1, kInOuter - 1, kLow + 0x10a6}));
  EXPECT_EQ(unwinder().unsupported_samples(), 0u);
  made.reset();
  options.unwinds_32_bit = false;
  EXPECT_TRUE(unwind(registers, stack).empty()) << "as perf 6.1";
}

TEST_F(UnwindTest, StacksOfOtherMachinesAreCounted) {
  features.environment.arch = "riscv64";
  EXPECT_TRUE(unwind({{kIp, kLeaf}, {kSp, kStack}}, kTwoCallers).empty());
  EXPECT_EQ(unwinder().unsupported_samples(), 1u);
}

TEST_F(UnwindTest, AnUnknownMappingEndsTheChain) {
  run(kProgram);
  EXPECT_EQ(unwind({{kIp, kLeaf}, {kSp, kStack}}, {0x1234, 0, 0}), (Chain{kLeaf, 0x1233}));
  EXPECT_EQ(unwind({{kIp, 0x1234}, {kSp, kStack}}, kTwoCallers), (Chain{0x1234}));
}

TEST_F(UnwindTest, AFrameThatCallsItselfWithoutStackEnds) {
  // CFA = rsp and the return address in rax: nothing moves.
  run({{.start = 0x1000, .size = 0x100, .program = {0x0e, 0, 0x09, 16, 0}}});
  EXPECT_EQ(unwind({{kIp, kLeaf + 1}, {kSp, kStack}, {0, kLeaf + 1}}, kTwoCallers), (Chain{kLeaf + 1}));
}

TEST_F(UnwindTest, WhatASignalInterruptedKeepsItsAddress) {
  // The trampoline's CFA and return address are in the saved context.
  run({{.start = 0x1000, .size = 0x100, .program = {}},
       {.start = 0x1100,
        .size = 0x100,
        .program = {0x0f, 3, 0x77, 16, 0x06, 0x10, 16, 2, 0x77, 24},
        .augmentation = "zRS"},
       {.start = 0x1200, .size = 0x100, .program = {0x07, 16}}});
  EXPECT_EQ(unwind({{kIp, kLeaf}, {kSp, kStack}}, {kCaller + 5, 0, 0, kStack + 40, kMain, 0, 0, 0}),
            (Chain{kLeaf, kCaller + 4, kMain}));
}

TEST_F(UnwindTest, AFunctionWithoutRulesMayHaveAFramePointer) {
  run({kProgram[0], kProgram[2]});  // the caller is not described
  const std::vector<std::uint64_t> stack{kCaller + 5, 0, 0, 0, kMain + 9, 0, 0};
  EXPECT_EQ(unwind({{kIp, kLeaf}, {kSp, kStack}, {kBp, kStack + 24}}, stack),
            (Chain{kLeaf, kCaller + 4, kMain + 8}));
  EXPECT_EQ(unwind({{kIp, kLeaf}, {kSp, kStack}, {kBp, kStack}}, stack), (Chain{kLeaf, kCaller + 4}))
      << "below the frame";
  EXPECT_EQ(unwind({{kIp, kLeaf}, {kSp, kStack}}, stack), (Chain{kLeaf, kCaller + 4})) << "zero";
}

TEST_F(UnwindTest, AProcedureLinkageEntryIsKnownByItsCode) {
  // jmp *...(%rip); push 0; jmp ...
  run({kProgram[1], kProgram[2]}, unwind::test::Search::Table,
      {0xff, 0x25, 1, 2, 3, 4, 0x68, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0});
  EXPECT_EQ(unwind({{kIp, kLeaf}, {kSp, kStack}}, kTwoCallers), (Chain{kLeaf, kCaller + 4, kMain + 8}));
  EXPECT_EQ(unwind({{kIp, kLeaf + 1}, {kSp, kStack}}, kTwoCallers), (Chain{kLeaf + 1})) << "not an entry";
}

TEST_F(UnwindTest, TheVdsoAttachedToTheCaptureIsUnwoundThrough) {
  run({kProgram[1], kProgram[2]});
  const std::string image = unwind::test::elf_image({kProgram[0]});
  auto packed = format::pack_attachment("vdso", "[vdso]", std::as_bytes(std::span(image)));
  ASSERT_TRUE(packed);
  features.attachments.push_back(std::move(*packed));
  map("[vdso]", kLoad + 0x100000);
  EXPECT_EQ(unwind({{kIp, kLoad + 0x101000}, {kSp, kStack}}, kTwoCallers),
            (Chain{kLoad + 0x101000, kCaller + 4, kMain + 8}));
}

TEST_F(UnwindTest, AFileWithAnotherBuildIdIsNotUsedAndSaid) {
  root.write("/bin/app", unwind::test::elf_image(kProgram));
  map("/bin/app", kLoad, 0x5000, "0123456789abcdef0123456789abcdef01234567");
  EXPECT_EQ(unwind({{kIp, kLeaf}, {kSp, kStack}}, kTwoCallers), (Chain{kLeaf}));
  const auto ended = unwinder().ended_chains();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].module->path, "/bin/app");
  EXPECT_NE(ended[0].reason.find("/bin/app: has no build id"), std::string::npos) << ended[0].reason;
}

// Rules of another program lie under the name by now.
TEST_F(UnwindTest, WithoutABuildIdTheFileOfThatNameComesLast) {
  const std::string ran = unwind::test::elf_image(kProgram);
  run({kProgram[0], {.start = 0x1100, .size = 0x100, .program = {0x0e, 32}}, kProgram[2]});
  const auto chain = [&](const PinnedFiles* held) {
    options.pinned = held;
    made.reset();
    return unwind({{kIp, kLeaf}, {kSp, kStack}}, kTwoCallers);
  };
  const Chain right{kLeaf, kCaller + 4, kMain + 8};
  EXPECT_NE(chain(nullptr), right);
  test::Held once, twice;
  once.file("/bin/app", ran);
  EXPECT_EQ(chain(once.files()), right);
  twice.file("/bin/app", ran).file("/bin/app", ran);
  EXPECT_EQ(chain(twice.files()), (Chain{kLeaf}));
  const auto ended = unwinder().ended_chains();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].reason, "several files had this name");
  auto packed = format::pack_attachment("elf//bin/app", "/bin/app", std::as_bytes(std::span(ran)));
  ASSERT_TRUE(packed);
  features.attachments.push_back(std::move(*packed));
  EXPECT_EQ(chain(nullptr), right);
}

// The leaf's CFA is in the first mapping, so its caller is read from there while the leaf's rules are used.
TEST_F(UnwindTest, ABuildIdThatComesLateCountsInANewMappingAtOnce) {
  constexpr std::uint64_t kNew = 0x100000;  // bytes behind the first mapping
  run({{.start = 0x1000, .size = 0x100, .program = {0x0c, 6, 16}}, kProgram[1], kProgram[2]});
  EXPECT_EQ(unwind({{kIp, kLeaf}, {kSp, kStack}, {kBp, kStack}}, {0, kCaller + 5, 0, 0, kMain + 9, 0, 0}),
            (Chain{kLeaf, kCaller + 4, kMain + 8}));
  format::BuildIdRecord late;
  late.build_id = *format::BuildId::from_hex("0123456789abcdef0123456789abcdef01234567");
  late.filename = "/bin/app";
  spaces.apply(late, abi::kCpumodeUser);
  map("/bin/app", kLoad + kNew);
  EXPECT_EQ(unwind({{kIp, kLeaf + kNew}, {kSp, kStack}, {kBp, kLoad}}, kTwoCallers), (Chain{kLeaf + kNew}));
  const auto ended = unwinder().ended_chains();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_NE(ended[0].reason.find("after samples that were already unwound"), std::string::npos)
      << ended[0].reason;
}

// Keeps the paths that at() was called with.
class NotingAccess final : public FileAccess {
 public:
  void set_current(std::string_view path) override { paths.emplace_back(path); }
  std::string refusal(std::string_view path) const override {
    return path == refused ? "it is not to be read" : "";
  }

  std::vector<std::string> paths;
  std::string refused;
};

TEST_F(UnwindTest, AGateIsToldOfEachFileAndOfTheEnd) {
  NotingAccess access;
  options.access = &access;
  run(kProgram);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(unwind({{kIp, kLeaf}, {kSp, kStack}}, kTwoCallers).size(), 3u);
  EXPECT_EQ(access.paths, (std::vector<std::string>{"/bin/app", "", "/bin/app", ""}));
}

TEST_F(UnwindTest, AChainEndsInAFileThatTheGateRefuses) {
  NotingAccess access;
  access.refused = "/bin/app";
  options.access = &access;
  run(kProgram);
  EXPECT_EQ(unwind({{kIp, kLeaf}, {kSp, kStack}}, kTwoCallers), (Chain{kLeaf}));
  const auto ended = unwinder().ended_chains();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].reason, "it is not to be read");
}

TEST_F(UnwindTest, ASecondSampleGivesTheSame) {
  run(kProgram);
  const auto first = unwind({{kIp, kLeaf + 3}, {kSp, kStack}}, kTwoCallers);
  EXPECT_EQ(unwind({{kIp, kLeaf + 3}, {kSp, kStack}}, kTwoCallers), first);
  EXPECT_EQ(first.size(), 3u);
}

class ArmUnwindTest : public UnwindTest {
 protected:
  void SetUp() override {
    UnwindTest::SetUp();
    features.environment.arch = "aarch64";
  }
  static Function arm(std::uint64_t start, unwind::test::Code program) {
    return {.start = start,
            .size = 0x100,
            .program = std::move(program),
            .entry = unwind::test::kArmEntry,
            .return_register = 30};
  }
  // stp x29, x30, [sp, -16]!
  const unwind::test::Code kFrameRecord{0x0e, 16, 0x9d, 2, 0x9e, 1};
};

TEST_F(ArmUnwindTest, ALeafReturnsToItsLinkRegister) {
  run({arm(0x1000, {}), arm(0x1100, kFrameRecord), arm(0x1200, {0x07, 30})});
  EXPECT_EQ(unwind({{kPc, kLeaf + 4}, {kArmSp, kStack}, {kLr, kCaller + 8}}, {0, kMain + 16, 0, 0}, kArmMask),
            (Chain{kLeaf + 4, kCaller + 7, kMain + 15}));
}

TEST_F(ArmUnwindTest, SignedReturnAddressesAreStripped) {
  unwind::test::Code program{0x2d};
  program.insert(program.end(), kFrameRecord.begin(), kFrameRecord.end());
  run({arm(0x1000, program), arm(0x1200, {0x07, 30})});
  EXPECT_EQ(unwind({{kPc, kLeaf + 4}, {kArmSp, kStack}}, {0, (kMain + 16) | 0x2a5f000000000000, 0}, kArmMask),
            (Chain{kLeaf + 4, kMain + 15}));
}

TEST_F(ArmUnwindTest, WithoutRulesTheLinkRegisterIsTaken) {
  run({arm(0x1100, kFrameRecord), arm(0x1200, {0x07, 30})});
  EXPECT_EQ(unwind({{kPc, kLeaf + 4}, {kArmSp, kStack}, {kLr, kCaller + 8}}, {0, kMain + 16, 0, 0}, kArmMask),
            (Chain{kLeaf + 4, kCaller + 7, kMain + 15}));
}

TEST_F(ArmUnwindTest, TheSignalTrampolineIsKnownByItsCode) {
  // mov x8, #139; svc #0
  run({arm(0x1100, kFrameRecord), arm(0x1200, {0x07, 30})}, unwind::test::Search::Table,
      {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4});
  std::vector<std::uint64_t> stack(100);
  constexpr std::size_t kContext = (128 + 176 + 8) / 8;  // siginfo, ucontext up to its registers
  stack[kContext + 31] = kStack + 600;                   // sp
  stack[kContext + 32] = kCaller + 8;                    // pc
  stack[76] = kMain + 16;                                // saved by the interrupted function
  EXPECT_EQ(unwind({{kPc, kLeaf}, {kArmSp, kStack}}, stack, kArmMask),
            (Chain{kLeaf, kCaller + 8, kMain + 15}));
}

// perf's captures have no vdso in them.
TEST_F(ArmUnwindTest, AHandlerThatReturnsToAnUnknownVdsoLeadsToWhatWasInterrupted) {
  constexpr std::uint64_t kVdso = kLoad + 0x100000, kTrampoline = kVdso + 0x7bc;
  run({arm(0x1000, {}), arm(0x1100, kFrameRecord), arm(0x1200, {0x07, 30})});
  map("[vdso]", kVdso);
  std::vector<std::uint64_t> stack(100);
  constexpr std::size_t kContext = (128 + 176 + 8) / 8;
  stack[kContext + 31] = kStack + 600;
  stack[kContext + 32] = kCaller + 8;
  stack[76] = kMain + 16;
  const std::map<int, std::uint64_t> handler{{kPc, kLeaf}, {kArmSp, kStack}, {kLr, kTrampoline}};
  EXPECT_EQ(unwind(handler, stack, kArmMask), (Chain{kLeaf, kTrampoline, kCaller + 8, kMain + 15}))
      << "nothing called the trampoline, so it is not the byte before it";
  stack[kContext + 32] = 0x1234;  // nothing is mapped there
  EXPECT_EQ(unwind(handler, stack, kArmMask), (Chain{kLeaf, kTrampoline}));
}

TEST_F(ArmUnwindTest, AReturnAddressOfZeroEndsTheChain) {
  run({arm(0x1000, kFrameRecord), arm(0x1100, kFrameRecord)});
  EXPECT_EQ(unwind({{kPc, kLeaf + 4}, {kArmSp, kStack}}, {0, kCaller + 8, 0, 0, 0}, kArmMask),
            (Chain{kLeaf + 4, kCaller + 7}));
}

TEST_F(ArmUnwindTest, ACutStackIsMarkedWhenAskedTo) {
  run({arm(0x1000, kFrameRecord), arm(0x1100, kFrameRecord)});
  map("[stack]", kStack - 0x1000, 0x3000);
  options.cut_mark = CutMark::All;
  const std::map<int, std::uint64_t> registers{{kPc, kLeaf + 4}, {kArmSp, kStack}};
  EXPECT_EQ(unwind(registers, {0, kCaller + 8, 0}, kArmMask),
            (Chain{kLeaf + 4, kCaller + 7, ~std::uint64_t{0}}));
  EXPECT_EQ(unwind(registers, {0, kCaller + 8, 0, 0, 0}, kArmMask), (Chain{kLeaf + 4, kCaller + 7}))
      << "a return address of zero was copied: nobody called it";
}

TEST_F(ArmUnwindTest, TheLinkRegisterAloneTellsWhoCalledALeaf) {
  run({arm(0x1000, {}), arm(0x1100, kFrameRecord), arm(0x1200, {0x2d})});
  const auto caller_of = [&](std::uint64_t pc, std::uint64_t link) {
    format::Sample sample;
    sample.pid = sample.tid = 7;
    sample.user_registers = {2, 1U << kLr,
                             format::U64Array(std::as_bytes(std::span(&link, 1)), std::endian::native)};
    return unwinder().caller_of_leaf(sample, spaces.version(sample.pid), pc);
  };
  EXPECT_EQ(caller_of(kLeaf + 4, kMain + 16), kMain + 15);
  EXPECT_EQ(caller_of(kMain + 4, (kLeaf + 16) | 0x2a5f000000000000), kLeaf + 15) << "it was signed";
  EXPECT_FALSE(caller_of(kCaller + 4, kMain + 16)) << "it keeps its return address on the stack";
  features.environment.arch = "x86_64";
  EXPECT_FALSE(caller_of(kLeaf + 4, kMain + 16));
}

// arm64.so as clang and lld made it: its code lies at 0x3ec in the file and at 0x103ec in memory.
TEST_F(ArmUnwindTest, ACompilersOwnRulesLeadThroughItsFrames) {
  constexpr std::uint64_t kInLeaf = kLoad + 0x444, kInMiddle = kLoad + 0x428, kInOuter = kLoad + 0x480;
  root.copy(std::string(TACHO_TEST_DATA) + "/arm64.so", "/lib/arm64.so");
  map("/lib/arm64.so", kLoad, 0x1000, "0123456789abcdef0123456789abcdef01234568");
  std::vector<std::uint64_t> stack(50);
  constexpr std::size_t kMiddlesFrame = 352 / 8;  // words
  stack[kMiddlesFrame - 2] = kInOuter;            // x30 at CFA - 16
  stack[kMiddlesFrame] = kLoad + 0x404;           // of outer, at CFA - 32: called from somewhere in middle
  EXPECT_EQ(unwind({{kPc, kInLeaf}, {kArmSp, kStack}, {kLr, kInMiddle}}, stack, kArmMask),
            (Chain{kInLeaf, kInMiddle - 1, kInOuter - 1, kLoad + 0x403}))
      << "the leaf kept its return address in the register, the others on the stack";
}

TEST_F(ArmUnwindTest, WithoutAHeaderTheMachineIsToldByItsRegisters) {
  features.environment.arch.reset();
  run({arm(0x1000, {}), arm(0x1200, {0x07, 30})});
  EXPECT_EQ(unwind({{kPc, kLeaf + 4}, {kArmSp, kStack}, {kLr, kMain + 8}}, {0, 0, 0}, kArmMask),
            (Chain{kLeaf + 4, kMain + 7}));
}

TEST(Unwinder, KnowsEventsThatCarryTheLinkRegisterAlone) {
  format::EventAttr attr;
  attr.sample_type = abi::kSampleRegsUser;
  attr.sample_regs_user = 1U << kLr;
  EXPECT_TRUE(Unwinder::has_only_link_register(attr));
  attr.sample_regs_user = kArmMask;
  EXPECT_FALSE(Unwinder::has_only_link_register(attr));
  attr.sample_regs_user = 1U << kLr;
  attr.sample_type |= abi::kSampleStackUser;
  EXPECT_FALSE(Unwinder::has_only_link_register(attr));
}

TEST(Unwinder, TellsWhichEventsCarryWhatItNeeds) {
  format::EventAttr attr;
  attr.sample_type = abi::kSampleRegsUser;
  EXPECT_FALSE(Unwinder::can_unwind(attr));
  attr.sample_type |= abi::kSampleStackUser;
  EXPECT_TRUE(Unwinder::can_unwind(attr));
}

}  // namespace
}  // namespace tacho::symbolize
