#include "record/stat/stat_output.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "format/records/perf_abi.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

CountedEvent event(const std::string& name, std::uint32_t type, std::uint64_t config) {
  CountedEvent counted;
  counted.planned.attr.type = type;
  counted.planned.attr.config = config;
  counted.planned.name = name;
  return counted;
}

StatRow row(std::size_t event, double count, double enabled = 1e6, double running = 1e6) {
  StatRow made{.event = event};
  made.count.add_value(count);
  made.enabled_ns.add_value(enabled);
  made.running_ns.add_value(running);
  made.is_counted = running != 0;
  return made;
}

class StatOutputTest : public testing::Test {
 protected:
  void SetUp() override {
    options.target.watch = Watch::Command;
    options.command = {"ls", "/"};
    events = {event("task-clock", abi::kSoftware, abi::kTaskClock), event("page-faults", abi::kSoftware, 2),
              event("cycles", abi::kHardware, 0), event("instructions", abi::kHardware, 1)};
    events[2].is_supported = false;
    rows = {row(0, 1'730'000), row(1, 103), row(2, 0), row(3, 0, 0, 0)};
    times.elapsed_s.add_value(0.035419820);
    times.user_s = 0.002855;
  }
  std::string text() const { return stat_text({events, rows, times}, options); }

  StatOptions options;
  std::vector<CountedEvent> events;
  std::vector<StatRow> rows;
  StatTimes times;
};

// Widths as perf 6.1 prints them.
TEST_F(StatOutputTest, TextIsPerfs) {
  EXPECT_EQ(text(),
            "\n Performance counter stats for 'ls /':\n\n"
            "              1.73 msec task-clock                       #    0.049 CPUs utilized          \n"
            "               103      page-faults                      #   59.538 K/sec                  \n"
            "   <not supported>      cycles                                                      \n"
            "     <not counted>      instructions                                                \n"
            "\n       0.035419820 seconds time elapsed\n"
            "\n       0.002855000 seconds user\n       0.000000000 seconds sys\n\n");
}

TEST_F(StatOutputTest, CountersThatWereSharedAreMarked) {
  events[2].is_supported = true;
  rows[2] = row(2, 3'460'000, 1e6, 250'000);
  rows[3] = row(3, 5'190'000);
  const std::string said = text();
  EXPECT_NE(
      said.find("         3,460,000      cycles                           #    2.000 GHz                    "
                "  (25.00%)\n"),
      std::string::npos)
      << said;
  EXPECT_NE(
      said.find(
          "         5,190,000      instructions                     #    1.50  insn per cycle         \n"),
      std::string::npos)
      << said;
}

TEST_F(StatOutputTest, CsvIsPerfs) {
  options.form = StatForm::Csv;
  options.separator = ",";
  EXPECT_EQ(text(),
            "1.73,msec,task-clock,1000000,100.00,0.049,CPUs utilized\n"
            "103,,page-faults,1000000,100.00,59.538,K/sec\n"
            "<not supported>,,cycles,0,100.00,,\n"
            "<not counted>,,instructions,0,100.00,,\n");
}

TEST_F(StatOutputTest, JsonHasALineForEachCountOrOneForAll) {
  rows.resize(3);
  options.form = StatForm::Lines;
  options.rows = StatRows::Cpus;
  rows[1].cpu = 1;
  const std::string lines = text();
  EXPECT_NE(lines.find("{\"cpu\" : \"1\", \"counter-value\" : \"103.000000\", \"unit\" : \"\", \"event\" : "
                       "\"page-faults\", \"event-runtime\" : 1000000, \"pcnt-running\" : 100.00, "
                       "\"metric-value\" : 0.000000, \"metric-unit\" : \"\"}\n"),
            std::string::npos)
      << lines;
  options.form = StatForm::Document;
  options.rows = StatRows::All;
  options.command = {"a\"b\n"};
  const std::string document = text();
  EXPECT_EQ(document.find('\n'), document.size() - 1) << document;
  EXPECT_NE(document.find("\"command\": [\"a\\\"b\\\\x0a\"]"), std::string::npos) << document;
  EXPECT_NE(document.find(
                "{\"event\": \"cycles\", \"count\": null, \"unit\": \"\", \"missing\": \"not supported\""),
            std::string::npos)
      << document;
}

TEST_F(StatOutputTest, ANameOfAThreadDoesNothingToTheTerminal) {
  options.rows = StatRows::Threads;
  rows = {row(1, 100)};
  rows[0].thread = 7;
  rows[0].thread_name = "\033[2Jname";
  for (const StatForm form : {StatForm::Text, StatForm::Csv, StatForm::Lines, StatForm::Document}) {
    options.form = form;
    EXPECT_EQ(text().find('\033'), std::string::npos);
    EXPECT_NE(text().find("[2Jname"), std::string::npos);
  }
}

TEST_F(StatOutputTest, RunsHaveMeansAndErrors) {
  options.runs = 2;
  rows = {row(1, 100)};
  rows[0].count.add_value(110);
  times.elapsed_s = {};
  times.elapsed_s.add_value(0.010);
  times.elapsed_s.add_value(0.014);
  const std::string said = text();
  EXPECT_NE(said.find("for 'ls /' (2 runs):"), std::string::npos) << said;
  EXPECT_NE(
      said.find("               105      page-faults                                                        "
                "  ( +-  4.76% )\n"),
      std::string::npos)
      << said;
  EXPECT_NE(said.find("           0.01200 +- 0.00200 seconds time elapsed  ( +- 16.67% )\n"),
            std::string::npos)
      << said;
}

TEST(Counts, AreScaledToTheWholeTime) {
  EXPECT_EQ(scaled({100, 400, 100}), 400u);
  EXPECT_EQ(scaled({100, 400, 400}), 100u);
  EXPECT_EQ(scaled({0, 400, 0}), 0u);
}

}  // namespace
}  // namespace tacho::record
