// The lines of call chains, each distinct text made once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/base/seeded_hash.h"
#include "report/output/text_output.h"
#include "report/perf_text/frame_text.h"
#include "report/perf_text/script_fields.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/resolver.h"
#include "report/samples/tables.h"
#include "symbolize/address_space.h"
#include "symbolize/frame.h"
#include "symbolize/names/symbol_table.h"
#include "tsl/robin_map.h"

namespace tacho::report {

// Writes lines of call chains as perf script prints them. The text of each function and module is cached, and
// an address is looked up in its module's table of symbols, so most lines allocate nothing and do not lock
// the resolver. Used by one thread; others may write with the same resolver at the same time.
class FrameLines {
 public:
  struct Options {
    Fields fields;  // only kFields of these change the text of a frame
    Names names = Names::Safe;
    SourcePath source_path = SourcePath::Last;
    bool is_pipe = false;          // modules may get names later
    std::mutex* naming = nullptr;  // locked while the resolver is used; null: no other thread uses it
  };
  static constexpr Fields kFields{Field::Ip, Field::Sym, Field::Symoff, Field::Dso, Field::Srcline};

  // `resolver` must outlive this.
  FrameLines(Resolver& resolver, const Options& options) : resolver_(&resolver), options_(options) {}

  // Writes a line for the address, and one for each inlined call that is shown.
  void write(TextBuffer& out, const Location& location) { write(out, location, 0); }
  // Writes " SYMBOL+OFFSET (MODULE)" after an address that is not in a call chain.
  void write_alone(TextBuffer& out, const Location& location) { write(out, location, kAlone); }

 private:
  static constexpr std::uint32_t kNone = kNo<std::uint32_t>;
  static constexpr std::uint8_t kUnwound = 8, kCaller = 16, kAlone = 32, kFree = 0xff;

  // "TAB ADDRESS SYMBOL+OFFSET (MODULE)": the parts that are equal for all addresses of a function.
  struct Function {
    std::string_view name;  // as resolved; its pointer and the module are the key
    const symbolize::Module* module = nullptr;
    std::string_view before, after;  // the parts before and after the offset, or the text that replaces it
    bool has_offset = false;
    bool is_shown_as_it_ran = false;
  };
  // A cached address.
  struct Line {
    const symbolize::Mapping* mapping = nullptr;
    std::uint64_t ip = 0;
    std::uint64_t address = 0;       // as shown
    std::uint32_t function = kNone;  // number
    std::uint32_t offset = 0;        // in the function, bytes
    std::uint8_t mode = kFree;       // the location's cpumode, with kUnwound, kCaller and kAlone
  };
  // The row of a symbol table: its first `size` bytes belong to a function.
  struct RowText {
    std::uint32_t function = kNone, size = 0;
  };
  // A module all of whose names are in tables.
  struct ModuleNames {
    bool is_plain = false;                               // false: the resolver is called each time
    symbolize::SymbolTable* table = nullptr;             // null: it has no names
    const symbolize::FunctionRanges* unnamed = nullptr;  // of `table`; null: not read yet
    // By row of `table`; with kRangeRow, by number in `unnamed`.
    tsl::robin_map<std::uint32_t, RowText, format::SeededHash> rows;
    std::uint32_t unknown = kNone;  // the entry for code without a name
  };
  struct LocationKey {
    const symbolize::Mapping* mapping = nullptr;
    std::uint64_t ip = 0;
    std::uint8_t mode = 0;
    bool operator==(const LocationKey&) const = default;
  };
  struct LocationHash {
    RowHash hash;
    std::size_t operator()(const LocationKey& key) const {
      return hash(reinterpret_cast<std::uintptr_t>(key.mapping), key.ip, key.mode);
    }
  };
  static constexpr std::uint32_t kRangeRow = std::uint32_t{1} << 31;
  // The result of a look-up, for the caches.
  struct Found {
    ModuleNames* names = nullptr;
    std::uint32_t row = kNone;  // as a key of rows
    std::uint64_t start = 0;    // of the row, as shown
  };

  void write(TextBuffer& out, const Location& location, std::uint8_t more_mode);
  std::uint32_t look_up(const Location& location, Found& found);
  ModuleNames& names_of(const symbolize::Mapping& mapping);
  void resolve(TextBuffer& out, std::size_t at, const Location& location, std::uint8_t mode,
               const Found& found);
  std::uint32_t function_of(const symbolize::Frame& frame);
  void write_line(TextBuffer& out, std::size_t at) const;
  void forget_if_large();
  std::unique_lock<std::mutex> lock() const {
    return options_.naming == nullptr ? std::unique_lock<std::mutex>() : std::unique_lock(*options_.naming);
  }

  static constexpr std::size_t kLines = std::size_t{1} << 12;  // these fit into a CPU's cache

  Resolver* resolver_;
  Options options_;
  std::vector<Line> lines_ = std::vector<Line>(kLines);
  // Whole texts of addresses with inlined calls or source lines. As in perf, a name may depend on how often
  // it was resolved (symbolize::UseSymbolName::AsPerf), so each is resolved once.
  std::unordered_map<LocationKey, std::string_view, LocationHash> wholes_;
  TextStore whole_store_;
  std::vector<Function> functions_;
  std::uint32_t nowhere_ = kNone;  // the entry for code that is not mapped
  IndexTable<> by_name_;           // of functions_
  std::unordered_map<const symbolize::Module*, ModuleNames> modules_;
  TextStore store_;
  TextBuffer scratch_;
};

}  // namespace tacho::report
