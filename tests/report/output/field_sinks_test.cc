#include "report/output/field_sinks.h"

#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <string>

namespace tacho::report {
namespace {

const std::string kHostile = std::string("a\"b\\c\x1b[2J\n\xff\xe2\x80\xae{}=,", 18) + "end";
const std::string kSafe = R"(a\"b\\c\x1b[2J\x0a\xff\xe2\x80\xae{}=,end)";

template <class Describe>
std::string as_text(Describe&& describe) {
  TextBuffer out;
  TextFields to(out);
  describe(to);
  return std::string(out.view());
}

template <class Describe>
rapidjson::Document as_json(Describe&& describe) {
  TextBuffer out;
  JsonFields to(out);
  describe(to);
  to.finish();
  rapidjson::Document parsed;
  const std::string text(out.view());
  parsed.Parse<rapidjson::kParseValidateEncodingFlag>(text.data(), text.size());
  EXPECT_FALSE(parsed.HasParseError()) << text;
  return parsed;
}

void nested(FieldSink& to) {
  to.number("one", 1);
  to.begin_list("list");
  to.begin_object({});
  to.hex("at", 0xffffffffffffffff);
  to.end_object();
  to.begin_object({});
  to.signed_number("cpu", -1);
  to.end_object();
  to.end_list();
  to.begin_list("none");
  to.end_list();
  to.flag("last", true);
}

TEST(TextFields, ListsAndObjectsAreBracketed) {
  EXPECT_EQ(as_text(nested), " one=1 list=[{at=0xffffffffffffffff} {cpu=-1}] none=[] last=1");
}

TEST(TextFields, AHostileNameStaysWithinItsQuotes) {
  EXPECT_EQ(as_text([](FieldSink& to) { to.text("comm", kHostile); }), " comm=\"" + kSafe + "\"");
}

TEST(TextFields, ABackslashOfTheNameIsToldFromOneOfOurs) {
  EXPECT_EQ(as_text([](FieldSink& to) { to.text("comm", R"(\x0a)"); }), R"( comm="\\x0a")");
  EXPECT_EQ(as_text([](FieldSink& to) { to.text("comm", "\n"); }), R"( comm="\x0a")");
}

TEST(TextFields, BytesAreHexDigits) {
  const std::byte bytes[] = {std::byte{0}, std::byte{0xab}};
  EXPECT_EQ(as_text([&](FieldSink& to) { to.bytes("raw", bytes); }), " raw=00ab");
}

TEST(JsonFields, NumbersListsAndObjectsKeepTheirKinds) {
  const auto json = as_json(nested);
  EXPECT_EQ(json["one"].GetUint64(), 1u);
  EXPECT_STREQ(json["list"][0]["at"].GetString(), "0xffffffffffffffff");
  EXPECT_EQ(json["list"][1]["cpu"].GetInt64(), -1);
  EXPECT_TRUE(json["none"].Empty());
  EXPECT_TRUE(json["last"].GetBool());
}

TEST(JsonFields, AHostileNameIsOneStringThatTellsEveryByte) {
  const auto json = as_json([](FieldSink& to) { to.text("comm", kHostile); });
  EXPECT_STREQ(json["comm"].GetString(), R"(a"b\\c\x1b[2J\x0a\xff\xe2\x80\xae{}=,end)");
}

TEST(JsonFields, EveryByteAloneMakesValidJson) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string name(1, static_cast<char>(byte));
    const auto json = as_json([&](FieldSink& to) { to.text("name", name); });
    ASSERT_TRUE(json.IsObject()) << byte;
    EXPECT_GE(json["name"].GetStringLength(), 1u) << byte;
  }
}

}  // namespace
}  // namespace tacho::report
