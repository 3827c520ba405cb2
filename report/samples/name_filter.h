// The part of a filter that needs names: in which modules and functions a sample ran.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "report/samples/by_number.h"
#include "report/samples/filter.h"
#include "report/samples/resolver.h"
#include "report/samples/sample_condition.h"
#include "report/samples/sink.h"

namespace tacho::report {

// Passes samples whose own place has the wanted names. Asks once for each place.
class NameFilter : public Sink {
 public:
  // All three must outlive this.
  NameFilter(const Filter& filter, Resolver& resolver, Sink& sink)
      : filter_(&filter), resolver_(&resolver), sink_(&sink), addresses_(filter) {}

  bool takes_others() const override { return sink_->takes_others(); }
  Flow on_sample(const ResolvedSample& sample) override;
  Flow on_other(const OtherEvent& event) override { return sink_->on_other(event); }

 private:
  enum class Answer : std::uint8_t { NotAsked, No, Yes, ByAddress };
  Answer ask(const Location& location);

  const Filter* filter_;
  Resolver* resolver_;
  Sink* sink_;
  WantedAddresses addresses_;
  ByNumber<Answer> answers_;  // by location
};

// Passes samples for which a condition on names of addresses holds.
class NamedCondition : public Sink {
 public:
  // All three must outlive this.
  NamedCondition(SampleCondition& condition, Resolver& resolver, Sink& sink)
      : condition_(&condition), resolver_(&resolver), sink_(&sink) {}

  Flow on_sample(const ResolvedSample& sample) override {
    return condition_->holds(sample, resolver_) ? sink_->on_sample(sample) : Flow::GoOn;
  }
  Flow on_other(const OtherEvent& event) override { return sink_->on_other(event); }

 private:
  SampleCondition* condition_;
  Resolver* resolver_;
  Sink* sink_;
};

}  // namespace tacho::report
