// Sort keys that every sample has.
#include <fmt/format.h>

#include <algorithm>

#include "report/profile/sort_keys.h"

namespace tacho::report {
namespace {

// perf writes times to the microsecond, or to the nanosecond with --ns.
std::string show_time(Show show, Row row) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const std::uint64_t time = show.fact(row);
  return show.facts.options().has_nanoseconds
             ? fmt::format("{}.{:09}", time / kSecond, time % kSecond)
             : fmt::format("{}.{:06}", time / kSecond, time % kSecond / 1000);
}

std::string show_thread(Show show, Row row) {
  return fmt::format("{:7}:{}", static_cast<std::int32_t>(row.thread->tid), shown(show, row.thread->comm));
}

// As perf, which cuts the name to what the column leaves of eight places, and to nothing below that.
std::string show_thread_in(Show show, Row row, std::size_t width) {
  constexpr std::size_t kNumber = 8;  // with the colon
  if (width < kNumber) return show_thread(show, row);
  std::string text = show_thread(show, row);
  const std::size_t name = text.find(':') + 1;
  text.resize(name + width - kNumber, ' ');
  return text;
}

constexpr std::size_t kIndexDigits = 3;
// "-001": three digits of -1, which stands for a number that is not known.
std::string index_text(std::uint64_t number, std::size_t digits) {
  return number == ~0U ? fmt::format("-{:0>{}}", 1, digits) : fmt::format("{:0>{}}", number, digits);
}
std::string show_index(Show show, Row row) { return index_text(show.fact(row), kIndexDigits); }
// As perf, where a column of any width is full of digits,
std::string show_cpu_in(Show show, Row row, std::size_t width) {
  return index_text(show.fact(row), std::max<std::size_t>(width, 1));
}
// or of all but the first three places.
std::string show_socket_in(Show show, Row row, std::size_t width) {
  return fmt::format("{:>{}}", index_text(show.fact(row), width > kIndexDigits ? width - kIndexDigits : 1),
                     width);
}

std::size_t module_width(Show show, Row row) {
  const std::size_t name = shown(show, module_name(show, row.function->module)).size();
  const bool is_wide = show.facts.options().widens_unknown && row.function->name().empty();
  return is_wide ? std::max(name, kAddressWidth) : name;
}

// "[.] 0x0000000000001262". In captures of stripped binaries that is most of a report, hence by hand.
std::string show_unknown(char level, std::uint64_t address) {
  constexpr std::string_view kDigits = "0123456789abcdef", kMark = "0x";
  std::string text = {'[', level, ']', ' '};
  text.reserve(kUnknownWidth);
  if (address != 0) text += kMark;  // 0 has no mark, as with printf's %#x
  for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[address >> shift & 15];
  return text;
}

std::string show_symbol_in(Show show, Row row, std::size_t width) {
  const Function& function = *row.function;
  std::string text;
  if (show.facts.options().is_verbose) text = verbose_start(row.address, row.function->source);
  // A recorder without stacks records no address. (Code of a process that is called at 0 has another level.)
  const bool has_address = !function.name().empty() || function.start != 0 || row.level != 'H';
  if (!has_address && show.facts.options().tells_no_address) return text + "[-] (no address)";
  if (function.name().empty()) return text + show_unknown(row.level, function.start);
  text += fmt::format("[{}] ", row.level);
  add_name(text, shown(show, function.name()), function.is_data ? kAnyWidth : width);
  // perf subtracts an address of the process from one that, in a sample's own row, is relative to the module.
  if (function.is_data) return text + fmt::format("+0x{:x}", row.address - function.runtime_start());
  if (function.is_inlined) text += " (inlined)";
  return text;
}
std::string show_symbol(Show show, Row row) { return show_symbol_in(show, row, kAnyWidth); }

// perf leaves the mark of inlined calls out when it measures.
std::size_t symbol_width(Show show, Row row) {
  constexpr std::size_t kLevel = 4, kHexMark = 2, kSource = 3;
  const std::size_t verbose = show.facts.options().is_verbose ? kAddressWidth + kHexMark + kSource : 0;
  if (row.function->name().empty()) return kAddressWidth + kLevel + kHexMark;
  return shown(show, row.function->name()).size() + kLevel + verbose;
}

std::string source_line(Show show, Row row) { return line_of(show, *row.function); }
std::uint64_t text_hash(std::string_view text) { return std::hash<std::string_view>()(text); }
std::string source_file(Show show, Row row) {
  const std::string_view line = row.function->line();
  const std::size_t colon = line.rfind(':');
  // As perf, which prints no file where it prints no line.
  return colon == std::string_view::npos || line == "??:0" ? std::string()
                                                           : shown(show, line.substr(0, colon));
}

std::uint64_t size_of_function(Row row) {
  return row.function->name().empty() ? 0 : row.function->end() - row.function->start;
}
std::string show_size(Show, Row row) {
  return row.function->name().empty() ? std::string("unknown") : std::to_string(size_of_function(row));
}

std::string_view parent_name(Row row) {
  return row.parent == nullptr ? std::string_view("[other]") : row.parent->name();
}
// Rows without one stand last.
Order parent_order(Show, Row a, Row b) {
  if ((a.parent == nullptr) != (b.parent == nullptr))
    return a.parent == nullptr ? Order::greater : Order::less;
  return parent_name(a) <=> parent_name(b);
}

std::string show_size_in(Show show, Row row, std::size_t width) {
  return fmt::format("{:>{}}", show_size(show, row), width);
}

std::string show_mapped(Show, Row row) {
  return row.function->module == nullptr ? std::string("unknown")
                                         : std::to_string(row.function->mapped_bytes());
}
std::string show_mapped_in(Show show, Row row, std::size_t width) {
  return fmt::format("{:>{}}", show_mapped(show, row), width);
}

// What a transaction was and how it ended, as perf abbreviates PERF_TXN_*.
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
  return sample.raw->*Field;
}

std::string times_samples(Show show, Row row) { return std::to_string(show.fact(row) * row.samples); }

// "worker/12" as "worker/<N>".
std::string without_digits(std::string_view name) {
  std::string text;
  for (std::size_t at = 0; at < name.size(); ++at) {
    const bool is_digit = name[at] >= '0' && name[at] <= '9';
    if (!is_digit) text += name[at];
    if (is_digit && (at + 1 == name.size() || name[at + 1] < '0' || name[at + 1] > '9')) text += "<N>";
  }
  return text;
}

using format::Sample;
using Fit = SortKey::Fit;

// In perf's order: a part of a name stands for the first key that begins so.
constexpr SortKey kSortKeys[] = {
    {.name = "pid",
     .header = "    Pid:Command",
     .help = "the thread's number and name",
     .of = KeyOf::Thread,
     .identity = [](Show, Row row) -> std::uint64_t { return row.thread->tid; },
     .order = [](Show, Row a, Row b) -> Order { return a.thread->tid <=> b.thread->tid; },
     .show = show_thread,
     .show_in = show_thread_in,
     .width = [](Show show, Row row) { return shown(show, row.thread->comm).size() + 8; },
     .fit = Fit::Whole},
    {.name = "tid",
     .header = "    Pid:Command",
     .help = "as pid",
     .of = KeyOf::Thread,
     .identity = [](Show, Row row) -> std::uint64_t { return row.thread->tid; },
     .order = [](Show, Row a, Row b) -> Order { return a.thread->tid <=> b.thread->tid; },
     .show = show_thread,
     .show_in = show_thread_in,
     .width = [](Show show, Row row) { return shown(show, row.thread->comm).size() + 8; },
     .fit = Fit::Whole},
    {.name = "comm",
     .header = "Command",
     .help = "the thread's name",
     .of = KeyOf::Comm,
     .identity = [](Show, Row row) -> std::uint64_t {
       return reinterpret_cast<std::uintptr_t>(row.comm.data());
     },
     .order = [](Show, Row a, Row b) -> Order { return a.comm <=> b.comm; },
     .show = [](Show show, Row row) { return shown(show, row.comm); },
     // perf measures the name that the thread has in the end.
     .width = [](Show show, Row row) { return shown(show, row.thread->comm).size(); }},
    {.name = "dso",
     .header = "Shared Object",
     .help = "the file or module",
     .of = KeyOf::Function,
     .identity = [](Show show, Row row) -> std::uint64_t {
       return show.facts.options().is_verbose ? row.function->module_rank : row.function->module_number;
     },
     .order = module_order,
     .show =
         [](Show show, Row row) {
           return row.function->module == nullptr ? std::string("[unknown]")
                                                  : shown(show, module_name(show, row.function->module));
         },
     .width = module_width},
    {.name = "symbol",
     .header = "Symbol",
     .help = "the function (sym)",
     .of = KeyOf::Function,
     .identity = symbol_identity,
     .order = symbol_order,
     .ordered_by = symbol_ordered_by,
     .show = show_symbol,
     .show_in = show_symbol_in,
     .width = symbol_width,
     .fit = Fit::Whole},
    {.name = "parent",
     .header = "Parent symbol",
     .help = "the function of the call chain that --parent looks for",
     .of = KeyOf::Chain,
     .identity = [](Show, Row row) -> std::uint64_t {
       return row.parent == nullptr ? 0 : std::uint64_t{1} + row.parent->symbol;
     },
     .order = parent_order,
     .show = [](Show show, Row row) { return shown(show, parent_name(row)); },
     .width = [](Show show, Row row) -> std::size_t {
       return row.parent == nullptr ? 0 : shown(show, row.parent->name()).size();
     }},
    {.name = "cpu",
     .header = "CPU",
     .help = "the processor",
     .read = [](const KeyUse&, SampleFacts&, const ResolvedSample& s) -> std::uint64_t { return s.raw->cpu; },
     .identity = fact_of,
     .order = by_fact,
     .show = show_index,
     .show_in = show_cpu_in,
     .width = [](Show, Row) -> std::size_t { return kIndexDigits; },
     .fit = Fit::Whole},
    {.name = "socket",
     .header = "Socket",
     .help = "the processor's package",
     .read = [](const KeyUse&, SampleFacts& facts, const ResolvedSample& sample) -> std::uint64_t {
       return facts.socket_of(sample.raw->cpu).value_or(~0U);
     },
     .identity = fact_of,
     .order = by_fact,
     .show = show_index,
     .show_in = show_socket_in,
     .width = [](Show, Row) -> std::size_t { return 6; },
     .fit = Fit::Whole},
    {.name = "srcline",
     .header = "Source:Line",
     .help = "the line of the source file",
     .of = KeyOf::Place,
     .identity = [](Show show, Row row) -> std::uint64_t { return text_hash(source_line(show, row)); },
     .order = [](Show show, Row a, Row b) -> Order { return source_line(show, a) <=> source_line(show, b); },
     .show = source_line,
     .fit = Fit::CutOnly},
    {.name = "srcfile",
     .header = "Source File",
     .help = "the source file",
     .of = KeyOf::Place,
     .identity = [](Show show, Row row) -> std::uint64_t { return text_hash(source_file(show, row)); },
     .order = [](Show show, Row a, Row b) -> Order { return source_file(show, a) <=> source_file(show, b); },
     .show = source_file,
     .fit = Fit::CutOnly},
    {.name = "local_weight",
     .header = "Local Weight",
     .help = "the weight that the processor gave",
     .read = read_sample<&Sample::weight>,
     .identity = fact_of,
     .order = by_fact_down,
     .show = fact_number,
     .least_width = 12,
     .fit = Fit::Padded},
    {.name = "weight",
     .header = "Weight",
     .help = "the same, times the samples",
     .read = read_sample<&Sample::weight>,
     .identity = fact_of,
     .order = by_fact_down,
     .show = times_samples,
     .least_width = 12,
     .fit = Fit::Padded},
    {.name = "transaction",
     .header = "Transaction                ",
     .help = "how a transaction of memory went",
     .read = read_sample<&Sample::transaction>,
     .identity = fact_of,
     .order = by_fact_down,
     .show = show_transaction,
     .width = [](Show show, Row row) -> std::size_t { return show.fact(row) == 0 ? 0 : 50; },
     .fit = Fit::Padded},
    {.name = "trace",
     .header = "Trace output",
     .help = "a tracepoint's text",
     .read = [](const KeyUse&, SampleFacts& facts, const ResolvedSample& s) { return facts.trace(s); },
     .identity = fact_of,
     .order = by_fact_text,
     .show = fact_text,
     .fit = Fit::CutOnly},
    {.name = "symbol_size",
     .header = "Symbol size",
     .help = "the function's bytes",
     .of = KeyOf::Function,
     .identity = [](Show, Row row) { return size_of_function(row); },
     .order = [](Show, Row a, Row b) -> Order { return size_of_function(a) <=> size_of_function(b); },
     .show = show_size,
     .show_in = show_size_in,
     .fit = Fit::Whole},
    {.name = "dso_size",
     .header = "DSO size",
     .help = "the bytes of the mapping that it was met in first",
     .of = KeyOf::Function,
     .identity = [](Show, Row row) { return row.function->mapped_bytes(); },
     .order = [](Show, Row a, Row b) -> Order {
       return a.function->mapped_bytes() <=> b.function->mapped_bytes();
     },
     .show = show_mapped,
     .show_in = show_mapped_in,
     .fit = Fit::Whole,
     .has_mapped_bytes = true},
    {.name = "cgroup",
     .header = "Cgroup",
     .help = "the control group, when it was recorded",
     .read = [](const KeyUse&, SampleFacts& facts, const ResolvedSample& s) { return facts.cgroup(s); },
     .identity = fact_of,
     .order = by_fact,
     .show = fact_text,
     .least_width = 6,
     .fit = Fit::Whole},
    {.name = "cgroup_id",
     .header = "cgroup id (dev/inode)",
     .help = "the control group's namespace, when it was recorded",
     .read = [](const KeyUse&, SampleFacts& facts, const ResolvedSample& s) { return facts.cgroup_space(s); },
     .identity = fact_of,
     .order = by_fact,
     .show = fact_text,
     .least_width = 20,
     .fit = Fit::Whole},
    {.name = "ipc_null",
     .header = "IPC   [IPC Coverage]",
     .help = "instructions a cycle, where branches were recorded: none here",
     .of = KeyOf::Function,  // as perf has it: the column is of the function
     .identity = symbol_identity,
     .order = symbol_order,
     .ordered_by = symbol_ordered_by,
     .show = [](Show, Row) { return std::string("-      -"); }},
    {.name = "time",
     .header = "Time",
     .help = "when, in steps of --time-quantum",
     .read = [](const KeyUse&, SampleFacts& facts, const ResolvedSample& sample) -> std::uint64_t {
       const std::uint64_t quantum = facts.options().time_quantum;
       return quantum == 0 ? sample.raw->time : sample.raw->time / quantum * quantum;
     },
     .identity = fact_of,
     .order = by_fact,
     .show = show_time,
     .width = [](Show show, Row) -> std::size_t { return show.facts.options().has_nanoseconds ? 16 : 12; },
     .fit = Fit::CutOnly},
    {.name = "code_page_size",
     .header = "Code Page Size",
     .help = "the size of the instruction's page",
     .read = read_sample<&Sample::code_page_size>,
     .identity = fact_of,
     .order = by_fact,
     .show = show_page_size,
     .fit = Fit::Padded},
    {.name = "local_ins_lat",
     .header = "Local INSTR Latency",
     .help = "the instruction's latency, in cycles",
     .read = [](const KeyUse&, SampleFacts&, const ResolvedSample& s) -> std::uint64_t {
       return s.raw->weight2;
     },
     .identity = fact_of,
     .order = by_fact_down,
     .show = fact_number,
     .fit = Fit::Padded},
    {.name = "ins_lat",
     .header = "INSTR Latency",
     .help = "the same, times the samples",
     .read = [](const KeyUse&, SampleFacts&, const ResolvedSample& s) -> std::uint64_t {
       return s.raw->weight2;
     },
     .identity = fact_of,
     .order = by_fact_down,
     .show = times_samples,
     .fit = Fit::Padded},
    {.name = "local_p_stage_cyc",
     .header = "Local Pipeline Stage Cycle",
     .help = "cycles in a stage of the pipeline",
     .read = [](const KeyUse&, SampleFacts&, const ResolvedSample& s) -> std::uint64_t {
       return s.raw->weight3;
     },
     .identity = fact_of,
     .order = by_fact_down,
     .show = fact_number,
     .fit = Fit::Padded},
    {.name = "p_stage_cyc",
     .header = "Pipeline Stage Cycle",
     .help = "the same, times the samples",
     .read = [](const KeyUse&, SampleFacts&, const ResolvedSample& s) -> std::uint64_t {
       return s.raw->weight3;
     },
     .identity = fact_of,
     .order = by_fact_down,
     .show = times_samples,
     .fit = Fit::Padded},
    {.name = "addr",
     .header = "Address",
     .help = "the address of the instruction",
     .of = KeyOf::Place,
     .identity = [](Show, Row row) { return row.function->first_ip; },
     .order = [](Show, Row a, Row b) { return address_order(a.function->first_ip, b.function->first_ip); },
     .show =
         [](Show, Row row) {
           return fmt::format("{}{:x}", row.function->first_ip == 0 ? "" : "0x", row.function->first_ip);
         },
     .least_width = kAddressWidth + 2,
     .fit = Fit::Padded},
    {.name = "parallelism",
     .header = "Parallelism",
     .help = "how many threads of the command ran, where switches were recorded (perf 7)",
     .read = [](const KeyUse&, SampleFacts& facts, const ResolvedSample&) -> std::uint64_t {
       return facts.parallelism();
     },
     .identity = fact_of,
     .order = by_fact,
     .show = fact_number,
     .fit = Fit::Right},
    {.name = "comm_nodigit",
     .header = "CommandNoDigit",
     .help = "the thread's name with <N> for its numbers: a pool of workers is one row (perf 7)",
     .of = KeyOf::Comm,
     .identity = [](Show, Row row) -> std::uint64_t { return text_hash(without_digits(row.comm)); },
     .order = [](Show, Row a, Row b) -> Order { return without_digits(a.comm) <=> without_digits(b.comm); },
     .show = [](Show show, Row row) { return shown(show, without_digits(row.comm)); }},
};

}  // namespace

std::span<const SortKey> usual_keys() { return kSortKeys; }

}  // namespace tacho::report
