#include "report/profile/frame_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "report/output/text_output.h"
#include "symbolize/jit/jitdump.h"

namespace tacho::report {
namespace {

std::string line_text(std::string_view file, std::uint32_t line) {
  if (file.empty() || file == "??" || line == 0) return {};
  return printable(fmt::format("{}:{}", file.substr(file.rfind('/') + 1), line));
}

std::string dwarf_line(const symbolize::PlaceFacts& facts, std::uint64_t into_function) {
  auto spot = facts.lines->spot_of({facts.elf_address - into_function});
  if (!spot) spot = facts.lines->spot_of({facts.elf_address});
  return spot ? line_text(spot->file, spot->line) : std::string();
}

std::string jit_line(const symbolize::JitCode::Function& function, std::uint64_t into_function) {
  const symbolize::JitLine* line = symbolize::line_at(function.lines, 0);
  if (line == nullptr) line = symbolize::line_at(function.lines, into_function);
  return line == nullptr ? std::string() : line_text(line->file, line->line);
}

std::string packed_line(symbolize::PackedSource& packed, const symbolize::PlaceFacts& facts) {
  const format::PackedAddress* known = packed.at(facts.symbol->start);
  if (known == nullptr || known->line == 0) known = packed.at(facts.shown_address);
  return known == nullptr ? std::string() : line_text(packed.text(known->file), known->line);
}

}  // namespace

std::string source_line(Resolver& resolver, const FramePlace& place) {
  if (place.location == FramePlace::kNone) return {};
  const Location& location = resolver.location(place.location);
  const auto frames = resolver.frames(location);
  if (place.inlined < frames.size() && frames[place.inlined].is_inlined)
    return line_text(frames[place.inlined].file, frames[place.inlined].line);
  const auto facts = location.is_caller ? resolver.facts_of_call(location) : resolver.facts(location);
  if (!facts.symbol || facts.source == nullptr) return {};
  const std::uint64_t into_function = facts.shown_address - facts.symbol->start;
  if (facts.lines != nullptr) return dwarf_line(facts, into_function);
  if (facts.source->jit != nullptr) return jit_line(*facts.source->jit, into_function);
  return facts.source->packed == nullptr ? std::string() : packed_line(*facts.source->packed, facts);
}

namespace {

constexpr std::string_view kUnknown = "[unknown]";
constexpr std::string_view kDeleted = " (deleted)";  // the kernel's mark behind a path
constexpr std::string_view kInlinedByJit = "->";

// Go's methods look like "net/http.(*Client).Do".
bool looks_like_go(std::string_view name) {
  const auto open = name.find(".(");
  return open != std::string_view::npos && name.find(").", open + 2) != std::string_view::npos;
}

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_of_kernel(const symbolize::Module* module) {
  using symbolize::ModuleKind;
  if (module == nullptr) return false;
  return module->kind == ModuleKind::Kernel || module->kind == ModuleKind::KernelModule ||
         module->kind == ModuleKind::GuestKernel || module->kind == ModuleKind::Bpf;
}

// "[libc.so.6]" of code without a name.
std::string module_as_name(const symbolize::Frame& frame, const FrameMarks& marks) {
  std::string_view name = frame.module == nullptr ? kUnknown : last_part(frame.module->path);
  if (name.ends_with(kDeleted)) name.remove_suffix(kDeleted.size());
  if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);
  return marks.addresses ? fmt::format("[{} <{:x}>]", name, frame.shown_address) : fmt::format("[{}]", name);
}

}  // namespace

std::string tidied_name(std::string name, bool is_java) {
  std::ranges::replace(name, ';', ':');
  if (!looks_like_go(name)) {
    constexpr std::string_view kKept = "(anonymous namespace)";
    for (auto at = name.find('('); at != std::string::npos; at = name.find('(', at + 1)) {
      if (name.compare(at, kKept.size(), kKept) == 0) continue;
      name.resize(at);
      break;
    }
  }
  std::erase_if(name, [](char c) { return c == '"' || c == '\''; });
  if (is_java && name.starts_with('L') && name.find('/') != std::string::npos) name.erase(0, 1);
  return name;
}

bool is_jit_map(std::string_view module) {
  constexpr std::string_view kStart = "/tmp/perf-";
  for (auto at = module.find(kStart); at != std::string_view::npos; at = module.find(kStart, at + 1)) {
    std::string_view rest = module.substr(at + kStart.size());
    const auto digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    if (digits > 0 && rest.substr(digits).starts_with(".map")) return true;
  }
  return false;
}

std::vector<std::string> names_of_frame(const symbolize::Frame& frame, const FrameMarks& marks,
                                        bool is_java) {
  const bool is_jit = frame.module != nullptr && is_jit_map(frame.module->path);
  std::vector<std::string> names;
  if (frame.function.empty()) {
    names.push_back(module_as_name(frame, marks));
  } else if (!is_jit) {
    names.emplace_back(frame.function);
  }
  for (std::string_view rest = is_jit ? frame.function : std::string_view(); !rest.empty();) {
    const auto arrow = rest.find(kInlinedByJit);
    if (arrow != 0) names.push_back(tidied_name(std::string(rest.substr(0, arrow)), is_java));
    rest = arrow == std::string_view::npos ? std::string_view() : rest.substr(arrow + kInlinedByJit.size());
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) {
      names[i] += kInlinedMark;
    } else if (marks.kernel && is_of_kernel(frame.module)) {
      names[i] += kKernelMark;
    } else if (marks.jit && is_jit) {
      names[i] += kJitMark;
    }
  }
  return names;
}

CodeKind code_kind(const symbolize::Frame& frame) {
  using symbolize::ModuleKind;
  if (frame.is_inlined) return CodeKind::Inlined;
  if (frame.function.empty() || frame.is_unnamed || frame.module == nullptr) return CodeKind::Unnamed;
  switch (frame.module->kind) {
    case ModuleKind::Kernel:
    case ModuleKind::KernelModule:
    case ModuleKind::GuestKernel:
      return CodeKind::Kernel;
    case ModuleKind::Bpf:
      return CodeKind::Bpf;
    case ModuleKind::Anonymous:
      return CodeKind::Jit;
    case ModuleKind::User:
    case ModuleKind::Vdso:
      break;
  }
  const bool is_jit =
      frame.module->path.starts_with("/tmp/perf-") || frame.module->short_name.starts_with("jitted-");
  return is_jit ? CodeKind::Jit : CodeKind::User;
}

void FrameNames::append(std::span<const std::uint32_t> frames, Order order, bool is_java,
                        std::vector<std::uint32_t>& names) {
  const auto begin = static_cast<std::ptrdiff_t>(names.size());
  // Leaf first, as perf asks: what some inlined functions are called depends on who was asked for before.
  for (const std::uint32_t location : frames) {
    if (of_ == Of::Places) {
      add(of_place(location, is_java), names);
      continue;
    }
    FramePlace place{location, 0};
    for (const std::uint32_t function : functions_.of_frame(location)) {
      add(of_function(function, place, is_java), names);
      ++place.inlined;
    }
  }
  if (order == Order::RootFirst) std::reverse(names.begin() + begin, names.end());
}

void FrameNames::add(const NameList& list, std::vector<std::uint32_t>& names) const {
  if (list.count == 1) return names.push_back(list.first);
  const auto all = std::span(several_).subspan(list.first, list.count);
  names.insert(names.end(), all.begin(), all.end());
}

FrameNames::NameList FrameNames::of_place(std::uint32_t location, bool is_java) {
  if (const NameList known = by_place_[is_java].find(location); known.count != NameList::kNotMade)
    return known;
  made_.clear();
  FramePlace place{location, 0};
  for (const symbolize::Frame& frame : resolver_->frames(resolver_->location(location))) {
    make_(frame, place, is_java, made_);
    ++place.inlined;
  }
  return by_place_[is_java][location] = kept(made_);
}

FrameNames::NameList FrameNames::of_function(std::uint32_t function, const FramePlace& place, bool is_java) {
  if (const NameList known = by_function_[is_java].find(function); known.count != NameList::kNotMade)
    return known;
  // What is behind the function's start is not shown.
  const Function& asked = functions_[function];
  symbolize::Frame frame;
  frame.module = asked.module;
  frame.function = asked.name();
  frame.function_start = frame.shown_address = asked.start;
  frame.is_inlined = asked.is_inlined;
  frame.is_unnamed = asked.is_unnamed;
  made_.clear();
  make_(frame, place, is_java, made_);
  return by_function_[is_java][function] = kept(made_);
}

FrameNames::NameList FrameNames::kept(std::span<const std::uint32_t> names) {
  if (names.size() == 1) return {1, names.front()};
  const auto first = static_cast<std::uint32_t>(several_.size());
  several_.insert(several_.end(), names.begin(), names.end());
  return {static_cast<std::uint32_t>(names.size()), first};
}

}  // namespace tacho::report
