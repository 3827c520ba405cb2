#include "report/census.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <variant>

#include "cli/message_text.h"
#include "format/base/cursor.h"
#include "format/extensions/symbol_pack.h"
#include "format/records/perf_abi.h"
#include "report/aliases.h"
#include "report/redaction.h"
#include "symbolize/frame.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

constexpr std::uint64_t kNanosecondsInSecond = 1'000'000'000;

}  // namespace

void Census::see_path(std::string_view path) {
  const bool is_file = path.starts_with('/') && !path.starts_with("//");
  if (!is_file || !paths_.emplace(path).second) return;
  if (user_in(path)) ++users_;
  if (path_example_.empty() || (!user_in(path_example_) && user_in(path))) path_example_ = path;
}

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
  is_wall_clock_ = std::ranges::any_of(events, [](const format::Event& event) {
    return event.attr.has(abi::kUseClockid) &&
           (event.attr.clockid == CLOCK_REALTIME || event.attr.clockid == CLOCK_TAI);
  });
  const format::Attachment* const list = features.attachment(format::kKallsymsAttachment);
  kernel_lists_ = (list != nullptr ? 1 : 0) + environment.bpf_programs.size();
  if (list == nullptr) return;
  const auto content = format::unpack_attachment(*list);
  if (!content) return;
  std::string_view text = format::as_text(*content);
  while (!text.empty()) {
    std::uint64_t address = 0;
    const std::string_view number = text.substr(0, 16);
    std::from_chars(number.data(), number.data() + number.size(), address, 16);
    kernel_.see_code(address);
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
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
  const bool has_registers = (type & abi::kSampleRegsUser && sample.user_registers.abi != 0) ||
                             (type & abi::kSampleRegsIntr && sample.interrupt_registers.abi != 0);
  registers_ += has_registers ? 1 : 0;
  const bool has_address =
      (type & abi::kSampleAddr && sample.addr != 0) || (type & abi::kSamplePhysAddr && sample.phys_addr != 0);
  addresses_ += has_address ? 1 : 0;
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
    else
      kernel_.see_code(mapping->start);
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
  const auto set = [&](Content content, std::uint64_t number, std::string_view noun, std::string example = {},
                       std::string_view explained = {}) {
    counts[static_cast<std::size_t>(content)] = {
        number, fmt::format("{}{}", cli::noun_after(number, noun), explained), std::move(example)};
  };
  set(Content::CommandLine, words_, "word");
  set(Content::Host, hosts_ + users_, "name", host_example_, " (of the host, of users in paths)");
  set(Content::Paths, paths_.size() + source_files_.size(), "file", path_example_);
  set(Content::Comm, comms_.size(), "name", comm_example_);
  set(Content::Containers, containers_.size() + namespaces_, "name", container_example_,
      " (cgroups, namespaces of threads)");
  set(Content::Payload, payloads_, "sample");
  set(Content::Stacks, stack_bytes_, "byte");
  set(Content::Registers, registers_, "sample");
  set(Content::Addresses, addresses_, "sample");
  set(Content::Kernel, kernel_addresses_ + kernel_lists_, "place", {},
      " (samples, lists of symbols, BPF programs)");
  set(Content::Time, clocks_ + (is_wall_clock_ ? 1 : 0), "clock");
  set(Content::Traces, trace_bytes_, "byte");
  return counts;
}

std::uint64_t Census::time_shift() const {
  const bool is_known = first_time_ != std::numeric_limits<std::uint64_t>::max();
  if (!is_wall_clock_ || !is_known || first_time_ <= kNanosecondsInSecond) return 0;
  return first_time_ - kNanosecondsInSecond;
}

}  // namespace tacho::report
