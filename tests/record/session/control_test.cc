#include "record/session/control.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "record/plan/plan.h"

namespace tacho::record {

namespace {

using Kind = ControlCommand::Kind;

TEST(Control, PlacesAreDescriptorsOrFifos) {
  EXPECT_EQ(parse_control("fd:3")->commands, "3");
  EXPECT_EQ(parse_control("fd:3,14")->answers, "14");
  EXPECT_EQ(parse_control("fifo:/run/a,b")->commands, "/run/a");
  EXPECT_TRUE(parse_control("fifo:/run/a,b")->is_fifo);
  for (const char* text : {"", "fd:", "fd:x", "fd:3,", "fd:3,x", "fd:-1", "fifo:", "fifo:,a", "/run/a", "3"})
    EXPECT_FALSE(parse_control(text)) << text;
}

TEST(Control, CommandsAreThoseOfPerf) {
  EXPECT_EQ(parse_command("enable").kind, Kind::Enable);
  EXPECT_EQ(parse_command("disable sched:sched_switch").argument, "sched:sched_switch");
  EXPECT_EQ(parse_command("evlist -v").kind, Kind::EventList);
  EXPECT_EQ(parse_command("snapshot").kind, Kind::Snapshot);
  EXPECT_EQ(parse_command("stop").kind, Kind::Stop);
  EXPECT_EQ(parse_command("ping").kind, Kind::Ping);
  for (const char* line : {"", "Enable", "stop now", "enabled", " ping"})
    EXPECT_EQ(parse_command(line).kind, Kind::Unknown) << line;
}

class ControlPipes : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(pipe(commands), 0);
    ASSERT_EQ(pipe(answers), 0);
    auto opened = Control::open({false, std::to_string(commands[0]), std::to_string(answers[1])});
    ASSERT_TRUE(opened);
    control.emplace(std::move(*opened));
  }
  void TearDown() override {
    for (const int fd : {commands[0], commands[1], answers[0], answers[1]}) {
      if (fd >= 0) close(fd);
    }
  }
  void send(std::string_view text) const {
    ASSERT_EQ(write(commands[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  int commands[2] = {-1, -1}, answers[2] = {-1, -1};
  std::optional<Control> control;
};

TEST_F(ControlPipes, LinesMayComeInPieces) {
  EXPECT_TRUE(control->take_commands().empty());
  send("ena");
  EXPECT_TRUE(control->take_commands().empty());
  send("ble\nping\n\nst");
  const auto two = control->take_commands();
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].kind, Kind::Enable);
  EXPECT_EQ(two[1].kind, Kind::Ping);
  send(std::string("op\0", 3));  // as perf's own clients may end a line
  EXPECT_EQ(control->take_commands().at(0).kind, Kind::Stop);
}

TEST_F(ControlPipes, AFloodWithoutLinesTakesNoMemory) {
  for (int i = 0; i < 10; ++i) {
    send(std::string(4096, 'x'));
    EXPECT_TRUE(control->take_commands().empty());
  }
  send("\nping\n");
  const auto two = control->take_commands();
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].kind, Kind::Unknown);
  EXPECT_LE(two[0].argument.size(), 1024u);
  EXPECT_EQ(two[1].kind, Kind::Ping);
}

TEST_F(ControlPipes, AnswersAreLines) {
  control->acknowledge();
  control->refuse("no");
  char text[64] = {};
  ASSERT_GT(read(answers[0], text, sizeof text - 1), 0);
  EXPECT_STREQ(text, "ack\nerror: no\n");
}

TEST_F(ControlPipes, TheEndOfTheOtherSideIsSeen) {
  close(commands[1]);
  commands[1] = -1;
  EXPECT_TRUE(control->take_commands().empty());
  EXPECT_TRUE(control->is_closed());
}

TEST(Control, WhatIsNoFifoIsRefused) {
  std::string pattern = (std::filesystem::temp_directory_path() / "tacho-control-XXXXXX").string();
  const std::string folder = mkdtemp(pattern.data());
  std::ofstream(folder + "/file") << "stop\n";
  EXPECT_NE(Control::open({true, folder + "/file", ""}).error().what.find("not a FIFO"), std::string::npos);
  EXPECT_NE(Control::open({true, folder + "/none", ""}).error().what.find("mkfifo"), std::string::npos);
  EXPECT_FALSE(Control::open({false, "987654", ""}));
  ASSERT_EQ(mkfifo((folder + "/fifo").c_str(), 0600), 0);
  EXPECT_TRUE(Control::open({true, folder + "/fifo", ""}));
  ASSERT_EQ(chmod((folder + "/fifo").c_str(), 0666), 0);
  if (geteuid() == 0) {
    EXPECT_FALSE(Control::open({true, folder + "/fifo", ""})) << "anybody could direct root's recording";
  }
  std::filesystem::remove_all(folder);
}

}  // namespace

// Who asks for a snapshot is answered when it is written, whatever else goes on.

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
    commander.emplace(
        *control, *events,
        ControlHandler::Callbacks{[] {}, [] { return Result<>(Done{}); }, [](std::string_view) {}});
  }
  void TearDown() override {
    close(commands[1]);
    close(answers[0]);
  }
  void ask(const std::string& lines) {
    ASSERT_EQ(write(commands[1], lines.data(), lines.size()), static_cast<ssize_t>(lines.size()));
    commander->handle_commands();
  }
  std::string answered() {
    std::array<char, 256> text{};
    const ssize_t size = read(answers[0], text.data(), text.size());
    return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
  }

  std::array<int, 2> commands{-1, -1}, answers{-1, -1};
  std::optional<Control> control;
  std::optional<KernelEvents> events;
  std::optional<ControlHandler> commander;
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
  commander->answer_waiting({});
  EXPECT_EQ(answered(), "ack\nack\n");
  ask("snapshot\n");
  commander->answer_waiting(Error{"the disk is full"});
  EXPECT_EQ(answered(), "error: the disk is full\n");
}

}  // namespace

}  // namespace tacho::record
