// The text of a tracepoint's record by its print format, which is in the capture. Common formats are compiled
// to a PrintProgram; libtraceevent, which perf uses, evaluates the others. Only this file includes that
// library.
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
  // Name and start of the kernel function at an address, for %pS; nullopt when unknown.
  struct Function {
    std::string name;
    std::uint64_t start = 0;
  };
  using FindFunction = std::function<std::optional<Function>(std::uint64_t address)>;

  // `tracing` must outlive this. A format is parsed at its first record. Evaluation::Library never compiles
  // formats: a test compares the two.
  enum class Evaluation : std::uint8_t { Fast, Library };
  TracepointText(const format::TracingData& tracing, FindFunction find_function,
                 Evaluation evaluation = Evaluation::Fast);
  TracepointText(TracepointText&&) noexcept;
  TracepointText& operator=(TracepointText&&) noexcept;
  ~TracepointText();

  // The text of a record of tracepoint `id` (attr.config), valid until the next call. nullopt when the
  // capture has no format for it.
  std::optional<std::string_view> of(std::uint64_t id, format::Bytes record, std::uint32_t cpu,
                                     std::endian order);
  // Appends the same text if it is safe to print as it is (PrintProgram::is_plain()). Otherwise appends
  // nothing and returns false.
  bool write_plain(TextBuffer& out, std::uint64_t id, format::Bytes record, std::endian order);
  // Reports records that could not be printed by their format because the system refused something. To be
  // called once, at the end.
  void report(format::Diagnostics& diagnostics) const;
  // After of(): whether the tracepoint's format was compiled.
  bool is_compiled(std::uint64_t id) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tacho::report
