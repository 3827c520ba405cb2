// `tacho live`: a recording and a view of it, joined by a pipe.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "cli/options.h"
#include "format/base/result.h"
#include "record/events/event_request.h"
#include "record/options/options.h"

namespace tacho::record {

struct LiveOptions {
  cli::Parsed outcome = cli::Parsed::Run;
  std::vector<std::string> recording;  // the command line of the recording, which writes to standard output
  std::string view;                    // "table --by comm"; empty: what the recorder suggests
  std::string interval = "1";          // from one table to the next: seconds, or as in 100ms
};
Result<LiveOptions> parse_live_options(const std::vector<std::string>& arguments);

// The words of the view's command line: a recorder alone suggests one; otherwise a line an event is
// printed. A use error: a view that does not print while events arrive.
Result<std::vector<std::string>> live_view(const LiveOptions& options,
                                           const std::vector<EventRequest>& events);

// "script --where 'a == 1'" in words, as a shell parts them by blanks and single quotes.
std::vector<std::string> words_of(std::string_view text);

// `tacho top`: the same with the interactive view, or rows as text where there is no terminal.
struct TopOptions {
  std::vector<std::string> view;  // the words of its command line
  bool has_screen = false;
};
struct ParsedTop {
  ParsedOptions recording;
  TopOptions top;
};
Result<ParsedTop> parse_top_options(const std::vector<std::string>& arguments);

// The view as a program that reads what we write to standard output. Ctrl-C does not end it: it shows what
// comes until there is no more.
class LiveView {
 public:
  // From here on standard output is the pipe to it.
  // `has_screen`: Ctrl-C ends it.
  static Result<LiveView> start(std::vector<std::string> words, bool has_screen = false);
  LiveView(LiveView&& other) noexcept;
  LiveView& operator=(LiveView&&) = delete;
  ~LiveView();

  // Nothing was recorded, and the view is ended before it says so.
  void give_up();
  // It leaves the terminal as it was, and ends.
  void terminate();
  // The view's input ends: waits for it. Its exit status, 128 + the signal that ended it.
  int finish();

 private:
  explicit LiveView(pid_t pid) : pid_(pid) {}
  pid_t pid_ = -1;
};

}  // namespace tacho::record
