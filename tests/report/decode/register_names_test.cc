#include <gtest/gtest.h>
#include <sys/utsname.h>

#include "report/decode/coded_values.h"

namespace tacho::report {
namespace {

TEST(RegisterNames, AreThoseOfTheRecordedMachine) {
  EXPECT_EQ(register_name(register_machine("x86_64"), 0), "AX");
  EXPECT_EQ(register_name(register_machine("aarch64"), 30), "lr");
  EXPECT_EQ(register_name(register_machine("vax"), 0), "unknown");
}

// perf script takes it for recorded here.
TEST(RegisterNames, OfACaptureThatDoesNotSayAreThoseOfThisMachine) {
  utsname running{};
  ASSERT_EQ(::uname(&running), 0);
  EXPECT_EQ(register_machine(std::nullopt), running.machine);
}

}  // namespace
}  // namespace tacho::report
