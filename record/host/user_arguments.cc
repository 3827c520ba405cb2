#include "record/host/user_arguments.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include "record/host/report_program.h"

namespace tacho::record {
namespace {

using bpf::ProbeArgument;
using Source = ProbeArgument::Source;
using Shape = ProbeArgument::Shape;

constexpr std::size_t kMostPointers = 8;

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

template <class Number>
bool read_number(std::string_view text, Number& value) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc{} && end == text.data() + text.size();
}

// "value rdi 0 8 pointer memory 16 24": what is read comes from a process that read a file of others.
std::optional<ProbeArgument> argument_of(std::string_view line) {
  constexpr std::size_t kFixed = 7;  // words
  const auto words = words_of(line);
  if (words.size() < kFixed || words.size() > kFixed + kMostPointers || words[0] != "value")
    return std::nullopt;
  ProbeArgument out;
  const auto place = bpf::register_place(words[1]);
  if (!place || place->size != 8) return std::nullopt;
  out.place = place->place;
  if (!read_number(words[2], out.shift) || out.shift >= 64) return std::nullopt;
  if (!read_number(words[3], out.size)) return std::nullopt;
  if (out.size != 1 && out.size != 2 && out.size != 4 && out.size != 8) return std::nullopt;
  const std::string_view kind = words[4], from = words[5];
  out.is_signed = kind == "signed";
  if (kind == "pointer") out.shape = Shape::Hex;
  if (kind == "text") out.shape = Shape::UserText;
  if (from == "memory") out.source = Source::Memory;
  if (from == "address") out.source = Source::Address;
  if (!read_number(words[6], out.displacement)) return std::nullopt;
  for (std::size_t i = kFixed; i < words.size(); ++i) {
    std::int32_t pointer = 0;
    if (!read_number(words[i], pointer)) return std::nullopt;
    out.pointers.push_back(pointer);
  }
  return out;
}

}  // namespace

Result<std::vector<NamedArgument>> parse_user_arguments(std::string_view lines,
                                                        std::span<const std::string> names) {
  constexpr std::string_view kError = "error ";
  std::vector<NamedArgument> out;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    if (line.starts_with(kError)) return use_error(std::string(line.substr(kError.size())));
    auto argument = argument_of(line);
    if (!argument || out.size() == names.size())
      return Error{"tacho-report says what this program does not know"};
    out.push_back({names[out.size()], std::move(*argument)});
  }
  if (out.size() != names.size()) return Error{"tacho-report says nothing of some arguments"};
  return out;
}

Result<std::vector<NamedArgument>> user_arguments(const UserFunction& function,
                                                  std::span<const ArgumentRequest> requests,
                                                  const std::function<bool()>& stop) {
  std::vector<std::string> names;
  for (const ArgumentRequest& one : requests)
    if (needs_debug_information(one) && std::ranges::find(names, one.source) == names.end())
      names.push_back(one.source);
  if (names.empty()) return std::vector<NamedArgument>();
  const auto program = report_program();
  if (!program)
    return Error{"names are read by tacho-report, which is not installed beside tacho-record", ENOENT};
  ReportRun run{.arguments = {"parameters", function.path, std::to_string(function.offset), function.symbol},
                .stop = stop};
  run.arguments.insert(run.arguments.end(), names.begin(), names.end());
  const auto lines = ask_report_program(*program, run);
  if (!lines) return lines.error();
  return parse_user_arguments(*lines, names);
}

}  // namespace tacho::record
