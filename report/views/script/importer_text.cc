#include "report/views/script/importer_text.h"

#include <algorithm>
#include <cstdint>

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

// A number that every reader parses; the kernel stores ~0 for values that were not recorded.
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

// Some readers take the first number after a blank for the process, and a line that begins with # for a
// comment. A name of one letter is no name to parsers with \S.+, which take a second blank as its second
// letter.
std::string importer_comm(std::string_view comm) {
  if (comm.empty()) return std::string(kUnknown);
  std::string safe = without_blanks(comm);
  if (safe[0] == '#') safe[0] = '_';
  if (safe.size() == 1) safe += ' ';
  return safe;
}

// Some readers take trailing digits with a colon for the time.
std::string importer_event(std::string_view name) {
  if (name.empty()) return std::string(kUnknown);
  std::string safe = without_blanks(name);
  if (is_digit(safe[0]) || safe[0] == '.') safe.insert(0, 1, '_');
  return safe;
}

// A name that begins with ( is taken for a process's name and skipped; "::(anonymous namespace)::run" means
// the same.
std::string importer_symbol(std::string_view function) {
  std::string safe = printable(function);
  if (safe.starts_with('(')) safe.insert(0, "::");
  return safe;
}

// Some readers end the module at its first blank or ).
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

void ImporterText::write_location(TextBuffer& out, const Location& location) {
  std::string_view text = lines_.find_text(location.id);
  if (text.data() == nullptr) {
    TextBuffer lines;
    for (const symbolize::Frame& frame : resolver_->frames(location)) write_frame_line(lines, frame);
    text = lines_.keep(location.id, lines.view());
  }
  out.text(text);
}

void ImporterText::write(TextBuffer& out, const ResolvedSample& sample) {
  const std::uint64_t time = sample.fields->time == ~std::uint64_t{0} ? 0 : sample.fields->time;
  out.text(comm_of(sample.comm));
  out.character(' ');
  out.decimal(shown(sample.pid()));
  out.character('/');
  out.decimal(shown(sample.tid()));
  out.text(" [");
  out.zero_filled(shown(sample.fields->cpu), 3);
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
    write_location(out, *sample.location);
  } else {
    for (const LocationId number : sample.stack->frames) write_location(out, resolver_->location(number));
  }
  out.character('\n');
}

}  // namespace tacho::report
