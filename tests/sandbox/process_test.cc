#include "sandbox/process.h"

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
#include <cstdio>
#include <cstdlib>
#include <ctime>
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

#include "format/base/file.h"

namespace tacho::sandbox {
namespace {

// Text as a view makes it: in pieces.
class Text {
 public:
  explicit Text(Child& child) : output_(child.open_output()) {}
  void text(std::string_view text) {
    text_ += text;
    if (text_.size() >= std::size_t{1} << 16) flush();
  }
  void flush() {
    (void)output_.write(text_);
    text_.clear();
  }
  Result<> finish() {
    flush();
    return output_.finish();
  }
  bool is_done() const { return output_.is_reader_gone(); }

 private:
  Output output_;
  std::string text_;
};

// Views, some of which die on their way.
class Views : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "apart.XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    ::signal(SIGPIPE, SIG_IGN);  // as main() does
    task_.input = "perf.data";
    task_.skip_option = "--skip-file";
    task_.open_output = [this]() -> Result<Output> {
      text_.clear();
      return Output{.write = [this](std::string_view text) -> Result<Reader> {
                      text_ += text;
                      return Reader::There;
                    },
                    .finish = [this]() -> Result<> {
                      is_finished_ = true;
                      return Done{};
                    },
                    .is_reader_gone = [] { return false; }};
    };
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Result<cli::ExitStatus> show() {
    testing::internal::CaptureStderr();
    auto status = run_view(task_, is_confined_);
    said_ = testing::internal::GetCapturedStderr();
    return status;
  }
  // To somebody who reads nothing.
  Result<cli::ExitStatus> show_to_nobody() {
    task_.open_output = []() -> Result<Output> {
      return Output{.write = [](std::string_view) -> Result<Reader> { return Reader::Gone; },
                    .finish = []() -> Result<> { return Done{}; },
                    .is_reader_gone = [] { return true; }};
    };
    return show();
  }
  std::string file_text() const {
    std::ifstream file(folder_ / "text");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Shows these lines, of which each needs the names of a file: "/a" ... Where `die` says so at a file, it
  // dies.
  void show_lines(std::vector<std::string> files, std::function<void(const std::string&)> die, bool flushes) {
    task_.work = [=](Child& child) -> Result<cli::ExitStatus> {
      Text out(child);
      for (const std::string& file : files) {
        const symbolize::ScopedRead reading(&child.names, file);
        const bool is_refused = reading.is_refused();
        if (!is_refused) die(file);
        out.text(is_refused ? "?\n" : file + "\n");
        if (flushes) out.flush();
      }
      if (auto done = out.finish(); !done) return std::move(done.error());
      return cli::kWhole;
    };
  }

  // A worker that writes to a file that is open for it, and dies at "/b".
  void write_names() {
    file_ = format::Fd(::open((folder_ / "text").c_str(), O_RDWR | O_CREAT, 0600));
    task_.policy = Policy::WriteOutput;
    task_.kept = {file_.get()};
    task_.restart = [this]() -> Result<> {
      ++restarts_;
      return ::ftruncate(file_.get(), 0) == 0 ? Result<>(Done{}) : Result<>(Error{"truncate"});
    };
    task_.open_output = [this]() -> Result<Output> {
      return Output{.write = [](std::string_view) -> Result<Reader> { return Error{"no text"}; },
                    .finish = [this]() -> Result<> {
                      finished_ = file_text();
                      return Done{};
                    },
                    .is_reader_gone = [] { return false; }};
    };
    task_.work = [this](Child& child) -> Result<cli::ExitStatus> {
      const Output out = child.open_output();
      off_t at = 0;
      for (const std::string name : {"/long", "/b", "/c"}) {
        const symbolize::ScopedRead reading(&child.stacks, name);
        if (reading.is_refused()) continue;
        if (::pwrite(file_.get(), name.data(), name.size(), at) < 0) return Error{"pwrite"};
        at += static_cast<off_t>(name.size());
        if (name == "/b") ::raise(SIGKILL);
      }
      if (::fdatasync(file_.get()) != 0) return Error{"fdatasync"};
      if (auto done = out.finish(); !done) return std::move(done.error());
      return cli::kWhole;
    };
  }

  std::filesystem::path folder_;
  Task task_;
  bool is_confined_ = false;
  std::string said_, text_, finished_;
  bool is_finished_ = false;
  format::Fd file_;
  int restarts_ = 0;
};

void die_of(const std::string& file, std::string_view deadly) {
  if (file == deadly) ::raise(SIGKILL);
}

TEST_F(Views, LongTextArrivesWhole) {
  std::string expected;
  for (int i = 0; i < 2'000'000; ++i) expected += std::to_string(i) + '\n';
  task_.work = [&](Child& child) -> Result<cli::ExitStatus> {
    Text out(child);
    for (int i = 0; i < 2'000'000; ++i) {
      out.text(std::to_string(i) + '\n');
    }
    if (auto done = out.finish(); !done) return std::move(done.error());
    return cli::kWhole;
  };
  const auto status = show();
  ASSERT_TRUE(status) << status.error().what;
  EXPECT_EQ(*status, cli::kWhole);
  EXPECT_EQ(text_, expected);
  EXPECT_EQ(said_, "");
}

TEST_F(Views, AnErrorOfTheViewIsTold) {
  task_.work = [](Child&) -> Result<cli::ExitStatus> { return use_error("there is no such key"); };
  const auto status = show();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().what, "there is no such key");
  EXPECT_EQ(status.error().fault, Fault::Use);
  EXPECT_TRUE(is_confined_);
  EXPECT_EQ(text_, "");
}

TEST_F(Views, AFileThatItDiesOfCostsThatFile) {
  show_lines(
      {"/a", "/b", "/c", "/b", "/d"}, [](const auto& file) { die_of(file, "/b"); }, false);
  const auto status = show();
  ASSERT_TRUE(status) << status.error().what;
  EXPECT_EQ(*status, cli::kIncomplete);
  EXPECT_EQ(text_, "/a\n?\n/c\n?\n/d\n");
  EXPECT_EQ(said_, "tacho: perf.data: /b was left out: the process that read it died: Killed\n");
}

TEST_F(Views, AfterTheFirstByteTheOutputEndsThere) {
  show_lines(
      {"/a", "/b", "/c"}, [](const auto& file) { die_of(file, "/b"); }, true);
  const auto status = show();
  ASSERT_TRUE(status) << status.error().what;
  EXPECT_EQ(*status, cli::kIncomplete);
  EXPECT_EQ(text_, "/a\n");
  EXPECT_TRUE(is_finished_);
  EXPECT_EQ(said_,
            "tacho: perf.data: the process that reads the files died at /b: Killed: the output ends there; "
            "--skip-file /b leaves that file out\n");
}

TEST_F(Views, AFileThatTheCommandLineLeavesOutIsNotRead) {
  task_.skipped = {"/b"};
  show_lines(
      {"/a", "/b", "/c"}, [](const auto& file) { die_of(file, "/b"); }, true);
  const auto status = show();
  ASSERT_TRUE(status) << status.error().what;
  EXPECT_EQ(*status, cli::kWhole);
  EXPECT_EQ(text_, "/a\n?\n/c\n");
  EXPECT_EQ(said_, "");
}

TEST_F(Views, WantOfMemoryAtAFileCostsThatFile) {
  const auto die = [](const std::string& file) {
    if (file == "/large") throw std::bad_alloc();
  };
  show_lines({"/a", "/large", "/c"}, die, false);
  const auto status = show();
  ASSERT_TRUE(status) << status.error().what;
  EXPECT_EQ(text_, "/a\n?\n/c\n");
  EXPECT_NE(said_.find("/large was left out: the process that read it died: there was not enough memory"),
            std::string::npos);
}

TEST_F(Views, ManyDeathsAreAnError) {
  std::vector<std::string> files;
  for (int i = 0; i < 40; ++i) files.push_back("/" + std::to_string(i));
  show_lines(
      files, [](const std::string& file) { die_of(file, file); }, false);
  const auto status = show();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().what, "the processes that read the files die, the last one at /8: Killed");
}

TEST_F(Views, TwoThreadsAtAFileEachAreToldApartByReadingInStep) {
  task_.work = [](Child& child) -> Result<cli::ExitStatus> {
    Text out(child);
    if (!child.is_serial) {
      child.stacks.set_current("/sound");
      child.names.set_current("/deadly");
      ::raise(SIGKILL);
    }
    { const symbolize::ScopedRead reading(&child.stacks, "/sound"); }
    const symbolize::ScopedRead reading(&child.names, "/deadly");
    if (!reading.is_refused()) ::raise(SIGKILL);
    out.text("text\n");
    if (auto done = out.finish(); !done) return std::move(done.error());
    return cli::kWhole;
  };
  const auto status = show();
  ASSERT_TRUE(status) << status.error().what;
  EXPECT_EQ(text_, "text\n");
  EXPECT_EQ(said_, "tacho: perf.data: /deadly was left out: the process that read it died: Killed\n");
}

TEST_F(Views, ADeathThatNoFileExplainsEndsItWhenItComesAgain) {
  task_.work = [](Child&) -> Result<cli::ExitStatus> { ::abort(); };
  const auto status = show();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().what, "the process that reads the files died again and again: Aborted");
}

TEST_F(Views, WhatCannotBeReadAgainIsSaidSo) {
  task_.can_restart = false;
  show_lines(
      {"/a", "/b"}, [](const auto& file) { die_of(file, "/b"); }, false);
  const auto status = show();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().what,
            "the process that reads the files died at /b: Killed; what comes through a pipe cannot be read "
            "again: put it into a file");
  EXPECT_EQ(text_, "");
}

TEST_F(Views, TheChildrenOfAWorkerEndWithIt) {
  for (const bool is_killed : {true, false}) {
    std::array<int, 2> held{};
    ASSERT_EQ(::pipe(held.data()), 0);
    task_.work = [=](Child& child) -> Result<cli::ExitStatus> {
      Text out(child);
      if (!child.is_serial) {
        // It holds all pipes that the worker has, and would for long.
        if (::fork() == 0)
          for (;;) ::sleep(1);
        if (is_killed) ::raise(SIGKILL);
      }
      out.text("text\n");
      if (auto done = out.finish(); !done) return std::move(done.error());
      return cli::kWhole;
    };
    const auto status = show();
    ::close(held[1]);
    EXPECT_TRUE(status) << status.error().what;
    EXPECT_EQ(text_, "text\n");
    pollfd news{held[0], POLLIN, 0};
    EXPECT_EQ(::poll(&news, 1, 60'000), 1);
    ::close(held[0]);
  }
}

TEST_F(Views, AClosedStandardErrorTakesNoTimeOfTheParent) {
  task_.work = [](Child&) -> Result<cli::ExitStatus> {
    ::close(STDERR_FILENO);
    ::usleep(500'000);
    return cli::kWhole;
  };
  const std::clock_t before = std::clock();  // of the CPU
  ASSERT_TRUE(show());
  EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC / 10);
}

TEST_F(Views, StandardErrorOfAScreenIsPrintable) {
  task_.is_screen = true;
  task_.work = [](Child& child) -> Result<cli::ExitStatus> {
    std::fputs("early \033[2J\n", stderr);
    Text out(child);
    std::fputs("late \033[2J\n", stderr);
    if (auto done = out.finish(); !done) return std::move(done.error());
    return cli::kWhole;
  };
  ASSERT_TRUE(show());
  EXPECT_EQ(said_, "early \\x1b[2J\nlate \\x1b[2J\n");
}

TEST_F(Views, TextAfterItsEndIsAnError) {
  task_.work = [](Child& child) -> Result<cli::ExitStatus> {
    const Output out = child.open_output();
    (void)out.write("text\n");
    (void)out.finish();
    (void)out.write("more\n");
    return cli::kWhole;
  };
  const auto status = show();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().what, "the process that reads the files sent text after the end of the output");
  EXPECT_EQ(text_, "text\n");
}

TEST_F(Views, AnEndWithoutTheEndOfTheTextIsAnError) {
  task_.work = [](Child& child) -> Result<cli::ExitStatus> {
    const Output out = child.open_output();
    (void)out.write("text\n");
    return cli::kWhole;
  };
  const auto status = show();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().what, "the process that reads the files ended before the end of the output");
  EXPECT_FALSE(is_finished_);
}

TEST_F(Views, WantOfMemoryAtNoFileIsSaid) {
  task_.work = [](Child&) -> Result<cli::ExitStatus> { throw std::bad_alloc(); };
  const auto status = show();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().what, "there is not enough memory");
  EXPECT_EQ(status.error().code, ENOMEM);
}

TEST_F(Views, AnExceptionIsAnErrorAndAtAFileCostsThatFile) {
  task_.work = [](Child&) -> Result<cli::ExitStatus> { throw std::runtime_error("too strange"); };
  const auto failed = show();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().what, "too strange");
  const auto die = [](const std::string& file) {
    if (file == "/strange") throw std::out_of_range("too far");
  };
  show_lines({"/a", "/strange", "/c"}, die, false);
  const auto status = show();
  ASSERT_TRUE(status) << status.error().what;
  EXPECT_EQ(text_, "/a\n?\n/c\n");
  EXPECT_EQ(said_, "tacho: perf.data: /strange was left out: the process that read it died: Aborted\n");
}

TEST_F(Views, AReaderThatGoesAwayEndsItQuietly) {
  task_.work = [](Child& child) -> Result<cli::ExitStatus> {
    Text out(child);
    while (!out.is_done()) {
      out.text(std::string(1 << 16, 'x'));
    }
    if (auto done = out.finish(); !done) return std::move(done.error());
    return cli::kWhole;
  };
  const auto status = show_to_nobody();
  ASSERT_TRUE(status) << status.error().what;
  EXPECT_EQ(*status, cli::kWhole);
}

TEST_F(Views, AfterThatADeathChangesNothing) {
  task_.work = [](Child& child) -> Result<cli::ExitStatus> {
    Text out(child);
    // Whoever knows that nobody reads makes less.
    out.text(child.is_serial ? "less\n" : "a longer text\n");
    out.flush();
    if (!child.is_serial) ::raise(SIGKILL);
    if (auto done = out.finish(); !done) return std::move(done.error());
    return cli::kWhole;
  };
  const auto status = show_to_nobody();
  ASSERT_TRUE(status) << status.error().what;
  EXPECT_EQ(*status, cli::kWhole);
}

TEST_F(Views, TheViewKnowsInTheEndThatTheReaderWentAway) {
  task_.work = [](Child& child) -> Result<cli::ExitStatus> {
    Text out(child);
    out.text("text\n");
    if (auto done = out.finish(); !done) return std::move(done.error());
    return out.is_done() ? cli::kIncomplete : cli::kWhole;
  };
  const auto status = show_to_nobody();
  ASSERT_TRUE(status) << status.error().what;
  EXPECT_EQ(*status, cli::kIncomplete);
}

TEST_F(Views, AnErrorOfTheOutputEndsIt) {
  task_.open_output = []() -> Result<Output> { return output_error("the disk is full", ENOSPC); };
  show_lines(
      {"/a"}, [](const auto&) {}, true);
  const auto status = show();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().fault, Fault::Output);
}

TEST_F(Views, ItCanChangeNothingAndReachNobody) {
  task_.work = [this](Child&) -> Result<cli::ExitStatus> {
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
  EXPECT_FALSE(is_finished_);
}

TEST_F(Views, KilledAtAnyTimeTheTextIsWholeOrEndsAtALine) {
  std::string expected;
  for (int i = 0; i < 20'000; ++i) expected += "/" + std::to_string(i) + "\n";
  std::minstd_rand random(12);
  for (int round = 0; round < 20; ++round) {
    const int killed_at = static_cast<int>(random() % 20'000);
    task_.work = [=](Child& child) -> Result<cli::ExitStatus> {
      // Another thread kills it once, somewhere on its way.
      std::thread killer;
      Text out(child);
      for (int i = 0; i < 20'000; ++i) {
        if (i == killed_at && !child.is_serial) killer = std::thread([] { ::raise(SIGKILL); });
        out.text("/" + std::to_string(i) + "\n");
        if (i >= 10'000 && i % 100 == 0) out.flush();
      }
      if (auto done = out.finish(); !done) return std::move(done.error());
      if (killer.joinable()) killer.join();
      return cli::kWhole;
    };
    is_finished_ = false;
    const auto status = show();
    ASSERT_TRUE(status) << status.error().what;
    EXPECT_TRUE(is_finished_);
    if (*status == cli::kWhole) {
      EXPECT_EQ(text_, expected);
    } else {
      EXPECT_TRUE(expected.starts_with(text_));
      EXPECT_TRUE(text_.ends_with('\n'));
      EXPECT_NE(said_.find("Killed"), std::string::npos) << said_;
    }
  }
}

TEST_F(Views, WhatWasWrittenOfWhatCannotBeReadAgainIsKept) {
  task_.can_restart = false;
  task_.work = [](Child& child) -> Result<cli::ExitStatus> {
    Text out(child);
    out.text("the first\n");
    out.flush();
    const symbolize::ScopedRead reading(&child.names, "/b");
    ::raise(SIGKILL);
    return cli::kWhole;
  };
  const auto status = show();
  ASSERT_TRUE(status) << status.error().what;
  EXPECT_EQ(*status, cli::kIncomplete);
  EXPECT_EQ(text_, "the first\n");
  EXPECT_EQ(
      said_,
      "tacho: perf.data: the process that reads the files died at /b: Killed; what comes through a pipe "
      "cannot be read again: the output so far is kept\n");
}

TEST_F(Views, AFileThatAWorkerWritesIsBegunAnew) {
  write_names();
  const auto status = show();
  ASSERT_TRUE(status) << status.error().what;
  EXPECT_EQ(*status, cli::kIncomplete);
  EXPECT_EQ(finished_, "/long/c");
  EXPECT_EQ(restarts_, 1);
  EXPECT_EQ(said_, "tacho: perf.data: /b was left out: the process that read it died: Killed\n");
}

TEST_F(Views, AFileThatIsNotWholeIsKeptOnlyWhereItMayBe) {
  for (const bool is_whole_or_nothing : {false, true}) {
    write_names();
    task_.can_restart = false;
    task_.is_whole_or_nothing = is_whole_or_nothing;
    const auto status = show();
    EXPECT_EQ(bool{status}, !is_whole_or_nothing);
    if (status) {
      EXPECT_EQ(*status, cli::kIncomplete);
    }
    EXPECT_EQ(file_text(), "/long/b");
    std::filesystem::remove(folder_ / "text");
  }
}

TEST_F(Views, WhoWritesToAFileCanChangeNothingElse) {
  task_.policy = Policy::WriteOutput;
  std::ofstream(folder_ / "old") << "old";
  task_.work = [this](Child&) -> Result<cli::ExitStatus> {
    std::string through;
    if (::open((folder_ / "fresh").c_str(), O_WRONLY | O_CREAT, 0600) >= 0) through += "create ";
    if (::open((folder_ / "old").c_str(), O_WRONLY) >= 0) through += "write ";
    if (::truncate((folder_ / "old").c_str(), 0) == 0) through += "truncate ";
    if (::unlink((folder_ / "old").c_str()) == 0) through += "unlink ";
    if (::socket(AF_UNIX, SOCK_STREAM, 0) >= 0) through += "socket ";
    if (::kill(::getppid(), 0) == 0) through += "signal ";
    if (::fork() >= 0) through += "child ";
    return Error{"through: " + through};
  };
  const auto status = show();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().what, "through: ");
}

}  // namespace
}  // namespace tacho::sandbox
