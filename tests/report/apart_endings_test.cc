#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "format/base/file.h"
#include "report/apart.h"
#include "report/output/text_output.h"

namespace tacho::report {
namespace {

// What stays of a worker's output when it dies: of text that was made of a pipe, and of files that it writes.
class ApartEndings : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "apart.XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
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
  std::string text() const {
    std::ifstream file(folder_ / "text");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // A worker that writes to a file that is open for it, and dies at "/b".
  void write_names() {
    file_ = format::Fd(::open((folder_ / "text").c_str(), O_RDWR | O_CREAT, 0600));
    task_.reach = Reach::AndOutput;
    task_.kept = {file_.get()};
    task_.begin_anew = [this]() -> Result<> {
      ++begun_anew_;
      return ::ftruncate(file_.get(), 0) == 0 ? Result<>(Done{}) : Result<>(Error{"truncate"});
    };
    task_.open_output = [this]() -> Result<OutputFile> {
      return OutputFile(OutputFile::Elsewhere{
          .write = [](std::string_view) -> Result<OutputFile::Reader> { return Error{"no text"}; },
          .finish = [this]() -> Result<> {
            finished_ = text();
            return Done{};
          },
          .is_reader_gone = [] { return false; }});
    };
    task_.show = [this](ApartView& view) -> Result<cli::ExitStatus> {
      auto out = view.channel.open_output(false);
      off_t at = 0;
      for (const std::string name : {"/long", "/b", "/c"}) {
        const symbolize::AtFile reading(&view.stacks, name);
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
  ApartTask task_;
  bool is_confined_ = false;
  std::string said_, finished_;
  format::Fd file_;
  int begun_anew_ = 0;
};

TEST_F(ApartEndings, WhatWasWrittenOfWhatCannotBeReadAgainIsKept) {
  task_.can_begin_again = false;
  task_.show = [](ApartView& view) -> Result<cli::ExitStatus> {
    TextOutput out(view.channel.open_output(true));
    out.text("the first\n");
    out.flush();
    const symbolize::AtFile reading(&view.names, "/b");
    ::raise(SIGKILL);
    return cli::kWhole;
  };
  const auto status = show();
  ASSERT_TRUE(status) << status.error().what;
  EXPECT_EQ(*status, cli::kIncomplete);
  EXPECT_EQ(text(), "the first\n");
  EXPECT_EQ(
      said_,
      "tacho: perf.data: the process that reads the files died at /b: Killed; what comes through a pipe "
      "cannot be read again: what was written before that is kept\n");
}

TEST_F(ApartEndings, AFileThatAWorkerWritesIsBegunAnew) {
  write_names();
  const auto status = show();
  ASSERT_TRUE(status) << status.error().what;
  EXPECT_EQ(*status, cli::kIncomplete);
  EXPECT_EQ(finished_, "/long/c");
  EXPECT_EQ(begun_anew_, 1);
  EXPECT_EQ(said_, "tacho: perf.data: /b was left out: the process that read it died: Killed\n");
}

TEST_F(ApartEndings, AFileThatIsNotWholeIsKeptOnlyWhereItMayBe) {
  for (const bool is_whole_or_nothing : {false, true}) {
    write_names();
    task_.can_begin_again = false;
    task_.is_whole_or_nothing = is_whole_or_nothing;
    const auto status = show();
    EXPECT_EQ(bool{status}, !is_whole_or_nothing);
    if (status) {
      EXPECT_EQ(*status, cli::kIncomplete);
    }
    EXPECT_EQ(text(), "/long/b");
    std::filesystem::remove(folder_ / "text");
  }
}

TEST_F(ApartEndings, WhoWritesToAFileCanChangeNothingElse) {
  task_.reach = Reach::AndOutput;
  std::ofstream(folder_ / "old") << "old";
  task_.show = [this](ApartView&) -> Result<cli::ExitStatus> {
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
}  // namespace tacho::report
