// The one loop behind every view: reader -> time order -> address spaces -> resolved samples -> a sink.
//
// Cost follows what is distinct: a call chain of one version of an address space is looked up once, and so is
// each address; names are looked up only when a view asks for them (frames()).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/capture_reader.h"
#include "format/record.h"
#include "report/samples/filter.h"
#include "report/samples/resolved_sample.h"
#include "symbolize/symbolizer.h"

namespace tacho::report {

struct SessionOptions {
  std::string input = "perf.data";  // "-": standard input
  symbolize::SymbolOptions symbols;
  Filter filter;
  std::size_t max_stack = 127;  // frames of a call chain
  bool wants_stacks = true;     // false: samples come without their call chains
};

// A record that is no sample, with what its trailer says.
struct OtherEvent {
  const format::RecordView* view = nullptr;
  const format::Record* record = nullptr;
  format::SampleId id;
  std::size_t event_index = 0;
  const Thread* thread = nullptr;  // whom the record is about; null when it names nobody
};

class Sink {
 public:
  enum class Flow : std::uint8_t { GoOn, Stop };
  // What it needs beside the samples. A sink that asks for no more than names of the samples' own places and
  // of kernel functions is fed by a thread that reads ahead.
  enum class Needs : std::uint8_t { Names, Everything };
  virtual ~Sink() = default;
  virtual Needs needs() const { return Needs::Everything; }
  virtual Flow on_sample(const ResolvedSample& sample) = 0;
  // Kernel records other than samples, in their place. An EXIT comes before it takes effect, all others
  // after.
  virtual Flow on_other(const OtherEvent&) { return Flow::GoOn; }
  // What all processes share (the kernel's mappings, build ids) is about to change.
  virtual void before_shared_change() {}
};

class Session {
 public:
  static Result<Session> open(SessionOptions options);
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  const format::EventSet& events() const;
  const format::Features& features() const;
  const format::CaptureLayout& layout() const;
  format::Diagnostics& diagnostics();
  Filter& filter();  // for what needs the header: set before run()

  // Gives every sample that passes the filter to `sink`, in time order, on the caller's thread.
  void run(Sink& sink);

  // The place with this number, of a stack's frames.
  const Location& location(std::uint32_t number) const;
  // Names of a place of a stack, innermost inlined call first; at least one frame. Looked up anew each time,
  // and valid until the next lookup: views keep what they make of it by the place's number.
  std::span<const symbolize::Frame> frames(const Location& location);
  // Its name as a place that stands alone: without the inlined calls in it. As valid as frames().
  const symbolize::Frame& frame(const Location& location);
  // Where another address of the sample (its data address) lies. For sinks that need everything.
  const Location& locate(const ResolvedSample& sample, std::uint64_t address);
  // A kernel function, for tracepoint texts. As valid as frames().
  std::span<const symbolize::Frame> kernel_frames(std::uint64_t address);

  // Instructions at an address of the place's module, at most `size` bytes; empty when its file is not at
  // hand.
  format::Bytes code(const Location& location, std::uint64_t address, std::size_t size);
  bool is_64_bit(const Location& location);
  // A file of the recording host: below --symfs, or this machine's own.
  Result<std::vector<std::byte>> recorded_file(const std::string& path) const;

  // Sum of LOST_SAMPLES, as perf's report heads its output with.
  std::uint64_t lost_samples() const;
  // After run(): adds the modules without names to the diagnostics.
  void report_missing_symbols();

 private:
  bool may_run_ahead(const Sink& sink) const;
  void run_ahead(Sink& sink);
  struct State;
  explicit Session(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tacho::report
