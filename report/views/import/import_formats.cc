#include "report/views/import/import_formats.h"

#include <algorithm>
#include <initializer_list>

namespace tacho::report {
namespace {

constexpr std::size_t kLooksAhead = std::size_t{64} << 10;  // bytes
constexpr std::string_view kJsonBlanks = " \t\r\n";

std::string_view start_of_input(format::Bytes bytes) { return format::as_text(bytes).substr(0, kLooksAhead); }

bool looks_like_json(std::string_view text) {
  const auto first = text.find_first_not_of(kJsonBlanks);
  return first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
}

// Whether one of the keys, with its quotes, is in the first or the last part of a JSON text: what comes first
// differs between writers.
bool has_json_key(format::Bytes bytes, std::initializer_list<std::string_view> keys) {
  const std::string_view all = format::as_text(bytes);
  const std::string_view end = all.substr(all.size() - std::min(all.size(), kLooksAhead));
  const auto has = [](std::string_view text, std::string_view key) {
    for (auto at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
      const auto next = text.find_first_not_of(kJsonBlanks, at + key.size());
      if (next != std::string_view::npos && text[next] == ':') return true;
    }
    return false;
  };
  return looks_like_json(start_of_input(bytes)) && std::ranges::any_of(keys, [&](std::string_view key) {
           return has(start_of_input(bytes), key) || has(end, key);
         });
}

bool is_cpu_profile(format::Bytes bytes) {
  return has_json_key(bytes, {"\"nodes\"", "\"timeDeltas\"", "\"traceEvents\"", "\"ph\""});
}

bool is_speedscope(format::Bytes bytes) {
  return has_json_key(bytes, {"\"$schema\"", "\"shared\"", "\"profiles\"", "\"activeProfileIndex\""});
}

bool is_any_text(format::Bytes bytes) { return !bytes.empty(); }

constexpr ImportFormat kImportFormats[] = {
    {"cpuprofile", "CPU profile of Chrome and Node.js (.cpuprofile), also within a trace of Chrome",
     is_cpu_profile, import_cpu_profile},
    {"speedscope", "JSON of speedscope: sampled and evented profiles", is_speedscope, import_speedscope},
    {"pprof", "protocol buffer of pprof: all of its sample types, with labels", is_pprof, import_pprof},
    {"folded", "stacks and counts as text, a stack a line, root first", is_any_text, import_folded},
};

}  // namespace

std::span<const ImportFormat> import_formats() { return kImportFormats; }

}  // namespace tacho::report
