// The fields of a sample as perf script prints them: the start of the line, call chains, instructions, and
// the rare fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "format/base/seeded_hash.h"
#include "format/container/environment.h"
#include "report/decode/instructions.h"
#include "report/output/text_output.h"
#include "report/perf_text/script_fields.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/resolver.h"
#include "report/samples/session.h"
#include "report/samples/source_files.h"
#include "report/samples/tables.h"
#include "symbolize/address_space.h"
#include "symbolize/frame.h"
#include "symbolize/names/symbol_table.h"
#include "tsl/robin_map.h"

namespace tacho::report {

enum class TimeDigits : std::uint8_t { Microseconds, Nanoseconds };
enum class TimeBase : std::uint8_t { Clock, FirstLine, LineBefore };  // as recorded; --reltime; --deltatime

// The time of a sample as `script` prints it.
class TimeText {
 public:
  TimeText(TimeDigits digits, TimeBase base, std::optional<format::ClockData> clock)
      : digits_(digits), base_(base), clock_(clock) {}

  TimeBase base() const { return base_; }
  // Writes "    5.001234: ".
  void write(TextBuffer& out, std::uint64_t time);
  // Writes "2023-11-14 22:13:20.124191 " in the reader's time zone. Only for captures with HEADER_CLOCK_DATA.
  void write_of_day(TextBuffer& out, std::uint64_t time) const;

 private:
  std::uint64_t since_base(std::uint64_t time);
  void write_second(TextBuffer& out, std::uint64_t second);
  void write_fraction(TextBuffer& out, std::uint64_t time) const;

  TimeDigits digits_;
  TimeBase base_;
  std::optional<format::ClockData> clock_;
  std::uint64_t first_ = 0, before_ = 0;  // 0: no line yet
  // The text of the last second, "    5.": most lines have the same second as the line before.
  std::uint64_t shown_second_ = 0;
  char second_text_[TextBuffer::kShort] = {};
  std::size_t second_size_ = 0;  // 0: none yet
};

struct LineStart {
  std::string_view comm;  // made safe already
  std::uint32_t pid = ~0U, tid = ~0U, cpu = ~0U;
  std::uint64_t time = ~std::uint64_t{0};  // ns
  std::uint16_t misc = 0;
  std::uint32_t record_type = 0;
  bool is_comm_padded = true;
};
void write_line_start(TextBuffer& out, const Fields& fields, const LineStart& start, TimeText& times);

enum class SourcePath : std::uint8_t { Last, Whole };  // of a source file: file name; full path

// Writes "SYMBOL+0xOFFSET" or "[unknown]".
void write_symbol(TextBuffer& out, const symbolize::Frame& frame, const Fields& fields, Names names);
// Writes "MODULE".
void write_module_name(TextBuffer& out, const symbolize::Frame& frame, Names names);
// Writes " (MODULE)".
void write_module(TextBuffer& out, const symbolize::Frame& frame, Names names);
// Writes `before` and "FILE:LINE", or what perf prints instead of these, or nothing.
void write_source_line(TextBuffer& out, const symbolize::Frame& frame, Names names,
                       SourcePath path = SourcePath::Last, std::string_view before = "\n  ");
// Whether the address is printed as a runtime address: kernel code, and code outside of any mapping.
bool is_shown_as_it_ran(const symbolize::Frame& frame);
// The address at the start of a call chain's line: of user code, the address in its file.
std::uint64_t address_in_chain(const symbolize::Frame& frame);
// Writes TAB "ADDRESS SYMBOL+0xOFFSET (MODULE)" and a newline.
void write_frame(TextBuffer& out, const symbolize::Frame& frame, const Fields& fields, Names names,
                 SourcePath path = SourcePath::Last);

// Writes source lines (script -F srccode). A line is not repeated while its thread stays on it.
class SourceCode {
 public:
  SourceCode(Resolver& resolver, Names names) : files_(resolver), names_(names) {}

  // Writes "|12       int main(void)" and a newline; nothing for an unknown line, or the one written last.
  void write(TextBuffer& out, const Thread& thread, const symbolize::Frame& frame);

 private:
  SourceFiles files_;
  Names names_;
  std::unordered_map<const Thread*, std::pair<std::string, std::uint32_t>> shown_last_;
};

// Writes the branches before a sample (PERF_SAMPLE_BRANCH_STACK) on its line.
class BranchText {
 public:
  BranchText(Resolver& resolver, Names names) : resolver_(&resolver), names_(names) {}

  // Writes brstack, brstacksym or brstackoff: the first of them in `fields`.
  void write(TextBuffer& out, const ResolvedSample& sample, const Fields& fields);

 private:
  void write_end(TextBuffer& out, const ResolvedSample& sample, std::uint64_t address, const Fields& fields);
  void note_used(const ResolvedSample& sample, const Fields& fields);

  Resolver* resolver_;
  Names names_;
  std::unordered_set<const symbolize::Module*> used_;  // modules with samples
};

// Rare fields of `script`: registers, branch stacks, data sources, page sizes, physical addresses, cgroups.
class SampleFieldsText {
 public:
  SampleFieldsText(Session& session, Names names);

  // The fields before the sample's address, after it, and at the end of the line. Callers first test whether
  // any of these is shown.
  static constexpr Fields kBeforeLocation{Field::DataSrc, Field::Weight, Field::InsLat};
  static constexpr Fields kAfterLocation{Field::Iregs, Field::Uregs, Field::Brstack, Field::Brstacksym,
                                         Field::Brstackoff};
  static constexpr Fields kAtEnd{Field::PhysAddr, Field::DataPageSize, Field::CodePageSize, Field::Cgroup};
  void write_before_location(TextBuffer& out, const ResolvedSample& sample, const Fields& fields);
  void write_after_location(TextBuffer& out, const ResolvedSample& sample, const Fields& fields);
  void write_at_end(TextBuffer& out, const ResolvedSample& sample, const Fields& fields) const;

 private:
  void write_registers(TextBuffer& out, const format::Registers& registers);

  std::string arch_;
  std::vector<std::string> register_names_;  // padded; made when first needed
  std::size_t source_width_ = 0;             // width of the longest data source so far
  Names names_;
  BranchText branches_;
};

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

// The fields insn and brstackinsn of script: the instruction at which a sample was taken, and the
// instructions between the recorded branches before it.
class InstructionText {
 public:
  static constexpr Fields kFields{Field::Insn, Field::Insnlen, Field::Brstackinsn, Field::Brstackinsnlen};

  // `most_blocks` limits the blocks of code between branches; 0: no limit.
  InstructionText(Session& session, Names names, std::size_t most_blocks);
  void write(TextBuffer& out, const ResolvedSample& sample, const Fields& fields, SourceCode& source);

 private:
  struct Block {
    format::Bytes code;
    bool is_64_bit = true;
    bool crosses_over = false;  // begins in user code and ends in the kernel, or vice versa
  };
  struct Walk;  // the branches of one sample

  Block block(const ResolvedSample& sample, std::uint64_t start, std::uint64_t end);
  const Disassembler& decoder(bool is_64_bit) const { return is_64_bit ? wide_ : narrow_; }
  void write_own(TextBuffer& out, const ResolvedSample& sample, const Fields& fields);
  void write_branches(Walk& walk);
  void write_function(Walk& walk, std::uint64_t address);
  void write_source(Walk& walk, std::uint64_t address);
  std::size_t write_instruction(Walk& walk, std::uint64_t address, const Block& from, std::size_t offset);
  void write_jump(Walk& walk, std::uint64_t address, std::uint64_t flags, const Block& from,
                  std::size_t offset, std::size_t count);
  void write_between(Walk& walk, std::uint64_t start, std::uint64_t end, std::uint64_t flags,
                     const Block& code);
  void write_last(Walk& walk);

  Resolver* resolver_;
  Names names_;
  std::size_t most_blocks_;
  Disassembler wide_, narrow_;
};

}  // namespace tacho::report
