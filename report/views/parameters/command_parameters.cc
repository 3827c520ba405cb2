// tacho-report parameters (internal): the locations of a function's arguments at its entry, from DWARF.
// tacho-record, which has no DWARF reader, runs it and parses the lines.
#include <fmt/format.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string_view>

#include "report/commands.h"
#include "report/output/text_output.h"
#include "sandbox/process.h"
#include "symbolize/elf/module_files.h"

namespace tacho::report {
namespace {

using symbolize::ParameterValue;

constexpr std::size_t kMostBytes = std::size_t{1} << 20;  // of lines
constexpr std::chrono::seconds kLongest{30};

struct Question {
  std::string path, symbol;
  std::uint64_t offset = 0;
  std::vector<std::string> wanted;
};

std::string line_of(const ParameterValue& value) {
  using Kind = ParameterValue::Kind;
  using From = ParameterValue::From;
  const std::string_view kind = value.kind == Kind::Signed    ? "signed"
                                : value.kind == Kind::Pointer ? "pointer"
                                : value.kind == Kind::Text    ? "text"
                                                              : "unsigned";
  const std::string_view from = value.from == From::Register ? "register"
                                : value.from == From::Memory ? "memory"
                                                             : "address";
  std::string line = fmt::format("value {} {} {} {} {} {}", value.register_name, value.shift, value.size,
                                 kind, from, value.displacement);
  for (const std::int64_t pointer : value.pointers) line += fmt::format(" {}", pointer);
  return line + '\n';
}

Result<std::string> answer(const Question& question) {
  const symbolize::ModuleFiles files(symbolize::DebugFiles(""), nullptr, nullptr);
  symbolize::Module module;
  module.path = module.short_name = question.path;
  auto found = files.parameters(module);
  if (!found) return std::move(found.error());
  if (!*found)
    return Error{"it has no debugging information (compile with -g, or install its debug symbols)"};
  const auto entry = (*found)->loads.address_of(format::FileOffset{question.offset});
  if (!entry) return Error{"nothing is loaded from there"};
  const auto values = (*found)->functions.find_values(*entry, question.symbol, question.wanted);
  if (!values) return values.error();
  std::string lines;
  for (const ParameterValue& value : *values) lines += line_of(value);
  return lines;
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string error_line(std::string_view what) { return "error " + printable(what) + '\n'; }

// In the sandboxed child.
std::vector<std::byte> answer_here(const Question& question, const sandbox::Child& child) {
  if (!child.deaths.empty())
    return bytes_of(
        error_line("the process that read its debugging information died: " + child.deaths[0].how));
  child.names.set_current(question.path);
  const auto lines = answer(question);
  return bytes_of(lines ? *lines : error_line(lines.error().what));
}

}  // namespace

Result<cli::ExitStatus> run_parameters(const std::vector<std::string>& arguments) {
  if (arguments.size() < 4) return use_error("parameters: FILE OFFSET SYMBOL NAME...");
  Question question{arguments[0], arguments[2], 0, {arguments.begin() + 3, arguments.end()}};
  const std::string& number = arguments[1];
  const auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), question.offset);
  if (code != std::errc{} || end != number.data() + number.size())
    return use_error("parameters: the offset is no number: " + printable(number));
  const auto done = sandbox::run_job(
      [&question](const sandbox::Child& child) { return answer_here(question, child); },
      sandbox::Policy::ReadFiles, {.most_bytes = kMostBytes, .times = {.at_one = kLongest, .at_all = {}}});
  if (!done) return done.error();
  std::fwrite(done->bytes.data(), 1, done->bytes.size(), stdout);
  return std::fflush(stdout) == 0 ? cli::kWhole : cli::kNoOutput;
}

}  // namespace tacho::report
