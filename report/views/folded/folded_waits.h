// Waits as folded stacks: "comm;root;...;leaf;-- waker --;leaf;...;root;comm NANOSECONDS".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/command.h"
#include "report/query/waits.h"
#include "report/samples/session.h"
#include "report/views/folded/folded.h"

namespace tacho::report {

// The whole view in place of the stacks of one event.
Result<Shown> show_waits(Session& session, TextOutput& out, const WaitOptions& options,
                         const FoldOptions& fold, Names names);
// Likewise all time of threads: "comm;[runnable];root;...;leaf NANOSECONDS".
Result<Shown> show_wall(Session& session, TextOutput& out, const WaitOptions& options, const FoldOptions& fold,
                        Names names);

}  // namespace tacho::report
