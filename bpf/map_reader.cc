#include "bpf/map_reader.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>

#include <cerrno>

namespace tacho::bpf {
namespace {

// A reading that begins again because its key was deleted must end some time.
constexpr std::uint64_t kMostRounds = 4;

std::size_t rounded(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

}  // namespace

bool MapFacts::is_array() const { return type == BPF_MAP_TYPE_ARRAY || type == BPF_MAP_TYPE_PERCPU_ARRAY; }
bool MapFacts::is_per_cpu() const {
  return type == BPF_MAP_TYPE_PERCPU_ARRAY || type == BPF_MAP_TYPE_PERCPU_HASH ||
         type == BPF_MAP_TYPE_LRU_PERCPU_HASH;
}
bool MapFacts::forgets() const {
  return type == BPF_MAP_TYPE_LRU_HASH || type == BPF_MAP_TYPE_LRU_PERCPU_HASH;
}
bool MapFacts::holds_entries() const {
  return is_array() || is_per_cpu() || forgets() || type == BPF_MAP_TYPE_HASH;
}

MapReader::MapReader(int fd, const MapFacts& facts, std::size_t possible_cpus)
    : fd_(fd), facts_(facts), cpus_(facts.is_per_cpu() ? possible_cpus : 1) {}

Result<> MapReader::read(
    const std::function<void(format::Bytes, const std::vector<format::Bytes>&)>& sink) const {
  const std::size_t stride = facts_.is_per_cpu() ? rounded(facts_.value_bytes) : facts_.value_bytes;
  std::vector<std::byte> key(facts_.key_bytes), next(facts_.key_bytes), values(stride * cpus_);
  std::vector<format::Bytes> each(cpus_);
  for (std::size_t cpu = 0; cpu < cpus_; ++cpu)
    each[cpu] = format::Bytes(values).subspan(cpu * stride, facts_.value_bytes);
  const void* from = nullptr;
  for (std::uint64_t steps = 0; steps < kMostRounds * facts_.most_entries; ++steps) {
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

}  // namespace tacho::bpf
