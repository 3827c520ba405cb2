#include "record/output/capture_output.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <utility>

#include "format/container/content_classes.h"
#include "format/container/pipe_writer.h"

namespace tacho::record {

namespace {

// Both writers take records in the same way.
template <class Writer>
class WriterOutput : public CaptureOutput {
 public:
  explicit WriterOutput(Writer writer) : writer_(std::move(writer)) {}
  Result<> write_plain(format::Bytes records) override { return writer_.write_plain(records); }
  Result<> write_records(format::Bytes records) override { return writer_.write_records(records); }
  Result<bool> write_within(format::Bytes records, std::uint64_t most_bytes) override {
    return writer_.write_records_within(records, most_bytes);
  }
  std::uint64_t closing_room() const override { return writer_.closing_room(); }
  Result<> finish_round() override { return writer_.finish_round(); }

 protected:
  Writer writer_;
};

class FileOutput final : public WriterOutput<format::CaptureWriter> {
 public:
  using WriterOutput::WriterOutput;
  Result<> close_capture(const format::Features& late) override { return writer_.close_file(late); }
  Result<> close_after_failure() override { return writer_.close_after_failure(); }
  std::uint64_t bytes() const override { return writer_.file_bytes(); }
};

class PipeOutput final : public WriterOutput<format::PipeWriter> {
 public:
  using WriterOutput::WriterOutput;
  Result<> close_capture(const format::Features& late) override {
    for (std::uint32_t feature = 0; feature < format::abi::kFeatureCount; ++feature) {
      format::ByteWriter section;
      if (!format::write_feature(feature, late, section)) continue;
      if (auto done = writer_.write_section(feature, section.view()); !done) return done;
    }
    return Done{};
  }
  // Data in a pipe cannot be removed.
  Result<> close_after_failure() override { return Done{}; }
  std::uint64_t bytes() const override { return writer_.bytes(); }
};

// Writes to a pipe until its reader has ended.
format::PipeWriter::Write write_to_reader(format::Fd out, int reader) {
  return [out = std::make_shared<format::Fd>(std::move(out)), reader](format::Bytes bytes) -> Result<> {
    while (!bytes.empty()) {
      std::array<pollfd, 2> news{{{out->get(), POLLOUT, 0}, {reader, POLLIN, 0}}};
      if (poll(news.data(), news.size(), -1) < 0 && errno != EINTR) return system_error("poll", errno);
      if (news[1].revents != 0) return output_error("the view has ended", EPIPE);
      const ssize_t count = write(out->get(), bytes.data(), bytes.size());
      if (count < 0 && errno != EINTR && errno != EAGAIN)
        return output_error(system_error("write", errno).what, errno);
      bytes = bytes.subspan(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    }
    return Done{};
  };
}

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
                                                        const format::WriteOptions& options, int reader) {
  features.environment.content = format::content_by_head(events, features);
  auto writer = reader < 0 ? format::PipeWriter::create(std::move(out), events, std::move(features), options)
                           : format::PipeWriter::create(write_to_reader(std::move(out), reader), events,
                                                        std::move(features), options);
  if (!writer) return std::move(writer.error());
  return std::unique_ptr<CaptureOutput>(std::make_unique<PipeOutput>(std::move(*writer)));
}

}  // namespace tacho::record
