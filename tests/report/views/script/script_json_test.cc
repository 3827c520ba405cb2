#include "report/views/script/script_json.h"

#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <limits>

#include "report/decode/payload.h"
#include "report/output/field_sinks.h"
#include "tests/support/capture_builder.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;
using test::CaptureBuilder;
using test::SampleFields;

class JsonCollector : public Sink {
 public:
  explicit JsonCollector(Session& session) : json_(session) {}
  Flow on_sample(const ResolvedSample& sample) override {
    TextBuffer out;
    json_.write(out, sample);
    lines.emplace_back(out.view());
    return Flow::Continue;
  }
  std::vector<std::string> lines;

 private:
  ScriptJson json_;
};

std::vector<std::string> lines_of(const CaptureBuilder& capture, SessionOptions options = {}) {
  const test::TemporaryFile file(capture.file());
  options.input = file.path();
  auto session = Session::open(options);
  EXPECT_TRUE(session);
  JsonCollector sink(*session);
  session->run(sink);
  return sink.lines;
}

SampleFields usual_sample() {
  SampleFields fields;
  fields.id = 1;
  fields.pid = 5;
  fields.tid = 6;
  fields.time = 1'000'000'007;
  fields.cpu = 3;
  fields.period = 250;
  fields.ip = 0x1010;
  return fields;
}

TEST(ScriptJson, ASampleIsOneObjectWithWhatItsEventSampled) {
  CaptureBuilder capture;
  capture.event(test::software_event(abi::kCpuClock, abi::kSampleCallchain), "cpu-clock", {1});
  capture.comm(5, 6, "dd").mmap(5, 0x1000, 0x1000, 0x3000, "/nonexistent/dd");
  SampleFields fields = usual_sample();
  fields.callchain = {abi::kContextUser, 0x1010, 0x9000};
  capture.sample(fields);
  EXPECT_EQ(lines_of(capture),
            std::vector<std::string>{
                R"({"event":"cpu-clock","comm":"dd","pid":5,"tid":6,"cpu":3,"time":1000000007,"period":250,)"
                R"("stack":[{"ip":"0x1010","address":"0x3010","dso":"/nonexistent/dd"},)"
                R"({"ip":"0x9000","address":"0x9000"}]})"
                "\n"});
}

TEST(ScriptJson, WithoutACallChainTheStackIsTheSamplesLocation) {
  CaptureBuilder capture;
  capture.event(test::software_event(abi::kCpuClock), "cpu-clock", {1});
  capture.sample(usual_sample());
  EXPECT_TRUE(lines_of(capture).at(0).ends_with(R"("stack":[{"ip":"0x1010","address":"0x1010"}]})"
                                                "\n"));
}

TEST(ScriptJson, APayloadThatNothingDescribesIsGivenAsBytes) {
  CaptureBuilder capture;
  capture.event(test::software_event(abi::kBpfOutput, abi::kSampleRaw), "mine", {1});
  SampleFields fields = usual_sample();
  fields.raw = {std::byte{0xde}, std::byte{0xad}, std::byte{0}, std::byte{1}};
  capture.sample(fields);
  EXPECT_NE(lines_of(capture).at(0).find(R"("raw":"dead0001")"), std::string::npos);
}

TEST(ScriptJson, EveryByteInANameStillGivesValidJson) {
  CaptureBuilder capture;
  capture.event(test::software_event(abi::kCpuClock), "every \"byte\"\xff\x1b", {1});
  std::string path;
  for (int byte = 1; byte < 256; ++byte) path += static_cast<char>(byte);
  capture.mmap(5, 0x1000, 0x1000, 0, path).comm(5, 6, "\"\\\x01\xff");
  capture.sample(usual_sample());
  const std::string line = lines_of(capture).at(0);
  rapidjson::Document parsed;
  parsed.Parse<rapidjson::kParseValidateEncodingFlag>(line.data(), line.size());
  ASSERT_FALSE(parsed.HasParseError());
  EXPECT_STREQ(parsed["comm"].GetString(), R"("\\\x01\xff)");
  EXPECT_STREQ(parsed["event"].GetString(), R"(every "byte"\xff\x1b)");
}

std::string described(const PayloadSchema& schema, std::vector<std::uint8_t> bytes) {
  TextBuffer out;
  JsonFields to(out);
  describe_payload(to, schema, std::as_bytes(std::span(bytes)), std::endian::little);
  to.finish();
  return std::string(out.view());
}

PayloadField field(std::string name, format::FieldKind kind, std::uint32_t byte, std::uint32_t bits) {
  PayloadField made;
  made.name = std::move(name);
  made.kind = kind;
  made.bit_offset = byte * 8;
  made.bit_size = bits;
  return made;
}

TEST(PayloadFields, EachValueHasItsOwnType) {
  PayloadSchema schema;
  schema.fields = {
      field("u", format::FieldKind::Unsigned, 0, 8), field("s", format::FieldKind::Signed, 0, 8),
      field("b", format::FieldKind::Bool, 0, 8),     field("x", format::FieldKind::Unsigned, 0, 8),
      field("e", format::FieldKind::Enum, 0, 8),     field("t", format::FieldKind::Text, 1, 8),
      field("l", format::FieldKind::Unsigned, 1, 8)};
  schema.fields[3].format = "hex";
  schema.fields[4].enumerators = {{255, "LAST"}};
  schema.fields[5].count = 2;
  schema.fields[6].count = 2;
  EXPECT_EQ(described(schema, {255, 'h', 'i'}),
            R"({"u":255,"s":-1,"b":true,"x":"0xff","e":"LAST","t":"hi","l":[104,105]})");
  EXPECT_EQ(described(schema, {1, 'h'}), R"({"u":1,"s":1,"b":true,"x":"0x1","e":1,"t":"h","l":[104]})")
      << "what lies beyond the end is left out";
}

TEST(PayloadFields, AFieldsNameIsMadeSafeAsWell) {
  PayloadSchema schema;
  schema.fields = {field("a\"\xff\\", format::FieldKind::Unsigned, 0, 8)};
  EXPECT_EQ(described(schema, {1}), R"({"a\"\\xff\\\\":1})");
}

TEST(PayloadFields, NumbersThatJsonLacksAreNull) {
  PayloadSchema schema;
  schema.fields = {field("f", format::FieldKind::Float, 0, 64)};
  const auto bits = std::bit_cast<std::array<std::uint8_t, 8>>(std::numeric_limits<double>::infinity());
  EXPECT_EQ(described(schema, {bits.begin(), bits.end()}), R"({"f":null})");
  const auto half = std::bit_cast<std::array<std::uint8_t, 8>>(0.5);
  EXPECT_EQ(described(schema, {half.begin(), half.end()}), R"({"f":0.5})");
}

TEST(KeptTexts, AreForgottenWhenTheyAreTooMany) {
  KeptTexts texts(1000);
  const std::string text(300, 'x');
  for (std::uint32_t number = 0; number < 100; ++number) {
    EXPECT_EQ(texts.find_text(LocationId{number}).data(), nullptr);
    EXPECT_EQ(texts.keep(LocationId{number}, text), text);
    EXPECT_EQ(texts.find_text(LocationId{number}), text);
    EXPECT_LE(texts.size(), 1000U);
  }
  EXPECT_EQ(texts.find_text(LocationId{0}).data(), nullptr);
  const std::string longer(2000, 'y');
  EXPECT_EQ(texts.keep(LocationId{7}, longer), longer) << "one alone is kept, however long";
}

}  // namespace
}  // namespace tacho::report
