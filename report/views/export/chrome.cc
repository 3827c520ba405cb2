// The Trace Event Format of Chrome: samples with their stacks, events with payloads and waits as events, and
// amounts of payloads as counters.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/output/field_sinks.h"
#include "report/views/export/export_events.h"
#include "report/views/export/export_formats.h"
#include "report/views/export/export_output.h"
#include "report/views/export/export_view.h"

namespace tacho::report {
namespace {

class ChromeWriter {
 public:
  ChromeWriter(Session& session, ExportEvents& events, ExportOutput& out)
      : session_(session), events_(events), code_(events.code()), out_(out), json_(out) {}

  void write() {
    json_.begin_list("traceEvents");
    for (const ExportThread& thread : events_.threads()) write_name(thread);
    write_markers();
    json_.end_list();
    json_.printed("displayTimeUnit", "ns");
    json_.begin_object("otherData");
    for (const std::string& line : capture_lines(session_)) {
      const std::size_t colon = line.find(": ");
      json_.printed(line.substr(0, colon), line.substr(colon + 2));
    }
    json_.end_object();
    write_stacks();
    write_samples();
    json_.finish();
    out_.character('\n');
    out_.finish();
  }

 private:
  static double microseconds(std::uint64_t ns) { return static_cast<double>(ns) / 1e3; }
  void begin_event(std::string_view phase, const std::string& name, const ExportThread& thread) {
    json_.begin_object("");
    json_.printed("ph", phase);
    json_.printed("name", name);
    json_.signed_number("pid", static_cast<std::int32_t>(thread.pid));
    json_.signed_number("tid", static_cast<std::int32_t>(thread.tid));
  }
  void end_event() {
    json_.end_object();
    out_.character('\n');
    out_.piece_end();
  }
  void write_name(const ExportThread& thread) {
    const std::string comm = thread.comm.empty() ? "[unnamed]" : printable(thread.comm);
    for (const std::string_view what : {"process_name", "thread_name"}) {
      if (what == "process_name" && thread.pid != thread.tid) continue;
      begin_event("M", std::string(what), thread);
      json_.begin_object("args");
      json_.printed("name", comm);
      json_.end_object();
      end_event();
    }
  }

  std::string name_of(const ExportMarker& marker) const {
    return marker.event == ExportMarker::kWait ? "wait" : printable(session_.events()[marker.event].name);
  }
  // Complete events (X) of a thread must nest; an interval that overlaps another one partly is two
  // asynchronous events (b, e).
  void write_markers() {
    for (const ExportEvents::Placed& placed : events_.placed_markers()) {
      const ExportMarker& marker = events_.markers()[placed.marker];
      if (marker.begin == marker.end) {
        write_point(marker);
      } else if (placed.lane == 0) {
        write_interval(marker);
      } else {
        write_asynchronous(marker, placed.marker);
      }
    }
  }
  void write_arguments(const ExportMarker& marker) {
    json_.begin_object("args");
    events_.describe_marker(json_, marker);
    json_.end_object();
    json_.printed("sf", std::to_string(marker.stack + 1));
  }
  void write_point(const ExportMarker& marker) {
    begin_event("i", name_of(marker), events_.threads()[marker.thread]);
    json_.real("ts", microseconds(marker.end));
    json_.printed("s", "t");
    write_arguments(marker);
    end_event();
    write_counters(marker);
  }
  void write_interval(const ExportMarker& marker) {
    begin_event("X", name_of(marker), events_.threads()[marker.thread]);
    json_.real("ts", microseconds(marker.begin));
    json_.real("dur", microseconds(marker.end - marker.begin));
    write_arguments(marker);
    end_event();
  }
  void write_asynchronous(const ExportMarker& marker, std::size_t id) {
    for (const bool is_begin : {true, false}) {
      begin_event(is_begin ? "b" : "e", name_of(marker), events_.threads()[marker.thread]);
      json_.printed("cat", "tacho");
      json_.number("id", id);
      json_.real("ts", microseconds(is_begin ? marker.begin : marker.end));
      if (is_begin) write_arguments(marker);
      end_event();
    }
  }
  // A value that is no time is an amount at a point in time.
  void write_counters(const ExportMarker& marker) {
    const auto value = events_.amount_of(marker);
    if (!value) return;
    begin_event("C", name_of(marker) + " " + value->name, events_.threads()[marker.thread]);
    json_.real("ts", microseconds(marker.end));
    json_.begin_object("args");
    json_.real(value->unit.empty() ? "value" : value->unit, value->value);
    json_.end_object();
    end_event();
  }

  // A stack is the identity of its leaf, in a tree of frames. The leaf of stack number n has the identity
  // n + 1; callers have those after all leaves.
  void write_stacks() {
    json_.begin_object("stackFrames");
    std::uint64_t next = code_.stacks() + 1;
    IndexTable<> by_node;
    for (std::uint32_t stack = 0; stack < code_.stacks(); ++stack) {
      functions_.clear();
      const auto places = code_.stack(stack);
      for (auto place = places.rbegin(); place != places.rend(); ++place) {
        const auto lines = code_.lines_at(*place);
        for (auto line = lines.rbegin(); line != lines.rend(); ++line)
          functions_.push_back(code_.lines()[*line].function);
      }
      std::uint64_t parent = 0;
      for (std::size_t i = 0; i + 1 < functions_.size(); ++i) {
        const std::uint32_t node = by_node.find_or_make(
            by_node.hash(parent, functions_[i]),
            [&](std::uint32_t known) {
              return nodes_[known].parent == parent && nodes_[known].function == functions_[i];
            },
            [&] {
              nodes_.push_back({parent, functions_[i], next});
              write_frame(next++, parent, functions_[i]);
              return static_cast<std::uint32_t>(nodes_.size() - 1);
            });
        parent = nodes_[node].id;
      }
      write_frame(stack + 1, parent, functions_.back());
    }
    json_.end_object();
  }
  void write_frame(std::uint64_t id, std::uint64_t parent, std::uint32_t number) {
    const ExportFunction& function = code_.functions()[number];
    json_.begin_object(std::to_string(id));
    json_.printed("name", code_.function_name(function));
    json_.printed("category", code_.module_path(function));
    if (parent != 0) json_.printed("parent", std::to_string(parent));
    json_.end_object();
    out_.piece_end();
  }
  void write_samples() {
    json_.begin_list("samples");
    for (const ExportSample& sample : events_.samples()) {
      json_.begin_object("");
      if (sample.cpu != 0) json_.number("cpu", sample.cpu - 1);
      json_.signed_number("tid", static_cast<std::int32_t>(events_.threads()[sample.thread].tid));
      json_.real("ts", microseconds(sample.time));
      json_.printed("name", printable(session_.events()[sample.event].name));
      json_.printed("sf", std::to_string(sample.stack + 1));
      json_.number("weight", sample.weight);
      json_.end_object();
      out_.piece_end();
    }
    json_.end_list();
  }

  Session& session_;
  ExportEvents& events_;
  ExportCode& code_;
  ExportOutput& out_;
  JsonFields json_;
  struct Node {
    std::uint64_t parent = 0;
    std::uint32_t function = 0;
    std::uint64_t id = 0;
  };
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> functions_;  // scratch: of a stack, root first
};

Result<Shown> show_chrome(Session& session, TextOutput& out, const ExportOptions& options) {
  return export_events(
      session, out, options, ExportPlaces::Functions,
      [&](ExportEvents& events, ExportOutput& to) { ChromeWriter(session, events, to).write(); });
}

}  // namespace

Result<cli::ExitStatus> export_chrome(const std::vector<std::string>& arguments) {
  return export_samples({.name = "chrome", .lines = ExportTraits::Lines::Never}, arguments, show_chrome);
}

}  // namespace tacho::report
