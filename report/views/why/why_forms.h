// The forms of an answer: its words, one screen of text, and JSON.
#pragma once

#include <cstddef>
#include <cstdint>
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
  std::string clock;                 // the event that samples what has the CPU; empty: none
  bool has_objects = true;           // waits say what they are for: events of offcpu
  std::size_t most = 6;              // findings
  std::vector<std::string> missing;  // what could not be seen, safe to print
};

constexpr std::uint64_t kWhyVersion = 1;  // of the JSON form

// An answer in words, safe to print.
struct FindingText {
  std::string share;                  // "69.4 %"; with --of "+28.9 ms"
  std::string title;                  // "waits for the lock cache_lock in store_under_lock"
  std::vector<std::string> evidence;  // times and threads, holders, the call chain
  std::string command;                // that shows more
};
struct IdleText {
  std::string title;                  // "1.02 s: condition in run; main"
  std::vector<std::string> evidence;  // of waits that may be for work of other threads: times, who ends them
};
struct AnswerText {
  std::vector<std::string> head;
  std::vector<FindingText> findings;  // the first WhyText::most
  std::string rest;                   // "4.1 %  the rest, each part smaller", or that there is no finding
  std::vector<IdleText> idle;
};
AnswerText words_of(const Answer& answer, const WhyText& how);

// The command that shows more of a finding.
std::string more_of(const TimeFinding& finding, const WhyText& how);
void write_text(TextBuffer& out, const Answer& answer, const WhyText& how);
void write_json(TextBuffer& out, const Answer& answer, const WhyText& how);

}  // namespace tacho::report
