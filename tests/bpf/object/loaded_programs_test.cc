#include "bpf/object/loaded_programs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "bpf/user_object.h"
#include "tests/bpf/live_support.h"

namespace tacho::bpf {
namespace {

TEST(LoadedPrograms, AProgramOfOursIsListedWithItsSymbolAndInfo) {
  if (const std::string why = live::why_skip(); !why.empty()) GTEST_SKIP() << why;
  const live::Source source(
      "static __attribute__((noinline)) int helper(void *ctx) { return OUT(1); }\n"
      "SEC(\"tracepoint/syscalls/sys_enter_getppid\") int a_program_with_a_rather_long_name(void *ctx)"
      "{ return helper(ctx); }\n");
  auto object = UserObject::open(source.path(), {});
  ASSERT_TRUE(object) << object.error().what;
  const auto loaded = object->load();
  ASSERT_TRUE(loaded) << loaded.error().what;
  const std::uint32_t id = loaded->programs().at(0).id;

  const auto programs = loaded_programs();
  ASSERT_TRUE(programs) << programs.error().what;
  const auto ours = std::ranges::find(*programs, id, &LoadedProgram::id);
  ASSERT_NE(ours, programs->end());
  if (ours->symbols.empty())
    GTEST_SKIP() << "the kernel shows no addresses of BPF programs (no JIT, or kptr_restrict)";
  ASSERT_EQ(ours->symbols.size(), 3u) << "the program, its function, and the one that OUT() calls";
  EXPECT_TRUE(ours->symbols[0].name.starts_with("bpf_prog_"));
  EXPECT_TRUE(ours->symbols[0].name.ends_with("_a_program_with_a_rather_long_name")) << ours->symbols[0].name;
  for (const std::string_view name : {"_helper", "_tacho_walk_stack"})
    EXPECT_TRUE(std::ranges::any_of(ours->symbols, [name](const auto& symbol) {
      return symbol.name.ends_with(name);
    })) << name;
  EXPECT_GT(ours->symbols[0].length, 0u);
  EXPECT_GT(ours->btf.id, 0u);
  EXPECT_FALSE(ours->btf.bytes.empty());

  // The blob is struct bpf_prog_info: its id stands after the type, and jited_prog_len, at byte 16, is the
  // length of the first array in data.
  format::Cursor info(ours->info.info);
  info.u32();
  EXPECT_EQ(info.u32(), id);
  EXPECT_EQ(std::memcmp(info.take_bytes(8).data(), ours->tag.data(), 8), 0);
  const std::uint32_t code = info.u32();
  EXPECT_NE(ours->info.arrays & 1U, 0u);
  EXPECT_LE(code, ours->info.data.size());
  EXPECT_EQ(ours->info.data.size() % 8, 0u);
}

}  // namespace
}  // namespace tacho::bpf
