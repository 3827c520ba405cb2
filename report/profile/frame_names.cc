#include "report/profile/frame_names.h"

#include <fmt/format.h>

#include <algorithm>

namespace tacho::report {

namespace {

constexpr std::string_view kUnknown = "[unknown]";
constexpr std::string_view kDeleted = " (deleted)";  // which the kernel appends to the path

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_of_kernel(const symbolize::Module* module) {
  using symbolize::ModuleKind;
  if (module == nullptr) return false;
  return module->kind == ModuleKind::Kernel || module->kind == ModuleKind::KernelModule ||
         module->kind == ModuleKind::GuestKernel || module->kind == ModuleKind::Bpf;
}

// "[libc.so.6]" for code without a name.
std::string module_as_name(const symbolize::Frame& frame, const FrameMarks& marks) {
  std::string_view name = frame.module == nullptr ? kUnknown : last_part(frame.module->path);
  if (name.ends_with(kDeleted)) name.remove_suffix(kDeleted.size());
  if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);
  return marks.addresses ? fmt::format("[{} <{:x}>]", name, frame.shown_address) : fmt::format("[{}]", name);
}

}  // namespace

bool is_jit_map(std::string_view module) {
  constexpr std::string_view kStart = "/tmp/perf-";
  for (auto at = module.find(kStart); at != std::string_view::npos; at = module.find(kStart, at + 1)) {
    std::string_view rest = module.substr(at + kStart.size());
    const auto digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    if (digits > 0 && rest.substr(digits).starts_with(".map")) return true;
  }
  return false;
}

std::string name_of_frame(const symbolize::Frame& frame, const FrameMarks& marks) {
  std::string name = frame.function.empty() ? module_as_name(frame, marks) : std::string(frame.function);
  if (marks.kernel && is_of_kernel(frame.module)) {
    name += kKernelMark;
  } else if (marks.jit && frame.module != nullptr && is_jit_map(frame.module->path)) {
    name += kJitMark;
  }
  return name;
}

FrameKind kind_of_code(const symbolize::Frame& frame) {
  using symbolize::ModuleKind;
  if (frame.is_inlined) return FrameKind::Inlined;
  if (frame.function.empty() || frame.is_unnamed || frame.module == nullptr) return FrameKind::Unnamed;
  switch (frame.module->kind) {
    case ModuleKind::Kernel:
    case ModuleKind::KernelModule:
    case ModuleKind::GuestKernel:
      return FrameKind::Kernel;
    case ModuleKind::Bpf:
      return FrameKind::Bpf;
    case ModuleKind::Anonymous:
      return FrameKind::Jit;
    case ModuleKind::User:
    case ModuleKind::Vdso:
      break;
  }
  const bool is_jit =
      frame.module->path.starts_with("/tmp/perf-") || frame.module->short_name.starts_with("jitted-");
  return is_jit ? FrameKind::Jit : FrameKind::User;
}

void FrameNames::append(std::span<const LocationId> frames, Order order, std::vector<std::uint32_t>& names) {
  const auto begin = static_cast<std::ptrdiff_t>(names.size());
  // Leaf first, as perf: the names of some inlined functions depend on earlier look-ups.
  for (const LocationId location : frames) {
    if (of_ == Of::Locations) {
      append_list(of_location(location), names);
      continue;
    }
    FrameAddress address{location, 0};
    for (const FunctionId function : functions_.of_frame(location)) {
      append_list(of_function(function, address), names);
      ++address.inlined;
    }
  }
  if (order == Order::RootFirst) std::reverse(names.begin() + begin, names.end());
}

void FrameNames::append_list(const NameList& list, std::vector<std::uint32_t>& names) const {
  if (list.count == 1) return names.push_back(list.first);
  const auto all = std::span(several_).subspan(list.first, list.count);
  names.insert(names.end(), all.begin(), all.end());
}

FrameNames::NameList FrameNames::of_location(LocationId location) {
  if (const NameList known = by_location_.find(location); known.count != NameList::kNotMade) return known;
  made_.clear();
  FrameAddress address{location, 0};
  for (const symbolize::Frame& frame : resolver_->frames(resolver_->location(location))) {
    make_(frame, address, made_);
    ++address.inlined;
  }
  return by_location_[location] = kept(made_);
}

FrameNames::NameList FrameNames::of_function(FunctionId function, const FrameAddress& address) {
  if (const NameList known = by_function_.find(function); known.count != NameList::kNotMade) return known;
  // The offset in the function is not shown.
  const Function& known_function = functions_[function];
  symbolize::Frame frame;
  frame.module = known_function.module;
  frame.function = known_function.name();
  if (known_function.name_id != kNo<NameId>)
    frame.linker_name = functions_.names().linker_name(known_function.name_id);
  frame.function_start = frame.shown_address = known_function.start;
  frame.is_inlined = known_function.is_inlined;
  frame.is_unnamed = known_function.is_unnamed;
  made_.clear();
  make_(frame, address, made_);
  return by_function_[function] = kept(made_);
}

FrameNames::NameList FrameNames::kept(std::span<const std::uint32_t> names) {
  if (names.size() == 1) return {1, names.front()};
  const auto first = static_cast<std::uint32_t>(several_.size());
  several_.insert(several_.end(), names.begin(), names.end());
  return {static_cast<std::uint32_t>(names.size()), first};
}

}  // namespace tacho::report
