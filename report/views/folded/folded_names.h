// The names of frames in folded stacks: as stackcollapse-perf.pl has them where it is asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "report/profile/frame_names.h"
#include "report/samples/session.h"
#include "report/views/folded/folded.h"
#include "symbolize/frame.h"

namespace tacho::report {

enum class Context : std::uint8_t {
  None,
  FileAndLine,  // --context: "run(int):loop.cc:12"
};

// The name of a frame as that program shows it with --inline: there addr2line gives the names, so they are
// whole (parameters, return types) and are not tidied. Nothing where that program does not ask addr2line, or
// gets no answer: code of the kernel, of a JIT, without a name. Such frames look as they do without the
// option.
std::optional<std::string> expanded_name(const symbolize::Frame& frame, Context context);

struct FoldedInlines {
  bool are_expanded = false;  // --inline: names as expanded_name() has them
  Context context = Context::None;
};
// The stacks number the names. They and the session must outlive what is returned.
FrameNames folded_frame_names(Session& session, FoldedStacks& folded, const FoldOptions& options,
                              FoldedInlines inlines);

}  // namespace tacho::report
