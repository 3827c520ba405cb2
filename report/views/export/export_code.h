// The code of an export: functions, places and modules that stacks are made of, each once, and distinct
// stacks.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/base/seeded_hash.h"
#include "report/output/text_output.h"
#include "report/profile/frame_names.h"
#include "report/profile/function_names.h"
#include "report/profile/stack_sums.h"
#include "report/samples/session.h"
#include "report/samples/tables.h"

namespace tacho::report {

// Interned texts that are safe to print. Number 0 is the empty text.
class ExportTexts {
 public:
  ExportTexts() { number_of(""); }
  std::uint32_t number_of(std::string_view text);
  std::string_view operator[](std::uint32_t number) const { return texts_[number]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(texts_.size()); }

 private:
  TextStore store_;
  std::unordered_map<std::string_view, std::uint32_t, format::SeededTextHash> numbers_;
  std::vector<std::string_view> texts_;
};

// A module of code. Its addresses are offsets in its file, which are the same in all processes; those of the
// kernel and of generated code are runtime addresses.
struct ExportModule {
  const symbolize::Module* module = nullptr;
  std::uint64_t start = 0, end = 0;  // of the addresses; end is past the last
  bool is_runtime = false;           // the addresses are runtime addresses
  bool has_names = false;            // some of its functions have a name
};
struct ExportFunction {
  NameId name{};             // for ExportCode::function_name()
  std::uint32_t module = 0;  // index in modules() plus 1; 0: none
  std::uint32_t file = 0;    // of texts(): of the first of its lines; 0: not known
  FrameKind kind = FrameKind::User;
};
// A function at a place: at an address there may be several, of inlined calls.
struct ExportLine {
  std::uint32_t function = 0;
  std::uint32_t file = 0, line = 0;  // file: of texts(); 0: not known
  auto operator<=>(const ExportLine&) const = default;
};
// A code place, a frame of a stack. Without lines: the first address of each function.
struct ExportPlace {
  std::uint32_t module = 0;   // index in modules() plus 1; 0: none
  std::uint64_t address = 0;  // in the module; of a caller: the last byte of the call
};

// What is a place of its own: a function, a source line, or an address with its line.
enum class ExportPlaces : std::uint8_t { Functions, Lines, Addresses };

class ExportCode {
 public:
  // The session must outlive it.
  ExportCode(Session& session, ExportPlaces kind);
  ExportCode(const ExportCode&) = delete;
  ExportCode& operator=(const ExportCode&) = delete;
  ~ExportCode() = default;

  // The number of a stack of the session, or of the location alone if it is null or has no frames.
  std::uint32_t stack_of(const Stack* stack, LocationId location);

  std::size_t stacks() const { return stacks_.size(); }
  // The places of a stack, leaf first.
  std::span<const std::uint32_t> stack(std::uint32_t number) const { return stacks_[number]; }
  const std::vector<ExportPlace>& places() const { return places_; }
  // The lines at a place (indices of lines()), innermost inlined call first; at least one.
  std::span<const std::uint32_t> lines_at(std::uint32_t place) const {
    return place_keys_[place].subspan(kind_ == ExportPlaces::Addresses ? 3 : 1);
  }
  const std::vector<ExportLine>& lines() const { return lines_; }
  const std::vector<ExportFunction>& functions() const { return functions_; }
  const std::vector<ExportModule>& modules() const { return modules_; }
  ExportTexts& texts() { return texts_; }
  const ExportTexts& texts() const { return texts_; }
  bool has_lines() const { return kind_ != ExportPlaces::Functions; }
  // Safe to print, with parameters where another function has the same name.
  std::string function_name(const ExportFunction& function) { return printable(names_.shown(function.name)); }
  // The linker's name, or the name if that is not known.
  std::string linker_name(const ExportFunction& function) const;
  // The path of the function's module, safe to print; empty: it has none.
  std::string module_path(const ExportFunction& function) const;

 private:
  FrameNames frame_names(Session& session);
  std::uint32_t function_of(const symbolize::Frame& frame);
  std::uint32_t line_of(const ExportLine& line);
  std::uint32_t module_of(const symbolize::Module* module);
  std::uint32_t place_of(LocationId location);
  std::uint64_t address_of(const Location& location, std::uint32_t module);

  Session& session_;
  ExportPlaces kind_;
  ExportTexts texts_;
  FunctionNames names_{FunctionNames::Texts::Copied};
  FrameNames frames_;
  IndexTable<> by_function_, by_line_;
  std::vector<ExportFunction> functions_;
  std::vector<ExportLine> lines_;
  std::unordered_map<const symbolize::Module*, std::uint32_t> by_module_;
  std::vector<ExportModule> modules_;
  using Lists = DistinctLists<std::uint32_t, std::uint32_t>;
  Lists place_keys_;  // by place: module, address if places differ by it, and lines
  std::vector<ExportPlace> places_;
  IdMap<LocationId, std::uint32_t> of_locations_{kNo<std::uint32_t>};  // places
  Lists stacks_;
  IdMap<StackId, std::uint32_t> of_stacks_{kNo<std::uint32_t>};
  std::vector<std::uint32_t> scratch_, chain_;
};

}  // namespace tacho::report
