#include "report/profile/entries.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <set>

#include "report/profile/call_tree.h"
#include "report/profile/hierarchy.h"
#include "report/profile/sort_keys.h"
#include "tests/support/capture_builder.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;
using test::CaptureBuilder;
using test::SampleFields;

constexpr std::uint64_t kKernel = 0xffffffff81000000, kFunctionSize = 0x100;
constexpr std::size_t kFunctions = 5;

// Functions f0 to f4 of a kernel.
std::string kallsyms_text() {
  std::string text = "ffffffff81000000 T _text\n";
  for (std::size_t i = 0; i < kFunctions; ++i)
    text += "ffffffff81000" + std::to_string(i) + "00 T f" + std::to_string(i) + "\n";
  return text + "ffffffff81000900 T _etext\n";
}

struct Called {
  std::uint32_t thread = 1;
  std::vector<std::size_t> chain;  // numbers of functions, leaf first; empty: no chain
  std::size_t leaf = 0;
  std::uint64_t period = 1;
};

std::uint64_t address_of(std::size_t function, std::uint64_t offset) {
  return kKernel + function * kFunctionSize + offset;
}

class IntoProfile : public Sink {
 public:
  IntoProfile(Profile& profile) : profile_(&profile) {}
  Flow on_sample(const ResolvedSample& sample) override {
    profile_->add_sample(sample, sample.period);
    return Flow::Continue;
  }

 private:
  Profile* profile_;
};

// A capture of these samples, run, and its rows.
struct Report {
  Report(const std::vector<Called>& samples, std::string_view keys_text, ChainOrder order, bool has_children,
         EntryOptions more = {})
      : kallsyms(std::as_bytes(std::span(text))) {
    CaptureBuilder capture;
    capture.event(test::software_event(abi::kCpuClock, abi::kSampleCallchain), "cpu-clock", {1});
    capture.comm(1, 1, "one").comm(1, 2, "two");
    capture.mmap(~0U, kKernel, 0x1000, kKernel, "[kernel.kallsyms]_text", abi::kCpumodeKernel);
    std::uint64_t time = 10;
    for (const Called& called : samples) {
      SampleFields fields;
      fields.id = 1;
      fields.pid = 1;
      fields.tid = called.thread;
      fields.time = ++time;
      fields.period = called.period;
      fields.misc = abi::kCpumodeKernel;
      fields.ip = address_of(called.leaf, time % 8);
      fields.callchain = {abi::kContextKernel};
      for (std::size_t i = 0; i < called.chain.size(); ++i)
        fields.callchain.push_back(i == 0 ? fields.ip : address_of(called.chain[i], 8 + time % 8));
      capture.sample(fields);
    }
    const test::TemporaryFile file(capture.file());
    SessionOptions options;
    options.input = file.path();
    options.symbols.kallsyms = kallsyms.path();
    session = std::make_unique<Session>(std::move(*Session::open(options)));
    facts = std::make_unique<SampleFacts>(*session, FactOptions());
    for (std::size_t at = 0; at < keys_text.size(); at += keys_text.substr(at).find(',') + 1) {
      const std::string_view word = keys_text.substr(at, keys_text.substr(at).find(','));
      for (KeyUse& use : find_sort_keys(word, *facts)) keys.push_back(std::move(use));
      if (keys_text.substr(at).find(',') == std::string_view::npos) break;
    }
    profile = std::make_unique<Profile>(std::vector<EventBlock>{{0, 1}}, ProfileShape());
    IntoProfile sink(*profile);
    session->run(sink);
    functions = std::make_unique<FunctionTable>(*session);
    stacks = std::make_unique<FunctionStacks>(*functions, ChainOptions{.order = order});
    more.has_children = has_children;
    more.graph = order;
    index = std::make_unique<EntryIndex>(keys, *facts, *functions);
    names_of_rows = std::make_unique<NamedRows>(*profile, *session, *functions, stacks.get());
    names_of_rows->name_all();
    entries = std::make_unique<Entries>(*names_of_rows, BlockId{}, *index, std::move(more));
  }
  std::string name(EntryId entry) const {
    const RowFacts row = entries->facts(entry);
    std::string all;
    for (const KeyUse& use : keys) all += (all.empty() ? "" : "|") + use.key->show({use, *facts}, row);
    return all;
  }
  std::vector<std::string> names(std::vector<Column> columns) const {
    for (std::size_t i = 0; i < keys.size(); ++i) columns.push_back({Column::Kind::Key, i});
    std::vector<std::string> all;
    for (const EntryId entry : entries->sorted(columns)) all.push_back(name(entry));
    return all;
  }

  std::string text = kallsyms_text();
  test::TemporaryFile kallsyms;
  std::unique_ptr<Session> session;
  std::unique_ptr<SampleFacts> facts;
  std::vector<KeyUse> keys;
  std::unique_ptr<Profile> profile;
  std::unique_ptr<FunctionTable> functions;
  std::unique_ptr<FunctionStacks> stacks;
  std::unique_ptr<NamedRows> names_of_rows;
  std::unique_ptr<EntryIndex> index;
  std::unique_ptr<Entries> entries;
};

using Path = std::vector<std::string>;
struct Sums {
  std::uint64_t self = 0, children = 0;
  std::map<Path, std::uint64_t> paths;  // what comes through each beginning of a chain's part
};

// The same from the samples, one by one.
std::map<std::string, Sums> added_up(const std::vector<Called>& samples, ChainOrder order, bool has_children,
                                     bool by_thread) {
  std::map<std::string, Sums> rows;
  for (const Called& called : samples) {
    const auto row_name = [&](std::size_t function) {
      const std::string symbol = "[k] f" + std::to_string(function);
      return by_thread ? (called.thread == 1 ? "one|" : "two|") + symbol : symbol;
    };
    Path drawn;
    std::vector<std::size_t> chain = called.chain;
    if (order == ChainOrder::Caller) std::ranges::reverse(chain);
    for (const std::size_t function : chain) drawn.push_back("f" + std::to_string(function));
    std::map<std::string, std::size_t> met{{row_name(called.leaf), 0}};
    for (std::size_t i = 0; has_children && i < chain.size(); ++i) met.try_emplace(row_name(chain[i]), i);
    rows[row_name(called.leaf)].self += called.period;
    for (const auto& [name, position] : met) {
      Sums& row = rows[name];
      row.children += called.period;
      for (std::size_t end = position + 1; end <= drawn.size(); ++end)
        row.paths[Path(drawn.begin() + static_cast<std::ptrdiff_t>(position),
                       drawn.begin() + static_cast<std::ptrdiff_t>(end))] += called.period;
    }
  }
  return rows;
}

// What the nodes of a row's call graph say, by the path that leads to the end of each.
std::map<Path, std::uint64_t> drawn_totals(const Report& report, EntryId entry) {
  CallTree tree(report.functions->functions());
  const EntryId asked[] = {entry};
  const auto strands = report.entries->strands(asked);
  EXPECT_LE(strands[0].size(), report.entries->strand_count(entry));
  tree.build(strands[0], {.percent = 0, .total = 0});
  std::map<Path, std::uint64_t> totals;
  for (const CallNode& node : tree.nodes()) {
    Path path;
    for (const CallNode* at = &node; at != nullptr && !at->frames.empty();
         at = at->parent == CallNode::kNone ? nullptr : &tree.nodes()[at->parent]) {
      Path above;
      for (const FunctionId id : at->frames) above.emplace_back((*report.functions)[id].name());
      path.insert(path.begin(), above.begin(), above.end());
    }
    if (!path.empty()) totals[path] = node.period;
  }
  return totals;
}

void expect_as_added_up(const std::vector<Called>& samples, ChainOrder order, bool has_children,
                        bool by_thread) {
  const Report report(samples, by_thread ? "comm,sym" : "sym", order, has_children);
  const auto expected = added_up(samples, order, has_children, by_thread);
  ASSERT_EQ(report.entries->size(), expected.size());
  for (const EntryId entry : report.entries->ids()) {
    SCOPED_TRACE(report.name(entry));
    const auto row = expected.find(report.name(entry));
    ASSERT_NE(row, expected.end());
    EXPECT_EQ(report.entries->value(Column::Kind::Overhead, entry, 0), row->second.self);
    EXPECT_EQ(report.entries->value(Column::Kind::Children, entry, 0),
              has_children ? row->second.children : 0);
    const auto totals = drawn_totals(report, entry);
    EXPECT_EQ(totals.empty(), row->second.paths.empty());
    for (const auto& [path, period] : totals) {
      const auto known = row->second.paths.find(path);
      ASSERT_NE(known, row->second.paths.end());
      EXPECT_EQ(period, known->second);
    }
  }
}

// Recursion of every kind: five functions, chains of up to nine frames.
std::vector<Called> random_samples(std::mt19937& random) {
  const auto below = [&](std::size_t end) { return random() % end; };
  std::vector<Called> samples(1 + below(12));
  for (Called& called : samples) {
    called.thread = static_cast<std::uint32_t>(1 + below(2));
    called.leaf = below(kFunctions);
    called.period = 1 + below(1000);
    if (below(8) == 0) continue;  // no chain
    called.chain.assign(1, called.leaf);
    for (std::size_t depth = below(9); depth > 0; --depth) called.chain.push_back(below(kFunctions));
  }
  return samples;
}

TEST(Entries, RowsAndGraphsEqualWhatOneAddsUpByHandOnAThousandCaptures) {
  std::mt19937 random(7);  // NOLINT(cert-msc51-cpp): the same captures each time
  for (int round = 0; round < 1000 && !testing::Test::HasFailure(); ++round) {
    SCOPED_TRACE(round);
    const auto samples = random_samples(random);
    expect_as_added_up(samples, round % 2 == 0 ? ChainOrder::Caller : ChainOrder::Callee, round % 3 != 0,
                       round % 5 == 0);
  }
}

TEST(Entries, AFunctionStandsAboveWhatItCallsWhenAllItsTimeIsSpentThere) {
  // f1 <- f2 <- f3: by name f2 would stand first.
  const Report report({{.chain = {1, 3, 2}, .leaf = 1, .period = 5}}, "sym", ChainOrder::Caller, true);
  EXPECT_EQ(report.names({{Column::Kind::Children}}),
            (std::vector<std::string>{"[k] f1", "[k] f2", "[k] f3"}))
      << "the row of the sample's own location has the whole chain";
}

TEST(Entries, EventsWithoutPeriodsAreWeighedBySamples) {
  const Report report({{.chain = {1}, .leaf = 1, .period = 0}, {.chain = {1}, .leaf = 1, .period = 0}}, "sym",
                      ChainOrder::Caller, true);
  EXPECT_EQ(report.entries->value(Column::Kind::Overhead, EntryId{0}, 0), 2U);
}

TEST(Entries, AFunctionThatForgetsItsCalleesTakesTheirSamples) {
  EntryOptions options;
  options.is_root = [](const Function& function) { return function.name() == "f2"; };
  const Report report({{.chain = {1, 2, 3}, .leaf = 1, .period = 5}}, "sym", ChainOrder::Callee, false,
                      std::move(options));
  ASSERT_EQ(report.entries->size(), 1U);
  EXPECT_EQ(report.name(EntryId{0}), "[k] f2");
  EXPECT_EQ(drawn_totals(report, EntryId{0}), (std::map<Path, std::uint64_t>{{{"f2", "f3"}, 5}}));
}

TEST(Entries, FilteredRowsCountInTheTotalsOnly) {
  EntryOptions options;
  options.filtered_by = [](const ProfileRow& row, const Function&) {
    return row.comm() == "one" ? kByThread : FilterBits{0};
  };
  const Report report({{.thread = 1, .chain = {1}, .leaf = 1, .period = 5},
                       {.thread = 2, .chain = {1}, .leaf = 1, .period = 3}},
                      "comm,sym", ChainOrder::Caller, true, std::move(options));
  ASSERT_EQ(report.entries->size(), 1U);
  EXPECT_EQ(report.name(EntryId{0}), "two|[k] f1");
  EXPECT_EQ(report.entries->total(0).period, 8U);
  EXPECT_EQ(report.entries->filtered(0).period, 5U);
}

TEST(Entries, RefusedRowsAreKeptWhereTheyAreAskedFor) {
  EntryOptions options;
  options.filtered_by = [](const ProfileRow& row, const Function&) {
    return row.comm() == "one" ? kByThread : FilterBits{0};
  };
  options.keeps_filtered = true;
  const Report report({{.thread = 1, .chain = {1}, .leaf = 1, .period = 5},
                       {.thread = 2, .chain = {1}, .leaf = 1, .period = 3}},
                      "comm,sym", ChainOrder::Caller, false, std::move(options));
  ASSERT_EQ(report.entries->size(), 2U);
  EXPECT_EQ(report.entries->filtered_by(EntryId{0}), kByThread);
  EXPECT_EQ(report.entries->filtered_by(EntryId{1}), 0);
}

// The levels of keys 0, 1, ..., one each.
HierarchyOptions levels(std::initializer_list<FilterBits> decides) {
  HierarchyOptions options;
  options.sorted.push_back({Column::Kind::Overhead});
  for (const FilterBits filter : decides) {
    const Column column{Column::Kind::Key, options.levels.size()};
    options.levels.push_back({{column}, filter});
    options.sorted.push_back(column);
  }
  return options;
}

TEST(Hierarchy, ARowWeighsWhatTheRowsBelowItWeigh) {
  const Report report({{.thread = 1, .chain = {1}, .leaf = 1, .period = 5},
                       {.thread = 2, .chain = {1}, .leaf = 1, .period = 9},
                       {.thread = 1, .chain = {2}, .leaf = 2, .period = 7}},
                      "comm,sym", ChainOrder::Caller, false);
  const Hierarchy rows(*report.entries, report.keys, *report.facts, levels({kByThread, kBySymbol}));
  std::vector<std::pair<std::string, std::uint64_t>> shown;
  for (const TreeRowId row : rows.shown()) {
    const KeyUse& use = report.keys[rows.row(row).level];
    shown.emplace_back(use.key->show({use, *report.facts}, rows.facts(row)),
                       rows.value(Column::Kind::Period, row, 0));
  }
  EXPECT_EQ(shown, (std::vector<std::pair<std::string, std::uint64_t>>{
                       {"one", 12}, {"[k] f2", 7}, {"[k] f1", 5}, {"two", 9}, {"[k] f1", 9}}));
  EXPECT_EQ(rows.total(0, false), 21U);
}

TEST(Hierarchy, ARowAboveOneThatPassesTheFilterIsShownWithItsWholeWeight) {
  EntryOptions options;
  options.filtered_by = [](const ProfileRow&, const Function& function) {
    return function.name() == "f1" ? kBySymbol : FilterBits{0};
  };
  options.keeps_filtered = true;
  const Report report({{.thread = 1, .chain = {1}, .leaf = 1, .period = 5},
                       {.thread = 2, .chain = {1}, .leaf = 1, .period = 9},
                       {.thread = 1, .chain = {2}, .leaf = 2, .period = 7}},
                      "comm,sym", ChainOrder::Caller, false, std::move(options));
  HierarchyOptions asked = levels({kByThread, kBySymbol});
  asked.filters = kBySymbol;
  const Hierarchy rows(*report.entries, report.keys, *report.facts, std::move(asked));
  std::vector<bool> passes;
  for (const TreeRowId row : rows.shown()) passes.push_back(rows.row(row).filtered == 0);
  EXPECT_EQ(passes, (std::vector<bool>{true, true, false, false, false})) << "one, f2, f1; two, f1";
  EXPECT_EQ(rows.total(0, true), 12U);
}

}  // namespace
}  // namespace tacho::report
