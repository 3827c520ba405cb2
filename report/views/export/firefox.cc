// The processed format of the Firefox Profiler, version 66: samples of each thread and event, events with
// payloads and waits as markers. Newer profilers upgrade it.
#include <algorithm>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "report/output/field_sinks.h"
#include "report/views/export/export_events.h"
#include "report/views/export/export_formats.h"
#include "report/views/export/export_output.h"
#include "report/views/export/export_view.h"
#include "report/views/export/flat_fields.h"

namespace tacho::report {
namespace {

struct FirefoxCategory {
  std::string_view name, colour;
};
constexpr FirefoxCategory kFirefoxCategories[] = {{"User", "yellow"},     {"Kernel", "orange"},
                                                  {"Generated", "green"}, {"BPF", "blue"},
                                                  {"No name", "grey"},    {"Event", "purple"}};
constexpr std::uint64_t kEventCategory = 5;

std::uint64_t category_of(FrameKind kind) {
  switch (kind) {
    case FrameKind::Kernel:
      return 1;
    case FrameKind::Jit:
      return 2;
    case FrameKind::Bpf:
      return 3;
    case FrameKind::Unnamed:
      return 4;
    default:
      return 0;
  }
}

constexpr std::string_view kWaitSchema = "tacho:wait";

// Names of payload fields that a marker's data has for itself.
std::string marker_key(std::string_view field) {
  const bool is_taken = field == "type" || field == "cause" || field == "name";
  return std::string(field) + (is_taken ? "_" : "");
}

std::string_view firefox_format(const PayloadField& field) {
  const bool is_number = field.kind == format::FieldKind::Unsigned || field.kind == format::FieldKind::Signed;
  if (is_list(field) || is_shown_in_hex(field) || is_named_address(field)) return "string";
  if (field.kind == format::FieldKind::Float) return "decimal";
  if (!is_number) return "string";
  if (field.unit == "ns") return "nanoseconds";
  if (field.unit == "us") return "microseconds";
  if (field.unit == "ms") return "milliseconds";
  if (field.unit == "s") return "seconds";
  return field.unit == "bytes" ? "bytes" : "integer";
}

// The fields of a payload as members of a marker's data.
class MarkerData : public FlatFields {
 public:
  explicit MarkerData(FieldSink& to) : FlatFields(to) {}
  std::string key(std::string_view name) const override { return marker_key(name); }
};

class FirefoxWriter {
 public:
  FirefoxWriter(Session& session, ExportEvents& events, ExportOutput& out)
      : session_(session), events_(events), code_(events.code()), out_(out), json_(out) {
    make_frames();
    make_stacks();
    order_samples();
  }

  void write() {
    write_meta();
    write_libs();
    json_.begin_list("pages");
    json_.end_list();
    write_threads();
    write_shared();
    json_.finish();
    out_.character('\n');
    out_.finish();
  }

 private:
  std::uint64_t string(std::string_view safe_text) {
    const auto [known, is_new] = by_string_.try_emplace(std::string(safe_text), strings_.size());
    if (is_new) strings_.push_back(&known->first);
    return known->second;
  }
  // 0: no time, which is shown at the start.
  double milliseconds(std::uint64_t time) const {
    return time == 0 ? 0 : (static_cast<double>(time) - static_cast<double>(events_.first_time())) / 1e6;
  }
  template <class Values, class Write>
  void column(std::string_view name, const Values& values, const Write& write) {
    json_.begin_list(name);
    for (const auto& value : values) {
      write(value);
      out_.piece_end();
    }
    json_.end_list();
  }
  template <class Values>
  void numbers(std::string_view name, const Values& values) {
    column(name, values, [this](std::uint64_t value) { json_.number("", value); });
  }
  void repeated(std::string_view name, std::size_t count, std::string_view json_value) {
    json_.begin_list(name);
    for (std::size_t i = 0; i < count; ++i) json_.json("", json_value);
    json_.end_list();
    out_.piece_end();
  }

  // A frame for each function at each place, inlined calls last.
  void make_frames() {
    for (std::uint32_t place = 0; place < code_.places().size(); ++place) {
      first_frames_.push_back(static_cast<std::uint32_t>(frames_.size()));
      const auto lines = code_.lines_at(place);
      for (std::size_t i = lines.size(); i-- > 0;)
        frames_.push_back({place, lines[i], static_cast<std::uint32_t>(lines.size() - 1 - i)});
    }
    first_frames_.push_back(static_cast<std::uint32_t>(frames_.size()));
  }
  void make_stacks() {
    constexpr std::uint32_t kRoot = ~std::uint32_t{0};
    for (std::uint32_t stack = 0; stack < code_.stacks(); ++stack) {
      std::uint32_t node = kRoot;
      const auto places = code_.stack(stack);
      for (auto place = places.rbegin(); place != places.rend(); ++place)
        for (std::uint32_t frame = first_frames_[*place]; frame < first_frames_[*place + 1]; ++frame) {
          const Node wanted{node, frame};
          node = by_node_.find_or_make(
              by_node_.hash(wanted.parent, wanted.frame),
              [&](std::uint32_t known) {
                return nodes_[known].parent == wanted.parent && nodes_[known].frame == wanted.frame;
              },
              [&] {
                nodes_.push_back(wanted);
                return static_cast<std::uint32_t>(nodes_.size() - 1);
              });
        }
      leaves_.push_back(node);
    }
  }
  // By thread and event.
  void order_samples() {
    const std::vector<ExportSample>& samples = events_.samples();
    sorted_.resize(samples.size());
    std::iota(sorted_.begin(), sorted_.end(), 0U);
    std::ranges::stable_sort(sorted_, {}, [&samples](std::uint32_t i) {
      return std::uint64_t{samples[i].thread} << 32 | samples[i].event;
    });
    of_threads_.resize(events_.threads().size());
    for (std::uint32_t i = 0; i < events_.markers().size(); ++i)
      of_threads_[events_.markers()[i].thread].push_back(i);
  }

  void write_meta() {
    const format::Environment& environment = session_.features().environment;
    json_.begin_object("meta");
    json_.number("interval", 1);
    const std::int64_t offset = wall_clock_offset(session_);
    json_.real("startTime",
               offset == 0 ? 0 : static_cast<double>(wall_time(events_.first_time(), offset)) / 1e6);
    json_.number("processType", 0);
    json_.printed("product", with_origin("tacho", environment));
    if (environment.os_release) json_.text("oscpu", *environment.os_release);
    if (environment.cpu_description) json_.text("CPUName", *environment.cpu_description);
    if (environment.cpus_online) json_.number("logicalCPUs", *environment.cpus_online);
    json_.printed("importedFrom", "tacho");
    json_.number("stackwalk", 1);
    json_.number("version", 24);
    json_.number("preprocessedProfileVersion", 66);
    json_.flag("symbolicated", true);
    json_.flag("usesOnlyOneStackType", true);
    json_.begin_list("categories");
    for (const FirefoxCategory& category : kFirefoxCategories) {
      json_.begin_object("");
      json_.printed("name", category.name);
      json_.printed("color", category.colour);
      json_.begin_list("subcategories");
      json_.printed("", "Other");
      json_.end_list();
      json_.end_object();
    }
    json_.end_list();
    write_schemas();
    json_.json("extensions", R"({"length":0,"baseURL":[],"id":[],"name":[]})");
    json_.end_object();
  }
  std::string schema_name(std::uint32_t event) {
    return event == ExportMarker::kWait ? std::string(kWaitSchema)
                                        : "tacho:" + printable(session_.events()[event].name);
  }
  void write_field(std::string_view key, std::string_view format) {
    json_.begin_object("");
    json_.text("key", key);
    json_.text("label", key);
    json_.printed("format", format);
    json_.end_object();
  }
  void write_schemas() {
    std::set<std::uint32_t> of_events;
    for (const ExportMarker& marker : events_.markers()) of_events.insert(marker.event);
    json_.begin_list("markerSchema");
    for (const std::uint32_t event : of_events) {
      json_.begin_object("");
      json_.printed("name", schema_name(event));
      json_.printed("tableLabel", "{marker.name}");
      json_.json("display", R"(["marker-chart","marker-table"])");
      json_.begin_list("fields");
      if (event == ExportMarker::kWait) {
        write_field("ns", "nanoseconds");
        write_field("waker", "string");
      } else {
        for (const PayloadField& field : events_.schema_of(event)->fields)
          write_field(marker_key(field.name), firefox_format(field));
      }
      json_.end_list();
      json_.end_object();
    }
    json_.end_list();
  }
  void write_libs() {
    json_.begin_list("libs");
    for (const ExportModule& module : code_.modules()) {
      json_.begin_object("");
      json_.text("arch", session_.features().environment.arch.value_or(""));
      for (const std::string_view name : {"name", "debugName"}) json_.text(name, module.module->short_name);
      for (const std::string_view name : {"path", "debugPath"}) json_.text(name, module.module->path);
      json_.printed("breakpadId", "");
      json_.printed("codeId", module.module->build_id.hex());
      json_.end_object();
    }
    json_.end_list();
  }

  void write_threads() {
    json_.begin_list("threads");
    std::size_t sampled = 0;
    for (const std::uint64_t count : events_.counts()) sampled += count > 0;
    const std::span<const std::uint32_t> all = sorted_;
    for (std::size_t begin = 0; begin < all.size();) {
      const ExportSample& first = events_.samples()[all[begin]];
      std::size_t end = begin;
      const auto is_of_track = [&](const ExportSample& one) {
        return one.thread == first.thread && one.event == first.event;
      };
      while (end < all.size() && is_of_track(events_.samples()[all[end]])) ++end;
      write_thread(all.subspan(begin, end - begin), sampled > 1);
      begin = end;
    }
    json_.end_list();
  }
  // Samples of one thread and event. The thread's markers are in the first one.
  void write_thread(std::span<const std::uint32_t> samples, bool has_several_events) {
    const ExportSample& first = events_.samples()[samples.front()];
    const ExportThread& thread = events_.threads()[first.thread];
    const std::string comm = thread.comm.empty() ? "[unnamed]" : printable(thread.comm);
    const std::string event = printable(session_.events()[first.event].name);
    json_.begin_object("");
    json_.printed("processType", "default");
    json_.printed("processName", comm);
    json_.number("processStartupTime", 0);
    json_.json("processShutdownTime", "null");
    json_.number("registerTime", 0);
    json_.json("unregisterTime", "null");
    json_.json("pausedRanges", "[]");
    json_.printed("name", has_several_events ? comm + " (" + event + ")" : comm);
    json_.flag("isMainThread", thread.pid == thread.tid);
    json_.printed("pid", std::to_string(static_cast<std::int32_t>(thread.pid)));
    json_.printed("tid", std::to_string(static_cast<std::int32_t>(thread.tid)));
    json_.flag("showMarkersInTimeline", true);
    write_samples(samples, events_.unit_of(first.event));
    write_markers(std::exchange(of_threads_[first.thread], {}));
    json_.end_object();
  }
  void write_samples(std::span<const std::uint32_t> samples, const std::string& unit) {
    const auto sample = [this](std::uint32_t i) -> const ExportSample& { return events_.samples()[i]; };
    const double per_ms = unit == "ns" ? 1e6 : unit == "us" ? 1e3 : unit == "ms" ? 1 : 0;
    json_.begin_object("samples");
    json_.printed("weightType", per_ms > 0 ? "tracing-ms" : unit == "bytes" ? "bytes" : "samples");
    column("stack", samples, [&](std::uint32_t i) { json_.number("", leaves_[sample(i).stack]); });
    column("time", samples, [&](std::uint32_t i) { json_.real("", milliseconds(sample(i).time)); });
    column("weight", samples, [&](std::uint32_t i) {
      per_ms > 0 ? json_.real("", static_cast<double>(sample(i).weight) / per_ms)
                 : json_.number("", sample(i).weight);
    });
    json_.number("length", samples.size());
    json_.end_object();
  }
  void write_markers(const std::vector<std::uint32_t>& markers) {
    const auto marker = [this](std::uint32_t i) -> const ExportMarker& { return events_.markers()[i]; };
    const auto is_point = [&](std::uint32_t i) { return marker(i).begin == marker(i).end; };
    json_.begin_object("markers");
    column("data", markers, [&](std::uint32_t i) { write_data(marker(i)); });
    column("name", markers, [&](std::uint32_t i) {
      const std::uint32_t event = marker(i).event;
      json_.number("",
                   string(event == ExportMarker::kWait ? "wait" : printable(session_.events()[event].name)));
    });
    column("startTime", markers, [&](std::uint32_t i) { json_.real("", milliseconds(marker(i).begin)); });
    column("endTime", markers, [&](std::uint32_t i) {
      is_point(i) ? json_.json("", "null") : json_.real("", milliseconds(marker(i).end));
    });
    column("phase", markers, [&](std::uint32_t i) { json_.number("", is_point(i) ? 0 : 1); });
    column("category", markers, [&](std::uint32_t) { json_.number("", kEventCategory); });
    json_.number("length", markers.size());
    json_.end_object();
  }
  void write_data(const ExportMarker& marker) {
    json_.begin_object("");
    json_.printed("type", schema_name(marker.event));
    MarkerData data(json_);
    events_.describe_marker(data, marker);
    json_.begin_object("cause");
    json_.real("time", milliseconds(marker.event == ExportMarker::kWait ? marker.begin : marker.end));
    json_.number("stack", leaves_[marker.stack]);
    json_.end_object();
    json_.end_object();
  }

  void write_shared() {
    json_.begin_object("shared");
    json_.begin_object("stackTable");
    column("frame", nodes_, [this](const Node& node) { json_.number("", node.frame); });
    std::uint32_t number = 0;
    column("prefixOffset", nodes_, [&](const Node& node) {
      json_.number("", node.parent == ~std::uint32_t{0} ? 0 : number - node.parent);
      ++number;
    });
    json_.number("length", nodes_.size());
    json_.end_object();
    write_frame_table();
    write_function_table();
    write_resources();
    json_.json("nativeSymbols", R"({"libIndex":[],"address":[],"name":[],"functionSize":[],"length":0})");
    write_sources();
    json_.json("sourceLocationTable", R"({"source":[],"line":[],"column":[],"length":0})");
    column("stringArray", strings_, [this](const std::string* text) { json_.printed("", *text); });
    json_.end_object();
  }
  void write_frame_table() {
    const std::size_t count = frames_.size();
    const auto line = [this](const Frame& frame) -> const ExportLine& { return code_.lines()[frame.line]; };
    json_.begin_object("frameTable");
    column("address", frames_, [this](const Frame& frame) {
      const ExportPlace& place = code_.places()[frame.place];
      place.module == 0 ? json_.signed_number("", -1) : json_.number("", place.address);
    });
    column("inlineDepth", frames_, [this](const Frame& frame) { json_.number("", frame.depth); });
    column("category", frames_, [&](const Frame& frame) {
      json_.number("", category_of(code_.functions()[line(frame).function].kind));
    });
    repeated("subcategory", count, "0");
    column("func", frames_, [&](const Frame& frame) { json_.number("", line(frame).function); });
    repeated("nativeSymbol", count, "null");
    repeated("innerWindowID", count, "null");
    column("line", frames_, [&](const Frame& frame) {
      line(frame).line == 0 ? json_.json("", "null") : json_.number("", line(frame).line);
    });
    repeated("column", count, "null");
    repeated("originalLocation", count, "null");
    json_.number("length", count);
    json_.end_object();
  }
  void write_function_table() {
    const std::size_t count = code_.functions().size();
    json_.begin_object("funcTable");
    column("name", code_.functions(),
           [this](const ExportFunction& one) { json_.number("", string(code_.function_name(one))); });
    repeated("isJS", count, "false");
    repeated("relevantForJS", count, "false");
    column("resource", code_.functions(), [this](const ExportFunction& one) {
      json_.signed_number("", static_cast<std::int64_t>(one.module) - 1);
    });
    column("source", code_.functions(), [this](const ExportFunction& one) {
      if (one.file == 0) return json_.json("", "null");
      const auto [known, is_new] = by_file_.try_emplace(one.file, files_.size());
      if (is_new) files_.push_back(string(code_.texts()[one.file]));
      json_.number("", known->second);
    });
    for (const std::string_view name : {"lineNumber", "columnNumber", "originalLocation"})
      repeated(name, count, "null");
    json_.number("length", count);
    json_.end_object();
  }
  void write_resources() {
    const std::vector<ExportModule>& modules = code_.modules();
    std::vector<std::uint64_t> numbers_of(modules.size());
    std::iota(numbers_of.begin(), numbers_of.end(), 0U);
    json_.begin_object("resourceTable");
    numbers("lib", numbers_of);
    column("name", modules, [this](const ExportModule& module) {
      json_.number("", string(printable(module.module->short_name)));
    });
    repeated("host", modules.size(), "null");
    repeated("type", modules.size(), "1");  // a library
    json_.number("length", modules.size());
    json_.end_object();
  }
  void write_sources() {
    json_.begin_object("sources");
    repeated("id", files_.size(), "null");
    numbers("filename", files_);
    repeated("startLine", files_.size(), "1");
    repeated("startColumn", files_.size(), "1");
    repeated("sourceMapURL", files_.size(), "null");
    repeated("content", files_.size(), "null");
    json_.number("length", files_.size());
    json_.end_object();
  }

  struct Frame {
    std::uint32_t place = 0, line = 0, depth = 0;  // line: of ExportCode::lines()
  };
  struct Node {
    std::uint32_t parent = 0, frame = 0;  // parent: ~0: none
  };
  Session& session_;
  ExportEvents& events_;
  ExportCode& code_;
  ExportOutput& out_;
  JsonFields json_;
  std::unordered_map<std::string, std::uint64_t, format::SeededTextHash> by_string_;
  std::vector<const std::string*> strings_;
  std::vector<Frame> frames_;
  std::vector<std::uint32_t> first_frames_;  // by place, and the end
  IndexTable<> by_node_;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> leaves_;                   // by stack
  std::vector<std::uint32_t> sorted_;                   // samples
  std::vector<std::vector<std::uint32_t>> of_threads_;  // markers
  std::unordered_map<std::uint32_t, std::uint64_t> by_file_;
  std::vector<std::uint64_t> files_;  // names
};

Result<Shown> show_firefox(Session& session, TextOutput& out, const ExportOptions& options) {
  return export_events(
      session, out, options, options.choice.places,
      [&](ExportEvents& events, ExportOutput& to) { FirefoxWriter(session, events, to).write(); });
}

}  // namespace

Result<cli::ExitStatus> export_firefox(const std::vector<std::string>& arguments) {
  return export_samples({.name = "firefox"}, arguments, show_firefox);
}

}  // namespace tacho::report
