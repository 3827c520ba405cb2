// Output to a terminal: colours, tables that fit its width, the pager, and a progress line.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "report/output/output_file.h"

namespace tacho::report {

// Auto: colours on a terminal that has them, unless NO_COLOR is set and not empty (https://no-color.org).
enum class Colour : std::uint8_t { Auto, Always, Never };

// "always", "auto", "never"; `option` names it in messages.
Result<Colour> parse_colour(std::string_view option, std::string_view text);

// Whether to colour. `is_for_person` is that of the output (OutputFile::is_for_person()).
bool has_colour(Colour colour, bool is_for_person);

// `text` in perf's colour for a percentage: red from 5 on, green above 0.5, otherwise plain.
std::string coloured_share(double percent, std::string_view text);

// Makes tables fit a terminal: columns of names become narrower, and names are cut in the middle, where they
// differ least.

// The width of the terminal on standard output; 0 when it is no terminal or does not report its width.
std::size_t terminal_width();

// The width of a text on a terminal: its characters, without colour escapes.
std::size_t shown_width(std::string_view text);

// No column of names becomes narrower than this.
inline constexpr std::size_t kLeastNameWidth = 12;

// `text` cut to `width` characters: "std::vector<int..iterator::next"; below a width of 5 only its start.
std::string cut_in_the_middle(std::string_view text, std::size_t width);

// Makes the widest columns of names narrower, but none narrower than kLeastNameWidth, until all columns with
// `gap` blanks between them fit into `room`, if possible. `room` 0: no limit.
void fit_columns(std::vector<std::size_t>& widths, const std::vector<bool>& are_names, std::size_t gap,
                 std::size_t room);

// The pager for standard output, as in git: only on a terminal; TACHO_PAGER, else PAGER, else less if it is
// installed.

enum class Paging : std::uint8_t {
  OnTerminal,
  Never,  // --no-pager
};

// The shell command of the pager; empty: none. An empty variable and "cat" mean none.
std::string pager_command(const char* tacho_pager, const char* pager, bool has_less);

// Standard output, through the pager if there is one.
OutputFile standard_output(Paging paging);

// A progress line on standard error, shown after a second and only on a terminal.

class Progress {
 public:
  using Clock = std::chrono::steady_clock;
  // Shows nothing when `fd` is no terminal.
  explicit Progress(int fd, Clock::duration delay = std::chrono::seconds(1));
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { stop(); }

  bool is_on() const { return is_on_; }
  // `bytes` of `total` are read; `total` 0: unknown.
  void at(std::uint64_t bytes, std::uint64_t total);
  // Another text: `line` is called when it is time to show it.
  void show(const std::function<std::string()>& line);
  // Erases the line; a later one may be shown.
  void erase();
  // Erases the line and shows nothing any more.
  void stop();

 private:
  int fd_;
  bool is_on_, is_shown_ = false;
  Clock::time_point next_;
};

// Shows the progress lines of a sandboxed child in its parent; an empty line erases.
std::function<void(std::string_view)> progress_lines();

}  // namespace tacho::report
