#include "report/views/export/export_code.h"

#include <algorithm>

namespace tacho::report {

std::uint32_t ExportTexts::number_of(std::string_view given) {
  const std::string text = printable(given);
  if (const auto known = numbers_.find(text); known != numbers_.end()) return known->second;
  const auto number = static_cast<std::uint32_t>(texts_.size());
  texts_.push_back(store_.keep(text));
  numbers_.emplace(texts_.back(), number);
  return number;
}

ExportCode::ExportCode(Session& session, ExportPlaces kind)
    : session_(session), kind_(kind), frames_(frame_names(session)) {}

std::uint32_t ExportCode::stack_of(const Stack* stack, LocationId location) {
  chain_.clear();
  if (stack == nullptr || stack->frames.empty()) {
    chain_.push_back(place_of(location));
    return stacks_.id_of(chain_);
  }
  if (const std::uint32_t known = of_stacks_.find(stack->id); known != kNo<std::uint32_t>) return known;
  for (const LocationId frame : stack->frames) chain_.push_back(place_of(frame));
  return of_stacks_[stack->id] = stacks_.id_of(chain_);
}

FrameNames ExportCode::frame_names(Session& session) {
  const auto of = has_lines() ? FrameNames::Of::Locations : FrameNames::Of::Functions;
  return {session, of,
          [this](const symbolize::Frame& frame, const FrameAddress& /*address*/,
                 std::vector<std::uint32_t>& numbers) {
            const bool has_line =
                has_lines() && frame.line_state == symbolize::LineState::Known && frame.line != 0;
            ExportLine line{.function = function_of(frame)};
            if (has_line) line = {line.function, texts_.number_of(frame.file), frame.line};
            ExportFunction& function = functions_[line.function];
            if (function.file == 0) function.file = line.file;
            numbers.push_back(line_of(line));
          }};
}

std::uint32_t ExportCode::function_of(const symbolize::Frame& frame) {
  const std::string name = name_of_frame(frame, {});
  symbolize::Frame outer = frame;
  outer.is_inlined = false;
  const ExportFunction function{
      .name = names_.id_of(name, name == frame.function ? linker_name_of(frame) : ""),
      .module = module_of(frame.module),
      .kind = kind_of_code(outer)};
  if (function.module != 0 && function.kind != FrameKind::Unnamed)
    modules_[function.module - 1].has_names = true;
  return by_function_.find_or_make(
      by_function_.hash(function.name, function.module, static_cast<int>(function.kind)),
      [&](std::uint32_t known) {
        const ExportFunction& other = functions_[known];
        return other.name == function.name && other.module == function.module && other.kind == function.kind;
      },
      [&] {
        functions_.push_back(function);
        return static_cast<std::uint32_t>(functions_.size() - 1);
      });
}

std::uint32_t ExportCode::line_of(const ExportLine& line) {
  return by_line_.find_or_make(
      by_line_.hash(line.function, line.file, line.line),
      [&](std::uint32_t known) { return lines_[known] == line; },
      [&] {
        lines_.push_back(line);
        return static_cast<std::uint32_t>(lines_.size() - 1);
      });
}

std::uint32_t ExportCode::module_of(const symbolize::Module* module) {
  if (module == nullptr) return 0;
  const auto [known, is_new] =
      by_module_.try_emplace(module, static_cast<std::uint32_t>(modules_.size() + 1));
  if (is_new) modules_.push_back({.module = module});
  return known->second;
}

std::uint64_t ExportCode::address_of(const Location& location, std::uint32_t module) {
  const std::uint64_t called = location.is_caller && location.ip.value > 0 ? 1 : 0;
  if (module == 0) return location.ip.value - called;
  const symbolize::Mapping& mapping = *location.mapping;
  ExportModule& known = modules_[module - 1];
  const bool is_runtime = mapping.is_identity || mapping.module->kind == symbolize::ModuleKind::Anonymous;
  const std::uint64_t address =
      (is_runtime ? location.ip.value : mapping.shown_address(location.ip)) - called;
  known.is_runtime = is_runtime;
  if (is_runtime && (known.end == 0 || mapping.start < known.start)) known.start = mapping.start;
  const std::uint64_t end = is_runtime ? mapping.end : mapping.end - mapping.start + mapping.page_offset;
  known.end = std::max({known.end, end, address + 1});
  known.start = std::min(known.start, address);
  return address;
}

std::uint32_t ExportCode::place_of(LocationId id) {
  if (const std::uint32_t known = of_locations_.find(id); known != kNo<std::uint32_t>) return known;
  const Location& location = session_.resolver().location(id);
  const std::uint32_t module = location.mapping == nullptr ? 0 : module_of(location.mapping->module);
  const std::uint64_t address = address_of(location, module);
  scratch_ = {module};
  if (kind_ == ExportPlaces::Addresses) {
    scratch_.push_back(static_cast<std::uint32_t>(address));
    scratch_.push_back(static_cast<std::uint32_t>(address >> 32));
  }
  frames_.append({&id, 1}, FrameNames::Order::LeafFirst, scratch_);
  const std::uint32_t place = place_keys_.id_of(scratch_);
  if (place == places_.size()) places_.push_back({module, address});
  return of_locations_[id] = place;
}

std::string ExportCode::linker_name(const ExportFunction& function) const {
  const std::string_view linker = names_.linker_name(function.name);
  return printable(linker.empty() ? names_.name(function.name) : linker);
}

std::string ExportCode::module_path(const ExportFunction& function) const {
  return function.module == 0 ? "" : printable(modules_[function.module - 1].module->path);
}

}  // namespace tacho::report
