// Reads maps of a BPF object entry by entry, while programs change them, and BPF ring buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/result.h"

namespace tacho::bpf {

// The declaration of a map.
struct MapFacts {
  std::uint32_t type = 0;  // enum bpf_map_type
  std::size_t key_bytes = 0, value_bytes = 0;
  std::uint32_t most_entries = 0;

  bool is_array() const;
  bool is_per_cpu() const;
  bool is_lru() const;  // an LRU map, which evicts entries when it is full
  // Whether a summary can be made of its entries.
  bool holds_entries() const;
};

class MapReader {
 public:
  // `fd` belongs to the object.
  MapReader(int fd, const MapFacts& facts, std::size_t possible_cpus);

  const MapFacts& facts() const { return facts_; }
  // Calls `sink` for each entry, with one value, or in a per-CPU map one for each possible CPU. If programs
  // delete entries during the read, some entries may be missing or be read twice. Error EPERM: the rights
  // were dropped.
  Result<> read_entries(
      const std::function<void(format::Bytes key, const std::vector<format::Bytes>& values)>& sink) const;
  // The value of one key; empty: no such key.
  std::vector<std::byte> value(format::Bytes key) const;

 private:
  int fd_;
  MapFacts facts_;
  std::size_t cpus_;
};

// A ring buffer of a BPF object (BPF_MAP_TYPE_RINGBUF); this process must be its only reader.
class Ring {
 public:
  // `map_fd` belongs to the caller; `bytes`: size of the ring.
  static Result<Ring> open(int map_fd, std::size_t bytes);
  Ring(Ring&&) noexcept;
  Ring& operator=(Ring&&) noexcept;
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring();

  // Readable when programs wake the reader; poll it edge-triggered (EPOLLET).
  int fd() const;
  // Calls `sink` for the events in the ring, up to its size in bytes, since programs may fill it faster than
  // it is read. False: `sink` had no memory for an event, which is lost.
  bool drain(const std::function<void(format::Bytes)>& sink);

 private:
  struct State;
  explicit Ring(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tacho::bpf
