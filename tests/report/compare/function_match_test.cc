#include "report/compare/function_match.h"

#include <gtest/gtest.h>

namespace tacho::report {
namespace {

constexpr bool kYes = true, kNo = false;

TEST(FunctionMatch, NamesLoseWhatCompilersAdd) {
  const std::pair<std::string_view, std::string_view> names[] = {
      {"sum", "sum"},
      {"sum.cold", "sum"},
      {"sum.part.0.cold", "sum"},
      {"sum.constprop.0.isra.1", "sum"},
      {"sum.llvm.123456789", "sum"},
      {"sum.lto_priv.0", "sum"},
      {"core::fmt::write::h0123456789abcdef", "core::fmt::write"},
      {"core::fmt::write::h0123456789abcdeg", "core::fmt::write::h0123456789abcdeg"},
      {"name[abi:cxx11](int)", "name(int)"},
      {"sum(int) [clone .isra.0] [clone .cold]", "sum(int)"},
      {"version.1", "version.1"},
      {".cold", ".cold"},
  };
  for (const auto& [name, source] : names) EXPECT_EQ(name_of_source(name), source);
}

TEST(FunctionMatch, APartOfAFunctionThatOneBuildSplitOffIsThatFunction) {
  const std::vector<FunctionToMatch> functions = {{"sum", "app", 'u', kYes, kYes},
                                                  {"sum.cold", "app", 'u', kNo, kYes},
                                                  {"sum.cold", "lib", 'u', kNo, kYes},
                                                  {"sort.isra.0", "app", 'u', kYes, kNo},
                                                  {"sort", "app", 'u', kNo, kYes}};
  const MatchedFunctions matched = match_functions(functions);
  EXPECT_EQ(matched.same, (std::vector<std::uint32_t>{0, 0, 2, 4, 4}));
  EXPECT_EQ(matched.by[1], MatchedBy::Clone);
  EXPECT_EQ(matched.by[2], MatchedBy::Itself);
}

TEST(FunctionMatch, ProgramsUnderOtherNamesAreMatchedByTheNamesOfFunctions) {
  const std::vector<FunctionToMatch> functions = {
      {"main", "old", 'u', kYes, kNo},       {"main", "new", 'u', kNo, kYes},
      {"sum.isra.0", "old", 'u', kYes, kNo}, {"sum", "new", 'u', kNo, kYes},
      {"read", "libc", 'u', kYes, kYes},     {"gone", "old", 'u', kYes, kNo}};
  const MatchedFunctions matched = match_functions(functions);
  EXPECT_EQ(matched.same, (std::vector<std::uint32_t>{1, 1, 3, 3, 4, 5}));
  EXPECT_EQ(matched.modules, "old with new");
  EXPECT_EQ(matched.by[2], MatchedBy::Module);
}

TEST(FunctionMatch, ANameOfTwoNewModulesIsThatOfTheModuleThatBecameTheOther) {
  // A sample of the dynamic linker's _start, which only one capture has.
  const std::vector<FunctionToMatch> functions = {{"main", "old", 'u', kYes, kNo},
                                                  {"main", "new", 'u', kNo, kYes},
                                                  {"_start", "old", 'u', kYes, kNo},
                                                  {"_start", "new", 'u', kNo, kYes},
                                                  {"_start", "ld.so", 'u', kNo, kYes}};
  const MatchedFunctions matched = match_functions(functions);
  EXPECT_EQ(matched.same, (std::vector<std::uint32_t>{1, 1, 3, 3, 4}));
}

TEST(FunctionMatch, ANameThatTwoNewModulesHaveIsAmbiguous) {
  const std::vector<FunctionToMatch> functions = {
      {"main", "old", 'u', kYes, kNo}, {"main", "a", 'u', kNo, kYes}, {"main", "b", 'u', kNo, kYes}};
  EXPECT_FALSE(match_functions(functions).is_any());
}

TEST(FunctionMatch, AFunctionOfAModuleThatBothHaveStaysWhereItIs) {
  const std::vector<FunctionToMatch> functions = {{"main", "bash", 'u', kYes, kNo},
                                                  {"main", "ls", 'u', kNo, kYes},
                                                  {"read", "bash", 'u', kYes, kYes},
                                                  {"stat", "ls", 'u', kYes, kYes}};
  EXPECT_FALSE(match_functions(functions).is_any());
}

TEST(FunctionMatch, ClosuresOfGoAreMatchedOneToOne) {
  const std::vector<FunctionToMatch> functions = {{"main.run.func1", "app", 'u', kYes, kYes},
                                                  {"main.run.func2", "app", 'u', kYes, kNo},
                                                  {"main.run.func3", "app", 'u', kNo, kYes}};
  EXPECT_EQ(match_functions(functions).same, (std::vector<std::uint32_t>{0, 2, 2}));
}

TEST(FunctionMatch, ARenamedFunctionHasTheSameCallersAndCallees) {
  const std::vector<FunctionToMatch> functions = {
      {"main", "app", 'u', kYes, kYes},   {"calc", "app", 'u', kYes, kNo},
      {"compute", "app", 'u', kNo, kYes}, {"step", "app", 'u', kYes, kNo},
      {"advance", "app", 'u', kNo, kYes}, {"leaf", "app", 'u', kYes, kYes}};
  const std::vector<CallToMatch> calls = {
      {0, 1, kYes, kNo}, {1, 3, kYes, kNo}, {3, 5, kYes, kNo}, {1, 5, kYes, kNo}, {0, 2, kNo, kYes},
      {2, 4, kNo, kYes}, {4, 5, kNo, kYes}, {2, 5, kNo, kYes}, {0, 3, kYes, kNo}, {0, 4, kNo, kYes}};
  // Each of the two is known only by the other: nothing is certain.
  EXPECT_FALSE(match_functions(functions, {calls}).is_any());
  const std::vector<CallToMatch> chain = {{0, 1, kYes, kNo}, {1, 5, kYes, kNo}, {0, 2, kNo, kYes},
                                          {2, 5, kNo, kYes}, {1, 3, kYes, kNo}, {2, 3, kNo, kYes}};
  std::vector<FunctionToMatch> both = functions;
  both[3].is_after = true;
  both.pop_back();
  both.push_back({"leaf", "app", 'u', kYes, kYes});
  const MatchedFunctions matched = match_functions(both, {chain});
  EXPECT_EQ(matched.same[1], 2U);
  EXPECT_EQ(matched.by[1], MatchedBy::Calls);
  EXPECT_EQ(matched.renames, "calc as compute");
}

TEST(FunctionMatch, TwoFunctionsWithTheSameCallersAndCalleesAreAmbiguous) {
  const std::vector<FunctionToMatch> functions = {{"main", "app", 'u', kYes, kYes},
                                                  {"old", "app", 'u', kYes, kNo},
                                                  {"first", "app", 'u', kNo, kYes},
                                                  {"second", "app", 'u', kNo, kYes},
                                                  {"leaf", "app", 'u', kYes, kYes}};
  const std::vector<CallToMatch> calls = {{0, 1, kYes, kNo}, {1, 4, kYes, kNo}, {0, 2, kNo, kYes},
                                          {2, 4, kNo, kYes}, {0, 3, kNo, kYes}, {3, 4, kNo, kYes}};
  EXPECT_FALSE(match_functions(functions, {calls}).is_any());
}

TEST(FunctionMatch, OneBuildAndRareFunctionsHaveNoRenamedFunctions) {
  std::vector<FunctionToMatch> functions = {{"main", "app", 'u', kYes, kYes},
                                            {"old", "app", 'u', kYes, kNo},
                                            {"now", "app", 'u', kNo, kYes},
                                            {"leaf", "app", 'u', kYes, kYes}};
  MatchEvidence evidence{
      .calls = {{0, 1, kYes, kNo}, {1, 3, kYes, kNo}, {0, 2, kNo, kYes}, {2, 3, kNo, kYes}}};
  const auto one = format::BuildId::from_hex("0123456789abcdef0123456789abcdef01234567");
  const auto other = format::BuildId::from_hex("1123456789abcdef0123456789abcdef01234567");
  const auto are_matched = [&](const format::BuildId& before, const format::BuildId& after) {
    evidence.before = {{"app", {before}}};
    evidence.after = {{"app", {after}}};
    return match_functions(functions, evidence).is_any();
  };
  EXPECT_FALSE(are_matched(*one, *one));
  EXPECT_TRUE(are_matched(*one, *other));
  EXPECT_TRUE(are_matched({}, {}));
  functions[1].share = 0.001;
  EXPECT_FALSE(are_matched(*one, *other));
}

}  // namespace
}  // namespace tacho::report
