#include "report/compare/function_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace tacho::report {
namespace {

constexpr std::string_view kDigits = "0123456789";

// Drops ".0", ".123" at the end. False: there is no such number.
bool drop_number(std::string_view& name) {
  const std::size_t last = name.find_last_not_of(kDigits);
  if (last == std::string_view::npos || last + 1 == name.size() || name[last] != '.') return false;
  name = name.substr(0, last);
  return true;
}

// Drops one mark of a clone from the end.
bool drop_clone_mark(std::string_view& name) {
  constexpr std::array<std::string_view, 2> kBare = {".cold", ".warm"};
  constexpr std::array<std::string_view, 7> kNumbered = {".cold", ".isra",     ".part",      ".constprop",
                                                         ".llvm", ".lto_priv", ".localalias"};
  constexpr std::string_view kDemangled = " [clone ";
  if (const std::size_t at = name.rfind(kDemangled);
      at != std::string_view::npos && at > 0 && name.find(']', at) + 1 == name.size()) {
    name = name.substr(0, at);
    return true;
  }
  std::string_view rest = name;
  const bool has_number = drop_number(rest);
  for (const std::string_view mark :
       has_number ? std::span<const std::string_view>(kNumbered) : std::span<const std::string_view>(kBare)) {
    if (rest.size() <= mark.size() || !rest.ends_with(mark)) continue;
    name = rest.substr(0, rest.size() - mark.size());
    return true;
  }
  return false;
}

// "::h0123456789abcdef"
void drop_rust_hash(std::string_view& name) {
  constexpr std::size_t kSize = 19;
  if (name.size() <= kSize) return;
  const std::string_view hash = name.substr(name.size() - kSize);
  if (hash.starts_with("::h") && hash.find_first_not_of("0123456789abcdef", 3) == std::string_view::npos)
    name.remove_suffix(kSize);
}

// Without the numbers of Go's closures: "main.run.func2.1" as "main.run.func". Others are as they are.
std::string_view without_closure(std::string_view name) {
  constexpr std::string_view kMark = ".func";
  const std::size_t at = name.find(kMark);
  if (at == std::string_view::npos || at + kMark.size() == name.size()) return name;
  const std::size_t end = at + kMark.size();
  return name.find_first_not_of("0123456789.", end) == std::string_view::npos ? name.substr(0, end) : name;
}

// At most the first few of many pairs.
std::string pairs_text(const std::set<std::pair<std::string_view, std::string_view>>& pairs,
                       std::string_view word) {
  constexpr std::size_t kShown = 4;
  std::string text;
  std::size_t shown = 0;
  for (const auto& [old, now] : pairs) {
    if (++shown > kShown) break;
    text += fmt::format("{}{} {} {}", shown == 1 ? "" : ", ", old, word, now);
  }
  if (pairs.size() > kShown) text += fmt::format(", and {} more", pairs.size() - kShown);
  return text;
}

struct Sides {
  bool is_before = false, is_after = false;
  bool is_both() const { return is_before && is_after; }
  template <class Other>
  void add(const Other& other) {
    is_before |= other.is_before;
    is_after |= other.is_after;
  }
};

class FunctionMatcher {
 public:
  explicit FunctionMatcher(std::span<const FunctionToMatch> functions) : functions_(functions) {
    for (std::uint32_t i = 0; i < functions.size(); ++i) {
      matched_.same.push_back(i);
      sources_.push_back(name_of_source(functions[i].name));
      Sides& own = sides_.emplace_back();
      own.add(functions[i]);
      if (!functions[i].module.empty()) modules_[functions[i].module].add(functions[i]);
    }
    matched_.by.resize(functions.size(), MatchedBy::Itself);
  }

  void match_clones();
  void match_modules();
  void match_calls(const MatchEvidence& evidence);
  MatchedFunctions matched();

 private:
  static constexpr std::uint32_t kSeveral = ~std::uint32_t{0};
  // A function's name, its kind, and its module where that is a part of the key.
  using Key = std::tuple<std::string_view, std::string_view, char>;
  using Signature = std::tuple<std::string_view, char, std::set<std::uint32_t>, std::set<std::uint32_t>>;

  bool is_only_before(std::uint32_t i) const { return sides_[i].is_before && !sides_[i].is_after; }
  bool is_only_after(std::uint32_t i) const { return sides_[i].is_after && !sides_[i].is_before; }
  bool is_replaced(std::uint32_t i) const { return matched_.same[i] != i; }
  bool is_module_of_one(std::uint32_t i) const {
    const auto found = modules_.find(functions_[i].module);
    return found != modules_.end() && !found->second.is_both();
  }
  // The one for which clones stand: best if both captures have it, then if it is no clone.
  std::pair<bool, bool> worth(std::uint32_t i) const {
    return {sides_[i].is_both(), functions_[i].name == sources_[i]};
  }
  void replace(std::uint32_t from, std::uint32_t to, MatchedBy by) {
    matched_.same[from] = to;
    matched_.by[from] = by;
    sides_[to].add(sides_[from]);
  }
  // Module of a function, after matching.
  std::string_view module_after(std::uint32_t i) const {
    const auto renamed = renamed_modules_.find(functions_[i].module);
    return renamed == renamed_modules_.end() ? functions_[i].module : renamed->second;
  }
  template <class MakeKey, class Test>
  void match_unique(MakeKey&& key_of, Test&& is_meant, MatchedBy by);
  bool match_once(const MatchEvidence& evidence);
  bool may_be_renamed(std::uint32_t i, const MatchEvidence& evidence) const;

  std::span<const FunctionToMatch> functions_;
  std::vector<std::string> sources_;  // name_of_source()
  std::vector<Sides> sides_;          // by function; matched ones are added to their match
  std::map<std::string_view, Sides> modules_;
  std::map<std::string_view, std::string_view> renamed_modules_;  // before, after
  // Functions by which a module became another one: before, after.
  std::map<std::string_view, std::map<std::string_view, std::size_t>> votes_;
  std::set<std::pair<std::string_view, std::string_view>> module_pairs_, renames_;
  MatchedFunctions matched_;
};

void FunctionMatcher::match_clones() {
  std::map<Key, std::uint32_t> best;
  const auto key_of = [this](std::uint32_t i) {
    return Key(sources_[i], functions_[i].module, functions_[i].kind);
  };
  for (std::uint32_t i = 0; i < functions_.size(); ++i) {
    const auto [found, is_new] = best.try_emplace(key_of(i), i);
    if (!is_new && worth(found->second) < worth(i)) found->second = i;
  }
  for (std::uint32_t i = 0; i < functions_.size(); ++i) {
    const std::uint32_t to = best.at(key_of(i));
    // What both captures have under one name needs no match.
    if (to != i && !functions_[i].name.empty() && functions_[i].is_before != functions_[i].is_after)
      replace(i, to, MatchedBy::Clone);
  }
}

// Matches functions of which each capture has exactly one with this key.
template <class MakeKey, class Test>
void FunctionMatcher::match_unique(MakeKey&& key_of, Test&& is_meant, MatchedBy by) {
  std::map<Key, std::pair<std::uint32_t, std::uint32_t>> pairs;  // before, after
  constexpr std::uint32_t kNone = kSeveral - 1;
  for (std::uint32_t i = 0; i < functions_.size(); ++i) {
    if (is_replaced(i) || sides_[i].is_both() || !is_meant(i)) continue;
    auto& [before, after] = pairs.try_emplace(key_of(i), kNone, kNone).first->second;
    std::uint32_t& side = sides_[i].is_before ? before : after;
    side = side == kNone ? i : kSeveral;
  }
  for (const auto& [key, pair] : pairs) {
    const std::uint32_t before = pair.first, after = pair.second;
    if (before >= kNone || after >= kNone) continue;
    replace(before, after, by);
    if (by != MatchedBy::Module) continue;
    ++votes_[functions_[before].module][functions_[after].module];
    module_pairs_.emplace(functions_[before].module, functions_[after].module);
  }
}

void FunctionMatcher::match_modules() {
  const auto is_of_one = [this](std::uint32_t i) { return is_module_of_one(i); };
  const auto has_closure = [this](std::uint32_t i) { return without_closure(sources_[i]) != sources_[i]; };
  match_unique([this](std::uint32_t i) { return Key(sources_[i], {}, functions_[i].kind); }, is_of_one,
               MatchedBy::Module);
  for (const auto& [before, afters] : votes_)
    renamed_modules_.emplace(
        before, std::ranges::max_element(afters, {}, [](const auto& one) { return one.second; })->first);
  // A name in several modules, as _start of the program and of the dynamic linker: matched within the pairs
  // of modules that most functions have in common.
  std::set<std::string_view> renamed;
  for (const auto& [before, after] : renamed_modules_) renamed.insert(after);
  match_unique([this](std::uint32_t i) { return Key(sources_[i], module_after(i), functions_[i].kind); },
               [&](std::uint32_t i) {
                 return is_only_before(i) ? renamed_modules_.contains(functions_[i].module)
                                          : renamed.contains(functions_[i].module);
               },
               MatchedBy::Module);
  // Closures are numbered in the order of the source.
  match_unique(
      [this](std::uint32_t i) {
        return Key(without_closure(sources_[i]), functions_[i].module, functions_[i].kind);
      },
      has_closure, MatchedBy::Clone);
}

void FunctionMatcher::match_calls(const MatchEvidence& evidence) {
  if (evidence.calls.empty()) return;
  while (match_once(evidence)) {
  }
}

bool FunctionMatcher::may_be_renamed(std::uint32_t i, const MatchEvidence& evidence) const {
  constexpr double kLeastShare = 0.005;
  const FunctionToMatch& function = functions_[i];
  // "[libc.so.6]": code without a name.
  const bool has_name = !function.name.empty() && function.name.front() != '[';
  if (!has_name || function.module.empty() || function.share < kLeastShare) return false;
  return !is_one_build(function.module, evidence.before, evidence.after);
}

bool FunctionMatcher::match_once(const MatchEvidence& evidence) {
  struct Neighbours {
    std::set<std::uint32_t> callers, callees;
  };
  const auto end_of = [this](std::uint32_t i) {
    while (matched_.same[i] != i) i = matched_.same[i];
    return i;
  };
  std::map<std::uint32_t, Neighbours> neighbours;  // of functions that only one capture has
  for (const CallToMatch& call : evidence.calls) {
    const std::uint32_t caller = end_of(call.caller), callee = end_of(call.callee);
    if (caller == callee) continue;
    const auto matters_to = [&](std::uint32_t function) {
      constexpr double kLeastPart = 0.05;
      return !sides_[function].is_both() &&
             std::max(call.before, call.after) >= kLeastPart * functions_[function].share;
    };
    if (matters_to(caller)) neighbours[caller].callees.insert(callee);
    if (matters_to(callee)) neighbours[callee].callers.insert(caller);
  }
  constexpr std::uint32_t kNone = kSeveral - 1;
  std::map<Signature, std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (const auto& [i, around] : neighbours) {
    // One caller alone says too little: it may call something new.
    if (around.callers.empty() || around.callers.size() + around.callees.size() < 2) continue;
    if (!may_be_renamed(i, evidence)) continue;
    auto& [before, after] =
        pairs
            .try_emplace(Signature(module_after(i), functions_[i].kind, around.callers, around.callees),
                         kNone, kNone)
            .first->second;
    std::uint32_t& side = is_only_before(i) ? before : after;
    side = side == kNone ? i : kSeveral;
  }
  bool has_found = false;
  for (const auto& [signature, pair] : pairs) {
    const std::uint32_t before = pair.first, after = pair.second;
    if (before >= kNone || after >= kNone) continue;
    replace(before, after, MatchedBy::Calls);
    renames_.emplace(functions_[before].name, functions_[after].name);
    has_found = true;
  }
  return has_found;
}

MatchedFunctions FunctionMatcher::matched() {
  for (std::uint32_t& same : matched_.same)
    while (matched_.same[same] != same) same = matched_.same[same];
  matched_.modules = pairs_text(module_pairs_, "with");
  matched_.renames = pairs_text(renames_, "as");
  return std::move(matched_);
}

}  // namespace

bool is_one_build(std::string_view module, const ModuleBuilds& before, const ModuleBuilds& after) {
  const auto old = before.find(module), now = after.find(module);
  return old != before.end() && now != after.end() && old->second.size() == 1 && old->second == now->second &&
         !old->second.begin()->empty();
}

std::string name_of_source(std::string_view name) {
  while (drop_clone_mark(name)) {
  }
  drop_rust_hash(name);
  std::string text(name);
  constexpr std::string_view kTag = "[abi:";
  for (std::size_t at = text.find(kTag); at != std::string::npos; at = text.find(kTag, at)) {
    const std::size_t end = text.find(']', at);
    if (end == std::string::npos) break;
    text.erase(at, end + 1 - at);
  }
  return text;
}

void CallsToMatch::add_call(const CallToMatch& call) {
  CallToMatch& known =
      by_ends_.try_emplace({call.caller, call.callee}, CallToMatch{call.caller, call.callee}).first->second;
  known.before += call.before;
  known.after += call.after;
}

std::vector<CallToMatch> CallsToMatch::all() const {
  std::vector<CallToMatch> calls;
  for (const auto& [ends, call] : by_ends_) calls.push_back(call);
  return calls;
}

std::string MatchedFunctions::text() const {
  if (renames.empty()) return modules;
  return modules + (modules.empty() ? "" : "; ") + "renamed: " + renames;
}

bool MatchedFunctions::is_any() const {
  return std::ranges::any_of(by, [](MatchedBy one) { return one != MatchedBy::Itself; });
}

MatchedFunctions match_functions(std::span<const FunctionToMatch> functions, const MatchEvidence& evidence) {
  FunctionMatcher matcher(functions);
  matcher.match_clones();
  matcher.match_modules();
  matcher.match_calls(evidence);
  return matcher.matched();
}

}  // namespace tacho::report
