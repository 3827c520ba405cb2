#include "record/events/probe_arguments.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "record/events/event_spec.h"

namespace tacho::record {
namespace {

using bpf::ProbeArgument;
using Source = ProbeArgument::Source;
using Shape = ProbeArgument::Shape;

std::vector<ArgumentRequest> parsed_arguments(std::string_view text) {
  std::optional<ArgumentError> wrong;
  auto out = parse_arguments(text, wrong);
  EXPECT_FALSE(wrong) << text << ": " << wrong->what;
  return out;
}
std::string refused(std::string_view text) {
  std::optional<ArgumentError> wrong;
  parse_arguments(text, wrong);
  return wrong ? std::to_string(wrong->at) + ": " + wrong->what : "";
}
std::string placing(std::string_view text, const KnownArguments& known) {
  const auto placed = place_arguments(parsed_arguments(text), known);
  return placed ? "" : placed.error().what;
}

TEST(ProbeArguments, AreNamesPlacesAndTypes) {
  EXPECT_EQ(parsed_arguments("arg1"), (std::vector<ArgumentRequest>{{"arg1", "arg1", ""}}));
  EXPECT_EQ(
      parsed_arguments("size=arg2:u32, %di , path=%rsi:string"),
      (std::vector<ArgumentRequest>{{"size", "arg2", "u32"}, {"di", "%di", ""}, {"path", "%rsi", "string"}}));
  EXPECT_EQ(parsed_arguments("$retval")[0].name, "retval");
}

TEST(ProbeArguments, WhatIsNoneIsRefusedAtItsLetter) {
  EXPECT_EQ(refused("arg1, ").substr(0, 17), "5: an argument is");
  EXPECT_EQ(refused("").substr(0, 2), "0:");
  EXPECT_EQ(refused("9x=arg1").substr(0, 2), "0:");
  EXPECT_EQ(refused("arg1, arg2:u33").substr(0, 31), "11: there is no type 'u33'; u8 ");
  EXPECT_EQ(refused("arg1,arg1"), "5: there are two 'arg1'; rename one: other=arg1");
  EXPECT_NE(
      refused("a=arg1:string,b=arg1:string,c=arg1:string,d=arg1:string,e=arg1:string").find("4 of them"),
      std::string::npos);
  EXPECT_NE(refused("a=%di,b=%di,c=%di,d=%di,e=%di,f=%di,g=%di,h=%di,i=%di,j=%di,k=%di,l=%di,m=%di")
                .find("12 arguments"),
            std::string::npos);
}

TEST(ProbeArguments, OfAFileStandInRegisters) {
  const auto placed =
      place_arguments(parsed_arguments("arg1,size=arg2:s32,%dil,flags=%r10d:x16,path=arg3:string"), {});
  ASSERT_TRUE(placed) << placed.error().what;
  const auto& all = *placed;
  EXPECT_EQ(all[0].register_offset, 14 * 8);
  EXPECT_EQ(all[0].size, 8);
  EXPECT_EQ(all[1].register_offset, 13 * 8);
  EXPECT_TRUE(all[1].size == 4 && all[1].is_signed);
  EXPECT_TRUE(all[2].register_offset == 14 * 8 && all[2].size == 1) << "a part of a register";
  EXPECT_TRUE(all[3].register_offset == 7 * 8 && all[3].size == 2 && all[3].shape == Shape::Hex);
  EXPECT_EQ(all[4].shape, Shape::UserText);
  EXPECT_NE(placing("size", {}).find("say where it is: size=arg1, or size=%di"), std::string::npos);
  EXPECT_NE(placing("arg7", {}).find("the first 6 arguments"), std::string::npos);
  EXPECT_NE(placing("%xyz", {}).find("there is no register '%xyz'"), std::string::npos);
}

TEST(ProbeArguments, OfAFileMayHaveNames) {
  EXPECT_EQ(parsed_arguments("request->head.length,name:string,first=a.b"),
            (std::vector<ArgumentRequest>{
                {"length", "request->head.length", ""}, {"name", "name", "string"}, {"first", "a.b", ""}}));
  EXPECT_EQ(refused("a.size,b.size"), "7: there are two 'size'; rename one: other=b.size");
  EXPECT_EQ(parsed_arguments("?")[0].source, "?");
  for (const char* plain : {"%di", "arg1", "x=arg2"})
    EXPECT_FALSE(needs_debug_information(parsed_arguments(plain)[0]));
  EXPECT_TRUE(needs_debug_information(parsed_arguments("argument")[0]));
  ProbeArgument pointer;
  pointer.source = Source::Memory;
  pointer.shape = Shape::Hex;
  pointer.pointers = {16};
  ProbeArgument half;
  half.shift = 32;
  half.size = 4;
  half.is_signed = true;
  const std::vector<NamedArgument> named{{"a->b", pointer}, {"at.y", half}};
  const KnownArguments known{.named = named, .missing_reason = "it is not known"};
  const auto placed = place_arguments(parsed_arguments("a->b:string,at.y,low=at.y:u8"), known);
  ASSERT_TRUE(placed) << placed.error().what;
  EXPECT_TRUE((*placed)[0].shape == Shape::UserText && (*placed)[0].pointers.size() == 1);
  EXPECT_TRUE((*placed)[1].shift == 32 && (*placed)[1].is_signed && (*placed)[1].size == 4);
  EXPECT_TRUE((*placed)[2].size == 1 && !(*placed)[2].is_signed && (*placed)[2].name == "low");
  EXPECT_EQ(placing("b.c", known), "'b.c': it is not known; say where it is: c=arg1, or c=%di");
}

TEST(ProbeArguments, OfAReturnIsOne) {
  const KnownArguments known{.at_return = true};
  const auto placed = place_arguments(parsed_arguments("ret,low=ret:u8"), known);
  ASSERT_TRUE(placed) << placed.error().what;
  EXPECT_TRUE((*placed)[0].register_offset == 10 * 8 && (*placed)[0].is_signed);
  EXPECT_EQ((*placed)[1].size, 1);
  EXPECT_NE(placing("arg1", known).find("a return probe has no arguments"), std::string::npos);
}

TEST(ProbeArguments, OfTheKernelHaveNames) {
  const std::vector<bpf::FunctionArgument> function{
      {"file", 8, false, true, 1}, {"mode", 4, true, false, 2}, {"big", 0, false, false, 3}};
  const KnownArguments known{.kind = ProbeKind::Kernel, .function = function};
  const auto placed =
      place_arguments(parsed_arguments("mode,file,arg1,name=file:string,user=file:ustring"), known);
  ASSERT_TRUE(placed) << placed.error().what;
  EXPECT_TRUE((*placed)[0].register_offset == 13 * 8 && (*placed)[0].size == 4 && (*placed)[0].is_signed);
  EXPECT_TRUE((*placed)[1].register_offset == 14 * 8 && (*placed)[1].shape == Shape::Hex);
  EXPECT_EQ((*placed)[3].shape, Shape::KernelText);
  EXPECT_EQ((*placed)[4].shape, Shape::UserText);
  EXPECT_NE(placing("nosuch", known).find("has no argument 'nosuch'; it has file, mode, big"),
            std::string::npos);
  EXPECT_NE(placing("big", known).find("not in a single register"), std::string::npos);
}

TEST(ProbeArguments, OfAMarkerAreWhereItsNoteSays) {
  const auto all =
      marker_arguments("8@%rdi -4@-12(%rbp)  1@$-7 4@foo(%rip) 8@(%rax) 2@8(%rax,%rbx,2) 3@%rdi 8f@%xmm0");
  ASSERT_EQ(all.size(), 8U);
  EXPECT_TRUE(all[0].source == Source::Register && all[0].register_offset == 14 * 8 && !all[0].is_signed);
  EXPECT_TRUE(all[1].source == Source::Memory && all[1].displacement == -12 && all[1].size == 4 &&
              all[1].is_signed);
  EXPECT_TRUE(all[2].source == Source::Constant && all[2].constant == -7);
  EXPECT_TRUE(all[4].source == Source::Memory && all[4].displacement == 0);
  for (const std::size_t unknown : {3U, 5U, 6U, 7U}) EXPECT_EQ(all[unknown].name, "") << unknown;
  const KnownArguments known{.kind = ProbeKind::Marker, .marker = all};
  const auto placed = place_arguments(parsed_arguments("arg2,seven=arg3"), known);
  ASSERT_TRUE(placed) << placed.error().what;
  EXPECT_EQ((*placed)[0].name, "arg2");
  EXPECT_EQ((*placed)[1].name, "seven");
  EXPECT_NE(placing("arg9", known).find("the marker has 8 arguments"), std::string::npos);
  EXPECT_NE(placing("arg4", known).find("its location in the marker's note is not supported"),
            std::string::npos);
  EXPECT_NE(placing("size", known).find("have no names, but positions: size=arg1"), std::string::npos);
}

TEST(ProbeArguments, StandInParenthesesAfterThePlace) {
  const auto events = parse_events("uprobe:/bin/x:f(arg1, size=arg2:u32)/call-graph=no/,kprobe:g(a),cs");
  ASSERT_TRUE(events) << events.error().what;
  ASSERT_EQ(events->size(), 3U);
  EXPECT_EQ((*events)[0].probe()->function, "f");
  EXPECT_EQ((*events)[0].name, "uprobe:/bin/x:f");
  EXPECT_EQ((*events)[0].arguments.size(), 2U);
  EXPECT_EQ((*events)[1].arguments.front().name, "a");
  EXPECT_EQ((*events)[1].name, "kprobe:g");
  EXPECT_TRUE((*events)[2].arguments.empty());
  const auto open = parse_events("uprobe:/bin/x:f(arg1");
  ASSERT_FALSE(open);
  EXPECT_NE(open.error().what.find("closing ')' is missing"), std::string::npos);
  const auto typed = parse_events("kprobe:f(a:b)");
  ASSERT_FALSE(typed);
  EXPECT_NE(typed.error().what.find("column 12"), std::string::npos) << typed.error().what;
}

}  // namespace
}  // namespace tacho::record
