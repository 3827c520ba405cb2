#include "record/events/condition.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>

namespace tacho::record {
namespace {

using bpf::FilterStep;
using bpf::FilterValue;

// What a moment is like, for the list of comparisons to be asked as the kernel does it.
struct Moment {
  std::map<FilterValue, std::uint64_t> numbers;
  std::string comm;
  std::string payload;
  std::map<std::uint16_t, std::uint64_t> cgroups_above;
};

std::uint64_t value_of(const FilterStep& step, const Moment& moment) {
  std::uint64_t value = 0;
  if (step.value == FilterValue::Name) {
    std::string name = moment.comm;
    name.resize(16);
    std::memcpy(&value, name.data() + 8 * step.at, 8);
    return value;
  }
  if (step.value == FilterValue::CgroupAbove) {
    const auto found = moment.cgroups_above.find(step.at);
    return found == moment.cgroups_above.end() ? 0 : found->second;
  }
  if (step.value != FilterValue::Member) return moment.numbers.at(step.value);
  EXPECT_LE(step.at + step.size, moment.payload.size());
  std::memcpy(&value, moment.payload.data() + step.at, step.size);
  if (step.is_signed != 0 && step.size < 8) {
    const int unused = 64 - 8 * step.size;
    value = static_cast<std::uint64_t>(static_cast<std::int64_t>(value << unused) >> unused);
  }
  return value;
}

bool holds(const FilterStep& step, const Moment& moment) {
  const std::uint64_t value = value_of(step, moment) & step.mask;
  const auto left = static_cast<std::int64_t>(value), right = static_cast<std::int64_t>(step.than);
  switch (step.test) {
    case bpf::FilterTest::Equal:
      return value == step.than;
    case bpf::FilterTest::Less:
      return value < step.than;
    case bpf::FilterTest::LessOrEqual:
      return value <= step.than;
    case bpf::FilterTest::SignedLess:
      return left < right;
    default:
      return left <= right;
  }
}

bool passes(const bpf::FilterSteps& steps, const Moment& moment) {
  std::size_t at = 0;
  while (at < steps.size()) {
    const std::uint8_t next = holds(steps[at], moment) ? steps[at].yes : steps[at].no;
    EXPECT_GT(next, at) << "steps go forward only";
    if (next <= at) return false;
    at = next;
  }
  EXPECT_TRUE(at == bpf::kFilterPasses || at == bpf::kFilterRejects) << at;
  return at == bpf::kFilterPasses;
}

format::PayloadSchema schema() {
  format::PayloadSchema out{.event = "e", .type_name = "e", .size = 40, .fields = {}};
  const auto add = [&](std::string name, format::FieldKind kind, std::uint32_t byte, std::uint32_t bits,
                       std::uint32_t count = 1, std::string unit = {}) {
    format::PayloadField field;
    field.name = std::move(name);
    field.kind = kind;
    field.bit_offset = byte * 8;
    field.bit_size = bits;
    field.count = count;
    field.is_array = count != 1;
    field.unit = std::move(unit);
    out.fields.push_back(field);
  };
  add("latency_us", format::FieldKind::Unsigned, 0, 64, 1, "us");
  add("result", format::FieldKind::Signed, 8, 32);
  add("op", format::FieldKind::Enum, 12, 8);
  out.fields.back().enumerators = {{0, "READ"}, {1, "WRITE"}};
  add("flag", format::FieldKind::Unsigned, 13, 1);
  add("ports", format::FieldKind::Unsigned, 14, 16, 3);
  add("file", format::FieldKind::Text, 20, 8, 13);
  add("share", format::FieldKind::Float, 36, 32);
  add("sizes", format::FieldKind::Unsigned, 40, 32, 0);
  return out;
}

Moment moment() {
  Moment now;
  now.numbers = {{FilterValue::Process, 100}, {FilterValue::Thread, 103}, {FilterValue::User, 1000},
                 {FilterValue::Group, 50},    {FilterValue::Cpu, 3},      {FilterValue::Cgroup, 77}};
  now.comm = "nginx: worker";
  now.cgroups_above = {{0, 1}, {1, 70}, {2, 77}};
  now.payload.resize(40);
  const std::uint64_t latency = 1500;
  const std::int32_t result = -11;
  const std::uint16_t port = 443;
  std::memcpy(now.payload.data(), &latency, sizeof latency);
  std::memcpy(now.payload.data() + 8, &result, sizeof result);
  now.payload[12] = 1;
  std::memcpy(now.payload.data() + 16, &port, sizeof port);
  std::memcpy(now.payload.data() + 20, "/var/log/x", 11);
  return now;
}

Result<Condition> compiled(const std::string& text, const format::PayloadSchema* payload = nullptr) {
  const auto expression = cli::parse_expression("--filter", text);
  if (!expression) return expression.error();
  ConditionNames names{.payload = payload, .cgroup = [](std::string_view path) -> Result<CgroupNumber> {
                         if (path == "/") return CgroupNumber{1, 0};
                         if (path == "/a/" || path == "/a") return CgroupNumber{70, 1};
                         if (path == "/a/b" || path == "/a/b/") return CgroupNumber{77, 2};
                         return use_error("there is no cgroup '" + std::string(path) + "'");
                       }};
  return compile_condition("--filter", *expression, names);
}

TEST(Condition, IsWhatItSays) {
  const auto payload = schema();
  const std::pair<const char*, bool> rows[] = {
      {"pid == 100", true},
      {"pid != 100", false},
      {"100 == pid", true},
      {"pid < 100", false},
      {"pid <= 100", true},
      {"pid > 99", true},
      {"99 < pid", true},
      {"100 > pid", false},
      {"pid >= 101", false},
      {"sample.tid == 103", true},
      {"uid == 1000 && gid == 50", true},
      {"uid == 1000 && gid == 51", false},
      {"uid == 0 || cpu == 3", true},
      {"uid == 0 || cpu == 2", false},
      {"!(uid == 0 || cpu == 2)", true},
      {"(pid == 1 || pid == 100) && (cpu == 1 || cpu == 3) && !(uid == 0)", true},
      {"(pid == 1 || pid == 2) && (cpu == 1 || cpu == 3)", false},
      {"pid == 1 && cpu == 3 || uid == 1000", true},
      {"cpu & 1", true},
      {"cpu & 4", false},
      {"!(cpu & 4)", true},
      {"cpu & 6 == 2", true},
      {"cpu", true},
      {"!cpu", false},
      {"comm == \"nginx: worker\"", true},
      {"comm == \"nginx: worke\"", false},
      {"comm != \"nginx\"", true},
      {"comm ~ \"nginx*\"", true},
      {"comm ~ \"nginx: wo*\"", true},
      {"comm ~ \"nginy*\"", false},
      {"comm !~ \"nginx*\"", false},
      {"comm ~ \"nginx\"", false},
      {"cgroup_id == 77", true},
      {"cgroup == \"/a/b\"", true},
      {"cgroup == \"/a\"", false},
      {"cgroup != \"/a\"", true},
      {"cgroup ~ \"/a/*\"", true},
      {"cgroup ~ \"/a/b/*\"", false},  // it is that one itself
      {"cgroup !~ \"/a/*\"", false},
      {"cgroup ~ \"/*\"", true},
      {"latency_us > 1ms", true},
      {"latency_us == 1500us", true},
      {"latency_us < 1ms", false},
      {"result < 0", true},
      {"result == -11", true},
      {"result >= -10", false},
      {"result > 5 - 20", true},
      {"op == WRITE", true},
      {"op == \"READ\"", false},
      {"op != READ", true},
      {"ports[1] == 443", true},
      {"ports[0]", false},
      {"file == \"/var/log/x\"", true},
      {"file ~ \"/var/*\"", true},
      {"file ~ \"/usr/*\"", false},
      {"file != \"/var/log/xy\"", true},
      {"latency_us > 1000 && comm ~ \"n*\" && result < 0 && uid == 1000", true},
  };
  for (const auto& [text, expected] : rows) {
    const auto condition = compiled(text, &payload);
    ASSERT_TRUE(condition) << text << ": " << condition.error().what;
    EXPECT_EQ(passes(condition->steps, moment()), expected) << text;
  }
}

TEST(Condition, WhatTheKernelCannotBeAskedIsRefusedAtItsLetter) {
  const auto payload = schema();
  const std::pair<const char*, const char*> rows[] = {
      {"nosuch > 1",
       "there is no 'nosuch' that the kernel can test; there are: "
       "pid, tid, comm, cgroup, cgroup_id, uid, gid, cpu, latency_us, result"},
      {"time > 1", "there is no 'time'"},
      {"pid == tid", "one side of a comparison must be a constant"},
      {"pid + 1 == 5", "only a value, or bits of it"},
      {"pid == 1.5", "does not compute with fractions"},
      {"pid > -1", "'pid' is never less than 0"},
      {"1 == 1", "two constants need no comparison"},
      {"comm == 5", "a text and a number cannot be compared"},
      {"comm < \"x\"", "texts are equal or not"},
      {"comm ~ \"*x\"", "must be a prefix with one * at the end"},
      {"comm ~ \"n?x\"", "must be a prefix with one * at the end"},
      {"comm ~ \"*\"", "every text matches this pattern"},
      {"comm == \"0123456789abcdef\"", "it is too long: 'comm' holds 15 letters"},
      {"comm", "this is a text; compare it with one"},
      {"comm & 1", "this is a text, and has no bits"},
      {"pid ~ \"1*\"", "only texts can look like a pattern"},
      {"pid == \"dd\"", "'pid' is a number; compare it with one"},
      {"cgroup == \"/nosuch\"", "there is no cgroup '/nosuch'"},
      {"cgroup ~ \"/a*\"", "must be a path with /* at the end"},
      {"latency_us == 1500ns", "'latency_us' is in whole us"},
      {"op == SYNC", "there is no 'SYNC'|one side of a comparison"},
      {"op == \"SYNC\"", "'op' has no such name; it has READ, WRITE"},
      {"op == \"RAED\"", "'op' has no such name; did you mean 'READ'?"},
      {"latency_uss > 1", "; did you mean 'latency_us'?"},
      {"flag == 1", "a bit field"},
      {"ports == 1", "choose an element: ports[0]"},
      {"ports[3] == 1", "it has 3 elements"},
      {"pid[0] == 1", "this is not a list"},
      {"result[1] == 1", "this field is not a list"},
      {"share > 1", "does not compute with fractions"},
      {"sizes[0] > 1", "after the payload's fixed size"},
      {"file == \"0123456789abcd\"", "holds 13 letters"},
  };
  for (const auto& [text, expected] : rows) {
    const auto condition = compiled(text, &payload);
    ASSERT_FALSE(condition) << text;
    std::string rest = expected;
    bool found = false;
    while (!found && !rest.empty()) {
      const auto bar = rest.find('|');
      found = condition.error().what.find(rest.substr(0, bar)) != std::string::npos;
      rest = bar == std::string::npos ? "" : rest.substr(bar + 1);
    }
    EXPECT_TRUE(found) << text << ": " << condition.error().what;
  }
  EXPECT_FALSE(compiled("latency_us > 1")) << "without a payload";
}

TEST(Condition, HasRoomForThirtyTwoComparisons) {
  std::string text = "pid == 1";
  for (int i = 2; i <= 32; ++i) text += " || pid == " + std::to_string(i);
  const auto most = compiled(text);
  ASSERT_TRUE(most) << most.error().what;
  EXPECT_EQ(most->steps.size(), 32U);
  const auto more = compiled(text + " || pid == 33");
  ASSERT_FALSE(more);
  EXPECT_NE(more.error().what.find("takes 33 comparisons in the kernel, whose limit is 32"),
            std::string::npos)
      << more.error().what;
}

TEST(Condition, SaysWhetherItLooksIntoThePayload) {
  const auto payload = schema();
  EXPECT_TRUE(compiled("result < 0 || pid == 1", &payload)->has_members);
  EXPECT_FALSE(compiled("pid == 1", &payload)->has_members);
}

}  // namespace
}  // namespace tacho::record
