#include "report/capture_candidates.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "format/container/content_classes.h"
#include "report/decode/payload.h"
#include "report/profile/sort_keys.h"
#include "report/query/expressions.h"

namespace tacho::report {
namespace {

// Between the names of an expression.
constexpr std::string_view kOperators = " !()&|=<>~+-*/%\"'";

bool is_of_any(const cli::ValuePlace& place, std::initializer_list<std::string_view> names) {
  return std::ranges::any_of(names, [&place](std::string_view name) { return place.is_of(name); });
}

// Options whose values are names or numbers of samples, by one spelling each.
struct SampleNameRow {
  std::string_view option;
  SampleName name;
};
constexpr SampleNameRow kSampleNames[] = {{"--comm", SampleName::Comm},
                                          {"--pid", SampleName::Process},
                                          {"--tid", SampleName::Thread},
                                          {"--dso", SampleName::Module},
                                          {"--symbol", SampleName::Function}};

SampleName sample_name_at(const cli::ValuePlace& place) {
  const auto row = std::ranges::find_if(
      kSampleNames, [&place](const SampleNameRow& each) { return place.is_of(each.option); });
  return row == std::end(kSampleNames) ? SampleName::None : row->name;
}

// Collects the names of samples, each once, as far as the time of a completion goes.
class NamesOfSamples : public Sink {
 public:
  NamesOfSamples(SampleName name, Resolver& resolver) : name_(name), resolver_(&resolver) {}
  MergeBy merge_by() const override { return MergeBy::Function; }
  bool takes_non_samples() const override { return false; }
  Flow on_sample(const ResolvedSample& sample) override {
    if (name_ == SampleName::Comm)
      add(std::string(sample.comm), "");
    else if (name_ == SampleName::Process)
      add(std::to_string(sample.pid()), std::string(sample.comm));
    else if (name_ == SampleName::Thread)
      add(std::to_string(sample.tid()), std::string(sample.comm));
    else if (seen_.insert(sample.location_id).second)
      add_location(*sample.location);
    return std::chrono::steady_clock::now() < end_ ? Flow::Continue : Flow::Stop;
  }
  std::vector<cli::Candidate> candidates() const {
    std::vector<cli::Candidate> out;
    for (const auto& [word, help] : names_) out.push_back({word, help});
    return out;
  }

 private:
  static constexpr std::chrono::milliseconds kLongest{500};

  // A list cannot have a name with a comma in it.
  void add(std::string word, const std::string& help) {
    if (!word.empty() && word.find(',') == std::string::npos) names_.try_emplace(std::move(word), help);
  }
  void add_location(const Location& location) {
    if (name_ == SampleName::Function) {
      const symbolize::Frame& frame = resolver_->frame(location);
      add(std::string(frame.function), frame.module ? std::string(frame.module->short_name) : "");
    } else if (location.mapping != nullptr) {
      add(std::string(location.mapping->module->short_name), std::string(location.mapping->module->path));
    }
  }

  SampleName name_;
  Resolver* resolver_;
  std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::now() + kLongest;
  std::map<std::string, std::string> names_;
  std::set<LocationId> seen_;
};

void add_own_values(std::vector<cli::Candidate>& to) {
  for (const OwnValue& value : own_values()) to.push_back({std::string(value.name), "of every sample"});
}

}  // namespace

bool print_fixed_values(const cli::ValuePlace& place) {
  if (place.value == "CLASSES") {
    std::vector<cli::Candidate> classes{{"all"}};
    for (const format::ContentRow& row : format::kContents)
      classes.push_back({std::string(row.name), std::string(row.what)});
    cli::print_candidates(cli::last_element(place), classes);
    return true;
  }
  const std::vector<cli::Choices> choices{
      {"--percentage", {"relative", "absolute"}},
      {"--call-graph",
       {"graph", "fractal", "flat", "folded", "none", "caller", "callee", "function", "address", "srcline",
        "percent", "period", "count"}},
      {"--disassembler-style", {"att", "intel"}},
      {"--percent-type", {"local-period", "local-hits", "global-period", "global-hits"}},
      {"--stdio-color", {"always", "never", "auto"}},
      {"--width-of", {"after", "before", "larger", "common"}},
      {"--to", {"file", "pipe"}}};
  return cli::print_choices(place, choices);
}

std::optional<NamedValues> named_values(const cli::ValuePlace& place) {
  NamedValues out{cli::last_element(place), {}};
  if (place.value == "EXPR") {
    out.place = cli::last_element(place, kOperators);
    out.has_fields = true;
    add_own_values(out.always);
  } else if (place.value == "KEYS" || place.value == "COLUMNS") {
    out.has_fields = true;
    for (const SortKey* key : sort_keys())
      out.always.push_back({std::string(key->name), std::string(key->help)});
  } else if (is_of_any(place, {"--by", "--key", "--columns", "--table-by", "--table-columns", "--field"}) &&
             place.value != "TEXT") {
    out.has_fields = true;
    add_own_values(out.always);
  } else if (is_of_any(place, {"--weight"})) {
    out.has_fields = true;
    out.always = {{"period"}, {"samples"}};
  } else if (place.value.starts_with("EVENT") || place.value == "FIRST,SECOND" ||
             is_of_any(place, {"--event", "--events"})) {
    out.has_events = true;
  } else if (const SampleName name = sample_name_at(place); name != SampleName::None) {
    out.of_samples = name;
  } else {
    return std::nullopt;
  }
  return out;
}

std::string capture_before(const cli::ValuePlace& place) {
  const auto input = std::ranges::find(place.given.rbegin(), place.given.rend(), "-i,--input",
                                       &std::pair<std::string, std::string>::first);
  if (input != place.given.rend()) return input->second;
  return place.words.empty() ? "perf.data" : place.words.front();
}

std::vector<cli::Candidate> names_of_capture(Session& session, const NamedValues& values) {
  std::vector<cli::Candidate> out;
  std::set<std::string> seen;
  for (const cli::Candidate& known : values.always) seen.insert(known.word);
  const auto add = [&](const std::string& word, const std::string& help) {
    if (seen.insert(word).second) out.push_back({word, help});
  };
  EventSchemas schemas(session.events(), session.features());
  for (std::size_t i = 0; i < session.events().size(); ++i) {
    const std::string& event = session.events()[i].name;
    if (values.has_events) add(event, "");
    const PayloadSchema* const schema = values.has_fields ? schemas.schema_of(i) : nullptr;
    if (schema == nullptr) continue;
    for (const PayloadField& field : schema->fields)
      if (field.role != "stack") add(field.name, field.unit.empty() ? event : event + ", " + field.unit);
  }
  if (values.of_samples != SampleName::None) {
    NamesOfSamples names(values.of_samples, session.resolver());
    session.run(names);
    std::ranges::move(names.candidates(), std::back_inserter(out));
  }
  return out;
}

}  // namespace tacho::report
