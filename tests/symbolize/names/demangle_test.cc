#include "symbolize/names/demangle.h"

#include <gtest/gtest.h>

namespace tacho::symbolize {
namespace {

TEST(Demangle, ShowsNamesAsPerfDoes) {
  struct Row {
    const char* mangled;
    const char* shown;
  };
  constexpr Row kRows[] = {
      {"_ZNK3geo7PolygonILi6EE4areaEv", "geo::Polygon<6>::area"},
      {"_ZN3geo6volumeEi", "geo::volume"},
      {"_ZN1AC2Ev", "A::A"},
      {"_ZL5localv.part.0", "local"},
      {"_GLOBAL__I_a", "global constructors keyed to a"},
      {"_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"},
      {"_RNvCsaEbu32CMmSS_6mangle9histogram", "mangle::histogram"},
      {"camlStdlib__list_123", "Stdlib.list_123"},
      {"camlFoo__bar$2bbaz_99", "Foo.bar+baz_99"},
  };
  for (const Row& row : kRows) EXPECT_EQ(demangle(row.mangled), row.shown) << row.mangled;
}

TEST(Demangle, LeavesOtherNamesAlone) {
  for (const char* name : {"", "main", "_start", "_Z", "_R", "_GLOBAL_OFFSET_TABLE_", "camlabc",
                           "caml_call_gc", "_D3std5stdio4File5writeFZv", "R"}) {
    EXPECT_EQ(demangle(name), std::nullopt) << name;
  }
}

// f<pair<int, int>, pair<S1_, S1_>, pair<S3_, S3_>, ...>: each level stands for the one before, twice.
std::string growing_name(std::size_t levels) {
  constexpr std::string_view kNumbers = "13579BDFHJLNPRTVX";
  std::string name = "_Z1fISt4pairIiiE";
  for (const char number : kNumbers.substr(0, levels)) {
    const std::string last = std::string("S") + number + "_";
    name += "St4pairI" + last + last + "E";
  }
  return name + "Evv";
}

TEST(Demangle, ANameThatWouldGrowTooLongStaysAsItIs) {
  EXPECT_EQ(demangle(growing_name(1)),
            "f<std::pair<int, int>, std::pair<std::pair<int, int>, std::pair<int, int> > >");
  EXPECT_TRUE(demangle(growing_name(5)));
  EXPECT_EQ(demangle(growing_name(17)), std::nullopt) << "it stands for 8 MB";
  EXPECT_TRUE(demangle(growing_name(5))) << "leaving one has no effect on the next";
}

TEST(Demangle, WholeNamesHaveParametersAndReturnTypes) {
  EXPECT_EQ(demangle("_Z3runiPKc", NameForm::Whole), "run(int, char const*)");
  EXPECT_EQ(demangle("_Z5mixedIiET_S0_", NameForm::Whole), "int mixed<int>(int)");
  EXPECT_EQ(Demangler(NameForm::Whole).shown("_Z3runv"), "run()");
}

TEST(Demangler, RemembersNames) {
  Demangler demangler;
  const std::string mangled = "_ZN3geo6volumeEi", plain = "main";
  const std::string_view first = demangler.shown(mangled);
  EXPECT_EQ(first, "geo::volume");
  EXPECT_EQ(demangler.shown(mangled).data(), first.data()) << "the same text, not made again";
  EXPECT_EQ(demangler.shown(plain).data(), plain.data());
}

// What perf 6.1 printed of symbols with these names.
TEST(Demangle, JavasNamesAreShownAsPerfShowsThem) {
  struct Row {
    std::string_view name, shown;  // empty: as it is
  };
  constexpr Row kRows[] = {
      {"Lcom/x/A;one(Ljava/lang/String;I)V", "com.x.A.one(java.lang.String, int)"},
      {"Lcom/x/A;two([Ljava/lang/String;[[I)V", "com.x.A.two(java.lang.String, int[][][])"},
      {"Lcom/x/A;three(I[La/B;La/B;)La/B;", "com.x.A.three(int, a.B, a.B)"},
      {"Lcom/x/A;<init>()V", "com.x.A<init>()"},
      {"Lcom/x/A;<clinit>(V)V", "com.x.A<clinit>(void)"},
      {"Lcom/x/A$In;access$0(ZBCDFJS)V",
       "com.x.A$In.access$0(boolean, byte, char, double, float, long, short)"},
      {"preLcom/x/A;four()V", "precom.x.A.four()"},
      {"Lcom/x/A;seven(IX)V", "com.x.A.seven(intX)"},
      {"Lcom/x/A;nine([VI)V", "com.x.A.nine(void[]int)"},
      {"L;x()V", ".x()"},
      {"Lcom/x/A;1x()V", "com.x.A1x()"},
      {"Lcom/x/A;LoadVec(LA;)V", "com.x.A.LoadVec(A)"},
      {"Lcom/x/A;g(Lb/C;Lb/C;)V)Q", "com.x.A.g(b.C, b.C)void)"},
      {"Lcom/x/A;noparens", ""},
      {"Lcom/x/A;six(I", ""},
      {"Lcom/x/A;eight(I)(J)V", ""},
      {"Lcom/x/A;te/n()V", ""},
      {"Lcom/x/A;e[()V", ""},
      {"Lcom/x/A;;i()V", ""},
      {"five(I)V", ""},
  };
  for (const Row& row : kRows) EXPECT_EQ(demangle(row.name).value_or(""), row.shown) << row.name;
}

}  // namespace
}  // namespace tacho::symbolize
