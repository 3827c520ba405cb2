#include "report/views/folded/frame_names.h"

#include <algorithm>
#include <string>

#include "report/perf_text/frame_text.h"

namespace tacho::report {
namespace {

constexpr Fields kLineFields{Field::Ip, Field::Sym, Field::Symoff, Field::Dso};

}  // namespace

void FrameNames::append(std::span<const std::uint32_t> frames, Order order, bool is_java,
                        std::vector<std::uint32_t>& names) {
  const auto begin = static_cast<std::ptrdiff_t>(names.size());
  // Leaf first, as perf asks: what some inlined functions are called depends on who was asked for before.
  for (const std::uint32_t location : frames) {
    if (tells_places()) {
      add(of_place(location, is_java), names);
      continue;
    }
    for (const std::uint32_t function : functions_.of_frame(location))
      add(of_function(function, is_java), names);
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
  for (const symbolize::Frame& frame : resolver_->frames(resolver_->location(location)))
    make(frame, is_java, made_);
  return by_place_[is_java][location] = kept(made_);
}

FrameNames::NameList FrameNames::of_function(std::uint32_t function, bool is_java) {
  if (const NameList known = by_function_[is_java].find(function); known.count != NameList::kNotMade)
    return known;
  // What is behind the function's start is not shown.
  const Function& asked = functions_[function];
  symbolize::Frame frame;
  frame.module = asked.module;
  frame.function = asked.name();
  frame.function_start = frame.shown_address = asked.start;
  frame.is_inlined = asked.is_inlined;
  made_.clear();
  make(frame, is_java, made_);
  return by_function_[is_java][function] = kept(made_);
}

void FrameNames::make(const symbolize::Frame& frame, bool is_java, std::vector<std::uint32_t>& names) {
  if (inlines_.are_expanded) {
    if (const auto expanded = expanded_name(frame, inlines_.context)) {
      const bool is_the_name = inlines_.context == Context::None;
      return names.push_back(is_the_name ? folded_->name_that_stays(frame.function)
                                         : folded_->name(*expanded));
    }
  }
  std::vector<std::string> folded;
  if (options_.as_perl) {
    TextBuffer line;
    write_frame(line, frame, kLineFields, Names::Raw);
    folded = fold_frame(line.view(), options_, is_java);
  } else {
    folded = fold_frame(frame, options_, is_java);
  }
  for (auto name = folded.rbegin(); name != folded.rend(); ++name) names.push_back(folded_->name(*name));
}

FrameNames::NameList FrameNames::kept(std::span<const std::uint32_t> names) {
  if (names.size() == 1) return {1, names.front()};
  const auto first = static_cast<std::uint32_t>(several_.size());
  several_.insert(several_.end(), names.begin(), names.end());
  return {static_cast<std::uint32_t>(names.size()), first};
}

}  // namespace tacho::report
