// The events of one capture, and which of them a record belongs to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/records/event_attr.h"
#include "format/records/record_view.h"

namespace tacho::format {

struct Event {
  EventAttr attr;
  // Its name: from the capture, or else made from its attributes (EventNames).
  std::string name;
  std::vector<std::uint64_t> ids;
  bool name_is_made = false;
};

class EventSet {
 public:
  // Returns the new event's index.
  std::size_t add_event(Event event);
  void add_id(std::size_t event, std::uint64_t id);
  void set_name(std::size_t event, std::string name);   // from the capture
  void make_name(std::size_t event, std::string name);  // if the capture has none

  std::size_t size() const { return events_.size(); }
  bool empty() const { return events_.empty(); }
  const Event& operator[](std::size_t index) const { return events_[index]; }
  auto begin() const { return events_.begin(); }
  auto end() const { return events_.end(); }

  std::optional<std::size_t> find_id(std::uint64_t id) const;
  // Index of the record's event: the only one, or by the id in the sample or the trailer; id 0 (synthesized
  // records) means the first event. nullopt: unknown id, or the record is too short.
  std::optional<std::size_t> event_of(const RecordView& record) const;

 private:
  std::vector<Event> events_;
  // Runs of ascending ids, each more than twice as long as the next one. Of equal ids the last run's is used.
  struct IdOf {
    std::uint64_t id = 0;
    std::uint32_t event = 0;
  };
  std::vector<IdOf> by_id_;
  std::vector<std::size_t> runs_;  // the start of each run
  // The kernel assigns consecutive ids, so those of a capture are close together: index_[id - first_id_] is
  // the event of an id, or kNoEvent.
  static constexpr std::uint32_t kNoEvent = ~std::uint32_t{0};
  std::uint64_t first_id_ = 0;
  std::vector<std::uint32_t> index_;
  // Place of the id in all samples, in 8-byte words after the header; -1: it differs between events, or
  // there is none.
  int sample_id_word_ = -1;
  // Place of the id in other kernel records, in words before the end; -1: likewise.
  int trailer_id_word_ = -1;
  std::size_t trailer_size_ = 0;   // of the first event, in bytes
  bool samples_are_alike_ = true;  // all events' samples have the same fields
  void place_ids(const EventAttr& added);
  void index_id(std::uint64_t id, std::size_t event);
  void add_to_runs(IdOf added);
};

}  // namespace tacho::format
