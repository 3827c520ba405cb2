#include "record/options/output_options.h"

#include <sys/stat.h>
#include <unistd.h>

#include <iterator>
#include <utility>

#include "cli/option_rows.h"
#include "format/base/units.h"
#include "format/container/content_classes.h"
#include "record/options/time_options.h"
#include "record/parse_text.h"

namespace tacho::record {
namespace {

constexpr double kMostBytes = 1e18;
constexpr std::uint64_t kMostFiles = 1'000'000;
// Each file describes the host, in a megabyte and more.
constexpr std::uint64_t kLeastSwitchBytes = std::uint64_t{1} << 20;

// Names of classes between commas; empty: all.
Result<> check_classes(std::string_view classes) {
  while (!classes.empty()) {
    const std::string_view name = take_until(classes, ',');
    if (name == "all" || format::find_content(name)) continue;
    std::string known;
    for (const format::ContentRow& row : format::kContents) known += ' ' + std::string(row.name);
    return use_error("--redact: there is no class '" + std::string(name) + "'; there are" + known);
  }
  return Done{};
}

// Empty or "signal": a new file on request only; "100M": also at this size; "10s": also at this age.
Result<> set_switch_rule(OutputOptions& files, std::string_view text) {
  SwitchRule rule;
  rule.is_on = true;
  const bool by_signal = text.empty() || text == "signal";
  const auto unit = text.find_last_of("0123456789.");
  const bool has_unit = !by_signal && unit != std::string_view::npos && unit + 1 < text.size();
  const bool is_size = has_unit && std::string_view("BKkMGgT").find(text.back()) != std::string_view::npos;
  if (!by_signal && !has_unit) {
    return use_error("--switch-output: '" + std::string(text) +
                     "' is neither signal, nor a size (B, K, M, G), nor a time (s, m, h, d)");
  }
  if (is_size) {
    const auto bytes = parse_size("--switch-output", text);
    if (!bytes) return bytes.error();
    if (*bytes < kLeastSwitchBytes)
      return use_error(
          "--switch-output: a file takes a megabyte and more before its first sample; 1M at least");
    rule.bytes = *bytes;
  } else if (!by_signal) {
    const auto period = parse_duration("--switch-output", text);
    if (!period) return period.error();
    rule.period = *period;
  }
  files.switch_rule = rule;
  files.is_named_by_time = true;
  return Done{};
}

cli::Option size_option(std::string names, std::string help, std::uint64_t& bytes) {
  const std::string name = names;
  return {std::move(names), cli::Takes::Value, "SIZE", std::move(help),
          [name, &bytes](std::string_view text) { return store(bytes, parse_size(name, text)); }};
}

}  // namespace

Result<std::uint64_t> parse_size(std::string_view option, std::string_view text) {
  const double bytes = format::parse_bytes(text).value_or(0);
  if (bytes < 1 || bytes > kMostBytes) {
    return use_error(std::string(option) + ": '" + std::string(text) +
                     "' is not a size such as 512K, 10M or 1.5G");
  }
  return static_cast<std::uint64_t>(bytes);
}

void add_output_options(std::string& path, OutputOptions& files, std::vector<cli::Option>& rows) {
  using cli::Takes;
  std::vector<cli::Option> own{
      {"-o,--output", Takes::Value, "FILE",
       "Write the capture to FILE; an existing capture is kept as FILE.old. -: write perf's pipe form to "
       "standard output, which is the default if that is a pipe. Default: perf.data",
       [&path, &files](std::string_view text) -> Result<> {
         if (text.empty()) return use_error("-o: the name of the file is empty");
         path = text;
         files.is_named = true;
         return Done{};
       }},
      {"--switch-output", Takes::Optional, "WHEN",
       "Start another file at SIGUSR2 or at the command snapshot of --control, and also at this size (100M) "
       "or age (10s, 15m, 2h, 1d). Each file is complete, and named FILE.TIME when it is finished",
       [&files](std::string_view text) { return set_switch_rule(files, text); }},
      cli::number(
          "--switch-max-files", "N",
          "Keep the last N files of --switch-output, including the current one, and remove older ones", 1,
          kMostFiles, files.most_files),
      {"--overwrite", Takes::Nothing, "",
       "Flight recorder: keep the last samples in the rings (-m sets their size). A capture is written at "
       "SIGUSR2 or at the command snapshot of --control (FILE.TIME), and at the end (FILE)",
       [&files](std::string_view) -> Result<> {
         files.overwrite = true;
         files.switch_rule.is_on = true;
         return Done{};
       }},
      cli::flag("--timestamp-filename", "Name the file FILE.TIME when it is finished",
                files.is_named_by_time),
      cli::flag(
          "--no-pack",
          "Do not embed symbols. By default tacho-report, if it is installed beside tacho-record, embeds the "
          "symbols of sampled addresses when a file is finished, instead of the whole list of kernel "
          "symbols, "
          "so that the capture can be read on any machine. Of several files (--switch-output, --overwrite) "
          "each is packed at the lowest priority while the recording goes on, and what is left then at its "
          "end. Files that may be gone by then (deleted files, files of containers, maps of JIT code) are "
          "held open: at most 256 files and 4 GB. Not done for pipes, with --max-size, and above 1 GB: use "
          "tacho pack",
          files.packs, false),
      {"--max-pack-time", Takes::Value, "SECONDS",
       "Embed symbols for at most SECONDS after the recording (default: 300). Addresses without a name by "
       "then stay without one, and files that do not answer, as on a network that hangs, are left out. tacho "
       "pack allows more time (--max-file-time)",
       [&files](std::string_view text) {
         constexpr std::uint64_t kDay = 24 * 60 * 60;
         return store(files.longest_packing, cli::parse_number("--max-pack-time", text, 1, kDay));
       }},
      {"--redact", Takes::Optional, "CLASSES",
       "At the end, remove private data from the capture, or replace it by aliases: command lines, the "
       "host's name, folders, names of threads, texts in payloads, stacks and more; or only these classes "
       "(comm,paths), which tacho redact --help lists. Needs tacho-report beside tacho-record. Until the "
       "recording ends, the file has everything",
       [&files](std::string_view text) -> Result<> {
         files.redacts = true;
         files.redacted_classes = text;
         return check_classes(text);
       }},
      size_option("--max-size",
                  "End the recording before the capture exceeds this size (100M). The number of samples that "
                  "did not fit is printed",
                  files.most_bytes),
      size_option("--min-free",
                  "End the recording when the capture's file system has less free space than this (1G)",
                  files.least_free),
  };
  std::ranges::move(own, std::back_inserter(rows));
}

StandardOutput look_at_standard_output() {
  struct stat info {};
  if (fstat(STDOUT_FILENO, &info) == 0 && S_ISFIFO(info.st_mode)) {
    struct stat errors {};
    const bool is_shared =
        fstat(STDERR_FILENO, &errors) == 0 && errors.st_dev == info.st_dev && errors.st_ino == info.st_ino;
    return is_shared ? StandardOutput::Other : StandardOutput::Pipe;
  }
  return isatty(STDOUT_FILENO) != 0 ? StandardOutput::Terminal : StandardOutput::Other;
}

Result<> choose_output(std::string& path, OutputOptions& files, StandardOutput standard_output) {
  files.to_pipe = files.is_named ? path == "-" : standard_output == StandardOutput::Pipe;
  if (files.overwrite && (files.most_bytes != 0 || files.switch_rule.bytes != 0))
    return use_error("--overwrite: -m sets how much is kept; leave the size out");
  if (files.most_files != 0 && !files.switch_rule.is_on)
    return use_error("--switch-max-files: there is one file only; add --switch-output=SIZE or TIME");
  if (files.most_bytes != 0 && files.switch_rule.is_on) {
    return use_error(
        "--max-size: with --switch-output, its SIZE and --switch-max-files say how much is kept");
  }
  if (files.redacts && (files.to_pipe || files.is_named_by_time || files.overwrite))
    return use_error(
        "--redact: only one file is redacted at the end of a recording, and no pipe; leave it out, and run "
        "tacho redact on each capture");
  if (!files.to_pipe) return Done{};
  if (files.is_named_by_time || files.overwrite || files.least_free != 0) {
    return use_error(std::string(files.overwrite          ? "--overwrite"
                                 : files.is_named_by_time ? "files named by time"
                                                          : "--min-free") +
                     " and a pipe exclude each other; name a file with -o");
  }
  if (standard_output == StandardOutput::Terminal) {
    return use_error(
        "-o -: standard output is a terminal; pipe it into a reader, as in tacho record -o - | tacho script "
        "-i -");
  }
  path = "-";
  return Done{};
}

}  // namespace tacho::record
