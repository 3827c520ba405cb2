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

NameId FunctionNames::add_name(std::string_view name, std::string_view linker_name, NameId first) {
  return rows_.push_back({name, linker_name.data() == name.data() ? name : linker_name, first});
}

NameId FunctionNames::id_of(std::string_view name, std::string_view linker_name) {
  const NameId first = by_name_.find_or_make(
      hash_(name), [&](NameId known) { return rows_[known].name == name; },
      [&] {
        const std::string_view own = kept(name);
        return add_name(own, linker_name == name ? own : kept(linker_name),
                        report::id_of<NameId>(rows_.size()));
      });
  return rows_[first].linker_name == linker_name ? first : id_of_overload(first, linker_name);
}

NameId FunctionNames::id_of_overload(NameId first, std::string_view linker_name) {
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
        if (overloads.ids.empty()) overloads.ids.emplace(hash_of(rows_[first].linker_name), first);
        const auto [known, is_new] = overloads.ids.try_emplace(hash_of(own));
        if (is_new) {
          known->second = add_name(name, own, first);
          overloads.counts.clear();
          overloads.shown.clear();
        }
        linkers_.push_back({own, first, known->second});
        return static_cast<std::uint32_t>(linkers_.size() - 1);
      });
  return linkers_[index].id;
}

std::string_view FunctionNames::shown(NameId id) {
  const Row& row = rows_[id];
  const auto found = several_.find(row.first);
  if (found == several_.end()) return row.name;
  Overloads& overloads = found->second;
  const std::size_t known = overloads.ids.size() - (overloads.has_unknown ? 1 : 0);
  if (known < 2 || row.linker_name.empty()) return row.name;
  const auto form_of = [&](NameId one, NameForm form) {
    return long_name(row.name, rows_[one].linker_name, form);
  };
  if (overloads.counts.empty())
    for (const auto& [whole, one] : overloads.ids)
      ++overloads.counts[hash_(form_of(one, NameForm::Parameters))];
  const auto [known_text, is_new] = overloads.shown.try_emplace(id);
  if (!is_new) return known_text->second;
  std::string text = form_of(id, NameForm::Parameters);
  // Specializations of a template may differ in the return type alone.
  if (overloads.counts.at(hash_(text)) > 1) text = form_of(id, NameForm::Whole);
  return known_text->second = store_.keep(text);
}

}  // namespace tacho::report
