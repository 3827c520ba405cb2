// speedscope's JSON: each profile is a thread of its name, each unit an event. Samples of profiles in units
// of time have times, as they are in the order of time.
#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/base/digest.h"
#include "report/views/import/import_formats.h"
#include "report/views/import/imported_capture.h"
#include "report/views/import/json_walk.h"

namespace tacho::report {
namespace {

enum SpeedscopePlace : int {
  kSharedPlace = 1,
  kFrameList,
  kOneFrame,
  kFrameName,
  kFrameFile,
  kFrameLine,
  kProfileList,
  kOneProfile,
  kProfileType,
  kProfileName,
  kProfileUnit,
  kProfileStart,
  kSampleList,
  kOneSample,
  kSampleFrame,
  kWeightList,
  kOneWeight,
  kEventList,
  kOneEvent,
  kEventType,
  kEventTime,
  kEventFrame,
};

constexpr JsonStep kSpeedscopeSteps[] = {
    {kSampleList, "", kOneSample},
    {kOneSample, "", kSampleFrame},
    {kWeightList, "", kOneWeight},
    {kEventList, "", kOneEvent},
    {kOneEvent, "type", kEventType},
    {kOneEvent, "at", kEventTime},
    {kOneEvent, "frame", kEventFrame},
    {0, "shared", kSharedPlace},
    {kSharedPlace, "frames", kFrameList},
    {kFrameList, "", kOneFrame},
    {kOneFrame, "name", kFrameName},
    {kOneFrame, "file", kFrameFile},
    {kOneFrame, "line", kFrameLine},
    {0, "profiles", kProfileList},
    {kProfileList, "", kOneProfile},
    {kOneProfile, "type", kProfileType},
    {kOneProfile, "name", kProfileName},
    {kOneProfile, "unit", kProfileUnit},
    {kOneProfile, "startValue", kProfileStart},
    {kOneProfile, "samples", kSampleList},
    {kOneProfile, "weights", kWeightList},
    {kOneProfile, "events", kEventList},
};

struct SpeedscopeFrame {
  std::string name, file;
  std::uint32_t line = 0;
};
struct SpeedscopeEvent {
  bool is_open = false;
  double at = 0;
  std::uint32_t frame = 0;
};
struct SpeedscopeProfile {
  std::string type, name, unit;
  double start = 0;
  std::vector<std::uint32_t> frames;  // of all samples, root first
  std::vector<std::size_t> ends;      // of each sample, in `frames`
  std::vector<double> weights;
  std::vector<SpeedscopeEvent> events;
};

// A unit of the format as tacho's, with nanoseconds for each of a time.
struct SpeedscopeUnit {
  std::string_view name, unit;
  double ns = 0;  // 0: it is no time
};
constexpr SpeedscopeUnit kSpeedscopeUnits[] = {
    {"nanoseconds", "ns", 1}, {"microseconds", "ns", 1e3}, {"milliseconds", "ns", 1e6},
    {"seconds", "ns", 1e9},   {"bytes", "bytes", 0},       {"none", "", 0},
};
const SpeedscopeUnit* speedscope_unit_of(const SpeedscopeProfile& profile) {
  const auto* const known = std::ranges::find(kSpeedscopeUnits, profile.unit, &SpeedscopeUnit::name);
  return known == std::end(kSpeedscopeUnits) ? nullptr : known;
}

class SpeedscopeImport {
 public:
  SpeedscopeImport(const ImportTask& task, format::Diagnostics& diagnostics)
      : task_(task), capture_(task.source, format::digest(task.bytes), diagnostics) {}

  Result<> run(const CopyOutput& output) {
    const JsonTaker taker{.number = [this](int place, const JsonNumber& value) { take_number(place, value); },
                          .text = [this](int place, std::string_view text) { take_text(place, text); },
                          .begin = [this](int place) { begin_of(place); },
                          .end = [this](int place) { end_of(place); }};
    if (auto walked = walk_json(task_.bytes, kSpeedscopeSteps, taker); !walked) return walked;
    if (profiles_.empty()) return Error{"the document has no profiles"};
    if (auto known = check_profiles(); !known) return known;
    for (const SpeedscopeFrame& frame : frames_) {
      const ImportedLine line{.function = frame.name, .file = frame.file, .line = frame.line};
      ids_.push_back(capture_.add_frame(capture_.named_module(frame.file), {&line, 1}));
    }
    if (auto begun = capture_.begin_samples(output, layout()); !begun) return begun;
    for (const SpeedscopeProfile& profile : profiles_) {
      auto added = profile.type == "evented" ? add_evented(profile) : add_sampled(profile);
      if (!added) return std::move(added.error()).in(name_of(profile));
    }
    return capture_.finish(output);
  }

 private:
  static constexpr std::uint32_t kNoFrame = ~std::uint32_t{0};

  void begin_of(int place) {
    if (place == kOneFrame) frames_.emplace_back();
    if (place == kOneProfile) profiles_.emplace_back();
    if (place == kOneEvent) profiles_.back().events.push_back({.frame = kNoFrame});
  }
  void end_of(int place) {
    if (place == kOneSample) profiles_.back().ends.push_back(profiles_.back().frames.size());
  }
  void take_text(int place, std::string_view text) {
    if (place == kFrameName) frames_.back().name = text;
    if (place == kFrameFile) frames_.back().file = text;
    if (place == kProfileType) profiles_.back().type = text;
    if (place == kProfileName) profiles_.back().name = text;
    if (place == kProfileUnit) profiles_.back().unit = text;
    if (place == kEventType) profiles_.back().events.back().is_open = text == "O";
  }
  void take_number(int place, const JsonNumber& value) {
    const auto number = static_cast<std::uint32_t>(value.clamped(kNoFrame));
    if (place == kSampleFrame) profiles_.back().frames.push_back(number);
    if (place == kOneWeight) profiles_.back().weights.push_back(value.real);
    if (place == kFrameLine) frames_.back().line = number;
    if (place == kProfileStart) profiles_.back().start = value.real;
    if (place == kEventTime) profiles_.back().events.back().at = value.real;
    if (place == kEventFrame) profiles_.back().events.back().frame = number;
  }

  std::string name_of(const SpeedscopeProfile& profile) const {
    return "profile " + std::to_string(&profile - profiles_.data() + 1);
  }
  Result<> check_profiles() const {
    for (const SpeedscopeProfile& profile : profiles_) {
      if (profile.type != "sampled" && profile.type != "evented")
        return Error{name_of(profile) + ": its type is neither sampled nor evented"};
      if (speedscope_unit_of(profile) == nullptr)
        return Error{name_of(profile) +
                     ": its unit is none of the format's: nanoseconds, microseconds, "
                     "milliseconds, seconds, bytes, none"};
    }
    return Done{};
  }

  // The events are the units, in the order of the profiles.
  ImportedLayout layout() {
    ImportedLayout layout{.events = {}, .labels = {}, .has_times = true};
    for (const SpeedscopeProfile& profile : profiles_) {
      const SpeedscopeUnit& unit = *speedscope_unit_of(profile);
      if (unit.ns == 0) layout.has_times = false;
      const std::string name(unit.ns > 0 ? "time" : unit.unit.empty() ? "samples" : unit.unit);
      const auto known = std::ranges::find(layout.events, name, &ImportedEvent::name);
      events_.push_back(static_cast<std::size_t>(known - layout.events.begin()));
      if (known == layout.events.end())
        layout.events.push_back({.name = name, .unit = std::string(unit.unit)});
    }
    return layout;
  }

  // `at`: where the weight begins, in the profile's unit.
  Result<> add_weight(const SpeedscopeProfile& profile, std::uint64_t weight, double at) {
    if (weight == 0) return Done{};
    const auto number = static_cast<std::size_t>(&profile - profiles_.data());
    const double scale = speedscope_unit_of(profile)->ns;
    std::vector<ImportedFrameId> leaf_first(stack_.rbegin(), stack_.rend());
    return capture_.add_sample(
        {.event = events_[number],
         .weight = weight,
         .thread = {.pid = {}, .tid = {}, .comm = task_.comm ? *task_.comm : profile.name},
         .frames = leaf_first,
         .time = JsonNumber{.real = at * scale, .whole = 0, .is_whole = false}.clamped(kLastTime)});
  }
  static double scale_of(const SpeedscopeProfile& profile) {
    const double ns = speedscope_unit_of(profile)->ns;
    return ns > 0 ? ns : 1;
  }

  Result<> add_sampled(const SpeedscopeProfile& profile) {
    if (profile.weights.size() != profile.ends.size())
      return Error{std::to_string(profile.ends.size()) + " samples and " +
                   std::to_string(profile.weights.size()) + " weights: there must be one for each"};
    WholeWeights whole;
    double at = profile.start;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < profile.ends.size(); ++i) {
      stack_.clear();
      for (; begin < profile.ends[i]; ++begin)
        if (auto pushed = push(profile.frames[begin]); !pushed) return pushed;
      const std::uint64_t weight = whole.next_weight(profile.weights[i] * scale_of(profile));
      if (auto added = add_weight(profile, weight, at); !added) return added;
      at += std::max(profile.weights[i], 0.0);
    }
    return Done{};
  }

  // Each step between two events is a sample of the calls that are open.
  Result<> add_evented(const SpeedscopeProfile& profile) {
    WholeWeights whole;
    stack_.clear();
    std::vector<std::uint32_t> open;
    double at = profile.events.empty() ? 0 : profile.events.front().at;
    for (std::size_t i = 0; i < profile.events.size(); ++i) {
      const SpeedscopeEvent& event = profile.events[i];
      const auto where = [i] { return "event " + std::to_string(i); };
      if (event.at < at) return Error{where() + " is earlier than the one before"};
      const std::uint64_t weight = open.empty() ? 0 : whole.next_weight((event.at - at) * scale_of(profile));
      if (auto added = add_weight(profile, weight, at); !added) return added;
      at = event.at;
      if (event.is_open) {
        if (auto pushed = push(event.frame); !pushed) return pushed;
        open.push_back(event.frame);
      } else if (open.empty() || open.back() != event.frame) {
        return Error{where() + " closes a frame that is not the innermost open one"};
      } else {
        open.pop_back();
        stack_.pop_back();
      }
    }
    return Done{};
  }

  Result<> push(std::uint32_t frame) {
    if (frame >= ids_.size())
      return Error{"frame " + std::to_string(frame) + " is not in shared.frames, which has " +
                   std::to_string(ids_.size())};
    stack_.push_back(ids_[frame]);
    return Done{};
  }

  static constexpr std::uint64_t kLastTime = std::uint64_t{1} << 62;  // ns

  const ImportTask& task_;
  ImportedCapture capture_;
  std::vector<SpeedscopeFrame> frames_;
  std::vector<SpeedscopeProfile> profiles_;
  std::vector<ImportedFrameId> ids_;    // by frame
  std::vector<std::size_t> events_;     // by profile
  std::vector<ImportedFrameId> stack_;  // root first
};

}  // namespace

Result<> import_speedscope(const ImportTask& task, const CopyOutput& output,
                           format::Diagnostics& diagnostics) {
  return SpeedscopeImport(task, diagnostics).run(output);
}

}  // namespace tacho::report
