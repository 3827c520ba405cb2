#include "report/command.h"

#include <cstdio>
#include <utility>

namespace tacho::report {
namespace {

cli::Option value_into(std::string names, std::string value, std::string help, std::string& target) {
  return {std::move(names), cli::Takes::Value, std::move(value), std::move(help),
          [&target](std::string_view text) -> Result<> {
            target = text;
            return Done{};
          }};
}

class UntilFirstSample : public Sink {
 public:
  Flow on_sample(const ResolvedSample&) override { return Flow::Stop; }
};

}  // namespace

void read_head(Session& session) {
  if (!session.layout().is_pipe) return;
  UntilFirstSample sink;
  session.run(sink);
}

cli::Option flag(std::string names, std::string help, bool& target) {
  return {std::move(names), cli::Takes::Nothing, "", std::move(help),
          [&target](std::string_view) -> Result<> {
            target = true;
            return Done{};
          }};
}

cli::Option accepted(std::string names, cli::Takes takes, std::string help) {
  return {std::move(names), takes, takes == cli::Takes::Nothing ? "" : "VALUE", std::move(help),
          [](std::string_view) -> Result<> { return Done{}; }};
}

void add_input_option(std::vector<cli::Option>& rows, ReadingOptions& options) {
  rows.push_back(value_into("-i,--input", "FILE",
                            "the capture to read; - is standard input (default: perf.data)",
                            options.session.input));
  rows.push_back({"--raw-names", cli::Takes::Nothing, "",
                  "print names byte for byte as perf does; by default control characters and invalid UTF-8 "
                  "become \\xNN",
                  [&options](std::string_view) -> Result<> {
                    options.names = Names::Raw;
                    return Done{};
                  }});
  rows.push_back(accepted("-f,--force", cli::Takes::Nothing,
                          "accepted as perf has it; files of other owners are read anyway"));
}

void add_reading_options(std::vector<cli::Option>& rows, ReadingOptions& options) {
  add_input_option(rows, options);
  auto& symbols = options.session.symbols;
  rows.push_back(value_into("--symfs", "DIR",
                            "a folder that stands for the recording host's root: binaries are looked for "
                            "below it",
                            symbols.symfs));
  rows.push_back(value_into("--kallsyms", "FILE", "kernel symbols (default: those attached to the capture)",
                            symbols.kallsyms));
  rows.push_back(value_into("--perf-map-dir", "DIR",
                            "where the perf-PID.map files of JIT compilers lie (default: /tmp)",
                            symbols.perf_map_dir));
  rows.push_back(
      value_into("--jitdump-dir", "DIR",
                 "where the jit-PID.dump files of JIT compilers lie (default: where they were mapped)",
                 symbols.jitdump_dir));
  rows.push_back(value_into("-k,--vmlinux", "FILE",
                            "the recorded kernel's vmlinux: names and lines of kernel code come from it",
                            symbols.vmlinux));
  rows.push_back(value_into("--buildid-dir", "DIR",
                            "perf's cache of files by build id (default: ~/.debug; none with --symfs)",
                            symbols.build_id_dir));
  rows.push_back({"--debuginfod", cli::Takes::Nothing, "",
                  "fetch missing files by build id from the servers in DEBUGINFOD_URLS",
                  [&symbols](std::string_view) -> Result<> {
                    symbols.debuginfod = symbolize::Servers::Asked;
                    return Done{};
                  }});
  symbols.inlines = symbolize::Inlines::Unwound;
  symbols.stand_in = symbolize::StandIn::AtFirst;
  rows.push_back(
      {"--inline", cli::Takes::Optional, "all",
       "frames for inlined calls in stacks that are unwound here (the default); =all: in every stack",
       [&symbols](std::string_view text) -> Result<> {
         if (!text.empty() && text != "all") {
           return use_error("--inline: '" + std::string(text) +
                            "' is not known; it is --inline or --inline=all");
         }
         symbols.inlines = text.empty() ? symbolize::Inlines::Unwound : symbolize::Inlines::All;
         return Done{};
       }});
  rows.push_back({"--no-inline", cli::Takes::Nothing, "", "no frames for inlined calls",
                  [&symbols](std::string_view) -> Result<> {
                    symbols.inlines = symbolize::Inlines::No;
                    return Done{};
                  }});
  rows.push_back({"--no-demangle", cli::Takes::Nothing, "",
                  "show C++, Rust, OCaml and Java names as the linker knows them",
                  [&symbols](std::string_view) -> Result<> {
                    symbols.demangle = symbolize::Demangle::No;
                    return Done{};
                  }});
}

cli::CommandLine command_line(std::string_view name, std::string description) {
  cli::CommandLine line;
  line.program = "tacho " + std::string(name);
  line.synopsis = "[options]";
  line.description = std::move(description);
  line.words = [program = line.program](const std::vector<std::string>& words) -> Result<> {
    if (words.empty()) return Done{};
    return use_error("'" + words[0] + "' is no option of " + program + "; a capture is named by -i FILE");
  };
  line.epilog =
      "Exit status: 0 whole; 1 wrong use; 2 the capture cannot be read; 3 a result was given but something\n"
      "is missing from it (stderr says what); 4 the output could not be written.";
  return line;
}

Result<cli::ExitStatus> finish(const format::Diagnostics& diagnostics, TextOutput& output,
                               const ReadingOptions& options) {
  if (auto written = output.finish(); !written) return std::move(written.error());
  for (const auto& finding : diagnostics.findings()) {
    const std::string line = "tacho: " + printable(options.session.input) + ": " +
                             printable(format::Diagnostics::describe(finding)) + '\n';
    std::fputs(line.c_str(), stderr);
  }
  return diagnostics.incomplete() ? cli::kIncomplete : cli::kWhole;
}

Result<cli::ExitStatus> finish(Session& session, TextOutput& output, const ReadingOptions& options,
                               Symbols symbols) {
  if (symbols == Symbols::Used && !output.is_done()) session.report_missing_symbols();
  return finish(session.diagnostics(), output, options);
}

}  // namespace tacho::report
