// Screen: draws frames and reads keys with curses, and restores the terminal. It is in the process that owns
// the terminal; frames come from the sandboxed process that reads the capture.
#pragma once

#include <memory>
#include <string>

#include "format/base/file.h"
#include "format/base/result.h"
#include "report/command.h"
#include "report/views/tui/frame.h"

namespace tacho::report {

// Why this terminal cannot show a screen ("TERM=dumb has no cursor to move"); empty: it can.
std::string why_no_screen();

class Screen {
 public:
  // Reads keys from standard input if it is a terminal, else from /dev/tty. Keys are written to a pipe, from
  // which the reading process gets them.
  static Result<Screen> make();
  Screen(Screen&&) noexcept;
  Screen& operator=(Screen&&) = delete;
  ~Screen();  // restores the terminal

  // The end of the pipe from which the reading process gets a key for each frame that waits.
  int keys() const;
  // A memfd with the content of a file to be written (Frame::saved_bytes): a capture after the key w, a text
  // after P. The file gets the first free path of saved_path().
  int saved_file() const;
  // Sets the path of captures. Without it captures are not written.
  void save_captures(std::string path);
  // The output to which the reading process writes frames, and the descriptors that it needs. The end of the
  // output restores the terminal. The screen must outlive it.
  ScreenPlan plan() const;

 private:
  struct State;
  explicit Screen(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tacho::report
