// Samples in the form of perf's script text that viewers of profiles can all read. Each of them takes lines
// apart with regular expressions of its own; docs/script-forms.md says what they trip over and what is done
// about it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "report/output/text_output.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/session.h"
#include "report/views/script/kept_texts.h"

namespace tacho::report {

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
