#include "report/samples/name_filter.h"

#include <algorithm>
#include <charconv>
#include <optional>

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

}  // namespace

NameFilter::NameFilter(const Filter& filter, Resolver& resolver, Sink& sink)
    : filter_(&filter), resolver_(&resolver), sink_(&sink) {
  for (const std::string& symbol : filter.symbols) {
    if (const auto address = address_in(symbol)) addresses_.push_back(*address);
  }
}

bool NameFilter::has_wanted_address(std::uint64_t ip) const {
  return std::ranges::any_of(addresses_, [&](std::uint64_t address) {
    return ip == address || (filter_->symbol_range && ip >= address && ip - address < *filter_->symbol_range);
  });
}

NameFilter::Answer NameFilter::ask(const Location& location) {
  const symbolize::Frame& frame = resolver_->frame(location);
  const symbolize::Module* const module = frame.module;
  if (!filter_->dsos.empty() &&
      (!module || !(contains(filter_->dsos, module->path) || contains(filter_->dsos, module->short_name))))
    return Answer::No;
  if (frame.function.find(filter_->symbol_part) == std::string_view::npos) return Answer::No;
  if (filter_->symbols.empty()) return Answer::Yes;
  if (!frame.function.empty() && contains(filter_->symbols, frame.function)) return Answer::Yes;
  // Processes that run one file at several addresses share a place, so each sample's own address is asked
  // for.
  return module != nullptr && !addresses_.empty() ? Answer::ByAddress : Answer::No;
}

Sink::Flow NameFilter::on_sample(const ResolvedSample& sample) {
  Answer& known = answers_[sample.location->number];
  if (known == Answer::NotAsked) known = ask(*sample.location);
  const Answer answer = known;
  const bool is_wanted =
      answer == Answer::Yes || (answer == Answer::ByAddress && has_wanted_address(sample.raw->ip));
  return is_wanted ? sink_->on_sample(sample) : Flow::GoOn;
}

}  // namespace tacho::report
