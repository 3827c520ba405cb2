// Samples for viewers of profiles, which read the text of perf script.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "report/output/text_output.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/session.h"
#include "report/views/script/script_text.h"

namespace tacho::report {

// Samples in a form of perf's script text that all known viewers of profiles can read. Each of them parses
// lines with other regular expressions; docs/script-forms.md lists what confuses them and what is done about
// it.

// The names in these lines: safe for a terminal, and without characters that would end a field.
std::string importer_comm(std::string_view comm);
std::string importer_event(std::string_view name);
std::string importer_symbol(std::string_view function);
std::string importer_module(std::string_view path);

class ImporterText {
 public:
  explicit ImporterText(Session& session) : session_(&session), resolver_(&session.resolver()) {}

  // "COMM PID/TID [CPU] SECONDS: PERIOD EVENT: ", a line for each frame, leaf first, and an empty line.
  void write(TextBuffer& out, const ResolvedSample& sample);
  // Addresses in payloads are not written.

 private:
  const std::string& comm_of(std::string_view comm);
  const std::string& name_of_event(std::size_t index);
  void write_location(TextBuffer& out, const Location& location);

  Session* session_;
  Resolver* resolver_;
  std::unordered_map<const char*, std::string> comms_;
  std::vector<std::string> event_names_;
  KeptTexts lines_;  // by location number
};

}  // namespace tacho::report
