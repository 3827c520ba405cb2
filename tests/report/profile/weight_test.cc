#include "report/profile/weight.h"

#include <gtest/gtest.h>

#include "report/samples/session.h"
#include "tests/support/capture_builder.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

// Samples of a BPF event with a field "bytes" at byte 8 of its payload.
struct Weighed : Sink {
  explicit Weighed(std::string_view weight, const std::vector<std::int64_t>& bytes) : what(weight) {
    test::CaptureBuilder capture;
    capture.event(test::software_event(abi::kBpfOutput, abi::kSampleRaw), "op", {1});
    format::ByteWriter schemas;
    format::write_payload_schemas(schemas, {{"op",
                                             "op",
                                             16,
                                             {{.name = "bytes",
                                               .kind = format::FieldKind::Signed,
                                               .bit_offset = 64,
                                               .bit_size = 64,
                                               .role = "weight"}}}});
    capture.feature(abi::kFeaturePayloadSchemas, std::move(schemas).take());
    std::uint64_t time = 1;
    for (const std::int64_t value : bytes) {
      format::ByteWriter raw;
      raw.u64(0).u64(static_cast<std::uint64_t>(value)).u32(0);
      capture.sample({.id = 1, .time = ++time, .period = 3, .raw = std::move(raw).take()});
    }
    const test::TemporaryFile file(capture.file());
    SessionOptions options;
    options.input = file.path();
    auto session = Session::open(options);
    EventSchemas schemas_of(session->events(), session->features());
    WeightChoice made(what, session->events().size(), schemas_of);
    choice = &made;
    session->run(*this);
    unreadable = made.unreadable();
    unweighed = made.unweighed();
    by_role = made.chosen_by_role();
  }
  Flow on_sample(const ResolvedSample& sample) override {
    if (const auto weight = choice->of(sample)) total += *weight;
    return Flow::GoOn;
  }
  std::string_view what;
  WeightChoice* choice = nullptr;
  std::uint64_t total = 0, unreadable = 0;
  Unweighed unweighed;
  std::string by_role;
};

TEST(Weight, IsThePeriodOneOrAField) {
  EXPECT_EQ(Weighed("period", {100, 200}).total, 6U);
  EXPECT_EQ(Weighed("samples", {100, 200}).total, 2U);
  const Weighed field("bytes", {100, 200});
  EXPECT_EQ(field.total, 300U);
  EXPECT_EQ(field.by_role, "");
}

TEST(Weight, WithoutAWishTheFieldOfThatRole) {
  const Weighed weighed("", {100, 200});
  EXPECT_EQ(weighed.total, 300U);
  EXPECT_EQ(weighed.by_role, "bytes");
}

TEST(Weight, CountsWhatCannotBeWeighed) {
  const Weighed below("bytes", {5, -1});
  EXPECT_EQ(below.total, 5U);
  EXPECT_EQ(below.unweighed.negative, 1U);
  EXPECT_EQ(below.unreadable + below.unweighed.damaged, 0U);
  EXPECT_EQ(Weighed("nosuch", {5, 6}).unreadable, 2U);
}

}  // namespace
}  // namespace tacho::report
