#include "report/profile/function_names.h"

#include <string>

#include "symbolize/names/demangle.h"

namespace tacho::report {
namespace {

using symbolize::NameForm;

std::string long_name(std::string_view name, std::string_view linker_name, NameForm form) {
  if (linker_name.empty() || linker_name == name) return std::string(linker_name);
  return symbolize::demangle(linker_name, form).value_or(std::string(linker_name));
}

}  // namespace

std::uint32_t FunctionNames::add_name(std::string_view name, std::string_view linker_name,
                                      std::uint32_t first) {
  rows_.push_back({name, linker_name.data() == name.data() ? name : linker_name, first});
  return static_cast<std::uint32_t>(rows_.size() - 1);
}

std::uint32_t FunctionNames::number_of(std::string_view name, std::string_view linker_name) {
  const std::uint32_t first = by_name_.find_or_make(
      hash_(name), [&](std::uint32_t known) { return rows_[known].name == name; },
      [&] {
        const std::string_view own = kept(name);
        const auto number = static_cast<std::uint32_t>(rows_.size());
        return add_name(own, linker_name == name ? own : kept(linker_name), number);
      });
  return rows_[first].linker_name == linker_name ? first : number_of_overload(first, linker_name);
}

std::uint32_t FunctionNames::number_of_overload(std::uint32_t first, std::string_view linker_name) {
  const std::uint32_t index = by_linker_.find_or_make(
      by_linker_.hash(hash_(linker_name), first),
      [&](std::uint32_t known) {
        return linkers_[known].first == first && linkers_[known].name == linker_name;
      },
      [&] {
        const std::string_view name = rows_[first].name, own = kept(linker_name);
        Overloads& overloads = several_[first];
        const auto hash_of = [&](std::string_view linker) {
          overloads.has_unknown |= linker.empty();
          return hash_(long_name(name, linker, NameForm::Whole));
        };
        if (overloads.numbers.empty()) overloads.numbers.emplace(hash_of(rows_[first].linker_name), first);
        const auto [known, is_new] = overloads.numbers.try_emplace(hash_of(own), 0U);
        if (is_new) {
          known->second = add_name(name, own, first);
          overloads.counts.clear();
          overloads.shown.clear();
        }
        linkers_.push_back({own, first, known->second});
        return static_cast<std::uint32_t>(linkers_.size() - 1);
      });
  return linkers_[index].number;
}

std::string_view FunctionNames::shown(std::uint32_t number) {
  const Row& row = rows_[number];
  const auto found = several_.find(row.first);
  if (found == several_.end()) return row.name;
  Overloads& overloads = found->second;
  const std::size_t known = overloads.numbers.size() - (overloads.has_unknown ? 1 : 0);
  if (known < 2 || row.linker_name.empty()) return row.name;
  const auto form_of = [&](std::uint32_t one, NameForm form) {
    return long_name(row.name, rows_[one].linker_name, form);
  };
  if (overloads.counts.empty())
    for (const auto& [whole, one] : overloads.numbers)
      ++overloads.counts[hash_(form_of(one, NameForm::Parameters))];
  const auto [known_text, is_new] = overloads.shown.try_emplace(number);
  if (!is_new) return known_text->second;
  std::string text = form_of(number, NameForm::Parameters);
  // Specializations of a template may differ in the return type alone.
  if (overloads.counts.at(hash_(text)) > 1) text = form_of(number, NameForm::Whole);
  return known_text->second = store_.keep(text);
}

}  // namespace tacho::report
