// The catalogue: recorders that tacho carries, by the names that people type. `tacho list recorders` shows
// it.
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

struct RecorderRow {
  std::string_view name;
  std::string_view object;   // of bpf/programs/recorders; empty: the clock's samples, which need none
  std::string_view preset;   // options that the name stands for: "failed=true,min_us=10"
  std::string_view summary;  // which question it answers
  std::string_view view;     // the command that shows it best, without -i
};

std::span<const RecorderRow> recorders();
const RecorderRow* find_recorder(std::string_view name);  // null when there is none
// For a message, of a tool of others whose work needs no recorder: which events and view do it. Empty: it is
// not known.
std::string instead_of_tool(std::string_view name);
// The view with these options set.
std::string_view view_of(const RecorderRow& row, std::span<const ConstantSetting> options);
// For a message: why a recorder of this object may tell nothing though much happens. Empty: nothing is known.
std::string_view why_silent(std::string_view object);
// That `text` begins with: its name alone, or with options between slashes. Null when it begins with none.
const RecorderRow* recorder_at(std::string_view text);
// What it is as an event, without options.
EventRequest request_of(const RecorderRow& row);

// trace and argdist: recorders of the catalogue that are no BPF object but a probe or tracepoint of one's
// own, with its condition and what is to be shown of it, in one expression.

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
