// A condition on samples that needs more than Filter's fields: what --where asks for. Rooms above make it.
#pragma once

#include "format/event_set.h"
#include "format/features.h"
#include "format/result.h"

namespace tacho::report {

struct ResolvedSample;

// It belongs to one session, and after bind() to the thread that reads.
class SampleCondition {
 public:
  virtual ~SampleCondition() = default;
  // Once the events are known, before the first sample. An error of the use: a name that no event has. Both
  // must outlive this.
  virtual Result<> bind(const format::EventSet& events, const format::Features& features) = 0;
  // Of a sample that has no place and no stack yet.
  virtual bool holds(const ResolvedSample& sample) = 0;
};

}  // namespace tacho::report
