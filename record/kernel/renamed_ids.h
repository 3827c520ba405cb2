// Events that stand for others: their records get the others' numbers on the way into the capture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace tacho::record {

// A CPU that comes back gets new events, whose numbers no reader of the capture would know.
class RenamedIds {
 public:
  // Records of event `id` are to be of event `as`, which is none of these itself. It stays so when the event
  // is closed, as a ring may hold records of it for long; the kernel gives a number only once.
  void add(std::uint64_t id, std::uint64_t as) { as_[id] = as; }
  bool empty() const { return as_.empty(); }

  // What `records` hold from `begin` on, whole records as the kernel writes them for events with
  // abi::kSampleIdentifier and abi::kSampleIdAll. What is no record ends it.
  void apply(std::vector<std::byte>& records, std::size_t begin) const;

 private:
  void rename(std::byte* word) const;

  std::unordered_map<std::uint64_t, std::uint64_t> as_;
};

}  // namespace tacho::record
