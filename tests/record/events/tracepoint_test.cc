#include "record/events/tracepoint.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace tacho::record {
namespace {

namespace fs = std::filesystem;

class FakeTracefs : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "tacho-tracefs-XXXXXX").string();
    root = mkdtemp(pattern.data());
    event("sched", "sched_switch", 11);
    event("sched", "sched_waking", 12);
    event("irq", "irq_entry", 3);
    fs::create_directories(root / "events/ftrace/function");  // has no id
  }
  void TearDown() override { fs::remove_all(root); }
  void event(const std::string& system, const std::string& name, int id) {
    const fs::path folder = root / "events" / system / name;
    fs::create_directories(folder);
    std::ofstream(folder / "id") << id << "\n";
    std::ofstream(folder / "format") << "name: " << name << "\nID: " << id << "\n";
  }
  fs::path root;
};

TEST_F(FakeTracefs, GlobsGiveEveryTracepointInOrder) {
  const auto found = Tracefs(root.string()).matching("sched", "sched_*");
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ((*found)[0].name, "sched_switch");
  EXPECT_EQ((*found)[0].id, 11u);
  EXPECT_EQ((*found)[1].id, 12u);
}

TEST_F(FakeTracefs, UnknownNamesComeWithTheNearest) {
  const Tracefs tracefs(root.string());
  const auto event = tracefs.matching("sched", "sched_swich");
  ASSERT_FALSE(event);
  EXPECT_EQ(event.error().fault, Fault::Use);
  EXPECT_NE(event.error().what.find("did you mean 'sched_switch'"), std::string::npos) << event.error().what;
  const auto system = tracefs.matching("shed", "sched_switch");
  ASSERT_FALSE(system);
  EXPECT_NE(system.error().what.find("did you mean 'sched'"), std::string::npos) << system.error().what;
  EXPECT_FALSE(tracefs.matching("ftrace", "function")) << "ftrace's own entries are no perf events";
}

TEST_F(FakeTracefs, FormatsTravelBySystem) {
  const Tracefs tracefs(root.string());
  const std::vector<Tracepoint> wanted{{"sched", "sched_waking", 12}, {"irq", "irq_entry", 3}};
  const auto data = tracefs.formats_of(wanted);
  ASSERT_TRUE(data);
  ASSERT_EQ(data->formats.size(), 2u);
  EXPECT_EQ(data->formats[0].system, "irq");
  EXPECT_EQ(data->formats[1].text, "name: sched_waking\nID: 12\n");
}

}  // namespace
}  // namespace tacho::record
