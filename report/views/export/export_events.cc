#include "report/views/export/export_events.h"

#include <algorithm>
#include <utility>

#include "format/records/perf_abi.h"

namespace tacho::report {
namespace {

// Waits between two switches of a thread, with their wakers if the capture has them. A sample that is a whole
// wait is an event with a payload.
std::optional<Waits> find_switches(Session& session) {
  for (const unsigned wakers : {1U, 0U}) {
    std::optional<Waits> waits(std::in_place, session, WaitOptions{.is_asked_for = true, .wakers = wakers});
    if (waits->find_events() && waits->has_switches()) return waits;
  }
  return std::nullopt;
}

// ns of one of the field's unit; 0: it is no time.
std::uint64_t ns_of_unit(std::string_view unit) {
  if (unit == "ns") return 1;
  if (unit == "us") return 1'000;
  if (unit == "ms") return 1'000'000;
  return unit == "s" ? 1'000'000'000 : 0;
}

}  // namespace

ExportEvents::ExportEvents(Session& session, ExportPlaces places)
    : session_(session),
      schemas_(session.events(), session.features()),
      periods_(schemas_),
      weights_("", session.events().size(), schemas_),
      code_(session, places),
      waits_(find_switches(session)) {}

std::uint32_t ExportEvents::thread_of(const Thread* thread, std::string_view comm) {
  const auto [known, is_new] = by_thread_.try_emplace(thread, static_cast<std::uint32_t>(threads_.size()));
  if (is_new) threads_.push_back({thread->pid, thread->tid, comm});
  threads_[known->second].comm = comm;
  return known->second;
}

Sink::Flow ExportEvents::on_sample(const ResolvedSample& sample) {
  if (waits_)
    if (const auto wait = waits_->take_sample(sample)) add_wait(*wait);
  periods_.see(sample);
  order_ = sample.order;
  const format::EventAttr& attr = sample.event().attr;
  const ExportSample added{.time = attr.samples(format::abi::kSampleTime) ? sample.fields->time : 0,
                           .weight = weights_.of(sample).value_or(0),
                           .thread = thread_of(sample.thread, sample.comm),
                           .event = static_cast<std::uint32_t>(sample.event_index),
                           .stack = code_.stack_of(sample.stack, sample.location_id),
                           .cpu = attr.samples(format::abi::kSampleCpu) ? sample.fields->cpu + 1 : 0};
  if (attr.samples(format::abi::kSampleTime)) {
    first_time_ = std::min(std::exchange(has_times_, true) ? first_time_ : added.time, added.time);
    last_time_ = std::max(last_time_, added.time);
  }
  samples_.push_back(added);
  if (counts_.size() <= added.event) counts_.resize(added.event + 1);
  ++counts_[added.event];
  if (attr.samples(format::abi::kSampleRaw) && schemas_.schema_of(sample.event_index) != nullptr)
    add_marker(sample, added);
  return Flow::Continue;
}

// A value in time is a duration that ends with the sample.
void ExportEvents::add_marker(const ResolvedSample& sample, const ExportSample& added) {
  const PayloadSchema& schema = *schemas_.schema_of(sample.event_index);
  const format::Bytes raw = sample.fields->raw;
  ExportMarker marker{.begin = added.time,
                      .end = added.time,
                      .thread = added.thread,
                      .event = added.event,
                      .stack = added.stack,
                      .payload_at = payloads_.size(),
                      .payload_size = static_cast<std::uint32_t>(raw.size())};
  const PayloadField* const value = field_with_role(schema, "value");
  const std::uint64_t unit = value == nullptr ? 0 : ns_of_unit(value->unit);
  const auto number = unit == 0 ? std::nullopt : read_number(*value, raw, sample.order);
  if (number && *number > 0 && *number <= static_cast<Int128>(added.time / unit))
    marker.begin -= static_cast<std::uint64_t>(*number) * unit;
  payloads_.insert(payloads_.end(), raw.begin(), raw.end());
  markers_.push_back(marker);
}

void ExportEvents::add_wait(const Wait& wait) {
  if (wait.thread == nullptr || wait.stack == nullptr) return;
  markers_.push_back({.begin = wait.begin(),
                      .end = wait.end,
                      .thread = thread_of(wait.thread, wait.comm),
                      .event = ExportMarker::kWait,
                      .stack = code_.stack_of(wait.stack, wait.location),
                      .waker = wait.wakers.empty() ? std::string_view() : wait.wakers.front().comm});
}

std::string ExportEvents::unit_of(std::size_t event) {
  return weight_unit("", session_.events()[event], schemas_.schema_of(event), periods_.field_of(event));
}

void ExportEvents::describe_marker(FieldSink& to, const ExportMarker& marker) {
  if (marker.event == ExportMarker::kWait) {
    to.number("ns", marker.end - marker.begin);
    if (!marker.waker.empty()) to.text("waker", marker.waker);
    return;
  }
  const auto raw = std::span(payloads_).subspan(marker.payload_at, marker.payload_size);
  describe_payload(to, *schemas_.schema_of(marker.event), raw, order_);
}

std::optional<ExportEvents::Amount> ExportEvents::amount_of(const ExportMarker& marker) {
  if (marker.event == ExportMarker::kWait) return std::nullopt;
  const PayloadField* const field = field_with_role(*schemas_.schema_of(marker.event), "value");
  if (field == nullptr || ns_of_unit(field->unit) != 0) return std::nullopt;
  const auto raw = std::span(payloads_).subspan(marker.payload_at, marker.payload_size);
  const auto number = read_number(*field, raw, order_);
  if (!number) return std::nullopt;
  return Amount{printable(field->name), printable(field->unit), static_cast<double>(*number)};
}

std::vector<ExportEvents::Placed> ExportEvents::placed_markers() const {
  std::vector<Placed> placed(markers_.size());
  for (std::uint32_t i = 0; i < placed.size(); ++i) placed[i].marker = i;
  std::ranges::stable_sort(placed, [this](const Placed& a, const Placed& b) {
    const ExportMarker &x = markers_[a.marker], &y = markers_[b.marker];
    if (x.thread != y.thread) return x.thread < y.thread;
    return x.begin != y.begin ? x.begin < y.begin : x.end > y.end;
  });
  constexpr std::size_t kMostLanes = 64;
  std::vector<std::vector<std::uint64_t>> open;  // by lane: ends of the intervals around the next one
  std::uint32_t thread = 0;
  for (Placed& one : placed) {
    const ExportMarker& marker = markers_[one.marker];
    if (std::exchange(thread, marker.thread) != marker.thread) open.clear();
    if (marker.begin == marker.end) continue;
    for (one.lane = 0;; ++one.lane) {
      if (one.lane == open.size()) open.emplace_back();
      std::vector<std::uint64_t>& ends = open[one.lane];
      while (!ends.empty() && ends.back() <= marker.begin) ends.pop_back();
      const bool nests = ends.empty() || marker.end <= ends.back();
      if (nests || one.lane + 1 == kMostLanes) {
        ends.push_back(marker.end);
        break;
      }
    }
  }
  return placed;
}

}  // namespace tacho::report
