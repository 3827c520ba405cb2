// The start of a line of `tacho script`, as perf script prints it: thread, CPU and time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "format/container/environment.h"
#include "report/output/text_output.h"
#include "report/perf_text/script_fields.h"

namespace tacho::report {

enum class TimeDigits : std::uint8_t { Microseconds, Nanoseconds };
enum class TimeBase : std::uint8_t { Clock, FirstLine, LineBefore };  // as recorded; --reltime; --deltatime

// The time of a sample as `script` prints it.
class TimeText {
 public:
  TimeText(TimeDigits digits, TimeBase base, std::optional<format::ClockData> clock)
      : digits_(digits), base_(base), clock_(clock) {}

  TimeBase base() const { return base_; }
  // Writes "    5.001234: ".
  void write(TextBuffer& out, std::uint64_t time);
  // Writes "2023-11-14 22:13:20.124191 " in the reader's time zone. Only for captures with HEADER_CLOCK_DATA.
  void write_of_day(TextBuffer& out, std::uint64_t time) const;

 private:
  std::uint64_t since_base(std::uint64_t time);
  void write_second(TextBuffer& out, std::uint64_t second);
  void write_fraction(TextBuffer& out, std::uint64_t time) const;

  TimeDigits digits_;
  TimeBase base_;
  std::optional<format::ClockData> clock_;
  std::uint64_t first_ = 0, before_ = 0;  // 0: no line yet
  // The text of the last second, "    5.": most lines have the same second as the line before.
  std::uint64_t shown_second_ = 0;
  char second_text_[TextBuffer::kShort] = {};
  std::size_t second_size_ = 0;  // 0: none yet
};

struct LineStart {
  std::string_view comm;  // made safe already
  std::uint32_t pid = ~0U, tid = ~0U, cpu = ~0U;
  std::uint64_t time = ~std::uint64_t{0};  // ns
  std::uint16_t misc = 0;
  std::uint32_t record_type = 0;
  bool is_comm_padded = true;
};
void write_line_start(TextBuffer& out, const Fields& fields, const LineStart& start, TimeText& times);

}  // namespace tacho::report
