#include "report/views/doctor/capture_facts.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <map>
#include <tuple>
#include <unordered_set>
#include <variant>

#include "format/container/content_classes.h"
#include "format/extensions/attachment.h"
#include "format/records/perf_abi.h"
#include "format/records/record.h"
#include "report/census.h"
#include "symbolize/files/attached_text.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

constexpr std::uint32_t kUsualDepth = 127;  // frames of a call chain where the event does not say

std::string_view clock_name(std::int32_t clock) {
  constexpr std::pair<std::int32_t, std::string_view> kNames[] = {{CLOCK_REALTIME, "realtime"},
                                                                  {CLOCK_MONOTONIC, "monotonic"},
                                                                  {CLOCK_MONOTONIC_RAW, "monotonic_raw"},
                                                                  {CLOCK_BOOTTIME, "boottime"},
                                                                  {CLOCK_TAI, "tai"}};
  const auto row = std::ranges::find(kNames, clock, &std::pair<std::int32_t, std::string_view>::first);
  return row == std::end(kNames) ? "another" : row->second;
}

class Examiner : public Sink {
 public:
  explicit Examiner(Session& session) : session_(session) {}

  Flow on_sample(const ResolvedSample& sample) override;
  Flow on_other(const OtherEvent& event) override;
  CaptureFacts finish();

 private:
  void name_places();
  void add_sensitive();
  void add(std::string_view name, std::uint64_t count, std::string what);

  Census census_;
  Session& session_;
  CaptureFacts facts_;
  PlaceHits hits_;
  std::unordered_set<std::string> paths_;
};

Sink::Flow Examiner::on_sample(const ResolvedSample& sample) {
  const format::Sample& raw = *sample.raw;
  const format::EventAttr& attr = (*sample.events)[sample.record_event].attr;
  ++facts_.samples;
  hits_.add(sample);
  const std::size_t deepest = attr.sample_max_stack != 0 ? attr.sample_max_stack : kUsualDepth;
  if (attr.samples(abi::kSampleCallchain)) {
    std::size_t frames = 0;
    for (std::size_t i = 0; i < raw.callchain.size(); ++i)
      frames += raw.callchain[i] < abi::kContextMax ? 1 : 0;
    if (frames >= deepest) ++facts_.cut_chains;
  }
  if (!raw.user_stack.empty()) {
    ++facts_.copied_stacks;
    constexpr std::size_t kRoundedBy = 8;
    if (raw.user_stack.size() + kRoundedBy >= attr.sample_stack_user) ++facts_.cut_copies;
  }
  census_.see_sample(raw, attr);
  return Flow::GoOn;
}

Sink::Flow Examiner::on_other(const OtherEvent& event) {
  const format::Record& record = *event.record;
  census_.see_other(record);
  if (const auto* throttle = std::get_if<format::ThrottleRecord>(&record))
    facts_.throttled += !throttle->is_unthrottle;
  if (std::holds_alternative<format::NamespacesRecord>(record)) ++facts_.namespaces;
  if (std::holds_alternative<format::CgroupRecord>(record)) ++facts_.cgroups;
  if (const auto* mapping = std::get_if<format::MmapRecord>(&record);
      mapping != nullptr && mapping->filename.starts_with('/') && paths_.emplace(mapping->filename).second)
    facts_.deleted_modules += mapping->filename.ends_with(" (deleted)") ? 1 : 0;
  return Flow::GoOn;
}

std::string reason_of(const symbolize::PlaceFacts& place) {
  using symbolize::ModuleKind;
  if (place.module == nullptr) return "nothing was mapped there";
  const symbolize::Source* const source = place.source;
  // Its names are there, from the pack or from a copy of the file.
  if (source != nullptr && (source->packed != nullptr || source->table != nullptr))
    return "no symbol covers the address";
  switch (place.module->kind) {
    case ModuleKind::Anonymous:
      return "code made at run time that no perf map in the capture names";
    case ModuleKind::User:
    case ModuleKind::Vdso:
      return "its names are not in the capture; run tacho pack on the host";
    default:
      break;
  }
  if (source != nullptr && source->table == nullptr)
    return source->lack.empty() ? "it has no symbols" : source->lack;
  return "no symbol covers the address";
}

void Examiner::name_places() {
  std::map<std::tuple<const symbolize::Module*, std::string>, LackingModule> lacking;
  Resolver& resolver = session_.resolver();
  facts_.names = hits_.count_named(resolver, [&](const Location& location, std::uint64_t frames, bool is_named) {
    const auto place = resolver.facts(location);
    const bool is_guess = place.source != nullptr && place.source->is_guess;
    if (is_guess || (place.module != nullptr && place.module->is_unsure())) facts_.unsure_frames += frames;
    if (is_named) return;
    std::string reason = reason_of(place);
    LackingModule& module = lacking[{place.module, reason}];
    if (place.module != nullptr) {
      module.path = place.module->path;
      if (!place.module->build_id.empty()) module.build_id = place.module->build_id.hex();
    }
    module.reason = std::move(reason);
    module.frames += frames;
    ++module.addresses;
  });
  for (auto& [key, module] : lacking) facts_.lacking.push_back(std::move(module));
  std::ranges::sort(facts_.lacking, [](const LackingModule& a, const LackingModule& b) {
    return std::tie(b.frames, a.path, a.reason) < std::tie(a.frames, b.path, b.reason);
  });
}

void Examiner::add(std::string_view name, std::uint64_t count, std::string what) {
  if (count == 0) return;
  const auto& content = session_.features().environment.content;
  const auto told = std::ranges::find(content, name, &format::ContentClass::name);
  const bool is_changed = told != content.end() && told->state != format::kAsRecorded;
  facts_.sensitive.push_back({name, count, std::move(what), is_changed ? told->state : std::string()});
}

// As tacho redact --dry-run counts them.
void Examiner::add_sensitive() {
  const format::Features& features = session_.features();
  census_.see_head(session_.events(), features);
  const auto counts = census_.counts();
  for (const format::ContentRow& row : format::kContents) {
    const Census::Count& count = counts[static_cast<std::size_t>(row.content)];
    add(row.name, count.number, std::string(count.unit));
  }
  // What a processor traced is no sample; how much it is, is not counted here.
  const auto by_head = format::content_by_head(session_.events(), features);
  const auto traces = format::name_of(format::Content::Traces);
  if (std::ranges::find(by_head, traces, &format::ContentClass::name) != by_head.end() &&
      std::ranges::find(facts_.sensitive, traces, &SensitiveClass::name) == facts_.sensitive.end())
    add(traces, 1, "set of them, not counted here");
}

CaptureFacts Examiner::finish() {
  name_places();
  add_sensitive();
  facts_.lost = all_lost_samples(session_);
  for (const format::Attachment& attachment : session_.features().attachments) {
    if (attachment.name.starts_with(symbolize::kAttachedFile)) ++facts_.file_copies;
    if (attachment.name.starts_with(symbolize::kAttachedSource)) ++facts_.source_files;
  }
  facts_.has_wall_clock = session_.features().environment.clock_data.has_value();
  const format::EventSet& events = session_.events();
  const bool has_clock = !events.empty() && events[0].attr.has(abi::kUseClockid);
  facts_.clock =
      has_clock ? clock_name(events[0].attr.clockid) : "perf's own, the time since the host started";
  if (has_clock && events[0].attr.clockid == CLOCK_REALTIME) facts_.has_wall_clock = true;
  return std::move(facts_);
}

}  // namespace

CaptureFacts examine(Session& session) {
  Examiner examiner(session);
  session.run(examiner);
  return examiner.finish();
}

}  // namespace tacho::report
