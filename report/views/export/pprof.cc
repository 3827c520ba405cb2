// The format of pprof: a gzipped protocol buffer, profile.proto of github.com/google/pprof. Its messages are
// written as they come, so memory does not grow with the file.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <protozero/pbf_builder.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "report/profile/sort_keys.h"
#include "report/views/export/export_formats.h"
#include "report/views/export/export_output.h"
#include "report/views/export/export_view.h"

namespace tacho::report {
namespace {

using protozero::pbf_builder;

// Numbers of fields, by message.
enum class PprofProfile : protozero::pbf_tag_type {
  SampleType = 1,
  Sample,
  Mapping,
  Location,
  Function,
  StringTable,
  TimeNanos = 9,
  DurationNanos,
  PeriodType,
  Period,
  Comment,
  DefaultSampleType
};
enum class PprofValueType : protozero::pbf_tag_type { Type = 1, Unit };
enum class PprofSample : protozero::pbf_tag_type { LocationId = 1, Value, Label };
enum class PprofLabel : protozero::pbf_tag_type { Key = 1, Str, Num };
enum class PprofMapping : protozero::pbf_tag_type {
  Id = 1,
  MemoryStart,
  MemoryLimit,
  FileOffset,
  Filename,
  BuildId,
  HasFunctions,
  HasFilenames,
  HasLineNumbers,
  HasInlineFrames
};
enum class PprofLocation : protozero::pbf_tag_type { Id = 1, MappingId, Address, Line };
enum class PprofLine : protozero::pbf_tag_type { FunctionId = 1, Line };
enum class PprofFunction : protozero::pbf_tag_type { Id = 1, Name, SystemName, Filename };

// Values are signed there.
std::uint64_t pprof_value(std::uint64_t value) {
  return std::min<std::uint64_t>(value, std::numeric_limits<std::int64_t>::max());
}

class PprofWriter {
 public:
  PprofWriter(Session& session, ExportStacks& stacks, ExportOutput& out)
      : session_(session), stacks_(stacks), code_(stacks.code()), has_lines_(code_.has_lines()), out_(out) {}

  void write() {
    write_types();
    write_times();
    write_samples();
    write_mappings();
    write_locations();
    write_functions();
    for (const std::string& text : capture_lines(session_))
      pbf_builder<PprofProfile>(message_).add_int64(PprofProfile::Comment, string(text));
    for (std::uint32_t i = 0; i < strings_.size(); ++i) {
      const std::string_view text = strings_[i];
      pbf_builder<PprofProfile>(message_).add_string(PprofProfile::StringTable, text.data(), text.size());
      end_message();
    }
    end_message();
    out_.finish();
  }

 private:
  std::int64_t string(std::string_view text) { return strings_.number_of(text); }
  void end_message() {
    out_.text(message_);
    out_.piece_end();
    message_.clear();
  }

  // A weight of one of several events has the event's name in front.
  std::string type_name(const ExportEvent& event, const ExportWeight& weight) const {
    const bool is_alone = stacks_.events().size() == 1 || weight.name == event.name;
    return is_alone ? weight.name : event.name + ":" + weight.name;
  }
  // The names of all weights, by event. Readers choose a type by its name: a second one gets a number.
  std::vector<std::vector<std::string>> type_names() const {
    std::vector<std::vector<std::string>> names;
    std::set<std::string> taken;
    for (const ExportEvent& event : stacks_.events()) {
      names.emplace_back();
      for (const ExportWeight& weight : event.weights) {
        const std::string name = type_name(event, weight);
        std::string own = name;
        for (int number = 2; !taken.insert(own).second; ++number) own = fmt::format("{}#{}", name, number);
        names.back().push_back(std::move(own));
      }
    }
    return names;
  }
  void write_type(PprofProfile field, const std::string& name, const ExportEvent& event,
                  const ExportWeight& weight) {
    pbf_builder<PprofProfile> whole(message_);
    pbf_builder<PprofValueType> type(whole, field);
    type.add_int64(PprofValueType::Type, string(name));
    type.add_int64(PprofValueType::Unit, string(unit_word(weight.unit, event.name)));
  }
  void write_types() {
    const auto names = type_names();
    for (std::size_t i = 0; i < names.size(); ++i) {
      const ExportEvent& event = stacks_.events()[i];
      first_values_.push_back(values_.size());
      for (std::size_t at = 0; at < names[i].size(); ++at)
        write_type(PprofProfile::SampleType, names[i][at], event, event.weights[at]);
      values_.resize(values_.size() + event.weights.size());
    }
    if (names.empty()) return;
    const ExportEvent& first = stacks_.events().front();
    pbf_builder<PprofProfile>(message_).add_int64(PprofProfile::DefaultSampleType,
                                                  string(names.front()[first.main_weight]));
    const format::EventAttr& attr = session_.events()[first.index].attr;
    // Of a BPF event it says nothing: each call of its program is a sample.
    const bool is_chosen = !attr.is_bpf_output() || attr.sample_period > 1;
    const bool is_fixed = !attr.has(format::abi::kFreq) && attr.sample_period != 0 && is_chosen;
    if (!is_fixed || stacks_.events().size() > 1 || first.weights.size() < 2) return;
    write_type(PprofProfile::PeriodType, names.front()[1], first, first.weights[1]);
    pbf_builder<PprofProfile>(message_).add_int64(PprofProfile::Period,
                                                  static_cast<std::int64_t>(pprof_value(attr.sample_period)));
  }
  // Of samples without times, as of an imported profile, the header may say when they were taken.
  void write_times() {
    std::pair times(stacks_.first_time(), stacks_.last_time());
    if (times.first == 0) {
      const auto& of_header = session_.features().environment.sample_time;
      if (!of_header || of_header->first == kUntimed || of_header->second == kUntimed) return;
      times = *of_header;
    }
    pbf_builder<PprofProfile> whole(message_);
    if (const std::int64_t offset = wall_clock_offset(session_); offset != 0)
      whole.add_int64(PprofProfile::TimeNanos, wall_time(times.first, offset));
    if (times.second > times.first)
      whole.add_int64(PprofProfile::DurationNanos,
                      static_cast<std::int64_t>(pprof_value(times.second - times.first)));
  }

  void add_label(std::string& to, std::string_view key, std::string_view text) {
    pbf_builder<PprofSample> of(to);
    pbf_builder<PprofLabel> one(of, PprofSample::Label);
    one.add_int64(PprofLabel::Key, string(key));
    one.add_int64(PprofLabel::Str, string(text));
  }
  void add_number(std::string& to, std::string_view key, std::int64_t number) {
    pbf_builder<PprofSample> of(to);
    pbf_builder<PprofLabel> one(of, PprofSample::Label);
    one.add_int64(PprofLabel::Key, string(key));
    one.add_int64(PprofLabel::Num, number);
  }
  // The labels as bytes of a Sample: most samples share them.
  std::string label_bytes(const ExportLabelSet& labels, const ExportLabels& kept) {
    std::string bytes;
    if (kept.comm) add_label(bytes, "comm", printable(labels.comm));
    if (kept.pid) add_number(bytes, "pid", static_cast<std::int32_t>(labels.pid));
    if (kept.tid) add_number(bytes, "tid", static_cast<std::int32_t>(labels.tid));
    if (labels.cpu != 0) add_number(bytes, "cpu", static_cast<std::int64_t>(labels.cpu) - 1);
    if (labels.cgroup != 0) add_label(bytes, "cgroup", printable(stacks_.cgroup_path(labels.cgroup)));
    for (const ExportField& field : stacks_.fields(labels.fields))
      add_label(bytes, code_.texts()[field.name], code_.texts()[field.value]);
    return bytes;
  }
  void write_samples() {
    std::vector<std::string> labels;
    for (const ExportLabelSet& set : stacks_.label_sets())
      labels.push_back(label_bytes(set, stacks_.choice().labels));
    std::vector<std::uint64_t> ids;
    std::string sample;
    stacks_.each([&](const ExportRow& row) {
      ids.clear();
      for (const std::uint32_t place : code_.stack(row.stack)) ids.push_back(place + 1);
      const auto first = values_.begin() + static_cast<std::ptrdiff_t>(first_values_[row.event]);
      std::ranges::transform(row.values, first, pprof_value);
      sample.clear();
      pbf_builder<PprofSample> one(sample);
      one.add_packed_uint64(PprofSample::LocationId, ids.begin(), ids.end());
      one.add_packed_uint64(PprofSample::Value, values_.begin(), values_.end());
      sample += labels[row.labels];
      pbf_builder<PprofProfile>(message_).add_message(PprofProfile::Sample, sample);
      std::fill_n(first, row.values.size(), 0);
      end_message();
    });
  }

  void write_mappings() {
    for (std::size_t i = 0; i < code_.modules().size(); ++i) {
      const ExportModule& module = code_.modules()[i];
      // Without lines, one place stands for all code of a module without names: no reader may name it.
      const bool is_final = !has_lines_ || module.has_names;
      pbf_builder<PprofProfile> whole(message_);
      pbf_builder<PprofMapping> one(whole, PprofProfile::Mapping);
      one.add_uint64(PprofMapping::Id, i + 1);
      one.add_uint64(PprofMapping::MemoryStart, module.start);
      one.add_uint64(PprofMapping::MemoryLimit, module.end);
      if (!module.is_runtime) one.add_uint64(PprofMapping::FileOffset, module.start);
      one.add_int64(PprofMapping::Filename, string(printable(module.module->path)));
      one.add_int64(PprofMapping::BuildId, string(module.module->build_id.hex()));
      one.add_bool(PprofMapping::HasFunctions, is_final);
      one.add_bool(PprofMapping::HasFilenames, is_final && has_lines_);
      one.add_bool(PprofMapping::HasLineNumbers, is_final && has_lines_);
      one.add_bool(PprofMapping::HasInlineFrames, is_final && has_lines_);
    }
  }
  void write_locations() {
    for (std::uint32_t place = 0; place < code_.places().size(); ++place) {
      const ExportPlace& known = code_.places()[place];
      {
        pbf_builder<PprofProfile> whole(message_);
        pbf_builder<PprofLocation> one(whole, PprofProfile::Location);
        one.add_uint64(PprofLocation::Id, place + 1);
        if (known.module != 0) one.add_uint64(PprofLocation::MappingId, known.module);
        one.add_uint64(PprofLocation::Address, known.address);
        for (const std::uint32_t number : code_.lines_at(place)) {
          const ExportLine& of_place = code_.lines()[number];
          pbf_builder<PprofLine> its_line(one, PprofLocation::Line);
          its_line.add_uint64(PprofLine::FunctionId, function_id(of_place));
          if (of_place.line != 0) its_line.add_int64(PprofLine::Line, of_place.line);
        }
      }
      end_message();
    }
  }
  // A function has one file in pprof: one that has lines of several files is as many functions of one name.
  std::uint64_t function_id(const ExportLine& line) {
    return function_ids_.try_emplace({line.function, line.file}, function_ids_.size() + 1).first->second;
  }
  // Those of all locations.
  void write_functions() {
    for (const auto& [key, id] : function_ids_) {
      const auto& [function, file] = key;
      const ExportFunction& known = code_.functions()[function];
      {
        pbf_builder<PprofProfile> whole(message_);
        pbf_builder<PprofFunction> one(whole, PprofProfile::Function);
        one.add_uint64(PprofFunction::Id, id);
        const std::string name = code_.function_name(known), linker_name = code_.linker_name(known);
        one.add_int64(PprofFunction::Name, string(name));
        // pprof shortens a name that is also the system's.
        if (linker_name != name) one.add_int64(PprofFunction::SystemName, string(linker_name));
        if (file != 0) one.add_int64(PprofFunction::Filename, string(code_.texts()[file]));
      }
      end_message();
    }
  }

  Session& session_;
  ExportStacks& stacks_;
  ExportCode& code_;
  bool has_lines_;
  ExportOutput& out_;
  std::string message_;  // not yet written
  ExportTexts strings_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> function_ids_;  // by function and file
  std::vector<std::size_t> first_values_;                                          // by event, in values_
  std::vector<std::uint64_t> values_;  // of the current sample; 0: of other events
};

Result<Shown> show_pprof(Session& session, TextOutput& out, const ExportOptions& options) {
  return export_stacks(
      session, out, options, ExportOutput::Packing::Gzip,
      [&](ExportStacks& stacks, ExportOutput& to) { PprofWriter(session, stacks, to).write(); });
}

}  // namespace

Result<cli::ExitStatus> export_pprof(const std::vector<std::string>& arguments) {
  constexpr ExportLabels kAll{true, true, true, true, true, true};
  return export_samples({.name = "pprof", .is_binary = true, .has_labels = true, .labels = kAll}, arguments,
                        show_pprof);
}

}  // namespace tacho::report
