// The catalogue of ready-made recorders: names, presets, views, and the options of the ones that are
// probes.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "record/events/event_request.h"

namespace tacho::record {

struct RecorderRow {
  std::string_view name;
  std::string_view object;   // of bpf/programs/recorders; empty: the clock's samples, which need none
  std::string_view preset;   // options that the name implies: "failed=true,min_us=10"
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
// For a message: why a recorder of this object may stay silent though much happens. Empty: nothing is
// known.
std::string_view why_silent(std::string_view object);
// The recorder that `text` starts with: its name only, or with options between slashes. Null when it starts
// with none.
const RecorderRow* recorder_at(std::string_view text);
// Its event, without options.
EventRequest request_of(const RecorderRow& row);

// trace and argdist: recorders of the catalogue that are no BPF object but a user's probe or tracepoint,
// with its condition and the values to show, in one expression.

// The value of a row instead of an object.
inline constexpr std::string_view kProbeObject = "probe";

// Their options, for --help.
struct ProbeRecorderOption {
  std::string_view name, help;
};
std::vector<ProbeRecorderOption> probe_recorder_options(std::string_view recorder);

// Why a name is neither a field of the event nor one that every sample has; nothing: it is one.
std::optional<Error> unknown_field(const NeededField& needed, std::string_view event,
                                   std::span<const std::string> fields);

// Each of them in `requests` as the events that its option `probe` names, which `parse` reads. Others, and
// questions for help, stay as they are.
using ParseEvents = std::function<Result<std::vector<EventRequest>>(std::string_view)>;
Result<std::vector<EventRequest>> with_their_probes(std::vector<EventRequest> requests,
                                                    const ParseEvents& parse);

}  // namespace tacho::record
