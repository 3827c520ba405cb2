// What a tracepoint's record says in words: its print format (kept in the capture) evaluated by
// libtraceevent, as perf does. Formats of the usual kinds are compiled to a PrintProgram, which makes the
// same text many times faster; the library does the others. No other file knows that library.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "format/base/cursor.h"
#include "format/base/diagnostics.h"
#include "format/extensions/tracing_data.h"
#include "report/output/text_output.h"

namespace tacho::report {

class TracepointText {
 public:
  // A kernel function's name and its start for an address printed by %pS; nothing when unknown.
  struct Function {
    std::string name;
    std::uint64_t start = 0;
  };
  using FindFunction = std::function<std::optional<Function>(std::uint64_t address)>;

  // `tracing` must outlive it. Formats are parsed when the first record of theirs comes.
  // Library: never the fast way, to compare the two.
  enum class Evaluation : std::uint8_t { Fast, Library };
  TracepointText(const format::TracingData& tracing, FindFunction find_function,
                 Evaluation evaluation = Evaluation::Fast);
  TracepointText(TracepointText&&) noexcept;
  TracepointText& operator=(TracepointText&&) noexcept;
  ~TracepointText();

  // The text of a record of tracepoint `id` (attr.config); the view stays valid until the next call. Nothing
  // when the capture does not describe that tracepoint.
  std::optional<std::string_view> of(std::uint64_t id, format::Bytes record, std::uint32_t cpu,
                                     std::endian order);
  // Appends the same text when it needs no second look: numbers, and words that stand in the format and can
  // be shown as they are. False, and nothing is appended, for all others.
  bool write_plain(TextBuffer& out, std::uint64_t id, format::Bytes record, std::endian order);
  // What could not be printed in its format because the system refused something; once, at the end.
  void report(format::Diagnostics& diagnostics) const;
  // After of(): whether that tracepoint's text is made the fast way.
  bool is_compiled(std::uint64_t id) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tacho::report
