#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "report/views/pack/command_pack.h"
#include "symbolize/frame.h"

namespace tacho::report {
namespace {

class OpenAccess final : public symbolize::FileAccess {
 public:
  void set_current(std::string_view) override { ++files; }
  std::string refusal(std::string_view) const override { return ""; }
  int files = 0;
};

class Copies : public testing::Test {
 protected:
  void add(const std::string& path) {
    format::PackedModule module;
    module.kind = static_cast<std::uint8_t>(symbolize::ModuleKind::User);
    module.path = static_cast<std::uint32_t>(pack.texts.size());
    pack.texts.append(path);
    pack.modules.push_back(module);
  }
  void had(const std::string& path, std::uint64_t raw_size) {
    format::Attachment copy;
    copy.name = "elf/" + path;
    copy.raw_size = raw_size;
    before.push_back(copy);
  }
  FileCopies copies() { return copy_files(pack, before, {}, access); }

  // Any small program: this one is larger than what is copied when sanitizers are in it.
  const std::string program = std::filesystem::canonical("/bin/sh").string();
  format::SymbolPack pack;
  std::vector<format::Attachment> before;
  OpenAccess access;
};

TEST_F(Copies, OfManyOmissionsTheFirstAreTold) {
  for (int i = 0; i < 50; ++i) add("/no/such/file/" + std::to_string(i));
  const FileCopies found = copies();
  EXPECT_TRUE(found.attachments.empty());
  ASSERT_EQ(found.omissions.size(), 20U);
  EXPECT_EQ(found.omissions[0], "/no/such/file/0: is not copied: /no/such/file/0: No such file or directory");
  EXPECT_EQ(found.more_omissions, 30U);
}

TEST_F(Copies, WhereAnOldCopyStaysNothingIsOmitted) {
  add("/no/such/file");
  had("/no/such/file", 1000);
  const FileCopies found = copies();
  EXPECT_TRUE(found.attachments.empty());
  EXPECT_TRUE(found.omissions.empty());
  EXPECT_EQ(found.more_omissions, 0U);
}

TEST_F(Copies, WhatStaysTakesRoomAndWhatIsReplacedDoesNot) {
  add(program);
  had(program, std::uint64_t{1} << 60);
  ASSERT_EQ(copies().attachments.size(), 1U);
  EXPECT_EQ(copies().attachments[0].name, "elf/" + program);
  access.files = 0;
  had("/another", ~std::uint64_t{0});
  before.erase(before.begin());
  const FileCopies full = copies();
  EXPECT_TRUE(full.attachments.empty());
  EXPECT_EQ(full.omissions, (std::vector<std::string>{program + ": is not copied: there is no room for it"}));
  EXPECT_EQ(access.files, 0) << "no file is looked at";
}

}  // namespace
}  // namespace tacho::report
