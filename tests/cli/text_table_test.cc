#include "cli/text_table.h"

#include <gtest/gtest.h>

namespace tacho::cli {
namespace {

using Kind = TableColumn::Kind;
using Rows = std::vector<std::vector<std::string>>;

const std::vector<TableColumn> kColumns = {{"id", Kind::Number, 6},   {"type", Kind::Word, 8, 2},
                                           {"tag", Kind::Spare, 16},  {"name", Kind::Name, 12},
                                           {"runs", Kind::Number, 6}, {"users", Kind::List, 0, 2}};
const Rows kRows = {
    {"7", "kprobe", "0123456789abcdef", "short", "-", "1"},
    {"101", "tracepoint", "fedcba9876543210", "a_name_that_has_thirty_letters", "12", "101 102 103 104"}};

TEST(TextTable, HasTheWidthsOfItsColumnsWithoutALimit) {
  EXPECT_EQ(text_table(kColumns, kRows, 0),
            "    id  type     tag              name           runs  users\n"
            "     7  kprobe   0123456789abcdef short             -  1\n"
            "   101  tracepoint fedcba9876543210 a_name_that_has_thirty_letters     12  101 102 103 104\n");
}

TEST(TextTable, IsAsWideAsItsTextsWhereThatFits) {
  EXPECT_EQ(text_table(kColumns, kRows, 120),
            " id  type        tag               name                            runs  users\n"
            "  7  kprobe      0123456789abcdef  short                              -  1\n"
            "101  tracepoint  fedcba9876543210  a_name_that_has_thirty_letters    12  101 102 103 104\n");
}

TEST(TextTable, LeavesOutWhatItCanSpareFirst) {
  EXPECT_EQ(text_table(kColumns, kRows, 80),
            " id  type        name                            runs  users\n"
            "  7  kprobe      short                              -  1\n"
            "101  tracepoint  a_name_that_has_thirty_letters    12  101 102 103 104\n");
}

TEST(TextTable, CutsNamesInTheMiddleAndListsAfterAWord) {
  EXPECT_EQ(text_table(kColumns, kRows, 50),
            " id  type        name          runs  users\n"
            "  7  kprobe      short            -  1\n"
            "101  tracepoint  a_nam..tters    12  101 102 ..\n");
}

TEST(TextTable, HasALineOfItsOwnForASingleText) {
  const Rows rows = {kRows.front(), {"        also at: tracepoint sys_enter_openat"}};
  EXPECT_EQ(text_table(kColumns, rows, 0),
            "    id  type     tag              name           runs  users\n"
            "     7  kprobe   0123456789abcdef short             -  1\n"
            "        also at: tracepoint sys_enter_openat\n");
  EXPECT_EQ(text_table(kColumns, rows, 40),
            "id  type    name   runs  users\n"
            " 7  kprobe  short     -  1\n"
            "        also at: tr..nt sys_enter_openat\n");
}

TEST(TextTable, CountsCharactersNotBytes) {
  const std::vector<TableColumn> columns = {{"name", Kind::Name}, {"n", Kind::Number}};
  EXPECT_EQ(text_table(columns, {{"größer", "1"}, {"kleine", "2"}}, 80),
            "name    n\n"
            "größer  1\n"
            "kleine  2\n");
}

TEST(CutInTheMiddle, KeepsTheStartAndTheEnd) {
  EXPECT_EQ(cut_in_the_middle("std::vector<int>::iterator::next", 20), "std::vect..tor::next");
  EXPECT_EQ(cut_in_the_middle("short", 5), "short");
  EXPECT_EQ(cut_in_the_middle("shorter", 4), "shor");
}

}  // namespace
}  // namespace tacho::cli
