// A sample with its thread, location and call chain: what every view gets. Names come from Resolver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "format/base/seeded_hash.h"
#include "format/container/environment.h"
#include "format/records/event_set.h"
#include "format/records/perf_abi.h"
#include "format/records/record_view.h"
#include "format/records/sample.h"
#include "report/samples/ids.h"
#include "symbolize/address_space.h"

namespace tacho::report {

// A thread of the recorded system. A tid that is used again is another Thread: compare them by pointer.
struct Thread {
  std::uint32_t pid = 0, tid = 0;
  // Its comm: during a run the first known one, after the run the last one. A sample has the name at its own
  // time (ResolvedSample::comm). Equal names share their bytes.
  std::string_view comm;
};

// The name of threads outside of the recorder's pid namespace, which all have tid 0.
inline constexpr std::string_view kOutsideName = "[outside]";

// Paths of cgroups by id, from the capture's CGROUP records. The reading thread adds names while other
// threads look them up. The first record of an id counts, so a returned name stays valid.
class CgroupNames {
 public:
  CgroupNames() = default;
  CgroupNames(const CgroupNames&) = delete;
  CgroupNames& operator=(const CgroupNames&) = delete;

  void add_path(std::uint64_t id, std::string_view path) {
    const std::lock_guard held(lock_);
    paths_.try_emplace(id, path);
  }
  // "N/A" for id 0 (PERF_SAMPLE_CGROUP was not recorded); "unknown" without a CGROUP record of the id. Lives
  // as long as this.
  std::string_view find_path(std::uint64_t id) const {
    if (id == 0) return "N/A";
    const std::lock_guard held(lock_);
    const auto found = paths_.find(id);
    return found == paths_.end() ? std::string_view("unknown") : std::string_view(found->second);
  }

 private:
  mutable std::mutex lock_;
  std::unordered_map<std::uint64_t, std::string, format::SeededHash> paths_;
};

// A code address, resolved to its mapping. Distinct locations are numbered from 0 in the order of first use,
// so views keep what they compute of one (the text of a frame) in an array.
struct Location {
  const symbolize::Mapping* mapping = nullptr;  // null: nothing was mapped there
  format::RuntimeAddress ip;
  LocationId id{};
  std::uint8_t cpumode = 0;
  bool is_unwound = false;  // found by unwinding; as in perf, only such frames show inlined calls
  bool is_caller = false;   // `ip` is a return address: the call before it is symbolized
};

// A distinct call chain, leaf first. Stacks are numbered from 0, as locations are.
struct Stack {
  StackId id{};
  std::span<const LocationId> frames;
};

struct ResolvedSample;

// Resolves further addresses of a sample (a data address, a branch) in the address space as it was at the
// sample's time.
class LocationFinder {
 public:
  virtual ~LocationFinder() = default;
  const Location& find_location(const ResolvedSample& sample, std::uint64_t address);
  // The same with another cpumode than the sample's.
  virtual const Location& find_in(const ResolvedSample& sample, std::uint64_t address,
                                  std::uint8_t cpumode) = 0;
};

// Pointers are valid until on_sample() returns, unless a member's comment says longer.
struct ResolvedSample {
  // The fields as recorded, and their record.
  const format::Sample* fields = nullptr;
  const format::RecordView* record = nullptr;
  const format::EventSet* events = nullptr;  // lives as long as the session
  std::size_t event_index = 0;     // of a group with PERF_SAMPLE_READ: the member whose increase `period` is
  std::size_t record_event = 0;    // the event whose id the record has (the group's sampling event)
  std::uint64_t period = 0;        // of event_index
  const Thread* thread = nullptr;  // lives as long as the session
  std::string_view comm;           // at the time of the sample; lives as long as the session
  // The location of the sample's ip, or of the first frame if has_payload_stack; lives as long as the
  // session.
  const Location* location = nullptr;
  LocationId location_id{};      // location->id, kept here to avoid a cache miss
  const Stack* stack = nullptr;  // null: the event has no call chain; lives as long as the session
  // Text lanes (text_view.h) set this instead of `stack`: the frames of the call chain, without numbers.
  std::optional<std::span<const Location>> frames;
  std::endian order = std::endian::native;  // of fields->raw
  bool has_payload_stack = false;           // `stack` comes from the payload, not from the kernel
  const CgroupNames* cgroups = nullptr;     // lives as long as the session
  LocationFinder* finder = nullptr;

  const format::Event& event() const { return (*events)[event_index]; }
  // `period`, but 1 for a sample of a BPF program whose period is 0: bpf_perf_event_output() writes none.
  std::uint64_t counted_period() const { return period == 0 && event().attr.is_bpf_output() ? 1 : period; }
  std::uint32_t pid() const { return fields->pid; }
  std::uint32_t tid() const { return fields->tid; }
  // The path of its cgroup; lives as long as the session.
  std::string_view cgroup() const { return cgroups == nullptr ? "N/A" : cgroups->find_path(fields->cgroup); }
  // Resolves another address of the sample (its data address, a branch).
  const Location& locate(std::uint64_t address) const { return finder->find_location(*this, address); }
  const Location& locate_in(std::uint64_t address, std::uint8_t cpumode) const {
    return finder->find_in(*this, address, cpumode);
  }
};

// A kernel sample may access user memory: if nothing is mapped there in the sample's mode, the address's
// upper bit decides.
inline const Location& LocationFinder::find_location(const ResolvedSample& sample, std::uint64_t address) {
  const auto cpumode = static_cast<std::uint8_t>(sample.fields->misc & format::abi::kCpumodeMask);
  const Location& location = find_in(sample, address, cpumode);
  const auto by_address = static_cast<std::uint8_t>(
      static_cast<std::int64_t>(address) < 0 ? format::abi::kCpumodeKernel : format::abi::kCpumodeUser);
  if (location.mapping != nullptr || by_address == cpumode) return location;
  return find_in(sample, address, by_address);
}

}  // namespace tacho::report
