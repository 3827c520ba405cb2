#include "report/views/why/cpu_tree.h"

#include <algorithm>
#include <array>
#include <span>

#include "format/records/perf_abi.h"
#include "report/views/why/thread_spans.h"

namespace tacho::report {
namespace {

// Children with a quarter of their parent's time each, and most of it together, are what the parent does.
constexpr double kMost = 0.7, kLargeChild = 0.25;
// Children with less of the time are left out.
constexpr double kLeast = 0.05;
constexpr double kMostly = 0.5, kOftenYields = 0.2;
// The samples of a loop that waits for a lock are within so many bytes of code.
constexpr std::uint64_t kLoopBytes = 64;
constexpr double kInLoop = 0.9;

bool has_bytes(format::Bytes code, std::span<const unsigned char> bytes) {
  const auto is_same = [](std::byte a, unsigned char b) { return std::to_integer<unsigned char>(a) == b; };
  return std::search(code.begin(), code.end(), bytes.begin(), bytes.end(), is_same) != code.end();
}

// Instructions of such loops, as bytes of x86: pause; lock cmpxchg of 4 and 8 bytes.
bool has_lock_instruction(format::Bytes code) {
  constexpr std::array<unsigned char, 2> kPause{0xf3, 0x90};
  constexpr std::array<unsigned char, 3> kCompare{0xf0, 0x0f, 0xb1};
  constexpr std::array<unsigned char, 4> kCompareWide{0xf0, 0x48, 0x0f, 0xb1};
  return has_bytes(code, kPause) || has_bytes(code, kCompare) || has_bytes(code, kCompareWide);
}

// Processes have their mappings at different addresses.
std::uint64_t place_of(const Location& location) {
  return location.ip.value - (location.mapping == nullptr ? 0 : location.mapping->start);
}

}  // namespace

// A process has the name of its first thread.
CpuTrees::CpuTrees(Session& session, NamedChains& stacks, const WallTimes& times)
    : session_(&session), stacks_(&stacks), times_(&times) {
  for (const WallThread& thread : times.threads()) {
    if (thread.pid == thread.tid)
      programs_[thread.pid] = family_of(thread.comm);
    else
      programs_.try_emplace(thread.pid, family_of(thread.comm));
  }
}

void CpuTrees::add_row(std::uint32_t index, std::uint64_t samples) {
  const WallRow& row = times_->rows()[index];
  if (row.stack == nullptr || row.stack->frames.empty()) {
    rest_ += row.time;
    return;
  }
  const auto frames = stacks_->frames(*row.stack);
  Node* node = &roots_[programs_.at(times_->threads()[row.thread].pid)];
  const bool in_kernel = !frames.empty() && frames.front().is_kernel;
  const bool has_user = std::ranges::any_of(frames, [](const NamedFrame& one) { return !one.is_kernel; });
  // Leaf first; a system call belongs to the function of the program that makes it.
  std::size_t first = 0;
  if (has_user) {
    while (frames[first].is_kernel) ++first;
    const bool has_own = std::any_of(frames.begin() + static_cast<std::ptrdiff_t>(first), frames.end(),
                                     [](const NamedFrame& one) { return !one.is_library; });
    while (in_kernel && has_own && frames[first].is_library) ++first;
  }
  for (std::size_t i = frames.size(); i-- > first;) {
    Node& child = node->children[frames[i].name];
    child.name = frames[i].name;
    child.parent = node;
    child.is_library = frames[i].is_library;
    node = &child;
  }
  node->self += row.time;
  node->samples += samples;
  node->rows.push_back(index);
  node->threads[row.thread] += row.time;
  if (in_kernel && has_user) {
    node->in_kernel += row.time;
    node->calls[call_of(frames)] += row.time;
  } else if (!in_kernel) {
    const Location& location = session_->resolver().location(row.stack->frames.front());
    node->addresses[place_of(location)] += row.time;
    node->location = &location;
  }
}

double CpuTrees::add_up(Node& node) {
  node.total = node.self;
  node.has_own = node.parent != nullptr && !node.is_library;
  for (auto& [name, child] : node.children) {
    node.total += add_up(child);
    node.has_own = node.has_own || child.has_own;
  }
  return node.total;
}

void CpuTrees::sum(const Node& node, Sums& sums) {
  sums.in_kernel += node.in_kernel;
  if (node.name == "pthread_spin_lock" || node.name == "__pthread_spin_lock") sums.in_spin_locks += node.self;
  sums.samples += node.samples;
  for (const auto& [call, time] : node.calls) sums.calls[call] += time;
  for (const auto& [thread, time] : node.threads) sums.threads[thread] += time;
  sums.rows.insert(sums.rows.end(), node.rows.begin(), node.rows.end());
  for (const auto& [name, child] : node.children) sum(child, sums);
}

// Whether the function's own samples are in a small loop with an instruction of locks.
bool CpuTrees::spins(const Node& node) {
  double all = 0, most = 0;
  for (const auto& [address, time] : node.addresses) all += time;
  constexpr std::uint64_t kLongest = 5;  // bytes of such an instruction: samples show the one after it
  std::uint64_t start = 0, last = 0;
  for (const auto& [from, ignored] : node.addresses) {
    double here = 0;
    std::uint64_t reached = from;
    for (auto at = node.addresses.find(from); at != node.addresses.end() && at->first < from + kLoopBytes;
         ++at)
      here += at->second, reached = at->first;
    if (here > most) start = from, last = reached;
    most = std::max(most, here);
  }
  if (node.location == nullptr || most < kInLoop * node.total || all <= 0) return false;
  const symbolize::Mapping* const mapping = node.location->mapping;
  if (mapping == nullptr || start < kLongest) return false;
  return has_lock_instruction(
      session_->resolver().code(*node.location, mapping->start + start - kLongest, last - start + kLongest));
}

// `nodes`: of one function.
CpuPart CpuTrees::part_of(const std::vector<const Node*>& nodes) {
  const Node& most = **std::ranges::max_element(nodes, {}, &Node::total);
  CpuPart made{.function = std::string(most.name)};
  Sums sums;
  std::map<std::string_view, double> called;
  for (const Node* const node : nodes) {
    made.time += node->total;
    sum(*node, sums);
    for (const auto& [name, child] : node->children) called[name] += child.total;
  }
  made.threads = std::move(sums.threads);
  made.rows = std::move(sums.rows);
  made.samples = sums.samples;
  for (const Node* at = &most; at != nullptr && at->parent != nullptr; at = at->parent)
    if (at == &most || !at->is_library) made.stack.emplace_back(at->name);
  std::ranges::reverse(made.stack);
  std::vector<std::pair<std::string, double>> callees;
  for (const auto& [name, time] : called)
    if (time >= kLeast * made.time) callees.emplace_back(name, time);
  std::ranges::stable_sort(callees, std::greater(), &std::pair<std::string, double>::second);
  made.callees = std::move(callees);
  const auto yield = sums.calls.find("sched_yield");
  if (yield != sums.calls.end() && yield->second >= kOftenYields * made.time) {
    made.call = yield->first;
    made.cause = Cause::Spin;
  } else if (sums.in_kernel >= kMostly * made.time) {
    const auto call = std::ranges::max_element(
        sums.calls, [](const auto& a, const auto& b) { return a.second < b.second; });
    made.call = call->first;
    if (!made.call.empty()) made.cause = Cause::Syscall;
  } else if (sums.in_spin_locks >= kMostly * made.time || spins(most)) {
    made.cause = Cause::Spin;
  }
  return made;
}

// Goes down as long as few functions have most of the time; one that does more by itself, or calls many small
// ones, is a part with all that it calls. What functions of the program have libraries do is theirs; an
// interpreter does it itself if the functions that it runs cannot be seen.
bool CpuTrees::choose(Node& node, double all) {
  const bool only_starts = node.parent == nullptr || node.name == "main" || (node.is_library && node.has_own);
  double in_large = 0;
  for (const auto& [name, child] : node.children)
    if (child.total >= kLargeChild * node.total && (only_starts || node.is_library || child.has_own))
      in_large += child.total;
  if (in_large < kMost * node.total && (!only_starts || node.children.empty())) {
    node.is_chosen = true;
    return true;
  }
  for (auto& [name, child] : node.children)
    if (child.total >= kLeast * all && choose(child, all)) node.has_chosen = true;
  return node.has_chosen;
}

// Of chosen functions.
void CpuTrees::add_names(const Node& node, std::set<std::string_view>& names) {
  if (node.is_chosen && node.name != "[unknown]") names.insert(node.name);
  if (!node.has_chosen) return;
  for (const auto& [name, child] : node.children) add_names(child, names);
}

// All nodes of the functions with these names: chosen ones, and those of other callers.
void CpuTrees::gather(const Node& node, const std::set<std::string_view>& names,
                      std::vector<const Node*>& nodes) {
  if (node.is_chosen || (!node.has_chosen && names.contains(node.name))) {
    nodes.push_back(&node);
    return;
  }
  for (const auto& [name, child] : node.children) gather(child, names, nodes);
}

std::vector<CpuPart> CpuTrees::take_parts() {
  std::vector<CpuPart> parts;
  double all = 0;
  for (auto& [program, root] : roots_) all += add_up(root);
  rest_ += all;
  for (auto& [program, root] : roots_) {
    if (!choose(root, all)) continue;
    std::set<std::string_view> names;
    add_names(root, names);
    std::vector<const Node*> nodes;
    gather(root, names, nodes);
    std::map<std::string_view, std::vector<const Node*>> by_name;
    for (const Node* const node : nodes) by_name[node->name].push_back(node);
    for (const auto& [name, of_function] : by_name) {
      parts.push_back(part_of(of_function));
      rest_ -= parts.back().time;
    }
  }
  return parts;
}

}  // namespace tacho::report
