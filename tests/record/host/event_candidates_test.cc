#include "record/host/event_candidates.h"

#include <gtest/gtest.h>

namespace tacho::record {
namespace {

// The last event of a text of -e, and its terms after a "|".
std::string last_of(std::string_view text) {
  const LastEvent last = last_event_of(text);
  std::string out(text.substr(last.start));
  if (last.terms) out.insert(*last.terms - last.start, "|");
  return out;
}

TEST(EventCandidates, TheLastEventBeginsAfterACommaThatIsNotBetweenSlashes) {
  EXPECT_EQ(last_of(""), "");
  EXPECT_EQ(last_of("cpu-cl"), "cpu-cl");
  EXPECT_EQ(last_of("cycles,{faults,cs"), "cs");
  EXPECT_EQ(last_of("sched:sched_sw"), "sched:sched_sw");
  EXPECT_EQ(last_of("open/failed=true,min_us=3/,exe"), "exe");
  EXPECT_EQ(last_of("open/failed=true/u"), "open/failed=true/u");
}

TEST(EventCandidates, TermsBeginAfterTheSlashOfAName) {
  EXPECT_EQ(last_of("offcpu/"), "offcpu/|");
  EXPECT_EQ(last_of("cycles,open/failed=true,mi"), "open/|failed=true,mi");
  EXPECT_EQ(last_of("{cpu/event=0x3c/,sched:sched_switch/per"), "sched:sched_switch/|per");
}

TEST(EventCandidates, TheSlashesOfAPathBeginNoTerms) {
  EXPECT_EQ(last_of("uprobe:/usr/lib/x.so:ma"), "uprobe:/usr/lib/x.so:ma");
  EXPECT_EQ(last_of("./pro"), "./pro");
  EXPECT_EQ(last_of("cs,/opt/x.bpf.o"), "/opt/x.bpf.o");
  EXPECT_EQ(last_of("./x.bpf.o/siz"), "./x.bpf.o/|siz");
}

}  // namespace
}  // namespace tacho::record
