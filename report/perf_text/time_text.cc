#include "report/perf_text/time_text.h"

#include <ctime>

namespace tacho::report {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000, kMicrosecond = 1000;  // ns

}  // namespace

std::uint64_t TimeText::since_base(std::uint64_t time) {
  if (base_ == TimeBase::Clock) return time;
  if (base_ == TimeBase::FirstLine) {
    if (first_ == 0) first_ = time;
    return time - first_;
  }
  const std::uint64_t since = before_ == 0 ? 0 : time - before_;
  before_ = time;
  return since;
}

void TimeText::write_second(TextBuffer& out, std::uint64_t second) {
  if (second_size_ == 0 || second != shown_second_) {
    TextBuffer text;
    text.decimal(second, 5);  // 12 with the point and six digits
    text.character('.');
    second_size_ = text.view().copy(second_text_, sizeof second_text_);
    shown_second_ = second;
  }
  out.short_text(second_text_, second_size_);
}

void TimeText::write(TextBuffer& out, std::uint64_t time) {
  time = since_base(time);
  write_second(out, time / kSecond);
  if (digits_ == TimeDigits::Nanoseconds) {
    out.zero_filled(time % kSecond, 9);
  } else {
    out.zero_filled(time % kSecond / kMicrosecond, 6);
  }
  out.text(": ");
}

void TimeText::write_of_day(TextBuffer& out, std::uint64_t time) const {
  if (!clock_) return;
  const std::uint64_t wall = clock_->wall_ns + (time - clock_->clock_ns);
  const auto seconds = static_cast<std::time_t>(wall / kSecond);
  std::tm parts{};
  char date[64];
  if (::localtime_r(&seconds, &parts) == nullptr ||
      std::strftime(date, sizeof date, "%F %H:%M:%S", &parts) == 0)
    return out.text("failed ");  // perf's word for a time outside of the calendar
  out.text(date);
  out.character('.');
  if (digits_ == TimeDigits::Nanoseconds) {
    out.zero_filled(wall % kSecond, 9);
  } else {
    out.zero_filled(wall % kSecond / kMicrosecond, 6);
  }
  out.character(' ');
}

}  // namespace tacho::report
