#include "record/probe_listing.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "bpf/function_arguments.h"
#include "cli/nearest.h"
#include "format/file.h"
#include "format/printable.h"
#include "record/events/probe_arguments.h"
#include "record/host/elf_places.h"
#include "record/host/kernel_functions.h"
#include "record/host/source_name.h"
#include "record/host/user_arguments.h"
#include "record/json_line.h"

namespace tacho::record {
namespace {

using format::printable;

// Debugging information is read once for each function.
constexpr std::size_t kMostExplained = 20;

struct Place {
  std::string name, details;
  std::string in_source = {};  // as a C++ source calls it; empty: as it is
};

const ProbeRow* row_of(std::string_view pattern) {
  const std::string_view word = pattern.substr(0, pattern.find(':'));
  const auto row = std::ranges::find(kProbes, word, &ProbeRow::word);
  return row == std::end(kProbes) || word.size() == pattern.size() ? nullptr : &*row;
}

bool matches(const std::string& pattern, const std::string& name) {
  if (pattern.empty()) return true;
  if (pattern.find_first_of("*?[") == std::string::npos) return name.find(pattern) != std::string::npos;
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

// An exact name is that one alone.
void choose(std::vector<Place>& places, const std::string& pattern) {
  std::ranges::sort(places, {}, &Place::name);
  const auto same_name = [](const Place& a, const Place& b) { return a.name == b.name; };
  places.erase(std::unique(places.begin(), places.end(), same_name), places.end());
  const auto exact = std::ranges::find(places, pattern, &Place::name);
  if (exact != places.end()) {
    places = {*exact};
    return;
  }
  std::erase_if(places, [&](const Place& one) {
    return !matches(pattern, one.name) && (one.in_source.empty() || !matches(pattern, one.in_source));
  });
}

Error nothing_matches(const std::string& where, const std::string& pattern, std::vector<std::string> names) {
  return use_error(names.empty() ? where + " has none"
                                 : fmt::format("{} has none that matches '{}'{}", where, pattern,
                                               cli::suggestion(pattern, names)));
}

std::string signature_of(const std::string& function) {
  const auto arguments = bpf::kernel_function_arguments(function);
  if (!arguments) return arguments.error().what;
  std::string text;
  for (const bpf::FunctionArgument& one : *arguments) text += (text.empty() ? "" : ", ") + one.name;
  return text.empty() ? "no arguments" : text;
}

// What there is, in the words that record refuses an unknown name with.
std::string signature_of(const std::string& path, format::Bytes file, const std::string& function) {
  const auto offset = function_offset(file, function);
  if (!offset) return offset.error().what;
  const std::vector<ArgumentRequest> all{{"what", "?", ""}};
  const auto told = user_arguments({path, *offset, function}, all, {});
  return told ? std::string() : told.error().what;
}

Result<std::vector<Place>> kernel_places(const std::string& pattern) {
  const auto kallsyms = format::read_file("/proc/kallsyms");
  if (!kallsyms) return kallsyms.error();
  std::vector<Place> places;
  std::vector<std::string> names = kernel_function_names(format::as_text(*kallsyms));
  for (const std::string& name : names) places.push_back({name, {}});
  choose(places, pattern);
  if (places.empty()) return nothing_matches("the kernel", pattern, std::move(names));
  return places;
}

Result<std::vector<Place>> marker_places(const std::string& path, format::Bytes file,
                                         const std::string& pattern) {
  const auto markers = usdt_places(file);
  if (!markers) return Error{markers.error()}.in(path);
  std::vector<Place> places;
  std::vector<std::string> names;
  for (const UsdtPlace& marker : *markers) {
    const std::size_t count = marker_arguments(marker.arguments).size();
    places.push_back(
        {marker.provider + ":" + marker.name,
         count == 0 ? "no arguments" : fmt::format("arg1 to arg{}: {}", count, marker.arguments)});
    names.push_back(places.back().name);
  }
  choose(places, pattern);
  if (places.empty()) return nothing_matches(path + ": it", pattern, std::move(names));
  return places;
}

Result<std::vector<Place>> function_places(const std::string& path, format::Bytes file,
                                           const std::string& pattern) {
  auto names = function_names(file);
  if (!names) return std::move(names.error()).in(path);
  std::vector<Place> places;
  for (const std::string& name : *names) places.push_back({name, {}, source_name(name).value_or("")});
  choose(places, pattern);
  if (places.empty()) return nothing_matches(path + ": it", pattern, std::move(*names));
  return places;
}

void explain(std::vector<Place>& places, const ProbeRow& row, const std::string& path, format::Bytes file) {
  if (row.at_return || places.size() > kMostExplained) return;
  for (Place& one : places) {
    if (row.kind == ProbeKind::Kernel) one.details = signature_of(one.name);
    if (row.kind == ProbeKind::User) one.details = signature_of(path, file, one.name);
  }
}

}  // namespace

bool asks_for_probes(std::string_view pattern) { return row_of(pattern) != nullptr; }

Result<std::string> list_probes(const ListOptions& options) {
  if (!options.kinds.empty())
    return use_error(
        fmt::format("'{}' lists places for probes: leave out '{}'", options.pattern, options.kinds.front()));
  const ProbeRow& row = *row_of(options.pattern);
  std::string rest = options.pattern.substr(row.word.size() + 1), path;
  std::vector<std::byte> file;
  if (row.kind != ProbeKind::Kernel) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    path = rest.substr(0, colon);
    rest.erase(0, std::min(colon + 1, rest.size()));
    auto bytes = format::read_file(path);
    if (!bytes) return use_error(bytes.error().what);
    file = std::move(*bytes);
  }
  auto places = row.kind == ProbeKind::Kernel   ? kernel_places(rest)
                : row.kind == ProbeKind::Marker ? marker_places(path, file, rest)
                                                : function_places(path, file, rest);
  if (!places) return std::move(places.error());
  if (options.fields) explain(*places, row, path, file);
  std::string out;
  const std::string prefix = std::string(row.word) + ":" + (path.empty() ? "" : path + ":");
  const std::string_view kind = row.kind == ProbeKind::Marker ? "Marker"
                                : row.at_return               ? "Return of a function"
                                                              : "Function";
  for (const Place& one : *places) {
    if (options.json) {
      JsonLine json;
      json.text("name", prefix + one.name);
      json.text("kind", kind);
      if (!one.in_source.empty()) json.text("source_name", one.in_source);
      if (options.fields && !one.details.empty()) json.text("arguments", one.details);
      out += json.finished();
      continue;
    }
    out += fmt::format("  {:<50} [{}]\n", printable(prefix + one.name), kind);
    if (!one.in_source.empty()) out += fmt::format("      {}\n", printable(one.in_source));
    if (options.fields && !one.details.empty()) out += fmt::format("      {}\n", printable(one.details));
  }
  return out;
}

}  // namespace tacho::record
