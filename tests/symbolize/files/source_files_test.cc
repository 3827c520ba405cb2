#include "symbolize/files/source_files.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/byte_writer.h"

namespace tacho::symbolize {
namespace {

namespace fs = std::filesystem;
constexpr uid_t kNoUser = 65534;

std::string hex(const Md5& sum) {
  std::string text;
  for (const std::byte byte : sum) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    text += kDigits[std::to_integer<std::size_t>(byte) / 16];
    text += kDigits[std::to_integer<std::size_t>(byte) % 16];
  }
  return text;
}

TEST(SourceNames, AreKnownByTheirEnding) {
  for (const char* const name : {"/a/b.c", "b.cc", "/x/main.rs", "/x/kernel.F90", "/x/boot.S", "/a/b.bpf.c",
                                 "/usr/include/c++/12/vector", "/opt/x/include/string_view"})
    EXPECT_TRUE(is_source_name(name)) << name;
  for (const char* const name :
       {"/etc/shadow", "/root/.ssh/id_rsa", "/root/.ssh/config", "/home/a/.c", "key.pem",
        "/usr/include/../../etc/passwd", "/a/b.c/", "", "/", "/var/lib/db.sqlite", "c"})
    EXPECT_FALSE(is_source_name(name)) << name;
}

TEST(Md5, IsThatOfTheRfc) {
  const auto sum = [](const std::string& text) { return hex(md5_of(std::as_bytes(std::span(text)))); };
  EXPECT_EQ(sum(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(sum("message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
  EXPECT_EQ(sum(std::string(55, 'a')), "ef1772b6dff9a122358552954ad0df65");
  EXPECT_EQ(sum(std::string(56, 'a')), "3b0c8ac703f828b04c6c197006d17218");
  EXPECT_EQ(sum(std::string(64, 'a')), "014842d480b571495a4a0363793f7367");
  EXPECT_EQ(sum("12345678901234567890123456789012345678901234567890123456789012345678901234567890"),
            "57edf4a22be3c955ac49da2e2107b67a");
}

TEST(SourceSums, OfSeveralProgramsAreAllKept) {
  const Md5 one = md5_of({}), other = {};
  SourceSums sums;
  add_sums(sums, "/src/a.c", std::vector{one});
  add_sums(sums, "/src/a.c", std::vector{other, one});
  add_sums(sums, "/src/b.c", {});
  EXPECT_EQ(sums, (SourceSums{{"/src/a.c", {one, other}}}));
}

TEST(SourceSums, AreKeptAsLines) {
  SourceSums sums;
  sums["/a b/x.c"] = {Md5{}, md5_of({})};
  sums["/y.c"] = {md5_of({})};
  const auto attached = attach_sums(sums);
  ASSERT_TRUE(attached);
  EXPECT_EQ(sums_in(*attached), sums);
}

class ReadSource : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root, who may read every file";
    std::string name = (fs::temp_directory_path() / "tacho-source.XXXXXX").string();
    folder = ::mkdtemp(name.data());
    ::chmod(folder.c_str(), 0755);
    fs::create_directories(folder + "/src");
    fs::create_directories(folder + "/theirs");
    put("src/public.c", 0644);
    put("src/private.c", 0600);
    put("program", 0755);
    put("theirs/program", 0755);
    for (const char* const one : {"/theirs", "/theirs/program"}) own(folder + one, kNoUser);
  }
  void TearDown() override {
    if (!folder.empty()) fs::remove_all(folder);
  }
  void put(const std::string& name, mode_t mode) const {
    std::ofstream(folder + "/" + name) << "text";
    ASSERT_EQ(::chmod((folder + "/" + name).c_str(), mode), 0);
  }
  static void own(const std::string& path, uid_t user) { ASSERT_EQ(::lchown(path.c_str(), user, user), 0); }
  // Empty: it is read.
  std::string refusal(const std::string& path, const std::string& program = "program") const {
    const auto source = read_source("", folder + "/" + path, folder + "/" + program);
    if (source) return "";
    EXPECT_EQ(source.error().code, EPERM) << source.error().what;
    return source.error().what;
  }
  std::string refusal_for_nobody(const std::string& path) const {
    EXPECT_EQ(::seteuid(kNoUser), 0);
    ::prctl(PR_SET_DUMPABLE, 1);  // else /proc/self stays root's
    const auto source = read_source("", folder + "/" + path, "");
    EXPECT_EQ(::seteuid(0), 0);
    return source ? "" : source.error().what;
  }
  std::string folder;
};

TEST_F(ReadSource, RootReadsWhatAllUsersOrTheOwnerOfTheProgramMayRead) {
  EXPECT_EQ(refusal("src/public.c"), "");
  EXPECT_EQ(refusal("src/public.c", "theirs/program"), "");
  EXPECT_EQ(refusal("src/private.c"), "") << "root's program";
  const std::string why = "not all users may read it, and it does not belong to the owner of the program";
  EXPECT_EQ(refusal("src/private.c", "theirs/program"), why);
  EXPECT_EQ(refusal("src/private.c", "missing"), why);
  ASSERT_EQ(::chmod((folder + "/src").c_str(), 0700), 0);
  EXPECT_EQ(refusal("src/public.c", "theirs/program"), why) << "others may not search the folder";
}

TEST_F(ReadSource, RootReadsNothingThatAnotherUserCouldHavePutThere) {
  put("theirs/own.c", 0644);
  const std::string whose =
      folder + "/theirs belongs to user 65534, and root reads no source that another user could";
  EXPECT_EQ(refusal("theirs/own.c").substr(0, whose.size()), whose);
  fs::create_symlink(folder + "/src/private.c", folder + "/theirs/link.c");
  EXPECT_NE(refusal("theirs/link.c"), "");
  fs::create_symlink("private.c", folder + "/src/link.c");
  EXPECT_EQ(refusal("src/link.c"), "") << "root's own link";
  own(folder + "/src/link.c", kNoUser);
  EXPECT_NE(refusal("src/link.c").find("link.c belongs to user 65534"), std::string::npos);
  fs::create_hard_link(folder + "/src/private.c", folder + "/theirs/hard.c");
  EXPECT_NE(refusal("theirs/hard.c"), "");
  // In a sticky folder others can add files and links, but change none of root's.
  ASSERT_EQ(::chmod((folder + "/src").c_str(), 01777), 0);
  EXPECT_EQ(refusal("src/public.c"), "");
  own(folder + "/src/public.c", kNoUser);
  EXPECT_NE(refusal("src/public.c"), "");
}

TEST_F(ReadSource, AnAccessControlListCountsToo) {
  const auto list = [](std::uint32_t user) {
    format::ByteWriter out;
    out.u32(2);
    for (const auto& [tag, permissions, id] : std::initializer_list<std::array<std::uint32_t, 3>>{
             {1, 6, ~0U}, {2, 6, user}, {4, 4, ~0U}, {16, 6, ~0U}, {32, 4, ~0U}})
      out.u16(static_cast<std::uint16_t>(tag)).u16(static_cast<std::uint16_t>(permissions)).u32(id);
    return std::move(out).take_bytes();
  };
  const auto set = [&](std::uint32_t user) {
    const auto bytes = list(user);
    return ::setxattr((folder + "/src/public.c").c_str(), "system.posix_acl_access", bytes.data(),
                      bytes.size(), 0);
  };
  if (set(kNoUser) != 0) GTEST_SKIP() << "the file system has no access control lists";
  EXPECT_NE(refusal("src/public.c").find("may be changed by user 65534"), std::string::npos);
  ASSERT_EQ(set(0), 0);
  EXPECT_EQ(refusal("src/public.c"), "");
}

TEST_F(ReadSource, OnlyFilesWithTheNameOfASourceAreRead) {
  put("src/secret", 0644);
  EXPECT_EQ(refusal("src/secret"), "it does not have the name of a source file");
  EXPECT_EQ(refusal_for_nobody("src/secret"), "it does not have the name of a source file");
  ASSERT_EQ(::mkfifo((folder + "/src/fifo.c").c_str(), 0644), 0);
  EXPECT_EQ(refusal("src/fifo.c"), "it is not a regular file");
}

TEST_F(ReadSource, OtherUsersReadTheirOwnFilesAndWhatAllMayRead) {
  EXPECT_EQ(refusal_for_nobody("src/public.c"), "");
  EXPECT_NE(refusal_for_nobody("src/private.c"), "");
  put("theirs/own.c", 0600);
  own(folder + "/theirs/own.c", kNoUser);
  EXPECT_EQ(refusal_for_nobody("theirs/own.c"), "");
  // The link of a third user leads to a file that this user alone may read.
  fs::create_directories(folder + "/third");
  fs::create_symlink(folder + "/theirs/own.c", folder + "/third/link.c");
  own(folder + "/third", 54321);
  own(folder + "/third/link.c", 54321);
  EXPECT_NE(refusal_for_nobody("third/link.c").find("and not all users may read the file"),
            std::string::npos);
  put("third/public.c", 0644);
  own(folder + "/third/public.c", 54321);
  EXPECT_EQ(refusal_for_nobody("third/public.c"), "");
}

TEST_F(ReadSource, NoLinkLeavesTheRoot) {
  put("src/inside.c", 0644);
  fs::create_symlink("/inside.c", folder + "/src/absolute.c");
  fs::create_symlink("../../../../inside.c", folder + "/src/relative.c");
  fs::create_symlink(folder + "/theirs", folder + "/src/out");
  for (const char* const path : {"/absolute.c", "/relative.c", "/../../inside.c"})
    EXPECT_TRUE(read_source(folder + "/src", path, "")) << path;
  put("theirs/x.c", 0644);
  const auto out = read_source(folder + "/src", "/out/x.c", "");
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().code, ENOENT);
}

}  // namespace
}  // namespace tacho::symbolize
