#include "report/views/tui/command_tui.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <stop_token>
#include <utility>

#include "report/views/report/command_report.h"
#include "report/views/report/report_options.h"
#include "report/views/tui/link.h"
#include "report/views/tui/screen.h"
#include "report/views/tui/walk.h"

namespace tacho::report {
namespace {

Frame progress_frame(ScreenSize size, const std::string& input, const ReadProgress& read) {
  Frame frame(size);
  frame.waits = false;
  const double share = read.bytes_total == 0
                           ? 0
                           : static_cast<double>(read.bytes_read) / static_cast<double>(read.bytes_total);
  frame.bar(0, Style::Bar, "tacho: " + input);
  constexpr double kMegabyte = 1e6;
  const std::size_t middle = size.height / 2;
  frame.put(middle, 2, Style::Normal,
            fmt::format("Reading: {:.0f} of {:.0f} MB   (q: show what was read)",
                        static_cast<double>(read.bytes_read) / kMegabyte,
                        static_cast<double>(read.bytes_total) / kMegabyte));
  const auto room = static_cast<double>(size.width > 4 ? size.width - 4 : 0);
  const auto filled = static_cast<std::size_t>(room * std::min(share, 1.0));
  frame.put(middle + 1, 2, Style::Bar, std::string(filled, ' '));
  return frame;
}

void read_all(Session& session, WalkSink& sink, Link& link, const std::string& input) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kBetween{100};
  std::stop_source stop;
  RunControl control;
  control.cancel = stop.get_token();
  Clock::time_point last = Clock::now();
  control.progress = [&](const ReadProgress& read) {
    const auto now = Clock::now();
    if (now - last < kBetween) return;
    last = now;
    const auto press = link.show(progress_frame(link.size(), input, read));
    if (!press || press->is('q') || press->key == Key::Escape) stop.request_stop();
  };
  session.run(sink, control);
}

// Reads, then draws and asks for keys until it is left. The options are changed where the capture must be
// read again.
Result<Shown> walk(Session& first, const SessionOptions& wanted, TextOutput& out, ReportOptions options,
                   int keys) {
  Link link(out, keys);
  std::optional<Session> again;
  std::string message;
  for (;;) {
    Session& session = again ? *again : first;
    if (auto checked = check_events(session, options.reading); !checked) return checked.error();
    WalkSink sink(session, options);
    ReportSink& rows = sink.rows();
    if (!session.layout().is_pipe)
      if (auto arranged = rows.arrange(); !arranged) return std::move(arranged.error());
    read_all(session, sink, link, options.reading.session.input);
    if (!rows.is_arranged())
      if (auto arranged = rows.arrange(); !arranged) return std::move(arranged.error());
    if (const auto failure = rows.failure()) return *failure;
    rows.report(session.diagnostics());
    Shown shown(Symbols::Used);
    shown.notes = rows.notes();
    if (rows.empty()) {
      if (const std::string note = no_rows_note(session, options); !note.empty()) shown.notes.push_back(note);
      return shown;
    }
    rows.settle();
    Walk view(rows, options, sink.hits());
    if (!message.empty()) view.say(std::exchange(message, {}));
    auto flow = Walk::Flow::Stay;
    while (flow == Walk::Flow::Stay) {
      const auto press = link.show(view.draw(link.size()));
      if (!press) return shown;
      flow = view.on_key(*press);
    }
    if (flow == Walk::Flow::Quit) return shown;
    options.sort = view.wanted_sort();
    options.fields.clear();
    auto opened = Session::open(wanted);
    if (!opened) return std::move(opened.error());
    if (opened->has_condition())
      if (auto bound = opened->bind_condition(); !bound) return std::move(bound.error());
    again.emplace(std::move(*opened));
    message = "read again for the sort keys " + options.sort;
  }
}

Result<cli::ExitStatus> walk_report(ReportOptions& options) {
  options.is_walked = true;
  if (auto prepared = prepare_report(options); !prepared) return std::move(prepared.error());
  auto screen = Screen::make();
  if (!screen) return std::move(screen.error());
  const ScreenPlan plan{.open_output = [&screen]() -> Result<OutputFile> { return screen->output(); },
                        .kept = {screen->keys()}};
  return show_on_screen(options.reading, plan,
                        [&](Session& session, const SessionOptions& wanted, TextOutput& out) {
                          return walk(session, wanted, out, options, screen->keys());
                        });
}

bool is_on_terminal() { return ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0; }

Result<cli::ExitStatus> show_report(ReportOptions& options) {
  const std::string_view text_option = options.text_option();
  const bool is_asked_for = options.face == ReportFace::Screen;
  const bool is_possible = options.face != ReportFace::Text && text_option.empty() && is_on_terminal() &&
                           options.reading.session.input != "-";
  const std::string lack = is_possible ? why_no_screen() : std::string();
  if (is_possible && lack.empty()) return walk_report(options);
  if (is_asked_for && !text_option.empty())
    return use_error(
        fmt::format("{} is of text, which --stdio prints; the screen has no such thing", text_option));
  if (is_asked_for) {
    return use_error((lack.empty() ? "the screen needs a terminal for input and output" : lack) +
                     "; tacho report --stdio prints text");
  }
  if (!lack.empty()) std::fprintf(stderr, "tacho: %s: text is printed\n", lack.c_str());
  return print_report(options);
}

}  // namespace

Result<cli::ExitStatus> run_report(const std::vector<std::string>& arguments) {
  ReportOptions options;
  return run_command(describe_report(options), arguments, [&options] { return show_report(options); });
}

Result<cli::ExitStatus> run_tui(const std::vector<std::string>& arguments) {
  ReportOptions options;
  auto line = describe_report(options);
  line.program = "tacho tui";
  line.synopsis = "[FILE] [options]";
  line.description =
      "Shows a report on the terminal, to be walked through: rows with their call graphs, filters, zooms, "
      "annotated code. It is what tacho report opens on a terminal, and takes its options; h lists the keys, "
      "and docs/terminal.md explains them.";
  line.words = [&options](const std::vector<std::string>& words) -> Result<> {
    if (words.size() > 1) return use_error("'" + words[1] + "' is one word too many: tacho tui FILE");
    if (words.size() == 1) options.reading.session.input = words[0];
    return Done{};
  };
  return run_command(line, arguments, [&options] {
    options.face = ReportFace::Screen;
    return show_report(options);
  });
}

}  // namespace tacho::report
