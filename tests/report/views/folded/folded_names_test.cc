#include <gtest/gtest.h>

#include "report/views/folded/folded.h"

namespace tacho::report {
namespace {

using symbolize::Frame;
using symbolize::LineState;
using symbolize::Module;
using symbolize::ModuleKind;

Frame frame_in(const Module& module, std::string_view function) {
  Frame frame;
  frame.module = &module;
  frame.function = function;
  return frame;
}

TEST(ExpandedName, IsTheWholeNameAndWithContextItsPlace) {
  const Module program{ModuleKind::User, "/usr/bin/app", "app", {}, {}};
  Frame frame = frame_in(program, "run(int, char const*)");
  EXPECT_EQ(expanded_name(frame, Context::None), "run(int, char const*)");
  EXPECT_EQ(expanded_name(frame, Context::FileAndLine), "run(int, char const*):?\?:?");
  frame.line_state = LineState::Known;
  frame.file = "/src/app/run.cc";
  EXPECT_EQ(expanded_name(frame, Context::FileAndLine), "run(int, char const*):run.cc:?");
  frame.line = 12;
  EXPECT_EQ(expanded_name(frame, Context::FileAndLine), "run(int, char const*):run.cc:12");
}

TEST(ExpandedName, IsNothingWhereAddr2lineIsNotAsked) {
  const Module kernel{ModuleKind::Kernel, "[kernel.kallsyms]", "[kernel.kallsyms]", {}, {}};
  const Module jit{ModuleKind::Anonymous, "/tmp/perf-1.map", "perf-1.map", {}, {}};
  const Module program{ModuleKind::User, "/usr/bin/app", "app", {}, {}};
  EXPECT_EQ(expanded_name(frame_in(kernel, "do_idle"), Context::None), std::nullopt);
  EXPECT_EQ(expanded_name(frame_in(jit, "f"), Context::None), std::nullopt);
  EXPECT_EQ(expanded_name(frame_in(program, ""), Context::None), std::nullopt);
  EXPECT_EQ(expanded_name(frame_in(program, "memcpy@plt"), Context::FileAndLine), std::nullopt);
  EXPECT_EQ(expanded_name(Frame{}, Context::None), std::nullopt);
}

}  // namespace
}  // namespace tacho::report
