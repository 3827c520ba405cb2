#include "report/views/report/thread_values.h"

#include <algorithm>
#include <string>

#include "report/decode/event_name.h"

namespace tacho::report {

void ThreadValues::add(const OtherEvent& other) {
  const auto* const read = std::get_if<format::ReadRecord>(other.record);
  if (read == nullptr || read->values.size() == 0) return;
  const std::uint64_t thread = std::uint64_t{read->pid} << 32 | read->tid;
  const auto [number, is_new] = row_of_.try_emplace(thread, rows_.size());
  if (is_new) rows_.push_back({read->pid, read->tid, {}});
  Row& row = rows_[number->second];
  const auto [known, is_new_event] = place_of_.try_emplace(other.event_index, events_.size());
  if (is_new_event) events_.push_back(other.event_index);
  const std::size_t place = known->second;
  if (row.values.size() <= place) row.values.resize(place + 1);
  row.values[place] += read->values.entry(0).value;
}

void ThreadValues::write(TextOutput& out, const Session& session, Names names) const {
  std::size_t pid_width = 3, tid_width = 3;  // of the headers
  std::vector<std::string> headers;
  for (const std::size_t event : events_)
    headers.push_back(printable(event_name(session.events()[event], session.features()), names));
  std::vector<std::size_t> widths;
  for (const std::string& header : headers) widths.push_back(header.size());
  const auto digits = [](std::uint32_t number) {
    return std::to_string(static_cast<std::int32_t>(number)).size();
  };
  for (const Row& row : rows_) {
    pid_width = std::max(pid_width, digits(row.pid));
    tid_width = std::max(tid_width, digits(row.tid));
    for (std::size_t i = 0; i < row.values.size(); ++i)
      widths[i] = std::max(widths[i], std::to_string(row.values[i]).size());
  }
  out.text("# ");
  out.padded("PID", pid_width);
  out.text("  ");
  out.padded("TID", tid_width);
  for (std::size_t i = 0; i < headers.size(); ++i) {
    out.text("  ");
    out.padded(headers[i], widths[i]);
  }
  out.character('\n');
  for (const Row& row : rows_) {
    out.text("  ");
    out.signed_decimal(static_cast<std::int32_t>(row.pid), pid_width);
    out.text("  ");
    out.signed_decimal(static_cast<std::int32_t>(row.tid), tid_width);
    for (std::size_t i = 0; i < headers.size(); ++i) {
      out.text("  ");
      out.decimal(i < row.values.size() ? row.values[i] : 0, widths[i]);
    }
    out.character('\n');
    out.line_end();
  }
}

}  // namespace tacho::report
