#include "report/samples/place_table.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "format/records/perf_abi.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

constexpr std::uint8_t kModeBits = 7;
constexpr unsigned kOwnerShift = 5;  // an owner's number stands above the mode, kUnwound and kCaller

// Kernel code of every kind: two mappings may have one module, and addresses distinguish them.
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
  mappings_.fill({});
}

PlaceTable::RecentRanges& PlaceTable::recent_ranges(const symbolize::SpaceVersion& space,
                                                    std::uint8_t cpumode) {
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
  RecentRanges& few = recent_ranges(space, cpumode);
  const auto holds = [&](const Known& known) {
    return ip >= known.range.first && ip <= known.range.last && known.cpumode == cpumode;
  };
  if (holds(few.all[few.last])) return few.all[few.last];
  const auto known = std::ranges::find_if(few.all, holds);
  if (known != few.all.end()) {
    few.last = static_cast<std::size_t>(known - few.all.begin());
  } else {  // replaces the oldest
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

// The owner of addresses: the module if processes share it, else the mapping.
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

std::uint32_t PlaceTable::find_or_make(const Lookup& lookup) {
  if (lookup.by_name.is_one()) return place_of(lookup);
  return by_address_.find_or_make(lookup.owner, lookup.place, [&] { return place_of(lookup); });
}

// The row of the function of an address or, of a return address, of the call before it. Threads read a shared
// table at the same time. They lock it where it chooses between symbols or reads FDEs, since it caches the
// result.
std::optional<std::uint32_t> PlaceTable::row_of(Functions& functions, std::uint64_t address,
                                                bool is_caller) const {
  using Sight = symbolize::SymbolTable::Sight;
  symbolize::SymbolTable& table = *functions.table;
  if (merging_->naming != nullptr) {
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
      merging_->naming != nullptr ? std::unique_lock(*merging_->naming) : std::unique_lock<std::mutex>();
  const auto row = table.row_at(is_caller ? table.call_before(address) : address);
  functions.unnamed = table.unnamed_table();
  return row;
}

// The location of the address's function or of all addresses without a symbol; null: it is not merged.
std::uint32_t* PlaceTable::merged_place(const Lookup& lookup) {
  if (Functions* const functions = lookup.by_name.functions) {
    const std::uint64_t address = lookup.mapping->shown_address({lookup.ip});
    if (const auto row = row_of(*functions, address, (lookup.cpumode & kCaller) != 0))
      return &functions->place_of(*row);
  }
  return lookup.by_name.unknown;
}

std::uint32_t PlaceTable::place_of(const Lookup& lookup) {
  std::uint32_t* const place = merged_place(lookup);
  if (place == nullptr) return make(lookup.mapping, lookup.ip, lookup.cpumode);
  if (*place == IndexTable::kNone) *place = make(lookup.mapping, lookup.ip, lookup.cpumode);
  return *place;
}

std::uint32_t PlaceTable::find(const symbolize::SpaceVersion& space, std::uint64_t ip, std::uint8_t cpumode) {
  return find_or_make(lookup_of(known_of(space, ip, cpumode), ip, 0));
}

// The table is larger than the caches: all slots are prefetched before the first is read.
void PlaceTable::find_all(const symbolize::SpaceVersion& space, std::span<const Address> addresses,
                          std::vector<std::uint32_t>& numbers) {
  lookups_.clear();
  const bool is_by_name = merging_ != nullptr && merging_->of_chains;
  for (const Address& address : addresses) {
    // A call may be the last instruction of its mapping: the return address is outside.
    const auto caller = static_cast<std::uint8_t>(address.cpumode & kCaller);
    Known& known = known_of(space, address.ip - (caller != 0 ? 1 : 0), address.cpumode ^ caller);
    Lookup& lookup = lookups_.emplace_back(lookup_of(known, address.ip, caller));
    if (is_by_name) lookup.by_name = by_name_of(known);
    if (!lookup.by_name.is_one()) by_address_.prefetch(lookup.owner, lookup.place);
  }
  numbers.clear();
  for (const Lookup& lookup : lookups_) numbers.push_back(find_or_make(lookup));
}

PlaceTable::ByName PlaceTable::read_names(const symbolize::Mapping* mapping, std::uint8_t cpumode) {
  const auto mode = static_cast<std::uint8_t>(cpumode & kModeBits);
  if ((cpumode & kUnwound) != 0) return {};  // such places have inlined calls
  // Unmapped addresses have no symbol, but those of the kernel may: MMAP records do not cover all of its
  // code.
  symbolize::Symbolizer::Names names{.table = nullptr, .is_all = mode != abi::kCpumodeKernel};
  const auto lock =
      merging_->naming != nullptr ? std::unique_lock(*merging_->naming) : std::unique_lock<std::mutex>();
  if (mapping != nullptr) names = merging_->ask(*mapping);
  ByName by_name;
  if (names.table != nullptr) {
    Functions& functions = functions_[mode][names.table];
    if (functions.table == nullptr)
      functions = {names.table, names.table->symbols(), names.table->unnamed_table(),
                   std::vector(names.table->size(), IndexTable::kNone)};
    by_name.functions = &functions;
  }
  if (names.is_all && merging_->of_chains) {
    const symbolize::Module* const module = mapping == nullptr ? nullptr : mapping->module;
    by_name.unknown = &unknown_places_[mode].try_emplace(module, IndexTable::kNone).first->second;
  }
  return by_name;
}

// By owner, since all of its addresses are of one module.
const PlaceTable::ByName& PlaceTable::by_name_of(Known& known) {
  constexpr std::size_t kMostNames = 4096;
  if (std::exchange(known.has_names, true)) return known.by_name;
  if (names_.size() == kMostNames) names_.clear();
  const auto [names, is_new] = names_.try_emplace(known.owner);
  if (is_new) names->second = read_names(known.range.mapping, known.cpumode);
  return known.by_name = names->second;
}

// Samples have so many own addresses that none of a function with a row is kept in by_address_.
std::uint32_t PlaceTable::function_at(Known& known, std::uint64_t ip, std::uint8_t cpumode) {
  Functions* const functions = by_name_of(known).functions;
  if (functions == nullptr) return find_or_make(lookup_of(known, ip, 0));
  const auto row = row_of(*functions, known.range.mapping->shown_address({ip}), false);
  if (!row) return find_or_make(lookup_of(known, ip, 0));
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
  Known& known = mappings_[(reinterpret_cast<std::uintptr_t>(mapping) / kApart + cpumode) % mappings_.size()];
  const bool is_it = known.range.first == 0 && known.range.mapping == mapping && known.cpumode == cpumode;
  if (!is_it) look_up(known, {0, ~std::uint64_t{0}, mapping}, cpumode);
  return known;
}

std::uint32_t PlaceTable::intern_function(const symbolize::Mapping* mapping, std::uint64_t ip,
                                          std::uint8_t cpumode) {
  return function_at(known_of(mapping, cpumode), ip, cpumode);
}

std::uint32_t PlaceTable::intern(const Location& other) {
  const auto mode = static_cast<std::uint8_t>(other.cpumode | (other.is_unwound ? kUnwound : 0));
  Known& known = known_of(other.mapping, mode);
  Lookup lookup = lookup_of(known, other.ip.value, other.is_caller ? kCaller : 0);
  if (merging_ == nullptr || !merging_->of_chains) return find_or_make(lookup);
  lookup.by_name = by_name_of(known);
  // The join interns each location of a lane once, so functions need no slot in by_address_.
  if (std::uint32_t* const place = merged_place(lookup)) {
    if (*place == IndexTable::kNone) *place = make(lookup.mapping, lookup.ip, lookup.cpumode);
    return *place;
  }
  return by_address_.find_or_make(lookup.owner, lookup.place,
                                  [&] { return make(lookup.mapping, lookup.ip, lookup.cpumode); });
}

void PlaceTable::prefetch(const Location& other) {
  if (merging_ != nullptr && merging_->of_chains) return;
  const auto mode = static_cast<std::uint8_t>(other.cpumode | (other.is_unwound ? kUnwound : 0));
  const Lookup lookup =
      lookup_of(known_of(other.mapping, mode), other.ip.value, other.is_caller ? kCaller : 0);
  by_address_.prefetch(lookup.owner, lookup.place);
}

}  // namespace tacho::report
