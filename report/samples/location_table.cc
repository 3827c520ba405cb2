#include "report/samples/location_table.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "format/records/perf_abi.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

// An owner's number is in the bits above the mode, kUnwound, kCaller and kOwnAddress. kOwnAddress: of a
// sample, so that it is not merged with the addresses without a symbol in its module.
constexpr unsigned kOwnerShift = 6;
constexpr std::uint32_t kOwnAddress = 32;

// Kernel code: two mappings may have one module (e.g. [kernel] and its init text), so the runtime address
// identifies the code.
bool is_identified_by_runtime_address(const symbolize::Mapping& mapping) {
  using symbolize::ModuleKind;
  const ModuleKind kind = mapping.module->kind;
  return mapping.is_identity || kind == ModuleKind::Kernel || kind == ModuleKind::KernelModule ||
         kind == ModuleKind::Bpf || kind == ModuleKind::GuestKernel;
}

bool is_identified_by_module(const symbolize::Mapping* mapping) {
  return mapping != nullptr && !is_identified_by_runtime_address(*mapping);
}

}  // namespace

void LocationTable::end_lookups() {
  by_address_.forget();
  by_owner_.forget();
  decltype(owners_)().swap(owners_);
  functions_ = {};
  unknown_locations_ = {};
  names_ = {};
  ranges_.forget();
}

LocationTable::CachedRange& LocationTable::known_of(const symbolize::SpaceVersion& space, std::uint64_t ip,
                                                    std::uint8_t cpumode) {
  return ranges_.find_range(
      space, ip, cpumode,
      [&](CachedRange& known, const symbolize::AddressRange& range) { look_up(known, range, cpumode); });
}

void LocationTable::look_up(CachedRange& known, const symbolize::AddressRange& range, std::uint8_t cpumode) {
  known = {};
  known.range = range;
  known.cpumode = cpumode;
  if (is_identified_by_module(range.mapping)) known.bias = range.mapping->shown_address({0});
  known.owner =
      owner_of(range.mapping, known.bias) << kOwnerShift | (cpumode & (kUnwound | abi::kCpumodeMask));
}

// An address belongs to its module, or to its mapping if it is kernel code.
std::uint32_t LocationTable::owner_of(const symbolize::Mapping* mapping, std::uint64_t bias) {
  const Owner owner{is_identified_by_module(mapping) ? static_cast<const void*>(mapping->module) : mapping,
                    keeps_addresses_ ? bias : 0};
  return by_owner_.find_or_make(
      by_owner_.hash(reinterpret_cast<std::uintptr_t>(owner.module_or_mapping), owner.bias),
      [&](std::uint32_t row) { return owners_[row] == owner; },
      [&] {
        owners_.push_back(owner);
        return static_cast<std::uint32_t>(owners_.size() - 1);
      });
}

LocationId LocationTable::make_location(const symbolize::Mapping* mapping, std::uint64_t ip,
                                        std::uint8_t cpumode) {
  const LocationId id{static_cast<std::uint32_t>(locations_.size())};
  const auto mode = static_cast<std::uint8_t>(cpumode & abi::kCpumodeMask);
  locations_.push_back({mapping, {ip}, id, mode, (cpumode & kUnwound) != 0, (cpumode & kCaller) != 0});
  return id;
}

LocationId LocationTable::find_or_make(const Lookup& lookup) {
  if (lookup.by_name.merges_whole_module()) return new_location(lookup);
  return by_address_.find_or_make(lookup.owner, lookup.address, [&] { return new_location(lookup); });
}

// The symbol-table row of the function at `address`; for a return address, of the call instruction before it.
// Threads read a shared table at the same time. Lookups that choose between aliases or read FDEs cache their
// result in the table, so they take the lock.
std::optional<std::uint32_t> LocationTable::symbol_row(TableLocations& functions, std::uint64_t address,
                                                       bool is_caller) const {
  using RowLookup = symbolize::SymbolTable::RowLookup;
  symbolize::SymbolTable& table = *functions.table;
  if (merging_->mutex != nullptr) {
    const RowLookup found_row = is_caller ? table.try_caller_row_at(address) : table.try_row_at(address);
    if (found_row.kind == RowLookup::Kind::Symbol) return found_row.row;
    if (found_row.kind == RowLookup::Kind::None) {
      if (!table.has_unnamed()) return std::nullopt;
      if (functions.unnamed != nullptr) {
        const auto function = functions.unnamed->find_function(address - (is_caller ? 1 : 0));
        if (!function) return std::nullopt;
        return static_cast<std::uint32_t>(functions.named + function->number);
      }
    }
  }
  const auto lock = lock_if(merging_->mutex);
  const auto row = table.row_at(is_caller ? table.caller_address(address) : address);
  functions.unnamed = table.unnamed_functions();
  return row;
}

// Where the merged location is kept (kNo: not made yet); null if the address is not merged.
LocationId* LocationTable::merged_location(const Lookup& lookup) {
  if (TableLocations* const functions = lookup.by_name.functions) {
    const std::uint64_t address = lookup.mapping->shown_address({lookup.ip});
    if (const auto row = symbol_row(*functions, address, (lookup.cpumode & kCaller) != 0))
      return &functions->location_of(*row);
  }
  return lookup.by_name.unknown;
}

LocationId LocationTable::location_at(LocationId& id, const Lookup& lookup) {
  if (id == kNo<LocationId>) id = make_location(lookup.mapping, lookup.ip, lookup.cpumode);
  return id;
}

LocationId LocationTable::new_location(const Lookup& lookup) {
  if (LocationId* const merged = merged_location(lookup)) return location_at(*merged, lookup);
  return make_location(lookup.mapping, lookup.ip, lookup.cpumode);
}

LocationId LocationTable::find_location(const symbolize::SpaceVersion& space, std::uint64_t ip,
                                        std::uint8_t cpumode) {
  return find_or_make(lookup_of(known_of(space, ip, cpumode), ip, 0));
}

void LocationTable::find_all(const symbolize::SpaceVersion& space, std::span<const Address> addresses,
                             std::vector<LocationId>& locations) {
  locations.clear();
  const bool is_by_name = merging_ != nullptr && merges_frames(merging_->merge_by);
  for (const Address& address : addresses) {
    // A call may be the last instruction of a mapping (noreturn): its return address is outside, so look up
    // ip - 1.
    const auto caller = static_cast<std::uint8_t>(address.cpumode & kCaller);
    CachedRange& known = known_of(space, address.ip - (caller != 0 ? 1 : 0),
                                  static_cast<std::uint8_t>(address.cpumode & ~kCaller));
    Lookup lookup = lookup_of(known, address.ip, caller);
    if (is_by_name) lookup.by_name = by_name_of(known);
    locations.push_back(find_or_make(lookup));
  }
}

LocationTable::MergeTarget LocationTable::read_names(const symbolize::Mapping* mapping,
                                                     std::uint8_t cpumode) {
  const auto mode = static_cast<std::uint8_t>(cpumode & abi::kCpumodeMask);
  if ((cpumode & kUnwound) != 0)
    return {};  // unwound frames show inlined calls, which differ within a function
  // `is_all`: no address outside `table` has a symbol. Not so in the kernel, whose MMAP records do not cover
  // all of its code.
  symbolize::Symbolizer::Names names{.table = nullptr, .is_all = mode != abi::kCpumodeKernel};
  const auto lock = lock_if(merging_->mutex);
  if (mapping != nullptr) names = merging_->symbols_of(*mapping);
  MergeTarget by_name;
  if (names.table != nullptr) {
    TableLocations& functions = functions_[mode][names.table];
    if (functions.table == nullptr)
      functions = {names.table, names.table->symbols(), names.table->unnamed_functions(),
                   std::vector(names.table->size(), kNo<LocationId>)};
    by_name.functions = &functions;
  }
  if (names.is_all && merges_unnamed_frames(merging_->merge_by)) {
    const symbolize::Module* const module = mapping == nullptr ? nullptr : mapping->module;
    by_name.unknown = &unknown_locations_[mode].try_emplace(module, kNo<LocationId>).first->second;
  }
  return by_name;
}

// Cached by owner: all addresses of an owner are in one module.
const LocationTable::MergeTarget& LocationTable::by_name_of(CachedRange& known) {
  constexpr std::size_t kMaxCached = 4096;
  if (std::exchange(known.has_names, true)) return known.by_name;
  if (names_.size() == kMaxCached) names_.clear();
  const auto [names, is_new] = names_.try_emplace(known.owner);
  if (is_new) names->second = read_names(known.range.mapping, known.cpumode);
  return known.by_name = names->second;
}

// Most samples hit a function with a row, which needs no slot in by_address_.
LocationId LocationTable::function_location(CachedRange& known, std::uint64_t ip) {
  Lookup lookup = lookup_of(known, ip, 0);
  lookup.owner |= kOwnAddress;
  TableLocations* const functions = by_name_of(known).functions;
  if (functions != nullptr) {
    if (const auto row = symbol_row(*functions, lookup.mapping->shown_address({ip}), false))
      return location_at(functions->location_of(*row), lookup);
  }
  return find_or_make(lookup);
}

LocationId LocationTable::find_function(const symbolize::SpaceVersion& space, std::uint64_t ip,
                                        std::uint8_t cpumode) {
  return function_location(known_of(space, ip, cpumode), ip);
}

LocationTable::CachedRange LocationTable::whole_range(const symbolize::Mapping* mapping,
                                                      std::uint8_t cpumode) {
  CachedRange known;
  look_up(known, {0, ~std::uint64_t{0}, mapping}, cpumode);
  return known;
}

LocationId LocationTable::intern_function(const symbolize::Mapping* mapping, std::uint64_t ip,
                                          std::uint8_t cpumode) {
  CachedRange known = whole_range(mapping, cpumode);
  return function_location(known, ip);
}

LocationId LocationTable::intern(const Location& other) {
  const auto mode = static_cast<std::uint8_t>(other.cpumode | (other.is_unwound ? kUnwound : 0));
  CachedRange known = whole_range(other.mapping, mode);
  Lookup lookup = lookup_of(known, other.ip.value, other.is_caller ? kCaller : 0);
  if (merging_ == nullptr || !merges_frames(merging_->merge_by)) return find_or_make(lookup);
  lookup.by_name = by_name_of(known);
  // The join interns each location of a lane once: those of functions need no slot in by_address_.
  if (LocationId* const merged = merged_location(lookup)) return location_at(*merged, lookup);
  return by_address_.find_or_make(lookup.owner, lookup.address,
                                  [&] { return make_location(lookup.mapping, lookup.ip, lookup.cpumode); });
}

}  // namespace tacho::report
