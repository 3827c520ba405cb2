#include "report/views/fleet/fleet_stacks.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "report/profile/frame_names.h"
#include "report/profile/function.h"

namespace tacho::report {
namespace {

std::uint64_t number_in(std::string_view text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// "[libc.so.6]": code without a name.
std::string module_name(std::string_view module) {
  symbolize::Module named;
  named.path = module;
  symbolize::Frame frame;
  if (!module.empty()) frame.module = &named;
  return name_of_frame(frame, {});
}

std::string_view mark_of(std::string_view kind) {
  return kind == "kernel" ? "_[k]" : kind == "inlined" ? "_[i]" : kind == "jit" ? "_[j]" : "";
}

}  // namespace

Result<> FleetStacks::read_choice(FleetStore& store, const FleetChoice& choice, FleetSide side) {
  const char* const section = choice.is_of_hours() ? "stack_sums" : "stack_sums_between";
  return store.read_stacks(
      section, choice.values(), [&](std::span<const std::uint64_t> ids, std::uint64_t value) {
        Stack stack;
        stack.begin = frames_.size();
        stack.size = ids.size();
        for (const std::uint64_t id : ids)
          frames_.push_back(frame_numbers_.try_emplace(id, static_cast<std::uint32_t>(frame_numbers_.size()))
                                .first->second);
        (side == FleetSide::Before ? stack.weights.before : stack.weights.after) = value;
        total_ += stack.weights;
        stacks_.push_back(stack);
      });
}

std::uint32_t FleetStacks::function_number(Function function) {
  if (function.name.empty()) function.name = module_name(function.module);
  const auto [known, is_new] = numbers_.try_emplace(
      function.name + '\0' + function.module + '\0' + function.kind + '\0' + function.signature, 0);
  if (is_new) {
    known->second = static_cast<std::uint32_t>(functions_.size());
    functions_.push_back(std::move(function));
  }
  return known->second;
}

// Functions of one name get their parameters.
void FleetStacks::show_parameters() {
  std::map<std::string, std::set<std::string>> signatures;  // by name
  for (const Function& one : functions_) signatures[one.name].insert(one.signature);
  for (Function& one : functions_)
    if (!one.signature.empty() && signatures.at(one.name).size() > 1) one.name = one.signature;
}

Result<> FleetStacks::read_names(FleetStore& store) {
  of_frames_.push_back(function_number({}));
  by_frame_.resize(frame_numbers_.size());
  auto asked = store.ask(
      "frame_names", {},
      {.row =
           [&](std::span<const SqlCell> cells) {
             const auto frame = frame_numbers_.find(number_in(cells[0].value_or("")));
             if (frame == frame_numbers_.end()) return;
             const auto text = [&cells](std::size_t at) { return std::string(cells[at].value_or("")); };
             FrameFunctions& list = by_frame_[frame->second];
             if (list.size == 0) list.begin = static_cast<std::uint32_t>(of_frames_.size());
             ++list.size;
             of_frames_.push_back(function_number({text(2), text(3), text(4), text(5), {}, {}}));
           },
       .columns = 6});
  if (asked) show_parameters();
  return asked;
}

// A frame without a row is the first function, which has no name.
std::span<const std::uint32_t> FleetStacks::functions_of(std::uint32_t frame) const {
  const FrameFunctions list = by_frame_[frame];
  return std::span(of_frames_).subspan(list.begin, std::max(list.size, 1U));
}

const std::vector<FleetStacks::Function>& FleetStacks::count_functions() {
  std::vector<std::size_t> counted(functions_.size(), ~std::size_t{0});  // the last stack of each function
  for (std::size_t at = 0; at < stacks_.size(); ++at) {
    const Stack& stack = stacks_[at];
    for (std::size_t i = 0; i < stack.size; ++i) {
      const auto functions = functions_of(frames_[stack.begin + i]);
      // As tacho report: a sample is of the function that has its address, also in an inlined call.
      if (i == 0) functions_[functions.back()].self += stack.weights;
      for (const std::uint32_t function : functions)
        if (std::exchange(counted[function], at) != at) functions_[function].total += stack.weights;
    }
  }
  return functions_;
}

void FleetStacks::write_folded(TextOutput& out, Marks marks, bool is_compared) const {
  std::vector<std::string> names;
  std::vector<std::uint32_t> name_of;  // by function: several may be written alike
  std::unordered_map<std::string, std::uint32_t> numbers;
  for (const Function& function : functions_) {
    std::string name = printable_folded(function.name);
    if (marks == Marks::Kinds) name += mark_of(function.kind);
    const auto [known, is_new] = numbers.try_emplace(name, static_cast<std::uint32_t>(names.size()));
    if (is_new) names.push_back(std::move(name));
    name_of.push_back(known->second);
  }
  std::map<std::vector<std::uint32_t>, Weights> sums;
  std::vector<std::uint32_t> path;
  for (const Stack& stack : stacks_) {
    path.clear();
    for (std::size_t i = stack.size; i-- > 0;) {
      const auto functions = functions_of(frames_[stack.begin + i]);
      for (std::size_t at = functions.size(); at-- > 0;) path.push_back(name_of[functions[at]]);
    }
    sums[path] += stack.weights;
  }
  for (const auto& [path_names, weights] : sums) {
    for (std::size_t i = 0; i < path_names.size(); ++i) {
      if (i > 0) out.character(';');
      const std::string& name = names[path_names[i]];
      out.text(i + 1 < path_names.size() ? name : printable_leaf(name));
    }
    out.character(' ');
    if (is_compared) {
      out.decimal(weights.before);
      out.character(' ');
    }
    out.decimal(weights.after);
    out.end_line();
  }
}

}  // namespace tacho::report
