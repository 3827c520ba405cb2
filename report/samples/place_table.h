// Every distinct place of a capture, once: addresses of processes in, numbered locations out.
//
// What an address of user code stands for depends on the module and the place in it alone, so processes that
// run the same file at different addresses share its locations. Every sample and every frame comes here, and
// most of them find what they need in three steps that stay in the caches: the process, the mapping it was in
// last, and one slot of a table.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "format/base/seeded_hash.h"
#include "report/samples/address_table.h"
#include "report/samples/names_of.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/stable_array.h"
#include "symbolize/address_space.h"

namespace tacho::report {

// One thread writes it. Places never change once they are made, so numbers of them may go to another thread,
// which reads them from locations().
class PlaceTable {
 public:
  // A mode of three bits may have this one beside it: the address was found by unwinding. It gets a location
  // of its own, as such frames show inlined calls.
  static constexpr std::uint8_t kUnwound = 8;
  // Likewise: the address is a return address. The same address may be sampled as well.
  static constexpr std::uint8_t kCaller = 16;

  // Keeps load addresses apart: a module that is loaded at two addresses gets two locations for each
  // instruction. Call it before the first lookup.
  void keep_addresses() { keeps_addresses_ = true; }
  // Merges addresses by function, with the symbol tables of `names_of`, which must outlive the lookups. Call
  // it before the first one.
  void tell_by_functions(const NamesOf* names_of) { names_of_ = names_of; }

  // The number of an address's location; a new location if the address is new.
  std::uint32_t find(const symbolize::SpaceVersion& space, std::uint64_t ip, std::uint8_t cpumode);
  // The same for many: `numbers` is set to one for each address, in their order.
  struct Address {
    std::uint64_t ip = 0;
    std::uint8_t cpumode = 0;
  };
  void find_all(const symbolize::SpaceVersion& space, std::span<const Address> addresses,
                std::vector<std::uint32_t>& numbers);
  // As find(), but all addresses of a named function share the location of the first one that was looked up.
  // So a view of functions has as many locations as there are functions.
  std::uint32_t find_function(const symbolize::SpaceVersion& space, std::uint64_t ip, std::uint8_t cpumode);
  // Identifies the location of an address in this table, without making one.
  struct Key {
    const symbolize::Mapping* mapping = nullptr;
    std::uint64_t place = 0;  // in `owner`
    std::uint32_t owner = 0;
  };
  Key key_of(const symbolize::SpaceVersion& space, std::uint64_t ip, std::uint8_t cpumode) {
    const Known& known = known_of(space, ip, cpumode);
    return {known.range.mapping, ip + known.bias, known.owner};
  }
  // Translates a location of another table to this table's number: by function where call chains are merged
  // by function. The other overloads take an address in a mapping, as find() and find_function() do.
  std::uint32_t take(const Location& other);
  std::uint32_t take(const symbolize::Mapping* mapping, std::uint64_t ip, std::uint8_t cpumode);
  std::uint32_t take_function(const symbolize::Mapping* mapping, std::uint64_t ip, std::uint8_t cpumode);
  // Forgets which addresses were looked up. Functions keep their numbers; other addresses get new ones.
  void forget_addresses() { by_address_.forget(); }
  std::size_t addresses() const { return by_address_.size(); }
  // Brings what take() needs into the cache.
  void fetch(const Location& other);
  const StableArray<Location>& locations() const { return locations_; }
  // Gives back the memory that finding takes: from then on every address is new. Places stay.
  void end_lookups();

 private:
  // Functions of one table in one mode, by its rows: the numbers of their places.
  struct Functions {
    symbolize::SymbolTable* table = nullptr;
    std::size_t named = 0;                            // rows of functions with symbols; others follow
    const symbolize::SymbolTable* unnamed = nullptr;  // of the others, once they were asked for
    std::vector<std::uint32_t> places;
    // The table gets more rows when it is first asked for an address without a symbol.
    std::uint32_t& place_of(std::uint32_t row) {
      if (row >= places.size()) places.resize(row + std::size_t{1} + row / 2, IndexTable::kNone);
      return places[row];
    }
  };
  // How the addresses of a mapping are merged: by the rows of its symbol table, and all addresses without a
  // symbol into one location.
  struct ByName {
    Functions* functions = nullptr;    // null: there is no symbol table
    std::uint32_t* unknown = nullptr;  // location of addresses without a symbol; null: each has its own
    bool is_one() const { return functions == nullptr && unknown != nullptr; }  // one location for all
  };
  // An address range of a process, as it was looked up before.
  struct Known {
    symbolize::AddressRange range{1, 0, nullptr};  // empty at first: last is before first
    std::uint64_t bias = 0;                        // added to an address: its address in `owner`
    std::uint32_t owner = 0;                       // with the mode, as a key of by_address_
    std::uint8_t cpumode = 0;                      // without kCaller
    bool has_names = false;                        // whether `by_name` was asked for
    ByName by_name;
  };
  // Some that were asked for lately.
  struct KnownFew {
    std::array<Known, 4> all{};
    std::size_t last = 0;  // which was asked for last
    std::size_t next = 0;  // which gives way to a new one
  };
  struct Owner {
    const void* of = nullptr;
    std::uint64_t bias = 0;
    bool operator==(const Owner&) const = default;
  };
  KnownFew& known_few(const symbolize::SpaceVersion& space, std::uint8_t cpumode);
  Known& known_of(const symbolize::SpaceVersion& space, std::uint64_t ip, std::uint8_t cpumode);
  void look_up(Known& known, const symbolize::AddressRange& range, std::uint8_t cpumode);
  std::uint32_t owner_of(const symbolize::Mapping* mapping, std::uint64_t bias);
  ByName ask_names(const symbolize::Mapping* mapping, std::uint8_t cpumode);
  const ByName& by_name_of(Known& known);
  // An address on its way through by_address_.
  struct Asked {
    std::uint64_t ip = 0;
    std::uint64_t place = 0;  // in `owner`
    const symbolize::Mapping* mapping = nullptr;
    std::uint32_t owner = 0;
    std::uint8_t cpumode = 0;
    ByName by_name;
  };
  static Asked asked_of(const Known& known, std::uint64_t ip, std::uint8_t caller) {
    return {ip,
            ip + known.bias,
            known.range.mapping,
            known.owner | caller,
            static_cast<std::uint8_t>(known.cpumode | caller),
            {}};
  }
  std::uint32_t number_of(const Asked& asked);
  std::uint32_t make(const symbolize::Mapping* mapping, std::uint64_t ip, std::uint8_t cpumode);
  std::optional<std::uint32_t> row_of(Functions& functions, std::uint64_t address, bool is_caller) const;
  std::uint32_t* place_of_name(const Asked& asked);
  std::uint32_t place_by_name(const Asked& asked);
  std::uint32_t function_at(Known& known, std::uint64_t ip, std::uint8_t cpumode);
  Known& known_of(const symbolize::Mapping* mapping, std::uint8_t cpumode);

  // Of a few processes, by the low bits of their versions' numbers: what is not here is looked up again.
  struct Process {
    std::uint32_t version = 0;
    KnownFew few{};
  };
  std::vector<Process> processes_ = std::vector<Process>(256);
  Process kernel_{};             // all processes share its addresses
  std::array<Known, 64> taken_;  // of mappings, by their addresses

  IndexTable by_owner_;
  std::vector<Owner, format::LargePages<Owner>> owners_;  // by number
  const NamesOf* names_of_ = nullptr;
  std::unordered_map<std::uint32_t, ByName> names_;                                        // by Known::owner
  std::array<std::unordered_map<const symbolize::SymbolTable*, Functions>, 8> functions_;  // by mode
  std::array<std::unordered_map<const symbolize::Module*, std::uint32_t>, 8> unknown_places_;  // likewise
  AddressTable by_address_;
  std::vector<Asked> asked_;  // scratch
  StableArray<Location> locations_;
  bool keeps_addresses_ = false;
};

}  // namespace tacho::report
