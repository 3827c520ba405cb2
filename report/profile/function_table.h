// The functions of a profile, each once: what the numbered places of a capture (Location) stand for. Names
// are looked up once for each distinct place.
//
// Three questions have three answers in perf's report, and so a function has three numbers:
// - Its id: what is shown of it differs from all others'.
// - Its `symbol`: one row of `--sort sym`. Modules are told apart by their short names there, and unknown
//   functions by their address alone.
// - Its `chain_key`: one node of a call graph. Modules are told apart as such there, inlined calls by name.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/base/large_pages.h"
#include "format/base/seeded_hash.h"
#include "report/samples/address_table.h"
#include "report/samples/by_number.h"
#include "report/samples/index_table.h"
#include "report/samples/session.h"
#include "report/samples/stable_array.h"
#include "symbolize/frame.h"

namespace tacho::report {

// What makes one node of frames in a call graph: -g's key.
enum class ChainKey : std::uint8_t {
  Function,
  Address,
  SourceLine,  // where the line is known; else the function
};
// Whether a function is told once, or once for each address that was met in it, with its source line. Where
// nobody knows a function, each address is one of its own, but for Names: there they are one in each module.
enum class Grain : std::uint8_t { Names, Functions, Addresses };
// How lines name their files: "main.c:12" or with the folders.
enum class SourceNames : std::uint8_t { Bare, WithFolders };

// What few functions have.
struct RareFacts {
  // Of a variable, whose rows say where in it: where it begins as an address of the process that first_ip is
  // of.
  std::uint64_t runtime_start = 0;
  std::uint64_t mapped_bytes = 0;  // of the mapping that it was met in first; only where they are kept
  // "main.c:12", or where that is not known "+20", the place in the function; only with the grain Addresses.
  std::string_view line;
  std::uint32_t step = 0;  // in BranchSteps
  bool operator==(const RareFacts&) const = default;
};

// What a function has that is no bare address.
struct NamedFacts {
  std::string_view name;            // lives as long as the session
  std::uint64_t end = 0;            // see Function::start
  const RareFacts* rare = nullptr;  // null: none
};

// A capture may have millions of these, most without a name: what takes no bytes here counts.
struct Function {
  const symbolize::Module* module = nullptr;  // null: nothing was mapped there
  // Where it begins and ends, relative to its module as frames are shown. Of an unknown one `start` is the
  // address itself (with the grain Names 0): as it was sampled where it stands in a call chain, else relative
  // to the module.
  std::uint64_t start = 0;
  std::uint64_t first_ip = 0;         // where it was met first; with the grain Addresses: where it is
  const NamedFacts* named = nullptr;  // null: none
  std::uint32_t module_rank = 0;    // of two modules, perf shows the one with the higher rank first; 0: none
  std::uint32_t name_number = 0;    // equal names have equal numbers; 0: unknown
  std::uint32_t module_number = 0;  // equal short names have equal numbers; 0: nothing was mapped there
  std::uint32_t symbol = 0;
  std::uint32_t chain_key = 0;
  char level = '.';   // k kernel, . user, H hypervisor
  char source = '!';  // where the name came from, see symbolize::Frame
  bool is_inlined : 1 = false;
  bool is_data : 1 = false;     // what is named is a variable
  bool has_line : 1 = false;    // line() is a source line
  bool is_unnamed : 1 = false;  // no symbol names it: name() is its module and start
  bool is_guess : 1 = false;    // of a perf map that may be another process's

  // Whether nothing says that the name is that of what ran.
  bool is_unsure() const {
    return named != nullptr && !named->name.empty() &&
           (is_guess || (module != nullptr && module->is_unsure()));
  }

  // Empty: unknown.
  std::string_view name() const { return named == nullptr ? std::string_view() : named->name; }
  bool has_symbol() const { return !name().empty() && !is_unnamed; }
  std::uint64_t end() const { return named == nullptr ? 0 : named->end; }
  std::uint64_t runtime_start() const { return rare() == nullptr ? 0 : rare()->runtime_start; }
  std::uint64_t mapped_bytes() const { return rare() == nullptr ? 0 : rare()->mapped_bytes; }
  std::string_view line() const { return rare() == nullptr ? std::string_view() : rare()->line; }
  std::uint32_t step() const { return rare() == nullptr ? 0 : rare()->step; }
  const RareFacts* rare() const { return named == nullptr ? nullptr : named->rare; }
};
static_assert(sizeof(Function) <= 56);

// Numbers of keys, from 0 up. What it takes lies in few pieces, so that all of it can be given back: of a
// capture's modules there may be millions.
template <class Key>
class KeyNumbers {
 public:
  std::uint32_t size() const { return static_cast<std::uint32_t>(keys_.size()); }
  // `hashed`: of the key alone.
  std::uint32_t number_of(std::uint64_t hashed, const Key& key) {
    return by_hash_.find_or_make(
        hashed, [&](std::uint32_t known) { return keys_[known] == key; },
        [&] {
          keys_.push_back(key);
          return size() - 1;
        });
  }
  void forget() {
    by_hash_.forget();
    decltype(keys_)().swap(keys_);
  }

 private:
  IndexTable by_hash_;
  std::vector<Key, format::LargePages<Key>> keys_;
};

// Numbers what is told apart by four words, or by an address in a space, from 0 up.
class Identities {
 public:
  struct Words {
    std::uint64_t kind = 0, space = 0, start = 0, end = 0;
    bool operator==(const Words&) const = default;
  };
  std::uint32_t number_of(const Words& words);
  // An address is never the same as words.
  std::uint32_t number_of_address(std::uint32_t space, std::uint64_t address) {
    return by_address_.find_or_make(space, address, [this] { return count_++; });
  }
  void prefetch_address(std::uint32_t space, std::uint64_t address) const {
    by_address_.prefetch(space, address);
  }
  std::uint32_t new_number() { return count_++; }
  // Gives its memory back. Numbers that were given out are not given again.
  void forget() {
    by_words_.forget();
    by_address_.forget();
    rows_ = {};
  }

 private:
  struct Row {
    Words words;
    std::uint32_t number = 0;
  };
  IndexTable by_words_;
  std::vector<Row> rows_;
  AddressTable by_address_;
  std::uint32_t count_ = 0;
};

class FunctionTable {
 public:
  // The session must outlive the table. Every key but Function has the grain Addresses, for which the
  // session's symbol options should ask for source lines.
  explicit FunctionTable(Session& session, ChainKey key = ChainKey::Function, Grain grain = Grain::Functions,
                         SourceNames sources = SourceNames::Bare);

  // Before anything is asked for: functions have their mapped_bytes().
  void keep_mapped_bytes() { keeps_mapped_bytes_ = true; }

  // Of a frame of a call chain, by the number of its location: the innermost inlined call first, at least
  // one. Valid until the next question.
  std::span<const std::uint32_t> of_frame(std::uint32_t location);
  // The same where there is one: every frame of every chain comes here, and most know the answer. kNone: it
  // was not asked for yet, or there are several.
  static constexpr std::uint32_t kNone = ~0U;
  std::uint32_t only_of_frame(std::uint32_t location) const { return only_.find(location); }
  // Brings what is asked for next into the cache: the answers themselves; where there is none yet, the place,
  // which must be known to look up what an address without a name stands for.
  void prefetch_frame(std::uint32_t location) const { only_.prefetch(location); }
  void prefetch_place(std::uint32_t location) const { alone_.prefetch(location); }
  void prefetch_location(std::uint32_t location) const {
    if (only_.find(location) == kNone) __builtin_prefetch(&resolver_->location(location));
  }
  void prefetch_address(std::uint32_t location) const {
    if (only_.find(location) == kNone) symbols_.prefetch_address(0, resolver_->location(location).ip.value);
  }
  // The same of an end of a branch, which stands alone: without the inlined calls in it. Each step
  // (BranchSteps) has a function of its own there; what is told of that, its step aside, is the same.
  std::uint32_t of_step(std::uint32_t location, std::uint32_t step);
  // Of a frame that is no place in code: a mark between two stacks, a thread. The name must live as long as
  // the table.
  std::uint32_t of_name(std::string_view name);
  // Of a sample's own place, which stands alone: without the inlined calls in it.
  std::uint32_t of_place(std::uint32_t location);

  const Function& operator[](std::uint32_t id) const { return functions_[id]; }  // stays where it is
  const StableArray<Function>& functions() const { return functions_; }          // by id
  std::size_t size() const { return functions_.size(); }
  // Gives back the memory that finding functions takes: no places are asked for any more.
  void end_lookups();
  bool has_ended() const { return has_ended_; }

 private:
  // One that is not in the table yet.
  struct Made {
    Function function;
    NamedFacts named;
    RareFacts rare;
  };
  Made function_of(const symbolize::Frame& frame, const Location& where, std::uint64_t unknown_at);
  std::uint32_t intern(Made made, std::uint64_t ip);
  std::uint32_t intern_address(Made& made);  // without a name, with the grain Functions
  std::uint32_t add(Made& made);
  std::uint32_t append(const Made& made);
  std::uint32_t number_of_text(KeyNumbers<std::string_view>& numbers, std::string_view text) {
    return numbers.number_of(hash_(text), text);
  }
  struct ModuleNumbers {
    std::uint32_t id = 0;    // from 1 up: modules have different ones
    std::uint32_t name = 0;  // Function::module_number
    std::uint32_t rank = 0;  // Function::module_rank
  };
  const ModuleNumbers& numbers_of(const symbolize::Module& module);  // valid until the next one
  std::uint32_t id_of(const symbolize::Module* module) {             // 0: there is none
    return module == nullptr ? 0 : numbers_of(*module).id;
  }
  std::uint32_t rank_of(const symbolize::Module& module, std::size_t met) const;
  std::uint32_t symbol_of(const Made& made);
  std::uint32_t chain_key_of(const Made& made);
  std::span<const std::uint32_t> list_of(std::uint32_t only) { return {&(only_answer_ = only), 1}; }
  std::string_view line_text(const symbolize::Frame& frame);

  Resolver* resolver_;
  ChainKey key_;
  Grain grain_;
  SourceNames sources_;
  bool keeps_mapped_bytes_ = false, has_ended_ = false;
  // By location number, kNone where it was not asked for. Apart, so that they stay in the cache.
  ByNumber<std::uint32_t> alone_{kNone};
  ByNumber<std::uint32_t> only_{kNone};  // of frames that are one function
  ByNumber<std::uint32_t> many_{kNone};  // of others: index of a list
  std::deque<std::vector<std::uint32_t>> lists_;
  StableArray<Function> functions_;
  std::deque<NamedFacts> named_;
  std::deque<RareFacts> rare_;
  std::uint32_t only_answer_ = 0;  // of of_frame(): a list of one
  IndexTable by_identity_;
  // Functions without a name: the first at an address, by its symbol, and the others.
  ByNumber<std::uint32_t> by_symbol_{kNone};
  AddressTable by_address_;
  AddressTable by_step_;  // of functions that are ends of branches: step and the function without one
  std::unordered_map<std::string_view, std::uint32_t> of_names_;  // see of_name()
  format::SeededTextHash hash_;
  KeyNumbers<std::string_view> names_, modules_;
  std::unordered_map<std::string, std::uint32_t> listed_;  // modules of the build id table
  RowHash hash_of_module_;
  KeyNumbers<const symbolize::Module*> met_modules_;
  std::vector<ModuleNumbers, format::LargePages<ModuleNumbers>> module_numbers_;  // by number in these
  const symbolize::Module* last_module_ = nullptr;
  ModuleNumbers last_numbers_;  // of the last module: mostly the next one's too
  Identities symbols_, chain_keys_;
  std::map<std::string, std::uint32_t, std::less<>> lines_;
};

}  // namespace tacho::report
