#include "report/samples/lane_filter.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "format/records/perf_abi.h"

namespace tacho::report {
namespace {

bool contains(const std::vector<std::string>& list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

}  // namespace

LaneFilter::LaneFilter(const Filter& filter, Resolver& resolver, std::mutex* symbols)
    : filter_(&filter),
      resolver_(&resolver),
      condition_(filter.condition != nullptr ? filter.condition->fork() : nullptr),
      addresses_(filter) {
  merging_.symbols_of = [this](const symbolize::Mapping& mapping) { return resolver_->names_of(mapping); };
  merging_.merge_by = Sink::MergeBy::Function;
  merging_.mutex = symbols;
  locations_.merge_by_name(&merging_);
}

bool LaneFilter::accepts_values(ResolvedSample sample, const symbolize::SpaceVersion& space) {
  if (condition_ == nullptr) return true;
  space_ = &space;
  sample.finder = this;
  const bool asks_for_names = condition_->asks_for_names();
  const auto lock = lock_if(asks_for_names ? merging_.mutex : nullptr);
  return condition_->holds(sample, asks_for_names ? resolver_ : nullptr);
}

bool LaneFilter::accepts_name(const symbolize::SpaceVersion& space, const LocationTable::Address& own,
                              std::uint64_t ip) {
  if (!looks_at_names()) return true;
  const LocationId location = locations_.find_function(space, own.ip, own.cpumode);
  Verdict& known = answers_[location];
  if (known == Verdict::Unknown) known = test(locations_.locations()[location]);
  return known == Verdict::Yes || (known == Verdict::ByAddress && addresses_.has(ip));
}

LaneFilter::Verdict LaneFilter::test(const Location& location) {
  const auto lock = lock_if(merging_.mutex);
  const symbolize::Frame& frame = resolver_->frame(location);
  const symbolize::Module* const module = frame.module;
  if (!filter_->dsos.empty() &&
      (!module || !(contains(filter_->dsos, module->path) || contains(filter_->dsos, module->short_name))))
    return Verdict::No;
  if (frame.function.find(filter_->symbol_part) == std::string_view::npos) return Verdict::No;
  if (filter_->symbols.empty()) return Verdict::Yes;
  if (!frame.function.empty() && contains(filter_->symbols, frame.function)) return Verdict::Yes;
  // A location has several addresses (of a function; of processes that map a file at different ones), so the
  // answer depends on the sample's ip.
  return module != nullptr && !addresses_.empty() ? Verdict::ByAddress : Verdict::No;
}

// Called by the condition while the lock is held: without names.
const Location& LaneFilter::find_in(const ResolvedSample&, std::uint64_t address, std::uint8_t cpumode) {
  return locations_.locations()[locations_.find_location(*space_, address, cpumode)];
}

}  // namespace tacho::report
