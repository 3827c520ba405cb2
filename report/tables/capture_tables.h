// A capture as tables: samples and events row by row, stacks when they are first seen, frames with their
// names at the end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/base/seeded_hash.h"
#include "report/decode/payload.h"
#include "report/profile/weight.h"
#include "report/profile/weight_unit.h"
#include "report/samples/session.h"
#include "report/tables/content_ids.h"
#include "report/tables/table_stream.h"
#include "tsl/robin_set.h"

namespace tacho::report {

// What a capture does not say about itself.
struct CaptureLabels {
  std::string host;  // empty: the recorded one
  std::string service, release, host_class;
};

// How times of samples become times since 1970.
struct TableClock {
  enum class Of : std::uint8_t {
    Recorded,  // the capture has both clocks
    File,      // its file was last changed when the recording ended
    None,      // times since the start of the host
  };
  Of of = Of::None;
  std::int64_t shift = 0;  // ns
};

class CaptureTables : public Sink {
 public:
  // All must outlive this. `path`: of the capture.
  CaptureTables(Session& session, TableStream& to, const ContentId& id, const std::string& path,
                const CaptureLabels& labels);

  // To be called when the session's events are known, before run().
  void prepare();
  // After run(): names, losses and the capture itself.
  void finish();

  std::uint64_t samples() const { return samples_; }
  const Unweighed& unweighed() const { return weight_->unweighed(); }

  bool takes_non_samples() const override { return false; }
  Flow on_sample(const ResolvedSample& sample) override;

 private:
  struct IdHash : format::SeededHash {
    std::size_t operator()(const ContentId& id) const { return format::SeededHash::operator()(id.low); }
    std::size_t operator()(std::uint64_t id) const { return format::SeededHash::operator()(id); }
  };
  // The stack's id as text; its row is written when it is new.
  std::string_view stack_id_of(const ResolvedSample& sample);
  ContentId write_stack(std::span<const LocationId> frames);
  std::uint64_t frame_id_of(LocationId location);
  void write_sample(const ResolvedSample& sample, std::uint64_t value);
  void write_event(const ResolvedSample& sample, std::uint64_t value, const PayloadSchema& schema);
  void write_start(RowWriter& row, const ResolvedSample& sample);
  void write_thread(RowWriter& row, const ResolvedSample& sample);
  void write_frames();
  void write_losses();
  void write_capture();

  Session* session_;
  TableStream* to_;
  ContentId id_;
  std::string id_text_, path_;
  CaptureLabels labels_;
  TableClock clock_;
  EventSchemas schemas_;
  PeriodFields periods_;
  std::optional<WeightChoice> weight_;
  std::vector<std::string> units_;  // by event
  IdMap<LocationId, std::uint64_t> frame_ids_{0};
  std::vector<LocationId> frames_;  // each used location once
  IdMap<StackId, ContentId> stack_ids_;
  IdMap<LocationId, ContentId> own_ids_;  // of stacks that are one frame
  tsl::robin_set<ContentId, IdHash> written_stacks_;
  std::vector<std::uint64_t> stack_;  // scratch
  std::string stack_text_;            // scratch
  ContentId shown_stack_;             // of stack_text_
  TextBuffer payload_;                // scratch
  std::uint64_t samples_ = 0, first_time_ = ~std::uint64_t{0}, last_time_ = 0;
};

}  // namespace tacho::report
