#include "record/events/pmu.h"

#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "format/file.h"
#include "record/events/leading_number.h"

namespace tacho::record {
namespace {

namespace fs = std::filesystem;

constexpr int kWordBits = 64;

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code code;
  for (fs::directory_iterator entry(folder, code), end; !code && entry != end; entry.increment(code))
    names.push_back(entry->path().filename());
  std::ranges::sort(names);
  return names;
}

std::optional<std::string> line_of(const std::string& path) {
  const auto bytes = format::read_file(path);
  if (!bytes) return std::nullopt;
  const std::string_view text = format::as_text(*bytes);
  return std::string(text.substr(0, text.find('\n')));
}

// "uncore_imc" stands for uncore_imc_0, uncore_imc_1 and so on.
bool is_member(std::string_view candidate, std::string_view family) {
  if (!candidate.starts_with(family)) return false;
  std::string_view rest = candidate.substr(family.size());
  if (rest.starts_with('_')) rest.remove_prefix(1);
  return std::ranges::all_of(rest, [](char letter) { return letter >= '0' && letter <= '9'; });
}

bool stands_for(const std::string& name, const std::string& candidate) {
  if (is_member(candidate, name) || is_member(candidate, "uncore_" + name)) return true;
  return name.find_first_of("*?[") != std::string::npos && fnmatch(name.c_str(), candidate.c_str(), 0) == 0;
}

}  // namespace

std::optional<PmuField> parse_pmu_field(std::string_view name, std::string_view text) {
  constexpr std::string_view kWords[] = {"config:", "config1:", "config2:"};
  PmuField field{std::string(name), 0, {}};
  const auto word =
      std::ranges::find_if(kWords, [text](std::string_view start) { return text.starts_with(start); });
  if (word == std::end(kWords)) return std::nullopt;
  field.word = static_cast<int>(word - std::begin(kWords));
  text.remove_prefix(word->size());
  for (;;) {
    const auto first = take_number(text);
    if (!first) return std::nullopt;
    auto last = first;
    if (text.starts_with('-')) {
      text.remove_prefix(1);
      last = take_number(text);
    }
    if (!last || *last < *first || *last >= kWordBits) return std::nullopt;
    field.bits.emplace_back(*first, *last);
    if (!text.starts_with(',')) break;
    text.remove_prefix(1);
  }
  if (!text.empty()) return std::nullopt;
  return field;
}

std::uint64_t largest_value(const PmuField& field) {
  int bits = 0;
  for (const auto& [first, last] : field.bits) bits += last - first + 1;
  return bits >= kWordBits ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
}

std::uint64_t placed(const PmuField& field, std::uint64_t value) {
  std::uint64_t word = 0;
  for (const auto& [first, last] : field.bits) {
    for (int bit = first; bit <= last; ++bit, value >>= 1) word |= (value & 1) << bit;
  }
  return word;
}

std::vector<std::string> Pmus::names() const { return names_in(folder_); }

std::optional<Pmu> Pmus::read(const std::string& name) const {
  const std::string folder = folder_ + "/" + name;
  const auto type = line_of(folder + "/type");
  if (!type) return std::nullopt;
  Pmu pmu{name, 0, {}, {}};
  const auto [end, code] = std::from_chars(type->data(), type->data() + type->size(), pmu.type);
  if (code != std::errc{}) return std::nullopt;
  for (const std::string& field : names_in(folder + "/format")) {
    const auto text = line_of(folder + "/format/" + field);
    auto parsed = text ? parse_pmu_field(field, *text) : std::nullopt;
    if (parsed) pmu.fields.push_back(std::move(*parsed));
  }
  for (const std::string& event : names_in(folder + "/events")) {
    if (event.find('.') != std::string::npos) continue;  // EVENT.scale, EVENT.unit
    if (auto terms = line_of(folder + "/events/" + event)) pmu.events.push_back({event, std::move(*terms)});
  }
  return pmu;
}

std::vector<Pmu> Pmus::matching(std::string_view name) const {
  std::vector<Pmu> found;
  for (const std::string& candidate : names()) {
    if (!stands_for(std::string(name), candidate)) continue;
    if (auto pmu = read(candidate)) found.push_back(std::move(*pmu));
  }
  return found;
}

std::optional<std::pair<Pmu, std::string>> Pmus::with_event(std::string_view event) const {
  if (event.empty() || event.find('/') != std::string_view::npos) return std::nullopt;
  for (const std::string& name : names()) {
    const std::string path = folder_ + "/" + name + "/events/" + std::string(event);
    const auto terms = event.find('.') == std::string_view::npos ? line_of(path) : std::nullopt;
    if (!terms) continue;
    if (auto pmu = read(name)) return std::pair(std::move(*pmu), *terms);
  }
  return std::nullopt;
}

}  // namespace tacho::record
