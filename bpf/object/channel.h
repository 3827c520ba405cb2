// Channels: the maps through which events of an object reach the recorder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bpf/object/btf_schema.h"
#include "bpf/object/object.h"
#include "bpf/object/summary_layout.h"
#include "format/base/result.h"
#include "format/extensions/payload_schema.h"

namespace tacho::bpf {

// How events of a channel reach the recorder.
enum class ChannelKind : std::uint8_t {
  PerfEventArray,
  RingWithHeaders,  // a BPF ring buffer of RING_CHANNEL() (tacho/emit.h): time, CPU and thread before each
                    // event
  PlainRing,        // any other BPF ring buffer
  Summary,          // summed up in a map (SUMMARY() in tacho/event.h) by programs that call tacho_wants()
  PlainSummary,     // by programs that do not
};

constexpr bool is_summary(ChannelKind kind) {
  return kind == ChannelKind::Summary || kind == ChannelKind::PlainSummary;
}

// One map of the object: a stream of events.
struct Channel {
  std::string map;  // name of the map
  // The event's name in the object: its EVENT_CHANNEL(name), else the only EVENT() when this is the only
  // array of the object, else the map's name.
  std::string event;
  // Schema of the payload, if the object declares it with EVENT(event, type). Its `event` is the name above;
  // a recorder that renames the event changes it in the stored copy.
  std::optional<format::PayloadSchema> schema = {};
  ChannelKind kind = ChannelKind::PerfEventArray;
  std::optional<SummaryLayout> summary = {};  // for the two kinds of summary
};

// Prefix of ring buffers with headers through which an event's in-flight calls are reported at the end of the
// recording (UNFINISHED_CHANNEL() of programs/recorders/recorder.h). They are not channels.
constexpr std::string_view kUnfinished = "unfinished_";

// tacho/emit.h's map of followed threads, and the variable that switches the lookup on.
constexpr const char* kFollowedMap = "tacho_followed";
constexpr const char* kFollowsConstant = "tacho_follows";
// A program of section "iter/task" that runs when events are switched on, and the map of user stacks for it
// (programs/recorders/before.h).
constexpr std::string_view kAtBegin = "at_begin";
constexpr const char* kSleepingStacks = "tacho_sleeping";
// Prefix of the counter of events that found no room in a channel's map, followed by the map's name.
constexpr const char* kLostCounter = "tacho_lost_";
// Prefix of the map that counts these lost events by CPU and cgroup.
constexpr const char* kLosersMap = "tacho_losers_of_";

// Whether the object's programs call tacho_wants().
bool calls_wants(Object& object);

// Fails when a SUMMARY() names a map that cannot be summarized.
Result<std::vector<Channel>> channels_of(Object& object, const Declarations& declared);

// Resolves members of summaries that depend on a `const volatile bool` (ROLE("sum unless count")), given its
// value.
void choose_members(std::vector<Channel>& channels, Object& object, const Declarations& declared,
                    std::string_view constant, format::Bytes value);

// Replaces the last field of a payload, if it is called `field`, by fields of 64 bits.
void replace_tail(format::PayloadSchema& schema, std::string_view field,
                  const std::vector<format::PayloadField>& instead);

}  // namespace tacho::bpf
