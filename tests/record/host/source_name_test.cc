#include <gtest/gtest.h>

#include <random>
#include <utility>

#include "record/host/probe_offsets.h"

namespace tacho::record {
namespace {

TEST(SourceName, PlainNamesAreRead) {
  EXPECT_EQ(source_name("_ZN6server5Queue4pushEi"), "server::Queue::push");
  EXPECT_EQ(source_name("_ZNK6server5Queue4sizeEv"), "server::Queue::size");
  EXPECT_EQ(source_name("_ZNVKR1A1bEv"), "A::b");
  EXPECT_EQ(source_name("_Z6handlePKc"), "handle");
  EXPECT_EQ(source_name("_ZL6hiddenv"), "hidden");
  EXPECT_EQ(source_name("_ZN12_GLOBAL__N_14workEv"), "(anonymous namespace)::work");
  EXPECT_EQ(source_name("_ZN5QueueC2Ev"), "Queue::Queue");
  EXPECT_EQ(source_name("_ZN1n5QueueD0Ev"), "n::Queue::~Queue");
  EXPECT_EQ(source_name("_ZSt9terminatev"), "std::terminate");
  EXPECT_EQ(source_name("_ZN3bpf9describedB5cxx11Ev"), "bpf::described");
  EXPECT_EQ(source_name("_Z4textB5cxx11v"), "text");
  EXPECT_EQ(source_name("_ZNSt9exceptionD1Ev"), "std::exception::~exception");
}

TEST(SourceName, WhatATemplateWasMadeForIsLeftOut) {
  EXPECT_EQ(source_name("_ZN2ns1C3getIiEET_S1_"), "ns::C::get");
  EXPECT_EQ(source_name("_ZN2ns1DIiLj5EE3getEv"), "ns::D::get");
  EXPECT_EQ(source_name("_ZNK2ns1DIPKcN3foo3barIS2_EEE3getEv"), "ns::D::get");
  EXPECT_EQ(source_name("_ZN2ns1DIJiS0_EEC2Ev"), "ns::D::D");
  EXPECT_EQ(source_name("_Z3fooIiEvv"), "foo");
  EXPECT_EQ(source_name("_ZNSt6vectorIiSaIiEE9push_backEOi"), "std::vector::push_back");
  EXPECT_EQ(source_name("_ZNSt6vectorINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEESaIS5_EED2Ev"),
            "std::vector::~vector");
  EXPECT_EQ(source_name("_Z5applyIFivEEvT_"), "apply");
  EXPECT_EQ(source_name("_ZN1aplEv"), "a::operator+");
  EXPECT_EQ(source_name("_ZN1aclIiEEvT_"), "a::operator()");
}

TEST(SourceName, OthersAreNot) {
  for (const char* symbol : {"main",       "",        "_Z",
                             "_ZN",        "_ZNE",    "_ZN6server",
                             "_ZN3fooIiE", "_Z3fooI", "_ZN3fooIXneT_Li0EEE3barEv",
                             "_Z3fooILj",  "_ZNIiE",  "_ZN1a1bEv.cold",
                             "_ZN99999aE", "_ZN0E",   "_ZNC1E",
                             "_RNvC1a1b",  "_ZSt",    "_Z9short",
                             "_Z1aB9",     "_ZN1aBE"})
    EXPECT_FALSE(source_name(symbol)) << symbol;
}

TEST(SourceName, NoBytesHarmIt) {
  std::mt19937 random(1);
  const std::string letters = "_ZNKSt0123456789EICDLabJFMATPp";
  for (int i = 0; i < 100000; ++i) {
    std::string symbol = "_Z";
    for (std::size_t size = random() % 20; size > 0; --size) symbol += letters[random() % letters.size()];
    const auto name = source_name(symbol);
    EXPECT_FALSE(name && name->empty());
  }
}

TEST(SourceName, WhatIsPrintedOfATemplateNamesIt) {
  for (const auto& [printed, name] :
       {std::pair("ns::C<int>::*", "ns::C::*"), std::pair("f<std::vector<A<int>, B>>", "f"),
        std::pair("parse_*", "parse_*"), std::pair("A<int>::operator<", "A::operator<"),
        std::pair("operator<< <int>", "operator<< "), std::pair("A::operator->", "A::operator->"),
        std::pair("B::operator<=>", "B::operator<=>"), std::pair("A<int", "A<int"), std::pair("a>b", "a>b"),
        std::pair("", "")})
    EXPECT_EQ(without_template_arguments(printed), name) << printed;
}

}  // namespace
}  // namespace tacho::record
