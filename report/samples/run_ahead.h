// A session on two threads: one reads, orders and tells stacks apart, the other names and shows.
//
// They share nothing that changes, but for the queue between them. What the reading thread makes travels with
// the samples (places, stacks and threads, which never change once they are made; the blocks that records lie
// in); the header is const for both; and SharedSpaces waits before it changes what names come from.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>

#include "format/container/capture_reader.h"
#include "report/samples/sample_reader.h"
#include "report/samples/sink.h"

namespace tacho::report {

// How far a run is. Called on the thread that calls the sink, about once for each quarter of a megabyte read.
struct ReadProgress {
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_total = 0;  // 0: not known, as of a pipe
};

// What a caller may want to know and say while a session runs.
struct RunControl {
  std::function<void(const ReadProgress&)> progress;  // may be empty
  std::stop_token cancel;  // asked at each sample or batch of samples, and with progress
};

// Feeds `sink`, which asks for names only, while `reader` reads on a thread of its own, and asks `names_of`
// there. False: the system gives no thread, and nothing was read.
bool run_ahead(SampleReader& reader, std::shared_ptr<const format::CaptureHeader> header,
               const SampleOptions& options, Sink& sink, const RunControl& control, NamesOf names_of = {});

}  // namespace tacho::report
