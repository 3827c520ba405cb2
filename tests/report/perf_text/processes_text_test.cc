#include <gtest/gtest.h>

#include <string>

#include "report/perf_text/header_text.h"

namespace tacho::report {
namespace {

const std::string kHead = "pid\tpids\tstart_ns\tpid_namespace\tmount_namespace\tcgroup\texecutable\n";

std::string shown(const std::string& table) {
  TextBuffer out;
  write_processes(out, table, Names::Safe);
  return std::string(out.view());
}

TEST(ProcessesText, WhoHasOtherNumbersInsideIsShown) {
  EXPECT_EQ(
      shown(kHead + "1\t1\t0\t5\t6\t/\t/sbin/init\n" +
            "812\t812,7,1\t12345678901\t8\t9\t/docker/4f\t/usr/sbin/nginx\n"),
      "# process : 812 (7,1 inside), /usr/sbin/nginx, started 12.345 s after boot, cgroup /docker/4f, mount "
      "namespace 9\n"
      "# processes : 2 ran at the start, 1 of them in a pid namespace of their own\n");
}

TEST(ProcessesText, DamageIsPassedOver) {
  const std::string none = "# processes : 0 ran at the start, 0 of them in a pid namespace of their own\n";
  for (const std::string& table : {std::string(), kHead, kHead + "x\ty\n\n\t\t\t", std::string("no line end"),
                                   kHead + "1,2\t1,2\t-1\t0\t0\t\t\n"})
    EXPECT_EQ(shown(table), none) << table;
  const std::string hostile = shown(kHead + "8\t8,\x1b[2J\t0\t0\t0\t\x1b]0;x\x07\t\n");
  EXPECT_EQ(hostile.find('\x1b'), std::string::npos) << hostile;
}

TEST(ProcessesText, OfVeryManyTheFirstAreShown) {
  std::string table = kHead;
  for (int i = 0; i < 1000; ++i) table += "8\t8,1\t0\t0\t0\t/\t\n";
  const std::string text = shown(table);
  EXPECT_LT(text.size(), 30'000U);
  EXPECT_NE(text.find("# processes : 1000 ran at the start, 1000 of them"), std::string::npos);
}

}  // namespace
}  // namespace tacho::report
