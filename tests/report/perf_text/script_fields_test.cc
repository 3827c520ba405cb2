#include "report/perf_text/script_fields.h"

#include <gtest/gtest.h>

namespace tacho::report {
namespace {

namespace abi = format::abi;

format::Event event_of(std::uint32_t type, std::uint64_t sample_type, std::uint64_t config = 0) {
  format::Event event;
  event.attr.type = type;
  event.attr.config = config;
  event.attr.sample_type = sample_type;
  return event;
}

constexpr std::uint64_t kPlain = abi::kSampleIp | abi::kSampleTid | abi::kSampleTime;

struct FieldsCase {
  FieldChoice choice;
  std::vector<std::string> remarks;
  format::EventSet events;
  Result<> apply(std::string_view text) { return choice.apply(text, remarks); }
  Result<> settle(CallChains chains = CallChains::Show, Origin origin = Origin::File) {
    return choice.settle(events, std::vector<std::string>(events.size(), "clock"), chains, origin);
  }
  Fields fields() const { return choice.fields_of(events[0].attr); }
};

TEST(ScriptFields, DropsDefaultsThatWereNotSampled) {
  FieldsCase c;
  c.events.add_event(event_of(abi::kSoftware, kPlain));
  ASSERT_TRUE(c.settle());
  EXPECT_FALSE(c.fields().has(Field::Cpu));
  EXPECT_TRUE(c.fields().has(Field::Time));
}

TEST(ScriptFields, RefusesAFieldThatWasAskedForAndNotSampled) {
  FieldsCase c;
  c.events.add_event(event_of(abi::kSoftware, kPlain));
  ASSERT_TRUE(c.apply("comm,cpu"));
  const auto settled = c.settle();
  ASSERT_FALSE(settled);
  EXPECT_EQ(settled.error().what,
            "Samples for 'clock' event do not have CPU attribute set. Cannot print 'cpu' field.");
  EXPECT_EQ(settled.error().fault, Fault::Use);
}

TEST(ScriptFields, AListReplacesAndSignsChange) {
  FieldsCase c;
  c.events.add_event(event_of(abi::kSoftware, kPlain));
  ASSERT_TRUE(c.apply("comm,time"));
  EXPECT_FALSE(c.fields().has(Field::Event));
  ASSERT_TRUE(c.apply("+event,-comm"));
  EXPECT_TRUE(c.fields().has(Field::Event));
  EXPECT_FALSE(c.fields().has(Field::Comm));
  EXPECT_TRUE(c.fields().has(Field::Time));
}

TEST(ScriptFields, MixingAListWithChangesIsRefused) {
  FieldsCase c;
  EXPECT_FALSE(c.apply("comm,-time"));
  EXPECT_FALSE(c.apply("+comm,time"));
}

TEST(ScriptFields, AListThatNamesBpfOutputAddsToTheDefaultAsInPerf) {
  FieldsCase c;
  c.events.add_event(event_of(abi::kSoftware, kPlain));
  ASSERT_TRUE(c.apply("comm,bpf-output"));
  EXPECT_TRUE(c.fields().has(Field::Period));
}

TEST(ScriptFields, ATypeLimitsTheChange) {
  FieldsCase c;
  c.events.add_event(event_of(abi::kSoftware, kPlain));
  c.events.add_event(event_of(abi::kTracepoint, kPlain));
  ASSERT_TRUE(c.apply("trace:time,event"));
  EXPECT_TRUE(c.fields().has(Field::Comm));
  EXPECT_FALSE(c.choice.fields_of(c.events[1].attr).has(Field::Comm));
  EXPECT_FALSE(c.apply("sw:trace")) << "a software event has no such text";
  EXPECT_FALSE(c.apply("nosuch:time"));
}

TEST(ScriptFields, UnknownFieldsAndOnesThatAreNotComputedAreToldApart) {
  FieldsCase c;
  const auto unknown = c.apply("comm,nosuch");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().what.find("no field 'nosuch'"), std::string::npos);
  const auto metric = c.apply("metric");
  ASSERT_FALSE(metric);
  EXPECT_NE(metric.error().what.find("not computed here"), std::string::npos);
}

TEST(ScriptFields, OneOfANamedTypeThatWasNotSampledIsDroppedAndSaid) {
  FieldsCase c;
  c.events.add_event(event_of(abi::kSoftware, kPlain));
  ASSERT_TRUE(c.apply("sw:ip,iregs"));
  ASSERT_TRUE(c.settle());
  EXPECT_FALSE(c.fields().has(Field::Iregs));
  ASSERT_EQ(c.choice.dropped().size(), 1u);
  EXPECT_EQ(c.choice.dropped()[0],
            "Samples for 'clock' event do not have IREGS attribute set. Skipping 'iregs' field.");
}

TEST(ScriptFields, FlagsAreForAllTypesAndChangeNone) {
  FieldsCase c;
  c.events.add_event(event_of(abi::kHardware, kPlain));
  ASSERT_TRUE(c.apply("+flags"));
  EXPECT_TRUE(c.choice.shows_flags());
  EXPECT_FALSE(c.choice.is_changed(c.events[0].attr));
  ASSERT_EQ(c.remarks.size(), 1u) << "they have a value in processor traces alone";
  ASSERT_TRUE(c.apply("-flags"));
  EXPECT_FALSE(c.choice.shows_flags());
}

TEST(ScriptFields, CodeBetweenBranchesNeedsStacksOfAllBranches) {
  FieldsCase c;
  c.events.add_event(event_of(abi::kRaw, kPlain | abi::kSampleBranchStack));
  ASSERT_TRUE(c.apply("+brstackinsn"));
  EXPECT_FALSE(c.settle());
  format::Event all = event_of(abi::kSoftware, kPlain);
  all.attr.branch_sample_type = 1 << 3;
  c.events.add_event(all);
  EXPECT_TRUE(c.settle()) << "of any event, as in perf";
}

TEST(ScriptFields, EventsThatPerfMadeOfTracesHaveATypeOfTheirOwn) {
  FieldsCase c;
  c.events.add_event(event_of(abi::kSynth, kPlain));
  EXPECT_TRUE(c.fields().has(Field::Synth));
  EXPECT_FALSE(c.fields().has(Field::Period));
}

TEST(ScriptFields, TracepointsShowTheirStacksWhenThereAreAny) {
  FieldsCase c;
  c.events.add_event(event_of(abi::kTracepoint, kPlain | abi::kSampleCallchain));
  ASSERT_TRUE(c.apply("+payload"));
  ASSERT_TRUE(c.settle());
  EXPECT_TRUE(c.fields().has(Field::Ip)) << "our own field does not count as a change of perf's";
  FieldsCase hidden;
  hidden.events.add_event(event_of(abi::kTracepoint, kPlain | abi::kSampleCallchain));
  ASSERT_TRUE(hidden.settle(CallChains::Hide));
  EXPECT_FALSE(hidden.fields().has(Field::Ip));
  EXPECT_FALSE(hidden.choice.shows_callchains());
}

TEST(ScriptFields, APipesCallChainsAreShownWhateverIsListed) {
  FieldsCase c;
  c.events.add_event(event_of(abi::kSoftware, kPlain | abi::kSampleCallchain));
  ASSERT_TRUE(c.apply("comm,time"));
  ASSERT_TRUE(c.settle(CallChains::Show, Origin::Pipe));
  EXPECT_TRUE(c.fields().has(Field::Ip));
  EXPECT_TRUE(c.fields().has(Field::Sym));
}

}  // namespace
}  // namespace tacho::report
