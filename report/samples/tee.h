// Tee: feeds several sinks in one pass over a capture.
#pragma once

#include <vector>

#include "report/samples/sink.h"

namespace tacho::report {

// Gives everything to each of its sinks, in their order. One that wants no more is left alone from then on;
// when none is left, the pass ends.
class Tee : public Sink {
 public:
  // The sinks must outlive this.
  explicit Tee(std::vector<Sink*> sinks) : sinks_(std::move(sinks)) {}

  bool looks_up() const override;
  bool takes_others() const override;
  Flow on_sample(const ResolvedSample& sample) override;
  Flow on_other(const OtherEvent& event) override;

 private:
  std::vector<Sink*> sinks_;  // those that still want more
};

}  // namespace tacho::report
