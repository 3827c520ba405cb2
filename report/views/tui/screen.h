// The terminal as a screen: draws frames, gives keys, and leaves the terminal as it was, by curses. It knows
// nothing of captures. It lives in the process that owns the terminal; frames come from the one that reads.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "format/base/file.h"
#include "format/base/result.h"
#include "report/output/output_file.h"
#include "report/views/tui/frame.h"

namespace tacho::report {

// Why this terminal shows text only ("TERM=dumb has no cursor to move"); empty: it can show a screen.
std::string why_no_screen();

class Screen {
 public:
  // Keys come from standard input, or where that is something else from the terminal of this process.
  // Keys go into a pipe, from whose other end the process that makes frames reads them.
  static Result<Screen> make();
  Screen(Screen&&) noexcept;
  Screen& operator=(Screen&&) = delete;
  ~Screen();  // leaves the screen

  // For the process that makes frames: where a key waits after each frame that was written.
  int keys() const;
  // The file in memory for what frames keep (Frame::kept_bytes). A kept file gets the first free path of
  // kept_path(), after the key w for captures, P for others.
  int kept() const;
  // Captures are kept under this path. Without it they are refused.
  void keep_captures(std::string path);
  // What is written to it are frames; its end leaves the screen. The screen must outlive it.
  OutputFile output();

 private:
  struct State;
  explicit Screen(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tacho::report
