#include "report/views/folded/folded_starts.h"

#include <algorithm>
#include <optional>

#include "report/perf_text/line_start.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

constexpr std::string_view kBlanks = " \t\n\v\f\r";

std::string first_line(const ResolvedSample& sample, std::string_view event) {
  const auto& attr = sample.event().attr;
  Fields fields{Field::Comm, Field::Tid};
  if (attr.samples(abi::kSampleCpu)) fields.add(Field::Cpu);
  if (attr.samples(abi::kSampleTime)) fields.add(Field::Time);
  LineStart start{sample.comm,      sample.pid(),     sample.tid(),       sample.raw->cpu,
                  sample.raw->time, sample.raw->misc, abi::kRecordSample, false};
  TextBuffer line;
  TimeText times(TimeDigits::Microseconds, TimeBase::Clock, std::nullopt);
  write_line_start(line, fields, start, times);
  if (attr.type != abi::kTracepoint) line.decimal(sample.period, 10);
  line.character(' ');
  line.text(event);
  line.text(": ");
  return std::string(line.view());
}

}  // namespace

const FoldedStarts::Start& FoldedStarts::of(const ResolvedSample& sample, std::string_view event) {
  const Key key{sample.comm.data(), options_.shows_tid ? sample.tid() : 0};
  Recent& recent = recent_[hash_(key) % recent_.size()];
  if (recent.start == nullptr || recent.key != key) {
    const auto [entry, is_new] = starts_.try_emplace(key);
    if (is_new) {
      entry->second.is_usual =
          sample.comm.size() >= 2 && sample.comm.find_first_of(kBlanks) == std::string_view::npos;
    }
    recent = {key, &entry->second};
  }
  Start& start = *recent.start;
  const bool is_usual = start.is_usual && static_cast<std::int32_t>(sample.tid()) >= 0;
  if (start.is_seen && is_usual) return start;
  FoldedStart parsed{std::string(sample.comm), std::to_string(sample.tid())};
  // An unusual name is taken apart as it stands in perf's line, with all that follows it.
  const bool is_raw = names_ == Names::Raw;
  if (!is_usual && !(is_raw ? fold_last_start : fold_start)(first_line(sample, event), parsed)) {
    start.is_seen = false;
    return start;
  }
  std::string name = parsed.comm;
  if (options_.shows_tid) {
    name += "-?/" + parsed.tid;
  } else if (options_.shows_pid) {
    name += "-?";
  }
  std::ranges::replace(name, ' ', '_');
  start.is_seen = true;
  start.is_java = name.starts_with("java");
  start.name = folded_->name(name);
  return start;
}

}  // namespace tacho::report
