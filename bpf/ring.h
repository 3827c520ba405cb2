// A ring buffer of a BPF object (BPF_MAP_TYPE_RINGBUF), read by this process alone.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "format/cursor.h"
#include "format/result.h"

namespace tacho::bpf {

class Ring {
 public:
  // `map_fd` stays the caller's; `bytes`: of the ring.
  static Result<Ring> open(int map_fd, std::size_t bytes);
  Ring(Ring&&) noexcept;
  Ring& operator=(Ring&&) noexcept;
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring();

  // Becomes readable when the programs wake their reader; news come once (EPOLLET).
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
