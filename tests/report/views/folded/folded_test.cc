#include "report/views/folded/folded.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace tacho::report {
namespace {

std::string fold(std::string_view line, FoldOptions options = {}, bool is_java = false) {
  std::string joined;
  for (const std::string& name : fold_frame(line, options, is_java))
    joined += (joined.empty() ? "" : ";") + name;
  return joined;
}

TEST(FoldFrame, KeepsTheFunctionWithoutItsOffset) {
  EXPECT_EQ(fold("\t            1272 mix+0x22 (/tmp/c/spin)\n"), "mix");
  EXPECT_EQ(fold("\t 1 operator+0x (/x)\n"), "operator+0x") << "no digits: part of the name";
}

TEST(FoldFrame, FilesThatWereDeletedLeaveNoOffset) {
  EXPECT_EQ(fold("\t 1272 mix(int)+0x22 (/tmp/c/spin (deleted))\n"), "mix");
  EXPECT_EQ(fold("\t 1272 run+0x22 (/memfd:code (1) (deleted))\n"), "run");
}

TEST(FoldFrame, NamesUnknownCodeByItsModule) {
  EXPECT_EQ(fold("\t 891f5 [unknown] (/usr/lib/libc.so.6)\n"), "[libc.so.6]");
  EXPECT_EQ(fold("\t 891f5 [unknown] ([unknown])\n"), "[unknown]");
  EXPECT_EQ(fold("\t 891f5 [unknown] ([vdso])\n"), "[[vdso]]");
  EXPECT_EQ(fold("\t 891f5 [unknown] (/x/a.so)\n", {.marks = {.addresses = true}}), "[a.so <891f5>]");
}

TEST(FoldFrame, MarksKernelAndJitWhenAsked) {
  const FoldOptions all{.marks = {.kernel = true, .jit = true}};
  EXPECT_EQ(fold("\tffffffff81000000 schedule+0x1 ([kernel.kallsyms])\n", all), "schedule_[k]");
  EXPECT_EQ(fold("\t 1 run+0x1 (/tmp/perf-12.map)\n", all), "run_[j]");
  EXPECT_EQ(fold("\t 1 run+0x1 ([unknown])\n", all), "run");
}

TEST(FoldFrame, CutsParametersButNotAnonymousNamespaces) {
  EXPECT_EQ(fold("\t 1 geo::area(double, int)+0x1 (/x)\n"), "geo::area");
  EXPECT_EQ(fold("\t 1 (anonymous namespace)::run(int)+0x1 (/x)\n"), "")
      << "a line that begins so is skipped";
  EXPECT_EQ(fold("\t 1 ns::(anonymous namespace)::run(int)+0x1 (/x)\n"), "ns::(anonymous namespace)::run");
  EXPECT_EQ(fold("\t 1 net/http.(*Client).Do+0x1 (/x)\n"), "net/http.(*Client).Do");
}

TEST(FoldFrame, SeparatorsDoNotComeFromNames) { EXPECT_EQ(fold("\t 1 a;b\"c'+0x1 (/x)\n"), "a:bc"); }

TEST(FoldFrame, TakesInlinedJitFramesApart) {
  EXPECT_EQ(fold("\t 1 outer->inner+0x1 (/x)\n"), "outer;inner_[i]");
}

TEST(FoldFrame, TidiesJava) {
  EXPECT_EQ(fold("\t 1 Ljava/io/PrintStream;::print+0x1 (/x)\n", {}, true), "java/io/PrintStream:::print");
  EXPECT_EQ(fold("\t 1 Ljava/io/PrintStream;::print+0x1 (/x)\n", {}, false), "Ljava/io/PrintStream:::print");
}

TEST(FoldStart, FindsTheShortestNameWithANumberAfter) {
  FoldedStart start;
  ASSERT_TRUE(fold_start("two words 867 [000]  1.5:    10 cpu-clock: ", start));
  EXPECT_EQ(start.comm, "two words");
  EXPECT_EQ(start.tid, "867");
  ASSERT_TRUE(fold_start("trail     945  1450.909191:    5 cpu-clock: ", start));
  EXPECT_EQ(start.comm, "trail");
  EXPECT_FALSE(fold_start("  lead   12  1.5:  10 cpu-clock: ", start)) << "a blank in front";
  EXPECT_FALSE(fold_start("nothing", start));
  ASSERT_TRUE(fold_last_start("one\ntwo 3 867 [000]  1.5:    10 cpu-clock: ", start))
      << "its name has two lines";
  EXPECT_EQ(start.comm, "two");
  EXPECT_EQ(start.tid, "3");
  EXPECT_FALSE(fold_last_start("one\n 867 [000]  1.5:    10 cpu-clock: ", start));
}

void add(FoldedStacks& stacks, const std::vector<std::uint32_t>& stack, std::uint64_t weight) {
  stacks.add_weight(stacks.stacks().id_of(stack), weight);
}

TEST(FoldedStacks, AddsUpEqualStacksAndSortsLines) {
  FoldedStacks stacks(Names::Safe);
  const auto b = stacks.name("b"), a = stacks.name("a;x"), leaf = stacks.name("leaf");
  add(stacks, {b, leaf}, 2);
  add(stacks, {a}, 1);
  add(stacks, {b, leaf}, 3);
  char path[] = "/tmp/tacho-folded.XXXXXX";
  const int fd = ::mkstemp(path);
  ASSERT_GE(fd, 0);
  ::unlink(path);
  TextOutput out(fd);
  stacks.write(out);
  ASSERT_TRUE(out.finish());
  char text[64] = {};
  ASSERT_GT(::pread(fd, text, sizeof text - 1, 0), 0);
  EXPECT_STREQ(text, "a:x 1\nb;leaf 5\n");
  ::close(fd);
}

std::string lines_of(FoldedStacks& stacks) {
  TextOutput out(-1);
  stacks.write(out);
  return std::string(out.view());
}

TEST(FoldedStacks, DifferentNamesAreDifferentFrames) {
  FoldedStacks stacks(Names::Safe);
  for (const std::string_view name : {"a;b", "a:b", "c;d", "#1", "f 12", "f"})
    add(stacks, {stacks.name(name)}, 1);
  EXPECT_EQ(lines_of(stacks), "\\x231 1\na:b 1\na\\x3bb 1\nc:d 1\nf 1\nf\\x2012 1\n");
}

TEST(FoldedStacks, OverloadsHaveParameters) {
  FoldedStacks stacks(Names::Safe);
  const auto one = stacks.name("A::f", "_ZN1A1fEi"), other = stacks.name("A::f", "_ZN1A1fEl");
  add(stacks, {one}, 1);
  add(stacks, {other}, 2);
  EXPECT_EQ(lines_of(stacks), "A::f(int) 1\nA::f(long) 2\n");
}

TEST(FoldedStacks, LinesThatReadAlikeAreOne) {
  FoldedStacks stacks(Names::Safe);
  const auto known = stacks.name("f", "_Z1fi"), unknown = stacks.name("f"), leaf = stacks.name("leaf");
  add(stacks, {known, leaf}, 1);
  add(stacks, {known}, 4);
  add(stacks, {unknown, leaf}, 2);
  EXPECT_EQ(lines_of(stacks), "f 4\nf;leaf 3\n");
}

TEST(FoldedStacks, LinesAreOrderedByTheirBytes) {
  FoldedStacks stacks(Names::Safe);
  const std::vector<std::vector<std::string>> all = {{"a", "b"},   {"a"},        {"a b"},
                                                     {"a b", "c"}, {"a", "b c"}, {"a", "b", "c"},
                                                     {"a~", "b"},  {"a:b", "c"}, {"a:b"}};
  std::vector<std::string> wanted;
  for (const auto& names : all) {
    std::vector<std::uint32_t> numbers;
    std::string line;
    for (const std::string& name : names) {
      numbers.push_back(stacks.name(name));
      line += (line.empty() ? "" : ";") + name;
    }
    add(stacks, numbers, 1);
    wanted.push_back(line);
  }
  std::ranges::sort(wanted);
  TextOutput out(-1);
  stacks.write(out);
  std::string text;
  for (const std::string& line : wanted) text += line + " 1\n";
  EXPECT_EQ(out.view(), text);
}

}  // namespace
}  // namespace tacho::report
