#include "report/profile/sort_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "format/records/perf_abi.h"
#include "report/decode/coded_values.h"
#include "report/profile/function_table.h"
#include "report/samples/tables.h"

namespace tacho::report {

namespace {

// The mapping by which the function or variable was found; null: there is none.
const symbolize::Mapping* mapping_of(const FactAddress& at) {
  const symbolize::Mapping* const mapping = at.location->mapping;
  const bool is_beyond = mapping != nullptr && mapping->beyond_file != nullptr && at.function->is_data;
  return is_beyond ? mapping->beyond_file : mapping;
}

}  // namespace

std::uint64_t FactAddress::runtime_start() const {
  const symbolize::Mapping* const mapping = mapping_of(*this);
  if (mapping == nullptr || mapping->is_identity) return function->start;
  return function->start + mapping->start - mapping->page_offset;
}

FactAddress fact_address(Show show, std::uint64_t fact) {
  const auto id = id_of<LocationId>(fact);
  FunctionTable& functions = *show.facts.functions;
  FactAddress at;
  at.location = &show.facts.session().resolver().location(id);
  at.function = &functions[functions.of_location(id)];
  const symbolize::Mapping* const mapping = mapping_of(at);
  at.address = mapping == nullptr ? at.location->ip.value : mapping->nameless_address(at.location->ip);
  at.level = mapping == nullptr ? 'H' : at.function->level;  // as perf, which found it in no mode
  return at;
}

namespace {

namespace abi = format::abi;

using Order = std::strong_ordering;

constexpr std::size_t kAddressWidth = 16;  // hexadecimal digits
constexpr std::size_t kUnknownWidth = 22;  // of "[.] 0x0123456789abcdef"
constexpr std::size_t kAnyWidth = ~std::size_t{0};

// A name from the capture, as the report's options print it.
std::string shown(Show show, std::string_view name) { return printable(name, show.facts.options().names); }

// Appends `name`, cut as perf cuts names of functions so that both fit into `width`; uncut if `text` alone is
// wider.
void add_name(std::string& text, std::string_view name, std::size_t width) {
  text += width < text.size() ? name : name.substr(0, width - text.size());
}

// Facts that are numbers, or numbers of texts.
Order by_fact_down(Show show, Row a, Row b) { return show.fact(b) <=> show.fact(a); }
Order by_fact_text(Show show, Row a, Row b) {
  return show.facts.text(show.fact(a)) <=> show.facts.text(show.fact(b));
}
std::string fact_number(Show show, Row row) { return std::to_string(show.fact(row)); }
std::string fact_text(Show show, Row row) { return shown(show, show.facts.text(show.fact(row))); }

// The short name, or with -v the path; empty: no module.
std::string_view module_name(Show show, const symbolize::Module* module) {
  if (module == nullptr) return {};
  return show.facts.options().is_verbose ? module->path : module->short_name;
}

// "main.c:12"; without source lines "FUNCTION+OFFSET".
std::string line_of(Show show, const Function& function) {
  if (function.line().starts_with('+'))
    return shown(show, function.shown_name()) + std::string(function.line());
  return function.line().empty() ? std::string("??:0") : shown(show, function.line());
}

// "4K" for a fact that is a number of bytes.
std::string show_page_size(Show show, Row row) { return page_size_text(show.fact(row)); }

// The row's own module, by name; unmapped last.
Order module_order(Show show, Row a, Row b) {
  const bool has_a = a.function->module != nullptr, has_b = b.function->module != nullptr;
  if (has_a != has_b) return has_a ? Order::less : Order::greater;
  return module_name(show, a.function->module) <=> module_name(show, b.function->module);
}

// The row's own function, by name; addresses without one last. sorted_rows() orders equal names by address.
std::uint64_t symbol_identity(Show, Row row) { return value_of(row.function->symbol); }

Order symbol_order(Show, Row a, Row b) {
  const bool is_unknown_a = a.function->name().empty(), is_unknown_b = b.function->name().empty();
  if (is_unknown_a != is_unknown_b) return is_unknown_a ? Order::greater : Order::less;
  return a.function->shown_name() <=> b.function->shown_name();
}

std::uint64_t symbol_ordered_by(Show, Row row) { return value_of(row.function->name_id); }

// "0x4585             d ": printed before a name with -v. 0 has no 0x, as with printf's %#x.
std::string verbose_start(std::uint64_t address, char source) {
  return address == 0 ? fmt::format("{:<18} {} ", 0, source) : fmt::format("{:<#18x} {} ", address, source);
}

// "[.] 0x0000000000001262". Stripped binaries make most of a report of these, so it does not use fmt.
std::string show_unknown(char level, std::uint64_t address) {
  constexpr std::string_view kDigits = "0123456789abcdef", kMark = "0x";
  std::string text = {'[', level, ']', ' '};
  text.reserve(kUnknownWidth);
  if (address != 0) text += kMark;  // 0 has no mark, as with printf's %#x
  for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[address >> shift & 15];
  return text;
}

FactAddress fact_address_of(Show show, Row row) { return fact_address(show, show.fact(row)); }

// "[k] do_syscall_64"; "[.] sink+0x4" for a variable that contains `address`.
std::string show_address(Show show, const FactAddress& at, std::uint64_t address, char level,
                         std::size_t width) {
  std::string text;
  if (show.facts.options().is_verbose) text = verbose_start(address, at.function->source);
  if (!at.has_name()) return text + show_unknown(level, address);
  text += fmt::format("[{}] ", level);
  const bool is_data = at.function->is_data;
  add_name(text, shown(show, at.function->shown_name()), is_data ? kAnyWidth : width);
  if (is_data) text += fmt::format("+0x{:x}", address - at.runtime_start());
  return text;
}

// The column width for show_address().
std::size_t address_width(Show show, const FactAddress& at) {
  constexpr std::size_t kLevel = 4, kVerbose = kAddressWidth + 2 + 3;
  if (!at.has_name()) return kUnknownWidth;
  return shown(show, at.function->shown_name()).size() + kLevel +
         (show.facts.options().is_verbose ? kVerbose : 0);
}

// Of the row of a module: paths differ with -v, else short names.
std::uint64_t module_number_of(Show show, const Function& function) {
  return show.facts.options().is_verbose ? function.module_rank : function.module_number;
}

std::string show_module_of(Show show, const Function& function) {
  return function.module == nullptr ? std::string("[unknown]")
                                    : shown(show, module_name(show, function.module));
}

// Modules by name, descending; addresses without a module first. perf sorts other addresses than the sample's
// own so.
Order module_order_down(Show show, const FactAddress& a, const FactAddress& b) {
  const symbolize::Module *const module_a = a.function->module, *const module_b = b.function->module;
  if ((module_a == nullptr) != (module_b == nullptr))
    return module_a == nullptr ? Order::less : Order::greater;
  return module_name(show, module_b) <=> module_name(show, module_a);
}

// As perf, which subtracts addresses as signed numbers: kernel addresses are negative.
Order address_order(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::int64_t>(a) <=> static_cast<std::int64_t>(b);
}

// The keys for fields of payloads and tracepoints; they are not in the table because they come from the
// capture.
std::uint64_t read_field_fact(const KeyUse& use, SampleFacts& facts, const ResolvedSample& sample) {
  return sample.event_index == use.event ? facts.field(sample, *use.field, use.is_raw) : 0;
}
// By bytes, descending, as perf.
Order field_order(Show show, Row a, Row b) {
  return show.facts.bytes(show.fact(b)) <=> show.facts.bytes(show.fact(a));
}
// perf measures values as in the event's text. Values that it prints alone are cut, except texts of varying
// length, which it measures with their final 0.
std::size_t field_text_width(Show show, Row row) {
  const auto& options = show.facts.options();
  if (!options.has_hex_longs || (!show.use.is_raw && !options.is_raw_trace)) {
    const std::string shown = fact_text(show, row);
    return shown.starts_with("ARRAY[") ? 0 : shown.size();
  }
  const PayloadField& field = *show.use.field;
  const bool varies = field.kind == format::FieldKind::Text && field.format.ends_with("_loc");
  return varies ? show.facts.bytes(show.fact(row)).size() + 1 : 0;
}
constexpr SortKey kFieldKey{.name = "FIELD",
                            .header = "",
                            .help = "a field of a tracepoint or payload",
                            .read = read_field_fact,
                            .order = field_order,
                            .show = fact_text,
                            .width = field_text_width,
                            .fit = SortKey::Fit::Right};

// The width of its name, or of its longest possible value.
std::size_t field_width(const PayloadField& field) {
  const std::size_t bytes = std::size_t{field.bit_size} * std::max(field.count, 1U) / 8;
  const std::size_t value = field.kind == format::FieldKind::Text ? bytes : bytes * 2 + 2;
  return std::max(field.name.size(), std::min<std::size_t>(value, 1024));
}

void add_fields(std::vector<KeyUse>& uses, SampleFacts& facts, std::size_t event, std::string_view name,
                bool is_raw) {
  const PayloadSchema* const schema = facts.schema_of(event);
  if (schema == nullptr) return;
  for (const PayloadField& field : schema->fields) {
    if (name != "*" && field.name != name) continue;
    uses.push_back({.key = &kFieldKey,
                    .header = field.name,
                    .event = event,
                    .field = &field,
                    .is_raw = is_raw,
                    .least_width = field_width(field)});
  }
}

// Sort keys of all samples.

// Microseconds, as perf, or nanoseconds with --ns. Without a time: nothing.
std::string show_time(Show show, Row row) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const std::uint64_t time = show.fact(row);
  if (time == kUntimed && show.facts.options().marks_missing) return {};
  return show.facts.options().has_nanoseconds
             ? fmt::format("{}.{:09}", time / kSecond, time % kSecond)
             : fmt::format("{}.{:06}", time / kSecond, time % kSecond / 1000);
}

std::string show_thread(Show show, Row row) {
  return fmt::format("{:7}:{}", static_cast<std::int32_t>(row.thread->tid), shown(show, row.thread->comm));
}

// As perf, which cuts the name to the rest of the column after eight characters, or to nothing.
std::string show_thread_in(Show show, Row row, std::size_t width) {
  constexpr std::size_t kNumber = 8;  // with the colon
  if (width < kNumber) return show_thread(show, row);
  std::string text = show_thread(show, row);
  const std::size_t name = text.find(':') + 1;
  text.resize(name + width - kNumber, ' ');
  return text;
}

constexpr std::size_t kIndexDigits = 3;
// "-001": three digits of -1, an unknown number.
std::string index_text(std::uint64_t number, std::size_t digits) {
  return number == ~0U ? fmt::format("-{:0>{}}", 1, digits) : fmt::format("{:0>{}}", number, digits);
}
std::string show_index(Show show, Row row) { return index_text(show.fact(row), kIndexDigits); }
// As perf, which fills a column of any width with digits.
std::string show_cpu_in(Show show, Row row, std::size_t width) {
  return index_text(show.fact(row), std::max<std::size_t>(width, 1));
}
// As perf, which fills all but the first three characters with digits.
std::string show_socket_in(Show show, Row row, std::size_t width) {
  return fmt::format("{:>{}}", index_text(show.fact(row), width > kIndexDigits ? width - kIndexDigits : 1),
                     width);
}

std::size_t module_width(Show show, Row row) {
  const std::size_t name = shown(show, module_name(show, row.function->module)).size();
  const bool is_wide = show.facts.options().widens_unknown && row.function->name().empty();
  return is_wide ? std::max(name, kAddressWidth) : name;
}

std::string show_symbol_in(Show show, Row row, std::size_t width) {
  const Function& function = *row.function;
  std::string text;
  if (show.facts.options().is_verbose) text = verbose_start(row.address, row.function->source);
  // A recorder without stacks records no address. (Code of a process that was called at address 0 has another
  // level.)
  const bool has_address = !function.name().empty() || function.start != 0 || row.level != 'H';
  if (!has_address && show.facts.options().marks_missing) return text + "[-] (no address)";
  if (function.name().empty()) return text + show_unknown(row.level, function.start);
  text += fmt::format("[{}] ", row.level);
  add_name(text, shown(show, function.shown_name()), function.is_data ? kAnyWidth : width);
  // perf subtracts an address of the process from one that, in a sample's own row, is relative to the module.
  if (function.is_data) return text + fmt::format("+0x{:x}", row.address - function.runtime_start());
  if (function.is_inlined) text += " (inlined)";
  return text;
}
std::string show_symbol(Show show, Row row) { return show_symbol_in(show, row, kAnyWidth); }

// As perf, which measures without the mark of inlined calls.
std::size_t symbol_width(Show show, Row row) {
  constexpr std::size_t kLevel = 4, kHexMark = 2, kSource = 3;
  const std::size_t verbose = show.facts.options().is_verbose ? kAddressWidth + kHexMark + kSource : 0;
  if (row.function->name().empty()) return kAddressWidth + kLevel + kHexMark;
  return shown(show, row.function->shown_name()).size() + kLevel + verbose;
}

std::string source_line_of_row(Show show, Row row) { return line_of(show, *row.function); }
std::string source_file(Show show, Row row) {
  const std::string_view line = row.function->line();
  const std::size_t colon = line.rfind(':');
  // As perf, which prints no file without a line.
  return colon == std::string_view::npos || line == "??:0" ? std::string()
                                                           : shown(show, line.substr(0, colon));
}

std::uint64_t size_of_function(Row row) {
  return row.function->name().empty() ? 0 : row.function->end() - row.function->start;
}
std::string show_size(Row row) {
  return row.function->name().empty() ? std::string("unknown") : std::to_string(size_of_function(row));
}

std::string_view parent_name(Row row) {
  return row.parent == nullptr ? std::string_view("[other]") : row.parent->shown_name();
}
// Rows without one are last.
Order parent_order(Show, Row a, Row b) {
  if ((a.parent == nullptr) != (b.parent == nullptr))
    return a.parent == nullptr ? Order::greater : Order::less;
  return parent_name(a) <=> parent_name(b);
}

std::uint64_t mapped_bytes(Row row) { return row.function->mapped_bytes(); }
std::string show_mapped(Row row) {
  return row.function->module == nullptr ? std::string("unknown") : std::to_string(mapped_bytes(row));
}

// The kind and the end of a transaction, with perf's abbreviations of PERF_TXN_*.
std::string show_transaction(Show show, Row row) {
  static constexpr std::string_view kFlags[] = {"EL ",    "TX ",  "SYNC ",      "ASYNC ",
                                                "RETRY ", "CON ", "CAP-WRITE ", "CAP-READ "};
  constexpr std::uint64_t kSync = 4, kAsync = 8;
  constexpr unsigned kAbortShift = 32;
  const std::uint64_t flags = show.fact(row);
  std::string text;
  for (std::size_t i = 0; i < std::size(kFlags); ++i) {
    if ((flags >> i & 1) != 0) text += kFlags[i];
  }
  if (flags != 0 && (flags & (kSync | kAsync)) == 0) text += "NEITHER ";
  if (flags >> kAbortShift != 0) text += fmt::format(":{:x}", flags >> kAbortShift);
  return text;
}

template <auto Field>
std::uint64_t read_sample(const KeyUse&, SampleFacts&, const ResolvedSample& sample) {
  return sample.fields->*Field;
}

std::string times_samples(Show show, Row row) { return std::to_string(show.fact(row) * row.samples); }

// "worker/12" as "worker/<N>".
std::string without_digits(Show, Row row) {
  const std::string_view name = row.comm;
  std::string text;
  for (std::size_t at = 0; at < name.size(); ++at) {
    const bool is_digit = name[at] >= '0' && name[at] <= '9';
    if (!is_digit) text += name[at];
    if (is_digit && (at + 1 == name.size() || name[at + 1] < '0' || name[at + 1] > '9')) text += "<N>";
  }
  return text;
}

std::string show_without_digits(Show show, Row row) { return shown(show, without_digits(show, row)); }

using format::Sample;
using Fit = SortKey::Fit;
using Needs = SortKey::Needs;

// A key with its names and the reader of its fact.
constexpr SortKey named(std::string_view name, std::string_view header, std::string_view help, SortKey key,
                        decltype(SortKey::read) read = nullptr) {
  key.name = name;
  key.header = header;
  key.help = help;
  if (read != nullptr) key.read = read;
  return key;
}
// Keys that exist in one mode only.
template <std::size_t N>
constexpr std::array<SortKey, N> of_mode(ReportMode mode, std::array<SortKey, N> keys) {
  for (SortKey& key : keys) key.mode = mode;
  return keys;
}

// Keys whose values are texts, which may be shown as other texts.
template <std::string (*Text)(Show, Row), std::string (*Shown)(Show, Row) = Text>
constexpr SortKey text_key(KeyOf of, Fit fit, Needs needs) {
  return {.of = of,
          .identity = [](Show show, Row row) -> std::uint64_t {
            return std::hash<std::string>()(Text(show, row));
          },
          .order = [](Show show, Row a, Row b) -> Order { return Text(show, a) <=> Text(show, b); },
          .show = Shown,
          .fit = fit,
          .needs = needs};
}
// Keys whose values are numbers of the function.
template <std::uint64_t (*Number)(Row), std::string (*Text)(Row)>
constexpr SortKey kOfFunction{
    .of = KeyOf::Function,
    .identity = [](Show, Row row) { return Number(row); },
    .order = [](Show, Row a, Row b) -> Order { return Number(a) <=> Number(b); },
    .show = [](Show, Row row) { return Text(row); },
    .show_in = [](Show, Row row, std::size_t width) { return fmt::format("{:>{}}", Text(row), width); },
    .fit = Fit::Whole,
    .has_mapped_bytes = Number == mapped_bytes};

constexpr SortKey kThread{
    .of = KeyOf::Thread,
    .identity = [](Show, Row row) -> std::uint64_t { return row.thread->tid; },
    .order = [](Show, Row a, Row b) -> Order { return a.thread->tid <=> b.thread->tid; },
    .show = show_thread,
    .show_in = show_thread_in,
    .width = [](Show show, Row row) { return shown(show, row.thread->comm).size() + 8; },
    .fit = Fit::Whole};
// A number of the sample: its own, or as perf's sum times the number of the row's samples.
constexpr SortKey kNumber{.order = by_fact_down, .show = fact_number, .fit = Fit::Padded};
constexpr SortKey kSum{.order = by_fact_down, .show = times_samples, .fit = Fit::Padded};

// In perf's order.
constexpr SortKey kSortKeys[] = {
    named("pid", "    Pid:Command", "the thread's pid and name", kThread),
    named("tid", "    Pid:Command", "as pid", kThread),
    named("comm", "Command", "the thread's name",
          {.of = KeyOf::Comm,
           .identity = [](Show, Row row) -> std::uint64_t {
             return reinterpret_cast<std::uintptr_t>(row.comm.data());
           },
           .order = [](Show, Row a, Row b) -> Order { return a.comm <=> b.comm; },
           .show = [](Show show, Row row) { return shown(show, row.comm); },
           // As perf, which measures the last name of the thread.
           .width = [](Show show, Row row) { return shown(show, row.thread->comm).size(); }}),
    named("dso", "Shared Object", "the shared object: file, kernel or module",
          {.of = KeyOf::Function,
           .identity = [](Show show, Row row) { return module_number_of(show, *row.function); },
           .order = module_order,
           .show = [](Show show, Row row) { return show_module_of(show, *row.function); },
           .width = module_width}),
    named("symbol", "Symbol", "the function (sym)",
          {.of = KeyOf::Function,
           .identity = symbol_identity,
           .order = symbol_order,
           .ordered_by = symbol_ordered_by,
           .show = show_symbol,
           .show_in = show_symbol_in,
           .width = symbol_width,
           .fit = Fit::Whole}),
    named("parent", "Parent symbol", "the caller found by --parent",
          {.of = KeyOf::Chain,
           .identity = [](Show, Row row) -> std::uint64_t {
             return row.parent == nullptr ? 0 : std::uint64_t{1} + value_of(row.parent->symbol);
           },
           .order = parent_order,
           .show = [](Show show, Row row) { return shown(show, parent_name(row)); },
           .width = [](Show show, Row row) -> std::size_t {
             return row.parent == nullptr ? 0 : shown(show, row.parent->shown_name()).size();
           },
           .needs = Needs::CallChains}),
    named("cpu", "CPU", "the CPU",
          {.show = show_index,
           .show_in = show_cpu_in,
           .width = [](Show, Row) -> std::size_t { return kIndexDigits; },
           .fit = Fit::Whole},
          read_sample<&Sample::cpu>),
    named("socket", "Socket", "the CPU's socket",
          {.read = [](const KeyUse&, SampleFacts& facts, const ResolvedSample& sample) -> std::uint64_t {
             return facts.socket_of(sample.fields->cpu).value_or(~0U);
           },
           .show = show_index,
           .show_in = show_socket_in,
           .width = [](Show, Row) -> std::size_t { return 6; },
           .fit = Fit::Whole}),
    named("srcline", "Source:Line", "the source line",
          text_key<source_line_of_row>(KeyOf::Address, Fit::CutOnly, Needs::SourceLines)),
    named("srcfile", "Source File", "the source file",
          text_key<source_file>(KeyOf::Address, Fit::CutOnly, Needs::SourceLines)),
    named("local_weight", "Local Weight", "the weight recorded by the processor",
          {.order = by_fact_down, .show = fact_number, .least_width = 12, .fit = Fit::Padded},
          read_sample<&Sample::weight>),
    named("weight", "Weight", "local_weight times the number of samples",
          {.order = by_fact_down, .show = times_samples, .least_width = 12, .fit = Fit::Padded},
          read_sample<&Sample::weight>),
    named("transaction", "Transaction                ", "the state of a memory transaction (TSX)",
          {.order = by_fact_down,
           .show = show_transaction,
           .width = [](Show show, Row row) -> std::size_t { return show.fact(row) == 0 ? 0 : 50; },
           .fit = Fit::Padded},
          read_sample<&Sample::transaction>),
    named("trace", "Trace output", "a tracepoint's text",
          {.read = [](const KeyUse&, SampleFacts& facts, const ResolvedSample& s) { return facts.trace(s); },
           .order = by_fact_text,
           .show = fact_text,
           .fit = Fit::CutOnly}),
    named("symbol_size", "Symbol size", "the function's size in bytes",
          kOfFunction<size_of_function, show_size>),
    named("dso_size", "DSO size", "the size of the first mapping of the dso",
          kOfFunction<mapped_bytes, show_mapped>),
    named("cgroup", "Cgroup", "the cgroup, if recorded",
          {.read = [](const KeyUse&, SampleFacts& facts, const ResolvedSample& s) { return facts.cgroup(s); },
           .show = fact_text,
           .least_width = 6,
           .fit = Fit::Whole,
           .needs = Needs::Cgroups}),
    named("cgroup_id", "cgroup id (dev/inode)", "the cgroup namespace, if recorded",
          {.read = [](const KeyUse&, SampleFacts& facts,
                      const ResolvedSample& s) { return facts.cgroup_space(s); },
           .show = fact_text,
           .least_width = 20,
           .fit = Fit::Whole,
           .needs = Needs::Cgroups}),
    named("ipc_null", "IPC   [IPC Coverage]", "instructions per cycle: empty without branch stacks",
          {.of = KeyOf::Function,  // as perf: the column belongs to the function
           .identity = symbol_identity,
           .order = symbol_order,
           .ordered_by = symbol_ordered_by,
           .show = [](Show, Row) { return std::string("-      -"); }}),
    named("time", "Time", "the time, in intervals of --time-quantum",
          {.read = [](const KeyUse&, SampleFacts& facts, const ResolvedSample& sample) -> std::uint64_t {
             const std::uint64_t quantum = facts.options().time_quantum;
             if (sample.fields->time == kUntimed && facts.options().marks_missing) return kUntimed;
             return quantum == 0 ? sample.fields->time : sample.fields->time / quantum * quantum;
           },
           .show = show_time,
           .width = [](Show show, Row) -> std::size_t {
             return show.facts.options().has_nanoseconds ? 16 : 12;
           },
           .fit = Fit::CutOnly}),
    named("code_page_size", "Code Page Size", "the page size of the instruction",
          {.show = show_page_size, .fit = Fit::Padded}, read_sample<&Sample::code_page_size>),
    named("local_ins_lat", "Local INSTR Latency", "the instruction's latency in cycles", kNumber,
          read_sample<&Sample::weight2>),
    named("ins_lat", "INSTR Latency", "local_ins_lat times the number of samples", kSum,
          read_sample<&Sample::weight2>),
    named("local_p_stage_cyc", "Local Pipeline Stage Cycle", "cycles in a stage of the pipeline", kNumber,
          read_sample<&Sample::weight3>),
    named("p_stage_cyc", "Pipeline Stage Cycle", "local_p_stage_cyc times the number of samples", kSum,
          read_sample<&Sample::weight3>),
    named("addr", "Address", "the instruction's address",
          {.of = KeyOf::Address,
           .identity = [](Show, Row row) { return row.function->first_ip; },
           .order = [](Show, Row a,
                       Row b) { return address_order(a.function->first_ip, b.function->first_ip); },
           .show =
               [](Show, Row row) {
                 return fmt::format("{}{:x}", row.function->first_ip == 0 ? "" : "0x",
                                    row.function->first_ip);
               },
           .least_width = kAddressWidth + 2,
           .fit = Fit::Padded}),
    named("parallelism", "Parallelism",
          "the number of running threads of the command, from context switches (perf 7)",
          {.read = [](const KeyUse&, SampleFacts& facts, const ResolvedSample&) -> std::uint64_t {
             return facts.parallelism();
           },
           .show = fact_number,
           .fit = Fit::Right,
           .needs = Needs::Switches}),
    named("comm_nodigit", "CommandNoDigit",
          "the thread's name with <N> for numbers, so that a pool of workers is one row (perf 7)",
          text_key<without_digits, show_without_digits>(KeyOf::Comm, Fit::Cut, Needs::Nothing)),
};

// Sort keys of branches: their source, their target, and their flags.

// The fact of an end is its location, with the level of the sample above it, which one key prints.
constexpr unsigned kLevelAt = 32;

std::uint64_t read_from(const KeyUse&, SampleFacts& facts, const ResolvedSample&) {
  return value_of(facts.branch.from);
}
std::uint64_t read_to(const KeyUse&, SampleFacts& facts, const ResolvedSample&) {
  return value_of(facts.branch.to);
}
template <LocationId TakenBranch::*End>
std::uint64_t read_with_level(const KeyUse&, SampleFacts& facts, const ResolvedSample&) {
  const std::uint64_t level = static_cast<unsigned char>(facts.branch.level);
  return value_of(facts.branch.*End) | level << kLevelAt;
}
template <std::uint64_t Mask, unsigned At = 0>
std::uint64_t read_flags(const KeyUse&, SampleFacts& facts, const ResolvedSample&) {
  return facts.branch.flags >> At & Mask;
}

std::uint64_t end_identity(Show show, Row row) {
  const FactAddress end = fact_address_of(show, row);
  const auto& one = show.facts.one_of_several;
  return end.has_name() ? one(1, end.function->start, end.function->end()) : one(2, end.location->ip.value);
}
// By code address; addresses without a name last.
Order end_order(Show show, Row a, Row b) {
  const FactAddress end_a = fact_address_of(show, a), end_b = fact_address_of(show, b);
  if (end_a.has_name() != end_b.has_name()) return end_a.has_name() ? Order::less : Order::greater;
  if (!end_a.has_name()) return address_order(end_a.location->ip.value, end_b.location->ip.value);
  const auto order = address_order(end_a.function->start, end_b.function->start);
  return order != 0 ? order : address_order(end_a.function->end(), end_b.function->end());
}
std::string show_end_in(Show show, Row row, std::size_t width) {
  const FactAddress end = fact_address_of(show, row);
  return show_address(show, end, end.address, end.level, width);
}
std::string show_end(Show show, Row row) { return show_end_in(show, row, kAnyWidth); }

std::uint64_t end_module_identity(Show show, Row row) {
  return module_number_of(show, *fact_address_of(show, row).function);
}
std::string show_end_module(Show show, Row row) {
  return show_module_of(show, *fact_address_of(show, row).function);
}
Order end_module_order(Show show, Row a, Row b) {
  return module_order_down(show, fact_address_of(show, a), fact_address_of(show, b));
}
std::size_t end_module_width(Show show, Row row) {
  const FactAddress end = fact_address_of(show, row);
  if (end.has_name()) return show_module_of(show, *end.function).size();
  return show.facts.options().widens_unknown ? kAddressWidth : 0;
}

std::uint64_t end_address_identity(Show show, Row row) {
  const FactAddress end = fact_address_of(show, row);
  return show.facts.one_of_several(module_number_of(show, *end.function), end.location->ip.value);
}
Order end_address_order(Show show, Row a, Row b) {
  const FactAddress end_a = fact_address_of(show, a), end_b = fact_address_of(show, b);
  const auto order = module_order_down(show, end_a, end_b);
  return order != 0 ? order : address_order(end_a.location->ip.value, end_b.location->ip.value);
}
// As perf, which cuts the name so that it fits into the column without the offset.
std::string show_end_address_in(Show show, Row row, std::size_t width) {
  const FactAddress end = fact_address_of(show, row);
  const auto level = static_cast<char>(show.fact(row) >> kLevelAt);
  if (!end.has_name()) return show_unknown(level, end.address);
  std::string text = fmt::format("[{}] ", level);
  add_name(text, shown(show, end.function->shown_name()), end.function->is_data ? kAnyWidth : width);
  const std::uint64_t offset = end.address - end.function->start;
  if (end.function->is_data) return text + fmt::format("+0x{:x}", end.address - end.runtime_start());
  return offset == 0 ? text : text + fmt::format("+0x{:x}", offset);
}
std::string show_end_address(Show show, Row row) { return show_end_address_in(show, row, kAnyWidth); }
std::size_t end_address_width(Show show, Row row) {
  return fact_address_of(show, row).has_name() ? 0 : kUnknownWidth;
}

std::string end_line(Show show, Row row) { return line_of(show, *fact_address_of(show, row).function); }

std::string show_cycles(Show show, Row row) {
  const std::uint64_t cycles = show.fact(row);
  return cycles == 0 ? "-" : std::to_string(static_cast<std::int16_t>(cycles));  // as perf prints them
}

std::string show_prediction(Show show, Row row) {
  const std::uint64_t flags = show.fact(row);
  if ((flags & kBranchPredicted) != 0) return "N";
  return (flags & kBranchMispredicted) != 0 ? "Y" : "N/A";
}

// The keys of an end of a branch, which read() gives: its source or its target.
constexpr SortKey kEndModule{.identity = end_module_identity,
                             .order = end_module_order,
                             .show = show_end_module,
                             .width = end_module_width};
constexpr SortKey kEndSymbol{
    .identity = end_identity,
    .order = end_order,
    .show = show_end,
    .show_in = show_end_in,
    .width = [](Show show, Row row) { return address_width(show, fact_address_of(show, row)); },
    .fit = Fit::Whole};
constexpr SortKey kEndLine = text_key<end_line>(KeyOf::Sample, Fit::Cut, Needs::SourceLines);
constexpr SortKey kEndAddress{.identity = end_address_identity,
                              .order = end_address_order,
                              .show = show_end_address,
                              .show_in = show_end_address_in,
                              .width = end_address_width,
                              .fit = Fit::Whole};
// "A" or "T" for a flag that is set.
template <char Mark>
constexpr SortKey kFlag{
    .show = [](Show show, Row row) { return std::string(1, show.fact(row) != 0 ? Mark : '.'); },
    .fit = Fit::Padded};

constexpr auto kBranchKeys = of_mode(
    ReportMode::Branches,
    std::to_array<SortKey>({
        named("dso_from", "Source Shared Object", "the dso of the branch's source", kEndModule, read_from),
        named("dso_to", "Target Shared Object", "the dso of the branch's target", kEndModule, read_to),
        named("symbol_from", "Source Symbol", "the function of the branch's source", kEndSymbol, read_from),
        named("symbol_to", "Target Symbol", "the function of the branch's target", kEndSymbol, read_to),
        named("mispredict", "Branch Mispredicted", "whether the branch was mispredicted: Y, N",
              {.order = by_fact_down, .show = show_prediction},
              read_flags<kBranchMispredicted | kBranchPredicted>),
        named("abort", "Transaction abort", "whether it aborted a transaction: A", kFlag<'A'>,
              read_flags<kBranchAborted>),
        named("in_tx", "Branch in transaction", "whether it was in a transaction: T", kFlag<'T'>,
              read_flags<kBranchInTransaction>),
        named("cycles", "Basic Block Cycles", "cycles since the previous branch",
              {.order = by_fact_down, .show = show_cycles, .fit = Fit::Padded},
              read_flags<kBranchCyclesMask, kBranchCyclesAt>),
        named("srcline_from", "From Source:Line", "the source line of the branch's source", kEndLine,
              read_from),
        named("srcline_to", "To Source:Line", "the source line of the branch's target", kEndLine, read_to),
        named("ipc_lbr", "IPC   [IPC Coverage]", "instructions per cycle in the function of the target",
              {.of = KeyOf::Function,
               .identity = symbol_identity,
               .order = symbol_order,
               .ordered_by = symbol_ordered_by,
               .show = [](Show, Row row) -> std::string {
                 return row.function->name().empty() ? "-" : "0.00  [  0.0%]";
               },
               .fit = Fit::Padded}),
        named("addr_from", "Source Address", "the address of the branch's source", kEndAddress,
              read_with_level<&TakenBranch::from>),
        named("addr_to", "Target Address", "the address of the branch's target", kEndAddress,
              read_with_level<&TakenBranch::to>),
    }));

// Sort keys of memory accesses: the data address, and the data source.

constexpr std::uint64_t kCacheLine = 64;  // of the machine that shows the report, as perf

std::uint64_t read_data_location(const KeyUse&, SampleFacts&, const ResolvedSample& sample) {
  return value_of(sample.locate_in(sample.fields->addr, sample.fields->misc & abi::kCpumodeMask).id);
}
std::uint64_t read_code_location(const KeyUse&, SampleFacts&, const ResolvedSample& sample) {
  const Location& user = sample.locate_in(sample.fields->ip, abi::kCpumodeUser);
  if (user.mapping != nullptr) return value_of(user.id);
  return value_of(sample.locate_in(sample.fields->ip, abi::kCpumodeKernel).id);
}
std::uint64_t address_of(Show show, Row row) {
  return show.facts.session().resolver().location(id_of<LocationId>(show.fact(row))).ip.value;
}
Order by_address(Show show, Row a, Row b) { return address_order(address_of(show, a), address_of(show, b)); }
std::string show_data_in(Show show, Row row, std::size_t width) {
  return show_address(show, fact_address_of(show, row), address_of(show, row), row.level, width);
}
std::string show_data(Show show, Row row) { return show_data_in(show, row, kAnyWidth); }
std::size_t data_width(Show show, Row row) {
  constexpr std::size_t kOffset = 18;  // of an offset in a variable
  const FactAddress at = fact_address_of(show, row);
  return at.has_name() ? shown(show, at.function->shown_name()).size() + 4 + kOffset : kUnknownWidth;
}

// Cache lines. As perf, lines of private memory differ by process, others by file.
std::uint64_t line_of_cache(const FactAddress& at) { return at.address & ~(kCacheLine - 1); }
bool is_private(const FactAddress& at, Row row) {
  return at.location->mapping != nullptr && row.function->level != 'k' &&
         at.location->mapping->module->kind == symbolize::ModuleKind::Anonymous;
}
std::uint64_t cache_line_identity(Show show, Row row) {
  const FactAddress at = fact_address_of(show, row);
  const std::uint64_t process = is_private(at, row) ? row.thread->pid : ~std::uint64_t{0};
  const std::uint64_t space = show.facts.one_of_several(at.function->module_number, process);
  return show.facts.one_of_several(show.facts.one_of_several(space, line_of_cache(at)), row.function->level);
}
Order cache_line_order(Show show, Row a, Row b) {
  if (a.function->level != b.function->level) return a.function->level == 'k' ? Order::less : Order::greater;
  const FactAddress at_a = fact_address_of(show, a), at_b = fact_address_of(show, b);
  const bool has_a = at_a.location->mapping != nullptr, has_b = at_b.location->mapping != nullptr;
  if (has_a != has_b) return has_a ? Order::less : Order::greater;
  if (at_a.function->module_number != at_b.function->module_number)
    return at_a.function->module_number <=> at_b.function->module_number;
  if (is_private(at_a, a) && a.thread->pid != b.thread->pid) return a.thread->pid <=> b.thread->pid;
  return line_of_cache(at_a) <=> line_of_cache(at_b);
}
std::string show_cache_line_in(Show show, Row row, std::size_t width) {
  const FactAddress at = fact_address_of(show, row);
  const char level = at.location->mapping == nullptr ? 'X' : row.level;
  return show_address(show, at, line_of_cache(at), level, width);
}

template <DataSourcePart Part>
constexpr SortKey source_key(std::size_t width, Fit fit) {
  return {.read = read_sample<&Sample::data_source>,
          .identity = [](Show show, Row row) { return data_source_bits(Part, show.fact(row)); },
          .order = [](Show show, Row a, Row b) -> Order {
            return data_source_bits(Part, show.fact(a)) <=> data_source_bits(Part, show.fact(b));
          },
          .show = [](Show show, Row row) { return data_source_part(Part, show.fact(row)); },
          .width = [](Show, Row) -> std::size_t { return 0; },
          .least_width = width,
          .fit = fit};
}
// An address of a process.
constexpr SortKey kAddress{.identity = address_of,
                           .order = by_address,
                           .show = show_data,
                           .show_in = show_data_in,
                           .width = data_width,
                           .fit = Fit::Whole};

constexpr auto kMemoryKeys = of_mode(
    ReportMode::Memory,
    std::to_array<SortKey>({
        named("symbol_daddr", "Data Symbol", "the variable or address that was accessed", kAddress,
              read_data_location),
        named("dso_daddr", "Data Object", "the dso of the data address",
              {.identity = end_module_identity,
               .order = end_module_order,
               .show = show_end_module,
               .width = [](Show show, Row row) -> std::size_t {
                 const FactAddress at = fact_address_of(show, row);
                 if (at.location->mapping != nullptr) return show_module_of(show, *at.function).size();
                 return show.facts.options().widens_unknown ? kAddressWidth : 0;
               }},
              read_data_location),
        named("locked", "Locked", "whether the access was locked",
              source_key<DataSourcePart::Lock>(6, Fit::CutOnly)),
        named("tlb", "TLB access", "which TLB level answered",
              source_key<DataSourcePart::Tlb>(22, Fit::Padded)),
        named("mem", "Memory access", "which cache or memory answered",
              source_key<DataSourcePart::Level>(24, Fit::Padded)),
        named("snoop", "Snoop", "the snoop result", source_key<DataSourcePart::Snoop>(12, Fit::Padded)),
        named("dcacheline", "Data Cacheline", "the cache line (64 bytes) of the data address",
              {.identity = cache_line_identity,
               .order = cache_line_order,
               .show = [](Show show, Row row) { return show_cache_line_in(show, row, kAnyWidth); },
               .show_in = show_cache_line_in,
               .width = [](Show show, Row row) -> std::size_t {
                 return data_width(show, row) + (fact_address_of(show, row).has_name() ? 1 : 0);
               },
               .fit = Fit::Whole},
              read_data_location),
        named("symbol_iaddr", "Code Symbol", "the function, with a row for each instruction", kAddress,
              read_code_location),
        named("phys_daddr", "Data Physical Address", "the physical data address",
              {.order = [](Show show, Row a, Row b) { return address_order(show.fact(a), show.fact(b)); },
               .show = [](Show show, Row row) { return show_unknown(row.level, show.fact(row)); },
               .least_width = kUnknownWidth},
              read_sample<&Sample::phys_addr>),
        named("data_page_size", "Data Page Size", "the page size of the data address",
              {.show = show_page_size, .least_width = kUnknownWidth, .fit = Fit::Padded},
              read_sample<&Sample::data_page_size>),
        named("blocked", "Blocked", "why a load was blocked",
              source_key<DataSourcePart::Blocked>(10, Fit::CutOnly)),
    }));

}  // namespace

std::vector<const SortKey*> sort_keys() {
  std::vector<const SortKey*> all;
  for (const std::span<const SortKey> table :
       {std::span<const SortKey>(kSortKeys), std::span<const SortKey>(kBranchKeys),
        std::span<const SortKey>(kMemoryKeys)}) {
    for (const SortKey& key : table) all.push_back(&key);
  }
  return all;
}

const SortKey* sort_key_of(std::string_view word) {
  const std::vector<const SortKey*> keys = sort_keys();
  const auto found = std::ranges::find_if(
      keys, [word](const SortKey* key) { return !word.empty() && key->name.starts_with(word); });
  return found == keys.end() ? nullptr : *found;
}

std::vector<KeyUse> find_sort_keys(std::string_view word, SampleFacts& facts) {
  if (word.empty()) return {};
  const SortKey* const key = sort_key_of(word);
  if (key != nullptr && (key->mode == ReportMode::Samples || key->mode == facts.options().mode))
    return {{.key = key, .header = std::string(key->header), .least_width = key->least_width}};
  const bool is_raw = word.ends_with("/raw");
  if (is_raw) word.remove_suffix(4);
  // Names of events contain colons and may contain dots: the field comes after the last dot before which
  // there is an event's name.
  const std::size_t dot = word.find('.');
  const format::EventSet& events = facts.session().events();
  std::vector<KeyUse> uses;
  const std::string_view event_name = word.substr(0, std::min(dot, word.size()));
  for (std::size_t event = 0; event < events.size(); ++event) {
    const std::string& name = events[event].name;
    const bool ends_so = name.size() > event_name.size() && name.ends_with(event_name) &&
                         name[name.size() - event_name.size() - 1] == ':';
    if (dot != std::string_view::npos && (event_name == name || ends_so)) {
      add_fields(uses, facts, event, word.substr(dot + 1), is_raw);
    } else {
      add_fields(uses, facts, event, word == "trace_fields" ? "*" : word, is_raw);
    }
  }
  return uses;
}

std::string sort_key_names(ReportMode mode) {
  std::string all;
  for (const SortKey* const key : sort_keys()) {
    if (key->mode != mode) continue;
    if (!all.empty()) all += ' ';
    all += key->name;
  }
  return all;
}

}  // namespace tacho::report
