// convert --events and --time: selects the events and samples of the copy, and assigns other records to the
// events that stay.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/base/byte_writer.h"
#include "format/base/diagnostics.h"
#include "format/base/result.h"
#include "format/container/features.h"
#include "format/records/event_set.h"
#include "format/records/record_view.h"
#include "report/samples/filter.h"

namespace tacho::report {

class ConvertSelection {
 public:
  // `names` are the events to keep, `times` is the value of --time; both may be empty: all. Refused when the
  // capture lacks one of them. `events` must outlive this.
  static Result<ConvertSelection> create(const std::vector<std::string>& names, const std::string& times,
                                         const format::EventSet& events, const format::Features& features);

  // The events of the copy: `events` itself, or a part of them in `scratch`.
  const format::EventSet& events(format::EventSet& scratch) const;
  // Adjusts the feature sections to the events of the copy.
  void adjust(format::Features& features) const;
  // A record (in this machine's byte order) in the copy: itself, a new one in `scratch`, or nullopt: dropped.
  std::optional<format::RecordView> apply(const format::RecordView& record, format::ByteWriter& scratch,
                                          format::Diagnostics& diagnostics) const;

 private:
  explicit ConvertSelection(const format::EventSet& events) : all_(&events) {}
  Result<> choose(const std::vector<std::string>& names, const format::Features& features);
  void keep_groups_whole(const format::Features& features);
  Result<> choose_times(const std::string& times, const format::Features& features);
  bool keeps(std::size_t event) const { return kept_.empty() || (event < kept_.size() && kept_[event]); }
  bool keeps_id(std::uint64_t id) const;
  std::optional<format::RecordView> apply_to_kernel(const format::RecordView& record,
                                                    format::ByteWriter& scratch,
                                                    format::Diagnostics& diagnostics) const;
  format::RecordView give_to_heir(const format::RecordView& record, const format::EventAttr& from,
                                  format::ByteWriter& scratch) const;
  format::RecordView shorten_id_index(const format::RecordView& record, format::ByteWriter& scratch) const;

  const format::EventSet* all_;
  std::vector<bool> kept_;  // by event; empty: all
  std::size_t heir_ = 0;    // the first event that stays, which gets the mmap, comm and fork records
  Filter filter_;           // times only
};

}  // namespace tacho::report
