// The unit of a weight, also of periods that are fields of payloads.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "format/records/event_set.h"
#include "report/decode/payload.h"
#include "report/samples/resolved_sample.h"

namespace tacho::report {

// The events whose period is a field of the payload, as recorders set it (docs/capture-format.md): the field
// tagged role:weight; for samples counted in the kernel the final value, else the sum, else the count; else
// the value. Other recorders may set other periods, so each sample is compared.
class PeriodFields {
 public:
  // `schemas` must outlive this.
  explicit PeriodFields(EventSchemas& schemas) : schemas_(&schemas) {}

  // Whether see() reads payloads, for the first `events` events.
  bool reads_payloads(std::size_t events);
  void see(const ResolvedSample& sample);
  // Null: the periods so far differ from the field, or there is no sample yet.
  const PayloadField* field_of(std::size_t event) const {
    return event < events_.size() && events_[event].is_seen ? events_[event].field : nullptr;
  }

 private:
  struct EventFacts {
    const PayloadField* field = nullptr;
    bool is_seen = false;
  };
  EventFacts& facts_of(std::size_t event);
  EventSchemas* schemas_;
  std::vector<EventFacts> events_;
};

// The unit of a weight, as text: "ns", "bytes", "samples", or the event's name. `what`: as for WeightChoice;
// `schema` may be null; `period`: from PeriodFields.
std::string weight_unit(std::string_view what, const format::Event& event, const PayloadSchema* schema,
                        const PayloadField* period);

}  // namespace tacho::report
