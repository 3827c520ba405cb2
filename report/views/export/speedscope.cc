// The JSON of speedscope: a profile for each weight of each event, of stacks below the name of their thread.
// https://www.speedscope.app/file-format-schema.json
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/output/field_sinks.h"
#include "report/views/export/export_formats.h"
#include "report/views/export/export_output.h"
#include "report/views/export/export_view.h"

namespace tacho::report {
namespace {

std::string_view speedscope_unit(std::string_view unit) {
  if (unit == "ns") return "nanoseconds";
  if (unit == "us") return "microseconds";
  if (unit == "ms") return "milliseconds";
  if (unit == "s") return "seconds";
  return unit == "bytes" ? std::string_view("bytes") : std::string_view("none");
}

class SpeedscopeWriter {
 public:
  SpeedscopeWriter(Session& session, ExportStacks& stacks, ExportOutput& out)
      : session_(session), stacks_(stacks), code_(stacks.code()), out_(out), json_(out) {}

  void write(const std::string& input) {
    json_.text("$schema", "https://www.speedscope.app/file-format-schema.json");
    json_.text("exporter", "tacho");
    json_.printed("name", with_origin(printable(input), session_.features().environment));
    if (!stacks_.events().empty()) json_.number("activeProfileIndex", stacks_.events().front().main_weight);
    json_.begin_object("shared");
    json_.begin_list("frames");
    write_frames();
    json_.end_list();
    json_.end_object();
    json_.begin_list("profiles");
    for (std::size_t event = 0; event < stacks_.events().size(); ++event)
      for (std::size_t weight = 0; weight < stacks_.events()[event].weights.size(); ++weight)
        write_profile(event, weight);
    json_.end_list();
    json_.finish();
    out_.character('\n');
    out_.finish();
  }

 private:
  // Functions, then names of threads.
  void write_frames() {
    for (const ExportFunction& function : code_.functions()) {
      json_.begin_object("");
      json_.printed("name", code_.function_name(function));
      if (function.file != 0)
        json_.printed("file", code_.texts()[function.file]);
      else if (function.module != 0)
        json_.printed("file", code_.module_path(function));
      json_.end_object();
      out_.piece_end();
    }
    for (const ExportLabelSet& set : stacks_.label_sets()) {
      json_.begin_object("");
      json_.printed("name", set.comm.empty() ? "[unnamed]" : printable(set.comm));
      json_.end_object();
    }
  }

  void write_profile(std::size_t event, std::size_t weight) {
    const ExportEvent& described = stacks_.events()[event];
    const ExportWeight& its = described.weights[weight];
    const bool is_alone = stacks_.events().size() == 1 || its.name == described.name;
    json_.begin_object("");
    json_.printed("type", "sampled");
    json_.printed("name", is_alone ? its.name : described.name + ": " + its.name);
    json_.printed("unit", speedscope_unit(its.unit));
    std::uint64_t sum = 0;
    std::vector<std::uint64_t> weights;
    json_.begin_list("samples");
    stacks_.each([&](const ExportRow& row) {
      if (row.event != event || row.values[weight] == 0) return;
      write_stack(row);
      weights.push_back(row.values[weight]);
      sum += row.values[weight];
    });
    json_.end_list();
    json_.begin_list("weights");
    for (const std::uint64_t one : weights) {
      json_.number("", one);
      out_.piece_end();
    }
    json_.end_list();
    json_.number("startValue", 0);
    json_.number("endValue", sum);
    json_.end_object();
  }

  void write_stack(const ExportRow& row) {
    json_.begin_list("");
    json_.number("", code_.functions().size() + row.labels);
    const auto places = code_.stack(row.stack);
    for (auto place = places.rbegin(); place != places.rend(); ++place) {
      const auto lines = code_.lines_at(*place);
      for (auto line = lines.rbegin(); line != lines.rend(); ++line)
        json_.number("", code_.lines()[*line].function);
    }
    json_.end_list();
    out_.piece_end();
  }

  Session& session_;
  ExportStacks& stacks_;
  ExportCode& code_;
  ExportOutput& out_;
  JsonFields json_;
};

Result<Shown> show_speedscope(Session& session, TextOutput& out, const ExportOptions& options) {
  return export_stacks(session, out, options, packing_of(options.reading.output),
                       [&](ExportStacks& stacks, ExportOutput& to) {
                         SpeedscopeWriter(session, stacks, to).write(options.reading.shown_input());
                       });
}

}  // namespace

Result<cli::ExitStatus> export_speedscope(const std::vector<std::string>& arguments) {
  return export_samples({.name = "speedscope", .labels = {.comm = true}}, arguments, show_speedscope);
}

}  // namespace tacho::report
