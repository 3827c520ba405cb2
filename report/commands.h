// The commands of tacho-report: their table, and the entry point of each.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "report/command.h"

namespace tacho::report {

std::span<const Command> commands();

// Defined in views/NAME/command_NAME.cc; `arguments` are the words after the command's name.
// Rows, annotated code and a comparison are in views/tui: interactive on a terminal, otherwise text.
Result<cli::ExitStatus> run_report(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> run_tui(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> run_verdict(const std::vector<std::string>& arguments);  // diff with --to; views/diff
Result<cli::ExitStatus> run_annotate(const std::vector<std::string>& arguments);
// Run by tacho-record, which writes the running recording to standard input.
Result<cli::ExitStatus> run_top(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> run_why(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> run_summary(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> run_script(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> run_hist(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> run_table(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> run_sql(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> run_fleet(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> run_bpf(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> run_stacks(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> run_calls(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> run_flamegraph(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> run_heatmap(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> run_page(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> run_check(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> run_diff(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> run_folded(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> run_export(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> run_import(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> run_header(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> run_evlist(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> run_dump(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> run_convert(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> run_redact(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> run_pack(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> run_doctor(const std::vector<std::string>& arguments);
// Arguments FILE OFFSET SYMBOL NAME...: the function at OFFSET of FILE, whose ELF symbol is SYMBOL. Prints
// for each NAME
//   value REGISTER SHIFT BYTES unsigned|signed|pointer|text register|memory|address DISPLACEMENT POINTER...
// (symbolize/elf/function_parameters.h), or one line: "error" and why.
Result<cli::ExitStatus> run_parameters(const std::vector<std::string>& arguments);
// Arguments FILE OFFSET...: the functions at these offsets of FILE. Prints the lines of
// report/decode/prototype_text.h, without functions that have no debug information; or one line, "error" with
// the reason, or "too-long" when the output would exceed 1 MB.
Result<cli::ExitStatus> run_prototypes(const std::vector<std::string>& arguments);

}  // namespace tacho::report
