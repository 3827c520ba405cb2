#include "report/output/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "format/base/output.h"

namespace tacho::report {
namespace {

namespace fs = std::filesystem;
constexpr mode_t kMode = 0666;

class OutputFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "tacho-output-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    pipe_before_ =
        std::signal(SIGPIPE, SIG_IGN);  // as main() has it: a command that ends early is no end of ours
  }
  void TearDown() override {
    std::signal(SIGPIPE, pipe_before_);
    fs::remove_all(folder_);
  }

  std::string path(const std::string& name) const { return folder_ / name; }
  static std::string content(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void put(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }

  fs::path folder_;
  void (*pipe_before_)(int) = SIG_DFL;
};

TEST_F(OutputFileTest, ACaptureOfThatNameIsKept) {
  put(path("perf.data"), "PERFILE2 samples");
  auto file = OutputFile::create(path("perf.data"), kMode);
  ASSERT_TRUE(file && file->write("rows") && file->finish());
  EXPECT_EQ(content(path("perf.data")), "rows");
  EXPECT_EQ(content(path("perf.data.old")), "PERFILE2 samples");
  auto again = OutputFile::create(path("perf.data"), kMode);
  ASSERT_TRUE(again && again->write("other rows") && again->finish());
  EXPECT_EQ(content(path("perf.data.old")), "PERFILE2 samples") << "a text is not kept";
  EXPECT_EQ(files(), 2u);
}

TEST_F(OutputFileTest, AFileGetsItsNameWhenItIsWhole) {
  put(path("rows"), "old");
  auto file = OutputFile::create(path("rows"), kMode);
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->write("new "));
  EXPECT_EQ(content(path("rows")), "old");
  ASSERT_TRUE(file->write("rows"));
  ASSERT_TRUE(file->finish());
  EXPECT_EQ(content(path("rows")), "new rows");
  EXPECT_EQ(files(), 1u);
}

TEST_F(OutputFileTest, WorkThatFailsLeavesWhatWasThereAndNothingElse) {
  put(path("rows"), "old");
  {
    auto file = OutputFile::create(path("rows"), kMode);
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->write("half"));
  }
  EXPECT_EQ(content(path("rows")), "old");
  EXPECT_EQ(files(), 1u);
}

TEST_F(OutputFileTest, WhateverEndsTheWriterNothingStaysBehind) {
  if (!format::create_nameless(AT_FDCWD, folder_, 0600)) GTEST_SKIP() << "files have names here at once";
  put(path("rows"), "old");
  auto file = OutputFile::create(path("rows"), kMode);
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->write("half"));
  EXPECT_EQ(files(), 1u);
  put(path("rows.tacho-" + std::to_string(::getpid())), "of one that was killed long ago");
  ASSERT_TRUE(file->finish());
  EXPECT_EQ(content(path("rows")), "half");
  EXPECT_EQ(files(), 2u);
}

TEST_F(OutputFileTest, ALongNameLeavesRoomForTheNameMeanwhile) {
  const std::string name(250, 'n');
  for (const char* text : {"first", "second"}) {
    auto file = OutputFile::create(path(name), kMode);
    ASSERT_TRUE(file) << file.error().what;
    ASSERT_TRUE(file->write(text));
    const auto done = file->finish();
    ASSERT_TRUE(done) << done.error().what;
    EXPECT_EQ(content(path(name)), text);
    EXPECT_EQ(files(), 1u);
  }
}

TEST_F(OutputFileTest, RootFollowsNoLinkThatSomebodyElseMade) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  put(path("rows"), "old");
  fs::create_symlink("rows", path("link"));
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(::lchown(path("link").c_str(), kNobody, kNobody), 0);
  const auto file = OutputFile::create(path("link"), kMode);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().fault, Fault::Output);
  EXPECT_NE(file.error().what.find("link belongs to user 65534; name a file elsewhere"), std::string::npos)
      << file.error().what;
  EXPECT_EQ(content(path("rows")), "old");
}

TEST_F(OutputFileTest, ItIsReadableByNobodyWhoCannotReadTheInputs) {
  const mode_t umask_before = ::umask(022);
  const auto mode = [](const std::vector<std::string>& inputs) { return mode_of_output(inputs); };
  put(path("private"), "");
  put(path("group"), "");
  put(path("public"), "");
  ASSERT_EQ(::chmod(path("private").c_str(), 0600), 0);
  ASSERT_EQ(::chmod(path("group").c_str(), 0640), 0);
  ASSERT_EQ(::chmod(path("public").c_str(), 0644), 0);
  EXPECT_EQ(mode({path("private")}), 0600u);
  EXPECT_EQ(mode({path("group")}), 0660u);
  EXPECT_EQ(mode({path("public")}), 0666u);
  EXPECT_EQ(mode({path("public"), path("private")}), 0600u);
  EXPECT_EQ(mode({path("missing")}), 0600u);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(path("group").c_str(), 0, 54321), 0);
    EXPECT_EQ(mode({path("group")}), 0600u) << "of another group";
  }
  auto file = OutputFile::create(path("rows"), mode({path("private")}));
  ASSERT_TRUE(file && file->write("text") && file->finish());
  EXPECT_EQ(fs::status(path("rows")).permissions(), fs::perms(0600));
  ::umask(umask_before);
}

TEST_F(OutputFileTest, AFileKeepsItsModeAndALinkItsTarget) {
  put(path("rows"), "old");
  ASSERT_EQ(::chmod(path("rows").c_str(), 0640), 0);
  fs::create_symlink("rows", path("link"));
  auto file = OutputFile::create(path("link"), kMode);
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->write("new"));
  ASSERT_TRUE(file->finish());
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(content(path("rows")), "new");
  EXPECT_EQ(fs::status(path("rows")).permissions(), fs::perms(0640));
}

TEST_F(OutputFileTest, ADeviceIsWrittenInItsPlace) {
  auto file = OutputFile::create("/dev/null", kMode);
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->write("text"));
  EXPECT_TRUE(file->finish());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(OutputFileTest, AFullDiskIsAnErrorThatNamesTheFile) {
  auto file = OutputFile::create("/dev/full", kMode);
  ASSERT_TRUE(file);
  const auto written = file->write("text");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().fault, Fault::Output);
  EXPECT_EQ(written.error().what, "/dev/full: cannot write: No space left on device");
}

TEST_F(OutputFileTest, AFolderThatIsNotThereIsAnErrorBeforeAnyWork) {
  const auto file = OutputFile::create(path("nowhere/rows"), kMode);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().fault, Fault::Output);
  EXPECT_EQ(file.error().what, path("nowhere/rows") + ": cannot create: No such file or directory");
}

TEST_F(OutputFileTest, ACommandReadsWhatIsWritten) {
  auto file = OutputFile::to_command("cat > " + path("read"));
  ASSERT_TRUE(file.write("one "));
  ASSERT_TRUE(file.write("two"));
  ASSERT_TRUE(file.finish());
  EXPECT_EQ(content(path("read")), "one two");
}

TEST_F(OutputFileTest, NothingWrittenStartsNoCommand) {
  auto file = OutputFile::to_command("touch " + path("started"));
  ASSERT_TRUE(file.finish());
  EXPECT_FALSE(fs::exists(path("started")));
}

TEST_F(OutputFileTest, ACommandThatStopsReadingIsNoError) {
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  auto file = OutputFile::to_command("true");
  const std::string text(1 << 20, 'x');
  bool is_gone = false;
  for (int i = 0; i < 4 && !is_gone; ++i) {
    const auto reader = file.write(text);
    ASSERT_TRUE(reader);
    is_gone = *reader == OutputFile::Reader::Gone;
  }
  EXPECT_TRUE(is_gone);
  EXPECT_TRUE(file.finish());
  std::signal(SIGPIPE, before);
}

TEST_F(OutputFileTest, ACommandThatCannotRunIsAnError) {
  auto file = OutputFile::to_command("exec /nowhere/pager 2> /dev/null");
  (void)file.write("text");
  const auto ended = file.finish();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().fault, Fault::Output);
  EXPECT_NE(ended.error().what.find("--no-pager"), std::string::npos);
}

TEST_F(OutputFileTest, CtrlCIsTheCommandsWhileItRunsAndOursAgainAfterwards) {
  const auto ours = [](int) {};
  const auto before = std::signal(SIGINT, ours);
  auto file = OutputFile::to_command("cat > /dev/null");
  ASSERT_TRUE(file.write("text"));
  const auto meanwhile = std::signal(SIGINT, SIG_IGN);
  EXPECT_EQ(meanwhile, SIG_IGN);
  ASSERT_TRUE(file.finish());
  EXPECT_NE(std::signal(SIGINT, before), SIG_IGN);
}

}  // namespace
}  // namespace tacho::report
