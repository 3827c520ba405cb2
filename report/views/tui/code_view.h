// Annotated code on the screen: the same data as `tacho annotate`, with a cursor, jumps to follow and a
// search.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/profile/annotated_code.h"
#include "report/samples/source_files.h"
#include "report/views/annotate/code_text.h"
#include "report/views/tui/frame.h"
#include "report/views/tui/pages.h"

namespace tacho::report {

// The functions with samples, and their code.
class CodeSource {
 public:
  // Both must outlive it.
  CodeSource(Session& session, const CodeHits& hits, AsmSyntax syntax = AsmSyntax::Att);
  std::vector<HitFunction>& functions() { return functions_; }
  // The function at an address of a module; null: it has no samples.
  const HitFunction* find_function(const symbolize::Module* module, std::uint64_t address) const;
  // The function of this name in a module (null: in any of them, for PLT entries); null: it has no samples.
  const HitFunction* find_function(const symbolize::Module* module, std::string_view name) const;
  AnnotatedCode annotate(const HitFunction& function, std::uint32_t event, std::uint32_t members) {
    return annotator_.annotate(function, event, members);
  }
  // The functions with samples of an event, hottest first.
  std::vector<const HitFunction*> hottest_of(std::uint32_t event) const;
  HitCount total(std::uint32_t event) const;
  SourceFiles& files() { return files_; }
  // Why source files are not shown, or may be other texts.
  const std::vector<std::string>& source_notes() const { return session_->resolver().source_notes(); }
  const Session& session() const { return *session_; }

 private:
  Session* session_;
  const CodeHits* hits_;
  std::vector<HitFunction> functions_;
  SourceFiles files_;
  CodeAnnotator annotator_;
};

class CodeView {
 public:
  // `source` must outlive it.
  CodeView(CodeSource& source, std::uint32_t event, std::uint32_t members, const CodeOptions& options = {});
  // Shows a function. Returns why it cannot be shown; empty: it is.
  std::string show(const HitFunction& function);

  // Save: write text() to a file. Views: open the menu of other views.
  enum class Flow : std::uint8_t { Stay, Leave, Help, Save, Views };
  Flow on_key(const KeyPress& press);
  void draw(Frame& frame);
  const HitFunction& function() const { return *function_; }
  // The text of tacho annotate.
  std::string text();

 private:
  // Instructions whose address is shown (offset levels of perf annotate).
  enum class Addresses : std::uint8_t { OfTargets, OfTargetsAndCalls, All };
  struct Shown {
    const HitFunction* function = nullptr;
    std::size_t cursor = 0;
  };
  ShownCode shown_code() const;
  void make_rows();
  bool on_option_key(const KeyPress& press);
  double percent(std::uint32_t event, const HitCount& count) const;
  double share_of(std::size_t row) const;  // percent, of the first event
  void go_hottest(int step);
  void follow();
  Flow go_back();
  void next_function(int step);
  void search(bool is_forward, bool begins_here);
  void go_to_line(std::size_t line);
  std::string number(std::uint32_t event, const HitCount& count) const;
  std::string address_column(const CodeRow& row) const;
  std::string branches_of(const CodeLine& line) const;
  std::size_t jumps_to(std::uint64_t offset) const;
  std::string status() const;
  void say(std::string message) { message_ = std::move(message); }

  CodeSource* source_;
  std::uint32_t event_, members_;
  const HitFunction* function_ = nullptr;
  AnnotatedCode code_;
  CodeOptions options_;
  std::vector<CodeRow> rows_;
  std::vector<Shown> before_;  // the functions from which calls were followed
  std::size_t cursor_ = 0, top_ = 0, height_ = 1, left_ = 0, first_ = 1;
  bool has_arrows_ = true, has_jump_counts_ = false, has_numbers_ = true, shows_location_ = false;
  bool has_full_address_ = false, has_addresses_ = true, has_cycle_range_ = false;
  Addresses addresses_ = Addresses::All;
  std::string message_, searched_;
  bool searches_forward_ = true;
  std::optional<Question> question_;
};

}  // namespace tacho::report
