#include "report/views/tui/live_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "format/records/perf_abi.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

constexpr std::size_t kMostCpus = 8192;     // a larger number is damage
constexpr std::size_t kMostBars = 16;       // CPUs with a bar each; more have a column each
constexpr std::size_t kMostHistory = 1000;  // refreshes
constexpr std::uint16_t kLeastBody = 10;    // lines below the head

bool is_clock(const format::EventAttr& attr) {
  return attr.type == abi::kSoftware && (attr.config == abi::kCpuClock || attr.config == abi::kTaskClock) &&
         attr.samples(abi::kSampleCpu) && attr.samples(abi::kSampleTid);
}

// A column of a strip.
std::string_view block_of(double part) {
  const auto eighths = static_cast<std::size_t>(std::lround(std::clamp(part, 0.0, 1.0) * 8));
  return kBlocks.at(part > 0 ? std::max<std::size_t>(eighths, 1) : 0);
}

std::string repeated(std::string_view text, std::size_t count) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

}  // namespace

void LiveLoad::take_sample(const format::RecordView& view, const format::EventAttr& attr) {
  if (!is_clock(attr)) return;
  const format::Sample* const sample = parser_.parse(view, attr);
  if (sample == nullptr || sample->cpu >= kMostCpus) return;
  if (taken_.empty()) since_ = Clock::now();  // what was before the first sample was not recorded
  Taken& one = taken_[sample->cpu];
  if (sample->pid == 0) return;
  const bool is_kernel = (view.misc & abi::kCpumodeMask) == abi::kCpumodeKernel;
  (is_kernel ? one.kernel : one.user) += sample->period;
}

void LiveLoad::refresh(Clock::time_point now) {
  const auto ns = static_cast<double>(std::chrono::nanoseconds(now - since_).count());
  since_ = now;
  if (ns <= 0 || taken_.empty()) return;
  shown_.clear();
  total_ = {};
  for (auto& [cpu, taken] : taken_) {
    const auto user = static_cast<double>(taken.user), kernel = static_cast<double>(taken.kernel);
    const double whole = std::max(ns, user + kernel);
    const Load load{user / whole, kernel / whole};
    shown_.emplace_back(cpu, load);
    total_.user += load.user / static_cast<double>(taken_.size());
    total_.kernel += load.kernel / static_cast<double>(taken_.size());
    taken = {};
  }
  history_.push_back(total_.all());
  if (history_.size() > kMostHistory) history_.pop_front();
}

std::uint16_t LiveLoad::height(ScreenSize size) const {
  if (shown_.empty() || size.width < 40) return 0;
  const std::size_t lines = shown_.size() > kMostBars ? 1 : (shown_.size() + 1) / 2;
  return lines + 1 + kLeastBody <= size.height ? static_cast<std::uint16_t>(lines + 1) : 0;
}

// Two CPUs a line: "  0 [#####     ]  37 %".
void LiveLoad::draw_bars(Frame& frame) const {
  constexpr std::size_t kAround = 13;  // columns beside a bar
  const std::size_t half = frame.size.width / 2U, bar = half - kAround;
  for (std::size_t i = 0; i < shown_.size(); ++i) {
    const auto& [cpu, load] = shown_[i];
    const std::size_t row = i / 2, at = i % 2 * half;
    const auto columns = [bar](double part) {
      return static_cast<std::size_t>(std::lround(std::clamp(part, 0.0, 1.0) * static_cast<double>(bar)));
    };
    const std::size_t user = columns(load.user), all = std::max(columns(load.all()), user);
    frame.put_text(row, at, Style::Quiet, fmt::format("{:3} ", cpu));
    frame.put_text(row, at + 4, Style::Quiet, "[");
    frame.put_text(row, at + 5, Style::User, repeated("█", user));
    frame.put_text(row, at + 5 + user, Style::Kernel, repeated("█", all - user));
    frame.put_text(row, at + 5 + bar, Style::Quiet, "]");
    frame.put_text(row, at + 6 + bar, Style::Normal, fmt::format("{:3.0f} %", 100 * load.all()));
  }
}

// The load at each refresh, the last one at the right.
void LiveLoad::draw_strip(Frame& frame, std::size_t row) const {
  const std::string text = fmt::format("  {:.0f} % of {} CPU{}: ", 100 * total_.all(), shown_.size(),
                                       shown_.size() == 1 ? "" : "s");
  const std::string user = fmt::format("user {:.0f} %", 100 * total_.user),
                    kernel = fmt::format("kernel {:.0f} %", 100 * total_.kernel);
  constexpr std::size_t kLeast = 10;
  const std::size_t words = text.size() + user.size() + kernel.size() + 2;
  const std::size_t columns =
      std::max<std::size_t>(kLeast, frame.size.width - std::min<std::size_t>(frame.size.width, words));
  std::string strip = repeated(" ", columns - std::min(columns, history_.size()));
  for (std::size_t i = history_.size() - std::min(columns, history_.size()); i < history_.size(); ++i)
    strip += block_of(history_[i]);
  frame.put_text(row, 0, Style::Jump, strip);
  frame.put_text(row, columns, Style::Normal, text);
  frame.put_text(row, columns + text.size(), Style::User, user);
  frame.put_text(row, columns + text.size() + user.size() + 2, Style::Kernel, kernel);
}

Frame LiveLoad::with_head(Frame body, ScreenSize size) const {
  const std::uint16_t head = height(size);
  if (head == 0) return body;
  Frame frame(size);
  if (shown_.size() > kMostBars) {
    std::string columns = "CPUs ";
    for (const auto& one : shown_) columns += block_of(one.second.all());
    frame.put_text(0, 0, Style::Normal, columns);
  } else {
    draw_bars(frame);
  }
  draw_strip(frame, head - std::size_t{1});
  for (std::size_t row = 0; row < body.rows.size() && row + head < frame.rows.size(); ++row)
    frame.rows[row + head] = std::move(body.rows[row]);
  if (body.cursor)
    frame.cursor = {static_cast<std::uint16_t>(body.cursor->first + head), body.cursor->second};
  frame.waits = body.waits;
  frame.begins = body.begins;
  frame.draws = body.draws;
  frame.saved_bytes = body.saved_bytes;
  frame.saved_as = body.saved_as;
  frame.saved_name = std::move(body.saved_name);
  return frame;
}

}  // namespace tacho::report
