#include "report/apart.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <new>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "report/output/text_output.h"

namespace tacho::report {
namespace {

// Views that write to a file, some of which die on their way.
class Apart : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "apart.XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    ::signal(SIGPIPE, SIG_IGN);  // as main() does
    task_.input = "perf.data";
    task_.open_output = [this] { return OutputFile::create(folder_ / "text"); };
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Result<cli::ExitStatus> show() {
    testing::internal::CaptureStderr();
    auto status = show_apart(task_, is_confined_);
    said_ = testing::internal::GetCapturedStderr();
    return status;
  }
  // To a pipe that nobody reads any more.
  Result<cli::ExitStatus> show_to_nobody() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    ::close(ends[0]);
    task_.open_output = [&]() -> Result<OutputFile> { return OutputFile(ends[1]); };
    auto status = show();
    ::close(ends[1]);
    return status;
  }
  std::string text() const {
    std::ifstream file(folder_ / "text");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Shows these lines, of which each needs the names of a file: "/a" ... Where `die` says so at a file, it
  // dies.
  void show_lines(std::vector<std::string> files, std::function<void(const std::string&)> die, bool flushes) {
    task_.show = [=](ApartView& view) -> Result<cli::ExitStatus> {
      TextOutput out(view.channel.open_output(false));
      for (const std::string& file : files) {
        const symbolize::AtFile reading(&view.names, file);
        const bool is_refused = reading.is_refused();
        if (!is_refused) die(file);
        out.text(is_refused ? "?\n" : file + "\n");
        if (flushes) out.flush();
      }
      if (auto done = out.finish(); !done) return std::move(done.error());
      return cli::kWhole;
    };
  }

  std::filesystem::path folder_;
  ApartTask task_;
  bool is_confined_ = false;
  std::string said_;
};

void die_of(const std::string& file, std::string_view deadly) {
  if (file == deadly) ::raise(SIGKILL);
}

TEST_F(Apart, LongTextArrivesWhole) {
  std::string expected;
  for (int i = 0; i < 2'000'000; ++i) expected += std::to_string(i) + '\n';
  task_.show = [&](ApartView& view) -> Result<cli::ExitStatus> {
    TextOutput out(view.channel.open_output(false));
    for (int i = 0; i < 2'000'000; ++i) {
      out.decimal(static_cast<std::uint64_t>(i));
      out.character('\n');
      out.line_end();
    }
    if (auto done = out.finish(); !done) return std::move(done.error());
    return cli::kWhole;
  };
  const auto status = show();
  ASSERT_TRUE(status) << status.error().what;
  EXPECT_EQ(*status, cli::kWhole);
  EXPECT_EQ(text(), expected);
  EXPECT_EQ(said_, "");
}

TEST_F(Apart, AnErrorOfTheViewIsTold) {
  task_.show = [](ApartView&) -> Result<cli::ExitStatus> { return use_error("there is no such key"); };
  const auto status = show();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().what, "there is no such key");
  EXPECT_EQ(status.error().fault, Fault::Use);
  EXPECT_TRUE(is_confined_);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "text"));
}

TEST_F(Apart, AFileThatItDiesOfCostsThatFile) {
  for (const bool flushes : {false, true}) {
    show_lines(
        {"/a", "/b", "/c", "/b", "/d"}, [](const auto& file) { die_of(file, "/b"); }, flushes);
    const auto status = show();
    ASSERT_TRUE(status) << status.error().what;
    EXPECT_EQ(*status, cli::kIncomplete);
    EXPECT_EQ(text(), "/a\n?\n/c\n?\n/d\n");
    EXPECT_EQ(said_, "tacho: perf.data: /b was left out: the process that read it died: Killed\n");
  }
}

TEST_F(Apart, WhatWasWrittenOfAFileStays) {
  // It dies when it reads the file for the third time.
  task_.show = [](ApartView& view) -> Result<cli::ExitStatus> {
    TextOutput out(view.channel.open_output(true));
    for (int i = 0; i < 5; ++i) {
      const symbolize::AtFile reading(&view.names, "/b");
      if (!reading.is_refused() && i == 2) ::abort();
      out.text(reading.is_refused() ? "?\n" : "b\n");
      out.flush();
    }
    if (auto done = out.finish(); !done) return std::move(done.error());
    return cli::kWhole;
  };
  const auto status = show();
  ASSERT_TRUE(status) << status.error().what;
  EXPECT_EQ(text(), "b\nb\n?\n?\n?\n");
}

TEST_F(Apart, WantOfMemoryAtAFileCostsThatFile) {
  const auto die = [](const std::string& file) {
    if (file == "/large") throw std::bad_alloc();
  };
  show_lines({"/a", "/large", "/c"}, die, false);
  const auto status = show();
  ASSERT_TRUE(status) << status.error().what;
  EXPECT_EQ(text(), "/a\n?\n/c\n");
  EXPECT_NE(said_.find("/large was left out: the process that read it died: there was not enough memory"),
            std::string::npos);
}

TEST_F(Apart, WithManyDeathsTheRestIsNotRead) {
  std::vector<std::string> files;
  std::string expected;
  for (int i = 0; i < 40; ++i) {
    files.push_back("/" + std::to_string(i));
    expected += i == 0 ? "/0\n" : "?\n";
  }
  show_lines(
      files, [](const std::string& file) { die_of(file, file == "/0" ? "" : file); }, false);
  const auto status = show();
  ASSERT_TRUE(status) << status.error().what;
  EXPECT_EQ(*status, cli::kIncomplete);
  EXPECT_NE(said_.find("no further file was read"), std::string::npos);
  // Nothing was written before it, so nothing is read again: not even what was sound.
  EXPECT_EQ(text(), "?\n" + expected.substr(3));
}

TEST_F(Apart, TwoThreadsAtAFileEachAreToldApartByReadingInStep) {
  task_.show = [](ApartView& view) -> Result<cli::ExitStatus> {
    TextOutput out(view.channel.open_output(false));
    if (!view.in_step) {
      view.stacks.at("/sound");
      view.names.at("/deadly");
      ::raise(SIGKILL);
    }
    { const symbolize::AtFile reading(&view.stacks, "/sound"); }
    const symbolize::AtFile reading(&view.names, "/deadly");
    if (!reading.is_refused()) ::raise(SIGKILL);
    out.text("text\n");
    if (auto done = out.finish(); !done) return std::move(done.error());
    return cli::kWhole;
  };
  const auto status = show();
  ASSERT_TRUE(status) << status.error().what;
  EXPECT_EQ(text(), "text\n");
  EXPECT_EQ(said_, "tacho: perf.data: /deadly was left out: the process that read it died: Killed\n");
}

TEST_F(Apart, ADeathThatNoFileExplainsEndsItWhenItComesAgain) {
  task_.show = [](ApartView&) -> Result<cli::ExitStatus> { ::abort(); };
  const auto status = show();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().what, "the process that reads the files died again and again: Aborted");
}

TEST_F(Apart, WhatCannotBeReadAgainIsSaidSo) {
  task_.can_begin_again = false;
  show_lines(
      {"/a", "/b"}, [](const auto& file) { die_of(file, "/b"); }, false);
  const auto status = show();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().what,
            "the process that reads the files died at /b: Killed; what comes through a pipe cannot be read "
            "again: put it into a file");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "text"));
}

TEST_F(Apart, AnotherTextThanBeforeEndsIt) {
  const std::string mark = folder_ / "text";
  task_.show = [&](ApartView& view) -> Result<cli::ExitStatus> {
    TextOutput out(view.channel.open_output(true));
    // What stands in the text depends on how it went before, which it must not.
    out.text(view.in_step ? "another\n" : "the first\n");
    out.flush();
    const symbolize::AtFile reading(&view.names, "/b");
    if (!reading.is_refused()) ::raise(SIGKILL);
    out.text("and more\n");
    if (auto done = out.finish(); !done) return std::move(done.error());
    return cli::kWhole;
  };
  const auto status = show();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().what,
            "what is shown the second time is not what was written before: the text ends there");
}

TEST_F(Apart, AnotherTextAfterADeathAtNoFileEndsIt) {
  task_.show = [](ApartView& view) -> Result<cli::ExitStatus> {
    TextOutput out(view.channel.open_output(true));
    out.text(view.in_step ? "the other\n" : "the first\n");
    out.flush();
    if (!view.in_step) ::raise(SIGKILL);
    if (auto done = out.finish(); !done) return std::move(done.error());
    return cli::kWhole;
  };
  const auto status = show();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().what,
            "what is shown the second time is not what was written before: the text ends there");
}

TEST_F(Apart, AWorkerBehindItsWallsCannotSayThatThereAreNone) {
  task_.show = [](ApartView& view) -> Result<cli::ExitStatus> {
    view.channel.fail(Error{"there are no walls"});
    ::_exit(125);
  };
  const auto status = show();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().what, "there are no walls");
  EXPECT_TRUE(is_confined_);
}

TEST_F(Apart, ASecondWorkerDoesNotHoldThePipeOfAProgram) {
  const std::string command = "cat > '" + (folder_ / "text").string() + "'";
  task_.open_output = [&]() -> Result<OutputFile> { return OutputFile::to_command(command); };
  show_lines(
      {"/a", "/b", "/c"}, [](const auto& file) { die_of(file, "/b"); }, true);
  const auto status = show();
  ASSERT_TRUE(status) << status.error().what;
  EXPECT_EQ(text(), "/a\n?\n/c\n");
}

TEST_F(Apart, TheChildrenOfAWorkerEndWithIt) {
  for (const bool is_killed : {true, false}) {
    std::array<int, 2> held{};
    ASSERT_EQ(::pipe(held.data()), 0);
    task_.show = [=](ApartView& view) -> Result<cli::ExitStatus> {
      TextOutput out(view.channel.open_output(true));
      out.text("text\n");
      out.flush();
      if (!view.in_step) {
        // It holds all pipes that the worker has, and would for long.
        if (::fork() == 0)
          for (;;) ::sleep(1);
        if (is_killed) ::raise(SIGKILL);
      }
      if (auto done = out.finish(); !done) return std::move(done.error());
      return cli::kWhole;
    };
    const auto status = show();
    ::close(held[1]);
    EXPECT_TRUE(status) << status.error().what;
    EXPECT_EQ(text(), "text\n");
    pollfd news{held[0], POLLIN, 0};
    EXPECT_EQ(::poll(&news, 1, 60'000), 1);
    ::close(held[0]);
  }
}

TEST_F(Apart, TextBehindItsEndIsAnError) {
  task_.show = [](ApartView& view) -> Result<cli::ExitStatus> {
    OutputFile out = view.channel.open_output(true);
    (void)out.write("text\n");
    (void)out.finish();
    (void)out.write("more\n");
    return cli::kWhole;
  };
  const auto status = show();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().what, "more text comes when it was finished");
  EXPECT_EQ(text(), "text\n");
}

TEST_F(Apart, AnEndWithoutTheEndOfTheTextIsAnError) {
  task_.show = [](ApartView& view) -> Result<cli::ExitStatus> {
    OutputFile out = view.channel.open_output(true);
    (void)out.write("text\n");
    return cli::kWhole;
  };
  const auto status = show();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().what, "the process that reads the files ends before its text");
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(Apart, WantOfMemoryAtNoFileIsSaid) {
  task_.show = [](ApartView&) -> Result<cli::ExitStatus> { throw std::bad_alloc(); };
  const auto status = show();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().what, "there is not enough memory");
  EXPECT_EQ(status.error().code, ENOMEM);
}

TEST_F(Apart, AnExceptionIsAnErrorAndAtAFileCostsThatFile) {
  task_.show = [](ApartView& view) -> Result<cli::ExitStatus> {
    TextOutput out(view.channel.open_output(true));
    out.text("text\n");
    out.flush();
    if (view.in_step) throw std::runtime_error("too strange");
    ::raise(SIGKILL);
    return cli::kWhole;
  };
  const auto failed = show();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().what, "too strange");
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  const auto die = [](const std::string& file) {
    if (file == "/strange") throw std::out_of_range("too far");
  };
  show_lines({"/a", "/strange", "/c"}, die, true);
  const auto status = show();
  ASSERT_TRUE(status) << status.error().what;
  EXPECT_EQ(text(), "/a\n?\n/c\n");
  EXPECT_EQ(said_, "tacho: perf.data: /strange was left out: the process that read it died: Aborted\n");
}

TEST_F(Apart, AReaderThatGoesAwayEndsItQuietly) {
  task_.show = [](ApartView& view) -> Result<cli::ExitStatus> {
    TextOutput out(view.channel.open_output(false));
    while (!out.is_done()) {
      out.text(std::string(1 << 16, 'x'));
      out.line_end();
    }
    if (auto done = out.finish(); !done) return std::move(done.error());
    return cli::kWhole;
  };
  const auto status = show_to_nobody();
  ASSERT_TRUE(status) << status.error().what;
  EXPECT_EQ(*status, cli::kWhole);
}

TEST_F(Apart, AfterThatADeathChangesNothing) {
  task_.show = [](ApartView& view) -> Result<cli::ExitStatus> {
    TextOutput out(view.channel.open_output(true));
    // Whoever knows that nobody reads makes less.
    out.text(view.in_step ? "less\n" : "a longer text\n");
    out.flush();
    if (!view.in_step) ::raise(SIGKILL);
    if (auto done = out.finish(); !done) return std::move(done.error());
    return cli::kWhole;
  };
  const auto status = show_to_nobody();
  ASSERT_TRUE(status) << status.error().what;
  EXPECT_EQ(*status, cli::kWhole);
}

TEST_F(Apart, TheViewKnowsInTheEndThatTheReaderWentAway) {
  task_.show = [](ApartView& view) -> Result<cli::ExitStatus> {
    TextOutput out(view.channel.open_output(false));
    out.text("text\n");
    if (auto done = out.finish(); !done) return std::move(done.error());
    return out.is_done() ? cli::kIncomplete : cli::kWhole;
  };
  const auto status = show_to_nobody();
  ASSERT_TRUE(status) << status.error().what;
  EXPECT_EQ(*status, cli::kIncomplete);
}

TEST_F(Apart, AFullDiskIsAnErrorOfTheOutput) {
  task_.open_output = []() -> Result<OutputFile> { return OutputFile::create("/dev/full"); };
  show_lines(
      {"/a"}, [](const auto&) {}, true);
  const auto status = show();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().fault, Fault::Output);
}

TEST_F(Apart, ItCanChangeNothingAndReachNobody) {
  task_.show = [this](ApartView&) -> Result<cli::ExitStatus> {
    std::string through;
    if (::open((folder_ / "fresh").c_str(), O_WRONLY | O_CREAT, 0600) >= 0) through += "create ";
    if (::mkdir((folder_ / "folder").c_str(), 0700) == 0) through += "mkdir ";
    if (::socket(AF_UNIX, SOCK_STREAM, 0) >= 0) through += "socket ";
    if (::kill(::getppid(), 0) == 0) through += "signal ";
    char* const nothing[] = {nullptr};
    if (const pid_t child = ::fork(); child == 0) {
      ::execve("/bin/true", nothing, nothing);
      ::_exit(::open((folder_ / "fresh").c_str(), O_WRONLY | O_CREAT, 0600) >= 0 ? 1 : 2);
    } else if (int ended = 0; ::waitpid(child, &ended, 0) == child && WEXITSTATUS(ended) != 2) {
      through += "a-child's-doing ";
    }
    return Error{"through: " + through};
  };
  const auto status = show();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().what, "through: ");
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(Apart, KilledAtAnyTimeTheTextStays) {
  std::string expected;
  for (int i = 0; i < 20'000; ++i) expected += "/" + std::to_string(i) + "\n";
  std::minstd_rand random(12);
  for (int round = 0; round < 20; ++round) {
    const int killed_at = static_cast<int>(random() % 20'000);
    task_.show = [=](ApartView& view) -> Result<cli::ExitStatus> {
      // Another thread kills it once, somewhere on its way.
      std::thread killer;
      TextOutput out(view.channel.open_output(true));
      for (int i = 0; i < 20'000; ++i) {
        if (i == killed_at && !view.in_step) killer = std::thread([] { ::raise(SIGKILL); });
        const std::string line = "/" + std::to_string(i) + "\n";
        out.text(line);
        if (i % 100 == 0) out.flush();
      }
      if (auto done = out.finish(); !done) return std::move(done.error());
      if (killer.joinable()) killer.join();
      return cli::kWhole;
    };
    const auto status = show();
    ASSERT_TRUE(status) << status.error().what;
    EXPECT_EQ(text(), expected);
  }
}

}  // namespace
}  // namespace tacho::report
