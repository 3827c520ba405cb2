#include "report/tables/capture_tables.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "format/records/perf_abi.h"
#include "report/output/field_sinks.h"
#include "report/profile/frame_names.h"
#include "report/profile/function_names.h"
#include "report/query/gather.h"
#include "symbolize/names/demangle.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

TableClock clock_of(const Session& session, const std::string& path) {
  const format::Environment& environment = session.features().environment;
  // An imported profile says when it began, not when its samples were taken.
  bool has_times = false;
  for (std::size_t i = 0; i < session.events().size(); ++i)
    has_times |= session.events()[i].attr.samples(abi::kSampleTime);
  if (!has_times) return {};
  if (const auto& clock = environment.clock_data)
    return {TableClock::Of::Recorded, static_cast<std::int64_t>(clock->wall_ns - clock->clock_ns)};
  struct stat file {};
  if (!environment.sample_time || ::stat(path.c_str(), &file) != 0) return {};
  constexpr std::int64_t kSecond = 1'000'000'000;  // ns
  const std::int64_t end = file.st_mtim.tv_sec * kSecond + file.st_mtim.tv_nsec;
  return {TableClock::Of::File, end - static_cast<std::int64_t>(environment.sample_time->second)};
}

std::string_view name_of(TableClock::Of clock) {
  switch (clock) {
    case TableClock::Of::Recorded:
      return "recorded";
    case TableClock::Of::File:
      return "file";
    case TableClock::Of::None:
      break;
  }
  return "none";
}

std::int64_t time_at(const TableClock& clock, std::uint64_t time) {
  return static_cast<std::int64_t>(time + static_cast<std::uint64_t>(clock.shift));
}

bool has_time(const ResolvedSample& sample) { return sample.event().attr.samples(abi::kSampleTime); }

std::string_view kind_name(FrameKind kind) {
  switch (kind) {
    case FrameKind::Kernel:
      return "kernel";
    case FrameKind::Inlined:
      return "inlined";
    case FrameKind::Jit:
      return "jit";
    case FrameKind::Bpf:
      return "bpf";
    case FrameKind::Unnamed:
      return "unnamed";
    default:
      return "user";
  }
}

// The function with its parameters, which tell overloads apart; empty: it has none, or they are not known.
std::string signature_of(const symbolize::Frame& frame) {
  const std::string_view linker_name = linker_name_of(frame);
  if (!symbolize::may_be_mangled(linker_name)) return {};
  return symbolize::demangle(linker_name, symbolize::NameForm::Parameters).value_or(std::string());
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

}  // namespace

CaptureTables::CaptureTables(Session& session, TableStream& to, const ContentId& id, const std::string& path,
                             const CaptureLabels& labels)
    : session_(&session),
      to_(&to),
      id_(id),
      id_text_(id.hex()),
      path_(path),
      labels_(labels),
      schemas_(session.events(), session.features()),
      periods_(schemas_) {}

void CaptureTables::prepare() {
  const format::Environment& environment = session_->features().environment;
  clock_ = clock_of(*session_, path_);
  if (labels_.host.empty()) labels_.host = environment.hostname.value_or("");
  weight_.emplace("", session_->events().size(), schemas_);
  units_.resize(session_->events().size());
  session_->resolver().expect_samples();
}

Sink::Flow CaptureTables::on_sample(const ResolvedSample& sample) {
  const auto value = weight_->of(sample);
  if (!value) return Flow::Continue;
  std::string& unit = units_[sample.event_index];
  const PayloadSchema* const schema = schemas_.schema_of(sample.event_index);
  if (unit.empty()) {
    periods_.see(sample);
    unit = weight_unit("", sample.event(), schema, periods_.field_of(sample.event_index));
  }
  ++samples_;
  if (has_time(sample)) {
    first_time_ = std::min(first_time_, sample.fields->time);
    last_time_ = std::max(last_time_, sample.fields->time);
  }
  write_sample(sample, *value);
  if (schema != nullptr) write_event(sample, *value, *schema);
  return to_->is_done() ? Flow::Stop : Flow::Continue;
}

void CaptureTables::write_start(RowWriter& row, const ResolvedSample& sample) {
  row.word(id_text_);
  row.text(labels_.host);
  row.text(labels_.service);
  row.text(sample.event().name);
  row.signed_number(has_time(sample) ? time_at(clock_, sample.fields->time) : 0);
}

void CaptureTables::write_thread(RowWriter& row, const ResolvedSample& sample) {
  const format::EventAttr& attr = sample.event().attr;
  row.signed_number(attr.samples(abi::kSampleCpu) ? static_cast<std::int32_t>(sample.fields->cpu) : -1);
  row.signed_number(static_cast<std::int32_t>(sample.pid()));
  row.signed_number(static_cast<std::int32_t>(sample.tid()));
  row.text(sample.comm);
}

void CaptureTables::write_sample(const ResolvedSample& sample, std::uint64_t value) {
  const std::string_view stack = stack_id_of(sample);
  RowWriter& row = to_->table(TableId::Samples);
  write_start(row, sample);
  write_thread(row, sample);
  row.text(sample.fields->cgroup == 0 ? std::string_view() : sample.cgroup());
  row.word(stack);
  row.number(value);
  row.text(units_[sample.event_index]);
  to_->end_row(TableId::Samples);
}

void CaptureTables::write_event(const ResolvedSample& sample, std::uint64_t value,
                                const PayloadSchema& schema) {
  const std::string_view stack = stack_id_of(sample);
  payload_.clear();
  JsonFields fields(payload_);
  describe_payload(fields, schema, sample.fields->raw, sample.order);
  fields.finish();
  RowWriter& row = to_->table(TableId::Events);
  write_start(row, sample);
  write_thread(row, sample);
  row.word(stack);
  row.number(value);
  row.json(payload_.view());
  to_->end_row(TableId::Events);
}

std::string_view CaptureTables::stack_id_of(const ResolvedSample& sample) {
  const bool has_frames = sample.stack != nullptr && !sample.stack->frames.empty();
  ContentId& id = has_frames ? stack_ids_[sample.stack->id] : own_ids_[sample.location_id];
  if (id == ContentId())
    id = write_stack(has_frames ? sample.stack->frames : std::span(&sample.location_id, 1));
  if (stack_text_.empty() || !(shown_stack_ == id)) {
    stack_text_ = id.hex();
    shown_stack_ = id;
  }
  return stack_text_;
}

ContentId CaptureTables::write_stack(std::span<const LocationId> frames) {
  stack_.clear();
  for (const LocationId frame : frames) stack_.push_back(frame_id_of(frame));
  const ContentId id = id_of_stack(stack_);
  if (!written_stacks_.insert(id).second) return id;
  RowWriter& row = to_->table(TableId::Stacks);
  row.word(id.hex());
  row.list(stack_);
  row.number(stack_.size());
  to_->end_row(TableId::Stacks);
  return id;
}

std::uint64_t CaptureTables::frame_id_of(LocationId location) {
  std::uint64_t& id = frame_ids_[location];
  if (id == 0) {
    id = id_of_frame(place_of(session_->resolver().location(location)), id_);
    frames_.push_back(location);
  }
  return id;
}

// The functions at an address: the one with the code at depth 0, then calls inlined into it.
void CaptureTables::write_frames() {
  Resolver& resolver = session_->resolver();
  // Of an address that was both recorded and unwound, the latter has inlined calls.
  std::stable_partition(frames_.begin(), frames_.end(),
                        [&](LocationId id) { return resolver.location(id).is_unwound; });
  tsl::robin_set<std::uint64_t, IdHash> written;
  for (const LocationId id : frames_) {
    const std::uint64_t frame_id = frame_ids_.find(id);
    if (!written.insert(frame_id).second) continue;
    const FramePlace place = place_of(resolver.location(id));
    const auto frames = resolver.frames(resolver.location(id));
    for (std::size_t depth = 0; depth < frames.size(); ++depth) {
      const symbolize::Frame& frame = frames[frames.size() - 1 - depth];
      RowWriter& row = to_->table(TableId::Frames);
      row.number(frame_id);
      row.number(depth);
      row.word(place.module == nullptr ? std::string() : place.module->build_id.hex());
      row.number(place.offset);
      row.text(place.module == nullptr ? std::string_view() : place.module->path);
      row.text(frame.function);
      row.text(signature_of(frame));
      row.text(frame.line_state == symbolize::LineState::Known ? frame.file : std::string_view());
      row.number(frame.line_state == symbolize::LineState::Known ? frame.line : 0);
      row.word(kind_name(kind_of_code(frame)));
      to_->end_row(TableId::Frames);
    }
  }
}

void CaptureTables::write_losses() {
  for (const format::EventLoss& loss : session_->features().environment.losses.events) {
    RowWriter& row = to_->table(TableId::Losses);
    row.word(id_text_);
    row.text(loss.event);
    row.text(loss.cgroup);
    row.signed_number(loss.cpu);
    row.number(loss.lost);
    to_->end_row(TableId::Losses);
  }
}

void CaptureTables::write_capture() {
  const format::Environment& environment = session_->features().environment;
  RowWriter& row = to_->table(TableId::Captures);
  row.word(id_text_);
  row.text(path_);
  for (const std::string* label : {&labels_.host, &labels_.service, &labels_.release, &labels_.host_class})
    row.text(*label);
  row.text(environment.os_release.value_or(""));
  row.text(environment.arch.value_or(""));
  row.number(environment.cpus_online.value_or(0));
  const bool has_times = first_time_ <= last_time_;
  row.signed_number(has_times ? time_at(clock_, first_time_) : 0);
  row.signed_number(has_times ? time_at(clock_, last_time_) : 0);
  row.word(name_of(clock_.of));
  row.text(joined(environment.command_line));
  row.text(environment.version.value_or(""));
  row.number(samples_);
  row.number(all_lost_samples(*session_));
  to_->end_row(TableId::Captures);
}

void CaptureTables::finish() {
  write_frames();
  write_losses();
  write_capture();
  to_->finish();
}

}  // namespace tacho::report
