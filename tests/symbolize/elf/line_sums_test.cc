#include "symbolize/elf/line_sums.h"

#include <dwarf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

#include "format/base/byte_writer.h"

namespace tacho::symbolize {
namespace {

Md5 sum_of(char filler) {
  Md5 sum{};
  sum.fill(static_cast<std::byte>(filler));
  return sum;
}

void put_text(format::ByteWriter& out, std::string_view text) {
  out.bytes(std::as_bytes(std::span(text))).u8(0);
}

struct NamedFile {
  std::string_view name;
  std::uint8_t folder;
  char sum;
};

// A line table of DWARF 5 with its strings inside, as clang writes it with -gdwarf-5.
std::vector<std::byte> table(std::initializer_list<std::string_view> folders,
                             std::initializer_list<NamedFile> files, std::uint16_t version = 5) {
  format::ByteWriter body;
  body.u16(version).u8(8).u8(0).u32(0);                // the size of the header is not needed
  body.u8(1).u8(1).u8(1).u8(0xfb).u8(14).u8(2).u8(0);  // one standard opcode
  body.u8(1).u8(DW_LNCT_path).u8(DW_FORM_string).u8(static_cast<std::uint8_t>(folders.size()));
  for (const std::string_view folder : folders) put_text(body, folder);
  body.u8(3).u8(DW_LNCT_path).u8(DW_FORM_string).u8(DW_LNCT_directory_index).u8(DW_FORM_udata);
  body.u8(DW_LNCT_MD5).u8(DW_FORM_data16).u8(static_cast<std::uint8_t>(files.size()));
  for (const NamedFile& file : files) {
    put_text(body, file.name);
    body.u8(file.folder).bytes(sum_of(file.sum));
  }
  format::ByteWriter out;
  out.u32(static_cast<std::uint32_t>(body.size())).bytes(body.view());
  return std::move(out).take_bytes();
}

std::vector<Md5> sums(const std::vector<std::byte>& lines, std::string_view path) {
  return LineSums({.lines = lines, .line_texts = {}, .texts = {}}).sums_of(path);
}

TEST(LineSums, AFileHasTheSumBesideItsName) {
  const auto one = table({"/src", "include", "/usr/include"},
                         {{"hot.c", 0, 'a'}, {"hot.h", 1, 'b'}, {"stdio.h", 2, 'c'}, {"/gen/x.c", 1, 'd'}});
  EXPECT_EQ(sums(one, "/src/hot.c"), std::vector{sum_of('a')});
  EXPECT_EQ(sums(one, "/src/include/hot.h"), std::vector{sum_of('b')})
      << "relative to the folder of compilation";
  EXPECT_EQ(sums(one, "/usr/include/stdio.h"), std::vector{sum_of('c')});
  EXPECT_EQ(sums(one, "/gen/x.c"), std::vector{sum_of('d')});
  EXPECT_TRUE(sums(one, "hot.c").empty());
}

TEST(LineSums, UnitsOfSeveralTextsHaveAllOfThem) {
  auto all = table({"/src"}, {{"hot.h", 0, 'a'}});
  for (const auto& more : {table({"/src"}, {{"hot.h", 0, 'a'}}), table({"/src"}, {{"hot.h", 0, 'z'}}, 4),
                           table({"/src"}, {{"hot.h", 0, 'b'}})})
    all.insert(all.end(), more.begin(), more.end());
  EXPECT_EQ(sums(all, "/src/hot.h"), (std::vector{sum_of('a'), sum_of('b')}))
      << "tables of DWARF 4 have none";
}

// Else many files in one folder with a long name would take the product of both.
TEST(LineSums, LongNamesAreCut) {
  const std::string folder = "/" + std::string(5000, 'd');
  EXPECT_EQ(sums(table({folder}, {{"hot.c", 0, 'a'}}), folder.substr(0, 4096) + "/hot.c"),
            std::vector{sum_of('a')});
}

TEST(LineSums, DamageEndsAtOnce) {
  const auto whole = table({"/src", "include"}, {{"hot.c", 0, 'a'}, {"hot.h", 1, 'b'}});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_TRUE(sums(cut, "/src/include/hot.h").empty()) << size;
  }
  // Any number of entries without bytes.
  format::ByteWriter body;
  body.u16(5).u8(8).u8(0).u32(0).u8(1).u8(1).u8(1).u8(0xfb).u8(14).u8(1);
  body.u8(0).u64(~std::uint64_t{0}).u64(~std::uint64_t{0});
  format::ByteWriter out;
  out.u32(static_cast<std::uint32_t>(body.size())).bytes(body.view());
  EXPECT_TRUE(sums(std::move(out).take_bytes(), "").empty());
}

}  // namespace
}  // namespace tacho::symbolize
