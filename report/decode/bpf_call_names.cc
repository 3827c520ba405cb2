#include "report/decode/bpf_call_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "format/base/file.h"
#include "report/decode/bpf_functions.h"
#include "report/decode/bpf_instructions.h"

namespace tacho::report {
namespace {

constexpr std::string_view kBase = "__bpf_call_base";

const format::Attachment* list_of(const format::Features& features) {
  const format::Attachment* const all = features.attachment(format::kKallsymsAttachment);
  return all != nullptr ? all : features.attachment(kBpfCallsAttachment);
}

}  // namespace

BpfCallNames::BpfCallNames(const format::Features& features) {
  const format::Attachment* const list = list_of(features);
  auto unpacked = list != nullptr ? format::unpack_attachment(*list) : Error{};
  if (!unpacked) return;
  text_ = std::move(*unpacked);
  // "ffffffff81000000 T name", and of a module "\t[name]".
  std::string_view rest = format::as_text(text_);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    std::uint64_t address = 0;
    const auto [stop, failed] = std::from_chars(line.data(), line.data() + line.size(), address, 16);
    const auto after = static_cast<std::size_t>(stop - line.data());
    if (failed != std::errc{} || address == 0 || after + 3 >= line.size()) continue;
    const std::string_view name = line.substr(after + 3, line.find('\t', after + 3) - (after + 3));
    if (name == kBase) base_ = address;
    names_.emplace_back(address, name);
  }
  std::ranges::stable_sort(names_, {}, &std::pair<std::uint64_t, std::string_view>::first);
}

std::string_view BpfCallNames::at(std::uint64_t address) const {
  const auto found =
      std::ranges::lower_bound(names_, address, {}, &std::pair<std::uint64_t, std::string_view>::first);
  return found != names_.end() && found->first == address ? found->second : std::string_view();
}

std::string_view BpfCallNames::called(std::int32_t distance) const {
  return base_ == 0 ? std::string_view() : at(base_ + static_cast<std::uint64_t>(std::int64_t{distance}));
}

std::string BpfCallNames::lines_of_calls(const format::Environment& environment) const {
  std::set<std::uint64_t> addresses;
  BpfFunctions functions(environment);
  for (const format::BpfProgramInfo& info : environment.bpf_programs)
    for (const BpfCodeLine& line : disassemble_bpf(functions.program(info).translated, {}))
      if (line.instruction.is_call() && !called(line.instruction.immediate).empty())
        addresses.insert(base_ + static_cast<std::uint64_t>(std::int64_t{line.instruction.immediate}));
  if (addresses.empty()) return {};
  std::string lines = fmt::format("{:016x} T {}\n", base_, kBase);
  for (const std::uint64_t address : addresses)
    if (address != base_) lines += fmt::format("{:016x} T {}\n", address, at(address));
  return lines;
}

}  // namespace tacho::report
