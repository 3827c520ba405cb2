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
// For a message about an unknown event that is a tool of bcc or bpftrace: the events and the view that do the
// same. Empty: there is no such tool.
std::string instead_of_tool(std::string_view name);
// Whether an object's path is the name of a recorder: files end in .c or .o.
inline bool is_recorder(std::string_view object) { return object.find('.') == std::string_view::npos; }
// The view when these options are set.
std::string_view view_of(const RecorderRow& row, std::span<const ConstantSetting> options);
// For a message: a common reason why a recorder of this object has no events. Empty: none is known.
std::string_view why_silent(std::string_view object);
// The recorder that `text` starts with: its name only, or with options between slashes. Null when it starts
// with none.
const RecorderRow* recorder_at(std::string_view text);
// Its event, without options.
EventRequest request_of(const RecorderRow& row);

// RecorderRow::object of trace and argdist, which have no BPF object: they record a probe or tracepoint of
// the user, with a condition and the values to show.
inline constexpr std::string_view kProbeObject = "probe";

// Options of trace and argdist, for --help.
struct ProbeRecorderOption {
  std::string_view name, help;
};
std::vector<ProbeRecorderOption> probe_recorder_options(std::string_view recorder);

// Why a name is neither a field of the event nor one that every sample has; nothing: it is one.
std::optional<Error> unknown_field(const NeededField& needed, std::string_view event,
                                   std::span<const std::string> fields);

// Replaces trace and argdist in `requests` by the events of their option `probe`, which `parse` parses. Other
// events, and requests of help, stay unchanged.
using ParseEvents = std::function<Result<std::vector<EventRequest>>(std::string_view)>;
Result<std::vector<EventRequest>> with_their_probes(std::vector<EventRequest> requests,
                                                    const ParseEvents& parse);

}  // namespace tacho::record
