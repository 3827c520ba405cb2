#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
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

#include "sandbox/process.h"

namespace tacho::sandbox {
namespace {

const JobLimits kPlenty{.most_bytes = 1 << 20};

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}
std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class Sandbox : public testing::Test {
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

TEST_F(Sandbox, GivesWhatItsWorkGives) {
  const auto done = run_job([](Child&) { return bytes_of("found"); }, Policy::ReadFiles, kPlenty);
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_EQ(text_of(done->bytes), "found");
  EXPECT_TRUE(done->deaths.empty());
}

TEST_F(Sandbox, CanChangeNothingAndReachNobody) {
  const auto done =
      run_job([this](Child&) { return bytes_of(try_all(folder_)); }, Policy::ReadFiles, kPlenty);
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_EQ(text_of(done->bytes), "");
  EXPECT_EQ(std::filesystem::file_size(folder_ / "there"), 4U);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(Sandbox, ReadsFilesAndStartsThreads) {
  const Job work = [this](Child&) {
    std::string text;
    std::thread reader([&] { std::getline(std::ifstream(folder_ / "there"), text); });
    reader.join();
    return bytes_of(text);
  };
  const auto done = run_job(work, Policy::ReadFiles, kPlenty);
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_EQ(text_of(done->bytes), "text");
}

TEST_F(Sandbox, ThatAsksServersMayConnectAndKeepFilesButStartsNothing) {
  const Job work = [this](Child&) {
    const bool connects = ::socket(AF_INET, SOCK_STREAM, 0) >= 0;
    const bool keeps = ::open((folder_ / "fresh").c_str(), O_RDWR | O_CREAT, 0600) >= 0;
    char* const nothing[] = {nullptr};
    const bool starts = !refused(::execve("/bin/true", nothing, nothing));
    return bytes_of(std::to_string(connects) + std::to_string(keeps) + std::to_string(starts));
  };
  const auto done = run_job(work, Policy::Servers, kPlenty);
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_EQ(text_of(done->bytes), "110");
}

TEST_F(Sandbox, MakesFilesInMemoryOnlyWhereArchivesAreRead) {
  const Job work = [](Child&) {
    return bytes_of(::memfd_create("archived", MFD_CLOEXEC) >= 0 ? "made" : "refused");
  };
  for (const auto& [policy, what] :
       {std::pair(Policy::ReadFiles, "refused"), std::pair(Policy::Trials, "refused"),
        std::pair(Policy::MemoryFiles, "made"), std::pair(Policy::Servers, "made")}) {
    const auto done = run_job(work, policy, kPlenty);
    ASSERT_TRUE(done) << done.error().what;
    EXPECT_EQ(text_of(done->bytes), what);
  }
}

TEST_F(Sandbox, WhoMakesFilesInMemoryCanChangeNothingAndReachNobodyEither) {
  const auto done =
      run_job([this](Child&) { return bytes_of(try_all(folder_)); }, Policy::MemoryFiles, kPlenty);
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_EQ(text_of(done->bytes), "");
}

// Dies at each of the files unless it is left out; gives the others.
Job dying_of(std::vector<std::string> files, const std::vector<std::string>& all) {
  return [files = std::move(files), all](Child& child) {
    std::string read;
    for (const std::string& file : all) {
      if (std::ranges::find(child.deaths, file, &Death::path) != child.deaths.end()) continue;
      child.names.set_current(file);
      if (std::ranges::find(files, file) != files.end()) ::raise(SIGKILL);
      read += file + " ";
    }
    child.names.set_current({});
    return bytes_of(read);
  };
}

TEST_F(Sandbox, AFileThatItDiesOfCostsThatFile) {
  const auto done = run_job(dying_of({"/b", "/d"}, {"/a", "/b", "/c", "/d"}), Policy::ReadFiles, kPlenty);
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_EQ(text_of(done->bytes), "/a /c ");
  ASSERT_EQ(done->deaths.size(), 2U);
  EXPECT_EQ(done->deaths[0].path, "/b");
  EXPECT_EQ(done->deaths[0].how, "Killed");
  EXPECT_EQ(done->deaths[1].path, "/d");
}

TEST_F(Sandbox, ManyDeathsAreAnError) {
  std::vector<std::string> files;
  for (int i = 0; i < 20; ++i) files.push_back("/" + std::to_string(i));
  const auto done = run_job(dying_of(files, files), Policy::ReadFiles, kPlenty);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().what, "the processes that read the files die, the last one at /8: Killed");
}

TEST_F(Sandbox, ADeathAtNoFileIsAnError) {
  const auto done = run_job(
      [](Child&) {
        ::raise(SIGKILL);
        return bytes_of("");
      },
      Policy::ReadFiles, kPlenty);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().what, "the process that reads the files died again and again: Killed");
}

TEST_F(Sandbox, WantOfMemoryIsAnError) {
  const Job work = [](Child&) -> std::vector<std::byte> { throw std::bad_alloc(); };
  const auto done = run_job(work, Policy::ReadFiles, kPlenty);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ENOMEM);
}

TEST_F(Sandbox, WantOfMemoryAtAFileCostsThatFile) {
  const Job work = [](Child& child) {
    child.names.set_current("/large");
    if (child.deaths.empty()) throw std::bad_alloc();
    return bytes_of(child.deaths[0].path + " " + child.deaths[0].how);
  };
  const auto done = run_job(work, Policy::ReadFiles, kPlenty);
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_EQ(text_of(done->bytes), "/large there was not enough memory");
}

TEST_F(Sandbox, AFileThatKeepsItCostsThatFile) {
  const Job work = [](Child& child) {
    child.names.set_current("/endless");
    while (child.deaths.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return bytes_of(child.deaths[0].path + " " + child.deaths[0].how);
  };
  const auto done = run_job(work, Policy::ReadFiles,
                            {.most_bytes = kPlenty.most_bytes, .times = {.at_one = std::chrono::seconds(1)}});
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_EQ(text_of(done->bytes), "/endless it took more than 1 s");
}

// Reads so many files, of which each takes 30 ms; says which it did not read.
std::string read_slowly(Child& child, int count) {
  std::string refused;
  for (int i = 0; i < count; ++i) {
    const symbolize::ScopedRead reading(&child.names, "/" + std::to_string(i));
    if (reading.is_refused())
      refused += std::to_string(i) + " ";
    else
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
  }
  return refused;
}

TEST_F(Sandbox, FilesThatTakeTooLongTogetherCostTheRestOfThem) {
  JobLimits limits = kPlenty;
  limits.times = {.at_one = std::chrono::seconds(60), .at_all = std::chrono::milliseconds(500)};
  const auto done =
      run_job([](Child& child) { return bytes_of(read_slowly(child, 60)); }, Policy::ReadFiles, limits);
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_TRUE(done->is_out_of_time);
  EXPECT_TRUE(done->deaths.empty());
  EXPECT_TRUE(text_of(done->bytes).ends_with("58 59 ")) << text_of(done->bytes);
  EXPECT_FALSE(text_of(done->bytes).starts_with("0 "));
}

TEST_F(Sandbox, TheWorkersAfterItReadWhatTheOneBeforeReadAndNoMore) {
  JobLimits limits = kPlenty;
  limits.times = {.at_one = std::chrono::seconds(60), .at_all = std::chrono::milliseconds(300)};
  const Job work = [](Child& child) {
    std::string refused = read_slowly(child, 20);
    child.names.set_current("/deadly");
    if (child.deaths.empty()) ::raise(SIGKILL);
    child.names.set_current({});
    return bytes_of(refused);
  };
  const auto done = run_job(work, Policy::ReadFiles, limits);
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_TRUE(done->is_out_of_time);
  const std::string refused = text_of(done->bytes);
  EXPECT_FALSE(refused.starts_with("0 ")) << refused;
  EXPECT_TRUE(refused.ends_with("18 19 ")) << refused;
}

TEST_F(Sandbox, NoTotalIsNone) {
  JobLimits limits = kPlenty;
  limits.times.at_all = std::chrono::milliseconds(0);
  const auto done =
      run_job([](Child& child) { return bytes_of(read_slowly(child, 15)); }, Policy::ReadFiles, limits);
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_FALSE(done->is_out_of_time);
  EXPECT_EQ(text_of(done->bytes), "");
}

// The numbers of what is open.
std::string open_descriptors() {
  std::string open;
  for (int number = 0; number < 1024; ++number)
    if (::fcntl(number, F_GETFD) >= 0) open += std::to_string(number) + " ";
  return open;
}

TEST_F(Sandbox, HasNoDescriptorOfItsParentButThoseItNeeds) {
  const int kept = ::open((folder_ / "there").c_str(), O_RDONLY), secret = ::dup2(kept, 700);
  std::array<int, 2> sockets{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()), 0);
  JobLimits limits = kPlenty;
  limits.kept = {kept};
  const Job work = [kept](Child&) {
    char letter = 0;
    const bool reads = ::pread(kept, &letter, 1, 0) == 1;
    const bool has_input = ::read(STDIN_FILENO, &letter, 1) >= 0,
               has_output = ::write(STDOUT_FILENO, "!", 1) > 0;
    return bytes_of(open_descriptors() + (reads ? "r" : "") + (has_input ? "i" : "") +
                    (has_output ? "o" : ""));
  };
  const auto done = run_job(work, Policy::ReadFiles, limits);
  for (const int one : {kept, secret, sockets[0], sockets[1]}) ::close(one);
  ASSERT_TRUE(done) << done.error().what;
  const std::string found = text_of(done->bytes);
  EXPECT_TRUE(found.starts_with("0 1 2 ")) << found;
  EXPECT_NE(found.find(" " + std::to_string(kept) + " "), std::string::npos) << found;
  EXPECT_EQ(std::ranges::count(found, ' '), 6) << found << ": and two pipes";
  EXPECT_TRUE(found.ends_with("r")) << found;
}

TEST_F(Sandbox, HasLimitsOfMemoryAndTimeThatItCannotRaise) {
  const Job work = [](Child&) {
    std::string said;
    for (const auto resource : {RLIMIT_AS, RLIMIT_CPU}) {
      rlimit limit{};
      ::getrlimit(resource, &limit);
      if (limit.rlim_max == RLIM_INFINITY) said += "endless ";
      limit.rlim_cur = limit.rlim_max = RLIM_INFINITY;
      if (::setrlimit(resource, &limit) == 0) said += "raised ";
    }
    return bytes_of(said);
  };
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizers' shadow takes more address space than any limit";
#endif
  for (const Policy policy : {Policy::ReadFiles, Policy::Servers}) {
    const auto done = run_job(work, policy, kPlenty);
    ASSERT_TRUE(done) << done.error().what;
    EXPECT_EQ(text_of(done->bytes), "");
  }
}

TEST_F(Sandbox, WhatItSaysOnStandardErrorComesByItsParent) {
  testing::internal::CaptureStderr();
  const auto done = run_job(
      [](Child&) {
        std::fputs("a line\n", stderr);
        return bytes_of("");
      },
      Policy::ReadFiles, kPlenty);
  const std::string said = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_EQ(said, "a line\n");
}

TEST_F(Sandbox, HasNoTerminalOnStandardError) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_EQ(::grantpt(terminal) + ::unlockpt(terminal), 0);
  const int screen = ::open(::ptsname(terminal), O_RDWR | O_NOCTTY), before = ::dup(STDERR_FILENO);
  ::dup2(screen, STDERR_FILENO);
  const auto done = run_job(
      [](Child&) {
        std::fputs("\033]0;title\007", stderr);
        return bytes_of(::isatty(STDERR_FILENO) != 0 ? "a terminal" : "none");
      },
      Policy::ReadFiles, kPlenty);
  ::dup2(before, STDERR_FILENO);
  std::array<char, 256> shown{};
  const ssize_t size = ::read(terminal, shown.data(), shown.size());
  for (const int one : {screen, before, terminal}) ::close(one);
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_EQ(text_of(done->bytes), "none");
  EXPECT_EQ(std::string(shown.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))),
            "\\x1b]0;title\\x07");
}

TEST_F(Sandbox, SeesKernelSymbolsOnlyIfItNeedsThem) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, which has capabilities to drop";
  const Job work = [](Child&) {
    std::string line;
    for (std::ifstream status("/proc/self/status"); std::getline(status, line);)
      if (line.starts_with("CapPrm:")) break;
    return bytes_of(std::to_string(std::stoull(line.substr(line.find('\t')), nullptr, 16)));
  };
  constexpr std::uint64_t kRead = std::uint64_t{1} << CAP_DAC_READ_SEARCH,
                          kLog = std::uint64_t{1} << CAP_SYSLOG;
  const auto without = run_job(work, Policy::ReadFiles, kPlenty);
  const auto with = run_job(work, Policy::ReadFiles,
                            {.most_bytes = kPlenty.most_bytes, .kernel_symbols = KernelSymbols::Shown});
  ASSERT_TRUE(without && with);
  EXPECT_EQ(std::stoull(text_of(without->bytes)) & ~kRead, 0U);
  EXPECT_EQ(std::stoull(text_of(with->bytes)) & ~kRead & ~kLog, 0U);
}

#ifdef __x86_64__
TEST_F(Sandbox, ACallOfAnotherArchitectureEndsAllThreads) {
  const Job work = [](Child&) {
    std::thread([] { ::syscall(0x40000000 + SYS_getpid); }).detach();  // of x32
    ::usleep(300'000);
    return bytes_of("goes on");
  };
  const auto done = run_job(work, Policy::ReadFiles, kPlenty);
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().what.find("Bad system call"), std::string::npos) << done.error().what;
}
#endif

TEST_F(Sandbox, MoreThanWasAskedForIsAnError) {
  const auto done = run_job([](Child&) { return std::vector<std::byte>(kPlenty.most_bytes + 1); },
                            Policy::ReadFiles, kPlenty);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, EFBIG);
}

}  // namespace
}  // namespace tacho::sandbox
