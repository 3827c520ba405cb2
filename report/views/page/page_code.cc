#include "report/views/page/page_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "cli/message_text.h"
#include "report/output/text_output.h"
#include "report/views/page/page_samples.h"

namespace tacho::report {

namespace {

constexpr std::size_t kMnemonic = 6;    // letters
constexpr std::size_t kMostLine = 400;  // bytes of a line of source
constexpr std::size_t kMostDisassembled =
    InstructionBudget::kMost;  // also of functions that are left out then
constexpr std::uint32_t kUnknown = ~std::uint32_t{0};
constexpr std::uint32_t kBefore = 3, kGap = 8;  // lines of source; code.js has the same

std::string source_text(std::string_view line) {
  const bool is_cut = line.size() > kMostLine;
  std::string text = printable(without_tabs(line.substr(0, kMostLine)));
  return is_cut ? text + "…" : text;
}

}  // namespace

PageCode::PageCode(Session& session, const PageNames& names, PageParts& parts)
    : session_(session),
      names_(names),
      parts_(parts),
      files_(session.resolver()),
      hits_(session.events().size()) {}

void PageCode::add_sample(const ResolvedSample& sample, LocationId location) {
  hits_.add_sample_at(sample, location);
  locations_.add_number(value_of(location));
}

// By their share of an event's weight: those of events with other units are compared, too.
std::vector<std::size_t> PageCode::hottest_first(const std::vector<HitFunction>& functions) const {
  std::vector<double> shares(functions.size());
  for (std::size_t i = 0; i < functions.size(); ++i)
    for (const HitFunction::Hit& total : functions[i].totals) {
      const HitCount& all = hits_.totals()[total.event];
      const bool has_weight = all.period != 0;
      const double share = static_cast<double>(has_weight ? total.count.period : total.count.samples) /
                           static_cast<double>(has_weight ? all.period : all.samples);
      shares[i] = std::max(shares[i], share);
    }
  std::vector<std::size_t> order(functions.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t number) {
    const HitFunction& function = functions[number];
    return std::tuple(-shares[number], function.module->path, std::string_view(function.name),
                      function.start);
  });
  return order;
}

void PageCode::read_code() {
  const std::vector<HitFunction> functions = hits_.functions(session_.resolver());
  CodeAnnotator annotator(session_, AsmSyntax::Att);
  std::size_t disassembled = 0, shown = 0;
  for (const std::size_t number : hottest_first(functions)) {
    const HitFunction& function = functions[number];
    if (shown_.size() == kMostFunctions || disassembled >= kMostDisassembled) {
      ++left_out_;
      continue;
    }
    AnnotatedCode code = annotator.annotate(function, 0, 1);
    disassembled += code.lines.size();
    if (code.lines.size() > kMostInstructions - shown) {
      code.lines.clear();
      code.missing_reason = fmt::format("a page has {} instructions, those of hotter functions",
                                        with_commas(double{kMostInstructions}));
    }
    shown += code.lines.size();
    without_code_ += code.lines.empty() ? 1 : 0;
    add_function(function, code.missing_reason, code);
  }
}

void PageCode::add_function(const HitFunction& function, std::string_view reason, const AnnotatedCode& code) {
  numbers_.try_emplace(FunctionKey(function.module, function.start), shown_.size());
  ShownFunction& shown = shown_.emplace_back();
  shown.frame = number_of_frame(session_.resolver().frame(function.location), parts_, names_);
  shown.reason = parts_.texts.number_of(printable(reason));
  shown.first = static_cast<std::uint32_t>(frames_.size());
  for (const CodeLine& line : code.lines) shown.offsets.push_back(line.offset);
  add_instructions(function, code);
  add_source(function, code);
}

void PageCode::add_instructions(const HitFunction& function, const AnnotatedCode& code) {
  const std::uint32_t own = shown_.back().frame;
  std::uint32_t frame = own;
  std::string_view name = function.name, linker_name = function.linker_name;
  for (const CodeLine& line : code.lines) {
    if (line.function != name || line.function_linker != linker_name) {
      name = line.function;
      linker_name = line.function_linker;
      const bool is_own =
          name.empty() || (name == function.name && linker_name == std::string_view(function.linker_name));
      symbolize::Frame inlined;
      inlined.module = function.module;
      inlined.function = name;
      inlined.linker_name = linker_name;
      inlined.is_inlined = true;
      frame = is_own ? own : number_of_frame(inlined, parts_, names_);
    }
    frames_.push_back(frame);
    sizes_.add_number(line.bytes.size());
    texts_.add_number(parts_.texts.number_of(printable(instruction_text(line, kMnemonic))));
    const bool is_known = !line.file.empty() && line.line != 0;
    of_files_.add_number(is_known ? file_number(line.file) : 0);
    lines_.add_signed(is_known ? line.line : 0);
  }
}

// The lines of its instructions, with a few before and between them.
void PageCode::add_source(const HitFunction& function, const AnnotatedCode& code) {
  std::map<std::string_view, std::set<std::uint32_t>> wanted;  // by file
  for (const CodeLine& line : code.lines) {
    if (line.file.empty() || line.line == 0) continue;
    if (line.source.empty())
      wanted[line.file].insert(line.line);
    else
      add_source_line(file_number(line.file), line.line, line.source);
  }
  for (const auto& [file, lines] : wanted) {
    const symbolize::SourceText& text = files_.text_of(function.module, file, *lines.rbegin());
    if (text.lines() == 0) continue;
    const std::uint32_t number = file_number(file);
    std::uint32_t last = 0;
    for (const std::uint32_t line : lines) {
      const bool is_near = last != 0 && line - last <= kGap;
      std::uint32_t at = is_near ? last + 1 : std::max(line > kBefore ? line - kBefore : 1, last + 1);
      for (; at <= line; ++at) add_source_line(number, at, text.line(at));
      last = line;
    }
  }
}

void PageCode::add_source_line(std::uint32_t file, std::uint32_t line, std::string_view text) {
  if (source_bytes_ + text.size() > kMostSource) return;
  const auto [known, is_new] = source_.try_emplace({file, line}, 0);
  if (!is_new) return;
  const std::string shown = source_text(text);
  source_bytes_ += shown.size();
  known->second = parts_.texts.number_of(shown);
}

std::uint32_t PageCode::file_number(std::string_view path) {
  if (const auto known = file_numbers_.find(path); known != file_numbers_.end()) return known->second;
  const auto number = static_cast<std::uint32_t>(file_numbers_.size() + 1);
  file_numbers_.emplace(path, number);
  file_names_.add_number(parts_.texts.number_of(names_.path(path)));
  return number;
}

void PageCode::move_frames(std::span<const std::uint32_t> frames) {
  const auto move = [&](std::uint32_t& frame) {
    if (frame < frames.size()) frame = frames[frame];
  };
  for (ShownFunction& function : shown_) move(function.frame);
  for (std::uint32_t& frame : frames_) move(frame);
}

std::uint32_t PageCode::instruction_at(LocationId id) {
  const Location& location = session_.resolver().location(id);
  const symbolize::Frame& frame = session_.resolver().frame(location);
  if (frame.module == nullptr || frame.shown_address < frame.function_start) return 0;
  const auto found = numbers_.find(FunctionKey(frame.module, frame.function_start));
  if (found == numbers_.end()) return 0;
  const ShownFunction& function = shown_[found->second];
  const std::uint64_t offset = frame.shown_address - frame.function_start;
  const auto after =
      std::ranges::upper_bound(function.offsets, location.is_caller && offset > 0 ? offset - 1 : offset);
  return after == function.offsets.begin()
             ? 0
             : function.first + static_cast<std::uint32_t>(after - function.offsets.begin());
}

std::vector<PackedColumn> PageCode::columns() {
  PackedColumn frame("code.frame", ColumnForm::Numbers), rows("code.rows", ColumnForm::Numbers),
      reason("code.reason", ColumnForm::Numbers), of_rows("row.frame", ColumnForm::Numbers),
      file("source.file", ColumnForm::Differences), line("source.line", ColumnForm::Differences),
      text("source.text", ColumnForm::Numbers), of_samples("code", ColumnForm::Numbers);
  for (const ShownFunction& function : shown_) {
    frame.add_number(function.frame);
    rows.add_number(function.offsets.size());
    reason.add_number(function.reason);
  }
  for (const std::uint32_t one : frames_) of_rows.add_number(one);
  for (const auto& [place, number] : source_) {
    file.add_signed(place.first);
    line.add_signed(place.second);
    text.add_number(number);
  }
  IdMap<LocationId, std::uint32_t> known(kUnknown);
  locations_.each([&](std::uint64_t number) {
    const auto location = id_of<LocationId>(number);
    std::uint32_t instruction = known.find(location);
    if (instruction == kUnknown) known[location] = instruction = instruction_at(location);
    of_samples.add_number(instruction);
  });
  std::vector<PackedColumn> columns;
  for (PackedColumn* column : {&frame, &rows, &reason, &sizes_, &texts_, &of_rows, &of_files_, &lines_,
                               &file_names_, &file, &line, &text, &of_samples})
    columns.push_back(std::move(*column));
  return columns;
}

std::string PageCode::missing_text() const {
  std::string text;
  if (without_code_ > 0)
    text = fmt::format("the code of {} with samples is not here", cli::counted(without_code_, "function"));
  if (left_out_ > 0)
    text += fmt::format("{}{} with fewer samples are left out", text.empty() ? "" : "; ",
                        cli::counted(left_out_, "function"));
  return text;
}

}  // namespace tacho::report
