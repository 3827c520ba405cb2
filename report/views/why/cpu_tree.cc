#include "report/views/why/cpu_tree.h"

#include <algorithm>
#include <array>
#include <span>

#include "format/records/perf_abi.h"

namespace tacho::report {
namespace {

// Children with a quarter of their parent's time each, and most of it together, are what the parent does.
constexpr double kMost = 0.7, kLargeChild = 0.25;
// Children with less of the time are left out.
constexpr double kLeast = 0.05;
constexpr double kMostlyKernel = 0.5, kOftenYields = 0.2;
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

}  // namespace

void CpuTrees::add(const WallRow& row, std::uint64_t samples) {
  if (row.stack == nullptr || row.stack->frames.empty()) {
    rest_ += row.time;
    return;
  }
  const auto frames = stacks_->frames(*row.stack);
  Node* node = &roots_[times_->threads()[row.thread].pid];
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
  node->threads[row.thread] += row.time;
  if (in_kernel && has_user) {
    node->in_kernel += row.time;
    node->calls[call_of(frames)] += row.time;
  } else if (!in_kernel) {
    const Location& location = session_->resolver().location(row.stack->frames.front());
    node->addresses[location.ip.value] += row.time;
    node->location = &location;
  }
}

double CpuTrees::add_up(Node& node) {
  node.total = node.self;
  for (auto& [name, child] : node.children) node.total += add_up(child);
  return node.total;
}

void CpuTrees::sum(const Node& node, Sums& sums) {
  sums.in_kernel += node.in_kernel;
  sums.samples += node.samples;
  for (const auto& [call, time] : node.calls) sums.calls[call] += time;
  for (const auto& [thread, time] : node.threads) sums.threads[thread] += time;
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
  if (mapping == nullptr || start < mapping->start + kLongest) return false;
  return has_lock_instruction(
      session_->resolver().code(*node.location, start - kLongest, last - start + kLongest));
}

CpuPart CpuTrees::part_of(Node& node) {
  CpuPart made{.time = node.total, .function = std::string(node.name)};
  Sums sums;
  sum(node, sums);
  made.threads = std::move(sums.threads);
  made.samples = sums.samples;
  for (const Node* at = &node; at != nullptr && at->parent != nullptr; at = at->parent)
    if (at == &node || !at->is_library) made.stack.emplace_back(at->name);
  std::ranges::reverse(made.stack);
  std::vector<std::pair<std::string, double>> callees;
  for (const auto& [name, child] : node.children)
    if (child.total >= kLeast * node.total) callees.emplace_back(name, child.total);
  std::ranges::stable_sort(callees, std::greater(), &std::pair<std::string, double>::second);
  made.callees = std::move(callees);
  const auto yield = sums.calls.find("sched_yield");
  if (yield != sums.calls.end() && yield->second >= kOftenYields * node.total) {
    made.call = yield->first;
    made.cause = Cause::Spin;
  } else if (sums.in_kernel >= kMostlyKernel * node.total) {
    const auto call = std::ranges::max_element(
        sums.calls, [](const auto& a, const auto& b) { return a.second < b.second; });
    made.call = call->first;
    if (!made.call.empty()) made.cause = Cause::Syscall;
  } else if (spins(node)) {
    made.cause = Cause::Spin;
  }
  return made;
}

// Goes down as long as few functions have most of the time; one that does more by itself, or calls many small
// ones, is a part with all that it calls.
void CpuTrees::take(Node& node, double all, std::vector<CpuPart>& parts) {
  double in_large = 0;
  for (const auto& [name, child] : node.children)
    if (child.total >= kLargeChild * node.total) in_large += child.total;
  const bool only_starts = node.parent == nullptr || node.is_library || node.name == "main";
  if (in_large < kMost * node.total && (!only_starts || node.children.empty())) {
    parts.push_back(part_of(node));
    return;
  }
  rest_ += node.self;
  for (auto& [name, child] : node.children)
    if (child.total >= kLeast * all)
      take(child, all, parts);
    else
      rest_ += child.total;
}

std::vector<CpuPart> CpuTrees::take_parts() {
  std::vector<CpuPart> parts;
  double all = 0;
  for (auto& [pid, root] : roots_) all += add_up(root);
  for (auto& [pid, root] : roots_) take(root, all, parts);
  return parts;
}

}  // namespace tacho::report
