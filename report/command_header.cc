#include "report/command_header.h"

#include <unistd.h>

#include <algorithm>

#include "report/attr_text.h"
#include "report/event_name.h"
#include "report/header_text.h"

namespace tacho::report {
namespace {

// A pipe's events and features come with its records; those before the first sample are all there are.
class UntilFirstSample : public Sink {
 public:
  Flow on_sample(const ResolvedSample&) override { return Flow::Stop; }
};

void read_head(Session& session) {
  if (!session.layout().is_pipe) return;
  UntilFirstSample sink;
  session.run(sink);
}

bool is_tracepoint(const format::Event& event) { return event.attr.type == format::abi::kTracepoint; }

}  // namespace

Result<cli::ExitStatus> run_header(const std::vector<std::string>& arguments) {
  ReadingOptions options;
  auto line =
      command_line("header",
                   "Shows what a capture says about itself: the host, the command, the events, and what "
                   "is attached to it.");
  add_reading_options(line.options, options);
  const auto parsed = cli::parse(line, arguments);
  if (!parsed) return parsed.error();
  if (*parsed == cli::Parsed::HelpShown) return cli::kWhole;

  auto session = Session::open(options.session);
  if (!session) return std::move(session.error());
  read_head(*session);
  TextOutput out(STDOUT_FILENO);
  write_header(out, session->layout(), session->events(), session->features(), options.names);
  if (session->layout().is_pipe) write_features(out, session->events(), session->features(), options.names);
  write_own_features(out, session->features(), options.names);
  return finish(*session, out, options, Symbols::NotUsed);
}

Result<cli::ExitStatus> run_evlist(const std::vector<std::string>& arguments) {
  ReadingOptions options;
  bool is_verbose = false;
  auto line = command_line("evlist", "Lists the events of a capture.");
  add_reading_options(line.options, options);
  line.options.push_back(flag("-v,--verbose", "with their attributes", is_verbose));
  const auto parsed = cli::parse(line, arguments);
  if (!parsed) return parsed.error();
  if (*parsed == cli::Parsed::HelpShown) return cli::kWhole;

  auto session = Session::open(options.session);
  if (!session) return std::move(session.error());
  read_head(*session);
  TextOutput out(STDOUT_FILENO);
  for (const auto& event : session->events()) {
    out.text(printable(event_name(event, session->features()), options.names));
    if (is_verbose) out.text(": " + attr_text(event.attr, AttrList::Evlist));
    out.character('\n');
  }
  if (std::ranges::any_of(session->events(), is_tracepoint)) {
    out.text("# Tip: use 'perf evlist --trace-fields' to show fields for tracepoint events\n");
  }
  return finish(*session, out, options, Symbols::NotUsed);
}

}  // namespace tacho::report
