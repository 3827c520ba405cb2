// The number of units of work in a capture: of the samples of one event (--per), by which costs are divided.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "format/base/result.h"
#include "report/profile/stack_names.h"
#include "report/samples/event_choice.h"
#include "report/samples/session.h"
#include "report/samples/sink.h"

namespace tacho::report {

// Counts that event, and gives all other samples to a sink.
class UnitCount : public Sink {
 public:
  static Result<UnitCount> of(Session& session, const std::string& name) {
    const std::vector<std::string> names = event_names(session.events());
    const auto event = find_event(name, names);
    if (!event) return not_one_event("--per", name, names);
    return UnitCount(*event, names[*event]);
  }
  void run(Sink& others, const RunSession& run) {
    others_ = &others;
    run(*this);
  }
  const std::string& name() const { return name_; }
  double count() const { return count_; }  // the sum of its samples' periods

  MergeBy merge_by() const override { return others_->merge_by(); }
  bool takes_non_samples() const override { return others_->takes_non_samples(); }
  Flow on_non_sample(const NonSampleRecord& record) override { return others_->on_non_sample(record); }
  Flow on_sample(const ResolvedSample& sample) override {
    if (sample.event_index != event_) return others_->on_sample(sample);
    count_ += sample.period == 0 ? 1 : static_cast<double>(sample.period);
    return Flow::Continue;
  }

 private:
  UnitCount(std::size_t event, std::string name) : event_(event), name_(std::move(name)) {}
  std::size_t event_;
  std::string name_;
  double count_ = 0;
  Sink* others_ = nullptr;
};

}  // namespace tacho::report
