// Against Debian's own server, on loopback, serving a folder of ours. It is started here and ended by its id.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>

#include "format/records/perf_abi.h"
#include "symbolize/files/debug_files.h"
#include "symbolize/symbolizer.h"
#include "tests/symbolize/folder.h"

namespace tacho::symbolize {
namespace {

constexpr const char* kServer = "/usr/bin/debuginfod";
constexpr std::string_view kId = "0123456789abcdef0123456789abcdef01234565";
const std::string kData = TACHO_TEST_DATA;

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
      if (serves(port, kId)) return true;
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
  map("/gone/calls.so", 0x10000, kId);
  map("/gone/other.so", 0x20000, "ffff456789abcdef0123456789abcdef01234565");
  Symbolizer symbolizer(options, features, spaces);
  const auto frame = [&](std::uint64_t ip) {
    return symbolizer.resolve(spaces.find(7, {ip}, format::abi::kCpumodeUser), {ip},
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
}  // namespace tacho::symbolize
