#include "report/views/script/script_filter.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace tacho::report {
namespace {

// perf takes whatever reads as a hexadecimal number for an address, with and without 0x.
std::optional<std::uint64_t> address_in(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  std::uint64_t address = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), address, 16);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return address;
}

bool contains(const std::vector<std::string>& list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

Result<std::optional<std::size_t>> find_event(std::string_view option, const std::string& wanted,
                                              const std::vector<std::string>& names) {
  if (wanted.empty()) return std::optional<std::size_t>();
  const auto row = std::ranges::find(names, wanted);
  if (row == names.end())
    return use_error(std::string(option) + ": there is no event '" + wanted + "'; tacho evlist lists them");
  return std::optional<std::size_t>(row - names.begin());
}

}  // namespace

ScriptFilter::ScriptFilter(ScriptFilterOptions options) : options_(std::move(options)) {
  for (const std::string& symbol : options_.symbols) {
    if (const auto address = address_in(symbol)) addresses_.push_back(*address);
  }
}

Result<> ScriptFilter::find_events(const std::vector<std::string>& names) {
  auto on = find_event("--switch-on", options_.switch_on, names);
  if (!on) return std::move(on.error());
  auto off = find_event("--switch-off", options_.switch_off, names);
  if (!off) return std::move(off.error());
  on_ = *on;
  off_ = *off;
  is_discarding_ = on_.has_value();
  return Done{};
}

bool ScriptFilter::has_wanted_symbol(const ResolvedSample& sample, const symbolize::Frame& frame) const {
  if (options_.symbols.empty()) return true;
  if (!frame.function.empty() && contains(options_.symbols, frame.function)) return true;
  if (frame.module == nullptr) return false;
  return std::ranges::any_of(addresses_, [&](std::uint64_t address) {
    const std::uint64_t ip = sample.raw->ip;
    return ip == address || (options_.range && ip >= address && ip - address < *options_.range);
  });
}

bool ScriptFilter::has_wanted_module(const symbolize::Frame& frame) const {
  if (options_.modules.empty()) return true;
  if (frame.module == nullptr) return false;
  return contains(options_.modules, frame.module->path) ||
         contains(options_.modules, frame.module->short_name);
}

bool ScriptFilter::is_on(std::size_t event) {
  if (on_ && is_discarding_) {
    if (event != *on_) return false;
    is_discarding_ = false;
    return options_.shows_switches;
  }
  if (off_ && !is_discarding_ && event == *off_) {
    is_discarding_ = true;
    return options_.shows_switches;
  }
  return !is_discarding_;
}

bool ScriptFilter::accepts(Session& session, const ResolvedSample& sample) {
  if (!options_.symbols.empty() || !options_.modules.empty()) {
    const symbolize::Frame& frame = session.frame(*sample.location);
    if (!has_wanted_symbol(sample, frame) || !has_wanted_module(frame)) return false;
  }
  return is_on(sample.event_index);
}

}  // namespace tacho::report
