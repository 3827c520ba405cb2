// Sort keys of memory accesses: what was touched, and what answered.
#include <fmt/format.h>

#include "format/records/perf_abi.h"
#include "report/decode/coded_values.h"
#include "report/profile/sort_keys.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;
using format::Sample;
using Fit = SortKey::Fit;

constexpr std::uint64_t kCacheLine = 64;  // bytes: of the machine that shows, in perf

std::uint64_t read_data_place(const KeyUse&, SampleFacts&, const ResolvedSample& sample) {
  return sample.locate_in(sample.raw->addr, sample.raw->misc & abi::kCpumodeMask).number;
}
std::uint64_t read_code_place(const KeyUse&, SampleFacts&, const ResolvedSample& sample) {
  const Location& user = sample.locate_in(sample.raw->ip, abi::kCpumodeUser);
  if (user.mapping != nullptr) return user.number;
  return sample.locate_in(sample.raw->ip, abi::kCpumodeKernel).number;
}
template <auto Field>
std::uint64_t read_memory_field(const KeyUse&, SampleFacts&, const ResolvedSample& sample) {
  return sample.raw->*Field;
}

OtherPlace place_of(Show show, Row row) { return place_at(show, show.fact(row)); }
std::uint64_t address_of(Show show, Row row) {
  return show.facts.session().resolver().location(static_cast<std::uint32_t>(show.fact(row))).ip.value;
}
Order by_address(Show show, Row a, Row b) { return address_order(address_of(show, a), address_of(show, b)); }
std::string show_data_in(Show show, Row row, std::size_t width) {
  return show_place(show, place_of(show, row), address_of(show, row), row.level, width);
}
std::string show_data(Show show, Row row) { return show_data_in(show, row, kAnyWidth); }
std::size_t data_width(Show show, Row row) {
  constexpr std::size_t kOffset = 18;  // of a place in a variable
  const OtherPlace place = place_of(show, row);
  return place.has_name() ? shown(show, place.function->name()).size() + 4 + kOffset : kUnknownWidth;
}

std::uint64_t data_module_identity(Show show, Row row) {
  const Function& function = *place_of(show, row).function;
  return show.facts.options().is_verbose ? function.module_rank : function.module_number;
}

// Lines of the cache. perf separates lines of private memory by process, all others by the file.
std::uint64_t line_of_cache(const OtherPlace& place) { return place.address & ~(kCacheLine - 1); }
bool is_private(const OtherPlace& place, Row row) {
  return place.location->mapping != nullptr && row.function->level != 'k' &&
         place.location->mapping->module->kind == symbolize::ModuleKind::Anonymous;
}
std::uint64_t cache_line_identity(Show show, Row row) {
  const OtherPlace place = place_of(show, row);
  const std::uint64_t process = is_private(place, row) ? row.thread->pid : ~std::uint64_t{0};
  const std::uint64_t space = show.facts.one_of_several(place.function->module_number, process);
  return show.facts.one_of_several(show.facts.one_of_several(space, line_of_cache(place)),
                                   row.function->level);
}
Order cache_line_order(Show show, Row a, Row b) {
  if (a.function->level != b.function->level) return a.function->level == 'k' ? Order::less : Order::greater;
  const OtherPlace place_a = place_of(show, a), place_b = place_of(show, b);
  const bool has_a = place_a.location->mapping != nullptr, has_b = place_b.location->mapping != nullptr;
  if (has_a != has_b) return has_a ? Order::less : Order::greater;
  if (place_a.function->module_number != place_b.function->module_number)
    return place_a.function->module_number <=> place_b.function->module_number;
  if (is_private(place_a, a) && a.thread->pid != b.thread->pid) return a.thread->pid <=> b.thread->pid;
  return line_of_cache(place_a) <=> line_of_cache(place_b);
}
std::string show_cache_line_in(Show show, Row row, std::size_t width) {
  const OtherPlace place = place_of(show, row);
  const char level = place.location->mapping == nullptr ? 'X' : row.level;
  return show_place(show, place, line_of_cache(place), level, width);
}

template <DataSourcePart Part>
std::uint64_t source_bits(Show show, Row row) {
  return data_source_bits(Part, show.fact(row));
}
template <DataSourcePart Part>
Order by_source_bits(Show show, Row a, Row b) {
  return source_bits<Part>(show, a) <=> source_bits<Part>(show, b);
}
template <DataSourcePart Part>
std::string show_source(Show show, Row row) {
  return data_source_part(Part, show.fact(row));
}

template <DataSourcePart Part>
constexpr SortKey source_key(std::string_view name, std::string_view header, std::string_view help,
                             std::size_t width, Fit fit) {
  return {.name = name,
          .header = header,
          .help = help,
          .read = read_memory_field<&Sample::data_source>,
          .identity = source_bits<Part>,
          .order = by_source_bits<Part>,
          .show = show_source<Part>,
          .width = [](Show, Row) -> std::size_t { return 0; },
          .least_width = width,
          .fit = fit,
          .mode = ReportMode::Memory};
}

constexpr SortKey kMemoryKeys[] = {
    {.name = "symbol_daddr",
     .header = "Data Symbol",
     .help = "the variable, or the address, that was touched",
     .read = read_data_place,
     .identity = address_of,
     .order = by_address,
     .show = show_data,
     .show_in = show_data_in,
     .width = data_width,
     .fit = Fit::Whole,
     .mode = ReportMode::Memory},
    {.name = "dso_daddr",
     .header = "Data Object",
     .help = "the file or module that it is in",
     .read = read_data_place,
     .identity = data_module_identity,
     .order = [](Show show, Row a,
                 Row b) { return module_order_down(show, place_of(show, a), place_of(show, b)); },
     .show = [](Show show, Row row) { return show_place_module(show, place_of(show, row)); },
     .width = [](Show show, Row row) -> std::size_t {
       const OtherPlace place = place_of(show, row);
       if (place.location->mapping != nullptr) return show_place_module(show, place).size();
       return show.facts.options().widens_unknown ? kAddressWidth : 0;
     },
     .mode = ReportMode::Memory},
    source_key<DataSourcePart::Lock>("locked", "Locked", "whether the access was locked", 6, Fit::CutOnly),
    source_key<DataSourcePart::Tlb>("tlb", "TLB access", "where the translation came from", 22, Fit::Padded),
    source_key<DataSourcePart::Level>("mem", "Memory access", "the cache or memory that answered", 24,
                                      Fit::Padded),
    source_key<DataSourcePart::Snoop>("snoop", "Snoop", "what other caches said", 12, Fit::Padded),
    {.name = "dcacheline",
     .header = "Data Cacheline",
     .help = "its cache line of 64 bytes",
     .read = read_data_place,
     .identity = cache_line_identity,
     .order = cache_line_order,
     .show = [](Show show, Row row) { return show_cache_line_in(show, row, kAnyWidth); },
     .show_in = show_cache_line_in,
     .width = [](Show show, Row row) -> std::size_t {
       return data_width(show, row) + (place_of(show, row).has_name() ? 1 : 0);
     },
     .fit = Fit::Whole,
     .mode = ReportMode::Memory},
    {.name = "symbol_iaddr",
     .header = "Code Symbol",
     .help = "the function, a row for each instruction",
     .read = read_code_place,
     .identity = address_of,
     .order = by_address,
     .show = show_data,
     .show_in = show_data_in,
     .width = data_width,
     .fit = Fit::Whole,
     .mode = ReportMode::Memory},
    {.name = "phys_daddr",
     .header = "Data Physical Address",
     .help = "its physical address",
     .read = read_memory_field<&Sample::phys_addr>,
     .identity = fact_of,
     .order = [](Show show, Row a, Row b) { return address_order(show.fact(a), show.fact(b)); },
     .show =
         [](Show show, Row row) {
           const std::uint64_t address = show.fact(row);
           return fmt::format("[{}] {}{:016x}", row.level, address == 0 ? "" : "0x", address);
         },
     .least_width = kUnknownWidth,
     .mode = ReportMode::Memory},
    {.name = "data_page_size",
     .header = "Data Page Size",
     .help = "the size of its page",
     .read = read_memory_field<&Sample::data_page_size>,
     .identity = fact_of,
     .order = by_fact,
     .show = show_page_size,
     .least_width = kUnknownWidth,
     .fit = Fit::Padded,
     .mode = ReportMode::Memory},
    source_key<DataSourcePart::Blocked>("blocked", "Blocked", "what a load waited for", 10, Fit::CutOnly),
};

}  // namespace

std::span<const SortKey> memory_keys() { return kMemoryKeys; }

}  // namespace tacho::report
