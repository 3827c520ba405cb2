#include "report/views/report/thread_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace tacho::report {
namespace {

std::size_t digits(std::uint32_t number) { return std::to_string(static_cast<std::int32_t>(number)).size(); }

}  // namespace

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

void ThreadValues::write(TextOutput& out, const Session& session, Names names, ValueForm form) const {
  std::vector<std::string> events;
  for (const std::size_t event : events_) events.push_back(printable(session.events()[event].name, names));
  form == ValueForm::Raw ? write_raw(out, events) : write_table(out, events);
}

void ThreadValues::write_table(TextOutput& out, std::span<const std::string> headers) const {
  std::size_t pid_width = 3, tid_width = 3;  // of the headers
  std::vector<std::size_t> widths;
  for (const std::string& header : headers) widths.push_back(header.size());
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

void ThreadValues::write_raw(TextOutput& out, std::span<const std::string> events) const {
  std::size_t pid_width = 3, tid_width = 3, name_width = 4, number_width = 3,
              count_width = 5;  // of the heads
  for (const std::string& event : events) name_width = std::max(name_width, event.size());
  for (const std::size_t event : events_)
    number_width = std::max(number_width, fmt::formatted_size("{:x}", event));
  for (const Row& row : rows_) {
    pid_width = std::max(pid_width, digits(row.pid));
    tid_width = std::max(tid_width, digits(row.tid));
    for (const std::uint64_t value : row.values)
      count_width = std::max(count_width, std::to_string(value).size());
  }
  out.text("# ");
  const auto head = [&out](std::string_view name, std::size_t width) {
    out.padded(name, width);
    out.text(name == "Count" ? "\n" : "  ");
  };
  head("PID", pid_width);
  head("TID", tid_width);
  head("Name", name_width);
  head("Raw", number_width);
  head("Count", count_width);
  for (const Row& row : rows_) {
    for (std::size_t i = 0; i < events.size(); ++i) {
      out.text(fmt::format("  {:{}}  {:{}}  {:>{}}  {:{}x}  {:{}}", static_cast<std::int32_t>(row.pid),
                           pid_width, static_cast<std::int32_t>(row.tid), tid_width, events[i], name_width,
                           events_[i], number_width, i < row.values.size() ? row.values[i] : 0, count_width));
    }
    out.line_end();  // all of it is one line
  }
}

}  // namespace tacho::report
