// A condition on samples that needs more than Filter's fields: what --where asks for. Rooms above make it.
#pragma once

#include <string>

#include "format/base/result.h"
#include "format/container/features.h"
#include "format/records/event_set.h"

namespace tacho::report {

class Resolver;
struct ResolvedSample;

// It belongs to one session, and after bind() to the thread that asks it: the one that reads, or where it
// asks for names of addresses the one that shows.
class SampleCondition {
 public:
  virtual ~SampleCondition() = default;
  // Once the events are known, before the first sample. An error of the use: a name that no event has. Both
  // must outlive this.
  virtual Result<> bind(const format::EventSet& events, const format::Features& features) = 0;
  // After bind().
  virtual bool asks_for_names() const { return false; }
  // What to know about its answers, in words for people; empty: nothing.
  virtual std::string note() const { return {}; }
  // Of a sample that may have no place and no stack yet. `names` null: nobody asks for names.
  virtual bool holds(const ResolvedSample& sample, Resolver* names) = 0;
};

}  // namespace tacho::report
