// Reads maps of a BPF object entry by entry, while programs change them, and BPF ring buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/result.h"

namespace tacho::bpf {

// As the map was declared.
struct MapFacts {
  std::uint32_t type = 0;  // enum bpf_map_type
  std::size_t key_bytes = 0, value_bytes = 0;
  std::uint32_t most_entries = 0;

  bool is_array() const;
  bool is_per_cpu() const;
  bool forgets() const;  // an LRU map, which evicts entries when it is full
  // Whether it holds entries that a summary can be made of.
  bool holds_entries() const;
};

class MapReader {
 public:
  // `fd` stays the object's.
  MapReader(int fd, const MapFacts& facts, std::size_t possible_cpus);

  const MapFacts& facts() const { return facts_; }
  // Hands out each entry: its key, and its value, of per-CPU maps one for each possible CPU. One that
  // programs delete meanwhile may be missing, and one may come twice when they do. Fails when the kernel
  // refuses; EPERM: the rights are gone.
  Result<> read(
      const std::function<void(format::Bytes key, const std::vector<format::Bytes>& values)>& sink) const;
  // The value of one key; empty when it is not there.
  std::vector<std::byte> value(format::Bytes key) const;

 private:
  int fd_;
  MapFacts facts_;
  std::size_t cpus_;
};

// A ring buffer of a BPF object (BPF_MAP_TYPE_RINGBUF), read by this process alone.

class Ring {
 public:
  // `map_fd` stays the caller's; `bytes`: of the ring.
  static Result<Ring> open(int map_fd, std::size_t bytes);
  Ring(Ring&&) noexcept;
  Ring& operator=(Ring&&) noexcept;
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring();

  // Becomes readable when the programs wake their reader; edge-triggered (EPOLLET).
  int fd() const;
  // Hands out every event that is there, at most as many bytes as the ring holds: programs may fill it faster
  // than it is read. False: `sink` had no memory for one, which is gone.
  bool drain(const std::function<void(format::Bytes)>& sink);

 private:
  struct State;
  explicit Ring(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tacho::bpf
