// LocationTable: interns code addresses as locations.
//
// User code is identified by its module and the address in it, so processes that map a file at different
// addresses share its locations. Every sample and every frame is looked up here. Most lookups touch three
// cache lines: the address space, its last range, and one slot of a hash table.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/base/seeded_hash.h"
#include "format/records/perf_abi.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/sink.h"
#include "report/samples/tables.h"
#include "symbolize/address_space.h"
#include "symbolize/symbolizer.h"

namespace tacho::report {

// Cache of address ranges, by address space. An Entry has a range and its cpumode.
template <class Entry, std::size_t kRanges, std::size_t kSpaces>
class RangeCache {
 public:
  // The entry of an address. look_up(entry, range) sets a new one.
  template <class LookUp>
  Entry& find_range(const symbolize::SpaceVersion& space, std::uint64_t ip, std::uint8_t cpumode,
                    LookUp&& look_up) {
    const auto mode = static_cast<std::uint8_t>(cpumode & format::abi::kCpumodeMask);
    const bool is_kernel = mode == format::abi::kCpumodeKernel;
    Space& cached = is_kernel ? kernel_ : spaces_[space.number() % kSpaces];
    const std::uint32_t version = is_kernel ? space.kernel_number() : space.number();
    if (cached.version != version) {
      cached = {};
      cached.version = version;
    }
    const auto holds = [&](const Entry& entry) {
      return ip >= entry.range.first && ip <= entry.range.last && entry.cpumode == cpumode;
    };
    if (holds(cached.ranges[cached.last])) return cached.ranges[cached.last];
    const auto known = std::ranges::find_if(cached.ranges, holds);
    if (known != cached.ranges.end()) {
      cached.last = static_cast<std::uint32_t>(known - cached.ranges.begin());
    } else {  // replaces the oldest
      cached.last = std::exchange(cached.next, static_cast<std::uint32_t>((cached.next + 1) % kRanges));
      look_up(cached.ranges[cached.last], space.range_at({ip}, mode));
    }
    return cached.ranges[cached.last];
  }
  void forget() {
    spaces_.assign(kSpaces, {});
    kernel_ = {};
  }

 private:
  struct Space {
    std::uint32_t version = 0;
    std::uint32_t last = 0, next = 0;  // the last entry used, and the next one to be replaced
    std::array<Entry, kRanges> ranges{};
  };
  std::vector<Space> spaces_ = std::vector<Space>(kSpaces);  // by the low bits of the version's number
  Space kernel_{};                                           // all processes share its addresses
};

// Merges addresses of one function into one location.
struct FunctionMerging {
  Sink::MergeBy merge_by = Sink::MergeBy::Address;
  // The symbol table of a mapping; empty with MergeBy::Address.
  std::function<symbolize::Symbolizer::Names(const symbolize::Mapping&)> symbols_of;
  // Locked for lookups that change the symbol tables, which threads share. Null: no other thread uses them.
  std::mutex* mutex = nullptr;
};

inline std::unique_lock<std::mutex> lock_if(std::mutex* mutex) {
  return mutex != nullptr ? std::unique_lock(*mutex) : std::unique_lock<std::mutex>();
}

// Belongs to one thread. A location never changes, so another thread that got its number may read it.
class LocationTable {
 public:
  // Flag above the three bits of PERF_RECORD_MISC_CPUMODE_MASK: the address was found by unwinding. It has a
  // location of its own, since such frames show inlined calls.
  static constexpr std::uint8_t kUnwound = 8;
  // A flag, too: the address is a return address. It gets a location other than the same address as a sampled
  // ip.
  static constexpr std::uint8_t kCaller = 16;

  // Before the first lookup: a module that is loaded at two addresses gets two locations for each
  // instruction.
  void keep_addresses() { keeps_addresses_ = true; }
  // Before the first lookup; `merging` must outlive the lookups.
  void merge_by_name(const FunctionMerging* merging) { merging_ = merging; }

  // The location of an address, which is made if the address is new.
  LocationId find_location(const symbolize::SpaceVersion& space, std::uint64_t ip, std::uint8_t cpumode);
  // The same for a call chain: `locations` is set to one for each address.
  struct Address {
    std::uint64_t ip = 0;
    std::uint8_t cpumode = 0;
  };
  void find_all(const symbolize::SpaceVersion& space, std::span<const Address> addresses,
                std::vector<LocationId>& locations);
  // Like find_location(), but all addresses of a function share the location of the first one looked up.
  LocationId find_function(const symbolize::SpaceVersion& space, std::uint64_t ip, std::uint8_t cpumode);
  // Identifies an address's location without making it.
  struct Key {
    std::uint64_t address = 0;  // relative to `owner`
    std::uint32_t owner = 0;
  };
  Key key_of(const symbolize::SpaceVersion& space, std::uint64_t ip, std::uint8_t cpumode) {
    const CachedRange& known = known_of(space, ip, cpumode);
    return {ip + known.bias, known.owner};
  }
  // This table's location for one of another table; the same as find_location() or find_function() would
  // return.
  LocationId intern(const Location& other);
  LocationId intern_function(const symbolize::Mapping* mapping, std::uint64_t ip, std::uint8_t cpumode);
  // Forgets addresses. Functions keep their locations; other addresses get new ones.
  void forget_addresses() { by_address_.forget(); }
  std::size_t addresses() const { return by_address_.size(); }
  const StableArray<Location, LocationId>& locations() const { return locations_; }
  // Frees everything but the locations. Addresses looked up later (the next run of a pipe) get new numbers.
  void end_lookups();

 private:
  // The merged locations of a symbol table's functions in one cpumode.
  struct TableLocations {
    symbolize::SymbolTable* table = nullptr;
    std::size_t named = 0;                               // entries with a symbol; entries made of FDEs follow
    const symbolize::FunctionRanges* unnamed = nullptr;  // those FDEs; null until the first lookup
    std::vector<LocationId> locations;
    // The table grows when an address without a symbol is first looked up.
    LocationId& location_of(std::uint32_t row) {
      if (row >= locations.size()) locations.resize(row + std::size_t{1} + row / 2, kNo<LocationId>);
      return locations[row];
    }
  };
  // How addresses of a mapping are merged.
  struct MergeTarget {
    TableLocations* functions = nullptr;  // null: it has no symbol table
    LocationId* unknown = nullptr;        // location of all addresses without a symbol; null: not merged
    bool merges_whole_module() const { return functions == nullptr && unknown != nullptr; }
  };
  // A cached address range of a process.
  struct CachedRange {
    symbolize::AddressRange range{1, 0, nullptr};  // none yet: last is before first
    std::uint64_t bias = 0;                        // owner's address = ip + bias
    std::uint32_t owner = 0;                       // of by_address_: the number of an Owner, and the mode
    std::uint8_t cpumode = 0;                      // without kCaller
    bool has_names = false;                        // whether `by_name` is set
    MergeTarget by_name;
  };
  struct Owner {
    const void* module_or_mapping = nullptr;
    std::uint64_t bias = 0;
    bool operator==(const Owner&) const = default;
  };
  CachedRange& known_of(const symbolize::SpaceVersion& space, std::uint64_t ip, std::uint8_t cpumode);
  void look_up(CachedRange& known, const symbolize::AddressRange& range, std::uint8_t cpumode);
  std::uint32_t owner_of(const symbolize::Mapping* mapping, std::uint64_t bias);
  MergeTarget read_names(const symbolize::Mapping* mapping, std::uint8_t cpumode);
  const MergeTarget& by_name_of(CachedRange& known);
  // An address with its key of by_address_.
  struct Lookup {
    std::uint64_t ip = 0;
    std::uint64_t address = 0;  // relative to `owner`
    const symbolize::Mapping* mapping = nullptr;
    std::uint32_t owner = 0;
    std::uint8_t cpumode = 0;
    MergeTarget by_name;
  };
  static Lookup lookup_of(const CachedRange& known, std::uint64_t ip, std::uint8_t caller) {
    return {ip,
            ip + known.bias,
            known.range.mapping,
            known.owner | caller,
            static_cast<std::uint8_t>(known.cpumode | caller),
            {}};
  }
  LocationId find_or_make(const Lookup& lookup);
  LocationId make_location(const symbolize::Mapping* mapping, std::uint64_t ip, std::uint8_t cpumode);
  std::optional<std::uint32_t> symbol_row(TableLocations& functions, std::uint64_t address,
                                          bool is_caller) const;
  LocationId* merged_location(const Lookup& lookup);
  LocationId location_at(LocationId& id, const Lookup& lookup);
  LocationId new_location(const Lookup& lookup);
  LocationId function_location(CachedRange& known, std::uint64_t ip);
  CachedRange whole_range(const symbolize::Mapping* mapping, std::uint8_t cpumode);

  RangeCache<CachedRange, 4, 256> ranges_;

  IndexTable<> by_owner_;
  std::vector<Owner, format::LargePages<Owner>> owners_;  // by number
  const FunctionMerging* merging_ = nullptr;
  std::unordered_map<std::uint32_t, MergeTarget> names_;  // by CachedRange::owner
  std::array<std::unordered_map<const symbolize::SymbolTable*, TableLocations>, 8> functions_;  // by mode
  std::array<std::unordered_map<const symbolize::Module*, LocationId>, 8>
      unknown_locations_;  // of MergeTarget::unknown, by mode
  AddressTable<LocationId> by_address_;
  StableArray<Location, LocationId> locations_;
  bool keeps_addresses_ = false;
};

}  // namespace tacho::report
