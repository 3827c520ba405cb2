// tacho-report prototypes (internal): types of arguments and return values of functions, from DWARF.
// tacho-record, which has no DWARF reader, runs it and attaches the output to the capture.
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string_view>

#include "report/commands.h"
#include "report/decode/prototype_text.h"
#include "report/output/text_output.h"
#include "sandbox/process.h"
#include "symbolize/elf/module_files.h"

namespace tacho::report {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;  // of lines; tacho-record takes no more
constexpr std::string_view kTooLong = "too-long\n";       // in place of more; fewer functions may fit
constexpr std::chrono::seconds kLongest{30};

struct Question {
  std::string path;
  std::vector<std::uint64_t> offsets;
};

Result<std::string> answer(const Question& question) {
  const symbolize::ModuleFiles files(symbolize::DebugFiles(""), nullptr, nullptr);
  symbolize::Module module;
  module.path = module.short_name = question.path;
  const auto found = files.parameters(module);
  if (!found) return found.error();
  if (!*found) return std::string();
  std::vector<format::ElfAddress> entries;
  std::vector<std::uint64_t> offsets;
  for (const std::uint64_t offset : question.offsets) {
    const auto entry = (*found)->loads.address_of(format::FileOffset{offset});
    if (!entry) continue;
    entries.push_back(*entry);
    offsets.push_back(offset);
  }
  const auto prototypes = (*found)->functions.prototypes(entries);
  PrototypeWriter writer;
  for (std::size_t i = 0; i < offsets.size(); ++i)
    if (prototypes[i] && writer.text().size() <= kMostBytes) writer.add_prototype(offsets[i], *prototypes[i]);
  return writer.text().size() > kMostBytes ? std::string(kTooLong) : writer.text();
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// In the sandboxed child.
std::vector<std::byte> answer_here(const Question& question, const sandbox::Child& child) {
  if (!child.deaths.empty())
    return bytes_of("error\tthe process that read its debugging information died: " + child.deaths[0].how +
                    '\n');
  child.names.set_current(question.path);
  const auto lines = answer(question);
  return bytes_of(lines ? *lines : "error\t" + printable(lines.error().what) + '\n');
}

}  // namespace

Result<cli::ExitStatus> run_prototypes(const std::vector<std::string>& arguments) {
  if (arguments.empty()) return use_error("prototypes: FILE OFFSET...");
  Question question{arguments[0], {}};
  for (const std::string& number : std::span(arguments).subspan(1)) {
    std::uint64_t& offset = question.offsets.emplace_back();
    const auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), offset);
    if (code != std::errc{} || end != number.data() + number.size())
      return use_error("prototypes: the offset is no number: " + printable(number));
  }
  const auto done = sandbox::run_job(
      [&question](const sandbox::Child& child) { return answer_here(question, child); },
      sandbox::Policy::ReadFiles, {.most_bytes = kMostBytes, .times = {.at_one = kLongest, .at_all = {}}});
  if (!done) return done.error();
  if (!done->bytes.empty()) std::fwrite(done->bytes.data(), 1, done->bytes.size(), stdout);
  return std::fflush(stdout) == 0 ? cli::kWhole : cli::kNoOutput;
}

}  // namespace tacho::report
