#include "record/events/event_names.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "cli/message_text.h"
#include "format/base/file.h"
#include "format/records/perf_abi.h"
#include "record/parse_text.h"

namespace tacho::record {

namespace {

namespace abi = format::abi;
namespace fs = std::filesystem;

constexpr int kWordBits = 64;

std::vector<std::string> folder_names(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code code;
  for (fs::directory_iterator entry(folder, code), end; !code && entry != end; entry.increment(code))
    names.push_back(entry->path().filename());
  std::ranges::sort(names);
  return names;
}

std::optional<std::string> line_of(const std::string& path) {
  const auto bytes = format::read_file(path);
  if (!bytes) return std::nullopt;
  std::string_view text = format::as_text(*bytes);
  return std::string(take_until(text, '\n'));
}

// "uncore_imc" is the family of uncore_imc_0, uncore_imc_1 and so on.
bool is_member(std::string_view candidate, std::string_view family) {
  if (!candidate.starts_with(family)) return false;
  std::string_view rest = candidate.substr(family.size());
  if (rest.starts_with('_')) rest.remove_prefix(1);
  return std::ranges::all_of(rest, [](char letter) { return letter >= '0' && letter <= '9'; });
}

bool stands_for(const std::string& name, const std::string& candidate) {
  if (is_member(candidate, name) || is_member(candidate, "uncore_" + name)) return true;
  return is_glob(name) && fnmatch(name.c_str(), candidate.c_str(), 0) == 0;
}

}  // namespace

std::optional<PmuField> parse_pmu_field(std::string_view name, std::string_view text) {
  constexpr std::string_view kWords[] = {"config:", "config1:", "config2:"};
  PmuField field{std::string(name), 0, {}};
  const auto word =
      std::ranges::find_if(kWords, [text](std::string_view start) { return text.starts_with(start); });
  if (word == std::end(kWords)) return std::nullopt;
  field.word = static_cast<int>(word - std::begin(kWords));
  text.remove_prefix(word->size());
  do {
    const auto first = take_number<int>(text);
    if (!first) return std::nullopt;
    const auto last = take_prefix(text, "-") ? take_number<int>(text) : first;
    if (!last || *last < *first || *last >= kWordBits) return std::nullopt;
    field.bits.emplace_back(*first, *last);
  } while (take_prefix(text, ","));
  if (!text.empty()) return std::nullopt;
  return field;
}

std::uint64_t largest_value(const PmuField& field) {
  int bits = 0;
  for (const auto& [first, last] : field.bits) bits += last - first + 1;
  return bits >= kWordBits ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
}

std::uint64_t placed(const PmuField& field, std::uint64_t value) {
  std::uint64_t word = 0;
  for (const auto& [first, last] : field.bits) {
    for (int bit = first; bit <= last; ++bit, value >>= 1) word |= (value & 1) << bit;
  }
  return word;
}

std::vector<std::string> Pmus::names() const { return folder_names(folder_); }

std::optional<Pmu> Pmus::read_pmu(const std::string& name) const {
  const std::string folder = folder_ + "/" + name;
  const auto type = whole_number<std::uint32_t>(line_of(folder + "/type").value_or(""));
  if (!type) return std::nullopt;
  Pmu pmu{name, *type, {}, {}};
  for (const std::string& field : folder_names(folder + "/format")) {
    const auto text = line_of(folder + "/format/" + field);
    auto parsed = text ? parse_pmu_field(field, *text) : std::nullopt;
    if (parsed) pmu.fields.push_back(std::move(*parsed));
  }
  for (const std::string& event : folder_names(folder + "/events")) {
    if (event.find('.') != std::string::npos) continue;  // EVENT.scale, EVENT.unit
    if (auto terms = line_of(folder + "/events/" + event)) pmu.events.push_back({event, std::move(*terms)});
  }
  return pmu;
}

std::vector<Pmu> Pmus::matching(std::string_view name) const {
  std::vector<Pmu> found;
  for (const std::string& candidate : names()) {
    if (!stands_for(std::string(name), candidate)) continue;
    if (auto pmu = read_pmu(candidate)) found.push_back(std::move(*pmu));
  }
  return found;
}

std::optional<std::pair<Pmu, std::string>> Pmus::with_event(std::string_view event) const {
  if (event.empty() || event.find('/') != std::string_view::npos) return std::nullopt;
  for (const std::string& name : names()) {
    const std::string path = folder_ + "/" + name + "/events/" + std::string(event);
    const auto terms = event.find('.') == std::string_view::npos ? line_of(path) : std::nullopt;
    if (!terms) continue;
    if (auto pmu = read_pmu(name)) return std::pair(std::move(*pmu), *terms);
  }
  return std::nullopt;
}

namespace {

struct Row {
  std::string_view name, alias;
  std::uint32_t type;
  std::uint64_t config;
};

// Numbers of linux/perf_event.h; the names are perf's.
constexpr Row kEvents[] = {
    {"cpu-cycles", "cycles", abi::kHardware, 0},
    {"instructions", "", abi::kHardware, 1},
    {"cache-references", "", abi::kHardware, 2},
    {"cache-misses", "", abi::kHardware, 3},
    {"branch-instructions", "branches", abi::kHardware, 4},
    {"branch-misses", "", abi::kHardware, 5},
    {"bus-cycles", "", abi::kHardware, 6},
    {"stalled-cycles-frontend", "idle-cycles-frontend", abi::kHardware, 7},
    {"stalled-cycles-backend", "idle-cycles-backend", abi::kHardware, 8},
    {"ref-cycles", "", abi::kHardware, 9},
    {"cpu-clock", "", abi::kSoftware, abi::kCpuClock},
    {"task-clock", "", abi::kSoftware, abi::kTaskClock},
    {"page-faults", "faults", abi::kSoftware, abi::kPageFaults},
    {"minor-faults", "", abi::kSoftware, abi::kMinorFaults},
    {"major-faults", "", abi::kSoftware, abi::kMajorFaults},
    {"context-switches", "cs", abi::kSoftware, abi::kContextSwitches},
    {"cpu-migrations", "migrations", abi::kSoftware, abi::kCpuMigrations},
    {"alignment-faults", "", abi::kSoftware, abi::kAlignmentFaults},
    {"emulation-faults", "", abi::kSoftware, abi::kEmulationFaults},
    {"cgroup-switches", "", abi::kSoftware, abi::kCgroupSwitches},
    {"dummy", "", abi::kSoftware, abi::kDummy},
    {"bpf-output", "", abi::kSoftware, abi::kBpfOutput},
};

// A cache event is three numbers: the cache, the operation, and the result.
constexpr int kRead = 0, kWrite = 1, kPrefetch = 2;
constexpr int kAccess = 0, kMiss = 1;

struct Cache {
  std::string_view names[4];  // the first is the one that is listed
  int number;
  bool takes[3];  // reads, writes, prefetches
};
constexpr Cache kCaches[] = {
    {{"L1-dcache", "l1-d", "l1d", "L1-data"}, 0, {true, true, true}},
    {{"L1-icache", "l1-i", "l1i", "L1-instruction"}, 1, {true, false, true}},
    {{"LLC", "L2"}, 2, {true, true, true}},
    {{"dTLB", "d-tlb", "Data-TLB"}, 3, {true, true, true}},
    {{"iTLB", "i-tlb", "Instruction-TLB"}, 4, {true, false, false}},
    {{"branch", "branches", "bpu", "btb"}, 5, {true, false, false}},
    {{"bpc"}, 5, {true, false, false}},
    {{"node"}, 6, {true, true, true}},
};

struct Part {
  std::string_view name;
  int number;
};
constexpr Part kOperations[] = {
    {"load", kRead},
    {"loads", kRead},
    {"read", kRead},
    {"store", kWrite},
    {"stores", kWrite},
    {"write", kWrite},
    {"prefetch", kPrefetch},
    {"prefetches", kPrefetch},
    {"speculative-read", kPrefetch},
    {"speculative-load", kPrefetch},
};
constexpr Part kResults[] = {
    {"refs", kAccess},   {"Reference", kAccess}, {"ops", kAccess},
    {"access", kAccess}, {"misses", kMiss},      {"miss", kMiss},
};

// Removes "-NAME" from the start of `rest` if it is one of the rows; returns the row's number.
template <std::size_t N>
std::optional<int> take_part(std::string_view& rest, const Part (&rows)[N]) {
  if (!rest.starts_with('-')) return std::nullopt;
  const std::string_view text = rest.substr(1);
  for (const Part& row : rows) {
    if (!text.starts_with(row.name)) continue;
    const std::string_view after = text.substr(row.name.size());
    if (!after.empty() && !after.starts_with('-')) continue;
    rest = after;
    return row.number;
  }
  return std::nullopt;
}

struct CacheEvent {
  const Cache* cache;
  int operation, result;
};

std::optional<CacheEvent> parse_cache_event(std::string_view name) {
  for (const Cache& cache : kCaches) {
    for (const std::string_view spelling : cache.names) {
      if (spelling.empty() || !name.starts_with(spelling)) continue;
      std::string_view rest = name.substr(spelling.size());
      auto operation = take_part(rest, kOperations);
      const auto result = take_part(rest, kResults);
      if (!operation) operation = take_part(rest, kOperations);  // the other order is accepted too
      if (rest.empty()) return CacheEvent{&cache, operation.value_or(kRead), result.value_or(kAccess)};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<NamedEvent> find_named_event(std::string_view name) {
  if (name.empty()) return std::nullopt;
  for (const Row& row : kEvents) {
    if (row.name == name || row.alias == name) return NamedEvent{row.type, row.config};
  }
  const auto event = parse_cache_event(name);
  if (!event || !event->cache->takes[event->operation]) return std::nullopt;
  return NamedEvent{abi::kHwCache, static_cast<std::uint64_t>(event->cache->number | event->operation << 8 |
                                                              event->result << 16)};
}

std::string cache_event_error(std::string_view name) {
  const auto event = parse_cache_event(name);
  if (!event || event->cache->takes[event->operation]) return {};
  constexpr std::string_view kWhat[] = {"loads", "stores", "prefetches"};
  return fmt::format("{} takes no {}", event->cache->names[0], kWhat[event->operation]);
}

std::vector<ListedEvent> named_events() {
  std::vector<ListedEvent> events;
  for (const Row& row : kEvents) {
    events.push_back({std::string(row.name), std::string(row.alias),
                      row.type == abi::kHardware ? "Hardware event" : "Software event"});
  }
  constexpr std::string_view kPlural[] = {"loads", "stores", "prefetches"};
  constexpr std::string_view kSingular[] = {"load", "store", "prefetch"};
  for (const Cache& cache : kCaches) {
    if (cache.names[0] == "bpc") continue;  // an alias
    for (const int operation : {kRead, kWrite, kPrefetch}) {
      if (!cache.takes[operation]) continue;
      events.push_back(
          {fmt::format("{}-{}", cache.names[0], kPlural[operation]), "", "Hardware cache event"});
      events.push_back(
          {fmt::format("{}-{}-misses", cache.names[0], kSingular[operation]), "", "Hardware cache event"});
    }
  }
  return events;
}

Error error_at(std::string_view text, std::size_t at, std::string_view what) {
  return cli::error_at(fmt::format("-e {}", text), text, at, what);
}

std::string distinct_name(const std::string& name, const std::function<bool(const std::string&)>& is_taken) {
  std::string distinct = name;
  for (int number = 2; is_taken(distinct); ++number) distinct = fmt::format("{}.{}", name, number);
  return distinct;
}

}  // namespace tacho::record
