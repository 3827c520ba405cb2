#include "record/output/capture_output.h"

#include <utility>

#include "format/byte_writer.h"
#include "format/content_classes.h"
#include "format/perf_abi.h"
#include "format/pipe_writer.h"

namespace tacho::record {
namespace {

class FileOutput final : public CaptureOutput {
 public:
  explicit FileOutput(format::CaptureWriter writer) : writer_(std::move(writer)) {}
  Result<> write_plain(format::Bytes records) override { return writer_.write_plain(records); }
  Result<> write_records(format::Bytes records) override { return writer_.write_records(records); }
  Result<> write_packed(format::Bytes packed, std::uint64_t inflated, const RecordCounts&) override {
    return writer_.write_packed(packed, inflated);
  }
  Result<bool> write_within(format::Bytes records, std::uint64_t most_bytes) override {
    return writer_.write_records_within(records, most_bytes);
  }
  std::uint64_t closing_room() const override { return writer_.closing_room(); }
  Result<> finish_round() override { return writer_.finish_round(); }
  Result<> close(const format::Features& late) override { return writer_.close(late); }
  Result<> close_after_failure() override { return writer_.close_after_failure(); }
  std::uint64_t bytes() const override { return writer_.file_bytes(); }

 private:
  format::CaptureWriter writer_;
};

class PipeOutput final : public CaptureOutput {
 public:
  explicit PipeOutput(format::PipeWriter writer) : writer_(std::move(writer)) {}
  Result<> write_plain(format::Bytes records) override { return writer_.write_plain(records); }
  Result<> write_records(format::Bytes records) override { return writer_.write_records(records); }
  Result<bool> write_within(format::Bytes records, std::uint64_t most_bytes) override {
    return writer_.write_records_within(records, most_bytes);
  }
  std::uint64_t closing_room() const override { return writer_.closing_room(); }
  Result<> finish_round() override { return writer_.finish_round(); }
  Result<> close(const format::Features& late) override {
    for (std::uint32_t feature = 0; feature < format::abi::kFeatureCount; ++feature) {
      format::ByteWriter section;
      if (!format::write_feature(feature, late, section)) continue;
      if (auto done = writer_.write_section(feature, section.view()); !done) return done;
    }
    return Done{};
  }
  // What went through a pipe cannot be taken back.
  Result<> close_after_failure() override { return Done{}; }
  std::uint64_t bytes() const override { return writer_.bytes(); }

 private:
  format::PipeWriter writer_;
};

}  // namespace

Result<std::unique_ptr<CaptureOutput>> open_file_output(const std::string& path,
                                                        const format::EventSet& events,
                                                        format::Features features,
                                                        const format::WriteOptions& options) {
  features.environment.content = format::content_by_head(events, features);
  auto writer = format::CaptureWriter::create(path, events, std::move(features), options);
  if (!writer) return std::move(writer.error());
  return std::unique_ptr<CaptureOutput>(std::make_unique<FileOutput>(std::move(*writer)));
}

Result<std::unique_ptr<CaptureOutput>> open_pipe_output(format::Fd out, const format::EventSet& events,
                                                        format::Features features,
                                                        const format::WriteOptions& options) {
  features.environment.content = format::content_by_head(events, features);
  auto writer = format::PipeWriter::create(std::move(out), events, std::move(features), options);
  if (!writer) return std::move(writer.error());
  return std::unique_ptr<CaptureOutput>(std::make_unique<PipeOutput>(std::move(*writer)));
}

}  // namespace tacho::record
