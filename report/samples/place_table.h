// PlaceTable: interns code addresses as numbered locations.
//
// An address of user code is known by its module and its address in the module, so processes that map a file
// at different addresses share its locations. Every sample and every frame is looked up here. Most lookups
// are three cache hits: the process, its last mapping, and one slot of a hash table.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "format/base/seeded_hash.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/tables.h"
#include "symbolize/address_space.h"
#include "symbolize/symbolizer.h"

namespace tacho::report {

// Merges addresses of one function into one location.
struct NameMerging {
  // The symbol table of a mapping; empty: addresses are not merged.
  std::function<symbolize::Symbolizer::Names(const symbolize::Mapping&)> ask;
  // Of frames of call chains, with all addresses without a symbol in one module as one location. False: of
  // samples' own addresses alone, and addresses without a symbol stay apart.
  bool of_chains = false;
  // Locked for lookups that change the symbol tables, which threads share. Null: no other thread uses them.
  std::mutex* naming = nullptr;
};

// One thread writes it. Locations never change, so other threads may read those whose numbers they got.
class PlaceTable {
 public:
  // Flag beside the three bits of a cpumode: the address was found by unwinding. It has a location of its
  // own, since such frames show inlined calls.
  static constexpr std::uint8_t kUnwound = 8;
  // Likewise: it is a return address. The same address may be sampled as well.
  static constexpr std::uint8_t kCaller = 16;

  // Before the first lookup: a module that is loaded at two addresses gets two locations for each
  // instruction.
  void keep_addresses() { keeps_addresses_ = true; }
  // Before the first lookup; `merging` must outlive the lookups.
  void merge_by_name(const NameMerging* merging) { merging_ = merging; }

  // The number of an address's location, which is made if the address is new.
  std::uint32_t find(const symbolize::SpaceVersion& space, std::uint64_t ip, std::uint8_t cpumode);
  // The same for a call chain: `numbers` is set to one number for each address.
  struct Address {
    std::uint64_t ip = 0;
    std::uint8_t cpumode = 0;
  };
  void find_all(const symbolize::SpaceVersion& space, std::span<const Address> addresses,
                std::vector<std::uint32_t>& numbers);
  // As find(), but all addresses of a function share one location, that of the first address.
  std::uint32_t find_function(const symbolize::SpaceVersion& space, std::uint64_t ip, std::uint8_t cpumode);
  // Identifies an address's location without making it.
  struct Key {
    const symbolize::Mapping* mapping = nullptr;
    std::uint64_t place = 0;  // in `owner`
    std::uint32_t owner = 0;
  };
  Key key_of(const symbolize::SpaceVersion& space, std::uint64_t ip, std::uint8_t cpumode) {
    const Known& known = known_of(space, ip, cpumode);
    return {known.range.mapping, ip + known.bias, known.owner};
  }
  // This table's number of another table's location, as find() and find_function() would give it.
  std::uint32_t intern(const Location& other);
  std::uint32_t intern_function(const symbolize::Mapping* mapping, std::uint64_t ip, std::uint8_t cpumode);
  // Forgets addresses. Functions keep their locations; other addresses get new ones.
  void forget_addresses() { by_address_.forget(); }
  std::size_t addresses() const { return by_address_.size(); }
  // Prefetches for intern().
  void prefetch(const Location& other);
  const StableArray<Location>& locations() const { return locations_; }
  // Frees all but the locations. No lookups afterwards.
  void end_lookups();

 private:
  // A symbol table in one mode: the locations of its functions, by row.
  struct Functions {
    symbolize::SymbolTable* table = nullptr;
    std::size_t named = 0;  // rows of symbols; those of FDEs without a symbol follow
    const symbolize::SymbolTable* unnamed = nullptr;  // of these FDEs, once one was looked up
    std::vector<std::uint32_t> places;
    // The table grows when an address without a symbol is first looked up.
    std::uint32_t& place_of(std::uint32_t row) {
      if (row >= places.size()) places.resize(row + std::size_t{1} + row / 2, IndexTable::kNone);
      return places[row];
    }
  };
  // How addresses of a mapping are merged.
  struct ByName {
    Functions* functions = nullptr;    // null: it has no symbol table
    std::uint32_t* unknown = nullptr;  // location of all addresses without a symbol; null: not merged
    bool is_one() const { return functions == nullptr && unknown != nullptr; }  // one location for all
  };
  // A cached address range of a process.
  struct Known {
    symbolize::AddressRange range{1, 0, nullptr};  // none yet: last is before first
    std::uint64_t bias = 0;                        // added to an address, makes it an address of `owner`
    std::uint32_t owner = 0;                       // with the mode, as a key of by_address_
    std::uint8_t cpumode = 0;                      // without kCaller
    bool has_names = false;                        // whether `by_name` is set
    ByName by_name;
  };
  // Ranges of a process that were looked up last.
  struct RecentRanges {
    std::array<Known, 4> all{};
    std::size_t last = 0;  // the last one used
    std::size_t next = 0;  // the next one to be replaced
  };
  struct Owner {
    const void* of = nullptr;
    std::uint64_t bias = 0;
    bool operator==(const Owner&) const = default;
  };
  RecentRanges& recent_ranges(const symbolize::SpaceVersion& space, std::uint8_t cpumode);
  Known& known_of(const symbolize::SpaceVersion& space, std::uint64_t ip, std::uint8_t cpumode);
  void look_up(Known& known, const symbolize::AddressRange& range, std::uint8_t cpumode);
  std::uint32_t owner_of(const symbolize::Mapping* mapping, std::uint64_t bias);
  ByName read_names(const symbolize::Mapping* mapping, std::uint8_t cpumode);
  const ByName& by_name_of(Known& known);
  // An address with its key of by_address_.
  struct Lookup {
    std::uint64_t ip = 0;
    std::uint64_t place = 0;  // in `owner`
    const symbolize::Mapping* mapping = nullptr;
    std::uint32_t owner = 0;
    std::uint8_t cpumode = 0;
    ByName by_name;
  };
  static Lookup lookup_of(const Known& known, std::uint64_t ip, std::uint8_t caller) {
    return {ip,
            ip + known.bias,
            known.range.mapping,
            known.owner | caller,
            static_cast<std::uint8_t>(known.cpumode | caller),
            {}};
  }
  std::uint32_t find_or_make(const Lookup& lookup);
  std::uint32_t make(const symbolize::Mapping* mapping, std::uint64_t ip, std::uint8_t cpumode);
  std::optional<std::uint32_t> row_of(Functions& functions, std::uint64_t address, bool is_caller) const;
  std::uint32_t* merged_place(const Lookup& lookup);
  std::uint32_t place_of(const Lookup& lookup);
  std::uint32_t function_at(Known& known, std::uint64_t ip, std::uint8_t cpumode);
  Known& known_of(const symbolize::Mapping* mapping, std::uint8_t cpumode);

  // A cache: address spaces by the low bits of their versions' numbers.
  struct Process {
    std::uint32_t version = 0;
    RecentRanges few{};
  };
  std::vector<Process> processes_ = std::vector<Process>(256);
  Process kernel_{};                // all processes share its addresses
  std::array<Known, 64> mappings_;  // a cache for intern(), by the address of the Mapping

  IndexTable by_owner_;
  std::vector<Owner, format::LargePages<Owner>> owners_;  // by number
  const NameMerging* merging_ = nullptr;
  std::unordered_map<std::uint32_t, ByName> names_;                                        // by Known::owner
  std::array<std::unordered_map<const symbolize::SymbolTable*, Functions>, 8> functions_;  // by mode
  std::array<std::unordered_map<const symbolize::Module*, std::uint32_t>, 8> unknown_places_;  // likewise
  AddressTable by_address_;
  std::vector<Lookup> lookups_;  // scratch
  StableArray<Location> locations_;
  bool keeps_addresses_ = false;
};

}  // namespace tacho::report
