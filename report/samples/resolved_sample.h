// A sample with names: what every view consumes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "format/container/environment.h"
#include "format/records/event_set.h"
#include "format/records/record_view.h"
#include "format/records/sample.h"
#include "report/samples/cgroup_names.h"
#include "symbolize/address_space.h"

namespace tacho::report {

// A thread of the recorded system, from its fork to its last record. Its address is its identity.
struct Thread {
  std::uint32_t pid = 0, tid = 0;
  // Its name: while a session runs, the one it had when it was first met; afterwards, the last one. The name
  // at a sample's or record's time stands there. Equal names share their bytes.
  std::string_view comm;
};

// A distinct place in code: what an address of one address space stands for. Numbered from 0 in the order of
// first use, so that views keep what they make of it (a frame's text) in an array.
struct Location {
  const symbolize::Mapping* mapping = nullptr;  // null: nothing was mapped there
  format::RuntimeAddress ip;
  std::uint32_t number = 0;
  std::uint8_t cpumode = 0;
  bool is_unwound = false;  // a frame of an unwound stack: perf tells inlined calls of these
  bool is_caller = false;   // `ip` is a return address: its names are those of the call before it
};

// A distinct call chain, leaf first, as numbers of locations; numbered like them.
struct Stack {
  std::uint32_t number = 0;
  std::span<const std::uint32_t> frames;
};

struct ResolvedSample;

// Finds what another address of a sample stands for at the time of the sample.
class PlaceFinder {
 public:
  virtual ~PlaceFinder() = default;
  virtual const Location& find(const ResolvedSample& sample, std::uint64_t address) = 0;
  // In one mode (abi::kCpumode...), whatever the sample's own is.
  virtual const Location& find_in(const ResolvedSample& sample, std::uint64_t address,
                                  std::uint8_t cpumode) = 0;
};

// What the pointers point to is valid until on_sample() returns; what lives longer says so.
struct ResolvedSample {
  // The fields as recorded, and the record they stand in.
  const format::Sample* raw = nullptr;
  const format::RecordView* record = nullptr;
  const format::EventSet* events = nullptr;  // lives as long as the session
  std::size_t event_index = 0;               // of a group's member when the sample holds a group's values
  std::size_t record_event = 0;              // of the event whose fields the record has
  std::uint64_t period = 0;                  // of event_index
  const Thread* thread = nullptr;            // lives as long as the session
  std::string_view comm;                     // at the time of the sample; lives as long as the session
  // Of raw->ip, or of the first frame where the stack comes from the payload; lives as long as the session.
  const Location* location = nullptr;
  std::uint32_t place = 0;       // number of `location`, which itself may lie far away
  const Stack* stack = nullptr;  // null: the event has no call chain; lives as long as the session
  // Of text lanes (text_view.h), in place of a stack: the frames of its call chain, without numbers. Valid
  // until on_sample() returns.
  std::optional<std::span<const Location>> frames;
  std::endian order = std::endian::native;  // of raw->raw
  bool has_payload_stack = false;           // `stack` comes from the payload, not from the kernel
  const CgroupNames* cgroups = nullptr;     // lives as long as the session
  PlaceFinder* places = nullptr;

  const format::Event& event() const { return (*events)[event_index]; }
  std::uint32_t pid() const { return raw->pid; }
  std::uint32_t tid() const { return raw->tid; }
  // The path of the control group it was taken in, as long as the session.
  std::string_view cgroup() const { return cgroups == nullptr ? "N/A" : cgroups->find(raw->cgroup); }
  // Where another address of the sample (its data address, a branch) lies.
  const Location& locate(std::uint64_t address) const { return places->find(*this, address); }
  const Location& locate_in(std::uint64_t address, std::uint8_t cpumode) const {
    return places->find_in(*this, address, cpumode);
  }
};

}  // namespace tacho::report
