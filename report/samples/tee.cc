#include "report/samples/tee.h"

#include <algorithm>

namespace tacho::report {

bool Tee::looks_up() const {
  return std::ranges::any_of(sinks_, [](const Sink* sink) { return sink->looks_up(); });
}

bool Tee::takes_others() const {
  return std::ranges::any_of(sinks_, [](const Sink* sink) { return sink->takes_others(); });
}

Sink::Flow Tee::on_sample(const ResolvedSample& sample) {
  std::erase_if(sinks_, [&](Sink* sink) { return sink->on_sample(sample) == Flow::Stop; });
  return sinks_.empty() ? Flow::Stop : Flow::GoOn;
}

Sink::Flow Tee::on_other(const OtherEvent& event) {
  std::erase_if(sinks_, [&](Sink* sink) { return sink->on_other(event) == Flow::Stop; });
  return sinks_.empty() ? Flow::Stop : Flow::GoOn;
}

}  // namespace tacho::report
