// Samples as JSON, one object a line. docs/script-forms.md lists the names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/decode/payload.h"
#include "report/output/field_sinks.h"
#include "report/output/text_output.h"
#include "report/samples/session.h"
#include "report/views/script/kept_texts.h"

namespace tacho::report {

class ScriptJson {
 public:
  explicit ScriptJson(Session& session)
      : session_(&session), resolver_(&session.resolver()), schemas_(session.events(), session.features()) {}

  // With the line's end. Always one JSON object, valid UTF-8, whatever the capture holds.
  void write(TextBuffer& out, const ResolvedSample& sample);
  // Whether payloads hold addresses that are named, beside the samples' own places.
  bool names_other_places();

 private:
  const std::string& name_of_event(std::size_t index);
  void describe_numbers(FieldSink& to, const ResolvedSample& sample) const;
  void describe_content(FieldSink& to, const ResolvedSample& sample);
  void describe_addresses(FieldSink& to, const PayloadSchema& schema, const ResolvedSample& sample);
  std::string_view stack_json(const ResolvedSample& sample);
  std::string_view place_json(const Location& location);

  Session* session_;
  Resolver* resolver_;
  EventSchemas schemas_;
  std::vector<std::string> event_names_;
  KeptTexts places_;  // by location: its frames
  TextBuffer stack_;  // scratch
};

}  // namespace tacho::report
