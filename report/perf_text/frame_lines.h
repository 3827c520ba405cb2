// Lines of call chains as perf script prints them, for any number of places: what a place's function and
// module give to its line is kept, and a place is found again in the module's table of symbols. So most lines
// take neither memory nor the lock of what names places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/base/seeded_hash.h"
#include "report/output/text_output.h"
#include "report/perf_text/sample_text.h"
#include "report/perf_text/script_fields.h"
#include "report/samples/index_table.h"
#include "report/samples/resolver.h"
#include "symbolize/frame.h"
#include "symbolize/mapping_list.h"
#include "symbolize/names/symbol_table.h"
#include "tsl/robin_map.h"

namespace tacho::report {

// It belongs to one thread; others with the same resolver may write at the same time.
class FrameLines {
 public:
  struct Options {
    Fields fields;  // of these, what decides the text of a frame: see kFields
    Names names = Names::Safe;
    SourcePath source_path = SourcePath::Last;
    bool is_pipe = false;          // more may become known of a module later
    std::mutex* naming = nullptr;  // locked while the resolver is asked; null: no other thread asks it
  };
  static constexpr Fields kFields{Field::Ip, Field::Sym, Field::Symoff, Field::Dso, Field::Srcline};

  // `resolver` must outlive it.
  FrameLines(Resolver& resolver, const Options& options) : resolver_(&resolver), options_(options) {}

  // A line for the place, and one for each inlined call that is shown.
  void write(TextBuffer& out, const Location& place) { write(out, place, 0); }
  // " SYMBOL+OFFSET (MODULE)" of a place that stands alone, behind its address.
  void write_alone(TextBuffer& out, const Location& place) { write(out, place, kAlone); }

 private:
  static constexpr std::uint32_t kNone = IndexTable::kNone;
  static constexpr std::uint8_t kUnwound = 8, kCaller = 16, kAlone = 32, kFree = 0xff;

  // "TAB ADDRESS SYMBOL+OFFSET (MODULE)": what all places of a function share.
  struct Function {
    std::string_view name;  // as resolved: its address is its key, with the module
    const symbolize::Module* module = nullptr;
    std::string_view before, behind;  // the offset, or in place of one
    bool has_offset = false;
    bool is_shown_as_it_ran = false;
  };
  // A place that was met lately.
  struct Line {
    const symbolize::Mapping* mapping = nullptr;
    std::uint64_t ip = 0;
    std::uint64_t address = 0;       // as shown
    std::uint32_t function = kNone;  // number
    std::uint32_t offset = 0;        // in the function, bytes
    std::uint8_t mode = kFree;       // the location's cpumode, with kUnwound, kCaller and kAlone
  };
  // What a row of a table of symbols gives: the first `size` bytes from its start are its function's.
  struct RowText {
    std::uint32_t function = kNone, size = 0;
  };
  // Of a module whose names come from tables alone.
  struct ModuleNames {
    bool is_plain = false;                           // false: the resolver must be asked each time
    symbolize::SymbolTable* table = nullptr;         // null: it has no names
    const symbolize::SymbolTable* ranges = nullptr;  // of functions without symbols; null: not read yet
    // By row of `table` and, with kRangeRow, of `ranges`.
    tsl::robin_map<std::uint32_t, RowText, format::SeededHash> rows;
    std::uint32_t unknown = kNone;  // the function of code without a name
  };
  struct PlaceKey {
    const symbolize::Mapping* mapping = nullptr;
    std::uint64_t ip = 0;
    std::uint8_t mode = 0;
    bool operator==(const PlaceKey&) const = default;
  };
  struct PlaceHash {
    RowHash hash;
    std::size_t operator()(const PlaceKey& key) const {
      return hash(reinterpret_cast<std::uintptr_t>(key.mapping), key.ip, key.mode);
    }
  };
  static constexpr std::uint32_t kRangeRow = std::uint32_t{1} << 31;
  // Where what is found out about a place belongs beside its line.
  struct Found {
    ModuleNames* names = nullptr;
    std::uint32_t row = kNone;  // as a key of rows
    std::uint64_t start = 0;    // of the row, as shown
  };

  void write(TextBuffer& out, const Location& place, std::uint8_t more_mode);
  std::uint32_t look_up(const Location& place, Found& found);
  ModuleNames& names_of(const symbolize::Mapping& mapping);
  void ask(TextBuffer& out, std::size_t at, const Location& place, std::uint8_t mode, const Found& found);
  std::uint32_t function_of(const symbolize::Frame& frame);
  void write_line(TextBuffer& out, std::size_t at) const;
  void forget_if_large();
  std::unique_lock<std::mutex> lock() const {
    return options_.naming == nullptr ? std::unique_lock<std::mutex>() : std::unique_lock(*options_.naming);
  }

  static constexpr std::size_t kLines = std::size_t{1} << 12;  // they stay in a processor's cache

  Resolver* resolver_;
  Options options_;
  std::vector<Line> lines_ = std::vector<Line>(kLines);
  // Of places with inlined calls or lines of source: as perf's, a name may hang on how often it was asked for
  // (symbolize::StandIn::AtFirst), so each is asked for once.
  std::unordered_map<PlaceKey, std::string_view, PlaceHash> wholes_;
  TextStore whole_store_;
  std::vector<Function> functions_;
  std::uint32_t nowhere_ = kNone;  // of what is not mapped
  IndexTable by_name_;             // of functions_
  std::unordered_map<const symbolize::Module*, ModuleNames> modules_;
  TextStore store_;
  TextBuffer scratch_;
};

}  // namespace tacho::report
