#include "report/views/why/why_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <utility>

#include "report/views/page/page_file.h"
#include "report/views/page/page_head.h"
#include "report/views/page/page_states.h"

namespace tacho::report {
namespace {

constexpr std::uint64_t kMostSamples = 2'000'000;  // in the page, as of tacho page

Redaction nothing_hidden() {
  Redaction redaction;
  (void)redaction.keep("all");
  return redaction;
}

// "tacho why -p 4711"; empty: another command recorded the capture.
std::string title_of(const format::Environment& environment) {
  const auto& words = environment.command_line;
  if (words.size() < 2 || words[1] != "--why") return "";
  std::string title = "tacho why";
  for (std::size_t i = 2; i < words.size(); ++i) title += " " + words[i];
  return title;
}

bool is_wait(const WallSpan& span) { return span.end > span.begin; }

void describe_list(JsonFields& to, std::string_view name, const std::vector<std::string>& texts) {
  to.begin_list(name);
  for (const std::string& text : texts) to.printed("", text);
  to.end_list();
}

}  // namespace

WhyPage::WhyPage(Session& session, Filter chosen, Code code)
    : session_(session),
      chosen_(std::move(chosen)),
      redaction_(nothing_hidden()),
      samples_(session, names_, parts_, kMostSamples,
               code == Code::Packed ? PageSamples::Take::Addresses : PageSamples::Take::Everything,
               PageSamples::Roots::Comm),
      stacks_(session) {
  if (code == Code::Packed) code_.emplace(session, names_, parts_);
}

void WhyPage::take_sample(const ResolvedSample& sample) {
  last_ = kNotInPage;
  if (!chosen_.accepts_start(*sample.fields) || !chosen_.accepts_comm(sample.comm)) return;
  const std::uint64_t before = samples_.size();
  samples_.on_sample(sample);
  if (samples_.size() == before) return;
  last_ = static_cast<std::uint32_t>(before);
  if (code_) code_->add_sample(sample, place_of(sample));
}

LocationId WhyPage::place_of(const ResolvedSample& sample) {
  if (sample.stack == nullptr || is_of_cpu(sample.event().attr)) return sample.location_id;
  const auto [known, is_new] = places_.try_emplace(sample.stack->id, sample.location_id);
  if (is_new) {
    const auto own = std::ranges::find_if(
        sample.stack->frames, [this](LocationId location) { return stacks_.is_of_program(location); });
    if (own != sample.stack->frames.end()) known->second = *own;
  }
  return known->second;
}

std::uint32_t WhyPage::keep(const ResolvedSample& sample, std::uint32_t facts) {
  kept_.push_back({facts, last_, std::max<std::uint64_t>(sample.period, 1)});
  return static_cast<std::uint32_t>(kept_.size() - 1);
}

void WhyPage::add_span(SampleTimes& to, const WallSpan& span, double time) const {
  const std::uint32_t sample = kept_[span.kept].sample;
  if (span.kept != 0 && sample != kNotInPage && time > 0) to.push_back({sample, time});
}

void WhyPage::add_operations(std::vector<SampleTimes>& to, const Answer& answer) const {
  for (std::size_t i = 0; i < answer.findings.size(); ++i) {
    const TimeFinding& finding = answer.findings[i];
    const double each = finding.time / static_cast<double>(finding.spans.size());
    for (const WallSpan& span : finding.spans)
      add_span(to[i], span, is_wait(span) ? static_cast<double>(span.end - span.begin) : each);
  }
}

void WhyPage::add_rows(std::vector<SampleTimes>& to, const Answer& answer, const WallTimes& times) const {
  std::vector<SampleTimes*> of_rows(times.rows().size());
  for (std::size_t i = 0; i < answer.findings.size(); ++i)
    for (const std::uint32_t row : answer.findings[i].rows) of_rows[row] = &to[i];
  for (std::size_t i = 0; i < answer.waits_for_work.size(); ++i)
    for (const std::uint32_t row : answer.waits_for_work[i].rows)
      of_rows[row] = &to[answer.findings.size() + i];
  // Of a row's spans: their length or period, and the length of the waits that they stand for.
  struct Sums {
    double own = 0, others = 0;
  };
  const auto sums_of = [&](const WallSpan& span) -> Sums {
    if (span.kept == 0) return {};
    if (!is_wait(span)) return {static_cast<double>(kept_[span.kept].period), 0};
    const double length = times.chosen(span.begin, span.end);
    return {length, length * std::max(span.waits, 1U) - length};
  };
  std::vector<Sums> of_spans(times.rows().size());
  for (const WallSpan& span : times.spans()) {
    of_spans[span.row].own += sums_of(span).own;
    of_spans[span.row].others += sums_of(span).others;
  }
  for (const WallSpan& span : times.spans()) {
    if (of_rows[span.row] == nullptr) continue;
    const Sums& all = of_spans[span.row];
    const Sums one = sums_of(span);
    const double time = times.rows()[span.row].time, rest = std::max(time - all.own, 0.0);
    const double of_wait = one.own + (all.others > 0 ? rest * one.others / all.others : 0);
    add_span(*of_rows[span.row], span, is_wait(span) ? of_wait : time * one.own / all.own);
  }
}

// A wait has its length, and a part of the time of waits without events that is proportional to the waits it
// stands for. A sample on the CPU has a part of its row's time, proportional to its period. With --of, a wait
// has its parts inside slow operations, and samples on the CPU have equal parts.
std::vector<WhyPage::SampleTimes> WhyPage::times_of_samples(const Answer& answer,
                                                            const WallTimes& times) const {
  std::vector<SampleTimes> found(answer.findings.size() + answer.waits_for_work.size());
  answer.operations ? add_operations(found, answer) : add_rows(found, answer, times);
  for (SampleTimes& part : found) {
    // A sample is there once: the thread may have been blocked, and then runnable.
    std::ranges::stable_sort(part, {}, &SampleTime::sample);
    std::size_t count = 0;
    for (const SampleTime& one : part)
      if (count > 0 && part[count - 1].sample == one.sample)
        part[count - 1].time += one.time;
      else
        part[count++] = one;
    part.resize(count);
  }
  return found;
}

void WhyPage::describe_findings(JsonFields& to, const Answer& answer, const WhyText& how,
                                const std::vector<SampleTimes>& samples) const {
  const AnswerText words = words_of(answer, how);
  to.begin_object("why");
  to.number("tacho_why", kWhyVersion);
  describe_list(to, "head", words.head);
  describe_list(to, "missing", how.missing);
  to.flag("operations", answer.operations.has_value());
  to.begin_list("findings");
  for (std::size_t i = 0; i < answer.findings.size(); ++i) {
    const FindingText& text = words.findings[i];
    to.begin_object("");
    to.text("share", text.share);
    to.printed("title", text.title);
    describe_list(to, "evidence", text.evidence);
    to.printed("command", text.command);
    to.number("time_ns", static_cast<std::uint64_t>(answer.findings[i].time));
    to.number("waits", answer.findings[i].median == 0 ? 0 : answer.findings[i].count);  // 0: on the CPU
    to.number("samples", samples[i].size());
    const Cause cause = answer.findings[i].cause;
    to.flag("queued", cause == Cause::Runnable || cause == Cause::Throttled);
    to.end_object();
  }
  to.end_list();
  to.begin_list("idle");
  for (std::size_t i = 0; i < answer.waits_for_work.size(); ++i) {
    to.begin_object("");
    to.printed("title", words.idle[i].title);
    describe_list(to, "evidence", words.idle[i].evidence);
    to.number("time_ns", static_cast<std::uint64_t>(answer.waits_for_work[i].time));
    to.number("waits", answer.waits_for_work[i].count);
    to.number("samples", samples[answer.findings.size() + i].size());
    to.end_object();
  }
  to.end_list();
  to.printed("rest", words.rest);
  to.flag("kept", how.is_kept);
  to.end_object();
}

// The times are whole numbers, and the sum of each finding's is its sum, rounded.
std::vector<PackedColumn> WhyPage::columns_of(const std::vector<SampleTimes>& parts) {
  PackedColumn sample("why.sample", ColumnForm::Differences), time("why.time", ColumnForm::Wide);
  for (const SampleTimes& part : parts) {
    double sum = 0;
    std::uint64_t written = 0;
    for (const SampleTime& one : part) {
      sum += one.time;
      sample.add_signed(one.sample);
      const auto whole = static_cast<std::uint64_t>(std::llround(sum));
      time.add_number(whole - written);
      written = whole;
    }
  }
  return {std::move(sample), std::move(time)};
}

std::vector<PackedColumn> WhyPage::states_of(const WallTimes& times, const WaitFactsTable& facts) {
  if (!times.has_waits()) return {};
  Filter::TimeRange range = chosen_.times.size() == 1 ? chosen_.times.front() : Filter::TimeRange{};
  if (samples_.left_out() > 0) range.last = std::min(range.last, samples_.last_time());
  return state_columns(times, samples_, range, [&](std::uint32_t kept, std::uint32_t of_wait) {
    PageWait wait{.waker = facts[of_wait].waker};
    if (kept_[kept].sample != kNotInPage && kept != 0) wait.sample = kept_[kept].sample;
    return wait;
  });
}

Result<> WhyPage::write(TextOutput& out, const Answer& answer, const WallTimes& times,
                        const WaitFactsTable& facts, const WhyText& how) {
  samples_.name_new_rows();
  if (code_) code_->read_code();
  session_.report_missing_symbols();
  samples_.look_up_lines();
  parts_.tree.show_parameters(parts_.functions, parts_.texts);
  const std::vector<SampleTimes> parts = times_of_samples(answer, times);
  WhyText shown = how;
  shown.names = Names::Safe;
  shown.most = std::numeric_limits<std::size_t>::max();
  std::vector<PackedColumn> of_states = states_of(times, facts);
  const PageTree::Order order = parts_.tree.order(parts_.texts);
  TextBuffer json;
  JsonFields head(json);
  const std::string title = title_of(session_.features().environment);
  if (!title.empty()) head.number("title", parts_.texts.number_of(printable(title)));
  describe_hiding(head, names_);
  head.begin_object("capture");
  describe_capture(head, session_, samples_, names_, parts_.texts, how.is_kept ? how.input : "");
  head.end_object();
  describe_findings(head, answer, shown, parts);
  if (times.has_waits()) describe_states(head);
  describe_colours(head);
  head.finish();
  std::vector<PackedColumn> columns = samples_.columns(order);
  std::ranges::move(columns_of(parts), std::back_inserter(columns));
  std::ranges::move(of_states, std::back_inserter(columns));
  if (code_) std::ranges::move(code_->columns(), std::back_inserter(columns));
  return write_page(out, std::string(json.view()), parts_, order, std::move(columns), session_.pool());
}

std::vector<std::string> WhyPage::notes() const {
  std::vector<std::string> notes;
  if (const std::uint64_t left_out = samples_.left_out(); left_out > 0)
    notes.push_back(fmt::format("the page holds the first samples and leaves {} out", left_out));
  if (code_ && !code_->missing_text().empty()) notes.push_back("--source: " + code_->missing_text());
  return notes;
}

}  // namespace tacho::report
