// Samples for programs: JSON, one object a line. docs/script-forms.md lists the names.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "report/decode/payload.h"
#include "report/output/field_sinks.h"
#include "report/output/text_output.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/session.h"
#include "report/views/script/script_text.h"

namespace tacho::report {

// Samples as JSON, one object a line.
class ScriptJson {
 public:
  explicit ScriptJson(Session& session)
      : session_(&session), resolver_(&session.resolver()), schemas_(session.events(), session.features()) {}

  // Writes the line with its end: always one JSON object in valid UTF-8, for any capture.
  void write(TextBuffer& out, const ResolvedSample& sample);

 private:
  const std::string& name_of_event(std::size_t index);
  void describe_numbers(FieldSink& to, const ResolvedSample& sample) const;
  void describe_content(FieldSink& to, const ResolvedSample& sample);
  void describe_addresses(FieldSink& to, const PayloadSchema& schema, const ResolvedSample& sample);
  std::string_view stack_json(const ResolvedSample& sample);
  std::string_view location_json(const Location& location);

  Session* session_;
  Resolver* resolver_;
  EventSchemas schemas_;
  std::vector<std::string> event_names_;
  KeptTexts frames_;  // the JSON of the frames, by location number
  TextBuffer stack_;  // scratch
};

}  // namespace tacho::report
