#include "report/views/folded/folded_starts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "report/perf_text/line_start.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

constexpr std::string_view kBlanks = " \t\n\v\f\r", kJava = "java";
constexpr std::string_view kUnnamed = "[unnamed]";  // of a thread whose name is empty

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
  const bool tells_threads = options_.shows_tid, tells_processes = options_.shows_pid || tells_threads;
  const Key key{sample.comm.data(), tells_processes ? sample.pid() : 0, tells_threads ? sample.tid() : 0};
  Recent& recent = recent_[hash_(key) % recent_.size()];
  if (recent.start == nullptr || recent.key != key) recent = {key, &starts_[key]};
  Start& start = *recent.start;
  if (options_.as_perl) {
    read_as_perl(start, sample, event);
  } else if (!start.is_seen) {
    begin(start, sample);
  }
  return start;
}

void FoldedStarts::begin(Start& start, const ResolvedSample& sample) {
  std::string name(sample.comm.empty() ? kUnnamed : sample.comm);
  std::ranges::replace(name, ' ', '_');
  name += thread_part(options_, sample.pid(), sample.tid());
  start.is_seen = true;
  start.is_java = name.starts_with(kJava);
  start.name = folded_->name(name);
  start.key = keys_.emplace_back(std::move(name));
}

void FoldedStarts::read_as_perl(Start& start, const ResolvedSample& sample, std::string_view event) {
  if (!start.is_seen)
    start.is_usual = sample.comm.size() >= 2 && sample.comm.find_first_of(kBlanks) == std::string_view::npos;
  const bool is_usual = start.is_usual && static_cast<std::int32_t>(sample.tid()) >= 0;
  if (start.is_seen && is_usual) return;
  FoldedStart parsed{std::string(sample.comm), std::to_string(sample.tid())};
  // An unusual name is taken apart as it stands in perf's line, with all that follows it.
  start.is_seen = is_usual || fold_last_start(first_line(sample, event), parsed);
  if (!start.is_seen) return;
  std::string name = parsed.comm;
  // perf's text names threads only.
  if (options_.shows_tid) {
    name += "-?/" + parsed.tid;
  } else if (options_.shows_pid) {
    name += "-?";
  }
  std::ranges::replace(name, ' ', '_');
  start.is_java = name.starts_with(kJava);
  start.name = folded_->name(name);
  start.key = folded_->text(start.name);
}

}  // namespace tacho::report
