#include "report/profile/code_hits.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "report/decode/coded_values.h"
#include "report/profile/branches.h"

namespace tacho::report {

void BranchHits::add(const BranchHits& other) {
  taken += other.taken;
  mispredicted += other.mispredicted;
  entered += other.entered;
  cycles += other.cycles;
  timed += other.timed;
}

void CodeHits::add(const ResolvedSample& sample) {
  const auto event = static_cast<std::uint32_t>(sample.event_index);
  if (event >= totals_.size()) totals_.resize(event + std::size_t{1});  // of a pipe, events come later
  const HitCount one{1, sample.period};
  totals_[event].add(one);
  const std::uint32_t at = by_place_.find_or_make(
      by_place_.hash(event, sample.place),
      [&](std::uint32_t known) {
        return places_[known].event == event && places_[known].location == sample.place;
      },
      [&] {
        places_.push_back({event, sample.place, {}});
        return static_cast<std::uint32_t>(places_.size() - 1);
      });
  places_[at].count.add(one);
}

BranchHits& CodeHits::branches_at(std::uint32_t location) {
  const std::uint32_t at = by_branch_.find_or_make(
      by_branch_.hash(location, 0),
      [&](std::uint32_t known) { return branches_[known].location == location; },
      [&] {
        branches_.push_back({location, {}});
        return static_cast<std::uint32_t>(branches_.size() - 1);
      });
  return branches_[at].count;
}

void CodeHits::add_branches(const ResolvedSample& sample) {
  const format::Sample& raw = *sample.raw;
  for (std::size_t i = 0; i < raw.branch_count(); ++i) {
    const format::BranchEntry branch = raw.branch(i);
    BranchHits& from = branches_at(branch_place(sample, branch.from).number);
    ++from.taken;
    if ((branch.flags & kBranchMispredicted) != 0) ++from.mispredicted;
    if (const std::uint64_t cycles = branch_cycles(branch.flags); cycles != 0) {
      from.cycles += cycles;
      ++from.timed;
    }
    ++branches_at(branch_place(sample, branch.to).number).entered;
  }
}

namespace {

// Sorts places into functions, each of which is one by its module and its range.
class FunctionsByRange {
 public:
  explicit FunctionsByRange(Resolver& resolver) : resolver_(resolver) {}

  // Null: the place has no function.
  HitFunction* of(const Location& location, std::uint64_t& offset) {
    const symbolize::Frame& frame = resolver_.frame(location);
    if (frame.module == nullptr || frame.function.empty()) return nullptr;
    if (frame.shown_address < frame.function_start) return nullptr;
    offset = frame.shown_address - frame.function_start;
    const auto [known, is_new] =
        numbers_.try_emplace(Key(frame.module, frame.function_start, frame.function_end), functions_.size());
    if (!is_new) return &functions_[known->second];
    HitFunction& function = functions_.emplace_back();
    function.place = location;
    function.module = frame.module;
    function.shown_address = frame.shown_address;
    function.start = frame.function_start;
    function.end = frame.function_end;
    function.name = frame.function;
    function.linker_name = frame.linker_name;
    return &function;
  }
  std::vector<HitFunction> take() { return std::move(functions_); }

 private:
  using Key = std::tuple<const symbolize::Module*, std::uint64_t, std::uint64_t>;
  Resolver& resolver_;
  std::vector<HitFunction> functions_;
  std::map<Key, std::size_t> numbers_;
};

void add_totals(HitFunction& function) {
  std::ranges::sort(function.hits, {}, [](const auto& hit) { return std::pair(hit.event, hit.offset); });
  for (const HitFunction::Hit& hit : function.hits) {
    if (function.totals.empty() || function.totals.back().event != hit.event)
      function.totals.push_back({0, hit.event, {}});
    function.totals.back().count.add(hit.count);
  }
  std::ranges::stable_sort(function.hits, {}, &HitFunction::Hit::offset);
}

void join_branches(std::vector<HitFunction::Branches>& branches) {
  std::ranges::sort(branches, {}, &HitFunction::Branches::offset);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < branches.size(); ++i) {
    if (kept > 0 && branches[kept - 1].offset == branches[i].offset)
      branches[kept - 1].count.add(branches[i].count);
    else
      branches[kept++] = branches[i];
  }
  branches.resize(kept);
}

}  // namespace

std::vector<HitFunction> CodeHits::functions(Resolver& resolver) const {
  FunctionsByRange by_range(resolver);
  std::uint64_t offset = 0;
  for (const Place& place : places_) {
    HitFunction* const function = by_range.of(resolver.location(place.location), offset);
    if (function == nullptr) continue;
    function->hits.push_back({offset, place.event, place.count});
  }
  for (const BranchPlace& place : branches_)
    if (HitFunction* const function = by_range.of(resolver.location(place.location), offset))
      function->branches.push_back({offset, place.count});
  std::vector<HitFunction> functions = by_range.take();
  for (HitFunction& function : functions) {
    add_totals(function);
    join_branches(function.branches);
  }
  return functions;
}

HitCount HitFunction::total(std::uint32_t event) const {
  const auto found = std::ranges::lower_bound(totals, event, {}, &Hit::event);
  return found != totals.end() && found->event == event ? found->count : HitCount();
}

std::map<std::uint32_t, std::vector<std::size_t>> hottest(const std::vector<HitFunction>& functions) {
  std::map<std::uint32_t, std::vector<std::size_t>> by_event;
  for (std::size_t i = 0; i < functions.size(); ++i)
    for (const HitFunction::Hit& total : functions[i].totals) by_event[total.event].push_back(i);
  for (auto& [event, order] : by_event) {
    std::ranges::sort(order, {}, [&functions, of = event](std::size_t number) {
      const HitFunction& function = functions[number];
      const HitCount total = function.total(of);
      return std::tuple(~total.period, ~total.samples, function.module->short_name,
                        std::string_view(function.name), function.start);
    });
  }
  return by_event;
}

}  // namespace tacho::report
