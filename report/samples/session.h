// Session: opens and reads a capture, and gives its samples to a view.
//
// Each distinct address and call chain is resolved once per address space; names are looked up when a view
// asks for them (Resolver).
//
//   batches.h       records in time order, each sample with its thread and address space
//   sample_lane.h   fields and call chains of a batch's samples; serial views
//   sums.h          parallel views that add samples up
//   text_view.h     parallel views that print samples
//   resolver.h      names of locations
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "format/base/worker_pool.h"
#include "format/container/capture_reader.h"
#include "report/samples/filter.h"
#include "report/samples/resolver.h"
#include "report/samples/sink.h"
#include "symbolize/symbolizer.h"

namespace tacho::report {

struct SessionOptions : SampleOptions {
  std::string input = "perf.data";  // "-": standard input
  symbolize::SymbolOptions symbols;
  format::ReadOptions capture;
  unsigned jobs = 0;     // threads; 0: one for each CPU, at most 8
  bool in_step = false;  // one thread: each sample is given to the view before more is read
};

// How far a run has got.
struct ReadProgress {
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_total = 0;  // 0: unknown, as of a pipe
};

// Progress and cancellation of a run.
struct RunControl {
  std::function<void(const ReadProgress&)>
      progress;            // called with each batch, on the thread of run(); may be empty
  std::stop_token cancel;  // checked at each sample or batch
};

// Belongs to one thread.
class Session {
 public:
  static Result<Session> open(SessionOptions options);
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // Of a pipe, events and features grow during run(); a sample comes after its event and its features.
  const format::EventSet& events() const;
  const format::Features& features() const;
  const format::CaptureLayout& layout() const;
  // Whether the capture may still be written (ReadOptions::following). While there is nothing new, run()
  // calls RunControl::progress about ten times a second.
  bool follows() const;
  // Problems found by open(), by views and, once run() has returned, by run().
  format::Diagnostics& diagnostics();
  Filter& filter();  // mutable until run(): some filters need the header
  // Whether the filter has a condition that bind_condition() must still bind to the events' fields: call it
  // when these are known, of a pipe after its header. A usage error: a field that it names does not exist.
  bool has_condition() const;
  Result<> bind_condition();
  // An error if the filter names an event that the capture does not have. open() checks files; call it after
  // a pipe's header.
  Result<> check_events() const;

  // Gives every sample that passes the filter to `sink`, in time order, on the caller's thread. A capture is
  // read once: a second run of a file throws std::logic_error. With a pipe, the next run() continues where
  // the sink stopped.
  void run(Sink& sink, const RunControl& control = {});

  // Threads (`jobs`) for work after the last sample. The first call makes them.
  format::WorkerPool& pool();

  // Names of the samples' locations, during run() and after.
  Resolver& resolver();
  // Gives every thread its last name so far, which a run does at its end. For runs with
  // SessionOptions::in_step: in others, threads read the names.
  void use_last_names();
  // JIT-compiled functions known so far. Do not call it during run().
  const symbolize::JitCode& jit_code() const;

  // Sum of LOST_SAMPLES, as in the header of perf report. After run().
  std::uint64_t lost_samples() const;
  // After run(): adds modules without symbols to the diagnostics.
  void report_missing_symbols();

 private:
  struct State;
  explicit Session(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tacho::report
