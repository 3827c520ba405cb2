// Finds damage between the records of a capture, and the next sound record behind it.
//
// A record counts as sound when its header is plausible (a size of at least 8, within the bytes that are
// there; a type that exists with that size) and another plausible header follows. misc is not checked:
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

// Returns the bytes to search, from a given offset on: at least as many as requested, unless the source ends
// before. Valid until the next call.
using SearchArea = std::function<Bytes(std::size_t)>;

// A record's first 8 bytes.
struct RecordHeader {
  std::uint32_t type = 0;
  std::uint16_t misc = 0;
  std::size_t size = 0;  // bytes, these 8 included
};
// A kernel record of this size may hold many others when its size is wrong: its fields must fill it.
inline constexpr std::size_t kLargeRecord = 2048;
// `bytes`: at least kRecordHeaderSize.
RecordHeader record_header(Bytes bytes, std::endian order);
// False when no record has such a header, however new its type: the kernel's sizes are multiples of 8, perf's
// own ones need not be, and no type is 0 or beyond what these two and simpleperf will ever number. Of samples
// simpleperf keeps that much of a copied stack as the kernel could read, to the byte: on arm64 some are of
// any size.
bool is_possible(const RecordHeader& header);
// simpleperf has records of its own among the kernel's, of types from 32768 on (simpleperf_start.h).
bool is_simpleperf_type(std::uint32_t type);

class RecordSearch {
 public:
  // `events` must outlive the search, and may grow meanwhile.
  RecordSearch(const EventSet& events, std::endian order) : events_(&events), order_(order) {}

  // Whether the bytes are a whole record as the capture's events describe it: its fields fill its size, its
  // event is known, processes, CPUs and times are possible ones. `is_strong` is set when that is so much that
  // the bytes cannot be anything else.
  bool is_sound(Bytes record, bool* is_strong = nullptr) const;
  // How many bytes at the start of the area, where a record stands which takes `whole` bytes with what
  // belongs to it, are damage: 0 when it is believed. Nothing when damage goes on to the next sound record,
  // which next_sound() finds.
  std::optional<std::size_t> damaged(const SearchArea& have, std::size_t whole) const;
  // Whether records, judged by their headers, or the end follow the first `size` bytes.
  bool leads_on(const SearchArea& have, std::size_t size) const;
  // The first sound record at `from` or later, before `until`. When there is none: nothing.
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
