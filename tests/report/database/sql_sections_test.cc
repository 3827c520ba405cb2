#include "report/database/sql_sections.h"

#include <gtest/gtest.h>

#include "report/database/clickhouse.h"

namespace tacho::report {
namespace {

TEST(SqlSections, ASectionEndsBeforeTheCommentOfTheNext) {
  constexpr std::string_view kFile =
      "-- head\n-- section: one\nSELECT 1\n\n-- about two\n-- section: two\nSELECT 2\n";
  EXPECT_EQ(*sql_section(kFile, "one"), "SELECT 1\n");
  EXPECT_EQ(*sql_section(kFile, "two"), "SELECT 2\n");
  EXPECT_FALSE(sql_section(kFile, "three"));
}

TEST(SqlSections, PartsAreGivenOrSections) {
  constexpr std::string_view kFile = "-- section: one\nFROM (@two@) @three@\n-- section: two\n@three@, 2\n";
  EXPECT_EQ(*sql_section(kFile, "one", {{"three", "'x'"}}), "FROM ('x', 2\n) 'x'\n");
  EXPECT_FALSE(sql_section(kFile, "one"));
  EXPECT_FALSE(sql_section("-- section: a\n@a@\n", "a")) << "without an end";
}

TEST(SqlSections, EverySectionOfTheFilesIsFound) {
  const SqlParts parts{{"captures_file", "''"}, {"samples_file", "''"}, {"stacks_file", "''"},
                       {"frames_file", "''"},   {"events_file", "''"},  {"losses_file", "''"}};
  for (const std::string_view file : {kDuckDbSql, kClickHouseSql}) {
    for (const char* const name : {"schema", "has_capture", "chosen", "events", "stack_sums",
                                   "stack_sums_between", "frame_names", "series", "captures"}) {
      const auto sql = sql_section(file, name, parts);
      ASSERT_TRUE(sql) << name;
      EXPECT_EQ(sql->find('@'), std::string::npos) << *sql;
    }
  }
  EXPECT_TRUE(sql_section(kDuckDbSql, "load", parts));
}

TEST(SqlStatements, EndAtSemicolonsOutsideOfQuotesAndComments) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(sql_statements("SELECT ';' ; SELECT \"a;b\" -- c;d\n, 2;\n-- e\n"),
            (Texts{"SELECT ';' ", " SELECT \"a;b\" -- c;d\n, 2"}));
  EXPECT_EQ(sql_statements("SELECT 1 /* ; */"), (Texts{"SELECT 1 /* ; */"}));
  EXPECT_EQ(sql_statements(" ; ;"), Texts{});
  EXPECT_EQ(sql_statements("SELECT 'it''s; '; 'open"), (Texts{"SELECT 'it''s; '", " 'open"}));
}

TEST(SqlQuoted, QuotesAreDoubled) { EXPECT_EQ(sql_quoted("it's"), "'it''s'"); }

TEST(ClickHousePlace, IsAUrlWithoutAUser) {
  const auto place = ClickHousePlace::parse("http://db.example:9000/fleet");
  ASSERT_TRUE(place);
  EXPECT_EQ(place->host + " " + place->port + " " + place->database, "db.example 9000 fleet");
  const auto short_form = ClickHousePlace::parse("http://[::1]");
  ASSERT_TRUE(short_form);
  EXPECT_EQ(short_form->host + " " + short_form->port + " " + short_form->database, "::1 8123 default");
  for (const char* const wrong :
       {"https://a", "http://", "http://user@host", "http://a:b/c", "http://a\r\nb", "a.db"})
    EXPECT_FALSE(ClickHousePlace::parse(wrong)) << wrong;
}

}  // namespace
}  // namespace tacho::report
