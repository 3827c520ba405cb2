// Detects damaged records of a capture, and finds the next sound record after the damage.
//
// A record is sound if its header is plausible (a size of at least 8 that does not exceed the rest of the
// capture; a type that exists with that size) and another plausible header follows. misc is not checked:
// perf 3.4 to 6.8 left it uninitialized in its own records.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "format/records/event_set.h"
#include "format/records/record_view.h"

namespace tacho::format {

// Returns the bytes to search: at least as many as requested, unless the source ends before. Valid until the
// next call.
using SearchArea = std::function<Bytes(std::size_t)>;

// A record's first 8 bytes.
struct RecordHeader {
  std::uint32_t type = 0;
  std::uint16_t misc = 0;
  std::size_t size = 0;  // bytes, these 8 included
};
// A kernel record of at least this size is checked more strictly (its fields must fill it), since a wrong
// size would hide many records.
inline constexpr std::size_t kLargeRecord = 2048;
// `bytes`: at least kRecordHeaderSize.
RecordHeader record_header(Bytes bytes, std::endian order);
// Whether a record may have this header, even a record of a future type: kernel records have sizes that are
// multiples of 8, and types are within the ranges of the kernel, perf and simpleperf. Samples of simpleperf
// may have any size: it cuts the copied stack to the bytes that the kernel could read.
bool is_possible(const RecordHeader& header);
// Whether the type is one of simpleperf's own records, 32768 and above (simpleperf_start.h).
bool is_simpleperf_type(std::uint32_t type);

class RecordSearch {
 public:
  // `events` must outlive the search, and may grow meanwhile.
  RecordSearch(const EventSet& events, std::endian order) : events_(&events), order_(order) {}

  // Whether the bytes are a whole record of this capture: its fields fill its size, its event is known, and
  // pids, CPUs and times are possible. `is_strong` is set if the bytes cannot be anything else.
  bool is_sound(Bytes record, bool* is_strong = nullptr) const;
  // Checks the record at the start of the area, which takes `whole` bytes including its payload. Returns how
  // many of these bytes are damaged: 0 for a sound record. Nothing: the damage ends at the next sound record
  // (next_sound()).
  std::optional<std::size_t> damaged(const SearchArea& have, std::size_t whole) const;
  // Whether plausible headers, or the end, follow the first `size` bytes.
  bool leads_on(const SearchArea& have, std::size_t size) const;
  // The first sound record in [from, until); nothing: there is none.
  std::optional<std::size_t> next_sound(const SearchArea& have, std::size_t from, std::size_t until) const;

 private:
  std::optional<std::size_t> swallowed(const SearchArea& have, std::size_t size) const;
  bool has_possible_ids(const RecordView& record, const EventAttr& attr) const;
  std::size_t next_known_header(Bytes bytes, std::size_t at, std::size_t last) const;
  bool is_accepted(const SearchArea& have, std::size_t at, std::size_t* size) const;

  const EventSet* events_;
  std::endian order_;
};

}  // namespace tacho::format
