// The table of functions: maps code addresses (Location) to interned functions. Names are looked up
// once for each distinct address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/base/large_pages.h"
#include "format/base/seeded_hash.h"
#include "report/profile/function.h"
#include "report/profile/function_names.h"
#include "report/samples/resolver.h"
#include "report/samples/session.h"
#include "report/samples/tables.h"
#include "symbolize/frame.h"

namespace tacho::report {

// The key of -g: it decides which frames are one node of a call graph.
enum class ChainKey : std::uint8_t {
  Function,
  Address,
  SourceLine,  // if the line is known; else the function
};
// Functions: one entry for each function. Addresses: one for each sampled address, with its source line.
// Names: as Functions, but all addresses without a symbol in one module are one entry; elsewhere each address
// is one.
enum class Grain : std::uint8_t { Names, Functions, Addresses };
// Source files in lines: "main.c:12", or with folders.
enum class SourceNames : std::uint8_t { Bare, WithFolders };

// Numbers identities from 0 up. An identity is four words, or an address in an address space.
template <class Id>
class Identities {
 public:
  struct Words {
    std::uint64_t kind = 0, space = 0, start = 0, end = 0;
    bool operator==(const Words&) const = default;
  };
  Id number_of(const Words& words) {
    const std::uint64_t hash = by_words_.hash(words.kind, words.space, words.start, words.end);
    const auto is_same = [&](std::uint32_t known) { return rows_[known].words == words; };
    const std::uint32_t row = by_words_.find_or_make(hash, is_same, [&] {
      rows_.push_back({words, new_number()});
      return static_cast<std::uint32_t>(rows_.size() - 1);
    });
    return rows_[row].number;
  }
  // An address never equals words.
  Id number_of_address(std::uint32_t space, std::uint64_t address) {
    return by_address_.find_or_make(space, address, [this] { return new_number(); });
  }
  Id new_number() { return Id{count_++}; }
  // Frees its memory. Do not use it afterwards.
  void forget() {
    by_words_.forget();
    by_address_.forget();
    rows_ = {};
  }

 private:
  struct Row {
    Words words;
    Id number{};
  };
  IndexTable<> by_words_;
  std::vector<Row> rows_;
  AddressTable<Id> by_address_;
  std::uint32_t count_ = 0;
};

class FunctionTable {
 public:
  // The session must outlive the table. All keys but Function need the grain Addresses, for which the
  // session's symbol options should include source lines.
  explicit FunctionTable(Session& session, ChainKey key = ChainKey::Function, Grain grain = Grain::Functions,
                         SourceNames sources = SourceNames::Bare);

  // Call it before the first look-up: functions of one name are then one node of a call graph, as in perf,
  // and have no parameters.
  void name_as_perf() { names_as_perf_ = true; }
  // Sets Function::shown_name() by the names of all functions so far.
  void show_parameters();
  // The same by the names of `other` too, as of another capture, so that both tables show a function by one
  // name. `other` must outlive this.
  void show_parameters_beside(const FunctionTable& other);
  const FunctionNames& names() const { return names_; }

  // Call it before the first look-up: functions then have mapped_bytes().
  void keep_mapped_bytes() { keeps_mapped_bytes_ = true; }

  // The functions of a call chain's frame: innermost inlined call first, at least one.
  // Valid until the next call.
  std::span<const FunctionId> of_frame(LocationId location);
  // The function of an end of a branch, without inlined calls. Each step (BranchSteps) has its own function,
  // equal except for the step.
  FunctionId of_step(LocationId location, StepId step);
  // The function of a frame that is not a code address: a mark between two stacks, or a thread. The name must
  // live as long as the table.
  FunctionId of_name(std::string_view name);
  // The function of a sample's own address, without inlined calls.
  FunctionId of_location(LocationId location);

  // Its address does not change.
  const Function& operator[](FunctionId id) const { return functions_[id]; }
  const StableArray<Function, FunctionId>& functions() const { return functions_; }
  std::size_t size() const { return functions_.size(); }
  // Frees the look-up tables: no location is looked up afterwards.
  void end_lookups();
  bool has_ended() const { return has_ended_; }

 private:
  // A function that is not in the table yet.
  struct Made {
    Function function;
    NamedFacts named;
    RareFacts rare;
  };
  Made function_of(const symbolize::Frame& frame, const Location& where, std::uint64_t unknown_at);
  FunctionId intern(Made made, std::uint64_t ip);
  FunctionId intern_address(Made& made);  // without a name, for the grain Functions
  FunctionId append_named(Made& made);
  FunctionId append(const Made& made);
  enum class ModuleId : std::uint32_t {};
  enum class ModuleNameId : std::uint32_t {};
  struct ModuleNumbers {
    std::uint32_t id = 0;    // from 1 up, different for each module
    std::uint32_t name = 0;  // Function::module_number
    std::uint32_t rank = 0;  // Function::module_rank
  };
  const ModuleNumbers& numbers_of(const symbolize::Module& module);  // valid until the next one
  std::uint32_t id_of(const symbolize::Module* module) {             // 0: there is none
    return module == nullptr ? 0 : numbers_of(*module).id;
  }
  std::uint32_t rank_of(const symbolize::Module& module, std::size_t met) const;
  SymbolId symbol_of(const Made& made);
  ChainKeyId chain_key_of(const Made& made);
  std::string_view line_text(const symbolize::Frame& frame);

  Resolver* resolver_;
  ChainKey key_;
  Grain grain_;
  SourceNames sources_;
  bool keeps_mapped_bytes_ = false, has_ended_ = false, names_as_perf_ = false;
  // kNo: not looked up. Separate arrays, so that they fit into the cache.
  IdMap<LocationId, FunctionId> alone_{kNo<FunctionId>};             // of samples' own addresses
  IdMap<LocationId, FunctionId> only_{kNo<FunctionId>};              // of frames that are one function
  std::unordered_map<LocationId, std::vector<FunctionId>> several_;  // of other frames
  StableArray<Function, FunctionId> functions_;
  std::deque<NamedFacts> named_;
  std::deque<RareFacts> rare_;
  IndexTable<FunctionId> by_identity_;
  // Functions without a name: the first at an address, and the others.
  IdMap<SymbolId, FunctionId> by_symbol_{kNo<FunctionId>};
  AddressTable<FunctionId> by_address_;
  AddressTable<FunctionId> by_step_;  // functions of branch ends: by step and the function without a step
  std::unordered_map<std::string_view, FunctionId> of_names_;  // see of_name()
  format::SeededTextHash hash_;
  FunctionNames names_{FunctionNames::Texts::Stay};
  std::size_t named_so_far_ = 0;  // names_.size() at the last show_parameters()
  KeyNumbers<ModuleNameId, std::string_view> module_names_;
  std::unordered_map<std::string, std::uint32_t> listed_;  // modules of the build id table
  KeyNumbers<ModuleId, const symbolize::Module*> met_modules_;
  IdVector<ModuleId, ModuleNumbers> module_numbers_;
  Identities<SymbolId> symbols_;
  Identities<ChainKeyId> chain_keys_;
  std::map<std::string, std::uint32_t, std::less<>> lines_;
};

}  // namespace tacho::report
