// tacho annotate: its options, which functions they choose, and its text. The view on the terminal is of
// report/views/tui.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/command.h"
#include "report/profile/annotated_code.h"
#include "report/profile/event_blocks.h"
#include "report/views/annotate/code_text.h"

namespace tacho::report {

enum class CodeForm : std::uint8_t { Text, Perf, Json };
enum class CodeFace : std::uint8_t { Best, Text, Screen };  // Best: by standard output; --stdio2; --tui

struct AnnotateOptions {
  ReadingOptions reading;
  std::string symbol;       // empty: all functions with samples
  std::string bpf_program;  // --bpf: only functions of this program; empty: all
  CodeForm form = CodeForm::Text;
  CodeFace face = CodeFace::Best;
  CodeOptions code;
  AsmSyntax syntax = AsmSyntax::Att;
  Grouping grouping = Grouping::AsRecorded;
  double percent_limit = 0;  // a share of all samples
  Colour colour = Colour::Auto;
  bool is_quiet = false;
  // The first option that affects text output only; empty: none was given.
  std::string_view text_option() const;
};

cli::CommandLine describe_annotate(AnnotateOptions& options);
// Completes the options about names and code, for text and terminal alike.
void prepare_annotate(AnnotateOptions& options);
Result<cli::ExitStatus> print_annotate(const AnnotateOptions& options);

// Keeps the functions that the options name; an error when no function is left.
Result<> choose_functions(const Session& session, const AnnotateOptions& options,
                          std::vector<HitFunction>& functions);

// Functions that are shown in part or not at all, for lines after the text.
class MissingCode {
 public:
  void add_function(const HitFunction& function, const AnnotatedCode& code);
  bool empty() const { return by_module_.empty() && cut_.empty(); }
  std::vector<std::string> lines(const std::string& input) const;

 private:
  std::map<std::pair<std::string, std::string>, std::size_t> by_module_;
  std::vector<std::string> cut_;
};

}  // namespace tacho::report
