#include "report/views/script/importer_text.h"

#include <algorithm>

#include "report/output/text_output.h"

namespace tacho::report {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;  // ns
constexpr std::string_view kUnknown = "[unknown]";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string without_blanks(std::string_view name) {
  std::string safe = printable(name);
  std::ranges::replace(safe, ' ', '_');
  return safe;
}

// A number that every reader takes for one: what the event did not sample is ~0.
std::uint32_t shown(std::uint32_t number) { return number == ~0U ? 0 : number; }

void write_frame_line(TextBuffer& out, const symbolize::Frame& frame) {
  out.character('\t');
  out.hex(frame.ip.value, 16);
  out.character(' ');
  out.text(frame.function.empty() ? std::string(kUnknown) : importer_symbol(frame.function));
  if (!frame.function.empty() && !frame.is_inlined) {
    out.text("+0x");
    out.hex(frame.shown_address - frame.function_start);
  }
  out.text(" (");
  out.text(frame.module == nullptr ? std::string(kUnknown) : importer_module(frame.module->path));
  out.text(")\n");
}

}  // namespace

// The first number behind a blank is the process to some readers; a line that begins with # is a comment; a
// name of one letter is no name to parsers that match \S.+ and takes a second blank for its second letter.
std::string importer_comm(std::string_view comm) {
  if (comm.empty()) return std::string(kUnknown);
  std::string safe = without_blanks(comm);
  if (safe[0] == '#') safe[0] = '_';
  if (safe.size() == 1) safe += ' ';
  return safe;
}

// The last digits with a colon behind are the time to some readers.
std::string importer_event(std::string_view name) {
  if (name.empty()) return std::string(kUnknown);
  std::string safe = without_blanks(name);
  if (is_digit(safe[0]) || safe[0] == '.') safe.insert(0, 1, '_');
  return safe;
}

// What begins with ( is left out as a process's name: "::(anonymous namespace)::run" says the same.
std::string importer_symbol(std::string_view function) {
  std::string safe = printable(function);
  if (safe.starts_with('(')) safe.insert(0, "::");
  return safe;
}

// Ends at its first blank or ) to some readers.
std::string importer_module(std::string_view path) {
  std::string safe = without_blanks(path);
  std::ranges::replace(safe, '(', '[');
  std::ranges::replace(safe, ')', ']');
  return safe;
}

const std::string& ImporterText::comm_of(std::string_view comm) {
  const auto [row, is_new] = comms_.try_emplace(comm.data());
  if (is_new) row->second = importer_comm(comm);
  return row->second;
}

const std::string& ImporterText::name_of_event(std::size_t index) {
  while (event_names_.size() <= index) {
    event_names_.push_back(importer_event(session_->events()[event_names_.size()].name));
  }
  return event_names_[index];
}

void ImporterText::write_place(TextBuffer& out, const Location& location) {
  std::string_view text = places_.find(location.number);
  if (text.data() == nullptr) {
    TextBuffer lines;
    for (const symbolize::Frame& frame : resolver_->frames(location)) write_frame_line(lines, frame);
    text = places_.keep(location.number, lines.view());
  }
  out.text(text);
}

void ImporterText::write(TextBuffer& out, const ResolvedSample& sample) {
  const std::uint64_t time = sample.raw->time == ~std::uint64_t{0} ? 0 : sample.raw->time;
  out.text(comm_of(sample.comm));
  out.character(' ');
  out.decimal(shown(sample.pid()));
  out.character('/');
  out.decimal(shown(sample.tid()));
  out.text(" [");
  out.zero_filled(shown(sample.raw->cpu), 3);
  out.text("] ");
  out.decimal(time / kSecond);
  out.character('.');
  out.zero_filled(time % kSecond / 1000, 6);
  out.text(": ");
  out.decimal(std::max<std::uint64_t>(sample.period, 1));  // some readers multiply by it
  out.character(' ');
  out.text(name_of_event(sample.event_index));
  out.text(": \n");
  if (sample.stack == nullptr) {
    write_place(out, *sample.location);
  } else {
    for (const std::uint32_t number : sample.stack->frames) write_place(out, resolver_->location(number));
  }
  out.character('\n');
}

}  // namespace tacho::report
