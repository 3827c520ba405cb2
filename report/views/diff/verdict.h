// A comparison with a verdict, as text, Markdown and JSON.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "report/compare/comparison.h"
#include "report/compare/field_comparison.h"
#include "report/output/text_output.h"

namespace tacho::report {

// A comparison that was judged: of functions' costs, or of fields' values. All must outlive it.
struct JudgedComparison {
  std::span<const SideCapture> captures;
  std::string compared;  // "shares of each capture's total"
  TestOptions test;
  std::span<const std::string> differences;  // of the environment
  const Comparison* functions = nullptr;     // of `events`
  std::span<const ComparedEvent> events{};
  std::string matched{};  // modules and functions that are taken for each other; empty: none
  std::span<const ComparedField> fields{};

  Verdict verdict() const;  // of all together: the gravest one
};

// "shares of each capture's total".
std::string what_is_compared(const ComparisonQuestion& question);

// `rows`: the most functions that are listed for each event.
void write_verdict_text(TextBuffer& out, const JudgedComparison& judged, std::size_t rows);
void write_verdict_markdown(TextBuffer& out, const JudgedComparison& judged, std::size_t rows);
void write_verdict_json(TextBuffer& out, const JudgedComparison& judged);

}  // namespace tacho::report
