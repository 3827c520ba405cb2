#include "report/profile/annotated_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "report/decode/coded_values.h"
#include "report/profile/branches.h"

namespace tacho::report {

void BranchHits::add_hits(const BranchHits& other) {
  taken += other.taken;
  mispredicted += other.mispredicted;
  entered += other.entered;
  if (other.timed == 0) return;
  least_cycles = timed == 0 ? other.least_cycles : std::min(least_cycles, other.least_cycles);
  most_cycles = std::max(most_cycles, other.most_cycles);
  cycles += other.cycles;
  timed += other.timed;
}

void BranchHits::add_cycles(std::uint64_t of_block) {
  add_hits({.cycles = of_block, .timed = 1, .least_cycles = of_block, .most_cycles = of_block});
}

RowId CodeHits::row_of(std::size_t event, LocationId location) {
  const EventHits none{static_cast<std::uint32_t>(event), location, {}};
  return by_location_.find_or_make(
      by_location_.hash(event, location),
      [&](RowId known) { return hits_[known].event == event && hits_[known].location == location; },
      [&] { return hits_.push_back(none); });
}

void CodeHits::count(RowId row, std::size_t event, const HitCount& sum) {
  if (event >= totals_.size()) totals_.resize(event + 1);  // in a pipe, events come later
  totals_[event].add_count(sum);
  hits_[row].count.add_count(sum);
}

BranchHits& CodeHits::branches_at(LocationId location) {
  const auto is_same = [&](const AddressBranches& known) { return known.location == location; };
  return find_or_add(by_branch_, by_branch_.hash(location), branches_, is_same, {location, {}}).count;
}

BranchBlock& CodeHits::block_of(LocationId start, LocationId end) {
  const auto is_same = [&](const AddressBlock& known) { return known.start == start && known.end == end; };
  return find_or_add(by_block_, by_block_.hash(start, end), blocks_, is_same, {start, end, {}}).count;
}

// As perf, cycles are counted only in samples whose newest branch has some.
void CodeHits::add_branches(const ResolvedSample& sample) {
  const format::Sample& fields = *sample.fields;
  if (fields.branch_count() == 0) return;
  const bool has_cycles = branch_cycles(fields.branch(0).flags) != 0;
  const bool has_all = (sample.event().attr.branch_sample_type & format::abi::kBranchAny) != 0;
  std::optional<std::uint64_t> before;  // the target of the branch before
  for (std::size_t i = fields.branch_count(); i-- > 0;) {
    const format::BranchEntry branch = fields.branch(i);
    const std::uint64_t cycles = has_cycles ? branch_cycles(branch.flags) : 0;
    const LocationId end = branch_location(sample, branch.from).id;
    BranchHits& from = branches_at(end);
    ++from.taken;
    if ((branch.flags & kBranchMispredicted) != 0) ++from.mispredicted;
    if (cycles != 0) from.add_cycles(cycles);
    if (has_all && before && *before != 0 && *before <= branch.from) {
      BranchBlock& block = block_of(branch_location(sample, *before).id, end);
      ++block.branches;
      if ((branch.flags & kBranchPredicted) != 0) ++block.predicted;
      if (cycles != 0) ++block.timed;
      block.cycles += cycles;
    }
    ++branches_at(branch_location(sample, branch.to).id).entered;
    before = branch.to;
  }
}

namespace {

// Groups addresses by function. A function is identified by module and range.
class FunctionsByRange {
 public:
  explicit FunctionsByRange(Resolver& resolver) : resolver_(resolver) {}

  // Null: the address is in no function.
  HitFunction* of(const Location& location, std::uint64_t& offset) {
    const symbolize::Frame& frame = resolver_.frame(location);
    if (frame.module == nullptr || frame.function.empty()) return nullptr;
    if (frame.shown_address < frame.function_start) return nullptr;
    offset = frame.shown_address - frame.function_start;
    const auto [known, is_new] =
        numbers_.try_emplace(Key(frame.module, frame.function_start, frame.function_end), functions_.size());
    if (!is_new) return &functions_[known->second];
    HitFunction& function = functions_.emplace_back();
    function.location = location;
    function.module = frame.module;
    function.shown_address = frame.shown_address;
    function.start = frame.function_start;
    function.end = frame.function_end;
    function.name = frame.function;
    function.linker_name = frame.linker_name;
    return &function;
  }
  HitFunction& operator[](std::size_t number) { return functions_[number]; }
  std::size_t number_of(const HitFunction& function) const {
    return static_cast<std::size_t>(&function - functions_.data());
  }
  std::vector<HitFunction> take() { return std::move(functions_); }

 private:
  using Key = std::tuple<const symbolize::Module*, std::uint64_t, std::uint64_t>;
  Resolver& resolver_;
  std::vector<HitFunction> functions_;
  std::map<Key, std::size_t> numbers_;
};

void add_totals(HitFunction& function) {
  std::ranges::sort(function.hits, {}, [](const auto& hit) { return std::pair(hit.event, hit.offset); });
  for (const HitFunction::Hit& hit : function.hits) {
    if (function.totals.empty() || function.totals.back().event != hit.event)
      function.totals.push_back({0, hit.event, {}});
    function.totals.back().count.add_count(hit.count);
  }
  std::ranges::stable_sort(function.hits, {}, &HitFunction::Hit::offset);
}

// Sorts items by place(), and adds up those of one place.
template <class Item, class Place, class Add>
void join(std::vector<Item>& items, Place place, Add add) {
  std::ranges::sort(items, {}, place);
  std::size_t kept = 0;
  for (const Item& item : items) {
    if (kept > 0 && place(items[kept - 1]) == place(item))
      add(items[kept - 1], item);
    else
      items[kept++] = item;
  }
  items.resize(kept);
}

void join_branches(std::vector<HitFunction::Branches>& branches) {
  join(
      branches, [](const auto& branch) { return branch.offset; },
      [](auto& to, const auto& branch) { to.count.add_hits(branch.count); });
}

void join_blocks(std::vector<BranchBlock>& blocks) {
  join(
      blocks, [](const auto& block) { return std::pair(block.end, block.start); },
      [](auto& to, const auto& block) {
        to.branches += block.branches;
        to.predicted += block.predicted;
        to.timed += block.timed;
        to.cycles += block.cycles;
      });
}

}  // namespace

std::vector<HitFunction> CodeHits::functions(Resolver& resolver) const {
  FunctionsByRange by_range(resolver);
  std::uint64_t offset = 0;
  for (const EventHits& hit : hits_) {
    HitFunction* const function = by_range.of(resolver.location(hit.location), offset);
    if (function == nullptr) continue;
    function->hits.push_back({offset, hit.event, hit.count});
  }
  for (const AddressBranches& branches : branches_)
    if (HitFunction* const function = by_range.of(resolver.location(branches.location), offset))
      function->branches.push_back({offset, branches.count});
  for (const AddressBlock& both : blocks_) {
    BranchBlock block = both.count;
    HitFunction* const function = by_range.of(resolver.location(both.end), block.end);
    if (function == nullptr) continue;
    const std::size_t number = by_range.number_of(*function);
    const HitFunction* const first = by_range.of(resolver.location(both.start), block.start);
    if (first == &by_range[number] && block.start <= block.end) by_range[number].blocks.push_back(block);
  }
  std::vector<HitFunction> functions = by_range.take();
  for (HitFunction& function : functions) {
    add_totals(function);
    join_branches(function.branches);
    join_blocks(function.blocks);
  }
  return functions;
}

std::string without_tabs(std::string_view text) {
  constexpr std::size_t kTab = 8;
  std::string plain;
  for (const char c : text) c == '\t' ? plain.append(kTab - plain.size() % kTab, ' ') : plain += c;
  return plain;
}

std::string instruction_text(const CodeLine& line, std::size_t mnemonic_width) {
  const DisassembledInstruction& instruction = line.instruction;
  std::string text = instruction.operands;
  if (instruction.target) {
    text += fmt::format("{:x}", *instruction.target);
    if (!line.target_name.empty()) text += ' ' + line.target_name;
  }
  if (!text.empty()) text = fmt::format("{:<{}} {}", instruction.mnemonic, mnemonic_width, text);
  if (text.empty()) text = instruction.mnemonic;
  if (instruction.memory && !instruction.target) {
    text += fmt::format("        # {:x}", *instruction.memory);
    if (!line.target_name.empty()) text += ' ' + line.target_name;
  }
  return text;
}

HitCount HitFunction::total(std::uint32_t event) const {
  const auto found = std::ranges::lower_bound(totals, event, {}, &Hit::event);
  return found != totals.end() && found->event == event ? found->count : HitCount();
}

std::map<std::uint32_t, std::vector<std::size_t>> hottest(const std::vector<HitFunction>& functions) {
  std::map<std::uint32_t, std::vector<std::size_t>> by_event;
  for (std::size_t i = 0; i < functions.size(); ++i)
    for (const HitFunction::Hit& total : functions[i].totals) by_event[total.event].push_back(i);
  for (auto& [event, order] : by_event) {
    std::ranges::sort(order, {}, [&functions, of = event](std::size_t number) {
      const HitFunction& function = functions[number];
      const HitCount total = function.total(of);
      return std::tuple(~total.period, ~total.samples, function.module->short_name,
                        std::string_view(function.name), function.start);
    });
  }
  return by_event;
}

namespace {

constexpr std::uint64_t kMostCode = std::uint64_t{1} << 18;  // bytes of a function that are shown

std::string name_and_offset(std::string_view name, std::uint64_t offset) {
  return offset == 0 ? fmt::format("<{}>", name) : fmt::format("<{}+{:#x}>", name, offset);
}
// Empty: the frame has no name.
std::string name_and_offset(const symbolize::Frame& frame) {
  if (frame.function.empty() || frame.shown_address < frame.function_start) return {};
  return name_and_offset(frame.function, frame.shown_address - frame.function_start);
}

// The instruction at `offset`, searched from line `line` on; null: there is none.
CodeLine* line_at(std::uint64_t offset, AnnotatedCode& code, std::size_t& line) {
  while (line + 1 < code.lines.size() && code.lines[line + 1].offset <= offset) ++line;
  if (line >= code.lines.size()) return nullptr;
  CodeLine& found = code.lines[line];
  const bool is_in = offset >= found.offset && offset - found.offset < found.instruction.size;
  return is_in ? &found : nullptr;
}

void count_samples(const HitFunction& function, std::uint32_t first, AnnotatedCode& code) {
  code.counts.assign(code.lines.size() * code.events, {});
  std::size_t line = 0;
  for (const HitFunction::Hit& hit : function.hits) {
    if (hit.event < first || hit.event - first >= code.events) continue;
    if (line_at(hit.offset, code, line) == nullptr) continue;
    code.counts[line * code.events + (hit.event - first)].add_count(hit.count);
  }
}

// As perf's annotation__compute_ipc(): of the blocks that end at an address the longest counts, and where
// blocks overlap the one that ends last.
void count_cycles(const HitFunction& function, AnnotatedCode& code) {
  std::uint64_t instructions = 0, cycles = 0, covered = 0;
  // From each line the next one that is in no block yet, with shortened paths: blocks may overlap a lot.
  std::vector<std::size_t> free(code.lines.size() + 1);
  std::iota(free.begin(), free.end(), std::size_t{0});
  const auto next_free = [&free](std::size_t line) {
    while (free[line] != line) line = free[line] = free[free[line]];
    return line;
  };
  for (auto block = function.blocks.rbegin(); block != function.blocks.rend();) {
    // Blocks of one end come with descending starts.
    const std::uint64_t end = block->end;
    const BranchBlock* longest = nullptr;
    for (; block != function.blocks.rend() && block->end == end; ++block)
      if (block->timed != 0 && block->start < end) longest = &*block;
    if (longest == nullptr) continue;
    const auto first = std::ranges::lower_bound(code.lines, longest->start, {}, &CodeLine::offset);
    const auto after = std::ranges::upper_bound(code.lines, end, {}, &CodeLine::offset);
    if (first >= after) continue;
    const auto count = static_cast<std::uint64_t>(after - first);
    const double per_cycle =
        static_cast<double>(count * longest->timed) / static_cast<double>(longest->cycles);
    const auto last = static_cast<std::size_t>(after - code.lines.begin());
    auto line = next_free(static_cast<std::size_t>(first - code.lines.begin()));
    for (; line < last; line = next_free(line)) {
      code.lines[line].per_cycle = per_cycle;
      free[line] = line + 1;
      ++covered;
    }
    instructions += count * longest->timed;
    cycles += longest->cycles;
  }
  code.has_cycles = cycles != 0;
  if (!code.has_cycles) return;
  code.per_cycle = static_cast<double>(instructions) / static_cast<double>(cycles);
  code.covered = 100.0 * static_cast<double>(covered) / static_cast<double>(code.lines.size());
}

// What perf annotate --stdio says after targets and branches.
void count_branch_shares(const HitFunction& function, AnnotatedCode& code) {
  struct Count {
    std::uint64_t joins = 0, taken = 0, predicted = 0;
    std::uint64_t runs = 0;  // blocks that reach to here
  };
  std::map<std::uint64_t, Count> counts;  // by offset
  for (const BranchBlock& block : function.blocks) {
    counts[block.start].joins += block.branches;
    Count& end = counts[block.end];
    end.taken += block.branches;
    end.predicted += block.predicted;
  }
  std::uint64_t runs = 0;
  for (auto& [offset, count] : counts) {
    runs += count.joins;
    count.runs = runs;
    runs -= count.taken;
  }
  const auto percent = [](std::uint64_t part, std::uint64_t of) {
    return 100.0 * static_cast<double>(part) / static_cast<double>(of);
  };
  std::uint64_t runs_to_next = 0;  // the branch at or after an offset
  for (auto each = counts.rbegin(); each != counts.rend(); ++each) {
    const auto& [offset, count] = *each;
    if (count.taken != 0) runs_to_next = count.runs;
    const auto line = std::ranges::lower_bound(code.lines, offset, {}, &CodeLine::offset);
    if (line == code.lines.end() || line->offset != offset) continue;
    line->joins = percent(count.joins, runs_to_next);
    if (count.taken == 0) continue;
    line->leaves = percent(count.taken, count.runs);
    line->predicted = percent(count.predicted, count.taken);
  }
}

void count_branches(const HitFunction& function, AnnotatedCode& code) {
  std::size_t line = 0;
  for (const HitFunction::Branches& branches : function.branches) {
    CodeLine* const found = line_at(branches.offset, code, line);
    if (found == nullptr) continue;
    found->branches.add_hits(branches.count);
    code.has_branches = code.has_branches || branches.count.is_any();
  }
  count_cycles(function, code);
  count_branch_shares(function, code);
}

}  // namespace

// The addresses of a function: in memory, as shown, and in its file.
struct CodeAnnotator::FunctionContext {
  const HitFunction& function;
  std::uint64_t start_ip = 0;  // runtime address of its first byte
  std::uint64_t address = 0;   // the same in the file
  std::uint64_t size = 0;      // bytes
  symbolize::LocationFacts facts;
  symbolize::PackedSource* packed = nullptr;  // the source of names and lines; null: files

  Location at(std::uint64_t ip, bool is_unwound) const {
    return {.mapping = function.location.mapping,
            .ip = {ip},
            .cpumode = function.location.cpumode,
            .is_unwound = is_unwound};
  }
};

namespace {

std::string missing_reason_of(symbolize::ModuleKind kind) {
  switch (kind) {
    case symbolize::ModuleKind::Kernel:
      return "the kernel's code is not here: --kcore /proc/kcore or -k VMLINUX";
    case symbolize::ModuleKind::KernelModule:
      return "the kernel module's code is not here: --kcore /proc/kcore";
    default:
      return "neither the capture nor a file here has the instructions";
  }
}

}  // namespace

CodeAnnotator::CodeAnnotator(Session& session, AsmSyntax syntax)
    : session_(&session),
      wide_(session.features().environment.arch.value_or(""), WordSize::Bits64, syntax),
      narrow_(session.features().environment.arch.value_or(""), WordSize::Bits32, syntax) {}

AnnotatedCode CodeAnnotator::annotate(const HitFunction& function, std::uint32_t first, std::uint32_t count) {
  Resolver& resolver = session_->resolver();
  AnnotatedCode code;
  code.events = count;
  code.size = function.end - std::min(function.start, function.end);
  code.address = function.start;
  if (function.location.mapping == nullptr || code.size == 0) {
    code.missing_reason = "where the function ends is not known";
    return code;
  }
  FunctionContext context{.function = function,
                          .start_ip = function.location.ip.value - (function.shown_address - function.start),
                          .size = code.size,
                          .facts = resolver.facts(function.location)};
  const bool is_unlinked = context.facts.source != nullptr && context.facts.source->is_kernel_module();
  if (context.facts.source != nullptr) {
    if (!is_unlinked) code.address = context.facts.elf_address - (function.shown_address - function.start);
    context.packed = context.facts.source->packed;
  }
  context.address = code.address;
  const std::uint64_t wanted = std::min(code.size, kMostCode);
  const format::Bytes bytes = code_of(context, static_cast<std::size_t>(wanted));
  const Disassembler& disassembler = resolver.is_64_bit(function.location) ? wide_ : narrow_;
  if (bytes.empty()) {
    code.missing_reason = missing_reason_of(function.module->kind);
    return code;
  }
  if (!disassembler.knows_machine()) {
    code.missing_reason = "instructions of " +
                          session_->features().environment.arch.value_or("an unknown machine") +
                          " are not disassembled; x86 and arm64 are";
    return code;
  }
  if (bytes.size() < code.size)
    code.missing_reason =
        fmt::format("only {} of {} bytes are known or shown at once", bytes.size(), code.size);
  for (DisassembledInstruction& instruction : disassembler.disassemble(bytes, code.address)) {
    CodeLine& line = code.lines.emplace_back();
    line.offset = instruction.address - code.address;
    line.bytes = bytes.subspan(static_cast<std::size_t>(line.offset), instruction.size);
    const auto& named = instruction.target ? instruction.target : instruction.memory;
    if (named) line.target_name = name_of_target(context, *named);
    line.instruction = std::move(instruction);
  }
  name_sources(context, code);
  count_samples(function, first, code);
  count_branches(function, code);
  return code;
}

format::Bytes CodeAnnotator::code_of(const FunctionContext& context, std::size_t size) {
  if (context.function.module->kind != symbolize::ModuleKind::Bpf)
    return session_->resolver().code(context.at(context.start_ip, false), context.start_ip, size);
  const BpfFunction* const function = bpf_function(context);
  return function == nullptr ? format::Bytes() : function->code.first(std::min(size, function->code.size()));
}

// BPF programs have no file; the capture may have their code and source lines with their descriptions.
const BpfFunction* CodeAnnotator::bpf_function(const FunctionContext& context) {
  if (!bpf_functions_) {
    const format::Environment& environment = session_->features().environment;
    BpfFunctions functions(environment);
    bpf_functions_.emplace();
    for (const format::BpfProgramInfo& program : environment.bpf_programs)
      for (BpfFunction& function : functions.functions_of(program)) {
        const std::uint64_t address = function.address;
        bpf_functions_->try_emplace(address, std::move(function));
      }
  }
  const auto found = bpf_functions_->find(context.start_ip);
  return found == bpf_functions_->end() ? nullptr : &found->second;
}

// A pack with the function's code has a row only where the line changes; it holds up to the next row. Each
// line is looked up as often as one from DWARF, since names may depend on the number of look-ups
// (symbolize::UseSymbolName::AsPerf). A pack without its code has rows of sampled addresses alone; for other
// addresses the debug information of the file here is used.
void CodeAnnotator::name_sources(const FunctionContext& context, AnnotatedCode& code) {
  if (context.function.module->kind == symbolize::ModuleKind::Bpf) {
    const BpfFunction* const function = bpf_function(context);
    if (function == nullptr) return;
    auto next = function->lines.begin();
    const BpfLine* line_here = nullptr;
    for (CodeLine& line : code.lines) {
      for (; next != function->lines.end() && next->offset <= line.offset; ++next) line_here = &*next;
      line.function = context.function.name;
      line.function_linker = context.function.linker_name;
      if (line_here == nullptr || line_here->line == 0) continue;
      line.file = line_here->file;
      line.line = line_here->line;
      line.source = line_here->text;
    }
    return;
  }
  Resolver& resolver = session_->resolver();
  const bool has_list = context.facts.source != nullptr && context.facts.source->has_full_symbols;
  const bool has_all_rows =
      context.packed == nullptr ||
      context.packed->code_at(context.function.start, context.size).size() == context.size;
  const symbolize::LinkerSymbol symbol{context.function.linker_name, {context.address}};
  std::optional<std::uint64_t> known;  // the offset of the last row
  for (CodeLine& line : code.lines) {
    if (!has_all_rows) {
      const auto in_file =
          resolver.line_in_file(*context.function.module, {context.address + line.offset}, symbol);
      if (in_file) {
        line.file = in_file->file;
        line.line = in_file->line;
        line.function = in_file->function;
        line.function_linker = in_file->linker_name;
        continue;
      }
    }
    const bool has_row =
        context.packed == nullptr || context.packed->at(context.function.start + line.offset) != nullptr;
    if (has_row) known = line.offset;
    if (!known || (!has_row && !has_all_rows)) {  // no line is known
      if (has_list) {
        line.function = context.function.name;
        line.function_linker = context.function.linker_name;
      }
      continue;
    }
    const symbolize::Frame& frame = resolver.frames(context.at(context.start_ip + *known, true)).front();
    const bool is_known = frame.line_state == symbolize::LineState::Known && frame.line != 0;
    if (is_known) {
      line.file = frame.file;
      line.line = frame.line;
    }
    // As objdump, which has names if it has DWARF or a complete symbol table.
    if (is_known || has_list) {
      line.function = frame.function;
      line.function_linker = frame.linker_name;
    }
  }
}

std::string CodeAnnotator::name_of_target(const FunctionContext& context, std::uint64_t address) {
  const std::uint64_t from_start = address - context.address;
  if (from_start < context.size) return name_and_offset(context.function.name, from_start);
  if (context.function.module->kind == symbolize::ModuleKind::Bpf) {
    if (!bpf_calls_) bpf_calls_.emplace(session_->features());
    if (const std::string_view called = bpf_calls_->at(address); !called.empty())
      return name_and_offset(called, 0);
    return name_and_offset(session_->resolver().kernel_frames(address).front());
  }
  const bool is_of_kallsyms = context.function.module->kind == symbolize::ModuleKind::Kernel &&
                              context.facts.source != nullptr && !context.facts.source->is_vmlinux() &&
                              context.facts.source->packed == nullptr;
  if (is_of_kallsyms) return name_and_offset(session_->resolver().kernel_frames(address).front());
  const auto shown = addresses_.shown_address(context.facts, address);
  if (!shown) return {};
  const std::uint64_t ip = context.start_ip + (*shown - context.function.start);
  std::string name = name_and_offset(session_->resolver().frame(context.at(ip, false)));
  if (!name.empty() || context.packed == nullptr) return name;
  const auto symbol = session_->resolver().symbol_in_file(*context.function.module, {address});
  return symbol ? name_and_offset(symbol->name, symbol->offset) : std::string();
}

}  // namespace tacho::report
