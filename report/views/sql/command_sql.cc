// tacho sql: a query over the tables of one capture, in DuckDB.
#include <unistd.h>

#include <utility>

#include "report/commands.h"
#include "report/database/duckdb.h"
#include "report/database/result_text.h"
#include "report/database/sql_sections.h"
#include "report/tables/made_tables.h"

namespace tacho::report {
namespace {

constexpr std::string_view kExamples =
    "Examples:\n"
    "  tacho sql perf.data 'SELECT comm, count(*) AS samples, sum(value) AS ns FROM samples GROUP BY ALL'\n"
    "  tacho sql perf.data \"SELECT payload->>'lock' AS lock, count(*) FROM events GROUP BY 1 ORDER BY 2 "
    "DESC\"\n"
    "  tacho sql perf.data --json 'SUMMARIZE samples'\n"
    "Tables: captures, samples, stacks, frames, events, losses (docs/fleet.md).\n\n";

struct Options {
  ReadingOptions reading;
  std::string library, query;
  ResultForm form = ResultForm::Text;
};

Result<> take_words(Options& options, std::vector<std::string> words) {
  if (words.size() > 2) return use_error("one capture and one query in quotes: tacho sql FILE 'SELECT ...'");
  options.query = std::move(words.back());
  if (words.size() == 2) options.reading.session.input = std::move(words.front());
  return Done{};
}

cli::CommandLine describe(Options& options) {
  auto line = command_line("sql",
                           "Puts the tables of a capture into DuckDB, in memory, and prints the result of a "
                           "query: samples with their "
                           "weights, the payloads of events as JSON, stacks as lists of frames, and frames "
                           "with their names. DuckDB is "
                           "loaded as a shared library, which tacho does not bring.");
  line.synopsis = "[OPTIONS] [FILE] 'QUERY'";
  line.epilog = std::string(kExamples) + line.epilog;
  line.words = [&options](std::vector<std::string> words) { return take_words(options, std::move(words)); };
  auto& rows = line.options;
  add_reading_options(rows, options.reading);
  rows.push_back(duckdb_option(options.library));
  rows.push_back(
      sets("--csv", "comma-separated values, a first line of names", options.form, ResultForm::Csv));
  rows.push_back(sets("--json", "one JSON object a row", options.form, ResultForm::Json));
  rows.push_back(sets("--lines",
                      "also source files and lines of frames (column source_file), which takes longer",
                      options.reading.session.symbols.source_lines, symbolize::SourceLines::Yes));
  rows.push_back(wide_option("-w,--wide", options.reading));
  return line;
}

Result<> fill_tables(DuckDb& database, const TableFiles& files) {
  const SqlParts parts = sql_quoted(files.paths());
  for (const std::string_view section : {"schema", "fill"}) {
    const auto sql = sql_section(kDuckDbSql, section, parts);
    if (!sql) return sql.error();
    if (auto done = database.run_sql(*sql); !done) return done;
  }
  return Done{};
}

Result<> print_result(DuckDb& database, const Options& options) {
  const ReadingOptions& reading = options.reading;
  auto file = reading.is_standard_output()
                  ? standard_output(reading.paging)
                  : OutputFile::create(reading.output, mode_of_output(std::span(&reading.session.input, 1)));
  if (!file) return std::move(file.error());
  TextOutput out(std::move(*file));
  ResultText text(out, options.form, reading.room());
  if (auto done = database.run_sql(options.query, {}, text.reader()); !done) return done;
  text.finish();
  return out.finish();
}

Result<cli::ExitStatus> answer_query(const Options& options) {
  const std::string& input = options.reading.session.input;
  if (options.query.empty()) return use_error("no query: tacho sql FILE 'SELECT ...'");
  if (input == "-") return use_error("a pipe has no tables: put the capture into a file");
  if (auto there = DuckDb::check(options.library); !there) return std::move(there.error());
  const auto id = id_of_capture(input);
  if (!id) return id.error();
  const auto folder = ScratchFolder::create();
  if (!folder) return folder.error();
  const TableFiles files{.folder = folder->path(),
                         .capture_id = id->hex(),
                         .packing = TablePacking::Plain,
                         .naming = TableNaming::Scratch};
  const auto status = make_tables(options.reading, {}, *id, files);
  if (!status) return status;
  auto database = DuckDb::open(options.library, "", DuckDb::Access::Write);
  if (!database) return std::move(database.error());
  if (auto filled = fill_tables(*database, files); !filled) return std::move(filled.error());
  if (auto printed = print_result(*database, options); !printed) return std::move(printed.error());
  return status;
}

}  // namespace

Result<cli::ExitStatus> run_sql(const std::vector<std::string>& arguments) {
  Options options;
  return run_command(describe(options), arguments, [&options] { return answer_query(options); });
}

}  // namespace tacho::report
