// OTLP profiles as of opentelemetry-proto 1.11 (package v1development, which changes with its versions): a
// profile for each weight of each event, and one dictionary.
#include <algorithm>
#include <limits>
#include <map>
#include <protozero/pbf_builder.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/views/export/export_formats.h"
#include "report/views/export/export_output.h"
#include "report/views/export/export_view.h"

namespace tacho::report {
namespace {

using protozero::pbf_builder;
using protozero::pbf_tag_type;

// Numbers of fields, by message.
enum class OtlpData : pbf_tag_type { ResourceProfiles = 1, Dictionary = 2 };
enum class OtlpDictionary : pbf_tag_type { Mapping = 1, Location, Function, Link, String, Attribute, Stack };
enum class OtlpResourceProfiles : pbf_tag_type { Resource = 1, ScopeProfiles };
enum class OtlpResource : pbf_tag_type { Attribute = 1 };
enum class OtlpKeyValue : pbf_tag_type { Key = 1, Value };
enum class OtlpScopeProfiles : pbf_tag_type { Scope = 1, Profile };
enum class OtlpScope : pbf_tag_type { Name = 1 };
enum class OtlpProfile : pbf_tag_type {
  SampleType = 1,
  Sample,
  TimeUnixNano,
  DurationNano,
  PeriodType,
  Period
};
enum class OtlpValueType : pbf_tag_type { Type = 1, Unit };
enum class OtlpSample : pbf_tag_type { Stack = 1, Attributes, Link, Values };
enum class OtlpMapping : pbf_tag_type { Start = 1, Limit, FileOffset, Filename, Attributes };
enum class OtlpLocation : pbf_tag_type { Mapping = 1, Address, Line };
enum class OtlpLine : pbf_tag_type { Function = 1, Line };
enum class OtlpFunction : pbf_tag_type { Name = 1, SystemName, Filename };
enum class OtlpStack : pbf_tag_type { Locations = 1 };
enum class OtlpAttribute : pbf_tag_type { Key = 1, Value, Unit };
enum class OtlpAnyValue : pbf_tag_type { String = 1, Integer = 3 };

// Element 0 of each table is the value of all zeros: indices begin with 1.
class OtlpWriter {
 public:
  OtlpWriter(Session& session, ExportStacks& stacks, ExportOutput& out)
      : session_(session), stacks_(stacks), code_(stacks.code()), out_(out), attributes_{""} {}

  void write() {
    for (const ExportLabelSet& set : stacks_.label_sets()) of_labels_.push_back(attributes_of(set));
    std::string bytes;
    write_profiles(bytes);
    put(OtlpData::ResourceProfiles, bytes);
    bytes.clear();
    write_dictionary(bytes);
    put(OtlpData::Dictionary, bytes);
    out_.finish();
  }

 private:
  void put(OtlpData field, const std::string& bytes) {
    std::string whole;
    pbf_builder<OtlpData>(whole).add_message(field, bytes);
    out_.text(whole);
    out_.piece_end();
  }
  std::int32_t string(std::string_view text) { return static_cast<std::int32_t>(strings_.number_of(text)); }

  std::int32_t attribute(const std::string& bytes) {
    const auto [known, is_new] =
        by_attribute_.try_emplace(bytes, static_cast<std::int32_t>(attributes_.size()));
    if (is_new) attributes_.push_back(bytes);
    return known->second;
  }
  std::int32_t text_attribute(std::string_view key, std::string_view text) {
    std::string bytes;
    {
      pbf_builder<OtlpAttribute> whole(bytes);
      whole.add_int32(OtlpAttribute::Key, string(key));
      pbf_builder<OtlpAnyValue> value(whole, OtlpAttribute::Value);
      value.add_string(OtlpAnyValue::String, printable(text));
    }
    return attribute(bytes);
  }
  std::int32_t number_attribute(std::string_view key, std::int64_t number) {
    std::string bytes;
    {
      pbf_builder<OtlpAttribute> whole(bytes);
      whole.add_int32(OtlpAttribute::Key, string(key));
      pbf_builder<OtlpAnyValue> value(whole, OtlpAttribute::Value);
      value.add_int64(OtlpAnyValue::Integer, number);
    }
    return attribute(bytes);
  }
  // Keys are those of the semantic conventions where these have one.
  std::vector<std::int32_t> attributes_of(const ExportLabelSet& set) {
    const ExportLabels& kept = stacks_.choice().labels;
    std::vector<std::int32_t> list;
    if (kept.comm) list.push_back(text_attribute("thread.name", set.comm));
    if (kept.pid) list.push_back(number_attribute("process.pid", static_cast<std::int32_t>(set.pid)));
    if (kept.tid) list.push_back(number_attribute("thread.id", static_cast<std::int32_t>(set.tid)));
    if (set.cpu != 0)
      list.push_back(number_attribute("cpu.logical_number", static_cast<std::int64_t>(set.cpu) - 1));
    if (set.cgroup != 0) list.push_back(text_attribute("cgroup", stacks_.cgroup_path(set.cgroup)));
    for (const ExportField& field : stacks_.fields(set.fields))
      list.push_back(text_attribute(code_.texts()[field.name], code_.texts()[field.value]));
    return list;
  }

  void write_profiles(std::string& bytes) {
    pbf_builder<OtlpResourceProfiles> whole(bytes);
    {
      pbf_builder<OtlpResource> resource(whole, OtlpResourceProfiles::Resource);
      const format::Environment& environment = session_.features().environment;
      add_to_resource(resource, "host.name", environment.hostname.value_or(""));
      add_to_resource(resource, "host.arch", environment.arch.value_or(""));
      add_to_resource(resource, "os.version", environment.os_release.value_or(""));
    }
    pbf_builder<OtlpScopeProfiles> scope(whole, OtlpResourceProfiles::ScopeProfiles);
    {
      pbf_builder<OtlpScope> named(scope, OtlpScopeProfiles::Scope);
      named.add_string(OtlpScope::Name, "tacho");
    }
    for (std::size_t event = 0; event < stacks_.events().size(); ++event)
      for (std::size_t weight = 0; weight < stacks_.events()[event].weights.size(); ++weight) {
        pbf_builder<OtlpProfile> profile(scope, OtlpScopeProfiles::Profile);
        write_profile(profile, event, weight);
      }
  }
  static void add_to_resource(pbf_builder<OtlpResource>& resource, std::string_view key,
                              const std::string& text) {
    if (text.empty()) return;
    pbf_builder<OtlpKeyValue> attribute(resource, OtlpResource::Attribute);
    attribute.add_string(OtlpKeyValue::Key, key.data(), key.size());
    pbf_builder<OtlpAnyValue> value(attribute, OtlpKeyValue::Value);
    value.add_string(OtlpAnyValue::String, printable(text));
  }

  void add_type(pbf_builder<OtlpProfile>& profile, OtlpProfile field, const ExportEvent& event,
                const ExportWeight& weight) {
    const bool is_alone = stacks_.events().size() == 1 || weight.name == event.name;
    pbf_builder<OtlpValueType> type(profile, field);
    type.add_int32(OtlpValueType::Type, string(is_alone ? weight.name : event.name + ":" + weight.name));
    type.add_int32(OtlpValueType::Unit, string(unit_word(weight.unit, event.name)));
  }
  void write_profile(pbf_builder<OtlpProfile>& profile, std::size_t event, std::size_t weight) {
    const ExportEvent& described = stacks_.events()[event];
    add_type(profile, OtlpProfile::SampleType, described, described.weights[weight]);
    std::string sample;
    stacks_.each([&](const ExportRow& row) {
      if (row.event != event || row.values[weight] == 0) return;
      sample.clear();
      pbf_builder<OtlpSample> one(sample);
      one.add_int32(OtlpSample::Stack, static_cast<std::int32_t>(row.stack + 1));
      const std::vector<std::int32_t>& labels = of_labels_[row.labels];
      one.add_packed_int32(OtlpSample::Attributes, labels.begin(), labels.end());
      const auto value = static_cast<std::int64_t>(
          std::min<std::uint64_t>(row.values[weight], std::numeric_limits<std::int64_t>::max()));
      one.add_packed_int64(OtlpSample::Values, &value, &value + 1);
      profile.add_message(OtlpProfile::Sample, sample);
    });
    if (stacks_.first_time() == 0) return;
    if (const std::int64_t offset = wall_clock_offset(session_); offset != 0)
      profile.add_fixed64(OtlpProfile::TimeUnixNano, static_cast<std::uint64_t>(std::max<std::int64_t>(
                                                         wall_time(stacks_.first_time(), offset), 0)));
    profile.add_uint64(OtlpProfile::DurationNano, stacks_.last_time() - stacks_.first_time());
  }

  void write_dictionary(std::string& bytes) {
    pbf_builder<OtlpDictionary> whole(bytes);
    whole.add_message(OtlpDictionary::Mapping, std::string());
    for (const ExportModule& module : code_.modules()) {
      std::vector<std::int32_t> attributes;
      if (const std::string id = module.module->build_id.hex(); !id.empty())
        attributes.push_back(text_attribute("process.executable.build_id.gnu", id));
      pbf_builder<OtlpMapping> one(whole, OtlpDictionary::Mapping);
      one.add_uint64(OtlpMapping::Start, module.start);
      one.add_uint64(OtlpMapping::Limit, module.end);
      one.add_int32(OtlpMapping::Filename, string(module.module->path));
      one.add_packed_int32(OtlpMapping::Attributes, attributes.begin(), attributes.end());
    }
    whole.add_message(OtlpDictionary::Location, std::string());
    for (std::uint32_t place = 0; place < code_.places().size(); ++place) write_location(whole, place);
    whole.add_message(OtlpDictionary::Function, std::string());
    for (const auto& [function, file] : functions_) {
      const ExportFunction& known = code_.functions()[function];
      pbf_builder<OtlpFunction> one(whole, OtlpDictionary::Function);
      one.add_int32(OtlpFunction::Name, string(code_.function_name(known)));
      one.add_int32(OtlpFunction::SystemName, string(code_.linker_name(known)));
      if (file != 0) one.add_int32(OtlpFunction::Filename, string(code_.texts()[file]));
    }
    whole.add_message(OtlpDictionary::Link, std::string());
    whole.add_message(OtlpDictionary::Stack, std::string());
    std::vector<std::int32_t> places;
    for (std::uint32_t stack = 0; stack < code_.stacks(); ++stack) {
      places.clear();
      for (const std::uint32_t place : code_.stack(stack))
        places.push_back(static_cast<std::int32_t>(place + 1));
      pbf_builder<OtlpStack> one(whole, OtlpDictionary::Stack);
      one.add_packed_int32(OtlpStack::Locations, places.begin(), places.end());
    }
    for (const std::string& attribute : attributes_) whole.add_message(OtlpDictionary::Attribute, attribute);
    for (std::uint32_t i = 0; i < strings_.size(); ++i)
      whole.add_string(OtlpDictionary::String, strings_[i].data(), strings_[i].size());
  }
  void write_location(pbf_builder<OtlpDictionary>& dictionary, std::uint32_t place) {
    const ExportPlace& known = code_.places()[place];
    pbf_builder<OtlpLocation> one(dictionary, OtlpDictionary::Location);
    if (known.module != 0) one.add_int32(OtlpLocation::Mapping, static_cast<std::int32_t>(known.module));
    one.add_uint64(OtlpLocation::Address, known.address);
    for (const std::uint32_t number : code_.lines_at(place)) {
      const ExportLine& line = code_.lines()[number];
      const auto [function, is_new] = by_function_.try_emplace(
          {line.function, line.file}, static_cast<std::int32_t>(functions_.size() + 1));
      if (is_new) functions_.emplace_back(line.function, line.file);
      pbf_builder<OtlpLine> its(one, OtlpLocation::Line);
      its.add_int32(OtlpLine::Function, function->second);
      if (line.line != 0) its.add_int64(OtlpLine::Line, line.line);
    }
  }

  Session& session_;
  ExportStacks& stacks_;
  ExportCode& code_;
  ExportOutput& out_;
  ExportTexts strings_;
  std::vector<std::string> attributes_;  // as bytes
  std::map<std::string, std::int32_t> by_attribute_;
  std::vector<std::vector<std::int32_t>> of_labels_;                // attributes, by label set
  std::vector<std::pair<std::uint32_t, std::uint32_t>> functions_;  // with their file
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int32_t> by_function_;
};

Result<Shown> show_otlp(Session& session, TextOutput& out, const ExportOptions& options) {
  return export_stacks(
      session, out, options, packing_of(options.reading.output),
      [&](ExportStacks& stacks, ExportOutput& to) { OtlpWriter(session, stacks, to).write(); });
}

}  // namespace

Result<cli::ExitStatus> export_otlp(const std::vector<std::string>& arguments) {
  constexpr ExportLabels kAll{true, true, true, true, true, true};
  return export_samples({.name = "otlp@1.11", .is_binary = true, .has_labels = true, .labels = kAll},
                        arguments, show_otlp);
}

}  // namespace tacho::report
