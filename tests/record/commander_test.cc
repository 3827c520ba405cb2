// Who asks for a snapshot is answered when it is written, whatever else goes on.
#include "record/commander.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>

#include "record/plan.h"

namespace tacho::record {
namespace {

class Snapshots : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(pipe(commands.data()), 0);
    ASSERT_EQ(pipe2(answers.data(), O_NONBLOCK), 0);
    auto opened = Control::open({false, std::to_string(commands[0]), std::to_string(answers[1])});
    ASSERT_TRUE(opened) << opened.error().what;
    control.emplace(std::move(*opened));
    Plan plan;  // of no event
    auto none = KernelEvents::open(plan, Host{}, {});
    ASSERT_TRUE(none) << none.error().what;
    events.emplace(std::move(*none));
    commander.emplace(*control, *events,
                      Commander::Means{[] {}, [] { return Result<>(Done{}); }, [](std::string_view) {}});
  }
  void TearDown() override {
    close(commands[1]);
    close(answers[0]);
  }
  void ask(const std::string& lines) {
    ASSERT_EQ(write(commands[1], lines.data(), lines.size()), static_cast<ssize_t>(lines.size()));
    commander->obey();
  }
  std::string answered() {
    std::array<char, 256> text{};
    const ssize_t size = read(answers[0], text.data(), text.size());
    return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
  }

  std::array<int, 2> commands{-1, -1}, answers{-1, -1};
  std::optional<Control> control;
  std::optional<KernelEvents> events;
  std::optional<Commander> commander;
};

TEST_F(Snapshots, WhoAsksWhileOneIsWrittenWaitsForTheNext) {
  ask("snapshot\nsnapshot\n");
  EXPECT_EQ(answered(), "");
  commander->snapshot_begun();
  ask("snapshot\n");
  commander->snapshot_done();
  EXPECT_EQ(answered(), "ack\nack\n") << "the third one's file is not written yet";
  commander->snapshot_done();
  EXPECT_EQ(answered(), "");
  commander->snapshot_begun();
  commander->snapshot_done();
  EXPECT_EQ(answered(), "ack\n");
}

TEST_F(Snapshots, TheEndAnswersAll) {
  ask("snapshot\n");
  commander->snapshot_begun();
  ask("snapshot\n");
  commander->end({});
  EXPECT_EQ(answered(), "ack\nack\n");
  ask("snapshot\n");
  commander->end(Error{"the disk is full"});
  EXPECT_EQ(answered(), "error: the disk is full\n");
}

}  // namespace
}  // namespace tacho::record
