// Samples one by one, for formats of tacho export that show them over time: with thread, weight and stack,
// the payloads of events, and waits as intervals.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "report/decode/payload.h"
#include "report/output/field_sinks.h"
#include "report/profile/weight.h"
#include "report/profile/weight_unit.h"
#include "report/query/waits.h"
#include "report/samples/session.h"
#include "report/samples/sink.h"
#include "report/views/export/export_code.h"

namespace tacho::report {

struct ExportThread {
  std::uint32_t pid = 0, tid = 0;
  std::string_view comm;  // the last one; unchecked bytes
};

struct ExportSample {
  std::uint64_t time = 0;  // ns, of the recording clock; 0: not recorded
  std::uint64_t weight = 0;
  std::uint32_t thread = 0, event = 0;  // in threads(); of the session
  std::uint32_t stack = 0;              // of code()
  std::uint32_t cpu = 0;                // plus 1; 0: not recorded
};

// A point or an interval of a thread's time.
struct ExportMarker {
  static constexpr std::uint32_t kWait = ~std::uint32_t{0};
  std::uint64_t begin = 0, end = 0;  // ns; equal: a point
  std::uint32_t thread = 0;
  std::uint32_t event = 0;  // of the session; kWait: a wait off the CPU that two samples show
  std::uint32_t stack = 0;
  std::string_view waker{};  // of a wait: the name of the thread that ended it; unchecked bytes
  std::size_t payload_at = 0;
  std::uint32_t payload_size = 0;
};

class ExportEvents : public Sink {
 public:
  // The session's events must be known (read_head()), and it must outlive this.
  ExportEvents(Session& session, ExportPlaces places);

  // After the run:
  ExportCode& code() { return code_; }
  const std::vector<ExportThread>& threads() const { return threads_; }
  const std::vector<ExportSample>& samples() const { return samples_; }  // in the order of time
  const std::vector<ExportMarker>& markers() const { return markers_; }  // by their end
  bool has_samples() const { return !samples_.empty(); }
  std::uint64_t first_time() const { return first_time_; }  // ns
  std::uint64_t last_time() const { return last_time_; }
  // The unit of the event's weights: "ns", "bytes", "samples", the event's name, ...
  std::string unit_of(std::size_t event);
  // Of the event's payload; null: it has none.
  const PayloadSchema* schema_of(std::size_t event) { return schemas_.schema_of(event); }
  void describe_marker(FieldSink& to, const ExportMarker& marker);
  // The value of a marker of an event (role:value), if that is no time.
  struct Amount {
    std::string name, unit;  // safe to print; no unit: empty
    double value = 0;
  };
  std::optional<Amount> amount_of(const ExportMarker& marker);
  // Markers by thread, and in a thread by their begin, an outer one before those inside; and the lane of
  // each: in one lane of a thread they nest or are apart.
  struct Placed {
    std::uint32_t marker = 0, lane = 0;
  };
  std::vector<Placed> placed_markers() const;
  // The number of samples of each event.
  const std::vector<std::uint64_t>& counts() const { return counts_; }

  // Sink:
  bool takes_non_samples() const override { return false; }
  Flow on_sample(const ResolvedSample& sample) override;

 private:
  std::uint32_t thread_of(const Thread* thread, std::string_view comm);
  void add_marker(const ResolvedSample& sample, const ExportSample& added);
  void add_wait(const Wait& wait);

  Session& session_;
  EventSchemas schemas_;
  PeriodFields periods_;
  WeightChoice weights_;
  ExportCode code_;
  std::optional<Waits> waits_;
  std::vector<ExportThread> threads_;
  std::unordered_map<const Thread*, std::uint32_t> by_thread_;
  std::vector<ExportSample> samples_;
  std::vector<ExportMarker> markers_;
  std::vector<std::byte> payloads_;
  std::vector<std::uint64_t> counts_;  // by event
  std::uint64_t first_time_ = 0, last_time_ = 0;
  bool has_times_ = false;
  std::endian order_ = std::endian::native;
};

}  // namespace tacho::report
