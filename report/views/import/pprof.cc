// profile.proto of github.com/google/pprof: each sample type is an event, each value that is not 0 a sample.
// Two passes over the message, since its tables may come after the samples.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <protozero/pbf_reader.hpp>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/base/digest.h"
#include "format/base/printable.h"
#include "format/base/seeded_hash.h"
#include "report/views/import/import_formats.h"
#include "report/views/import/imported_capture.h"

namespace tacho::report {
namespace {

using protozero::data_view;
using protozero::pbf_reader;

// Numbers of fields, by message.
namespace in_profile {
enum : protozero::pbf_tag_type {
  kSampleType = 1,
  kSample,
  kMapping,
  kLocation,
  kFunction,
  kString,
  kTime = 9,
  kDuration,
  kPeriodType,
  kPeriod,
  kComment
};
}
namespace in_type {
enum : protozero::pbf_tag_type { kType = 1, kUnit };
}
namespace in_sample {
enum : protozero::pbf_tag_type { kLocation = 1, kValue, kLabel };
}
namespace in_label {
enum : protozero::pbf_tag_type { kKey = 1, kText, kNumber, kUnit };
}
namespace in_mapping {
enum : protozero::pbf_tag_type { kId = 1, kStart, kLimit, kOffset, kFile, kBuildId };
}
namespace in_location {
enum : protozero::pbf_tag_type { kId = 1, kMapping, kAddress, kLine };
}
namespace in_line {
enum : protozero::pbf_tag_type { kFunction = 1, kLine };
}
namespace in_function {
enum : protozero::pbf_tag_type { kId = 1, kName, kSystemName, kFile };
}

constexpr std::size_t kMostLabels = 32;
constexpr std::uint32_t kLongestLabel = 256;                 // bytes
constexpr std::size_t kMostComments = std::size_t{1} << 20;  // bytes
constexpr std::uint64_t kFirstKernelAddress = std::uint64_t{1} << 63;

std::string_view text_of_view(const data_view& view) { return {view.data(), view.size()}; }
data_view data_of(format::Bytes bytes) {
  const std::string_view text = format::as_text(bytes);
  return {text.data(), text.size()};
}
bool has_message(const pbf_reader& in) {
  return in.wire_type() == protozero::pbf_wire_type::length_delimited;
}

// Calls take(value) for a repeated number, packed or not.
template <class Take>
void each_number(pbf_reader& in, Take&& take) {
  if (in.wire_type() == protozero::pbf_wire_type::varint) return take(in.get_uint64());
  if (in.wire_type() != protozero::pbf_wire_type::length_delimited) return in.skip();
  for (const std::uint64_t value : in.get_packed_uint64()) take(value);
}

std::string unit_of_word(std::string_view word) {
  constexpr std::pair<std::string_view, std::string_view> kUnits[] = {
      {"nanoseconds", "ns"}, {"microseconds", "us"}, {"milliseconds", "ms"}, {"seconds", "s"}, {"count", ""}};
  const auto known = std::ranges::find(kUnits, word, &std::pair<std::string_view, std::string_view>::first);
  return std::string(known == std::end(kUnits) ? word : known->second);
}

template <class Value>
using ById = std::unordered_map<std::uint64_t, Value, format::SeededHash>;

class PprofImport {
 public:
  PprofImport(const ImportTask& task, format::Diagnostics& diagnostics)
      : task_(task), capture_(task.source, format::digest(task.bytes), diagnostics) {}

  Result<> run(const CopyOutput& output) {
    read_tables();
    if (types_.empty()) return Error{"the profile has no sample types"};
    each_field(in_profile::kSample, [this](pbf_reader sample) { see_labels(sample); });
    place_modules();
    make_frames();
    if (auto begun = capture_.begin_samples(output, layout()); !begun) return begun;
    Result<> added = Done{};
    each_field(in_profile::kSample, [&](pbf_reader sample) {
      if (added) added = add_sample(sample);
    });
    if (!added) return added;
    note_losses();
    return capture_.finish(output);
  }

 private:
  struct TypeRow {
    std::uint64_t type = 0, unit = 0;  // texts
  };
  struct MappingRow {
    std::uint64_t start = 0, limit = 0, offset = 0, file = 0, build_id = 0;
    std::size_t module = 0;  // in modules_
  };
  struct FunctionRow {
    std::uint64_t name = 0, file = 0;
  };
  // Mappings of one file, and its addresses that have a location.
  struct FileModule {
    std::uint64_t first = std::numeric_limits<std::uint64_t>::max(), last = 0;
    std::optional<ImportedModuleId> id;
  };
  struct LabelRow {
    std::uint64_t key = 0;
    bool has_text = false;
    std::size_t longest = 0;
    std::uint64_t unit = 0;
  };
  struct Place {
    std::size_t module = 0;
    std::uint64_t address = 0;
  };

  pbf_reader whole() const { return pbf_reader(data_of(task_.bytes)); }
  std::string_view text(std::uint64_t number) const {
    return number < strings_.size() ? strings_[number] : std::string_view();
  }
  template <class Take>
  void each_field(protozero::pbf_tag_type tag, Take&& take) const {
    for (pbf_reader in = whole(); in.next();) {
      if (in.tag() == tag && has_message(in))
        take(in.get_message());
      else
        in.skip();
    }
  }
  // The numbers of a message in the order of `fields`; other fields are skipped.
  template <std::size_t kCount>
  static void read_numbers(pbf_reader in,
                           const std::pair<protozero::pbf_tag_type, std::uint64_t*> (&fields)[kCount]) {
    while (in.next()) {
      const auto* const field =
          std::ranges::find(fields, in.tag(), &std::pair<protozero::pbf_tag_type, std::uint64_t*>::first);
      if (field == std::end(fields) || in.wire_type() != protozero::pbf_wire_type::varint)
        in.skip();
      else
        *field->second = in.get_uint64();
    }
  }

  void read_tables() {
    for (pbf_reader in = whole(); in.next();) {
      const bool has_number = in.tag() == in_profile::kTime || in.tag() == in_profile::kDuration ||
                              in.tag() == in_profile::kPeriod;
      const bool is_known = has_number ? in.wire_type() == protozero::pbf_wire_type::varint
                                       : has_message(in) || in.tag() == in_profile::kComment;
      if (!is_known) {
        in.skip();
        continue;
      }
      switch (in.tag()) {
        case in_profile::kSampleType: {
          TypeRow row;
          read_numbers(in.get_message(), {{in_type::kType, &row.type}, {in_type::kUnit, &row.unit}});
          types_.push_back(row);
          break;
        }
        case in_profile::kMapping: {
          MappingRow row;
          std::uint64_t id = 0;
          read_numbers(in.get_message(), {{in_mapping::kId, &id},
                                          {in_mapping::kStart, &row.start},
                                          {in_mapping::kLimit, &row.limit},
                                          {in_mapping::kOffset, &row.offset},
                                          {in_mapping::kFile, &row.file},
                                          {in_mapping::kBuildId, &row.build_id}});
          mappings_.try_emplace(id, row);
          break;
        }
        case in_profile::kFunction: {
          FunctionRow row;
          std::uint64_t id = 0;
          read_numbers(
              in.get_message(),
              {{in_function::kId, &id}, {in_function::kName, &row.name}, {in_function::kFile, &row.file}});
          functions_.try_emplace(id, row);
          break;
        }
        case in_profile::kLocation:
          locations_.push_back(in.get_view());
          break;
        case in_profile::kString:
          strings_.push_back(text_of_view(in.get_view()));
          break;
        case in_profile::kPeriodType:
          read_numbers(in.get_message(),
                       {{in_type::kType, &period_type_.type}, {in_type::kUnit, &period_type_.unit}});
          break;
        case in_profile::kPeriod:
          period_ = in.get_uint64();
          break;
        case in_profile::kTime:
          facts_.begin = positive(in.get_uint64());
          break;
        case in_profile::kDuration:
          facts_.length = positive(in.get_uint64());
          break;
        case in_profile::kComment:
          each_number(in, [this](std::uint64_t number) { comments_.push_back(number); });
          break;
        default:
          in.skip();
      }
    }
  }

  // A number of ns, which is signed there; one below 0 is unknown.
  static std::uint64_t positive(std::uint64_t number) {
    return number > std::uint64_t{std::numeric_limits<std::int64_t>::max()} ? 0 : number;
  }
  // The texts of its comments. A hostile profile may name one text many times, so they are bounded.
  std::vector<std::string> comments() const {
    std::vector<std::string> lines;
    std::size_t bytes = 0;
    for (const std::uint64_t number : comments_) {
      if (text(number).size() > kMostComments) continue;
      std::string line = format::printable(text(number));
      bytes += line.size() + 1;
      if (bytes > kMostComments) break;
      lines.push_back(std::move(line));
    }
    return lines;
  }

  // The place of a location in a module's file; nothing: it has no address there.
  std::optional<Place> place_of(std::uint64_t mapping_id, std::uint64_t address) const {
    const auto mapping = mappings_.find(mapping_id);
    if (address == 0 || mapping == mappings_.end() || text(mapping->second.file).empty()) return std::nullopt;
    const MappingRow& row = mapping->second;
    if (address < row.start || (row.limit != 0 && address >= row.limit)) return std::nullopt;
    if (address >= kFirstKernelAddress) return Place{row.module, address};
    const std::uint64_t offset = address - row.start + row.offset;
    if (offset < row.offset || offset >= kFirstKernelAddress) return std::nullopt;
    return Place{row.module, offset};
  }

  void place_modules() {
    std::map<std::pair<std::string_view, std::string_view>, std::size_t> known;  // by path and build id
    std::vector<std::pair<std::string_view, std::string_view>> names;
    for (auto& [id, row] : mappings_) {
      const auto [module, is_new] = known.try_emplace({text(row.file), text(row.build_id)}, names.size());
      if (is_new) names.push_back(module->first);
      row.module = module->second;
    }
    modules_.resize(names.size());
    for (const data_view& view : locations_) {
      std::uint64_t mapping = 0, address = 0;
      read_numbers(pbf_reader(view), {{in_location::kMapping, &mapping}, {in_location::kAddress, &address}});
      const auto place = place_of(mapping, address);
      if (!place) continue;
      FileModule& module = modules_[place->module];
      module.first = std::min(module.first, place->address);
      module.last = std::max(module.last, place->address);
    }
    for (std::size_t i = 0; i < modules_.size(); ++i) {
      FileModule& module = modules_[i];
      const auto id = format::BuildId::from_hex(names[i].second).value_or(format::BuildId());
      module.id = capture_.placed_module(names[i].first, id, module.first, module.last);
    }
  }

  void make_frames() {
    std::set<std::pair<std::size_t, std::uint64_t>> taken;  // places
    std::vector<ImportedLine> lines;
    for (const data_view& view : locations_) {
      std::uint64_t id = 0, mapping = 0, address = 0;
      std::string_view file;
      lines.clear();
      read_numbers(
          pbf_reader(view),
          {{in_location::kId, &id}, {in_location::kMapping, &mapping}, {in_location::kAddress, &address}});
      for (pbf_reader in(view); in.next(in_location::kLine, protozero::pbf_wire_type::length_delimited);) {
        std::uint64_t function_id = 0, line = 0;
        read_numbers(in.get_message(), {{in_line::kFunction, &function_id}, {in_line::kLine, &line}});
        const auto function = functions_.find(function_id);
        if (function == functions_.end()) continue;
        file = text(function->second.file);
        lines.push_back({.function = text(function->second.name),
                         .file = file,
                         .line = static_cast<std::uint32_t>(std::min<std::uint64_t>(line, kMostLine))});
      }
      const auto place = place_of(mapping, address);
      const auto module = place ? modules_[place->module].id : std::nullopt;
      ImportedFrameId frame{};
      if (module && taken.emplace(place->module, place->address).second) {
        frame = capture_.add_frame_at(*module, place->address, lines);
      } else {
        const std::string shown = fmt::format("0x{:x}", address);
        if (lines.empty()) lines.push_back({.function = shown, .file = {}});
        const auto row = mappings_.find(mapping);
        const std::string_view path = row == mappings_.end() ? std::string_view() : text(row->second.file);
        frame = capture_.add_frame(capture_.named_module(path.empty() ? file : path), lines);
      }
      frames_.try_emplace(id, frame);
    }
  }

  struct Label {
    std::uint64_t key = 0, text = 0, number = 0, unit = 0;
  };
  template <class Take>
  static void each_label(pbf_reader sample, Take&& take) {
    while (sample.next(in_sample::kLabel, protozero::pbf_wire_type::length_delimited)) {
      Label label;
      read_numbers(sample.get_message(), {{in_label::kKey, &label.key},
                                          {in_label::kText, &label.text},
                                          {in_label::kNumber, &label.number},
                                          {in_label::kUnit, &label.unit}});
      take(label);
    }
  }
  // A number, also one that is written as text.
  std::optional<std::uint32_t> number_in(const Label& label) const {
    const std::string_view digits = text(label.text);
    if (digits.empty()) return static_cast<std::uint32_t>(label.number);
    std::uint32_t number = 0;
    const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (failed != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
    return number;
  }
  // The facts that records have fields for.
  bool is_of_record(const Label& label) const {
    const std::string_view key = text(label.key);
    if (key == "comm") return true;
    return (key == "pid" || key == "tid" || key == "cpu") && number_in(label);
  }

  void see_labels(pbf_reader sample) {
    each_label(sample, [this](const Label& label) {
      const std::string_view key = text(label.key);
      if (is_of_record(label)) {
        has_cpus_ |= key == "cpu";
        if (key == "pid" || key == "tid") pids_.insert(*number_in(label));
        return;
      }
      const auto [known, is_new] = by_key_.try_emplace(key, labels_.size());
      if (is_new && labels_.size() < kMostLabels) labels_.push_back({.key = label.key});
      if (known->second >= labels_.size()) return;
      LabelRow& row = labels_[known->second];
      row.has_text |= label.text != 0;
      row.longest = std::max(row.longest, text(label.text).size());
      if (row.unit == 0) row.unit = label.unit;
    });
  }

  ImportedLayout layout() {
    ImportedLayout layout{.events = {},
                          .labels = {},
                          .has_times = false,
                          .has_cpus = has_cpus_,
                          .facts = facts_,
                          .pids = pids_};
    layout.facts.comments = comments();
    std::set<std::string> names;
    for (const TypeRow& type : types_) {
      std::string name(text(type.type).empty() ? std::string_view("samples") : text(type.type));
      if (!names.insert(name).second) {
        name += fmt::format("#{}", layout.events.size() + 1);
        names.insert(name);
      }
      const bool is_period = type.type == period_type_.type && type.unit == period_type_.unit;
      layout.events.push_back({.name = std::move(name),
                               .unit = unit_of_word(text(type.unit)),
                               .sample_period = is_period && period_ > 0 ? period_ : 1});
    }
    for (const LabelRow& row : labels_) {
      std::string name(text(row.key).empty() ? std::string_view("label") : text(row.key));
      if (!names.insert(name).second) name += "_label";
      const auto longest = static_cast<std::uint32_t>(std::min<std::size_t>(row.longest, kLongestLabel));
      layout.labels.push_back({.name = std::move(name),
                               .unit = row.has_text ? std::string() : unit_of_word(text(row.unit)),
                               .text_bytes = row.has_text ? std::max(longest, 1U) : 0});
    }
    return layout;
  }

  Result<> add_sample(pbf_reader in) {
    stack_.clear();
    values_.clear();
    std::optional<std::uint64_t> unknown;
    pbf_reader sample = in;
    while (sample.next()) {
      if (sample.tag() == in_sample::kLocation)
        each_number(sample, [&](std::uint64_t id) {
          const auto frame = frames_.find(id);
          if (frame == frames_.end())
            unknown = id;
          else
            stack_.push_back(frame->second);
        });
      else if (sample.tag() == in_sample::kValue)
        each_number(sample,
                    [this](std::uint64_t value) { values_.push_back(static_cast<std::int64_t>(value)); });
      else
        sample.skip();
    }
    ++samples_;
    if (unknown)
      return Error{
          fmt::format("sample {} has location {}, which the profile does not list", samples_, *unknown)};
    if (values_.size() != types_.size())
      return Error{fmt::format("sample {} has {} values, and the profile has {} sample types", samples_,
                               values_.size(), types_.size())};
    return add_values(in);
  }

  Result<> add_values(pbf_reader in) {
    ImportedSample sample{.thread = {}, .frames = stack_};
    label_values_.assign(labels_.size(), {});
    label_is_set_.assign(labels_.size(), false);
    label_texts_.resize(labels_.size());
    each_label(in, [&](const Label& label) { take_label(label, sample); });
    sample.labels = label_values_;
    if (task_.comm) sample.thread.comm = *task_.comm;
    for (std::size_t event = 0; event < values_.size(); ++event) {
      if (values_[event] < 0) ++negative_;
      if (values_[event] <= 0) continue;
      sample.event = event;
      sample.weight = static_cast<std::uint64_t>(values_[event]);
      if (auto added = capture_.add_sample(sample); !added) return added;
    }
    return Done{};
  }

  void take_label(const Label& label, ImportedSample& sample) {
    const std::string_view key = text(label.key);
    if (is_of_record(label)) {
      if (key == "comm") sample.thread.comm = text(label.text);
      if (key == "pid") sample.thread.pid = number_in(label);
      if (key == "tid") sample.thread.tid = number_in(label);
      if (key == "cpu") sample.cpu = *number_in(label);
      return;
    }
    const std::size_t number = by_key_.at(key);
    if (number >= labels_.size()) {
      ++labels_left_out_;
      return;
    }
    if (label_is_set_[number]) {
      ++further_values_;
      return;
    }
    label_is_set_[number] = true;
    ImportedLabelValue& value = label_values_[number];
    value.text = text(label.text);
    value.number = static_cast<std::int64_t>(label.number);
    if (value.text.size() > kLongestLabel) ++cut_labels_;
    if (!labels_[number].has_text || label.text != 0) return;
    label_texts_[number] = fmt::format("{}", value.number);
    value.text = label_texts_[number];
  }

  void note_losses() {
    const auto note = [this](std::uint64_t count, std::string_view what) {
      if (count > 0)
        capture_.diagnostics().add_line(format::Damage::Note, fmt::format("{}: {}", what, count));
    };
    note(negative_, "values below 0 are left out");
    note(cut_labels_, fmt::format("labels are cut after {} bytes", kLongestLabel));
    note(labels_left_out_, fmt::format("labels of further keys than {} are left out", kMostLabels));
    note(further_values_, "labels with a key that their sample has already are left out");
  }

  static constexpr std::uint32_t kMostLine = std::numeric_limits<std::uint32_t>::max();

  const ImportTask& task_;
  ImportedCapture capture_;
  std::vector<TypeRow> types_;
  TypeRow period_type_;
  std::uint64_t period_ = 0;
  ImportedFacts facts_;                  // but for comments
  std::vector<std::uint64_t> comments_;  // texts
  std::vector<std::string_view> strings_;
  std::map<std::uint64_t, MappingRow> mappings_;  // in an order that is always the same
  ById<FunctionRow> functions_;
  std::vector<data_view> locations_;
  std::vector<FileModule> modules_;
  ById<ImportedFrameId> frames_;
  std::unordered_map<std::string_view, std::size_t, format::SeededTextHash> by_key_;  // of labels
  std::vector<LabelRow> labels_;
  bool has_cpus_ = false;
  PidSet pids_;

  std::vector<ImportedFrameId> stack_;
  std::vector<std::int64_t> values_;
  std::vector<ImportedLabelValue> label_values_;
  std::vector<bool> label_is_set_;
  std::vector<std::string> label_texts_;  // numbers of labels that have texts too
  std::uint64_t samples_ = 0, negative_ = 0, cut_labels_ = 0, labels_left_out_ = 0, further_values_ = 0;
};

}  // namespace

bool is_pprof(format::Bytes bytes) {
  constexpr protozero::pbf_tag_type kLastField = 15;
  if (bytes.empty()) return false;
  if (std::ranges::find(bytes, std::byte{}) != bytes.end()) return true;  // no text
  try {
    for (pbf_reader in(data_of(bytes)); in.next(); in.skip())
      if (in.tag() > kLastField) return false;
  } catch (const protozero::exception&) {
    return false;
  }
  return true;
}

Result<> import_pprof(const ImportTask& task, const CopyOutput& output, format::Diagnostics& diagnostics) {
  try {
    return PprofImport(task, diagnostics).run(output);
  } catch (const protozero::exception& damage) {
    return Error{std::string("no profile of pprof: ") + damage.what()};
  }
}

}  // namespace tacho::report
