// The way back to sound records after damage: judges bytes by everything that a record of this capture must
// satisfy.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "format/event_set.h"
#include "format/record_view.h"

namespace tacho::format {

// Bytes that are searched, from some place on; more of them come as they are asked for.
class SearchArea {
 public:
  virtual ~SearchArea() = default;
  // The bytes from the place on: at least `size` of them, unless the source ends before. Valid until the next
  // call.
  virtual Bytes have(std::size_t size) = 0;
};

// What a record's first 8 bytes say.
struct RecordHeader {
  std::uint32_t type = 0;
  std::uint16_t misc = 0;
  std::size_t size = 0;  // bytes, these 8 included

  // False when bits of misc are set that no record has: between the CPU mode and those that each type has for
  // itself.
  bool has_possible_misc() const { return (misc & 0x0FF8) == 0; }
};
// `bytes`: at least kRecordHeaderSize.
RecordHeader record_header(Bytes bytes, std::endian order);
// False when no record has such a header, however new its type: the kernel's sizes are multiples of 8, perf's
// own ones need not be, and no type is 0 or beyond what two programs will ever number. Of samples simpleperf
// keeps that much of a copied stack as the kernel could read, to the byte: on arm64 some are of any size.
bool is_possible(const RecordHeader& header);
// simpleperf has records of its own among the kernel's, of types from 32768 on (simpleperf_start.h). The size
// of the one that begins so; 0 when it is none of them.
std::size_t simpleperf_record_size(const RecordHeader& header);

class RecordSearch {
 public:
  // `events` must outlive the search, and may grow meanwhile.
  RecordSearch(const EventSet& events, std::endian order) : events_(&events), order_(order) {}

  // Whether the bytes are a whole record as the capture's events describe it: its fields fill its size, its
  // event is known, processes, CPUs and times are possible ones. `is_strong` is set when that is so much that
  // the bytes cannot be anything else.
  bool is_sound(Bytes record, bool* is_strong = nullptr) const;
  // After a record of an unknown type, `size` bytes long: whether a record that can be follows, or the end.
  bool leads_on(SearchArea& area, std::size_t size) const;
  // In a record of `size` bytes that nothing sound follows: where in it other records begin that lead beyond
  // its end. Then bytes of it are missing, and it has swallowed the start of the next.
  std::optional<std::size_t> swallowed(SearchArea& area, std::size_t size) const;
  // The first sound record at `from` or later, before `until`. When there is none: nothing.
  std::optional<std::size_t> next_sound(SearchArea& area, std::size_t from, std::size_t until) const;

 private:
  bool is_known_header(const RecordHeader& header) const;
  bool has_possible_ids(const RecordView& record, const EventAttr& attr) const;
  std::size_t next_known_header(Bytes bytes, std::size_t at, std::size_t last) const;
  bool is_accepted(SearchArea& area, std::size_t at, std::size_t* size) const;

  const EventSet* events_;
  std::endian order_;
};

}  // namespace tacho::format
