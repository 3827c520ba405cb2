// `tacho live` and `tacho top`: a recording, and a view (tacho-report) that reads it through a pipe.
#pragma once

#include <sys/types.h>
#include <termios.h>

#include <string>
#include <vector>

#include "cli/options.h"
#include "format/base/file.h"
#include "format/base/result.h"
#include "record/events/event_request.h"
#include "record/options/options.h"

namespace tacho::record {

// The commands; `command_line`: all arguments. Both return the exit status.
int run_live(const std::vector<std::string>& command_line);
int run_top(const std::vector<std::string>& command_line);

struct LiveOptions {
  cli::Parsed outcome = cli::Parsed::Run;
  std::vector<std::string> recording;  // the command line of the recording, which writes to standard output
  std::string view;                    // "table --by comm"; empty: what the recorder suggests
  std::string interval = "1";          // time between tables: seconds, or with a unit as in 100ms
};
Result<LiveOptions> parse_live_options(const std::vector<std::string>& arguments);

// The words of the view's command line. Default: the view of the recorder if there is one event, else a line
// for each event. A use error if the view does not print while events arrive.
Result<std::vector<std::string>> live_view(const LiveOptions& options,
                                           const std::vector<EventRequest>& events);

// Splits "script --where 'a == 1'" into words at blanks; single quotes keep blanks, as in a shell.
std::vector<std::string> words_of(std::string_view text);

// `tacho top`: the view is on the screen, or rows as text without a terminal.
struct TopOptions {
  std::vector<std::string> view;  // the words of its command line
  bool has_screen = false;
};
struct ParsedTop {
  ParsedOptions recording;
  TopOptions top;
};
Result<ParsedTop> parse_top_options(const std::vector<std::string>& arguments);

// The view as a child process that reads the recording. Ctrl-C does not end it: it shows events until the
// pipe is closed.
class LiveView {
 public:
  // Standard output of this process is the pipe from now on; with a pidfd it does not block. `has_screen`:
  // Ctrl-C ends the view.
  static Result<LiveView> start(std::vector<std::string> words, bool has_screen = false);
  LiveView(LiveView&& other) noexcept;
  LiveView& operator=(LiveView&&) = delete;
  ~LiveView();

  // pidfd; -1 on kernels without it (before 5.3).
  int end_fd() const { return ended_.get(); }
  // SIGKILL: the recording failed, and the view must not report an empty capture.
  void kill();
  // SIGTERM: the view restores the terminal and exits.
  void terminate();
  // Closes the pipe and waits for the view. Returns its exit status, or 128 + the signal that ended it; then
  // the terminal gets the modes back that it had at the start. Prints a message about a view that was killed
  // or crashed.
  int finish();
  // Whether a status of finish() means that it was killed or crashed, and not ended as a user does it.
  static bool is_of_crash(int status);

 private:
  explicit LiveView(pid_t pid);
  void restore_terminal() const;

  pid_t pid_ = -1;
  format::Fd ended_;  // its pidfd
  bool is_killed_here_ = false;
  format::Fd terminal_;  // of the screen; none: the view is text
  termios modes_{};      // at the start
};

}  // namespace tacho::record
