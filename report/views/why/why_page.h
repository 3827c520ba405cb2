// The page of an answer: that of its capture, with the findings at its top. Each selects its samples: the
// page has which they are, and how much of the finding's time each of them is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "report/profile/wall_times.h"
#include "report/samples/filter.h"
#include "report/samples/session.h"
#include "report/views/page/page_code.h"
#include "report/views/page/page_samples.h"
#include "report/views/why/causes.h"
#include "report/views/why/findings.h"
#include "report/views/why/wait_facts.h"
#include "report/views/why/why_forms.h"

namespace tacho::report {

class WhyPage {
 public:
  // `chosen`: which samples are in the page. The session must outlive this.
  enum class Code : std::uint8_t { LeftOut, Packed };  // source and instructions: page_code.h
  WhyPage(Session& session, Filter chosen, Code code);
  WhyPage(const WhyPage&) = delete;
  WhyPage& operator=(const WhyPage&) = delete;
  ~WhyPage() = default;

  // Takes each sample before WallTimes does.
  void take_sample(const ResolvedSample& sample);
  // WallObserver::keep and facts_of() deal in numbers of these: the sample that was taken last, and `facts`,
  // which WaitFactsTable::keep() returned for it.
  std::uint32_t keep(const ResolvedSample& sample, std::uint32_t facts);
  std::uint32_t facts_of(std::uint32_t kept) const { return kept_[kept].facts; }

  // After the last sample. `how.input` is empty if the capture is not kept.
  Result<> write(TextOutput& out, const Answer& answer, const WallTimes& times, const WaitFactsTable& facts,
                 const WhyText& how);
  // What the page lacks, a line each.
  std::vector<std::string> notes() const;

 private:
  struct Kept {
    std::uint32_t facts = 0, sample = 0;  // sample: number in the page; kNotInPage: it is left out
    std::uint64_t period = 0;
  };
  struct SampleTime {
    std::uint32_t sample = 0;
    double time = 0;  // ns of the finding
  };
  using SampleTimes = std::vector<SampleTime>;

  void add_span(SampleTimes& to, const WallSpan& span, double time) const;
  void add_operations(std::vector<SampleTimes>& to, const Answer& answer) const;
  void add_rows(std::vector<SampleTimes>& to, const Answer& answer, const WallTimes& times) const;
  // Of each finding, then of each of Answer::waits_for_work. The samples ascend.
  std::vector<SampleTimes> times_of_samples(const Answer& answer, const WallTimes& times) const;
  std::vector<PackedColumn> states_of(const WallTimes& times, const WaitFactsTable& facts);
  static std::vector<PackedColumn> columns_of(const std::vector<SampleTimes>& parts);
  void describe_findings(JsonFields& to, const Answer& answer, const WhyText& how,
                         const std::vector<SampleTimes>& samples) const;

  static constexpr std::uint32_t kNotInPage = ~std::uint32_t{0};
  Session& session_;
  Filter chosen_;
  Redaction redaction_;  // nothing is hidden
  Aliases aliases_ = Aliases::of_key("");
  PageNames names_{redaction_, aliases_};
  PageParts parts_;
  PageSamples samples_;
  // Where a sample counts in the code. A wait is taken in the kernel or a library: it counts at the call in
  // the program's innermost function. Others count where they were taken.
  LocationId place_of(const ResolvedSample& sample);
  std::optional<PageCode> code_;
  NamedChains stacks_;
  std::unordered_map<StackId, LocationId> places_;
  std::uint32_t last_ = kNotInPage;  // number in the page of the sample that was taken last
  std::vector<Kept> kept_{{}};       // number 0: no sample
};

}  // namespace tacho::report
