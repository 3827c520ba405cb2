// Which events and samples of a capture go into its copy, and whose the other records are there.
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
  // `names`: events to keep, empty for all; `times`: the text after --time, empty for all. An error when one
  // of them cannot be found in the capture. `events` must outlive the selection.
  static Result<ConvertSelection> create(const std::vector<std::string>& names, const std::string& times,
                                         const format::EventSet& events, const format::Features& features);

  // The events that stay: all of them as they stand, or else a part in `scratch`.
  const format::EventSet& events(format::EventSet& scratch) const;
  // Makes the header's sections true for what stays.
  void adjust(format::Features& features) const;
  // What a record, which is in this machine's byte order, becomes in the copy: itself, or bytes in `scratch`;
  // nothing when it goes.
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
  std::vector<bool> kept_;  // for each event; empty: all of them
  std::size_t heir_ = 0;    // the first that stays: records of mappings and threads become its own
  Filter filter_;           // times only
};

}  // namespace tacho::report
