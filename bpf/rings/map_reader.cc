#include "bpf/rings/map_reader.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>

#include <cerrno>
#include <new>
#include <utility>

namespace tacho::bpf {

namespace {

// How often an entry may be visited: iteration starts again if its key was deleted.
constexpr std::uint64_t kMostVisits = 4;

std::size_t rounded(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

struct FreeRing {
  void operator()(ring_buffer* ring) const noexcept { ring_buffer__free(ring); }
};
constexpr std::size_t kHeaderBytes = 8;  // of the kernel, in front of each event

}  // namespace

bool MapFacts::is_array() const { return type == BPF_MAP_TYPE_ARRAY || type == BPF_MAP_TYPE_PERCPU_ARRAY; }
bool MapFacts::is_per_cpu() const {
  return type == BPF_MAP_TYPE_PERCPU_ARRAY || type == BPF_MAP_TYPE_PERCPU_HASH ||
         type == BPF_MAP_TYPE_LRU_PERCPU_HASH;
}
bool MapFacts::is_lru() const {
  return type == BPF_MAP_TYPE_LRU_HASH || type == BPF_MAP_TYPE_LRU_PERCPU_HASH;
}
bool MapFacts::holds_entries() const {
  return is_array() || is_per_cpu() || is_lru() || type == BPF_MAP_TYPE_HASH;
}

MapReader::MapReader(int fd, const MapFacts& facts, std::size_t possible_cpus)
    : fd_(fd), facts_(facts), cpus_(facts.is_per_cpu() ? possible_cpus : 1) {}

Result<> MapReader::read_entries(
    const std::function<void(format::Bytes, const std::vector<format::Bytes>&)>& sink) const {
  const std::size_t stride = facts_.is_per_cpu() ? rounded(facts_.value_bytes) : facts_.value_bytes;
  std::vector<std::byte> key(facts_.key_bytes), next(facts_.key_bytes), values(stride * cpus_);
  std::vector<format::Bytes> each(cpus_);
  for (std::size_t cpu = 0; cpu < cpus_; ++cpu)
    each[cpu] = format::Bytes(values).subspan(cpu * stride, facts_.value_bytes);
  const void* from = nullptr;
  for (std::uint64_t steps = 0; steps < kMostVisits * facts_.most_entries; ++steps) {
    if (bpf_map_get_next_key(fd_, from, next.data()) != 0)
      return errno == ENOENT ? Result<>(Done{}) : Result<>(system_error("a map cannot be read", errno));
    key.swap(next);
    from = key.data();
    if (bpf_map_lookup_elem(fd_, key.data(), values.data()) == 0) sink(key, each);
  }
  return Done{};
}

std::vector<std::byte> MapReader::value(format::Bytes key) const {
  std::vector<std::byte> value(facts_.value_bytes);
  if (key.size() != facts_.key_bytes || facts_.is_per_cpu() ||
      bpf_map_lookup_elem(fd_, key.data(), value.data()) != 0)
    value.clear();
  return value;
}

struct Ring::State {
  std::unique_ptr<ring_buffer, FreeRing> ring;
  int map_fd = -1;
  std::size_t bytes = 0;
  // Set while drain() runs.
  const std::function<void(format::Bytes)>* sink = nullptr;
  std::size_t taken = 0;
  bool has_failed = false;

  // No exception may pass through libbpf, which is C. A negative result ends the reading after this event.
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
