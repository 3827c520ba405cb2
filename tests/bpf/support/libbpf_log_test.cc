#include "bpf/support/libbpf_log.h"

#include <bpf/libbpf.h>
#include <gtest/gtest.h>

namespace tacho::bpf {
namespace {

constexpr std::string_view kRefused =
    "libbpf: prog 'fine': something to know\n"
    "libbpf: prog 'on_read': BPF program load failed: Permission denied\n"
    "libbpf: prog 'on_read': -- BEGIN PROG LOAD LOG --\n"
    "0: R1=ctx() R10=fp0\n"
    "libbpf: prog 'fake': a line of the verifier may say anything\n"
    "1: (71) r0 = *(u8 *)(r1 +0)\n"
    "R1 invalid mem access 'scalar'\n"
    "processed 2 insns\n"
    "-- END PROG LOAD LOG --\n"
    "libbpf: prog 'on_read': failed to load: -13\n"
    "libbpf: failed to load object 'bigreads'\n";

TEST(LibbpfLog, TheRefusedProgramIsTheLastOneNamed) {
  EXPECT_EQ(refused_program(kRefused), "on_read");
  EXPECT_EQ(refused_program("libbpf: map 'x': failed to create\n"), "");
  EXPECT_EQ(refused_program("libbpf: prog 'cut"), "");
  EXPECT_EQ(refused_program(""), "");
}

TEST(LibbpfLog, OnlyTheLastLinesOfTheVerifierAreShown) {
  EXPECT_EQ(verifier_tail(kRefused, 2), "  R1 invalid mem access 'scalar'\n  processed 2 insns");
  EXPECT_EQ(verifier_tail(kRefused, 99).substr(0, 22), "  0: R1=ctx() R10=fp0\n");
  EXPECT_EQ(verifier_tail("libbpf: nothing of the verifier\n", 20), "");
}

TEST(LibbpfLog, OwnLinesComeWithoutTheVerifiersAndWithoutTheMisleadingAdvice) {
  EXPECT_EQ(libbpf_lines(kRefused).size(), 4u);
  const auto lines = libbpf_lines(
      "libbpf: permission error while running as root; try raising 'ulimit -l'? current value: 8.0 MiB\n"
      "libbpf: failed to load object 'x'\n"
      "no line of libbpf\n");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0], "failed to load object 'x'");
}

// Something that libbpf warns about.
void make_libbpf_warn() {
  const char not_elf[64] = "";
  EXPECT_EQ(bpf_object__open_mem(not_elf, sizeof not_elf, nullptr), nullptr);
}

TEST(LibbpfLog, CollectsForTheInnermostAndGivesBackAfterwards) {
  LibbpfLog outer;
  {
    LibbpfLog inner;
    make_libbpf_warn();
    EXPECT_NE(inner.text(), "");
    EXPECT_EQ(outer.text(), "");
  }
  make_libbpf_warn();
  EXPECT_NE(outer.text(), "");
}

}  // namespace
}  // namespace tacho::bpf
