// tacho export --to tables: the tables of a capture as files for a database.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "report/filter_options.h"
#include "report/tables/made_tables.h"
#include "report/views/export/export_formats.h"

namespace tacho::report {
namespace {

struct TablesOptions {
  ReadingOptions reading;
  CaptureLabels labels;
  std::string folder;
  RowFormat form = RowFormat::Csv;
  TablePacking packing = TablePacking::Zstd;
  std::string choice;  // the options that choose samples, as given; empty: all samples
};

// FILE DIR, or DIR alone.
Result<> take_tables_words(TablesOptions& options, std::vector<std::string> words) {
  if (words.size() > 2) return use_error("one capture and one folder: tacho export --to tables FILE DIR");
  options.folder = std::move(words.back());
  if (words.size() == 2) options.reading.session.input = std::move(words.front());
  return Done{};
}

cli::CommandLine describe_tables(TablesOptions& options) {
  auto line = command_line(
      "export --to tables",
      "Writes the tables of a capture into a folder, which is made if it is not there: captures, samples, "
      "stacks, "
      "frames, events, losses, each as TABLE.CAPTURE.csv.zst. Ids depend on content alone, so files of many "
      "captures and hosts can be in one folder, and be loaded together (docs/fleet.md).");
  line.synopsis = "[OPTIONS] [FILE] DIR";
  line.words = [&options](std::vector<std::string> words) {
    return take_tables_words(options, std::move(words));
  };
  auto& rows = line.options;
  add_reading_options(rows, options.reading);
  std::erase_if(rows, [](const cli::Option& row) {
    return row.names.starts_with("-o,") || row.names == "--no-pager" || row.names == "--raw-names";
  });
  rows.push_back(cli::text("-o,--output", "DIR", "the folder, instead of a word", options.folder));
  rows.push_back(sets("--csv", "comma-separated values with a first line of names (the default)",
                      options.form, RowFormat::Csv));
  rows.push_back(sets("--json", "one JSON object a row", options.form, RowFormat::Json));
  rows.push_back(sets("--lines",
                      "also source files and lines of frames (column source_file), which takes longer",
                      options.reading.session.symbols.source_lines, symbolize::SourceLines::Yes));
  rows.push_back(sets("--plain", "do not compress by zstd", options.packing, TablePacking::Plain));
  rows.push_back(
      cli::text("--service", "NAME", "what the capture is of, for its column", options.labels.service));
  rows.push_back(cli::text("--release", "NAME", "the release that ran", options.labels.release));
  rows.push_back(cli::text("--host-class", "NAME", "the kind of host", options.labels.host_class));
  rows.push_back(
      cli::text("--host", "NAME", "the host's name (default: the recorded one)", options.labels.host));
  const std::size_t first = rows.size();
  add_filter_options(rows, options.reading.session.filter);
  for (std::size_t i = first; i < rows.size(); ++i)
    rows[i].set = [&options, names = rows[i].names, set = rows[i].set](std::string_view text) {
      options.choice += names + "=" + std::string(text) + "\n";
      return set(text);
    };
  return line;
}

Result<cli::ExitStatus> write_folder(const TablesOptions& options) {
  const std::string& input = options.reading.session.input;
  if (options.folder.empty()) return use_error("name a folder: tacho export --to tables FILE DIR");
  if (input == "-") return use_error("a pipe has no tables: put the capture into a file");
  auto id = id_of_capture(input);
  if (!id) return id.error();
  if (!options.choice.empty()) id = id_of_part(*id, options.choice);
  std::error_code failed;
  std::filesystem::create_directory(options.folder, failed);
  if (failed) return output_system_error(options.folder, failed.value());
  return make_tables(options.reading, {options.labels, DamagedCaptures::Tell}, *id,
                     {.folder = options.folder,
                      .capture_id = id->hex(),
                      .form = options.form,
                      .packing = options.packing,
                      .mode = mode_of_output(std::span(&input, 1))});
}

}  // namespace

Result<cli::ExitStatus> export_tables(const std::vector<std::string>& arguments) {
  TablesOptions options;
  return run_command(describe_tables(options), arguments, [&options] { return write_folder(options); });
}

}  // namespace tacho::report
