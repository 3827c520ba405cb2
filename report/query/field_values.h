// The values of fields of a capture's samples, added up: what check compares with limits, and diff with the
// values of other captures.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "report/decode/payload.h"
#include "report/query/expressions.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/session.h"

namespace tacho::report {

// "open.lat_ns": a field of an event's payload or tracepoint. An empty event: the only one that has the
// field.
struct FieldName {
  std::string event, field;
};
// Of "lat_ns" or, without `event`, "open.lat_ns".
FieldName field_name_of(std::string_view text, std::string_view event = {});

class FieldValues {
 public:
  // The session's head was read. It and `schemas` must outlive this. `command`: for messages ("tacho check").
  FieldValues(Session& session, EventSchemas& schemas, std::string_view command)
      : session_(session), schemas_(schemas), command_(command) {}

  // Before the samples are read: the values of this field are added up. Returns its number. An error: the
  // capture has no such field, or several.
  Result<std::size_t> add_field(const FieldName& name);
  void see(const ResolvedSample& sample);

  bool is_empty() const { return fields_.empty(); }
  const Summary& values(std::size_t field) const { return fields_[field].values; }
  std::string_view unit(std::size_t field) const { return fields_[field].field->unit; }
  // "open.lat_ns".
  std::string name(std::size_t field) const;

 private:
  struct OneField {
    std::size_t event = 0;
    const PayloadField* field = nullptr;
    const PayloadField* count = nullptr;  // the number of values in a sample
    ValueOfMany how;
    Summary values;
  };
  Session& session_;
  EventSchemas& schemas_;
  std::string_view command_;
  std::vector<OneField> fields_;
};

}  // namespace tacho::report
