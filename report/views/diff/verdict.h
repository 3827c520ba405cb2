// A comparison with a verdict, as text, Markdown and JSON.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "report/compare/comparison.h"
#include "report/output/text_output.h"

namespace tacho::report {

// A comparison that was judged. All must outlive it.
struct JudgedComparison {
  const Comparison& comparison;
  std::span<const ComparedEvent> events;
  std::span<const std::string> differences;  // of the environment
  std::string matched;                       // modules that are taken for each other; empty: none
};

// The verdict of all events together: the gravest one.
Verdict verdict_of(std::span<const ComparedEvent> events);

// `rows`: the most functions that are listed for each event.
void write_verdict_text(TextOutput& out, const JudgedComparison& judged, std::size_t rows);
void write_verdict_markdown(TextOutput& out, const JudgedComparison& judged, std::size_t rows);
void write_verdict_json(TextOutput& out, const JudgedComparison& judged);

}  // namespace tacho::report
