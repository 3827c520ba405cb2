// A view in a process of its own that may only read (report/confinement.h): whoever made a capture, or a file
// that it names, may know a fault of a parser. What one of these files does to it costs what that file tells,
// and neither the text nor what the others tell.
//
// All of a view runs there, and not only the reading of files: so nothing is asked or answered by address,
// the text is the same to the byte, and what is recorded is read within the same walls. Its parent opens and
// writes the output. When the worker dies of a file, the next one begins anew, without that file from that
// point on, and its parent leaves out what was written already; that what it makes of it is the same is
// checked.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/exit_status.h"
#include "format/base/result.h"
#include "report/confinement.h"
#include "report/output/output_file.h"
#include "report/text_channel.h"
#include "report/worker.h"
#include "symbolize/files/file_gate.h"

namespace tacho::report {

// What the view has in the worker.
struct ApartView {
  TextChannel& channel;
  symbolize::FileGate& names;   // for files that names are read of
  symbolize::FileGate& stacks;  // for those that stacks are unwound with
  bool in_step = false;         // by one thread, so that a death can be told from the other's
};

struct ApartTask {
  std::function<Result<cli::ExitStatus>(ApartView&)> show;  // in the worker
  std::function<Result<OutputFile>()> open_output;          // in the parent, when there is text
  std::function<bool()> is_asked_to_stop;                   // in the parent, ten times a second; may be empty
  Reach reach = Reach::AndTrials;
  std::string input;            // in messages
  bool can_begin_again = true;  // false: what is read is gone then
  // Where the worker itself writes to what is open for it (Reach::AndOutput), and tells of it by an output
  // that takes no text: before another worker begins, it is made empty here.
  std::function<Result<>()> begin_anew;
  bool is_whole_or_nothing = false;  // what was written by a worker that cannot be followed by another goes
  FileTimes times{};
  std::vector<int> kept{};  // descriptors that `show` needs besides standard input, which is the input "-"
};

// The exit status of the view; kIncomplete where files were left out, each of which is told on stderr. The
// error of the view, or: no worker can be made or confined (`is_confined` is false then, and nothing was
// shown), or it died for other reasons than a file or too often.
// No other thread may run meanwhile that holds a lock (it is a fork).
Result<cli::ExitStatus> show_apart(const ApartTask& task, bool& is_confined);

// The same, or `here` does it in this process where the kernel has no such walls, which is said; of root that
// is refused: its rights are not for files that anybody may have made.
Result<cli::ExitStatus> show_apart_or(const ApartTask& task,
                                      const std::function<Result<cli::ExitStatus>()>& here);

}  // namespace tacho::report
