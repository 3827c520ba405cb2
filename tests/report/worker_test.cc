#include "report/worker.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace tacho::report {
namespace {

const WorkLimits kPlenty{.most_bytes = 1 << 20};
using Deaths = std::vector<WorkDone::Death>;

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}
std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class Worker : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "worker.XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    std::ofstream(folder_ / "there") << "text";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

// Whether the call says no; its errno is of no interest.
bool refused(long answer) { return answer < 0; }

// Everything that got through, by name.
std::string try_all(const std::filesystem::path& folder) {
  const std::string there = folder / "there", fresh = folder / "fresh";
  std::string through;
  const auto note = [&through](bool is_refused, const char* what) {
    if (!is_refused) through.append(what).append(" ");
  };
  note(refused(::open(there.c_str(), O_WRONLY)), "open-to-write");
  note(refused(::open(there.c_str(), O_RDWR)), "open-to-change");
  note(refused(::open(there.c_str(), O_RDONLY | O_TRUNC)), "open-to-empty");
  note(refused(::open(fresh.c_str(), O_RDONLY | O_CREAT, 0600)), "create");
  note(refused(::open(folder.c_str(), O_TMPFILE | O_RDWR, 0600)), "create-unnamed");
  note(refused(::truncate(there.c_str(), 0)), "truncate");
  note(refused(::unlink(there.c_str())), "unlink");
  note(refused(::rename(there.c_str(), fresh.c_str())), "rename");
  note(refused(::link(there.c_str(), fresh.c_str())), "link");
  note(refused(::symlink(there.c_str(), fresh.c_str())), "symlink");
  note(refused(::mkdir(fresh.c_str(), 0700)), "mkdir");
  note(refused(::mkfifo(fresh.c_str(), 0600)), "mkfifo");
  note(refused(::chmod(there.c_str(), 0777)), "chmod");
  note(refused(::socket(AF_INET, SOCK_STREAM, 0)), "socket");
  note(refused(::socket(AF_UNIX, SOCK_STREAM, 0)), "local-socket");
  note(refused(::kill(::getppid(), 0)), "signal-to-parent");
  note(refused(::fcntl(STDERR_FILENO, F_SETOWN, ::getppid())), "signals-of-a-file");
  char* const nothing[] = {nullptr};
  note(refused(::execve("/bin/true", nothing, nothing)), "exec");
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  note(refused(child), "fork");
  return through;
}

TEST_F(Worker, GivesWhatItsWorkGives) {
  const auto done =
      work_apart([](WorkPlace&, const Deaths&) { return bytes_of("found"); }, Reach::Files, kPlenty);
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_EQ(text_of(done->bytes), "found");
  EXPECT_TRUE(done->deaths.empty());
}

TEST_F(Worker, CanChangeNothingAndReachNobody) {
  const auto done = work_apart([this](WorkPlace&, const Deaths&) { return bytes_of(try_all(folder_)); },
                               Reach::Files, kPlenty);
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_EQ(text_of(done->bytes), "");
  EXPECT_EQ(std::filesystem::file_size(folder_ / "there"), 4U);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(Worker, ReadsFilesAndStartsThreads) {
  const Work work = [this](WorkPlace&, const Deaths&) {
    std::string text;
    std::thread reader([&] { std::getline(std::ifstream(folder_ / "there"), text); });
    reader.join();
    return bytes_of(text);
  };
  const auto done = work_apart(work, Reach::Files, kPlenty);
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_EQ(text_of(done->bytes), "text");
}

TEST_F(Worker, ThatAsksServersMayConnectAndKeepFilesButStartsNothing) {
  const Work work = [this](WorkPlace&, const Deaths&) {
    const bool connects = ::socket(AF_INET, SOCK_STREAM, 0) >= 0;
    const bool keeps = ::open((folder_ / "fresh").c_str(), O_RDWR | O_CREAT, 0600) >= 0;
    char* const nothing[] = {nullptr};
    const bool starts = !refused(::execve("/bin/true", nothing, nothing));
    return bytes_of(std::to_string(connects) + std::to_string(keeps) + std::to_string(starts));
  };
  const auto done = work_apart(work, Reach::AndServers, kPlenty);
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_EQ(text_of(done->bytes), "110");
}

TEST_F(Worker, MakesFilesInMemoryOnlyWhereArchivesAreRead) {
  const Work work = [](WorkPlace&, const Deaths&) {
    return bytes_of(::memfd_create("archived", MFD_CLOEXEC) >= 0 ? "made" : "refused");
  };
  for (const auto& [reach, what] :
       {std::pair(Reach::Files, "refused"), std::pair(Reach::AndTrials, "refused"),
        std::pair(Reach::AndMemory, "made"), std::pair(Reach::AndServers, "made")}) {
    const auto done = work_apart(work, reach, kPlenty);
    ASSERT_TRUE(done) << done.error().what;
    EXPECT_EQ(text_of(done->bytes), what);
  }
}

TEST_F(Worker, WhoMakesFilesInMemoryCanChangeNothingAndReachNobodyEither) {
  const auto done = work_apart([this](WorkPlace&, const Deaths&) { return bytes_of(try_all(folder_)); },
                               Reach::AndMemory, kPlenty);
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_EQ(text_of(done->bytes), "");
}

// Dies at each of the files unless it is left out; gives the others.
Work dying_of(std::vector<std::string> files, const std::vector<std::string>& all) {
  return [files = std::move(files), all](WorkPlace& place, const Deaths& deaths) {
    std::string read;
    for (const std::string& file : all) {
      if (std::ranges::find(deaths, file, &WorkDone::Death::path) != deaths.end()) continue;
      place.at(file);
      if (std::ranges::find(files, file) != files.end()) ::raise(SIGKILL);
      read += file + " ";
    }
    place.at({});
    return bytes_of(read);
  };
}

TEST_F(Worker, AFileThatItDiesOfCostsThatFile) {
  const auto done = work_apart(dying_of({"/b", "/d"}, {"/a", "/b", "/c", "/d"}), Reach::Files, kPlenty);
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_EQ(text_of(done->bytes), "/a /c ");
  ASSERT_EQ(done->deaths.size(), 2U);
  EXPECT_EQ(done->deaths[0].path, "/b");
  EXPECT_EQ(done->deaths[0].how, "Killed");
  EXPECT_EQ(done->deaths[1].path, "/d");
}

TEST_F(Worker, ManyDeathsAreAnError) {
  std::vector<std::string> files;
  for (int i = 0; i < 20; ++i) files.push_back("/" + std::to_string(i));
  const auto done = work_apart(dying_of(files, files), Reach::Files, kPlenty);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().what, "the processes that read the files die, the last one at /8: Killed");
}

TEST_F(Worker, ADeathAtNoFileIsAnError) {
  const auto done = work_apart(
      [](WorkPlace&, const Deaths&) {
        ::raise(SIGKILL);
        return bytes_of("");
      },
      Reach::Files, kPlenty);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().what, "the process that reads the files died: Killed");
}

TEST_F(Worker, WantOfMemoryIsAnError) {
  const Work work = [](WorkPlace&, const Deaths&) -> std::vector<std::byte> { throw std::bad_alloc(); };
  const auto done = work_apart(work, Reach::Files, kPlenty);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ENOMEM);
}

TEST_F(Worker, WantOfMemoryAtAFileCostsThatFile) {
  const Work work = [](WorkPlace& place, const Deaths& deaths) {
    place.at("/large");
    if (deaths.empty()) throw std::bad_alloc();
    return bytes_of(deaths[0].path + " " + deaths[0].how);
  };
  const auto done = work_apart(work, Reach::Files, kPlenty);
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_EQ(text_of(done->bytes), "/large there was not enough memory");
}

TEST_F(Worker, AFileThatKeepsItCostsThatFile) {
  const Work work = [](WorkPlace& place, const Deaths& deaths) {
    place.at("/endless");
    while (deaths.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return bytes_of(deaths[0].path + " " + deaths[0].how);
  };
  const auto done = work_apart(work, Reach::Files,
                               {.most_bytes = kPlenty.most_bytes, .at_one_file = std::chrono::seconds(1)});
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_EQ(text_of(done->bytes), "/endless it took more than 1 s");
}

TEST_F(Worker, WhoeverIgnoresItsChildrenMayHaveStartedUs) {
  const auto before = ::signal(SIGCHLD, SIG_IGN);
  const auto done =
      work_apart([](WorkPlace&, const Deaths&) { return bytes_of("found"); }, Reach::Files, kPlenty);
  ::signal(SIGCHLD, before);
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_EQ(text_of(done->bytes), "found");
}

TEST_F(Worker, MoreThanWasAskedForIsAnError) {
  const auto done =
      work_apart([](WorkPlace&, const Deaths&) { return std::vector<std::byte>(kPlenty.most_bytes + 1); },
                 Reach::Files, kPlenty);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, EFBIG);
}

}  // namespace
}  // namespace tacho::report
