// trace and argdist: recorders of the catalogue that are no BPF object but a probe or tracepoint of one's
// own, with its condition and what is to be shown of it, in one expression.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/result.h"
#include "record/events/event_request.h"

namespace tacho::record {

// What recorders.h has in the place of their object.
inline constexpr std::string_view kProbeObject = "probe";

// Their options, for --help.
struct ProbeRecorderOption {
  std::string_view name, help;
};
std::vector<ProbeRecorderOption> probe_recorder_options(std::string_view recorder);

// What is wrong with a name that is none of an event's fields, nor one that every sample has; nothing: it is
// one.
std::optional<Error> unknown_field(const NeededField& needed, std::string_view event,
                                   std::span<const std::string> fields);

// Each of them in `requests` as the events that its option `probe` names, which `parse` reads. Others, and
// questions for help, stay as they are.
using ParseEvents = std::function<Result<std::vector<EventRequest>>(std::string_view)>;
Result<std::vector<EventRequest>> with_their_probes(std::vector<EventRequest> requests,
                                                    const ParseEvents& parse);

}  // namespace tacho::record
