// Output to a terminal: colours, the pager, and a progress line.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "cli/text_table.h"
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

// Tables that fit a terminal (cli/text_table.h).
using cli::cut_in_the_middle;
using cli::fit_columns;
using cli::kLeastNameWidth;
using cli::shown_width;
using cli::terminal_width;

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
  // In a sandboxed child, which has no terminal: its parent shows the line (sandbox::Output::show_progress).
  // Null: shows nothing.
  using ShowLine = std::function<void(std::string_view)>;  // an empty line erases
  explicit Progress(ShowLine show_line, Clock::duration delay = std::chrono::seconds(1));
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
  ShowLine show_line_;
  bool is_on_, is_shown_ = false;
  Clock::time_point next_;
};

// Shows the progress lines of a sandboxed child in its parent; an empty line erases.
std::function<void(std::string_view)> progress_lines();

}  // namespace tacho::report
