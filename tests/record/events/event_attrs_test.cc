// perf's event language against what perf itself asks the kernel for (event_attrs.txt), and what is refused
// with which letter.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "format/records/perf_abi.h"
#include "record/events/event_spec.h"
#include "record/plan/make_plan.h"
#include "record/plan/plan.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;
namespace fs = std::filesystem;

constexpr std::uint64_t kFlagsOfSpecs =
    abi::kDisabled | abi::kInherit | abi::kPinned | abi::kExclusive | abi::kExcludeUser |
    abi::kExcludeKernel | abi::kExcludeHv | abi::kExcludeIdle | abi::kFreq | abi::kEnableOnExec |
    std::uint64_t{3} << abi::kPreciseIpShift | abi::kExcludeHost | abi::kExcludeGuest |
    abi::kExcludeCallchainKernel | abi::kExcludeCallchainUser;
constexpr std::uint64_t kFieldsOfAll =
    abi::kSampleIdentifier | abi::kSampleId | abi::kSampleCpu | abi::kSamplePeriod | abi::kSampleCgroup;

struct PmuFile {
  const char* path;
  const char* text;
};
// The PMUs of a machine with counters, as sysfs shows them.
constexpr PmuFile kPmuFiles[] = {
    {"cpu/type", "4"},
    {"cpu/format/event", "config:0-7"},
    {"cpu/format/umask", "config:8-15"},
    {"cpu/format/edge", "config:18"},
    {"cpu/format/inv", "config:23"},
    {"cpu/format/cmask", "config:24-31"},
    {"cpu/format/offcore_rsp", "config1:0-63"},
    {"cpu/format/ldlat", "config1:0-15"},
    {"cpu/format/split", "config:0-7,32-35"},
    {"cpu/events/cpu-cycles", "event=0x3c"},
    {"cpu/events/instructions", "event=0xc0"},
    {"cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3"},
    {"cpu/events/cache-misses", "event=0x2e,umask=0x41"},
    {"cpu/events/mem-stores", "event=0xd0,umask=0x82"},
    {"uncore_imc_0/type", "20"},
    {"uncore_imc_0/format/event", "config:0-7"},
    {"uncore_imc_0/format/umask", "config:8-15"},
    {"uncore_imc_0/events/cas_count_read", "event=0x04,umask=0x03"},
    {"uncore_imc_0/events/cas_count_read.scale", "6.103515625e-5"},
    {"uncore_imc_1/type", "21"},
    {"uncore_imc_1/format/event", "config:0-7"},
    {"uncore_imc_1/format/umask", "config:8-15"},
    {"uncore_imc_1/events/cas_count_read", "event=0x04,umask=0x03"},
    {"odd/type", "22"},
    {"odd/format/past", "config:60-70"},
    {"odd/format/other", "config3:0-7"},
    {"odd/events/strange", "nothing=1"},
};

class EventAttrs : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "tacho-pmus-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
    for (const PmuFile& file : kPmuFiles) {
      fs::create_directories((root_ / file.path).parent_path());
      std::ofstream(root_ / file.path) << file.text << '\n';
    }
  }
  void TearDown() override { fs::remove_all(root_); }
  Result<std::vector<EventRequest>> parse(std::string_view spec) const {
    return parse_events(spec, Pmus(root_));
  }

  // The attrs as event_attrs.txt writes them; the sideband event is not among them.
  std::string attrs_of(const std::string& spec) const {
    auto events = parse(spec);
    if (!events) return events.error().what;
    RecordOptions options;
    options.target.watch = Watch::Command;
    const Host host{
        .online_cpus = {0}, .page_size = 4096, .max_sample_rate = 100000, .perf_event_paranoid = -1};
    auto plan = make_plan(options, *events, {}, {}, host);
    if (!plan) return plan.error().what;
    std::ostringstream out;
    for (const PlannedEvent& event : plan->events) {
      if (event.is_sideband) continue;
      const format::EventAttr& attr = event.attr;
      out << "  " << attr.type << std::hex << ' ' << attr.config << ' ' << attr.config1 << ' ' << attr.config2
          << ' ' << std::dec << attr.bp_type << ' ' << attr.sample_period << std::hex << ' '
          << (attr.sample_type & ~kFieldsOfAll) << ' ' << (attr.read_format & abi::kReadGroup) << ' '
          << (attr.flags & kFlagsOfSpecs) << ' ' << attr.branch_sample_type << std::dec << ' '
          << attr.sample_stack_user << ' ' << attr.sample_max_stack << '\n';
    }
    return out.str();
  }

  fs::path root_;
};

TEST_F(EventAttrs, AreThoseThatPerfAsksFor) {
  std::ifstream table(TACHO_EVENT_ATTRS);
  ASSERT_TRUE(table) << TACHO_EVENT_ATTRS;
  std::string line, spec, expected;
  int specs = 0;
  const auto check = [&] {
    if (!spec.empty()) {
      EXPECT_EQ(attrs_of(spec), expected) << spec;
    }
    specs += spec.empty() ? 0 : 1;
    expected.clear();
  };
  while (std::getline(table, line)) {
    if (line.starts_with('#')) continue;
    if (line.starts_with("  ")) {
      expected += line + "\n";
      continue;
    }
    check();
    spec = line;
  }
  check();
  EXPECT_GE(specs, 190);
}

struct Refused {
  const char* spec;
  int letter;
  const char* why;
};
constexpr Refused kRefused[] = {
    {"", 1, "an event's name is missing"},
    {"cycels", 1, "did you mean 'cycles'?"},
    {"cpu-clock,cpu-clok", 11, "did you mean 'cpu-clock'?"},
    {"cpu-clock,", 11, "an event's name is missing"},
    {",cpu-clock", 1, "an event's name is missing"},
    {"cpu-clock,,faults", 11, "an event's name is missing"},
    {"cpu_clock", 1, "did you mean 'cpu-clock'?"},
    {"nosuchthing", 1, "unknown event 'nosuchthing'; known:"},
    {"cycles:", 8, "a modifier is missing"},
    {"cycles:x", 8, "unknown modifier 'x'"},
    {"cycles:ux", 9, "unknown modifier 'x'"},
    {"cycles:uu", 9, "is given twice"},
    {"cycles:pppp", 11, "at most ppp"},
    {"cycles:u:k", 9, "':' has no meaning here"},
    {"open/path=/etc/", 12, "'e' has no meaning here; a value with a slash needs quotes: path='/etc'"},
    {"open/path=/etc/x,pid=3/", 12, "needs quotes: path='/etc/x'"},
    {"open/path=etc/x/", 15, "needs quotes: path='etc/x'"},
    {"cycles}", 7, "'}' has no meaning here"},
    {"L1-icache-stores", 1, "L1-icache takes no stores"},
    {"iTLB-store-misses", 1, "iTLB takes no stores"},
    {"L1-dcache-lods", 1, "did you mean 'L1-dcache-loads'?"},
    {"duration_time", 1, "only counts and has no samples"},
    {"r", 1, "unknown event 'r'"},
    {"rxyz", 1, "unknown event 'rxyz'"},
    {"r11112222333344445", 1, "unknown event"},
    {"1:x", 3, "'x' is not a number"},
    {"4294967296:0", 1, "a type has 32 bits"},
    {"cpu/nope=1/", 5, "unknown term 'nope' of PMU cpu"},
    {"cpu/evnt=1/", 5, "did you mean 'event'?"},
    {"cpu/cpu-cylces/", 5, "did you mean 'cpu-cycles'?"},
    {"cpu/event=zz/", 11, "event: 'zz' is not a number"},
    {"cpu/event=0x1ff/", 11, "event: 511 is too large: at most 255"},
    {"cpu/event=/", 11, "event: '' is not a number"},
    {"cpu/edge=2/", 10, "at most 1"},
    {"cpu/event=1", 12, "the closing '/' is missing"},
    {"cpu/event=1/x", 13, "unknown modifier 'x'"},
    {"nopmu/event=1/", 1,
     "there is no PMU 'nopmu' here; there are: cpu, odd, uncore_imc_0, uncore_imc_1; recorders: tacho list "
     "recorders"},
    {"opensnop/failed/", 1, "there is no PMU 'opensnop' here; did you mean 'opensnoop'?"},
    {"uncor_imc_0/event=1/", 1, "did you mean 'uncore_imc_0'?"},
    {"odd/past=1/", 5, "unknown term 'past' of PMU odd"},
    {"odd/strange/", 5, "this kernel describes it as 'nothing=1'"},
    {"../cpu/event=1/", 1, "no PMU '..'"},
    {"cpu-clock/perod=1/", 11, "did you mean 'period'?"},
    {"cpu-clock/period=x/", 18, "period: 'x' is not a number"},
    {"cpu-clock/period=0/", 18, "0 is too small"},
    {"cpu-clock/period=1k/", 18, "'1k' is not a number"},
    {"cpu-clock/period/", 11, "period: it needs a value"},
    {"cpu-clock/period=/", 18, "the value is empty"},
    {"cpu-clock/period=1", 19, "the closing '/' is missing"},
    {"cpu-clock/period=1,freq=2/", 26, "exclude each other"},
    {"cpu-clock/call-graph=frame/", 22, "'frame' is not understood"},
    {"cpu-clock/stack-size=99999/", 22, "1 to 65528 bytes"},
    {"cpu-clock/max-stack=0/", 21, "1 to 65535"},
    {"cpu-clock/inherit=2/", 19, "neither 0 nor 1"},
    {"cpu-clock/time=0/", 16, "sorted by time"},
    {"cpu-clock/overwrite/", 11, "--overwrite is for all events"},
    {"cycles/branch_type=ani/", 20, "did you mean 'any'?"},
    {"mem:", 5, "an address is missing"},
    {"mem:main", 5, "an address is missing"},
    {"mem:0x1000/3", 12, "1, 2, 4 or 8 bytes"},
    {"mem:0x1000:rr", 13, "is given twice"},
    {"mem:0x1000:rz", 13, "'z' is not a kind of access"},
    {"mem:0x1000:z", 12, "unknown modifier 'z'"},
    {"uprobe:", 8, "a file is missing, as in uprobe:/lib/libc.so.6:malloc"},
    {"uprobe:/bin/x", 14, "a function is missing"},
    {"uprobe:/bin/x:", 15, "a function is missing"},
    {"uprobe:/bin/x:f+", 17, "a number of bytes is missing"},
    {"uprobe:/bin/x:0xzz", 15, "'0xzz' is not an offset in a file"},
    {"uretprobe:/bin/x:f+4", 19, "a return probe has no offset"},
    {"uprobe:/bin/x:f:q", 17, "unknown modifier 'q'"},
    {"kprobe:", 8, "a function is missing, as in kprobe:vfs_read"},
    {"usdt:/bin/x:p", 14, "a marker is missing"},
    {"sched:", 7, "the tracepoint's name is missing"},
    {"sched:sched_switch:x", 20, "unknown modifier 'x'"},
    {"{}", 2, "an event's name is missing"},
    {"{cycles", 8, "the closing '}' of the group at column 1 is missing"},
    {"{cycles,instructions}:Z", 23, "unknown modifier 'Z'"},
    {"{cycles,{faults,cs}}", 9, "an event's name is missing"},
    {"{cycles,./x.bpf.o}", 1, "a BPF object cannot be in a group"},
    {"./a.bpf.o/map:x.evnt=y/", 11, "map:MAP.event=EVENT"},
};

TEST_F(EventAttrs, ARefusalPointsAtTheColumnAndSaysWhatWasMeant) {
  for (const Refused& row : kRefused) {
    const auto events = parse(row.spec);
    ASSERT_FALSE(events) << row.spec;
    EXPECT_EQ(events.error().fault, Fault::Use) << row.spec;
    const std::string start = "-e " + std::string(row.spec) + ": column " + std::to_string(row.letter) + ": ";
    EXPECT_EQ(events.error().what.substr(0, start.size()), start) << events.error().what;
    EXPECT_NE(events.error().what.find(row.why), std::string::npos) << events.error().what;
  }
}

TEST_F(EventAttrs, NamesAreWhatWasWrittenUnlessATermGivesOne) {
  const auto names = [this](const char* spec) {
    std::string out;
    const auto events = parse(spec);
    if (!events) return events.error().what;
    for (const EventRequest& event : *events) out += event.name + "|";
    return out;
  };
  EXPECT_EQ(names("cycles:uk,cpu/event=1,umask=2/u"), "cycles:uk|cpu/event=1,umask=2/u|");
  EXPECT_EQ(names("cpu/event=0x3c,name=foo/k,cpu-clock/name=mine/:u"), "foo|mine|");
  EXPECT_EQ(names("{cycles,faults:k}:S"), "cycles|faults:k|");
  EXPECT_EQ(names("sched:sched_*/period=5/u"), "sched:sched_*:u|");
  EXPECT_EQ(names("uncore_imc/event=1/"), "uncore_imc/event=1/|uncore_imc/event=1/|");
}

TEST_F(EventAttrs, AMachineWithoutCountersSaysSo) {
  fs::remove_all(root_ / "cpu");
  const auto events = parse("cpu/event=1/");
  ASSERT_FALSE(events);
  EXPECT_NE(events.error().what.find("this machine has no CPU counters; cpu-clock samples by time"),
            std::string::npos);
}

TEST_F(EventAttrs, ProbesAreTakenApart) {
  const auto events = parse("uprobe:/lib/x.so.6:f+0x10/name=mine/u,uretprobe:./a,kprobe:vfs_read:k");
  ASSERT_FALSE(events) << "a file without a function";
  const auto probes = parse(
      "uprobe:/lib/x.so.6:f+0x10/name=mine/u,uretprobe:./a:g,kprobe:vfs_read:k,usdt:/bin/x:p:n,"
      "uprobe:/bin/x:0x400");
  ASSERT_TRUE(probes) << probes.error().what;
  ASSERT_EQ(probes->size(), 5u);
  EXPECT_EQ((*probes)[0].probe()->path + " " + (*probes)[0].probe()->function + " " + (*probes)[0].name,
            "/lib/x.so.6 f mine");
  EXPECT_EQ((*probes)[0].probe()->offset, 0x10u);
  EXPECT_TRUE((*probes)[1].probe()->at_return);
  EXPECT_EQ((*probes)[1].name, "uretprobe:./a:g");
  EXPECT_EQ((*probes)[2].probe()->function, "vfs_read");
  EXPECT_EQ((*probes)[2].probe()->kind, ProbeKind::Kernel);
  EXPECT_EQ((*probes)[3].probe()->provider + ":" + (*probes)[3].probe()->function, "p:n");
  EXPECT_EQ((*probes)[4].probe()->offset, 0x400u);
  EXPECT_EQ((*probes)[4].probe()->function, "");
}

TEST_F(EventAttrs, FunctionsOfCppHaveColonsInTheirNames) {
  const auto probes =
      parse("uprobe:/bin/x:ns::Queue::push(arg1):u,uretprobe:/bin/x:f::g,uprobe:/bin/x:a::b+4");
  ASSERT_TRUE(probes) << probes.error().what;
  ASSERT_EQ(probes->size(), 3u);
  EXPECT_EQ((*probes)[0].probe()->function, "ns::Queue::push");
  EXPECT_EQ((*probes)[0].arguments.size(), 1u);
  EXPECT_EQ((*probes)[1].probe()->function, "f::g");
  EXPECT_EQ((*probes)[2].probe()->function + "+" + std::to_string((*probes)[2].probe()->offset), "a::b+4");
}

TEST_F(EventAttrs, GroupsAreDistinguishedAndMayHaveNames) {
  const auto events = parse("{cycles,cs},faults,g{instructions,cs}");
  ASSERT_TRUE(events);
  std::vector<std::size_t> groups;
  for (const EventRequest& event : *events) groups.push_back(event.group);
  EXPECT_EQ(groups, (std::vector<std::size_t>{1, 1, 0, 2, 2}));
  EXPECT_EQ(events->back().group_name, "g");
}

}  // namespace
}  // namespace tacho::record
