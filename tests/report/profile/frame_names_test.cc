#include <gtest/gtest.h>

#include "report/profile/function_table.h"

namespace tacho::report {
namespace {

std::string fold(std::string_view function, std::string_view path, symbolize::ModuleKind kind,
                 FrameMarks marks = {}) {
  symbolize::Module module;
  module.path = path;
  module.kind = kind;
  symbolize::Frame frame;
  frame.module = &module;
  frame.function = function;
  frame.shown_address = 0x891f5;
  std::string joined;
  for (const std::string& name : names_of_frame(frame, marks, false))
    joined += (joined.empty() ? "" : ";") + name;
  return joined;
}

TEST(NamesOfFrame, NamesOfFilesAreWhole) {
  using enum symbolize::ModuleKind;
  for (const std::string_view name : {"(anonymous namespace)::run", "f::operator()", "f::operator->",
                                      "core::ops::FnOnce::call_once<fn(&str) -> u8>", "a'b"})
    EXPECT_EQ(fold(name, "/x", User), name);
  EXPECT_EQ(fold("outer(int)->inner(int)", "/tmp/perf-12.map", User), "outer;inner_[i]")
      << "a JIT compiler's";
}

TEST(NamesOfFrame, CodeWithoutANameIsItsModules) {
  using enum symbolize::ModuleKind;
  EXPECT_EQ(fold("", "/usr/lib/libc.so.6", User), "[libc.so.6]");
  EXPECT_EQ(fold("", "/tmp/prog (deleted)", User), "[prog]");
  EXPECT_EQ(fold("", "[vdso]", Vdso), "[vdso]");
  EXPECT_EQ(fold("", "/x/a.so", User, {.addresses = true}), "[a.so <891f5>]");
}

TEST(NamesOfFrame, MarksByTheModulesKind) {
  using enum symbolize::ModuleKind;
  const FrameMarks all{.kernel = true, .jit = true};
  EXPECT_EQ(fold("schedule", "[kernel.kallsyms]", Kernel, all), "schedule_[k]");
  EXPECT_EQ(fold("read", "[vdso]", Vdso, all), "read") << "code of the process";
  EXPECT_EQ(fold("run", "/tmp/perf-12.map", User, all), "run_[j]");
}

}  // namespace
}  // namespace tacho::report
