// The frame of the formats of tacho export that are made of samples: their options, output and notes.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "report/command.h"
#include "report/views/export/export_events.h"
#include "report/views/export/export_output.h"
#include "report/views/export/export_stacks.h"

namespace tacho::report {

struct ExportOptions {
  ReadingOptions reading;
  ExportChoice choice;
  std::string binary;  // --binary: a path, its last part or a build id; empty: not given
};

// What a format is for its options and its output.
struct ExportTraits {
  std::string_view name;
  bool is_binary = false;   // it cannot be shown on a terminal
  bool has_labels = false;  // it keeps facts of samples apart: --labels
  enum class Lines : std::uint8_t { Asked, Always, Never };
  Lines lines = Lines::Asked;  // source lines: with --lines only, or whatever is asked for
  ExportLabels labels{};       // kept apart by default
  bool is_of_binary = false;   // of one program or library: --binary
};
using ShowExport = Result<Shown> (*)(Session& session, TextOutput& out, const ExportOptions& options);

// Parses the options and writes the capture by `show`.
Result<cli::ExitStatus> export_samples(const ExportTraits& traits, const std::vector<std::string>& arguments,
                                       ShowExport show);
// --help without a format: the options that most formats have.
Result<cli::ExitStatus> show_export_help();

inline constexpr std::string_view kNoExportedSamples =
    "tacho export: the capture has no samples, or none that the options select";

// A format made of sums by stack: `write` gets all of them, after the samples were read.
using WriteStacks = std::function<void(ExportStacks& stacks, ExportOutput& to)>;
Result<Shown> export_stacks(Session& session, TextOutput& out, const ExportOptions& options,
                            ExportOutput::Packing packing, const WriteStacks& write);
// A format made of the samples themselves.
using WriteEvents = std::function<void(ExportEvents& events, ExportOutput& to)>;
Result<Shown> export_events(Session& session, TextOutput& out, const ExportOptions& options,
                            ExportPlaces places, const WriteEvents& write);
// Reads all samples of a session into sums.
Result<Shown> read_export(Session& session, ExportStacks& stacks, TextOutput& out);

// Lines about the capture, for formats with comments: host, kernel, command, losses, and the comments of an
// imported profile. Safe to print.
std::vector<std::string> capture_lines(Session& session);
// ns to be added to a sample's time for the time since 1970; 0: not known.
std::int64_t wall_clock_offset(const Session& session);
// A time of the recording clock, in ns since 1970; one that a signed number of 64 bits does not hold is the
// nearest.
std::int64_t wall_time(std::uint64_t time, std::int64_t offset);

}  // namespace tacho::report
