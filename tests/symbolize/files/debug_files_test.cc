#include "symbolize/files/debug_files.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <thread>

#include "format/base/file.h"
#include "format/records/perf_abi.h"
#include "symbolize/files/debuginfod.h"
#include "symbolize/files/pinned_files.h"
#include "symbolize/symbolizer.h"
#include "tests/symbolize/folder.h"

namespace tacho::symbolize {
namespace {

std::string text(const Result<std::vector<std::byte>>& bytes) {
  return bytes ? std::string(format::as_text(*bytes)) : "error: " + bytes.error().what;
}

TEST(DebugFiles, CandidatesStandInPerfsOrder) {
  const auto id = format::BuildId::from_hex("0123456789abcdef0123456789abcdef01234567");
  const auto found = DebugFiles("").candidates("/opt/bin/x", *id, "x.dbg");
  std::string paths;
  for (const Candidate& one : found) paths += std::string(1, one.source) + " " + one.path + "\n";
  EXPECT_EQ(paths,
            "l /opt/bin/x.dbg\n"
            "l /opt/bin/.debug/x.dbg\n"
            "l /usr/lib/debug/opt/bin/x.dbg\n"
            "f /usr/lib/debug/opt/bin/x.debug\n"
            "u /usr/lib/debug/opt/bin/x\n"
            "b /usr/lib/debug/.build-id/01/23456789abcdef0123456789abcdef01234567.debug\n");
}

TEST(DebugFiles, WithoutABuildIdOrALinkOnlyThePathIsLeft) {
  EXPECT_EQ(DebugFiles("").candidates("/opt/x", {}, "").size(), 2u);
}

TEST(DebugFiles, ReadsBelowItsRoot) {
  const test::Folder root;
  root.write("/etc/x", "below");
  const DebugFiles files(root.path());
  EXPECT_EQ(text(files.read_file("/etc/x", 100)), "below");
  EXPECT_NE(text(files.read_file("/etc/passwd", 1 << 20)).find("No such file"), std::string::npos);
  EXPECT_NE(text(files.read_file("/etc/x", 2)).find("larger than 2 bytes"), std::string::npos);
}

// Opening is an act already: a device does something, and whoever waits at a FIFO goes on.
TEST(DebugFiles, WhatIsNoRegularFileIsNotEvenOpened) {
  const test::Folder root;
  root.write("/file", "x");
  ASSERT_EQ(::mkfifo((root.path() + "/fifo").c_str(), 0600), 0);
  const format::Fd watch(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  for (const char* name : {"/fifo", "/file"}) {
    ASSERT_GE(::inotify_add_watch(watch.get(), (root.path() + name).c_str(), IN_OPEN), 0);
  }
  const auto was_opened = [&] {
    std::array<char, 4096> events{};
    return ::read(watch.get(), events.data(), events.size()) > 0;
  };
  for (const DebugFiles& files : {DebugFiles(root.path()), DebugFiles("")}) {
    const std::string folder = files.root().empty() ? root.path() : "";
    const auto fifo = files.open_file(folder + "/fifo");
    ASSERT_FALSE(fifo);
    EXPECT_NE(fifo.error().what.find("is not a regular file"), std::string::npos) << fifo.error().what;
    EXPECT_FALSE(was_opened());
    EXPECT_TRUE(files.open_file(folder + "/file"));
    EXPECT_TRUE(was_opened()) << "the test can see it";
  }
  EXPECT_FALSE(DebugFiles("").open_file("/proc/self/status")) << "made up by the kernel";
}

// The path comes out of a capture, and the links out of a tree that came with it.
TEST(DebugFiles, NothingLeadsOutOfTheRoot) {
  const test::Folder outside, root;
  outside.write("/secret", "secret");
  root.write("/x", "x");
  std::filesystem::create_symlink(outside.path() + "/secret", root.path() + "/absolute");
  std::filesystem::create_symlink("../" + outside.path().substr(5) + "/secret", root.path() + "/climbing");
  const DebugFiles files(root.path());
  for (const char* path : {"/absolute", "/climbing"}) EXPECT_FALSE(files.open_file(path)) << path;
  const std::string up = "/../../../../../.." + outside.path() + "/secret";
  EXPECT_FALSE(files.open_file(up));
}

// Before Linux 5.6 there is no openat2(). Its refusal is for a process of its own.
TEST(DebugFiles, NothingLeadsOutOfTheRootOnOldKernels) {
  const test::Folder outside, root;
  outside.write("/folder/secret", "secret");
  root.write("/usr/lib/x", "x");
  std::filesystem::create_symlink("usr/lib", root.path() + "/lib");
  std::filesystem::create_symlink(outside.path() + "/folder", root.path() + "/out");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::array<sock_filter, 4> rules{{{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
                                      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_openat2},
                                      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ENOSYS},
                                      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}}};
    const sock_fprog program{rules.size(), rules.data()};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
      ::_exit(64);
    const DebugFiles files(root.path());
    const std::string up = "/../../../../../.." + outside.path() + "/folder/secret";
    const bool is_found[] = {bool(files.open_file("/usr/lib/x")), bool(files.open_file("/lib/x")),
                             bool(files.open_file("/out/secret")), bool(files.open_file(up))};
    int bits = 0;
    for (int i = 0; i < 4; ++i) bits |= is_found[i] ? 1 << i : 0;
    ::_exit(bits);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 3) << "the first two are below the root";
}

TEST(DebugFiles, ALinkInsideTheRootIsFollowedAsTheHostWould) {
  const test::Folder root;
  root.write("/usr/lib/x", "found");
  std::filesystem::create_symlink("/usr/lib", root.path() + "/lib");
  EXPECT_EQ(text(DebugFiles(root.path()).read_file("/lib/x", 100)), "found");
}

TEST(DebugFiles, OnlyRegularFilesAreOpenedAndNothingIsWaitedFor) {
  const test::Folder root;
  ASSERT_EQ(mkfifo((root.path() + "/fifo").c_str(), 0600), 0);
  for (const auto& [base, path] : {std::pair(root.path(), std::string("/fifo")),
                                   {"", root.path() + "/fifo"},
                                   {root.path(), std::string("/")},
                                   {"", std::string("/dev/null")}}) {
    const auto file = DebugFiles(base).open_file(path);
    EXPECT_FALSE(file) << base << path;
  }
}

TEST(DebugFiles, ALineAboutAFileNamesItOnce) {
  const DebugFiles here{""}, below{"/sysroot"};
  EXPECT_EQ(here.message("/bin/x", "/bin/x: is empty"), "/bin/x: is empty");
  EXPECT_EQ(below.message("/bin/x", "/sysroot/bin/x: is empty", "no lines: "),
            "/sysroot/bin/x: no lines: is empty");
  EXPECT_EQ(below.message("/bin/x", "/cache/elf: is empty", "no lines: "),
            "/bin/x: no lines: /cache/elf: is empty");
  EXPECT_EQ(below.message("[vdso]", "it is not attached"), "[vdso]: it is not attached");
}

}  // namespace

// Against Debian's own server, on loopback, serving a folder of ours. It is started here and ended by its id.

namespace {

constexpr const char* kServer = "/usr/bin/debuginfod";
constexpr std::string_view kProgramId = "0123456789abcdef0123456789abcdef01234565";

format::Fd connect_to(std::uint16_t port) {
  format::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) return {};
  return socket;
}

// True once the server has found the file.
bool serves(std::uint16_t port, std::string_view id) {
  const format::Fd socket = connect_to(port);
  if (!socket) return false;
  const std::string request =
      "GET /buildid/" + std::string(id) + "/executable HTTP/1.0\r\nHost: localhost\r\n\r\n";
  if (::write(socket.get(), request.data(), request.size()) < 0) return false;
  std::array<char, 16> answer{};
  const ssize_t size = ::read(socket.get(), answer.data(), answer.size());
  return size > 12 && std::string_view(answer.data(), 12).ends_with("200");
}

std::uint16_t free_port() {
  const format::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&at), size) != 0) return 0;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&at), &size) != 0) return 0;
  return ntohs(at.sin_port);
}

class DebuginfodTest : public testing::Test {
 protected:
  void TearDown() override {
    if (server > 0) {
      ::kill(server, SIGKILL);
      ::waitpid(server, nullptr, 0);
    }
    ::unsetenv("DEBUGINFOD_URLS");
    ::unsetenv("DEBUGINFOD_CACHE_PATH");
  }
  // Starts the server on what lies in `served`; false when it does not come up within ten seconds.
  bool start() {
    const std::uint16_t port = free_port();
    server = ::fork();
    if (server == 0) {
      const int nowhere = ::open("/dev/null", O_RDWR);
      for (const int fd : {0, 1, 2}) ::dup2(nowhere, fd);
      const std::string number = std::to_string(port);
      ::execl(kServer, kServer, "-d", ":memory:", "-p", number.c_str(), "-c", "1", "-F",
              served.path().c_str(), static_cast<char*>(nullptr));
      ::_exit(127);
    }
    ::setenv("DEBUGINFOD_URLS", ("http://127.0.0.1:" + std::to_string(port)).c_str(), 1);
    ::setenv("DEBUGINFOD_CACHE_PATH", (cache.path() + "/client").c_str(), 1);
    for (int tries = 0; tries < 100; ++tries) {
      if (serves(port, kProgramId)) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return false;
  }

  test::Folder served, cache;
  pid_t server = -1;
};

TEST_F(DebuginfodTest, WithoutServersItSaysSo) {
  ::unsetenv("DEBUGINFOD_URLS");
  const auto connected = Debuginfod::connect();
  ASSERT_FALSE(connected);
  EXPECT_NE(connected.error().what.find("DEBUGINFOD_URLS"), std::string::npos);
}

TEST_F(DebuginfodTest, FetchesWhatIsNowhereElse) {
  if (::access(kServer, X_OK) != 0) GTEST_SKIP() << kServer << " is missing: install debuginfod";
  if (::access("/usr/lib/x86_64-linux-gnu/libdebuginfod.so.1", F_OK) != 0) {
    GTEST_SKIP() << "libdebuginfod.so.1 is missing: install libdebuginfod1";
  }
  served.copy(kData + "/calls-5.so", "/calls.so");
  ASSERT_TRUE(start()) << "the server did not find its file";

  const test::Folder root;
  SymbolOptions options;
  options.symfs = root.path();
  options.debuginfod = Servers::Asked;
  options.source_lines = SourceLines::Yes;
  format::Features features;
  AddressSpaces spaces;
  const auto map = [&](std::string_view path, std::uint64_t start, std::string_view id) {
    format::MmapRecord record;
    record.pid = record.tid = 7;
    record.start = start;
    record.length = 0x3000;
    record.filename = path;
    record.is_mmap2 = true;
    record.protection = 5;
    record.build_id = *format::BuildId::from_hex(id);
    spaces.apply(record, format::abi::kCpumodeUser);
  };
  map("/gone/calls.so", 0x10000, kProgramId);
  map("/gone/other.so", 0x20000, "ffff456789abcdef0123456789abcdef01234565");
  Symbolizer symbolizer(options, features, spaces);
  const auto frame = [&](std::uint64_t ip) {
    return symbolizer.resolve(spaces.find_mapping(7, {ip}, format::abi::kCpumodeUser), {ip},
                              format::abi::kCpumodeUser)[0];
  };
  EXPECT_EQ(frame(0x102a4).function, "alone");
  EXPECT_EQ(frame(0x102a4).line, 18u);
  EXPECT_EQ(frame(0x202a4).function, "");
  format::Diagnostics diagnostics;
  symbolizer.report_missing(diagnostics);
  ASSERT_EQ(diagnostics.findings().size(), 1u);
  EXPECT_NE(diagnostics.findings()[0].first.find("debuginfod: build id ffff"), std::string::npos)
      << diagnostics.findings()[0].first;
}

}  // namespace

namespace {

using namespace std::string_literals;

class PinnedFilesTest : public testing::Test {
 protected:
  // A file with this content, open.
  static format::Fd file(std::string_view content) {
    format::Fd made(::memfd_create("held", MFD_CLOEXEC));
    EXPECT_TRUE(format::write_at(made.get(), 0, std::as_bytes(std::span(content))));
    return made;
  }
  static Result<PinnedFiles> listed(const std::string& text) {
    const format::Fd listing = file(text);
    return PinnedFiles::read(listing.get());
  }
  static std::string content(const Result<format::Fd>& found) {
    if (!found) return "";
    const auto bytes = format::read_at(found->get(), 0, 100);
    return bytes ? std::string(format::as_text(*bytes)) : "";
  }

  format::Fd one_ = file("one"), two_ = file("two");
  const std::string one_number_ = std::to_string(one_.get()), two_number_ = std::to_string(two_.get());
  const format::BuildId id_ = *format::BuildId::from_hex("0123456789abcdef0123456789abcdef01234567");
};

TEST_F(PinnedFilesTest, ABinaryIsFoundByItsBuildIdOrElseByItsName) {
  const auto held =
      listed(one_number_ + " b 7 " + id_.hex() + " /a name (deleted)\0"s + two_number_ + " b 8 - /two\0"s);
  ASSERT_TRUE(held) << held.error().what;
  EXPECT_EQ(content(held->binary("/whatever", id_)), "one");
  EXPECT_EQ(content(held->binary("/two", {})), "two");
  EXPECT_EQ(content(held->binary("/a name (deleted)", {})), "one");
  EXPECT_FALSE(held->binary("/three", {}));
  EXPECT_FALSE(held->perf_map(7));
}

TEST_F(PinnedFilesTest, WhatSeveralHadTheNameOfIsNobodys) {
  const auto held = listed(one_number_ + " b 7 - /app\0"s + two_number_ + " b 8 - /app\0"s + one_number_ +
                           " m 9 - \0"s + two_number_ + " m 9 - \0"s + one_number_ + " m 5 - \0"s);
  ASSERT_TRUE(held) << held.error().what;
  const auto app = held->binary("/app", {}), map = held->perf_map(9);
  ASSERT_FALSE(app || map);
  EXPECT_EQ(app.error().code, ENOTUNIQ);
  EXPECT_EQ(map.error().code, ENOTUNIQ);
  EXPECT_EQ(held->binary("/other", {}).error().code, ENOENT);
  EXPECT_EQ(content(held->perf_map(5)), "one");
}

TEST_F(PinnedFilesTest, WhatIsNoListingIsAnError) {
  EXPECT_FALSE(listed("1"));
  EXPECT_FALSE(listed(one_number_ + " b 7 - /app"));
  EXPECT_FALSE(listed(one_number_ + " x 7 - /app\0"s));
  EXPECT_FALSE(listed(one_number_ + " b x - /app\0"s));
  EXPECT_FALSE(listed(one_number_ + " b 7 zz /app\0"s));
  EXPECT_FALSE(listed("100000 b 7 - /app\0"s)) << "no such descriptor";
  EXPECT_FALSE(PinnedFiles::read(100000));
}

}  // namespace

}  // namespace tacho::symbolize
