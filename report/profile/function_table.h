// The table of functions: maps code addresses (Location) to interned functions. Names are looked up
// once for each distinct address.
//
// perf's report compares functions in three ways, so a function has three numbers:
// - `id`: different for functions that are printed differently.
// - `symbol`: equal for functions of one row of `--sort sym`. There modules are compared by short name, and
//   unknown functions by address alone.
// - `chain_key`: equal for functions of one node of a call graph. There modules are compared by identity, and
//   inlined calls by name.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/base/large_pages.h"
#include "format/base/seeded_hash.h"
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

// Facts that only few functions have.
struct RareFacts {
  // Of a variable, whose rows show an offset: its start, as an address of the process of first_ip.
  std::uint64_t runtime_start = 0;
  std::uint64_t mapped_bytes = 0;  // size of the mapping of its first sample; only with keep_mapped_bytes()
  // "main.c:12"; if the line is unknown, "+20", the offset in the function. Only with the grain Addresses.
  std::string_view line;
  StepId step = kNo<StepId>;
  bool operator==(const RareFacts&) const = default;
};

// Facts of functions with a name.
struct NamedFacts {
  std::string_view name;            // lives as long as the session
  std::string_view shown_name;      // see FunctionTable::show_parameters(); lives as long as the table
  std::uint64_t end = 0;            // see Function::start
  const RareFacts* rare = nullptr;  // null: none
  std::uint32_t name_number = 0;    // Function::name_number
};

// A capture may have millions of functions, most without a name, so each byte counts.
struct Function {
  const symbolize::Module* module = nullptr;  // null: nothing is mapped there
  // Its range, relative to its module as frames are printed. `start` of an unknown function is its address (0
  // with the grain Names): as sampled for frames of call chains, else relative to the module.
  std::uint64_t start = 0;
  std::uint64_t first_ip = 0;         // its first sampled address; with the grain Addresses: its address
  const NamedFacts* named = nullptr;  // null: none
  std::uint32_t module_rank = 0;      // perf prints the module of higher rank first; 0: none
  std::uint32_t name_number = 0;      // of FunctionNames, plus 1; 0: unknown
  std::uint32_t module_number = 0;    // equal short names have equal numbers; 0: nothing is mapped there
  SymbolId symbol{};                  // equal: one row of --sort symbol
  ChainKeyId chain_key{};             // equal: one node of a call graph
  char level = '.';                   // k kernel, . user, H hypervisor
  char source = '!';                  // the source of the name, see symbolize::Frame
  bool is_inlined : 1 = false;
  bool is_data : 1 = false;     // the symbol is a variable
  bool has_line : 1 = false;    // line() is a source line
  bool is_unnamed : 1 = false;  // no symbol: name() is the module and the start
  bool is_guess : 1 = false;    // from a perf map that may be another process's

  // Whether it is unknown if the name belongs to the code that ran.
  bool is_unsure() const {
    return named != nullptr && !named->name.empty() &&
           (is_guess || (module != nullptr && module->is_unsure()));
  }

  // In perf's short form. Empty: unknown.
  std::string_view name() const { return named == nullptr ? std::string_view() : named->name; }
  // The same with parameters, where another function has this name.
  std::string_view shown_name() const { return named == nullptr ? std::string_view() : named->shown_name; }
  bool has_symbol() const { return !name().empty() && !is_unnamed; }
  std::uint64_t end() const { return named == nullptr ? 0 : named->end; }
  std::uint64_t runtime_start() const { return rare() == nullptr ? 0 : rare()->runtime_start; }
  std::uint64_t mapped_bytes() const { return rare() == nullptr ? 0 : rare()->mapped_bytes; }
  std::string_view line() const { return rare() == nullptr ? std::string_view() : rare()->line; }
  StepId step() const { return rare() == nullptr ? kNo<StepId> : rare()->step; }
  const RareFacts* rare() const { return named == nullptr ? nullptr : named->rare; }
};
static_assert(sizeof(Function) <= 56);

// perf's letter of a CPU mode: Function::level.
char level_of(std::uint8_t cpumode);

// Hash table from keys to numbers from 0 up. It has few memory blocks, so that all of it can be freed: a
// capture may have millions of modules.
template <class Id, class Key>
class KeyNumbers {
 public:
  // Computes hashes of integers for number_of().
  const RowHash& hash() const { return by_hash_.hash; }
  // `hashed`: a hash of the key alone.
  Id number_of(std::uint64_t hashed, const Key& key) {
    return by_hash_.find_or_make(
        hashed, [&](Id known) { return keys_[known] == key; }, [&] { return keys_.push_back(key); });
  }
  const Key& operator[](Id id) const { return keys_[id]; }
  // Frees its memory.
  void forget() {
    by_hash_.forget();
    keys_ = {};
  }

 private:
  IndexTable<Id> by_hash_;
  IdVector<Id, Key> keys_;
};

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
  // The same for a frame that is one function, as most are: a fast path, called for every frame of every
  // chain. kNo: not looked up yet, or several functions.
  FunctionId only_of_frame(LocationId location) const { return only_.find(location); }
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
  // A function with a symbol or a range, as a row of its module's symbol table in one mode.
  struct TableRow {
    std::uint32_t space = 0;
    std::uint32_t row = 0;
  };
  std::optional<TableRow> table_row_of(const Location& where);
  FunctionId known_by(const std::optional<TableRow>& row) const {
    return row ? by_row_.find(row->space, row->row) : kNo<FunctionId>;
  }
  void keep(const std::optional<TableRow>& row, FunctionId function);
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
  std::span<const FunctionId> list_of(FunctionId only) { return {&(only_answer_ = only), 1}; }
  std::string_view line_text(const symbolize::Frame& frame);

  Resolver* resolver_;
  ChainKey key_;
  Grain grain_;
  SourceNames sources_;
  bool keeps_mapped_bytes_ = false, has_ended_ = false, names_as_perf_ = false;
  bool has_rows_ = false;  // functions are found by their rows, where they can be
  // kNo: not looked up. Separate arrays, so that they fit into the cache.
  IdMap<LocationId, FunctionId> alone_{kNo<FunctionId>};       // of samples' own addresses
  IdMap<LocationId, FunctionId> only_{kNo<FunctionId>};        // of frames that are one function
  IdMap<LocationId, std::uint32_t> many_{kNo<std::uint32_t>};  // of other frames: index of a list
  std::deque<std::vector<FunctionId>> lists_;
  StableArray<Function, FunctionId> functions_;
  std::deque<NamedFacts> named_;
  std::deque<RareFacts> rare_;
  FunctionId only_answer_{};  // for of_frame(): a list of one
  IndexTable<FunctionId> by_identity_;
  // Functions without a name: the first at an address, and the others.
  IdMap<SymbolId, FunctionId> by_symbol_{kNo<FunctionId>};
  AddressTable<FunctionId> by_address_;
  AddressTable<FunctionId> by_row_;  // see TableRow
  struct Table {
    const symbolize::Mapping* mapping = nullptr;
    symbolize::SymbolTable* names = nullptr;
  };
  std::array<Table, 64> tables_{};    // of mappings, by their addresses
  AddressTable<FunctionId> by_step_;  // functions of branch ends: by step and the function without a step
  std::unordered_map<std::string_view, FunctionId> of_names_;  // see of_name()
  format::SeededTextHash hash_;
  FunctionNames names_{FunctionNames::Texts::Stay};
  std::size_t named_so_far_ = 0;  // names_.size() at the last show_parameters()
  KeyNumbers<ModuleNameId, std::string_view> module_names_;
  std::unordered_map<std::string, std::uint32_t> listed_;  // modules of the build id table
  KeyNumbers<ModuleId, const symbolize::Module*> met_modules_;
  IdVector<ModuleId, ModuleNumbers> module_numbers_;
  const symbolize::Module* last_module_ = nullptr;
  ModuleNumbers last_numbers_;  // of the last module, which is usually the next one's too
  Identities<SymbolId> symbols_;
  Identities<ChainKeyId> chain_keys_;
  std::map<std::string, std::uint32_t, std::less<>> lines_;
};

// The first address of a function.
struct FrameAddress {
  LocationId location = kNo<LocationId>;
  std::uint32_t inlined = 0;  // index of the call at that location, innermost first
};

// The source line of a function in a picture, "main.c:12": where the function starts, or its file
// alone if that line was not packed; for an inlined call, the line in it. Safe to print. Empty: unknown. A
// file whose lines cannot be read is then reported by Resolver::report_missing().
std::string source_line(Resolver& resolver, const FrameAddress& address);

// The first addresses of a picture's frames, by their numbers.
class FrameAddresses {
 public:
  void keep(std::uint32_t frame, const FrameAddress& address) {
    if (addresses_.size() <= frame) addresses_.resize(frame + 1);
    if (addresses_[frame].location == kNo<LocationId>) addresses_[frame] = address;
  }
  FrameAddress of(std::uint32_t frame) const {
    return frame < addresses_.size() ? addresses_[frame] : FrameAddress();
  }
  std::size_t size() const { return addresses_.size(); }

 private:
  std::vector<FrameAddress> addresses_;
};

// flamegraph.pl has colours for these endings.
inline constexpr std::string_view kInlinedMark = "_[i]", kKernelMark = "_[k]", kJitMark = "_[j]";

// Marks that names get.
struct FrameMarks {
  bool kernel = false;     // kKernelMark
  bool jit = false;        // end with kJitMark
  bool addresses = false;  // code without a name gets its address
};

// The frame's linker name for FunctionNames. DWARF has none for static functions of C++.
inline std::string_view linker_name_of(const symbolize::Frame& frame) {
  return frame.is_inlined && frame.linker_name == frame.function ? std::string_view() : frame.linker_name;
}

// The name of a frame in folded stacks and pictures: the whole name of its function, with its mark;
// "[libc.so.6]" for code without a name.
std::string name_of_frame(const symbolize::Frame& frame, const FrameMarks& marks);
// Whether the path is a perf map, /tmp/perf-PID.map.
bool is_jit_map(std::string_view module);

// The kind of a frame: pictures colour frames by it, and their files contain the letters.
enum class FrameKind : char {
  All = 'a',      // the root frame
  Group = 't',    // a thread, a processor, a control group: no code
  User = 'u',     // a function of a file
  Kernel = 'k',   // of the kernel or one of its modules
  Inlined = 'i',  // a call that was inlined
  Jit = 'j',      // made at run time
  Bpf = 'b',      // a BPF program
  Unnamed = 'n',  // code without a symbol
  Waker = 'v',    // a frame of a waker
  Mark = 'x',     // between the stacks of a wait and of its waker
  // States of a thread: frames below its stacks in a graph of wall time.
  OnCpu = 'o',
  Runnable = 'r',
  Waiting = 'w',
};
FrameKind kind_of_code(const symbolize::Frame& frame);

// The names of call chain frames in folded stacks and flame graphs, each made once for each function.
class FrameNames {
 public:
  enum class Order : std::uint8_t { RootFirst, LeafFirst };
  // Whether all addresses of a function have the same names.
  enum class Of : std::uint8_t { Functions, Locations };
  // Appends the numbers that a view gives to a frame's names, innermost first: usually one. With
  // Of::Functions, the frame has only its module, its function's name and start, and whether it is inlined.
  // `address`: its first address.
  using Make = std::function<void(const symbolize::Frame& frame, const FrameAddress& address,
                                  std::vector<std::uint32_t>& names)>;
  // The session must outlive this.
  FrameNames(Session& session, Of of, Make make)
      : functions_(session, ChainKey::Function, Grain::Names),
        resolver_(&session.resolver()),
        of_(of),
        make_(std::move(make)) {}

  // Appends the numbers of the names of frames. `frames`: leaf first.
  void append(std::span<const LocationId> frames, Order order, std::vector<std::uint32_t>& names);

 private:
  // The names of a frame, or of all frames of an address, innermost first: usually one, which is stored here;
  // several are in several_.
  struct NameList {
    static constexpr std::uint32_t kNotMade = ~std::uint32_t{0};
    std::uint32_t count = kNotMade;
    std::uint32_t first = 0;  // the name, or the index of the first one in several_
  };
  void add(const NameList& list, std::vector<std::uint32_t>& names) const;
  NameList of_location(LocationId location);
  NameList of_function(FunctionId function, const FrameAddress& address);
  NameList kept(std::span<const std::uint32_t> names);

  FunctionTable functions_;
  Resolver* resolver_;
  Of of_;
  Make make_;
  IdMap<FunctionId, NameList> by_function_;
  IdMap<LocationId, NameList> by_location_;  // with Of::Locations
  std::vector<std::uint32_t> several_, made_;
};

}  // namespace tacho::report
