#include "report/redaction.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <iterator>
#include <variant>
#include <vector>

#include "format/base/file.h"
#include "format/extensions/symbol_pack.h"
#include "format/records/record.h"
#include "report/aliases.h"
#include "report/samples/filter.h"
#include "symbolize/frame.h"

namespace tacho::report {

namespace {

constexpr std::uint64_t kHalf = std::uint64_t{1} << 63, kImageStep = 2 << 20, kPage = 4096;

}  // namespace

void KernelPlaces::see_text(std::uint64_t start) {
  if (start < kHalf || start >= kModulesEnd) return;
  if (mapped_text_ == 0 || start < mapped_text_) mapped_text_ = start;
}

void KernelPlaces::see_code(std::uint64_t address) {
  if (address >= kModules && address < kModulesEnd) lowest_module_ = std::min(lowest_module_, address);
  if (address >= kImages && address < kModules) lowest_in_image_ = std::min(lowest_in_image_, address);
}

std::uint64_t KernelPlaces::text() const {
  const std::uint64_t start = mapped_text_ != 0 ? mapped_text_ : lowest_in_image_;
  return start == std::numeric_limits<std::uint64_t>::max() ? 0 : start & ~(kImageStep - 1);
}

std::optional<std::uint64_t> KernelPlaces::place_of(std::uint64_t address) const {
  if (address < kHalf) return std::nullopt;
  const std::uint64_t from = text();
  if (address >= kModules && address < kModulesEnd) {
    const std::uint64_t first = lowest_module_ & ~(kPage - 1);
    if (lowest_module_ == std::numeric_limits<std::uint64_t>::max() || address < first) return std::nullopt;
    return address - first + kModules;
  }
  if (from == 0) return std::nullopt;
  if (from >= kImages) {
    if (address < from || address >= kModules) return std::nullopt;
    return std::min(address - from + kUsualText, kModules - 1);
  }
  const bool is_near = address - from < kNear || from - address < kNear;
  return is_near ? std::optional(address - from + kOtherText) : std::nullopt;
}

std::uint64_t KernelPlaces::moved(std::uint64_t address) const { return place_of(address).value_or(address); }

std::uint64_t KernelPlaces::hidden(std::uint64_t address, const Aliases& aliases) const {
  constexpr std::uint64_t kKeptBits = 0xffff'8000'0000'0000;
  if (address < kHalf) return address;
  return place_of(address).value_or((address & kKeptBits) | (aliases.of_number(address) & ~kKeptBits));
}

std::string KernelPlaces::hidden_in(std::string_view text, const Aliases& aliases) const {
  constexpr std::string_view kDigits = "0123456789abcdefABCDEF";
  constexpr std::size_t kAll = 16;
  std::string changed;
  while (!text.empty()) {
    const std::size_t begin = std::min(text.find_first_of(kDigits), text.size());
    const std::size_t end = std::min(text.find_first_not_of(kDigits, begin), text.size());
    const std::string_view digits = text.substr(begin, end - begin);
    std::uint64_t number = 0;
    changed += text.substr(0, begin);
    if (digits.size() == kAll) std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
    changed += number >= kHalf ? fmt::format("{:016x}", hidden(number, aliases)) : std::string(digits);
    text.remove_prefix(end);
  }
  return changed;
}

namespace {

struct WayRow {
  How usual;
  bool can_drop, can_hash;
};

// The default of each class, and whether it can be dropped and hashed, in the order of enum Content.
constexpr WayRow kWays[] = {
    {How::Drop, true, true},    // cmdline
    {How::Drop, true, true},    // host
    {How::Last, false, true},   // paths: they distinguish modules
    {How::Hash, true, true},    // comm
    {How::Hash, true, true},    // containers
    {How::Hash, true, true},    // payload
    {How::Drop, true, false},   // stacks
    {How::Drop, true, false},   // registers
    {How::Drop, true, false},   // addresses
    {How::Move, false, false},  // kernel
    {How::Drop, true, false},   // time
    {How::Drop, true, false},   // traces
};
static_assert(std::size(kWays) == format::kContentCount);

std::string known_classes() {
  std::string known;
  for (const format::ContentRow& row : format::kContents) known += std::string(row.name) + ", ";
  return known + "all";
}

}  // namespace

std::string_view state_of(How how) {
  switch (how) {
    case How::Drop:
      return "dropped";
    case How::Hash:
      return "hashed";
    case How::Last:
      return "last part";
    case How::Move:
      return "moved";
    case How::Keep:
      break;
  }
  return format::kAsRecorded;
}

Redaction::Redaction() { std::ranges::transform(kWays, how_.begin(), &WayRow::usual); }

PathRule Redaction::path_rule() const {
  switch (of(Content::Paths)) {
    case How::Keep:
      return hides(Content::Host) ? PathRule::Users : PathRule::Keep;
    case How::Last:
      return PathRule::Last;
    default:
      return PathRule::Hash;
  }
}

Result<> Redaction::set(std::string_view option, std::string_view classes, How how, bool is_usual) {
  const std::vector<std::string> names = parse_name_list(classes);
  if (names.empty()) return use_error(std::string(option) + ": name classes, or all");
  const auto can = [&](const WayRow& way) {
    return (how != How::Drop || way.can_drop) && (how != How::Hash || way.can_hash);
  };
  for (const std::string& name : names) {
    if (name == "all") {
      for (std::size_t i = 0; i < how_.size(); ++i)
        if (is_usual || can(kWays[i])) how_[i] = is_usual ? kWays[i].usual : how;
      continue;
    }
    const auto content = format::find_content(name);
    if (!content)
      return use_error(
          fmt::format("{}: there is no class '{}'; there are {}", option, name, known_classes()));
    const auto number = static_cast<std::size_t>(*content);
    if (!is_usual && !can(kWays[number]))
      return use_error(fmt::format("{}: {} cannot be {}; --hide {} makes it {}", option, name, state_of(how),
                                   name, state_of(kWays[number].usual)));
    how_[number] = is_usual ? kWays[number].usual : how;
  }
  return Done{};
}

Result<> Redaction::keep(std::string_view classes) { return set("--keep", classes, How::Keep, false); }
Result<> Redaction::hide(std::string_view classes) { return set("--hide", classes, How::Keep, true); }
Result<> Redaction::drop(std::string_view classes) { return set("--drop", classes, How::Drop, false); }
Result<> Redaction::hash(std::string_view classes) { return set("--hash", classes, How::Hash, false); }

std::string Redaction::table() {
  std::string table;
  for (const format::ContentRow& row : format::kContents) {
    const WayRow& way = kWays[static_cast<std::size_t>(row.content)];
    std::string_view other;
    if (way.usual != How::Hash && way.can_hash) other = " (or hashed)";
    if (way.usual != How::Drop && way.can_drop) other = " (or dropped)";
    table += fmt::format("  {:<11} {:<22} {}\n", row.name,
                         std::string(state_of(way.usual)) + std::string(other), row.what);
  }
  return table;
}

namespace {

namespace abi = format::abi;
using format::Content;

constexpr std::uint64_t kKernelHalf = std::uint64_t{1} << 63;
constexpr std::uint64_t kNanosecondsInSecond = 1'000'000'000;

bool is_file(std::string_view path) { return path.starts_with('/') && !path.starts_with("//"); }

}  // namespace

void Census::see_path(std::string_view path) {
  if (!is_file(path) || !paths_.emplace(path).second) return;
  if (user_in(path)) ++users_;
  const bool is_better = path_example_.empty() || (!user_in(path_example_) && user_in(path));
  if (is_better) path_example_ = path;
}

// The lowest address of kernel modules and BPF programs that has a name.
void Census::see_pack(const format::Features& features) {
  const auto pack = format::parse_symbol_pack(features.symbol_pack);
  if (!pack) return;
  for (const format::PackedModule& module : pack->modules) {
    see_path(pack->texts[module.path]);
    const auto kind = static_cast<symbolize::ModuleKind>(module.kind);
    const bool is_kernel = kind == symbolize::ModuleKind::Kernel ||
                           kind == symbolize::ModuleKind::KernelModule || kind == symbolize::ModuleKind::Bpf;
    for (const format::PackedAddress& address : module.addresses) {
      if (is_kernel) kernel_.see_code(address.address);
      if (address.file != 0) source_files_.emplace(pack->texts[address.file]);
    }
    for (const format::PackedSymbol& symbol : module.symbols)
      if (is_kernel) kernel_.see_code(symbol.start);
    for (const format::PackedFunction& function : module.functions)
      if (function.call_file != 0) source_files_.emplace(pack->texts[function.call_file]);
  }
}

void Census::see_head(const format::EventSet& events, const format::Features& features) {
  const format::Environment& environment = features.environment;
  words_ = environment.command_line.size() + (features.attachment("processes") != nullptr ? 1 : 0);
  hosts_ = environment.hostname ? 1 : 0;
  if (environment.hostname) host_example_ = *environment.hostname;
  for (const format::BuildIdEntry& entry : environment.build_ids) see_path(entry.filename);
  if (!features.symbol_pack.empty()) see_pack(features);
  clocks_ = environment.clock_data ? 1 : 0;
  for (const format::Event& event : events)
    if (event.attr.has(abi::kUseClockid) &&
        (event.attr.clockid == CLOCK_REALTIME || event.attr.clockid == CLOCK_TAI))
      is_wall_clock_ = true;
  const format::Attachment* const list = features.attachment(format::kKallsymsAttachment);
  kernel_lists_ = (list != nullptr ? 1 : 0) + environment.bpf_programs.size();
  if (list == nullptr) return;
  const auto content = format::unpack_attachment(*list);
  if (!content) return;
  std::string_view text = format::as_text(*content);
  while (!text.empty()) {
    std::uint64_t address = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(text.size(), 16); ++i) {
      const char letter = text[i];
      const int digit = letter >= '0' && letter <= '9'   ? letter - '0'
                        : letter >= 'a' && letter <= 'f' ? letter - 'a' + 10
                                                         : -1;
      if (digit < 0) break;
      address = address << 4 | static_cast<std::uint64_t>(digit);
    }
    kernel_.see_code(address);
    const auto end = text.find('\n');
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
}

void Census::see_sample(const format::Sample& sample, const format::EventAttr& attr) {
  const std::uint64_t type = attr.sample_type;
  bool is_kernel = false;
  const auto see = [&](std::uint64_t address) {
    if (address < kKernelHalf || address >= abi::kContextMax) return;
    is_kernel = true;
    kernel_.see_code(address);
  };
  if (type & abi::kSampleIp) see(sample.ip);
  if (type & abi::kSampleCallchain)
    for (std::size_t i = 0; i < sample.callchain.size(); ++i) see(sample.callchain[i]);
  if (type & abi::kSampleBranchStack)
    for (std::size_t i = 0; i < sample.branch_count(); ++i) {
      see(sample.branch(i).from);
      see(sample.branch(i).to);
    }
  kernel_addresses_ += is_kernel ? 1 : 0;
  payloads_ += type & abi::kSampleRaw && !sample.raw.empty() ? 1 : 0;
  if (type & abi::kSampleStackUser) stack_bytes_ += sample.user_stack.size();
  registers_ += (type & abi::kSampleRegsUser && sample.user_registers.abi != 0) ||
                        (type & abi::kSampleRegsIntr && sample.interrupt_registers.abi != 0)
                    ? 1
                    : 0;
  addresses_ +=
      (type & abi::kSampleAddr && sample.addr != 0) || (type & abi::kSamplePhysAddr && sample.phys_addr != 0)
          ? 1
          : 0;
  if (type & abi::kSampleAux) trace_bytes_ += sample.aux.size();
}

void Census::see(const format::RecordView& record, const format::EventSet& events) {
  if (record.type == abi::kRecordAuxtrace) trace_bytes_ += record.payload_size;
  if (record.type >= abi::kRecordUserStart) return;
  const auto event = events.event_of(record);
  if (!event) return;
  const format::EventAttr& attr = events[*event].attr;
  if (const auto time = format::record_time(record, attr); time && *time != 0)
    first_time_ = std::min(first_time_, *time);
  if (record.type == abi::kRecordSample) {
    if (const format::Sample* const sample = samples_.parse(record, attr)) see_sample(*sample, attr);
    return;
  }
  if (const auto parsed = format::parse_record(record, attr)) see_other(*parsed);
}

void Census::see_other(const format::Record& record) {
  if (const auto* comm = std::get_if<format::CommRecord>(&record); comm != nullptr && !comm->name.empty()) {
    if (comm_example_.empty()) comm_example_ = comm->name;
    comms_.emplace(comm->name);
  }
  if (const auto* mapping = std::get_if<format::MmapRecord>(&record)) {
    see_path(mapping->filename);
    const bool is_text = mapping->filename.starts_with("[kernel.kallsyms]");
    if (is_text)
      kernel_.see_text(mapping->page_offset >= kKernelHalf ? mapping->page_offset : mapping->start);
    if (!is_text) kernel_.see_code(mapping->start);
  }
  if (const auto* symbol = std::get_if<format::KsymbolRecord>(&record)) kernel_.see_code(symbol->address);
  if (const auto* cgroup = std::get_if<format::CgroupRecord>(&record);
      cgroup != nullptr && cgroup->path.size() > 1) {
    if (container_example_.empty()) container_example_ = cgroup->path;
    containers_.emplace(cgroup->path);
  }
  if (std::holds_alternative<format::NamespacesRecord>(record)) ++namespaces_;
}

std::array<Census::Count, format::kContentCount> Census::counts() const {
  std::array<Count, format::kContentCount> counts;
  const auto set = [&](Content content, std::uint64_t number, std::string_view unit,
                       std::string example = {}) {
    counts[static_cast<std::size_t>(content)] = {number, unit, std::move(example)};
  };
  set(Content::CommandLine, words_, "words");
  set(Content::Host, hosts_ + users_, "names, of the host and in paths", host_example_);
  set(Content::Paths, paths_.size() + source_files_.size(), "files", path_example_);
  set(Content::Comm, comms_.size(), "names", comm_example_);
  set(Content::Containers, containers_.size() + namespaces_, "cgroups, and namespaces of threads",
      container_example_);
  set(Content::Payload, payloads_, "samples");
  set(Content::Stacks, stack_bytes_, "bytes");
  set(Content::Registers, registers_, "samples");
  set(Content::Addresses, addresses_, "samples");
  set(Content::Kernel, kernel_addresses_ + kernel_lists_, "samples, and lists of symbols and programs");
  set(Content::Time, clocks_ + (is_wall_clock_ ? 1 : 0), "clocks");
  set(Content::Traces, trace_bytes_, "bytes");
  return counts;
}

std::uint64_t Census::time_shift() const {
  const bool is_known = first_time_ != std::numeric_limits<std::uint64_t>::max();
  return is_wall_clock_ && is_known && first_time_ > kNanosecondsInSecond ? first_time_ - kNanosecondsInSecond
                                                                          : 0;
}

}  // namespace tacho::report
