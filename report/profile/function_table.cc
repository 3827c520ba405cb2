#include "report/profile/function_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "report/profile/function.h"
#include "report/profile/function_names.h"

namespace tacho::report {
namespace {

// The values of Identities::Words::kind.
enum IdentityKind : std::uint64_t { kWholeFunction, kInlined, kByLine };

// Address spaces of addresses without names: a guest's differs from the host's.
std::uint32_t space_of(char level) {
  return level == 'g' || level == 'u' ? static_cast<unsigned char>(level) : 0;
}

std::uint64_t word_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

}  // namespace

FunctionTable::FunctionTable(Session& session, ChainKey key, Grain grain, SourceNames sources)
    : resolver_(&session.resolver()),
      key_(key),
      grain_(key == ChainKey::Function ? grain : Grain::Addresses),
      sources_(sources) {
  for (const auto& entry : session.features().environment.build_ids)
    listed_.try_emplace(entry.filename, static_cast<std::uint32_t>(listed_.size()) + 1);
}

// perf compares the addresses of its structures, which usually grow in order of creation: first modules of
// the build id table, then others by their first sample.
std::uint32_t FunctionTable::rank_of(const symbolize::Module& module, std::size_t met) const {
  auto listed = listed_.find(std::string(module.path));
  if (listed == listed_.end()) listed = listed_.find(std::string(module.file));
  return listed != listed_.end() ? listed->second : static_cast<std::uint32_t>(listed_.size() + met);
}

const FunctionTable::ModuleNumbers& FunctionTable::numbers_of(const symbolize::Module& module) {
  const ModuleId id = met_modules_.number_of(met_modules_.hash()(word_of(&module)), &module);
  if (!module_numbers_.has(id)) {
    const std::size_t met = module_numbers_.size() + 1;
    module_numbers_.push_back(
        {.id = static_cast<std::uint32_t>(met),
         .name = value_of(module_names_.number_of(hash_(module.short_name), module.short_name)) + 1,
         .rank = rank_of(module, met)});
  }
  return module_numbers_[id];
}

std::span<const FunctionId> FunctionTable::of_frame(LocationId location) {
  FunctionId& only = only_[location];
  if (only != kNo<FunctionId>) return {&only, 1};
  if (const auto several = several_.find(location); several != several_.end()) return several->second;
  const Location& where = resolver_->location(location);
  const std::uint64_t ip = where.ip.value;
  const auto frames = resolver_->frames(where);
  if (frames.size() == 1) {
    only = intern(function_of(frames[0], where, ip), ip);
    return {&only, 1};
  }
  auto& list = several_[location];
  for (const symbolize::Frame& frame : frames) list.push_back(intern(function_of(frame, where, ip), ip));
  return list;
}

FunctionId FunctionTable::of_step(LocationId location, StepId step) {
  const FunctionId outermost = of_frame(location).back();
  if (step == kNo<StepId>) return outermost;
  return by_step_.find_or_make(value_of(step), value_of(outermost), [&] {
    const Function& known = functions_[outermost];
    Made made{.function = known,
              .named = {.name = known.name(), .shown_name = known.shown_name(), .end = known.end()},
              .rare = {}};
    if (known.rare() != nullptr) made.rare = *known.rare();
    made.rare.step = step;
    return append(made);
  });
}

FunctionId FunctionTable::of_name(std::string_view name) {
  const auto [known, is_new] = of_names_.try_emplace(name, FunctionId{});
  if (!is_new) return known->second;
  Made made;
  made.named.name = made.named.shown_name = name;
  made.function.name_id = names_.id_of(name);
  made.function.symbol = symbols_.new_number();
  made.function.chain_key = chain_keys_.new_number();
  return known->second = append(made);
}

FunctionId FunctionTable::of_location(LocationId location) {
  if (const FunctionId known = alone_.find(location); known != kNo<FunctionId>) return known;
  const Location& where = resolver_->location(location);
  const symbolize::Frame& frame = resolver_->frame(where);
  const std::uint64_t shown =
      where.mapping == nullptr ? frame.shown_address : where.mapping->nameless_address(where.ip);
  return alone_[location] = intern(function_of(frame, where, shown), frame.ip.value);
}

FunctionTable::Made FunctionTable::function_of(const symbolize::Frame& frame, const Location& where,
                                               std::uint64_t unknown_at) {
  const bool is_known = !frame.function.empty();
  Made all;
  Function& made = all.function;
  all.named.name = all.named.shown_name = frame.function;
  made.module = frame.module;
  made.start = is_known ? frame.function_start : grain_ == Grain::Names ? 0 : unknown_at;
  all.named.end = is_known ? frame.function_end : 0;
  if (keeps_mapped_bytes_ && where.mapping != nullptr)
    all.rare.mapped_bytes = where.mapping->end - where.mapping->start;
  if (grain_ == Grain::Addresses) {
    all.rare.line = line_text(frame);
    using symbolize::LineState;
    made.has_line = frame.line_state == LineState::Known || frame.line_state == LineState::Unknown;
  }
  if (is_known)
    made.name_id = names_.id_of(frame.function, names_as_perf_ ? std::string_view() : linker_name_of(frame));
  if (frame.module != nullptr) {
    const ModuleNumbers& numbers = numbers_of(*frame.module);
    made.module_number = numbers.name;
    made.module_rank = numbers.rank;
  }
  made.level = level_of(frame.cpumode);
  made.source = frame.source;
  made.is_inlined = frame.is_inlined;
  // Names from files without a build id are checked at the end: in a pipe, the id may come later.
  made.is_guess = frame.is_guess && !(frame.module != nullptr && frame.module->is_unsure());
  made.is_data = frame.is_data;
  made.is_unnamed = frame.is_unnamed;
  if (frame.is_data) all.rare.runtime_start = frame.ip.value - (frame.shown_address - frame.function_start);
  return all;
}

FunctionId FunctionTable::intern(Made all, std::uint64_t ip) {
  Function& made = all.function;
  made.first_ip = ip;
  const auto level = static_cast<unsigned char>(made.level);
  constexpr std::uint32_t kMostModules = 1U << 24;  // with the level, a number of 32 bits
  if (all.named.name.empty() && !made.is_inlined && grain_ != Grain::Addresses &&
      module_numbers_.size() < kMostModules)
    return intern_address(all);
  const bool counts_address = grain_ == Grain::Addresses || made.is_data;
  const std::uint64_t kind = std::uint64_t{level} << 8 | std::uint64_t{made.is_inlined};
  const std::uint64_t hash = by_identity_.hash(word_of(made.module), made.start, all.named.end, made.name_id,
                                               kind, counts_address ? ip : 0);
  return by_identity_.find_or_make(
      hash,
      [&](FunctionId id) {
        const Function& known = functions_[id];
        return known.module == made.module && known.start == made.start && known.end() == all.named.end &&
               known.name_id == made.name_id && known.level == made.level &&
               known.is_inlined == made.is_inlined && known.runtime_start() == all.rare.runtime_start &&
               (!counts_address || known.first_ip == ip);
      },
      [&] { return append_named(all); });
}

// Usually one function in all modules has an address; it is found by its symbol.
FunctionId FunctionTable::intern_address(Made& all) {
  Function& made = all.function;
  made.symbol = symbols_.number_of_address(space_of(made.level), made.start);
  FunctionId& first = by_symbol_[made.symbol];
  if (first == kNo<FunctionId>) {
    made.chain_key = chain_keys_.new_number();
    return first = append(all);
  }
  const Function& known = functions_[first];
  if (known.module == made.module && known.level == made.level) return first;
  const std::uint32_t module = id_of(made.module);
  const std::uint32_t space = module << 8 | static_cast<unsigned char>(made.level);
  return by_address_.find_or_make(space, made.start, [&] {
    made.chain_key =
        known.module == made.module ? known.chain_key : chain_keys_.number_of_address(module, made.start);
    return append(all);
  });
}

FunctionId FunctionTable::append_named(Made& made) {
  made.function.symbol = symbol_of(made);
  made.function.chain_key = chain_key_of(made);
  return append(made);
}

FunctionId FunctionTable::append(const Made& made) {
  Function function = made.function;
  NamedFacts named = made.named;
  named.name_id = function.name_id;
  if (made.rare != RareFacts()) named.rare = &rare_.emplace_back(made.rare);
  const bool has_facts = !named.name.empty() || named.end != 0 || named.rare != nullptr;
  function.named = has_facts ? &named_.emplace_back(named) : nullptr;
  return functions_.push_back(function);
}

void FunctionTable::show_parameters() {
  if (std::exchange(named_so_far_, names_.size()) == names_.size()) return;
  for (NamedFacts& named : named_)
    if (named.name_id != kNo<NameId>) named.shown_name = names_.shown(named.name_id);
}

void FunctionTable::show_parameters_beside(const FunctionTable& other) {
  for (const NameId name : other.names_.ids())
    (void)names_.id_of(other.names_.name(name), other.names_.linker_name(name));
  show_parameters();
}

void FunctionTable::end_lookups() {
  has_ended_ = true;
  by_identity_.forget();
  by_address_.forget();
  by_step_.forget();
  by_symbol_.forget();
  symbols_.forget();
  chain_keys_.forget();
  alone_.forget();
  only_.forget();
  module_names_.forget();
  met_modules_.forget();
  module_numbers_ = {};
}

SymbolId FunctionTable::symbol_of(const Made& made) {
  const Function& function = made.function;
  if (made.named.name.empty()) return symbols_.number_of_address(space_of(function.level), function.start);
  const std::uint64_t module = function.module_number;
  if (!function.is_inlined)
    return symbols_.number_of({kWholeFunction, module, function.start, made.named.end});
  const std::uint64_t space = module << 32 | value_of(function.name_id);
  return symbols_.number_of({kInlined, space, function.start, made.named.end});
}

ChainKeyId FunctionTable::chain_key_of(const Made& made) {
  const Function& function = made.function;
  const std::uint64_t module = word_of(function.module);
  const bool is_known = !made.named.name.empty();
  if (key_ == ChainKey::SourceLine && function.has_line)
    return chain_keys_.number_of({kByLine, word_of(made.rare.line.data()), 0, 0});
  if (key_ == ChainKey::Address)
    return chain_keys_.number_of_address(id_of(function.module), function.first_ip);
  if (!is_known) return chain_keys_.number_of_address(id_of(function.module), function.start);
  if (function.is_inlined) return chain_keys_.number_of({kInlined, value_of(function.name_id), 0, 0});
  return chain_keys_.number_of({kWholeFunction, module, function.start, 0});
}

// As perf prints it after the name.
std::string_view FunctionTable::line_text(const symbolize::Frame& frame) {
  if (frame.module == nullptr) return {};
  std::string text;
  if (frame.line_state == symbolize::LineState::Known) {
    const std::size_t name = sources_ == SourceNames::WithFolders ? 0 : frame.file.rfind('/') + 1;
    text = fmt::format("{}:{}", frame.file.substr(name), frame.line);
  } else if (frame.line_state == symbolize::LineState::Unknown) {
    text = "??:0";  // the module has lines, but none for this address
  } else if (!frame.function.empty()) {
    text = fmt::format("+{}", frame.shown_address - frame.function_start);
  } else {
    text = fmt::format("{}[{:x}]", frame.module->short_name, frame.elf_address);
  }
  return lines_.try_emplace(std::move(text), 0).first->first;
}

}  // namespace tacho::report
