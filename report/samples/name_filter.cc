#include "report/samples/name_filter.h"

#include <algorithm>

namespace tacho::report {
namespace {

bool contains(const std::vector<std::string>& list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

}  // namespace

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
  Answer& known = answers_[sample.place];
  if (known == Answer::NotAsked) known = ask(*sample.location);
  const Answer answer = known;
  const bool is_wanted =
      answer == Answer::Yes || (answer == Answer::ByAddress && addresses_.has(sample.raw->ip));
  return is_wanted ? sink_->on_sample(sample) : Flow::GoOn;
}

}  // namespace tacho::report
