#include "report/tables/made_tables.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <system_error>

#include "format/base/diagnostics.h"

namespace tacho::report {
namespace {

// Whether samples may be missing or wrong because the file is damaged.
const format::Finding* first_damage(const format::Diagnostics& diagnostics) {
  using format::Damage;
  const auto found = std::ranges::find_if(diagnostics.findings(), [](const format::Finding& finding) {
    return finding.kind <= Damage::UnknownEvent || finding.kind == Damage::OrderGivenUp;
  });
  return found == diagnostics.findings().end() ? nullptr : &*found;
}

// `path`: of the capture, for its row.
Result<cli::ExitStatus> write_tables(const SessionOptions& wanted, const TablesRequest& request,
                                     const ContentId& id, const std::string& path, RowFormat form,
                                     OutputFile file) {
  auto session = Session::open(wanted);
  if (!session) return std::move(session.error());
  if (auto known = session->check_events(); !known)
    return std::move(known.error()).in(printable(wanted.input));
  if (session->has_condition())
    if (auto bound = session->bind_condition(); !bound)
      return std::move(bound.error()).in(printable(wanted.input));
  TextOutput out(std::move(file));
  TableStream stream(out, form);
  CaptureTables tables(*session, stream, id, path, request.labels);
  tables.prepare();
  run_with_progress(*session, tables, out);
  tables.unweighed().report(session->diagnostics());
  const format::Finding* const damage = first_damage(session->diagnostics());
  if (request.damaged == DamagedCaptures::Refuse && damage != nullptr)
    return Error{"damaged: " + format::Diagnostics::finding_text(*damage)}.in(printable(wanted.input));
  tables.finish();
  if (auto written = out.finish(); !written) return std::move(written.error());
  if (request.damaged == DamagedCaptures::Tell) session->report_missing_symbols();
  return tell_findings(session->diagnostics(), wanted.input);
}

OutputFile output_to(const std::shared_ptr<TableOutput>& tables) {
  return OutputFile(
      sandbox::Output{.write = [tables](std::string_view bytes) { return tables->write(bytes); },
                      .finish = [tables] { return tables->finish(); },
                      .is_reader_gone = [] { return false; }});
}

}  // namespace

Result<cli::ExitStatus> make_tables(ReadingOptions reading, const TablesRequest& request, const ContentId& id,
                                    const TableFiles& files) {
  const auto kcore = take_kernel_files(reading);
  if (!kcore) return kcore.error();
  auto opened = TableOutput::open(files);
  if (!opened) return std::move(opened.error());
  const auto tables = std::make_shared<TableOutput>(std::move(*opened));
  const SessionOptions& session = reading.session;
  std::error_code unknown;
  const std::filesystem::path absolute = std::filesystem::absolute(session.input, unknown);
  const std::string path = unknown ? session.input : absolute.lexically_normal().string();
  sandbox::Task task;
  task.input = session.input;
  task.skipped = reading.skipped_files;
  task.skip_option = "--skip-file";
  task.is_whole_or_nothing = true;
  task.show_progress = progress_lines();
  if (session.symbols.kcore >= 0) task.kept.push_back(session.symbols.kcore);
  task.kernel_symbols = kernel_symbols_for(session.symbols);
  const bool asks_servers = session.symbols.debuginfod == symbolize::Servers::Asked;
  task.policy = asks_servers ? sandbox::Policy::Servers : sandbox::Policy::Trials;
  task.times = file_times(reading.file_seconds, session.symbols.debuginfod);
  task.open_output = [&tables] { return output_of(output_to(tables)); };
  task.restart = [&tables] { return tables->restart(); };
  task.work = [&](sandbox::Child& child) {
    SessionOptions wanted = session;
    wanted.symbols.access = &child.stacks;
    wanted.symbols.name_access = &child.names;
    wanted.in_step = child.is_serial;
    return write_tables(wanted, request, id, path, files.form, OutputFile(child.open_output()));
  };
  const auto here = [&] { return write_tables(session, request, id, path, files.form, output_to(tables)); };
  return reading.has_worker ? sandbox::run_view_or(task, here) : here();
}

Result<ScratchFolder> ScratchFolder::create() {
  std::error_code failed;
  const std::filesystem::path base = std::filesystem::temp_directory_path(failed);
  if (failed) return output_error("TMPDIR: " + failed.message(), failed.value());
  std::string path = (base / "tacho-tables-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) return output_system_error(path, errno);
  return ScratchFolder(std::move(path));
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace tacho::report
