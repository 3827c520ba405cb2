#include "report/query/root_frames.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "format/records/perf_abi.h"
#include "report/samples/filter.h"

namespace tacho::report {
namespace {

constexpr std::pair<std::string_view, RootKind> kRoots[] = {
    {"comm", RootKind::Comm}, {"pid", RootKind::Pid},       {"tid", RootKind::Tid},
    {"cpu", RootKind::Cpu},   {"cgroup", RootKind::Cgroup}, {"event", RootKind::Event}};

}  // namespace

Result<std::vector<RootFrame>> parse_root_frames(std::string_view option, std::string_view text) {
  std::vector<RootFrame> roots;
  if (text == "none") return roots;
  for (const std::string& name : parse_name_list(text)) {
    const auto* const known = std::ranges::find(kRoots, name, &std::pair<std::string_view, RootKind>::first);
    roots.push_back(known == std::end(kRoots) ? RootFrame{RootKind::Field, name} : RootFrame{known->second});
  }
  if (roots.empty()) return use_error(fmt::format("{0}: names nothing; {0} none leaves threads out", option));
  return roots;
}

bool contains_root(std::span<const RootFrame> roots, RootKind kind) {
  return std::ranges::find(roots, kind, &RootFrame::kind) != roots.end();
}

bool are_of_threads(std::span<const RootFrame> roots) {
  return std::ranges::all_of(roots, [](const RootFrame& root) {
    return root.kind == RootKind::Comm || root.kind == RootKind::Pid || root.kind == RootKind::Tid;
  });
}

std::string root_text(RootKind root, std::uint32_t pid, std::uint32_t tid, std::string_view comm) {
  if (root == RootKind::Pid) return fmt::format("pid {}", static_cast<std::int32_t>(pid));
  if (root == RootKind::Tid) return fmt::format("tid {}", static_cast<std::int32_t>(tid));
  return std::string(comm);
}

std::string root_text(RootKind root, const ResolvedSample& sample, std::string_view event) {
  switch (root) {
    case RootKind::Cpu:
      return sample.event().attr.samples(format::abi::kSampleCpu) ? fmt::format("cpu {}", sample.fields->cpu)
                                                                  : "cpu not recorded";
    case RootKind::Cgroup:
      return std::string(sample.cgroup());
    case RootKind::Event:
      return std::string(event);
    default:
      return root_text(root, sample.pid(), sample.tid(), sample.comm);
  }
}

}  // namespace tacho::report
