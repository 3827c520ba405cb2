// A sample with names: what every view consumes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "format/environment.h"
#include "format/event_set.h"
#include "format/sample.h"
#include "symbolize/address_space.h"

namespace tacho::report {

// A thread of the recorded system, from its fork to its last record. Its address is its identity.
struct Thread {
  std::uint32_t pid = 0, tid = 0;
  std::string_view comm;  // its name after the last record read; equal names share their bytes
};

// A distinct place in code: what an address of one address space stands for. Numbered from 0 in the order of
// first use, so that views keep what they make of it (a frame's text) in an array.
struct Location {
  std::uint32_t number = 0;
  const symbolize::Mapping* mapping = nullptr;  // null: nothing was mapped there
  format::RuntimeAddress ip;
  std::uint8_t cpumode = 0;
  bool is_unwound = false;  // a frame of an unwound stack: perf tells inlined calls of these
};

// A distinct call chain, leaf first, as numbers of locations; numbered like them.
struct Stack {
  std::uint32_t number = 0;
  std::span<const std::uint32_t> frames;
};

struct ResolvedSample {
  const format::Sample* raw = nullptr;  // the fields as recorded
  const format::EventSet* events = nullptr;
  std::size_t event_index = 0;  // of a group's member when the sample holds a group's values
  std::uint64_t period = 0;     // of that member
  const Thread* thread = nullptr;
  std::string_view comm;                    // at the time of the sample; equal names share their bytes
  const Location* location = nullptr;       // of raw->ip
  const Stack* stack = nullptr;             // null: the event has no call chain
  std::endian order = std::endian::native;  // of raw->raw

  const format::Event& event() const { return (*events)[event_index]; }
  std::uint32_t pid() const { return raw->pid; }
  std::uint32_t tid() const { return raw->tid; }
};

}  // namespace tacho::report
