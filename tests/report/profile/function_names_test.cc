#include "report/profile/function_names.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "symbolize/names/demangle.h"

namespace tacho::report {
namespace {

// The shown names of functions, by their linkers' names.
std::vector<std::string> shown_names(const std::vector<std::string>& linker_names) {
  FunctionNames names(FunctionNames::Texts::Copied);
  std::vector<NameId> ids;
  for (const std::string& linker : linker_names)
    ids.push_back(names.id_of(symbolize::demangle(linker).value_or(linker), linker));
  std::vector<std::string> shown;
  for (const NameId id : ids) shown.emplace_back(names.shown(id));
  return shown;
}
using NameList = std::vector<std::string>;

TEST(FunctionNames, OverloadsHaveTheirParameters) {
  EXPECT_EQ(shown_names({"_ZN1A1fEi"}), NameList{"A::f"}) << "alone";
  EXPECT_EQ(shown_names({"_ZN1A1fEi", "_ZN1A1fEl", "_ZN1A1gEi"}),
            (NameList{"A::f(int)", "A::f(long)", "A::g"}));
  EXPECT_EQ(shown_names({"_ZN1A1fEv", "_ZNK1A1fEv"}), (NameList{"A::f()", "A::f() const"}));
  EXPECT_EQ(shown_names({"f", "_Z1fi"}), (NameList{"f", "f(int)"})) << "C and C++";
  EXPECT_EQ(
      shown_names({"_ZZ4mainENKUlT_E_clIiEEDaS_", "_ZZ4mainENKUlT_E_clIlEEDaS_"}),
      (NameList{"main::{lambda(auto:1)#1}::operator()<int>", "main::{lambda(auto:1)#1}::operator()<long>"}))
      << "different already";
}

TEST(FunctionNames, TemplatesHaveTheirReturnTypesOnlyWhereNeeded) {
  EXPECT_EQ(shown_names({"_Z5mixedIiET_S0_", "_Z5mixedIiET_PS0_"}),
            (NameList{"mixed<int>(int)", "mixed<int>(int*)"}));
  EXPECT_EQ(shown_names({"_Z5mixedIiEiS_", "_Z5mixedIiElS_"}),
            (NameList{"int mixed<int>(mixed)", "long mixed<int>(mixed)"}));
}

TEST(FunctionNames, VariantsOfOneFunctionAreOne) {
  EXPECT_EQ(shown_names({"_ZN1AC1Ev", "_ZN1AC2Ev"}), (NameList{"A::A", "A::A"}));
  EXPECT_EQ(shown_names({"_ZN3std2io5write17h0123456789abcdefE", "_ZN3std2io5write17hfedcba9876543210E"}),
            (NameList{"std::io::write", "std::io::write"}));
  FunctionNames names(FunctionNames::Texts::Copied);
  EXPECT_EQ(names.id_of("A::A", "_ZN1AC1Ev"), names.id_of("A::A", "_ZN1AC2Ev"));
}

TEST(FunctionNames, AFunctionWithoutKnownParametersDoesNotChangeTheOthers) {
  FunctionNames names(FunctionNames::Texts::Stay);
  const auto unknown = names.id_of("f"), known = names.id_of("f", "_Z1fi");
  EXPECT_NE(unknown, known);
  EXPECT_EQ(names.shown(known), "f");
  const auto other = names.id_of("f", "_Z1fl");
  EXPECT_EQ(names.shown(unknown), "f");
  EXPECT_EQ(names.shown(known), "f(int)");
  EXPECT_EQ(names.shown(other), "f(long)");
  EXPECT_EQ(names.id_of("f", "_Z1fl"), other);
}

TEST(FunctionNames, AGrowingSetIsShownAnew) {
  FunctionNames names(FunctionNames::Texts::Stay);
  const auto first = names.id_of("A::f", "_ZN1A1fEi");
  EXPECT_EQ(names.shown(first), "A::f");
  (void)names.id_of("A::f", "_ZN1A1fEl");
  EXPECT_EQ(names.shown(first), "A::f(int)");
  (void)names.id_of("A::f", "_ZN1A1fEc");
  EXPECT_EQ(names.shown(first), "A::f(int)");
}

}  // namespace
}  // namespace tacho::report
