// The catalogue: recorders that tacho carries, by the names that people type. `tacho list recorders` shows
// it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace tacho::record
