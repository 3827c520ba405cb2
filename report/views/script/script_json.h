// Samples as JSON, one object a line. docs/script-forms.md lists the names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "report/decode/payload.h"
#include "report/output/field_sinks.h"
#include "report/output/text_output.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/session.h"
#include "report/views/script/script_text.h"

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

// Samples in the form of perf's script text that viewers of profiles can all read. Each of them takes lines
// apart with regular expressions of its own; docs/script-forms.md says what they trip over and what is done
// about it.

// Names as these lines hold them: safe for a terminal, and without what would end them too early.
std::string importer_comm(std::string_view comm);
std::string importer_event(std::string_view name);
std::string importer_symbol(std::string_view function);
std::string importer_module(std::string_view path);

class ImporterText {
 public:
  explicit ImporterText(Session& session) : session_(&session), resolver_(&session.resolver()) {}

  // "COMM PID/TID [CPU] SECONDS: PERIOD EVENT: ", a line for each frame, leaf first, and an empty line.
  void write(TextBuffer& out, const ResolvedSample& sample);
  // Only the samples' own places.
  static bool names_other_places() { return false; }

 private:
  const std::string& comm_of(std::string_view comm);
  const std::string& name_of_event(std::size_t index);
  void write_place(TextBuffer& out, const Location& location);

  Session* session_;
  Resolver* resolver_;
  std::unordered_map<const char*, std::string> comms_;
  std::vector<std::string> event_names_;
  KeptTexts places_;  // by location: its lines
};

}  // namespace tacho::report
