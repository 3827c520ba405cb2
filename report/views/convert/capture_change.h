// What becomes of a capture's content on its way into a copy.
#pragma once

#include <optional>

#include "format/base/byte_writer.h"
#include "format/base/result.h"
#include "format/container/features.h"
#include "format/records/event_set.h"
#include "format/records/record_view.h"

namespace tacho::report {

class CaptureChange {
 public:
  CaptureChange() = default;
  CaptureChange(const CaptureChange&) = delete;
  CaptureChange& operator=(const CaptureChange&) = delete;
  virtual ~CaptureChange() = default;

  // Once, before the first record: the events and the sections of the copy. Sections that are not taken apart
  // (Features::raw) are not among them.
  virtual Result<> change_head(format::EventSet& events, format::Features& features) = 0;
  // What a record of those events, in this machine's byte order, becomes: itself, or bytes in `scratch`;
  // nothing when it goes.
  virtual std::optional<format::RecordView> change(const format::RecordView& record,
                                                   format::ByteWriter& scratch) = 0;
};

}  // namespace tacho::report
