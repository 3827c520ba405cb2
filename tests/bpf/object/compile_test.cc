#include "bpf/object/compile.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "bpf/object/object.h"
#include "tests/bpf/live_support.h"

namespace tacho::bpf {
namespace {

// An environment variable with another value, or without one, for the life of this.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    had_ = std::getenv(name) != nullptr;
    value != nullptr ? ::setenv(name, value, 1) : ::unsetenv(name);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { had_ ? ::setenv(name_, old_.c_str(), 1) : ::unsetenv(name_); }

 private:
  const char* name_;
  std::string old_;
  bool had_ = false;
};

std::string make_program(const std::string& path) {
  std::ofstream(path) << "#!/bin/sh\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

TEST(FindClang, TakesTheNamedOneThenClangThenTheNewestNumber) {
  const auto folder = PrivateFolder::create();
  ASSERT_TRUE(folder);
  const Variable path("PATH", folder->path().c_str());
  const Variable unnamed("TACHO_CLANG", nullptr);
  const auto none = find_clang();
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().what.find("apt-get install clang"), std::string::npos);
  EXPECT_NE(none.error().what.find("TACHO_CLANG"), std::string::npos);

  make_program(folder->path() + "/clang-9");
  make_program(folder->path() + "/clang-14");
  make_program(folder->path() + "/clang-format-15");
  EXPECT_EQ(*find_clang(), folder->path() + "/clang-14");
  make_program(folder->path() + "/clang");
  EXPECT_EQ(*find_clang(), folder->path() + "/clang");
  const Variable named("TACHO_CLANG", "/opt/my-clang");
  EXPECT_EQ(*find_clang(), "/opt/my-clang");
}

class Compile : public testing::Test {
 protected:
  void SetUp() override {
    if (::access("/sys/kernel/btf/vmlinux", R_OK) != 0) GTEST_SKIP() << "needs a kernel with BTF";
    if (!find_clang()) GTEST_SKIP() << "needs clang";
  }
};

TEST_F(Compile, MakesAnObjectAndKeepsTheHeadersForTheNextTime) {
  const auto cache = PrivateFolder::create();
  ASSERT_TRUE(cache);
  const Variable kept("XDG_CACHE_HOME", cache->path().c_str());
  const live::Source source(
      "SEC(\"tracepoint/syscalls/sys_enter_read\") int a(void *ctx) { return OUT(1); }\n");
  const auto object = compile(source.path(), {});
  ASSERT_TRUE(object) << object.error().what;
  EXPECT_TRUE(parse_elf_object(*object));

  struct stat status {};
  ASSERT_EQ(::stat((cache->path() + "/tacho").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  std::string said;
  ASSERT_TRUE(compile(source.path(), [&](std::string_view line) { said += line; }));
  EXPECT_EQ(said.find("made "), std::string::npos) << "vmlinux.h was made again: " << said;
}

TEST_F(Compile, HeadersFromAFolderThatOthersCanEnterAreNotUsed) {
  const auto cache = PrivateFolder::create();
  ASSERT_TRUE(cache);
  const Variable kept("XDG_CACHE_HOME", cache->path().c_str());
  std::filesystem::create_directory(cache->path() + "/tacho");
  ::chmod((cache->path() + "/tacho").c_str(), 0755);
  const live::Source source(
      "SEC(\"tracepoint/syscalls/sys_enter_read\") int a(void *ctx) { return OUT(1); }\n");
  std::string said;
  const auto object = compile(source.path(), [&](std::string_view line) { said += line; });
  ASSERT_TRUE(object) << object.error().what;
  EXPECT_NE(said.find("headers are not kept"), std::string::npos) << said;
  EXPECT_TRUE(std::filesystem::is_empty(cache->path() + "/tacho"));
}

TEST_F(Compile, ProgramsMayDoWithoutVmlinuxAndIncludeTheirNeighbours) {
  const auto folder = PrivateFolder::create();
  ASSERT_TRUE(folder);
  std::ofstream(folder->path() + "/mine.h") << "struct mine { __u64 bytes; };\n";
  std::ofstream(folder->path() + "/-p.bpf.c") << "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\n"
                                                 "#include <tacho/event.h>\n#include <mine.h>\n"
                                                 "EVENT(mine, struct mine);\n"
                                                 "SEC(\"tracepoint/a/b\") int a(void *ctx) { return 0; }\n";
  const auto object = compile(folder->path() + "/-p.bpf.c", {});
  ASSERT_TRUE(object) << object.error().what;
  const auto elf = parse_elf_object(*object);
  ASSERT_TRUE(elf);
  EXPECT_NE(elf->find_section(".BTF"), nullptr);
}

TEST_F(Compile, AFaultInTheSourceIsTheCompilersMessage) {
  const live::Source source("int x = ;\n");
  testing::internal::CaptureStderr();
  const auto object = compile(source.path(), {});
  const std::string compiler = testing::internal::GetCapturedStderr();
  ASSERT_FALSE(object);
  EXPECT_NE(compiler.find("error: expected expression"), std::string::npos) << compiler;
  EXPECT_EQ(object.error().what.find(source.path() + ": not compiled"), 0u) << object.error().what;
}

TEST_F(Compile, FoldersThatOthersMayChangeAreNeitherUsedForHeadersNorForTemporaryFiles) {
  const auto open = PrivateFolder::create();
  ASSERT_TRUE(open);
  std::filesystem::create_directories(open->path() + "/cache");
  ::chmod(open->path().c_str(), 0777);  // somebody else may put another folder in the place of cache
  const Variable kept("XDG_CACHE_HOME", (open->path() + "/cache").c_str());
  const Variable temporary("TMPDIR", open->path().c_str());
  std::string said;
  const live::Source source(
      "SEC(\"tracepoint/syscalls/sys_enter_read\") int a(void *ctx) { return OUT(1); }\n");
  EXPECT_NE(source.path().find(open->path()), 0u) << "the source is in a folder of our own";
  const auto object = compile(source.path(), [&](std::string_view line) { said.append(line) += '\n'; });
  ASSERT_TRUE(object) << object.error().what;
  EXPECT_NE(said.find("headers are not kept: " + open->path() + " may be changed by all users"),
            std::string::npos)
      << said;
  EXPECT_EQ(said.find("-I" + open->path()), std::string::npos) << said;
}

TEST_F(Compile, AStopEndsTheCompilerAndWhatItStarted) {
  const live::Source source("");
  const std::string compiler = source.path() + ".sh";
  std::ofstream(compiler) << "#!/bin/sh\nsleep 1234567 & echo $! > " << source.path() << ".pid\nwait\n";
  std::filesystem::permissions(compiler, std::filesystem::perms::owner_all);
  const Variable named("TACHO_CLANG", compiler.c_str());
  int started = 0;
  const auto stop = [&] { return (std::ifstream(source.path() + ".pid") >> started) && started != 0; };
  const auto object = compile(source.path(), {}, stop);
  ASSERT_FALSE(object);
  EXPECT_EQ(object.error().code, EINTR);
  for (int i = 0; i < 100 && ::kill(started, 0) == 0; ++i) ::usleep(10'000);
  std::string state;
  std::ifstream("/proc/" + std::to_string(started) + "/stat") >> state >> state >> state;
  EXPECT_TRUE(state.empty() || state == "Z") << "killed, and perhaps not reaped by its new parent: " << state;
}

TEST_F(Compile, AMissingSourceAndAMissingCompilerAreNamed) {
  const auto missing = compile("/no/such/file.bpf.c", {});
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().what.find("/no/such/file.bpf.c: No such file"), std::string::npos);
  const live::Source source("");
  const Variable named("TACHO_CLANG", "/no/such/clang");
  const auto object = compile(source.path(), {});
  ASSERT_FALSE(object);
  EXPECT_NE(object.error().what.find("cannot run '/no/such/clang'"), std::string::npos)
      << object.error().what;
}

}  // namespace
}  // namespace tacho::bpf
