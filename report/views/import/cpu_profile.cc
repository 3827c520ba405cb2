// CPU profiles of V8, as Chrome and Node.js write them: a tree of calls, the node of each sample, and the
// microseconds between samples. Alone (.cpuprofile), or in pieces within a trace of Chrome.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/base/digest.h"
#include "format/base/seeded_hash.h"
#include "report/views/import/import_formats.h"
#include "report/views/import/imported_capture.h"
#include "report/views/import/json_walk.h"

namespace tacho::report {
namespace {

enum CpuProfilePlace : int {
  kNodeList = 1,
  kOneNode,
  kNodeId,
  kNodeParent,
  kChildList,
  kChildId,
  kCallFrame,
  kFunctionName,
  kScriptUrl,
  kFunctionLine,
  kNodeOfSampleList,
  kNodeOfSample,
  kDeltaList,
  kOneDelta,
  kStartTime,
  kEndTime,
  kTraceEvents,
  kTraceEvent,
  kTraceName,
  kTracePid,
  kTraceTid,
  kTraceId,
  kTraceArgs,
  kArgsName,
  kArgsData,
  kCpuProfileData,
};

constexpr JsonStep kCpuProfileSteps[] = {
    {kNodeOfSampleList, "", kNodeOfSample},
    {kDeltaList, "", kOneDelta},
    {kNodeList, "", kOneNode},
    {kOneNode, "id", kNodeId},
    {kOneNode, "parent", kNodeParent},
    {kOneNode, "children", kChildList},
    {kChildList, "", kChildId},
    {kOneNode, "callFrame", kCallFrame},
    {kCallFrame, "functionName", kFunctionName},
    {kCallFrame, "url", kScriptUrl},
    {kCallFrame, "lineNumber", kFunctionLine},
    {0, "nodes", kNodeList},
    {0, "samples", kNodeOfSampleList},
    {0, "timeDeltas", kDeltaList},
    {0, "startTime", kStartTime},
    {0, "endTime", kEndTime},
    {0, "traceEvents", kTraceEvents},
    {0, "", kTraceEvent},
    {kTraceEvents, "", kTraceEvent},
    {kTraceEvent, "name", kTraceName},
    {kTraceEvent, "pid", kTracePid},
    {kTraceEvent, "tid", kTraceTid},
    {kTraceEvent, "id", kTraceId},
    {kTraceEvent, "args", kTraceArgs},
    {kTraceArgs, "name", kArgsName},
    {kTraceArgs, "data", kArgsData},
    {kArgsData, "cpuProfile", kCpuProfileData},
    {kArgsData, "timeDeltas", kDeltaList},
    {kArgsData, "startTime", kStartTime},
    {kArgsData, "endTime", kEndTime},
    {kCpuProfileData, "nodes", kNodeList},
    {kCpuProfileData, "samples", kNodeOfSampleList},
    {kCpuProfileData, "timeDeltas", kDeltaList},
    {kCpuProfileData, "startTime", kStartTime},
    {kCpuProfileData, "endTime", kEndTime},
};

constexpr std::uint64_t kNoNode = ~std::uint64_t{0};
constexpr std::int64_t kLastMicrosecond = std::int64_t{1} << 52;
constexpr std::uint64_t kNanoseconds = 1000;  // of a microsecond

struct ProfiledCall {
  std::uint64_t id = kNoNode, parent = kNoNode;
  std::string function, url;
  std::uint32_t line = 0;  // from 1; 0: unknown
};

// A profile, or a piece of one.
struct CpuProfile {
  std::optional<std::uint32_t> pid, tid;
  std::vector<ProfiledCall> nodes;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> children;  // parent, child
  std::vector<std::uint64_t> samples;                             // nodes
  std::vector<std::int64_t> deltas;                               // us since the sample before, or the start
  std::int64_t start = 0, end = 0;                                // us; 0: not said

  void add_piece(CpuProfile piece) {
    if (!tid) pid = piece.pid, tid = piece.tid;
    std::ranges::move(piece.nodes, std::back_inserter(nodes));
    std::ranges::copy(piece.children, std::back_inserter(children));
    std::ranges::copy(piece.samples, std::back_inserter(samples));
    std::ranges::copy(piece.deltas, std::back_inserter(deltas));
    if (piece.start != 0) start = piece.start;
    if (piece.end != 0) end = piece.end;
  }
};

std::int64_t microseconds_in(const JsonNumber& number) {
  constexpr auto kMost = static_cast<double>(kLastMicrosecond);
  return std::isfinite(number.real)
             ? static_cast<std::int64_t>(std::llround(std::clamp(number.real, -kMost, kMost)))
             : 0;
}

class CpuProfileImport {
 public:
  CpuProfileImport(const ImportTask& task, format::Diagnostics& diagnostics)
      : task_(task), capture_(task.source, format::digest(task.bytes), diagnostics) {}

  Result<> run(const CopyOutput& output) {
    const JsonTaker taker{.number = [this](int place, const JsonNumber& value) { take_number(place, value); },
                          .text = [this](int place, std::string_view text) { take_text(place, text); },
                          .begin = [this](int place) { begin_of(place); },
                          .end = [this](int place) { end_of(place); }};
    if (auto walked = walk_json(task_.bytes, kCpuProfileSteps, taker); !walked) return walked;
    if (!piece_.nodes.empty()) profiles_[{}].add_piece(std::move(piece_));
    ImportedLayout layout{.events = {{.name = "time", .unit = "ns"}}, .labels = {}, .has_times = true};
    for (auto& [key, profile] : profiles_) {
      if (profile.pid) layout.pids.insert(*profile.pid);
      if (profile.tid) layout.pids.insert(*profile.tid);
      for (const ProfiledCall& node : profile.nodes) frame_of(node);
    }
    if (by_function_.empty()) return Error{"the document has no nodes of a CPU profile"};
    if (auto begun = capture_.begin_samples(output, std::move(layout)); !begun) return begun;
    for (const auto& [key, profile] : profiles_)
      if (auto added = add_profile(profile); !added) return added;
    return capture_.finish(output);
  }

 private:
  using NodeIndices = std::unordered_map<std::uint64_t, std::size_t, format::SeededHash>;

  ProfiledCall& node() { return piece_.nodes.back(); }
  void begin_of(int place) {
    if (place == kOneNode) piece_.nodes.emplace_back();
    if (place != kTraceEvent) return;
    piece_ = {};
    trace_name_.clear();
    trace_id_.clear();
    args_name_.clear();
  }
  void end_of(int place) {
    if (place != kTraceEvent) return;
    if (trace_name_ == "thread_name" && piece_.pid && piece_.tid)
      thread_names_[{*piece_.pid, *piece_.tid}] = std::move(args_name_);
    const bool is_piece =
        trace_name_ == "Profile" || trace_name_ == "ProfileChunk" || trace_name_ == "CpuProfile";
    if (is_piece) profiles_[{piece_.pid.value_or(0), trace_id_}].add_piece(std::move(piece_));
    piece_ = {};
  }
  void take_text(int place, std::string_view text) {
    constexpr std::string_view kFileUrl = "file://";
    if (place == kFunctionName) node().function = text;
    if (place == kScriptUrl) node().url = text.substr(text.starts_with(kFileUrl) ? kFileUrl.size() : 0);
    if (place == kTraceName) trace_name_ = text;
    if (place == kTraceId) trace_id_ = text;
    if (place == kArgsName) args_name_ = text;
  }
  void take_number(int place, const JsonNumber& value) {
    constexpr std::uint64_t kMostId = kNoNode - 1, kMost32 = ~std::uint32_t{0};
    if (place == kNodeOfSample) piece_.samples.push_back(value.clamped(kMostId));
    if (place == kOneDelta) piece_.deltas.push_back(microseconds_in(value));
    if (place == kNodeId) node().id = value.clamped(kMostId);
    if (place == kNodeParent) node().parent = value.clamped(kMostId);
    if (place == kChildId) piece_.children.emplace_back(node().id, value.clamped(kMostId));
    if (place == kFunctionLine && value.real >= 0)
      node().line = static_cast<std::uint32_t>(value.clamped(kMost32 - 1) + 1);
    if (place == kStartTime) piece_.start = microseconds_in(value);
    if (place == kEndTime) piece_.end = microseconds_in(value);
    if (place == kTracePid) piece_.pid = static_cast<std::uint32_t>(value.clamped(kMost32));
    if (place == kTraceTid) piece_.tid = static_cast<std::uint32_t>(value.clamped(kMost32));
    if (place == kTraceId) trace_id_ = std::to_string(value.clamped(kMostId));
  }

  ImportedFrameId frame_of(const ProfiledCall& node) {
    const std::string key = node.function + '\0' + node.url + '\0' + std::to_string(node.line);
    const auto [known, is_new] = by_function_.try_emplace(key);
    if (!is_new) return known->second;
    const ImportedLine line{
        .function = node.function.empty() ? std::string_view("(anonymous)") : node.function,
        .file = node.url,
        .line = node.line};
    return known->second = capture_.add_frame(capture_.named_module(node.url), {&line, 1});
  }

  // The index of each node's parent, or kNoNode. A node without one is the root; its name is no function.
  static std::vector<std::size_t> parents_of(const CpuProfile& profile, const NodeIndices& indices) {
    std::vector<std::size_t> parents(profile.nodes.size(), kNoNode);
    const auto set = [&](std::size_t child, std::uint64_t parent_id) {
      if (const auto parent = indices.find(parent_id); parent != indices.end())
        parents[child] = parent->second;
    };
    for (std::size_t i = 0; i < profile.nodes.size(); ++i) set(i, profile.nodes[i].parent);
    for (const auto& [parent, child] : profile.children)
      if (const auto known = indices.find(child); known != indices.end()) set(known->second, parent);
    return parents;
  }

  Result<> add_profile(const CpuProfile& profile) {
    if (profile.samples.size() != profile.deltas.size())
      return Error{std::to_string(profile.samples.size()) + " samples and " +
                   std::to_string(profile.deltas.size()) + " timeDeltas: there must be one for each"};
    NodeIndices indices;
    for (std::size_t i = 0; i < profile.nodes.size(); ++i) indices.try_emplace(profile.nodes[i].id, i);
    const std::vector<std::size_t> parents = parents_of(profile, indices);
    std::int64_t at = profile.start;
    // Until when samples are counted: V8 notes some samples late, after ones that were taken later.
    std::int64_t reached = at;
    for (std::size_t i = 0; i < profile.samples.size(); ++i) {
      at = std::clamp(at + profile.deltas[i], std::int64_t{0}, kLastMicrosecond);
      const auto leaf = indices.find(profile.samples[i]);
      if (leaf == indices.end())
        return Error{"sample " + std::to_string(i) + " has node " + std::to_string(profile.samples[i]) +
                     ", which is not listed"};
      const bool is_last = i + 1 == profile.samples.size();
      const std::int64_t end = is_last ? profile.end : at + profile.deltas[i + 1];
      reached = std::max(reached, at);
      const std::int64_t duration = std::clamp(end, reached, std::max(reached, kLastMicrosecond)) - reached;
      if (auto added = add_sample(profile, parents, leaf->second, reached, duration); !added) return added;
    }
    return Done{};
  }

  Result<> add_sample(const CpuProfile& profile, const std::vector<std::size_t>& parents, std::size_t leaf,
                      std::int64_t at, std::int64_t duration) {
    if (duration <= 0) return Done{};
    stack_.clear();
    for (std::size_t node = leaf; node != kNoNode; node = parents[node]) {
      if (stack_.size() > parents.size()) return Error{"the nodes are no tree: one is above itself"};
      const ProfiledCall& call = profile.nodes[node];
      const bool is_root = parents[node] == kNoNode && call.function == "(root)";
      if (!is_root) stack_.push_back(frame_of(call));
    }
    const auto name =
        profile.pid && profile.tid ? thread_names_.find({*profile.pid, *profile.tid}) : thread_names_.end();
    const std::string_view given = name == thread_names_.end() ? std::string_view() : name->second;
    return capture_.add_sample({.event = 0,
                                .weight = static_cast<std::uint64_t>(duration) * kNanoseconds,
                                .thread = {profile.pid, profile.tid, task_.comm ? *task_.comm : given},
                                .frames = stack_,
                                .time = static_cast<std::uint64_t>(at) * kNanoseconds});
  }

  const ImportTask& task_;
  ImportedCapture capture_;
  CpuProfile piece_;  // of the document, or of the event of a trace
  std::string trace_name_, trace_id_, args_name_;
  std::map<std::pair<std::uint32_t, std::string>, CpuProfile> profiles_;  // by process and id
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::string> thread_names_;
  std::unordered_map<std::string, ImportedFrameId, format::SeededTextHash> by_function_;
  std::vector<ImportedFrameId> stack_;  // leaf first
};

}  // namespace

Result<> import_cpu_profile(const ImportTask& task, const CopyOutput& output,
                            format::Diagnostics& diagnostics) {
  return CpuProfileImport(task, diagnostics).run(output);
}

}  // namespace tacho::report
