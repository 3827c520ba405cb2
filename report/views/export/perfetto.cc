// The trace of Perfetto: samples as PerfSample packets with interned stacks, events with payloads and waits
// as TrackEvents, amounts of payloads as counters. Packets are written as they come.
#include <algorithm>
#include <map>
#include <protozero/pbf_builder.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/views/export/export_events.h"
#include "report/views/export/export_formats.h"
#include "report/views/export/export_output.h"
#include "report/views/export/export_view.h"
#include "report/views/export/flat_fields.h"

namespace tacho::report {
namespace {

using protozero::pbf_builder;
using protozero::pbf_tag_type;

// Numbers of fields, by message.
enum class PerfettoTrace : pbf_tag_type { Packet = 1 };
enum class PerfettoPacket : pbf_tag_type {
  Timestamp = 8,
  SequenceId = 10,
  TrackEvent = 11,
  InternedData = 12,
  SequenceFlags = 13,
  Defaults = 59,
  TrackDescriptor = 60,
  PerfSample = 66
};
enum class PerfettoDefaults : pbf_tag_type { PerfSample = 12 };
enum class PerfettoSampleDefaults : pbf_tag_type { Timebase = 1 };
enum class PerfettoTimebase : pbf_tag_type { Period = 1, Name = 10 };
enum class PerfettoInterned : pbf_tag_type {
  FunctionName = 5,
  Frame = 6,
  Callstack = 7,
  BuildId = 16,
  MappingPath = 17,
  SourcePath = 18,
  Mapping = 19
};
enum class PerfettoString : pbf_tag_type { Iid = 1, Str = 2 };
enum class PerfettoMapping : pbf_tag_type { Iid = 1, BuildId = 2, Start = 4, End = 5, PathStringIds = 7 };
enum class PerfettoFrame : pbf_tag_type {
  Iid = 1,
  FunctionNameId = 2,
  MappingId = 3,
  RelPc = 4,
  SourcePathIid = 5,
  LineNumber = 6
};
enum class PerfettoCallstack : pbf_tag_type { Iid = 1, FrameIds = 2 };
enum class PerfettoSample : pbf_tag_type {
  Cpu = 1,
  Pid = 2,
  Tid = 3,
  CallstackIid = 4,
  CpuMode = 5,
  Count = 6
};
enum class PerfettoTrack : pbf_tag_type {
  Uuid = 1,
  Name = 2,
  Process = 3,
  Thread = 4,
  ParentUuid = 5,
  Counter = 8
};
enum class PerfettoProcess : pbf_tag_type { Pid = 1, Name = 6 };
enum class PerfettoThread : pbf_tag_type { Pid = 1, Tid = 2, Name = 5 };
enum class PerfettoCounter : pbf_tag_type { UnitName = 6 };
enum class PerfettoEvent : pbf_tag_type {
  Annotation = 4,
  Type = 9,
  TrackUuid = 11,
  Name = 23,
  DoubleValue = 44
};
enum class PerfettoAnnotation : pbf_tag_type {
  Unsigned = 3,
  Signed = 4,
  Double = 5,
  String = 6,
  Pointer = 7,
  Name = 10
};
enum : std::int32_t { kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounterValue = 4 };
enum : std::uint32_t { kStateCleared = 1, kNeedsState = 2 };

// The fields of a payload as annotations of an event.
class AnnotationFields : public FieldSink {
 public:
  explicit AnnotationFields(pbf_builder<PerfettoEvent>& event) : event_(event) {}
  void number(std::string_view name, std::uint64_t value) override {
    of(name).add_uint64(PerfettoAnnotation::Unsigned, value);
  }
  void signed_number(std::string_view name, std::int64_t value) override {
    of(name).add_int64(PerfettoAnnotation::Signed, value);
  }
  void real(std::string_view name, double value) override {
    of(name).add_double(PerfettoAnnotation::Double, value);
  }
  void hex(std::string_view name, std::uint64_t value) override {
    of(name).add_uint64(PerfettoAnnotation::Pointer, value);
  }
  void text(std::string_view name, std::string_view value) override {
    of(name).add_string(PerfettoAnnotation::String, printable(value));
  }
  // FlatFields makes texts of the others.
  void bytes(std::string_view, format::Bytes) override {}
  void flag(std::string_view, bool) override {}
  void begin_list(std::string_view) override {}
  void end_list() override {}
  void begin_object(std::string_view) override {}
  void end_object() override {}

 private:
  pbf_builder<PerfettoAnnotation> of(std::string_view name) {
    pbf_builder<PerfettoAnnotation> annotation(event_, PerfettoEvent::Annotation);
    annotation.add_string(PerfettoAnnotation::Name, printable(name));
    return annotation;
  }
  pbf_builder<PerfettoEvent>& event_;
};

class PerfettoWriter {
 public:
  PerfettoWriter(Session& session, ExportEvents& events, ExportOutput& out)
      : session_(session), events_(events), code_(events.code()), out_(out) {}

  void write() {
    for (std::uint32_t thread = 0; thread < events_.threads().size(); ++thread) write_thread(thread);
    for (const ExportEvents::Placed& placed : events_.placed_markers()) write_marker(placed);
    for (const ExportSample& sample : events_.samples()) write_sample(sample);
    out_.finish();
  }

 private:
  // What a sequence of packets has described: each event has one of its own, since samples of a sequence
  // count one event.
  struct Sequence {
    bool is_begun = false;
    std::vector<bool> functions, files, modules, frames, stacks;
    std::map<std::uint32_t, std::uint64_t> counts;  // by CPU
  };
  static bool is_new(std::vector<bool>& known, std::size_t number) {
    if (known.size() <= number) known.resize(number + 1);
    const bool was_known = known[number];
    known[number] = true;
    return !was_known;
  }
  void end_packet(const std::string& packet) {
    std::string whole;
    pbf_builder<PerfettoTrace>(whole).add_message(PerfettoTrace::Packet, packet);
    out_.text(whole);
    out_.piece_end();
  }

  std::uint64_t track_of(std::uint32_t thread, std::uint32_t lane) const {
    return (std::uint64_t{lane} << 32 | thread) + 1;
  }
  void write_thread(std::uint32_t number) {
    const ExportThread& thread = events_.threads()[number];
    const std::string comm = thread.comm.empty() ? "[unnamed]" : printable(thread.comm);
    std::string packet;
    {
      pbf_builder<PerfettoPacket> whole(packet);
      whole.add_uint32(PerfettoPacket::SequenceId, kEventSequence);
      pbf_builder<PerfettoTrack> track(whole, PerfettoPacket::TrackDescriptor);
      track.add_uint64(PerfettoTrack::Uuid, track_of(number, 0));
      if (thread.pid == thread.tid) {
        pbf_builder<PerfettoProcess> process(track, PerfettoTrack::Process);
        process.add_int32(PerfettoProcess::Pid, static_cast<std::int32_t>(thread.pid));
        process.add_string(PerfettoProcess::Name, comm);
      }
      pbf_builder<PerfettoThread> its(track, PerfettoTrack::Thread);
      its.add_int32(PerfettoThread::Pid, static_cast<std::int32_t>(thread.pid));
      its.add_int32(PerfettoThread::Tid, static_cast<std::int32_t>(thread.tid));
      its.add_string(PerfettoThread::Name, comm);
    }
    end_packet(packet);
  }

  std::string name_of(const ExportMarker& marker) const {
    return marker.event == ExportMarker::kWait ? "wait" : printable(session_.events()[marker.event].name);
  }
  void write_marker(const ExportEvents::Placed& placed) {
    const ExportMarker& marker = events_.markers()[placed.marker];
    const std::uint64_t track = track_of(marker.thread, placed.lane);
    if (placed.lane > 0 && lanes_.insert(track).second) {
      std::string packet;
      {
        pbf_builder<PerfettoPacket> whole(packet);
        whole.add_uint32(PerfettoPacket::SequenceId, kEventSequence);
        pbf_builder<PerfettoTrack> lane(whole, PerfettoPacket::TrackDescriptor);
        lane.add_uint64(PerfettoTrack::Uuid, track);
        lane.add_string(PerfettoTrack::Name, "overlapping events");
        lane.add_uint64(PerfettoTrack::ParentUuid, track_of(marker.thread, 0));
      }
      end_packet(packet);
    }
    const bool is_point = marker.begin == marker.end;
    write_event(marker, track, marker.begin, is_point ? kInstant : kSliceBegin);
    if (!is_point) write_event(marker, track, marker.end, kSliceEnd);
    if (const auto amount = events_.amount_of(marker)) write_amount(marker, *amount);
  }
  void write_event(const ExportMarker& marker, std::uint64_t track, std::uint64_t time, std::int32_t type) {
    std::string packet;
    {
      pbf_builder<PerfettoPacket> whole(packet);
      whole.add_uint64(PerfettoPacket::Timestamp, time);
      whole.add_uint32(PerfettoPacket::SequenceId, kEventSequence);
      pbf_builder<PerfettoEvent> event(whole, PerfettoPacket::TrackEvent);
      event.add_enum(PerfettoEvent::Type, type);
      event.add_uint64(PerfettoEvent::TrackUuid, track);
      if (type != kSliceEnd) {
        event.add_string(PerfettoEvent::Name, name_of(marker));
        AnnotationFields annotations(event);
        FlatFields fields(annotations);
        events_.describe_marker(fields, marker);
        annotations.text("leaf", leaf_name(marker.stack));
      }
    }
    end_packet(packet);
  }
  std::string leaf_name(std::uint32_t stack) {
    const std::uint32_t line = code_.lines_at(code_.stack(stack).front()).front();
    return code_.function_name(code_.functions()[code_.lines()[line].function]);
  }
  void write_amount(const ExportMarker& marker, const ExportEvents::Amount& amount) {
    const auto [known, is_first] =
        counters_.insert({{marker.thread, marker.event}, kFirstCounter + counters_.size()});
    if (is_first) {
      std::string packet;
      {
        pbf_builder<PerfettoPacket> whole(packet);
        whole.add_uint32(PerfettoPacket::SequenceId, kEventSequence);
        pbf_builder<PerfettoTrack> track(whole, PerfettoPacket::TrackDescriptor);
        track.add_uint64(PerfettoTrack::Uuid, known->second);
        track.add_string(PerfettoTrack::Name, name_of(marker) + " " + amount.name);
        track.add_uint64(PerfettoTrack::ParentUuid, track_of(marker.thread, 0));
        pbf_builder<PerfettoCounter> counter(track, PerfettoTrack::Counter);
        counter.add_string(PerfettoCounter::UnitName, amount.unit);
      }
      end_packet(packet);
    }
    std::string packet;
    {
      pbf_builder<PerfettoPacket> whole(packet);
      whole.add_uint64(PerfettoPacket::Timestamp, marker.end);
      whole.add_uint32(PerfettoPacket::SequenceId, kEventSequence);
      pbf_builder<PerfettoEvent> event(whole, PerfettoPacket::TrackEvent);
      event.add_enum(PerfettoEvent::Type, kCounterValue);
      event.add_uint64(PerfettoEvent::TrackUuid, known->second);
      event.add_double(PerfettoEvent::DoubleValue, amount.value);
    }
    end_packet(packet);
  }

  void begin_sequence(Sequence& sequence, std::uint32_t event, pbf_builder<PerfettoPacket>& packet) {
    sequence.is_begun = true;
    pbf_builder<PerfettoDefaults> defaults(packet, PerfettoPacket::Defaults);
    pbf_builder<PerfettoSampleDefaults> of_samples(defaults, PerfettoDefaults::PerfSample);
    pbf_builder<PerfettoTimebase> timebase(of_samples, PerfettoSampleDefaults::Timebase);
    timebase.add_uint64(PerfettoTimebase::Period,
                        std::max<std::uint64_t>(1, session_.events()[event].attr.sample_period));
    timebase.add_string(PerfettoTimebase::Name, printable(session_.events()[event].name));
  }
  void write_sample(const ExportSample& sample) {
    if (sequences_.size() <= sample.event) sequences_.resize(sample.event + 1);
    Sequence& sequence = sequences_[sample.event];
    const bool is_first = !sequence.is_begun;
    packet_.clear();
    {
      pbf_builder<PerfettoPacket> whole(packet_);
      whole.add_uint64(PerfettoPacket::Timestamp, sample.time);
      whole.add_uint32(PerfettoPacket::SequenceId, sample.event + 1);
      whole.add_uint32(PerfettoPacket::SequenceFlags, is_first ? kStateCleared | kNeedsState : kNeedsState);
      if (is_first) begin_sequence(sequence, sample.event, whole);
      intern_stack(sequence, sample.stack, whole);
      const ExportThread& thread = events_.threads()[sample.thread];
      pbf_builder<PerfettoSample> its(whole, PerfettoPacket::PerfSample);
      if (sample.cpu != 0) its.add_uint32(PerfettoSample::Cpu, sample.cpu - 1);
      its.add_uint32(PerfettoSample::Pid, thread.pid);
      its.add_uint32(PerfettoSample::Tid, thread.tid);
      its.add_uint64(PerfettoSample::CallstackIid, sample.stack + 1);
      its.add_uint64(PerfettoSample::Count, sequence.counts[sample.cpu] += sample.weight);
    }
    end_packet(packet_);
  }

  // A frame is a line of a place: its identity is the number of that pair.
  void intern_stack(Sequence& sequence, std::uint32_t stack, pbf_builder<PerfettoPacket>& packet) {
    if (!is_new(sequence.stacks, stack)) return;
    pbf_builder<PerfettoInterned> interned(packet, PerfettoPacket::InternedData);
    std::vector<std::uint64_t> frames;
    const auto places = code_.stack(stack);
    for (auto place = places.rbegin(); place != places.rend(); ++place) {
      const auto lines = code_.lines_at(*place);
      for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
        const auto known = frames_.insert({{*place, *line}, frames_.size() + 1}).first;
        frames.push_back(known->second);
        if (is_new(sequence.frames, known->second)) intern_frame(sequence, *known, interned);
      }
    }
    pbf_builder<PerfettoCallstack> callstack(interned, PerfettoInterned::Callstack);
    callstack.add_uint64(PerfettoCallstack::Iid, stack + 1);
    for (const std::uint64_t frame : frames) callstack.add_uint64(PerfettoCallstack::FrameIds, frame);
  }
  using Frames = std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t>;
  void intern_frame(Sequence& sequence, const Frames::value_type& frame,
                    pbf_builder<PerfettoInterned>& interned) {
    const ExportPlace& place = code_.places()[frame.first.first];
    const ExportLine& line = code_.lines()[frame.first.second];
    if (is_new(sequence.functions, line.function))
      intern_string(interned, PerfettoInterned::FunctionName, line.function + 1,
                    code_.function_name(code_.functions()[line.function]));
    if (line.file != 0 && is_new(sequence.files, line.file))
      intern_string(interned, PerfettoInterned::SourcePath, line.file, std::string(code_.texts()[line.file]));
    if (place.module != 0 && is_new(sequence.modules, place.module)) intern_module(place.module, interned);
    pbf_builder<PerfettoFrame> its(interned, PerfettoInterned::Frame);
    its.add_uint64(PerfettoFrame::Iid, frame.second);
    its.add_uint64(PerfettoFrame::FunctionNameId, line.function + 1);
    if (place.module != 0) {
      its.add_uint64(PerfettoFrame::MappingId, place.module);
      its.add_uint64(PerfettoFrame::RelPc, place.address - code_.modules()[place.module - 1].start);
    }
    if (line.file != 0) its.add_uint64(PerfettoFrame::SourcePathIid, line.file);
    if (line.line != 0) its.add_uint32(PerfettoFrame::LineNumber, line.line);
  }
  static void intern_string(pbf_builder<PerfettoInterned>& interned, PerfettoInterned table, std::uint64_t id,
                            const std::string& text) {
    pbf_builder<PerfettoString> one(interned, table);
    one.add_uint64(PerfettoString::Iid, id);
    one.add_string(PerfettoString::Str, text);
  }
  // Readers join the parts of a path by '/', so that the first one has none.
  void intern_module(std::uint32_t number, pbf_builder<PerfettoInterned>& interned) {
    const ExportModule& module = code_.modules()[number - 1];
    std::string path = printable(module.module->path);
    if (path.starts_with('/')) path.erase(0, 1);
    intern_string(interned, PerfettoInterned::MappingPath, number, path);
    intern_string(interned, PerfettoInterned::BuildId, number, module.module->build_id.hex());
    pbf_builder<PerfettoMapping> mapping(interned, PerfettoInterned::Mapping);
    mapping.add_uint64(PerfettoMapping::Iid, number);
    mapping.add_uint64(PerfettoMapping::BuildId, number);
    mapping.add_uint64(PerfettoMapping::Start, module.start);
    mapping.add_uint64(PerfettoMapping::End, module.end);
    mapping.add_uint64(PerfettoMapping::PathStringIds, number);
  }

  // Samples of event number n are in sequence n + 1.
  static constexpr std::uint32_t kEventSequence = 1U << 30;
  static constexpr std::uint64_t kFirstCounter = std::uint64_t{1} << 48;  // above the tracks of lanes
  Session& session_;
  ExportEvents& events_;
  ExportCode& code_;
  ExportOutput& out_;
  std::vector<Sequence> sequences_;  // by event
  Frames frames_;
  std::set<std::uint64_t> lanes_;                                              // tracks that are described
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> counters_;  // tracks, by thread and event
  std::string packet_;
};

Result<Shown> show_perfetto(Session& session, TextOutput& out, const ExportOptions& options) {
  return export_events(
      session, out, options, options.choice.places,
      [&](ExportEvents& events, ExportOutput& to) { PerfettoWriter(session, events, to).write(); });
}

}  // namespace

Result<cli::ExitStatus> export_perfetto(const std::vector<std::string>& arguments) {
  return export_samples({.name = "perfetto", .is_binary = true}, arguments, show_perfetto);
}

}  // namespace tacho::report
