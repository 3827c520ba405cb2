#include "report/profile/function_table.h"

#include <fmt/format.h>

namespace tacho::report {
namespace {

namespace abi = format::abi;

// What Identities::Words::kind tells apart.
enum Kind : std::uint64_t { kBySymbol, kInlined, kByLine };

std::uint64_t word_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

template <class Numbers, class Key>
std::uint32_t number_in(Numbers& numbers, const Key& key, std::uint32_t first = 0) {
  return numbers.try_emplace(key, static_cast<std::uint32_t>(numbers.size()) + first).first->second;
}

char level_of(std::uint8_t cpumode) {
  if (cpumode == abi::kCpumodeKernel) return 'k';
  return cpumode == abi::kCpumodeUser ? '.' : 'H';
}

}  // namespace

std::uint32_t Identities::number_of(const Words& words) {
  const std::uint64_t hash = by_words_.hash(words.kind, words.space, words.start, words.end);
  const std::uint32_t row = by_words_.find_or_make(
      hash, [&](std::uint32_t known) { return rows_[known].words == words; },
      [&] {
        rows_.push_back({words, count_++});
        return static_cast<std::uint32_t>(rows_.size() - 1);
      });
  return rows_[row].number;
}

FunctionTable::FunctionTable(Session& session, ChainKey key, Grain grain, SourceNames sources)
    : resolver_(&session.resolver()),
      key_(key),
      grain_(key == ChainKey::Function ? grain : Grain::Addresses),
      sources_(sources) {
  for (const auto& entry : session.features().environment.build_ids)
    listed_.try_emplace(entry.filename, static_cast<std::uint32_t>(listed_.size()) + 1);
}

// perf compares where its structures lie in memory: mostly in the order in which they were made, first those
// of the build id table, then others as they are met.
std::uint32_t FunctionTable::rank_of(const symbolize::Module& module, std::size_t met) const {
  auto listed = listed_.find(std::string(module.path));
  if (listed == listed_.end()) listed = listed_.find(std::string(module.file));
  return listed != listed_.end() ? listed->second : static_cast<std::uint32_t>(listed_.size() + met);
}

const FunctionTable::ModuleNumbers& FunctionTable::numbers_of(const symbolize::Module& module) {
  if (last_module_ == &module) return *last_numbers_;
  const auto [row, is_new] = module_numbers_.try_emplace(&module);
  if (is_new) {
    const std::size_t met = module_numbers_.size();
    row->second = {.id = static_cast<std::uint32_t>(met),
                   .name = number_in(modules_, std::string_view(module.short_name), 1),
                   .rank = rank_of(module, met)};
  }
  last_module_ = &module;
  last_numbers_ = &row->second;
  return row->second;
}

std::span<const std::uint32_t> FunctionTable::of_frame(std::uint32_t location) {
  if (const std::uint32_t only = only_.find(location); only != kNone) return {&ids_[only], 1};
  if (const std::uint32_t many = many_.find(location); many != kNone) return lists_[many];
  const Location& where = resolver_->location(location);
  const std::uint64_t ip = where.ip.value;
  const auto frames = resolver_->frames(where);
  if (frames.size() == 1) {
    const std::uint32_t only = intern(function_of(frames[0], where, ip), ip);
    only_[location] = only;
    return {&ids_[only], 1};
  }
  many_[location] = static_cast<std::uint32_t>(lists_.size());
  auto& list = lists_.emplace_back();
  for (const symbolize::Frame& frame : frames) list.push_back(intern(function_of(frame, where, ip), ip));
  return list;
}

std::uint32_t FunctionTable::of_step(std::uint32_t location, std::uint32_t step) {
  const std::uint32_t outermost = of_frame(location).back();
  if (step == 0) return outermost;
  return by_step_.find_or_make(step, outermost, [&] {
    Function made = functions_[outermost];
    made.step = step;
    return append(made);
  });
}

std::uint32_t FunctionTable::of_name(std::string_view name) {
  const auto [known, is_new] = of_names_.try_emplace(name, 0);
  if (!is_new) return known->second;
  Function made;
  made.name = name;
  made.name_number = number_in(names_, name, 1);
  made.symbol = symbols_.new_number();
  made.chain_key = chain_keys_.new_number();
  return known->second = append(made);
}

std::uint32_t FunctionTable::of_place(std::uint32_t location) {
  if (const std::uint32_t known = alone_.find(location); known != kNone) return known;
  const Location& where = resolver_->location(location);
  const symbolize::Frame& frame = resolver_->frame(where);
  const std::uint32_t alone = intern(function_of(frame, where, frame.shown_address), frame.ip.value);
  alone_[location] = alone;
  return alone;
}

Function FunctionTable::function_of(const symbolize::Frame& frame, const Location& where,
                                    std::uint64_t unknown_at) {
  const bool is_known = !frame.function.empty();
  Function made;
  made.name = frame.function;
  made.module = frame.module;
  made.start = is_known ? frame.function_start : grain_ == Grain::Names ? 0 : unknown_at;
  if (where.mapping != nullptr) made.mapped_bytes = where.mapping->end - where.mapping->start;
  made.end = is_known ? frame.function_end : 0;
  if (grain_ == Grain::Addresses) {
    made.line = line_text(frame);
    using symbolize::LineState;
    made.has_line = frame.line_state == LineState::Known || frame.line_state == LineState::Unknown;
  }
  if (is_known) made.name_number = number_in(names_, frame.function, 1);
  if (frame.module != nullptr) {
    const ModuleNumbers& numbers = numbers_of(*frame.module);
    made.module_number = numbers.name;
    made.module_rank = numbers.rank;
  }
  made.level = level_of(frame.cpumode);
  made.source = frame.source;
  made.is_inlined = frame.is_inlined;
  made.is_data = frame.is_data;
  if (frame.is_data) made.runtime_start = frame.ip.value - (frame.shown_address - frame.function_start);
  return made;
}

std::uint32_t FunctionTable::intern(Function made, std::uint64_t ip) {
  made.first_ip = ip;
  const auto level = static_cast<unsigned char>(made.level);
  constexpr std::uint32_t kMostModules = 1U << 24;  // with the level a number of 32 bits
  if (made.name.empty() && !made.is_inlined && grain_ != Grain::Addresses &&
      module_numbers_.size() < kMostModules)
    return intern_address(made);
  const bool counts_address = grain_ == Grain::Addresses || made.is_data;
  const std::uint64_t kind = std::uint64_t{level} << 8 | std::uint64_t{made.is_inlined};
  const std::uint64_t hash = by_identity_.hash(word_of(made.module), made.start, made.end, made.name_number,
                                               kind, counts_address ? ip : 0);
  return by_identity_.find_or_make(
      hash,
      [&](std::uint32_t id) {
        const Function& known = functions_[id];
        return known.module == made.module && known.start == made.start && known.end == made.end &&
               known.name_number == made.name_number && known.level == made.level &&
               known.is_inlined == made.is_inlined && known.runtime_start == made.runtime_start &&
               (!counts_address || known.first_ip == ip);
      },
      [&] { return add(made); });
}

// Mostly there is one function at an address in all modules, and that is found by its symbol.
std::uint32_t FunctionTable::intern_address(Function made) {
  made.symbol = symbols_.number_of_address(0, made.start);
  std::uint32_t& first = by_symbol_[made.symbol];
  if (first == kNone) {
    made.chain_key = chain_keys_.new_number();
    return first = append(made);
  }
  const Function& known = functions_[first];
  if (known.module == made.module && known.level == made.level) return first;
  const std::uint32_t module = id_of(made.module);
  const std::uint32_t space = module << 8 | static_cast<unsigned char>(made.level);
  return by_address_.find_or_make(space, made.start, [&] {
    made.chain_key =
        known.module == made.module ? known.chain_key : chain_keys_.number_of_address(module, made.start);
    return append(made);
  });
}

std::uint32_t FunctionTable::add(Function made) {
  made.symbol = symbol_of(made);
  made.chain_key = chain_key_of(made);
  return append(made);
}

std::uint32_t FunctionTable::append(const Function& made) {
  functions_.push_back(made);
  return ids_.push_back(static_cast<std::uint32_t>(ids_.size()));
}

void FunctionTable::end_lookups() {
  by_identity_.forget();
  by_address_.forget();
  by_step_.forget();
  by_symbol_.forget();
  symbols_.forget();
  chain_keys_.forget();
}

std::uint32_t FunctionTable::symbol_of(const Function& function) {
  if (function.name.empty()) return symbols_.number_of_address(0, function.start);
  const std::uint64_t module = function.module_number;
  if (!function.is_inlined) return symbols_.number_of({kBySymbol, module, function.start, function.end});
  const std::uint64_t space = module << 32 | function.name_number;
  return symbols_.number_of({kInlined, space, function.start, function.end});
}

std::uint32_t FunctionTable::chain_key_of(const Function& function) {
  const std::uint64_t module = word_of(function.module);
  const bool is_known = !function.name.empty();
  if (key_ == ChainKey::SourceLine && function.has_line)
    return chain_keys_.number_of({kByLine, word_of(function.line.data()), 0, 0});
  if (key_ == ChainKey::Address)
    return chain_keys_.number_of_address(id_of(function.module), function.first_ip);
  if (!is_known) return chain_keys_.number_of_address(id_of(function.module), function.start);
  if (function.is_inlined) return chain_keys_.number_of({kInlined, function.name_number, 0, 0});
  return chain_keys_.number_of({kBySymbol, module, function.start, 0});
}

// As perf shows it behind the name.
std::string_view FunctionTable::line_text(const symbolize::Frame& frame) {
  if (frame.module == nullptr) return {};
  std::string text;
  if (frame.line_state == symbolize::LineState::Known) {
    const std::size_t name = sources_ == SourceNames::WithFolders ? 0 : frame.file.rfind('/') + 1;
    text = fmt::format("{}:{}", frame.file.substr(name), frame.line);
  } else if (frame.line_state == symbolize::LineState::Unknown) {
    text = "??:0";  // the module has lines, but none for this place
  } else if (!frame.function.empty()) {
    text = fmt::format("+{}", frame.shown_address - frame.function_start);
  } else {
    text = fmt::format("{}[{:x}]", frame.module->short_name, frame.elf_address);
  }
  return lines_.try_emplace(std::move(text), 0).first->first;
}

}  // namespace tacho::report
