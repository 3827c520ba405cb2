#include "report/profile/call_tree.h"

#include <algorithm>
#include <cmath>
#include <compare>

namespace tacho::report {
namespace {

// Less: comes first. As rows (row_order.h): by name, unnamed addresses last; then by module, unmapped last;
// then by address.
std::strong_ordering order_of(const Function& a, const Function& b, ChainKey key) {
  const auto is_last = [](bool a_is, bool b_is) { return static_cast<int>(a_is) <=> static_cast<int>(b_is); };
  if (const auto order = is_last(a.name().empty(), b.name().empty()); order != 0) return order;
  if (a.name_id != b.name_id)
    if (const auto order = a.shown_name() <=> b.shown_name(); order != 0) return order;
  if (key == ChainKey::SourceLine && a.line() != b.line()) return a.line() <=> b.line();
  if (a.module != b.module) {
    if (const auto order = is_last(a.module == nullptr, b.module == nullptr); order != 0) return order;
    if (const auto order = a.module->short_name <=> b.module->short_name; order != 0) return order;
    if (const auto order = a.module->path <=> b.module->path; order != 0) return order;
  }
  return key == ChainKey::Address ? a.first_ip <=> b.first_ip : a.start <=> b.start;
}

// Whether perf shows `a` first.
bool is_higher(const Function& a, const Function& b, ChainKey key) {
  if (key == ChainKey::SourceLine && (a.has_line || b.has_line)) {
    if (a.has_line != b.has_line) return b.has_line;
    if (a.line() != b.line()) return a.line() > b.line();
  }
  const bool by_function = key != ChainKey::Address && !a.name().empty() && !b.name().empty();
  if (by_function && (a.is_inlined || b.is_inlined)) return a.name() > b.name();
  if (a.module_rank != b.module_rank) return a.module_rank > b.module_rank;
  return by_function ? a.start > b.start : a.first_ip > b.first_ip;
}

}  // namespace

std::uint64_t CallTreeLimit::least(std::uint64_t together) const {
  const bool is_of_parent = share == Share::OfParent;
  const double part = static_cast<double>(is_of_parent ? together : total) * (percent / 100);
  constexpr double kTooMuch = 18446744073709551616.0;  // 2^64
  if (!(part > 0)) return 0;
  if (part >= kTooMuch) return ~std::uint64_t{0};
  return static_cast<std::uint64_t>(is_of_parent ? std::ceil(part) : part);
}

CallTree::CallTree(const StableArray<Function, FunctionId>& functions, ChainKey key, const BranchSteps* steps,
                   SiblingOrder order)
    : functions_(&functions), key_(key), steps_(steps), order_(order) {}

void CallTree::learn_functions() {
  if (keys_.size() == functions_->size()) return;
  std::size_t keys = group_by_key_.size();
  while (keys_.size() < functions_->size()) {
    const Function& function = (*functions_)[id_of<FunctionId>(keys_.size())];
    keys_.push_back(function.chain_key);
    keys = std::max(keys, index_of(function.chain_key) + 1);
    has_inlined_ |= function.is_inlined && key_ == ChainKey::Function;
    if (function.name_id != kNo<NameId>) names_ = std::max(names_, index_of(function.name_id) + 1);
  }
  group_by_key_.resize(keys);
  if (has_inlined_) group_by_name_.resize(names_);
}

void CallTree::build(std::span<const Strand> strands, const CallTreeLimit& limit) {
  learn_functions();
  strands_ = strands;
  limit_ = limit;
  nodes_.clear();
  ranges_.clear();
  members_.clear();
  counts_.clear();
  CallNode root;
  for (std::size_t i = 0; i < strands.size(); ++i) {
    if (strands[i].frames.empty()) continue;
    root.period += strands[i].period;
    root.samples += strands[i].samples;
    members_.push_back(static_cast<std::uint32_t>(i));
  }
  nodes_.push_back(root);
  ranges_.push_back({0, members_.size(), 0});
  if (members_.empty()) return;
  for (std::size_t i = 0; i < nodes_.size(); ++i) expand(i);
}

// Finds the end of a node, and makes its children.
void CallTree::expand(std::size_t index) {
  const bool is_root = index == 0;
  Range range = ranges_[index];
  const Strand& first = strands_[members_[range.begin]];
  const std::size_t from = range.depth;
  if (steps_ != nullptr)
    arrived_.assign(members_.begin() + static_cast<std::ptrdiff_t>(range.begin),
                    members_.begin() + static_cast<std::ptrdiff_t>(range.end));
  if (!is_root) ++range.depth;
  for (;;) {
    const bool some_end = take_ended(nodes_[index], range);
    const std::size_t ways = group_members(range);
    if (is_root || some_end || ways != 1) break;
    ++range.depth;
  }
  nodes_[index].frames = first.frames.subspan(from, range.depth - from);
  if (steps_ != nullptr) count_steps(nodes_[index], from);
  const auto chosen = heavy_groups(nodes_[index]);
  add_children(index, range, chosen);
}

// All chains of the node pass through all of its frames.
void CallTree::count_steps(CallNode& node, std::size_t depth) {
  node.first_count = static_cast<std::uint32_t>(counts_.size());
  for (std::size_t i = 0; i < node.frames.size(); ++i) {
    BranchCounts& counts = counts_.emplace_back();
    for (const std::uint32_t member : arrived_) {
      const Strand& strand = strands_[member];
      const StepId step = (*functions_)[strand.frames[depth + i]].step();
      if (step != kNo<StepId>) counts.add_step((*steps_)[step], strand.samples, member == arrived_[0]);
    }
  }
}

// Removes the chains that end above `range.depth` from the range.
bool CallTree::take_ended(CallNode& node, Range& range) {
  const std::size_t end = range.end;
  range.end = range.begin;
  for (std::size_t i = range.begin; i < end; ++i) {
    const Strand& strand = strands_[members_[i]];
    if (strand.frames.size() > range.depth) {
      members_[range.end++] = members_[i];
    } else {
      node.own_period += strand.period;
      node.own_samples += strand.samples;
    }
  }
  return range.end != end;
}

// Groups the members by the frame at this depth, and returns the number of groups.
std::size_t CallTree::group_members(const Range& range) {
  groups_.clear();
  group_of_.clear();
  ++round_;
  bool has_inlined = false;
  for (std::size_t i = range.begin; i < range.end; ++i) {
    const Strand& strand = strands_[members_[i]];
    const FunctionId frame = strand.frames[range.depth];
    Stamped& known = group_by_key_[keys_[frame]];
    if (known.round != round_) {
      known = {round_, static_cast<std::uint32_t>(groups_.size())};
      groups_.push_back({.frame = frame, .joins = known.group});
      if (has_inlined_) has_inlined |= (*functions_)[frame].is_inlined;
    }
    Group& group = groups_[known.group];
    ++group.strands;
    group.period += strand.period;
    group.samples += strand.samples;
    group_of_.push_back(known.group);
  }
  return has_inlined ? join_inlined() : groups_.size();
}

// As in perf: an inlined call and a function of the same name are one frame, but two functions of that name
// are two; the inlined call joins the first of them.
std::size_t CallTree::join_inlined() {
  std::size_t left = groups_.size();
  for (std::uint32_t i = 0; i < groups_.size(); ++i) {
    const Function& function = (*functions_)[groups_[i].frame];
    if (function.name().empty()) continue;
    Stamped& known = group_by_name_[function.name_id];
    if (known.round != round_) {
      known = {round_, i};
      continue;
    }
    Group& first = groups_[known.group];
    if (!function.is_inlined && !(*functions_)[first.frame].is_inlined) continue;
    groups_[i].joins = known.group;
    first.strands += groups_[i].strands;
    first.period += groups_[i].period;
    first.samples += groups_[i].samples;
    --left;
  }
  return left;
}

bool CallTree::is_before(std::uint32_t a, std::uint32_t b) const {
  const Group &x = groups_[a], &y = groups_[b];
  if (limit_.share != CallTreeLimit::Share::OfItself && x.period != y.period) return x.period > y.period;
  const Function &one = (*functions_)[x.frame], &other = (*functions_)[y.frame];
  return order_ == SiblingOrder::AsPerf ? is_higher(one, other, key_) : order_of(one, other, key_) < 0;
}

std::vector<std::uint32_t> CallTree::heavy_groups(const CallNode& node) const {
  const std::uint64_t least = limit_.least(node.period - node.own_period);
  std::vector<std::uint32_t> chosen;
  for (std::uint32_t i = 0; i < groups_.size(); ++i) {
    if (groups_[i].joins == i && groups_[i].period >= least) chosen.push_back(i);
  }
  std::ranges::stable_sort(chosen, [this](std::uint32_t a, std::uint32_t b) { return is_before(a, b); });
  return chosen;
}

// Sorts members by child, keeping their order; removes members of no child.
void CallTree::add_children(std::size_t index, const Range& range, std::span<const std::uint32_t> chosen) {
  nodes_[index].first_child = static_cast<std::uint32_t>(nodes_.size());
  nodes_[index].children = static_cast<std::uint32_t>(chosen.size());
  if (chosen.empty()) return;
  constexpr std::size_t kLeftOut = ~std::size_t{0};
  for (Group& group : groups_) group.at = kLeftOut;
  std::size_t at = range.begin;
  for (const std::uint32_t number : chosen) {
    Group& group = groups_[number];
    nodes_.push_back({.frames = {},
                      .parent = static_cast<std::uint32_t>(index),
                      .period = group.period,
                      .samples = group.samples});
    ranges_.push_back({at, at + group.strands, range.depth});
    group.at = at;
    at += group.strands;
  }
  unsorted_.assign(members_.begin() + static_cast<std::ptrdiff_t>(range.begin),
                   members_.begin() + static_cast<std::ptrdiff_t>(range.end));
  for (std::size_t i = 0; i < unsorted_.size(); ++i) {
    Group& group = groups_[groups_[group_of_[i]].joins];
    if (group.at != kLeftOut) members_[group.at++] = unsorted_[i];
  }
}

}  // namespace tacho::report
