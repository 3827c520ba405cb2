#include "record/host/report_program.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <functional>
#include <string>
#include <utility>

namespace tacho::record {
namespace {

Result<std::string> ask_shell(const std::string& script, std::chrono::seconds longest,
                              std::function<bool()> stop = {}) {
  return ask_report_program("/bin/sh",
                            {.arguments = {"-c", script}, .longest = longest, .stop = std::move(stop)});
}

TEST(ReportProgram, GivesWhatItPrinted) {
  const auto said = ask_shell("echo one; echo two", std::chrono::seconds(60));
  ASSERT_TRUE(said) << said.error().what;
  EXPECT_EQ(*said, "one\ntwo\n");
}

TEST(ReportProgram, ItsFailureIsTold) {
  EXPECT_EQ(ask_shell("exit 3", std::chrono::seconds(60)).error().what, "tacho-report ended with status 3");
  EXPECT_EQ(ask_shell("kill -9 $$", std::chrono::seconds(60)).error().what, "tacho-report died of signal 9");
}

// Each would last longer than any test may.
TEST(ReportProgram, IsNotWaitedForWithoutEnd) {
  for (const char* script : {"sleep 100000", "exec >&-; sleep 100000"}) {
    const auto late = ask_shell(script, std::chrono::seconds(1));
    ASSERT_FALSE(late) << script;
    EXPECT_EQ(late.error().what, "tacho-report took more than 1 s") << script;
    int asked = 0;
    const auto stopped = ask_shell(script, std::chrono::seconds(100000), [&asked] { return ++asked > 3; });
    ASSERT_FALSE(stopped) << script;
    EXPECT_EQ(stopped.error().code, EINTR) << script;
  }
}

}  // namespace
}  // namespace tacho::record
