#include "report/samples/place_table.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "format/records/perf_abi.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

constexpr std::uint8_t kModeBits = 7;
constexpr unsigned kOwnerShift = 5;  // of owners' numbers, above the mode, kUnwound and kCaller

// Kernel code of every kind; two mappings of it may share a module, and are told apart by where they lie.
bool runs_where_it_is_shown(const symbolize::Mapping& mapping) {
  using symbolize::ModuleKind;
  const ModuleKind kind = mapping.module->kind;
  return mapping.is_identity || kind == ModuleKind::Kernel || kind == ModuleKind::KernelModule ||
         kind == ModuleKind::Bpf || kind == ModuleKind::GuestKernel;
}

bool is_shared(const symbolize::Mapping* mapping) {
  return mapping != nullptr && !runs_where_it_is_shown(*mapping);
}

}  // namespace

void PlaceTable::end_lookups() {
  by_address_.forget();
  by_owner_.forget();
  decltype(owners_)().swap(owners_);
  functions_ = {};
  unknown_places_ = {};
  names_ = {};
  processes_ = std::vector<Process>(processes_.size());
  kernel_ = {};
  taken_.fill({});
}

PlaceTable::KnownFew& PlaceTable::known_few(const symbolize::SpaceVersion& space, std::uint8_t cpumode) {
  const bool is_kernel = (cpumode & kModeBits) == abi::kCpumodeKernel;
  Process& process = is_kernel ? kernel_ : processes_[space.number() % processes_.size()];
  const std::uint32_t version = is_kernel ? space.kernel_number() : space.number();
  if (process.version != version) {
    process.version = version;
    process.few = {};
  }
  return process.few;
}

PlaceTable::Known& PlaceTable::known_of(const symbolize::SpaceVersion& space, std::uint64_t ip,
                                        std::uint8_t cpumode) {
  KnownFew& few = known_few(space, cpumode);
  const auto holds = [&](const Known& known) {
    return ip >= known.range.first && ip <= known.range.last && known.cpumode == cpumode;
  };
  if (holds(few.all[few.last])) return few.all[few.last];
  const auto known = std::ranges::find_if(few.all, holds);
  if (known != few.all.end()) {
    few.last = static_cast<std::size_t>(known - few.all.begin());
  } else {  // in place of the one that was looked up longest ago, as they take turns
    few.last = few.next;
    few.next = (few.next + 1) % few.all.size();
    look_up(few.all[few.last], space.range_at({ip}, cpumode & kModeBits), cpumode);
  }
  return few.all[few.last];
}

void PlaceTable::look_up(Known& known, const symbolize::AddressRange& range, std::uint8_t cpumode) {
  known = {};
  known.range = range;
  known.cpumode = cpumode;
  if (is_shared(range.mapping)) known.bias = range.mapping->shown_address({0});
  known.owner = owner_of(range.mapping, known.bias) << kOwnerShift | (cpumode & (kUnwound | kModeBits));
}

// The id of the addresses' owner: the module where processes share it, else the mapping.
std::uint32_t PlaceTable::owner_of(const symbolize::Mapping* mapping, std::uint64_t bias) {
  const Owner owner{is_shared(mapping) ? static_cast<const void*>(mapping->module) : mapping,
                    keeps_addresses_ ? bias : 0};
  return by_owner_.find_or_make(
      by_owner_.hash(reinterpret_cast<std::uintptr_t>(owner.of), owner.bias),
      [&](std::uint32_t row) { return owners_[row] == owner; },
      [&] {
        owners_.push_back(owner);
        return static_cast<std::uint32_t>(owners_.size() - 1);
      });
}

std::uint32_t PlaceTable::make(const symbolize::Mapping* mapping, std::uint64_t ip, std::uint8_t cpumode) {
  const auto number = static_cast<std::uint32_t>(locations_.size());
  const auto mode = static_cast<std::uint8_t>(cpumode & kModeBits);
  locations_.push_back({mapping, {ip}, number, mode, (cpumode & kUnwound) != 0, (cpumode & kCaller) != 0});
  return number;
}

std::uint32_t PlaceTable::number_of(const Asked& asked) {
  if (asked.by_name.is_one()) return place_by_name(asked);
  return by_address_.find_or_make(asked.owner, asked.place, [&] { return place_by_name(asked); });
}

// The row of the function that covers the address, or has the call before a caller's return address.
// Threads that share the table read it side by side. They take turns where the table chooses between symbols
// or reads ranges of functions, as it keeps the answers.
std::optional<std::uint32_t> PlaceTable::row_of(Functions& functions, std::uint64_t address,
                                                bool is_caller) const {
  using Sight = symbolize::SymbolTable::Sight;
  symbolize::SymbolTable& table = *functions.table;
  if (names_of_->naming != nullptr) {
    const Sight sight = is_caller ? table.see_caller(address) : table.see(address);
    if (sight.kind == Sight::Kind::Symbol) return sight.row;
    if (sight.kind == Sight::Kind::None) {
      if (!table.has_unnamed()) return std::nullopt;
      if (functions.unnamed != nullptr) {
        const Sight other = functions.unnamed->see(address - (is_caller ? 1 : 0));
        if (other.kind == Sight::Kind::None) return std::nullopt;
        if (other.kind == Sight::Kind::Symbol) return static_cast<std::uint32_t>(functions.named + other.row);
      }
    }
  }
  const auto lock =
      names_of_->naming != nullptr ? std::unique_lock(*names_of_->naming) : std::unique_lock<std::mutex>();
  const auto row = table.row_at(is_caller ? table.call_before(address) : address);
  functions.unnamed = table.unnamed_table();
  return row;
}

// The shared location of an address: of its function or of all unnamed addresses. Null: it has its own.
std::uint32_t* PlaceTable::place_of_name(const Asked& asked) {
  if (Functions* const functions = asked.by_name.functions) {
    const std::uint64_t address = asked.mapping->shown_address({asked.ip});
    if (const auto row = row_of(*functions, address, (asked.cpumode & kCaller) != 0))
      return &functions->place_of(*row);
  }
  return asked.by_name.unknown;
}

std::uint32_t PlaceTable::place_by_name(const Asked& asked) {
  std::uint32_t* const place = place_of_name(asked);
  if (place == nullptr) return make(asked.mapping, asked.ip, asked.cpumode);
  if (*place == IndexTable::kNone) *place = make(asked.mapping, asked.ip, asked.cpumode);
  return *place;
}

std::uint32_t PlaceTable::find(const symbolize::SpaceVersion& space, std::uint64_t ip, std::uint8_t cpumode) {
  return number_of(asked_of(known_of(space, ip, cpumode), ip, 0));
}

// The table is larger than the caches: its slots are fetched side by side, and then read.
void PlaceTable::find_all(const symbolize::SpaceVersion& space, std::span<const Address> addresses,
                          std::vector<std::uint32_t>& numbers) {
  asked_.clear();
  const bool is_by_name = names_of_ != nullptr && names_of_->of_chains;
  for (const Address& address : addresses) {
    // A call may be the last instruction of its mapping.
    const auto caller = static_cast<std::uint8_t>(address.cpumode & kCaller);
    Known& known = known_of(space, address.ip - (caller != 0 ? 1 : 0), address.cpumode ^ caller);
    Asked& asked = asked_.emplace_back(asked_of(known, address.ip, caller));
    if (is_by_name) asked.by_name = by_name_of(known);
    if (!asked.by_name.is_one()) by_address_.prefetch(asked.owner, asked.place);
  }
  numbers.clear();
  for (const Asked& asked : asked_) numbers.push_back(number_of(asked));
}

PlaceTable::ByName PlaceTable::ask_names(const symbolize::Mapping* mapping, std::uint8_t cpumode) {
  const auto mode = static_cast<std::uint8_t>(cpumode & kModeBits);
  if ((cpumode & kUnwound) != 0) return {};  // such places have inlined calls
  // Unmapped addresses have no symbol. Those of the kernel may have one: not all of its code is in records.
  symbolize::Symbolizer::Names names{.table = nullptr, .is_all = mode != abi::kCpumodeKernel};
  const auto lock =
      names_of_->naming != nullptr ? std::unique_lock(*names_of_->naming) : std::unique_lock<std::mutex>();
  if (mapping != nullptr) names = names_of_->ask(*mapping);
  ByName by_name;
  if (names.table != nullptr) {
    Functions& functions = functions_[mode][names.table];
    if (functions.table == nullptr)
      functions = {names.table, names.table->symbols(), names.table->unnamed_table(),
                   std::vector(names.table->size(), IndexTable::kNone)};
    by_name.functions = &functions;
  }
  if (names.is_all && names_of_->joins_unknown) {
    const symbolize::Module* const module = mapping == nullptr ? nullptr : mapping->module;
    by_name.unknown = &unknown_places_[mode].try_emplace(module, IndexTable::kNone).first->second;
  }
  return by_name;
}

// An owner's addresses are all of one module.
const PlaceTable::ByName& PlaceTable::by_name_of(Known& known) {
  constexpr std::size_t kMostNames = 4096;
  if (std::exchange(known.has_names, true)) return known.by_name;
  if (names_.size() == kMostNames) names_.clear();
  const auto [names, is_new] = names_.try_emplace(known.owner);
  if (is_new) names->second = ask_names(known.range.mapping, known.cpumode);
  return known.by_name = names->second;
}

// Samples' own places are so many that a function's is found by its row, and no address is kept.
std::uint32_t PlaceTable::function_at(Known& known, std::uint64_t ip, std::uint8_t cpumode) {
  Functions* const functions = by_name_of(known).functions;
  if (functions == nullptr) return number_of(asked_of(known, ip, 0));
  const auto row = row_of(*functions, known.range.mapping->shown_address({ip}), false);
  if (!row) return number_of(asked_of(known, ip, 0));
  std::uint32_t& place = functions->place_of(*row);
  if (place == IndexTable::kNone) place = make(known.range.mapping, ip, cpumode);
  return place;
}

std::uint32_t PlaceTable::find_function(const symbolize::SpaceVersion& space, std::uint64_t ip,
                                        std::uint8_t cpumode) {
  return function_at(known_of(space, ip, cpumode), ip, cpumode);
}

PlaceTable::Known& PlaceTable::known_of(const symbolize::Mapping* mapping, std::uint8_t cpumode) {
  constexpr std::size_t kApart = sizeof(symbolize::Mapping);
  Known& known = taken_[(reinterpret_cast<std::uintptr_t>(mapping) / kApart + cpumode) % taken_.size()];
  const bool is_it = known.range.first == 0 && known.range.mapping == mapping && known.cpumode == cpumode;
  if (!is_it) look_up(known, {0, ~std::uint64_t{0}, mapping}, cpumode);
  return known;
}

std::uint32_t PlaceTable::take(const symbolize::Mapping* mapping, std::uint64_t ip, std::uint8_t cpumode) {
  return number_of(asked_of(known_of(mapping, cpumode), ip, 0));
}

std::uint32_t PlaceTable::take_function(const symbolize::Mapping* mapping, std::uint64_t ip,
                                        std::uint8_t cpumode) {
  return function_at(known_of(mapping, cpumode), ip, cpumode);
}

std::uint32_t PlaceTable::take(const Location& other) {
  const auto mode = static_cast<std::uint8_t>(other.cpumode | (other.is_unwound ? kUnwound : 0));
  Known& known = known_of(other.mapping, mode);
  Asked asked = asked_of(known, other.ip.value, other.is_caller ? kCaller : 0);
  if (names_of_ == nullptr || !names_of_->of_chains) return number_of(asked);
  asked.by_name = by_name_of(known);
  // The join asks for each location of a lane once, so by_address_ is left out.
  if (std::uint32_t* const place = place_of_name(asked)) {
    if (*place == IndexTable::kNone) *place = make(asked.mapping, asked.ip, asked.cpumode);
    return *place;
  }
  return by_address_.find_or_make(asked.owner, asked.place,
                                  [&] { return make(asked.mapping, asked.ip, asked.cpumode); });
}

void PlaceTable::fetch(const Location& other) {
  if (names_of_ != nullptr && names_of_->of_chains) return;
  const auto mode = static_cast<std::uint8_t>(other.cpumode | (other.is_unwound ? kUnwound : 0));
  const Asked asked = asked_of(known_of(other.mapping, mode), other.ip.value, other.is_caller ? kCaller : 0);
  by_address_.prefetch(asked.owner, asked.place);
}

}  // namespace tacho::report
