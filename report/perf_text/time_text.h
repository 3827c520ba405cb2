// When a sample was taken, as `script` shows it.
#pragma once

#include <cstdint>
#include <optional>

#include "format/container/environment.h"
#include "report/output/text_output.h"

namespace tacho::report {

enum class TimeDigits : std::uint8_t { Microseconds, Nanoseconds };
enum class TimeBase : std::uint8_t { Clock, FirstLine, LineBefore };  // as recorded; --reltime; --deltatime

class TimeText {
 public:
  TimeText(TimeDigits digits, TimeBase base, std::optional<format::ClockData> clock)
      : digits_(digits), base_(base), clock_(clock) {}

  // "    5.001234: "
  void write(TextBuffer& out, std::uint64_t time);
  // "2023-11-14 22:13:20.124191 ", in the time zone of who reads. Needs to know what the clock stood for.
  void write_of_day(TextBuffer& out, std::uint64_t time) const;

 private:
  std::uint64_t since_base(std::uint64_t time);
  void write_second(TextBuffer& out, std::uint64_t second);

  TimeDigits digits_;
  TimeBase base_;
  std::optional<format::ClockData> clock_;
  std::uint64_t first_ = 0, before_ = 0;  // 0: no line yet
  // The text of the second that was shown last, "    5.": many lines have the same.
  std::uint64_t shown_second_ = 0;
  char second_text_[TextBuffer::kShort] = {};
  std::size_t second_size_ = 0;  // 0: none yet
};

}  // namespace tacho::report
