#include "bpf/ring.h"

#include <bpf/libbpf.h>

#include <cerrno>
#include <new>
#include <utility>

namespace tacho::bpf {
namespace {

struct FreeRing {
  void operator()(ring_buffer* ring) const noexcept { ring_buffer__free(ring); }
};
constexpr std::size_t kHeaderBytes = 8;  // the kernel's own, in front of each event

}  // namespace

struct Ring::State {
  std::unique_ptr<ring_buffer, FreeRing> ring;
  int map_fd = -1;
  std::size_t bytes = 0;
  // While drain() runs.
  const std::function<void(format::Bytes)>* sink = nullptr;
  std::size_t taken = 0;
  bool has_failed = false;

  // No exception may pass through libbpf, which is C. A negative answer ends the reading behind this event.
  static int take(void* context, void* data, std::size_t size) noexcept {
    State& state = *static_cast<State*>(context);
    try {
      (*state.sink)(format::Bytes(static_cast<const std::byte*>(data), size));
    } catch (const std::bad_alloc&) {
      state.has_failed = true;
      return -ENOMEM;
    }
    state.taken += size + kHeaderBytes;
    return state.taken < state.bytes ? 0 : -EAGAIN;
  }
};

Ring::Ring(std::unique_ptr<State> state) : state_(std::move(state)) {}
Ring::Ring(Ring&&) noexcept = default;
Ring& Ring::operator=(Ring&&) noexcept = default;
Ring::~Ring() = default;

Result<Ring> Ring::open(int map_fd, std::size_t bytes) {
  auto state = std::make_unique<State>();
  state->map_fd = map_fd;
  state->bytes = bytes;
  state->ring.reset(ring_buffer__new(map_fd, State::take, state.get(), nullptr));
  if (state->ring == nullptr) return system_error("a ring buffer", errno);
  return Ring(std::move(state));
}

int Ring::fd() const { return state_->map_fd; }

bool Ring::drain(const std::function<void(format::Bytes)>& sink) {
  state_->sink = &sink;
  state_->taken = 0;
  state_->has_failed = false;
  (void)ring_buffer__consume(state_->ring.get());
  state_->sink = nullptr;
  return !state_->has_failed;
}

}  // namespace tacho::bpf
