#include "report/samples/run_ahead.h"

#include <optional>
#include <span>
#include <system_error>
#include <thread>

#include "report/samples/sample_queue.h"

namespace tacho::report {
namespace {

using Flow = Sink::Flow;

// The reading thread's end of the queue.
class Forward : public Outlet {
 public:
  Forward(SampleQueue& queue, const Sink& sink, std::stop_token cancel)
      : queue_(&queue), reads_(sink.reads()), stacks_(sink.stacks()), cancel_(std::move(cancel)) {}
  ~Forward() override {
    queue_->put(batch_);
    queue_->end();
  }
  Forward(const Forward&) = delete;
  Forward& operator=(const Forward&) = delete;

  Needs needs() const override { return Needs::Names; }
  Stacks stacks() const override { return stacks_; }
  Flow on_sample(const ResolvedSample& sample) override {
    QueuedSample queued{.location = sample.place,
                        .period = sample.period,
                        .thread = sample.thread,
                        .comm = sample.comm,
                        .stack = sample.stack,
                        .event_index = static_cast<std::uint32_t>(sample.event_index),
                        .record_event = static_cast<std::uint32_t>(sample.record_event) & 0x7fffffff,
                        .has_payload_stack = sample.has_payload_stack};
    if (sample.stack_memory != nullptr) batch_.keep(*sample.stack_memory, *sample.stack);
    if (reads_ == Reads::Nothing) {
      batch_.add(queued);
    } else if (reads_ == Reads::Start) {
      const format::Sample& raw = *sample.raw;
      batch_.add(queued, {{raw.ip, raw.period, raw.pid, raw.tid, raw.cpu, raw.misc}, raw.time});
    } else {
      const format::Bytes record = sample.record->bytes;
      queued.record = record.data();
      queued.size = static_cast<std::uint16_t>(record.size());
      batch_.add(queued, *sample.block);
    }
    constexpr std::size_t kMostSamples = 1024, kMostBytes = std::size_t{1} << 20;
    if (batch_.samples.size() < kMostSamples && batch_.bytes < kMostBytes) return Flow::GoOn;
    return queue_->put(batch_) ? Flow::GoOn : Flow::Stop;
  }

  // A batch without samples tells as well how far the reading is.
  Flow on_progress(std::uint64_t bytes) override {
    batch_.bytes_read = bytes;
    return queue_->put(batch_) && !cancel_.stop_requested() ? Flow::GoOn : Flow::Stop;
  }

  void wait_until_shown() override {
    queue_->put(batch_);
    queue_->wait_until_taken();
  }

 private:
  SampleQueue* queue_;
  Reads reads_;
  Stacks stacks_;
  std::stop_token cancel_;
  SampleBatch batch_;
};

// The showing thread's end.
class Shown {
 public:
  Shown(std::shared_ptr<const format::CaptureHeader> header, const StableArray<Location>& locations,
        const CgroupNames& cgroups, Sink& sink)
      : header_(std::move(header)), locations_(&locations), cgroups_(&cgroups), sink_(&sink) {}

  Flow show(const SampleBatch& batch) {
    const std::span<const QueuedSample> samples = batch.samples;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      prefetch(samples, i);
      const Flow flow = samples[i].record != nullptr ? show(samples[i], batch.blocks[samples[i].block])
                        : !batch.starts.empty()      ? show(samples[i], batch.starts[i])
                                                     : sink_->on_sample(without_record(samples[i]));
      if (flow == Flow::Stop) return flow;
    }
    return Flow::GoOn;
  }

 private:
  // The other thread touched it all last, and stacks may lie anywhere.
  static void prefetch(std::span<const QueuedSample> samples, std::size_t at) {
    constexpr std::size_t kRecords = 8, kFrames = 4;  // samples ahead
    if (at + kRecords < samples.size()) {
      if (samples[at + kRecords].record != nullptr) __builtin_prefetch(samples[at + kRecords].record);
      if (samples[at + kRecords].stack != nullptr) __builtin_prefetch(samples[at + kRecords].stack);
    }
    if (at + kFrames < samples.size() && samples[at + kFrames].stack != nullptr)
      __builtin_prefetch(samples[at + kFrames].stack->frames.data());
  }
  Flow show(const QueuedSample& queued, const format::BlockRef& block) {
    const format::RecordView view = format::whole_record({queued.record, queued.size}, header_->layout.order);
    const format::Sample* const sample = parser_.parse(view, header_->events[queued.record_event].attr);
    if (sample == nullptr) return Flow::GoOn;  // cannot be: it was parsed before
    ResolvedSample resolved = without_record(queued);
    resolved.raw = sample;
    resolved.record = &view;
    resolved.block = &block;
    resolved.order = view.order;
    return sink_->on_sample(resolved);
  }
  Flow show(const QueuedSample& queued, const QueuedStart& start) {
    start.fields.copy_to(start_);
    start_.time = start.time;
    ResolvedSample resolved = without_record(queued);
    resolved.raw = &start_;
    return sink_->on_sample(resolved);
  }
  ResolvedSample without_record(const QueuedSample& queued) const {
    return {.raw = nullptr,
            .record = nullptr,
            .block = nullptr,
            .events = &header_->events,
            .event_index = queued.event_index,
            .record_event = queued.record_event,
            .period = queued.period,
            .thread = queued.thread,
            .comm = queued.comm,
            .location = &(*locations_)[queued.location],
            .place = queued.location,
            .stack = queued.stack,
            .order = header_->layout.order,
            .has_payload_stack = queued.has_payload_stack != 0,
            .cgroups = cgroups_};
  }

  std::shared_ptr<const format::CaptureHeader> header_;
  const StableArray<Location>* locations_;
  const CgroupNames* cgroups_;
  Sink* sink_;
  format::SampleParser parser_;
  format::Sample start_;  // of the sample at hand, where no more than its start travels
};

// Null when the system gives none.
template <class Work>
std::optional<std::jthread> start_thread(Work&& work) {
  try {
    return std::jthread(std::forward<Work>(work));
  } catch (const std::system_error&) {
    return std::nullopt;
  }
}

}  // namespace

bool run_ahead(SampleReader& reader, std::shared_ptr<const format::CaptureHeader> header,
               const SampleOptions& options, Sink& sink, const RunControl& control, NamesOf names_of) {
  SampleQueue queue;
  const std::optional<std::jthread> thread = start_thread([&] {
    Forward forward(queue, sink, control.cancel);
    reader.read(options, forward, std::move(names_of));
  });
  if (!thread) return false;
  ReadProgress progress{0, header->layout.file_size};
  Shown shown(std::move(header), reader.locations(), reader.cgroups(), sink);
  SampleBatch batch;
  while (queue.take(batch)) {
    if (control.progress && batch.bytes_read != 0) {
      progress.bytes_read = batch.bytes_read;
      control.progress(progress);
    }
    if (control.cancel.stop_requested() || shown.show(batch) == Flow::Stop) {
      queue.stop();
      break;
    }
  }
  return true;
}

}  // namespace tacho::report
