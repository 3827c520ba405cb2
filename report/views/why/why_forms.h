// The forms of an answer: one screen of text, and JSON.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "report/output/text_output.h"
#include "report/views/why/findings.h"

namespace tacho::report {

struct WhyText {
  std::string input;    // the capture's name
  bool is_kept = true;  // false: it is removed after this
  Names names = Names::Safe;
  std::size_t room = 0;              // columns; 0: as wide as needed
  bool has_objects = true;           // waits say what they are for: events of offcpu
  std::size_t most = 6;              // findings
  std::vector<std::string> missing;  // what could not be seen, safe to print
};

// The command that shows more of a finding.
std::string more_of(const TimeFinding& finding, const WhyText& how);
void write_text(TextOutput& out, const Answer& answer, const WhyText& how);
void write_json(TextOutput& out, const Answer& answer, const WhyText& how);

}  // namespace tacho::report
