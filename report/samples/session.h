// Session: opens and reads a capture, and gives its samples to a view.
//
// Each distinct address and each distinct call chain of a version of an address space is looked up once.
// Names are looked up when a view needs them (Resolver).
//
//   batches.h       records in order, each sample with its thread and address space
//   sample_lane.h   a batch's samples with their places and call chains
//   resolver.h      names of places
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
  unsigned jobs = 0;     // threads that read and show; 0: one for each processor, at most 8
  bool in_step = false;  // one thread, and samples are shown before more is read
};

// How far a run is. Called on the thread that calls the sink, with each batch.
struct ReadProgress {
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_total = 0;  // 0: not known, as of a pipe
};

// Progress and cancellation of a run.
struct RunControl {
  std::function<void(const ReadProgress&)> progress;  // may be empty
  std::stop_token cancel;  // asked at each sample or batch of samples, and with progress
};

// Belongs to one thread, which also calls the sink and looks up names.
class Session {
 public:
  static Result<Session> open(SessionOptions options);
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // Of a pipe they grow while it is read; all that a sample needs is there when it is given.
  const format::EventSet& events() const;
  const format::Features& features() const;
  const format::CaptureLayout& layout() const;
  // The capture may still be written (ReadOptions::following): whenever there is nothing new, about ten times
  // a second, run() calls RunControl::progress.
  bool follows() const;
  // What opening and finished runs found, and what views add. What a run finds stands here when it is over.
  format::Diagnostics& diagnostics();
  Filter& filter();  // for what needs the header: set before run()
  // The filter's condition asks for fields of events, so it counts only from here on: once the events are
  // known, of a pipe when its head is read. An error of the use: what it names is not there.
  bool has_condition() const;
  Result<> bind_condition();
  // Whether the names of events in its filter (event_choice.h) mean some of the capture's. Of a file that is
  // asked when it is opened.
  Result<> check_events() const;

  // Gives every sample that passes the filter to `sink`, in time order, on the caller's thread. Once only,
  // but for a pipe whose reading a sink stopped: a second run of a file throws std::logic_error.
  void run(Sink& sink, const RunControl& control = {});

  // Threads for what comes after the samples, made when they are first asked for: as many as the options say.
  format::WorkerPool& pool();

  // Names of the samples' places, during run() and after.
  Resolver& resolver();
  // Code made at run time, as far as it was mapped by now; not while it runs.
  const symbolize::JitCode& jit_code() const;

  // Sum of LOST_SAMPLES of the runs that are over, as perf's report heads its output with.
  std::uint64_t lost_samples() const;
  // After run(): adds the modules without names to the diagnostics.
  void report_missing_symbols();

 private:
  struct State;
  explicit Session(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tacho::report
