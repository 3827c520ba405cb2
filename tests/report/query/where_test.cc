#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "report/query/expressions.h"
#include "report/samples/session.h"
#include "tests/support/capture_builder.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;
using format::FieldKind;

struct Operation {
  std::int64_t bytes = 0;
  std::uint64_t lat_us = 0;
  std::uint32_t kind = 0;
  std::string_view name;
  std::uint32_t first = 0, second = 0;
};

std::vector<format::PayloadSchema> schemas() {
  return {{"op",
           "op",
           40,
           {{.name = "bytes", .kind = FieldKind::Signed, .bit_offset = 0, .bit_size = 64, .unit = "bytes"},
            {.name = "lat", .bit_offset = 64, .bit_size = 64, .unit = "us"},
            {.name = "kind",
             .kind = FieldKind::Enum,
             .bit_offset = 128,
             .bit_size = 32,
             .enumerators = {{0, "OP_READ"}, {1, "OP_WRITE"}, {2, "SYNC"}}},
            {.name = "args", .bit_offset = 160, .bit_size = 32, .count = 2, .is_array = true},
            {.name = "pid", .bit_offset = 160, .bit_size = 32},
            {.name = "name", .kind = FieldKind::Text, .bit_offset = 224, .bit_size = 8, .count = 8}}}};
}

std::vector<std::byte> bytes_of(std::uint64_t value) {
  format::ByteWriter raw;
  raw.u64(value);
  return std::move(raw).take_bytes();
}

// The first event, "op", has a payload; the second, "tick", has none. What a condition leaves of six samples:
// the digits of their times.
class Samples : public Sink {
 public:
  explicit Samples(std::string_view condition) {
    test::CaptureBuilder capture;
    capture.event(test::software_event(abi::kBpfOutput, abi::kSampleRaw), "op", {1});
    capture.event(test::software_event(abi::kBpfOutput, abi::kSampleRaw), "tick", {2});
    format::ByteWriter body;
    format::write_payload_schemas(body, schemas());
    capture.feature(abi::kFeaturePayloadSchemas, std::move(body).take_bytes());
    std::uint64_t time = 0;
    for (const Operation& one : {Operation{4096, 900, 0, "alpha", 7, 1}, Operation{-1, 1500, 1, "beta", 8, 2},
                                 Operation{8192, 2000, 2, "alps", 9, 3}, Operation{0, 0, 0, "", 10, 4}}) {
      format::ByteWriter raw;
      raw.u64(static_cast<std::uint64_t>(one.bytes))
          .u64(one.lat_us)
          .u32(one.kind)
          .u32(one.first)
          .u32(one.second);
      std::string name(one.name);
      name.resize(8);
      for (const char letter : name) raw.u8(static_cast<std::uint8_t>(letter));
      raw.u32(0);
      capture.sample({.id = 1, .time = ++time, .period = time, .raw = std::move(raw).take_bytes()});
    }
    capture.sample({.id = 2, .time = ++time, .period = 100, .raw = bytes_of(1)});
    capture.sample({.id = 1, .time = ++time, .period = 1, .raw = bytes_of(4096)});  // cut after bytes
    const test::TemporaryFile file(capture.file());
    SessionOptions options;
    options.input = file.path();
    auto parsed = parse_where("--where", condition);
    if (!parsed) {
      shown = parsed.error().what;
      return;
    }
    options.filter.condition = std::move(*parsed);
    auto session = Session::open(options);
    if (auto bound = session->bind_condition(); !bound) {
      shown = bound.error().what;
      return;
    }
    session->run(*this);
  }
  Flow on_sample(const ResolvedSample& sample) override {
    shown += std::to_string(sample.fields->time);
    return Flow::Continue;
  }
  std::string shown;
};

std::string where(std::string_view condition) { return Samples(condition).shown; }

TEST(Where, ComparesFieldsAndWhatSamplesHave) {
  EXPECT_EQ(where("bytes > 0"), "136");
  EXPECT_EQ(where("bytes == -1"), "2");
  EXPECT_EQ(where("period >= 4 && event == 'op'"), "4");
  EXPECT_EQ(where("name == \"beta\" || lat == 0"), "24");
  EXPECT_EQ(where("name ~ 'al*'"), "13");
  EXPECT_EQ(where("name !~ 'al*'"), "24");
  EXPECT_EQ(where("args[0] & 1 == 1 && args[1] != 3"), "1");
  EXPECT_EQ(where("lat * 2 - 1000 > 900"), "23");
  EXPECT_EQ(where("bytes / 3 > 1365 && bytes / 3 < 1366"), "16");
  EXPECT_EQ(where("bytes % 4096 == 0 && !(bytes == 0)"), "136");
}

TEST(Where, UnitsAreThoseOfTheField) {
  EXPECT_EQ(where("lat > 1ms"), "23");
  EXPECT_EQ(where("1500us <= lat"), "23");
  EXPECT_EQ(where("lat == 1.5ms"), "2");
  EXPECT_EQ(where("bytes >= 4k"), "136");
  EXPECT_EQ(where("time > 3ns"), "456");
}

TEST(Where, EnumsAreComparedByName) {
  EXPECT_EQ(where("kind == OP_WRITE"), "2");
  EXPECT_EQ(where("'SYNC' == kind"), "3");
  EXPECT_EQ(where("kind ~ 'OP_*'"), "124");
  EXPECT_EQ(where("kind != 0"), "23");
}

TEST(Where, WhatIsNotThereIsNeitherTrueNorFalse) {
  EXPECT_EQ(where("lat >= 0"), "1234");    // not the second event, and not a payload that ends before
  EXPECT_EQ(where("!(lat < 0)"), "1234");  // nor so
  EXPECT_EQ(where("lat >= 0 || period == 100"), "12345");
  EXPECT_EQ(where("1 / (lat - 900) != 5"), "234");  // a division by 0 is nothing
  EXPECT_EQ(where("true"), "123456");
  EXPECT_EQ(where("false"), "");
}

TEST(Where, TheSamplesOwnValueHasAPrefix) {
  EXPECT_EQ(where("pid == 8"), "2");
  EXPECT_EQ(where("sample.pid == 8"), "");
}

// The message about one column of --where, with a caret below it.
std::string refusal(const std::string& text, std::size_t column, const std::string& what,
                    const std::string& event = "") {
  return event + "--where: column " + std::to_string(column) + ": " + what + "\n    " + text + "\n    " +
         std::string(column - 1, ' ') + "^";
}

TEST(Where, ErrorsShowThePlaceAndWhatThereIs) {
  EXPECT_EQ(where("bytes >"), refusal("bytes >", 8, "a value is missing at the end"));
  EXPECT_EQ(where("byte > 0"),
            refusal("byte > 0", 1,
                    "no event here has this; every sample has comm, pid, tid, cpu, time, period, cgroup, "
                    "event; 'op' has bytes, lat, kind, args, pid, name; did you mean 'bytes'?"));
  EXPECT_EQ(where("uid == 0"),
            refusal("uid == 0", 1,
                    "a capture does not have the users of processes; filter while recording, "
                    "with --filter 'uid == NUMBER'"));
  EXPECT_EQ(where("kind == OP_RAED"),
            refusal("kind == OP_RAED", 9, "'kind' has no such name; did you mean 'OP_READ'?", "op: "));
  EXPECT_EQ(where("kind == 'x'"),
            refusal("kind == 'x'", 9, "'kind' has no such name; it has OP_READ, OP_WRITE, SYNC", "op: "));
  EXPECT_EQ(
      where("name == cc1plus"),
      refusal("name == cc1plus", 9,
              "no event here has this; every sample has comm, pid, tid, cpu, time, period, cgroup, event; "
              "'op' has bytes, lat, kind, args, pid, name; a text needs quotes: \"cc1plus\""));
  EXPECT_EQ(where("name > 5"), refusal("name > 5", 6, "a text and a number cannot be compared", "op: "));
  EXPECT_EQ(
      where("lat > 4k"),
      refusal("lat > 4k", 7, "the field is in us; a number of this unit cannot be compared with it", "op: "));
  EXPECT_EQ(where("args > 1"),
            refusal("args > 1", 1, "this field is a list; choose an element: args[0]", "op: "));
  EXPECT_EQ(where("lat[0] > 1"), refusal("lat[0] > 1", 1, "this field is not a list", "op: "));
  EXPECT_EQ(
      where("lat ~ '1*'"),
      refusal("lat ~ '1*'", 5, "only texts can look like a pattern; put the pattern in quotes", "op: "));
  EXPECT_EQ(where("-name == 1"), refusal("-name == 1", 1, "this needs a number, not a text", "op: "));
}

TEST(Where, LargeNumbersAreExact) {
  EXPECT_EQ(where("bytes + 18446744073709551615 == 18446744073709551614"), "2");
  EXPECT_EQ(where("bytes < 18446744073709551615 && bytes > -9223372036854775808"), "12346");
}

}  // namespace
}  // namespace tacho::report
