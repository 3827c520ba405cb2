#include "report/views/import/imported_capture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "format/base/digest.h"
#include "format/records/perf_abi.h"
#include "format/records/record.h"
#include "report/decode/comments.h"
#include "symbolize/frame.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;
using symbolize::ModuleKind;

// Addresses of modules: those with names alone have 4 GiB each, and the others follow.
constexpr std::uint64_t kNamedStart = std::uint64_t{1} << 32, kNamedLength = std::uint64_t{1} << 32;
constexpr std::uint64_t kPlacedStart = std::uint64_t{1} << 46, kModulesEnd = (std::uint64_t{1} << 47) - 4096;
constexpr std::uint64_t kKernelModulesStart = std::uint64_t{1} << 63;
constexpr std::size_t kMostKernelModules = 1024;
constexpr std::uint64_t kLargestModule = std::uint64_t{1} << 40;  // bytes
constexpr std::uint64_t kFrameBytes = 16;                         // of code without addresses
constexpr std::uint64_t kModulePage = 4096;
constexpr std::size_t kLongestPath = 4000, kLongestComm = 255, kLongestName = std::size_t{1} << 16;  // bytes
constexpr std::size_t kRecordsPiece = std::size_t{128} << 10;    // bytes of records that are written at once
constexpr std::uint64_t kMostRecords = std::uint64_t{64} << 30;  // bytes; hostile events multiply deep stacks
constexpr std::uint32_t kProtReadExec = 5, kMonotonicClock = 1;
constexpr std::string_view kNamelessFunction = "[unnamed]";
constexpr std::string_view kImportedKernel = "[kernel.kallsyms]";

// Text of a record, which ends at its first NUL.
std::string_view record_text(std::string_view text, std::size_t longest) {
  return text.substr(0, std::min(text.find('\0'), longest));
}

// Whether a mapping of this name is of memory without a file, which has no packed names.
bool names_memory(std::string_view path) {
  constexpr std::string_view kMemory[] = {"//anon", "/dev/zero", "/anon_hugepage",
                                          "[stack", "/SYSV",     "[heap]"};
  return std::ranges::any_of(kMemory, [path](std::string_view start) { return path.starts_with(start); });
}
bool names_vdso(std::string_view path) {
  return path == "[vdso]" || path == "[vdso32]" || path == "[vdsox32]";
}

std::uint32_t padded_to_words(std::uint32_t bytes) { return (bytes + 7) / 8 * 8; }

bool is_clock_event(const ImportedLayout& layout, const ImportedEvent& event) {
  return event.unit == "ns" && layout.labels.empty();
}
// Whether events have a payload: the weight with its unit, and labels.
bool has_imported_payloads(const ImportedLayout& layout) {
  return !layout.labels.empty() || std::ranges::any_of(layout.events, [](const ImportedEvent& event) {
    return !event.unit.empty() && event.unit != "ns";
  });
}

format::PayloadSchema imported_schema(const ImportedLayout& layout, const ImportedEvent& event) {
  constexpr std::uint32_t kByte = 8, kWord = 64;  // bits
  format::PayloadSchema schema{.event = event.name, .type_name = "imported", .size = 8, .fields = {}};
  schema.fields.push_back({.name = event.name, .bit_size = kWord, .unit = event.unit, .role = "weight"});
  for (const ImportedLabel& label : layout.labels) {
    format::PayloadField field{
        .name = label.name, .bit_offset = schema.size * kByte, .unit = label.unit, .role = "key"};
    if (label.text_bytes == 0) {
      field.kind = format::FieldKind::Signed;
      field.bit_size = kWord;
      schema.size += kWord / kByte;
    } else {
      field.kind = format::FieldKind::Text;
      field.bit_size = kByte;
      field.count = label.text_bytes;
      schema.size += padded_to_words(label.text_bytes);
    }
    schema.fields.push_back(std::move(field));
  }
  return schema;
}

}  // namespace

std::uint64_t WholeWeights::next_weight(double weight) {
  constexpr double kMost = 1.8e19;
  sum_ = std::min(sum_ + std::max(weight, 0.0), kMost);
  const auto reached = static_cast<std::uint64_t>(std::round(sum_));
  return reached - std::exchange(given_, std::max(reached, given_));
}

ImportedCapture::ImportedCapture(const std::string& source, std::uint64_t digest,
                                 format::Diagnostics& diagnostics)
    : source_(record_text(source, kLongestPath)),
      digest_(digest),
      diagnostics_(&diagnostics),
      next_named_(kNamedStart),
      next_placed_(kPlacedStart) {
  if (source_.empty() || names_memory(source_) || names_vdso(source_)) source_ = "imported";
  pack_.level = format::PackLevel::Inlines;
  named_module(source_);
}

format::BuildId ImportedCapture::made_build_id(std::size_t number) const {
  format::ByteWriter bytes;
  const std::string_view path = pack_.texts[modules_[number].packed.path];
  bytes.u64(digest_).u64(format::digest(std::as_bytes(std::span(path)), digest_));
  bytes.u32(static_cast<std::uint32_t>(number + 1));
  return format::BuildId::from_bytes(bytes.view());
}

ImportedModuleId ImportedCapture::add_module(Module module, std::string_view path) {
  using Packed = format::PackedModule;
  const std::size_t number = modules_.size();
  module.packed.path = pack_.texts.number_of(path);
  module.packed.flags = Packed::kHasFullSymbols | Packed::kHasOwnTable | Packed::kHasLines;
  module.packed.letter = 'd';
  const bool has_id = module.packed.kind == static_cast<std::uint8_t>(ModuleKind::User);
  const bool is_unknown = module.packed.build_id.empty();
  modules_.push_back(std::move(module));
  if (has_id && is_unknown) modules_[number].packed.build_id = made_build_id(number);
  return static_cast<ImportedModuleId>(number);
}

ImportedModuleId ImportedCapture::named_module(std::string_view given) {
  std::string_view path = record_text(given, kLongestPath);
  const bool is_room = next_named_ + kNamedLength <= kPlacedStart;
  if (path.empty() || names_memory(path) || names_vdso(path) || !is_room) path = source_;
  // After the first sample no process would have it.
  if (first_pid_ && !named_.contains(std::string(path))) path = source_;
  const auto [known, is_new] = named_.try_emplace(std::string(path));
  if (!is_new) return known->second;
  Module module{
      .packed = {}, .start = next_named_, .length = kNamedLength, .page_offset = 0, .next = kFrameBytes};
  next_named_ += kNamedLength;
  return known->second = add_module(std::move(module), path);
}

std::optional<ImportedModuleId> ImportedCapture::placed_module(std::string_view given,
                                                               const format::BuildId& id, std::uint64_t first,
                                                               std::uint64_t last) {
  std::string_view path = record_text(given, kLongestPath);
  if (path.empty() || names_memory(path) || first > last) return std::nullopt;
  // Equal names would be one module for readers.
  const format::BuildId told_apart = names_vdso(path) ? format::BuildId() : id;
  if (!told_apart.empty() || names_vdso(path))
    if (!placed_.emplace(path, told_apart).second) return std::nullopt;
  Module module;
  module.packed.build_id = id;
  if (first >= kKernelModulesStart) {
    if (!path.starts_with('[') || last > abi::kContextMax - kModulePage) return std::nullopt;
    const bool is_kernel = path.starts_with("[kernel.");
    if (is_kernel) path = kImportedKernel;
    module.packed.kind = static_cast<std::uint8_t>(is_kernel ? ModuleKind::Kernel : ModuleKind::KernelModule);
    module.is_kernel = true;
    module.start = first;
    module.length = last - first + 2;
    if (++kernel_modules_ > kMostKernelModules) return std::nullopt;
    const auto collides = [&](const Module& other) {
      return other.is_kernel && (pack_.texts[other.packed.path] == path ||
                                 (first < other.start + other.length && other.start < first + module.length));
    };
    if (std::ranges::any_of(modules_, collides)) return std::nullopt;
    return add_module(std::move(module), path);
  }
  const bool is_vdso = names_vdso(path);
  if (is_vdso) {
    module.packed.kind = static_cast<std::uint8_t>(ModuleKind::Vdso);
    module.packed.build_id = {};
  }
  module.page_offset = is_vdso ? 0 : first / kModulePage * kModulePage;
  if (last - module.page_offset > kLargestModule) return std::nullopt;
  module.length = (last - module.page_offset + 2 + kModulePage - 1) / kModulePage * kModulePage;
  if (module.length > kModulesEnd - next_placed_) return std::nullopt;
  module.start = next_placed_;
  next_placed_ += module.length;
  return add_module(std::move(module), path);
}

void ImportedCapture::pack_lines(Module& module, std::uint64_t address, std::span<const ImportedLine> lines) {
  const auto text = [this](std::string_view name) {
    return pack_.texts.number_of(name.substr(0, kLongestName));
  };
  const auto named = [&](std::string_view name) { return text(name.empty() ? kNamelessFunction : name); };
  format::PackedModule& packed = module.packed;
  packed.flags |= format::PackedModule::kHasNames;
  const ImportedLine& outermost = lines.back();
  const auto [known, is_new] = module.symbols.try_emplace(std::string(outermost.function),
                                                          static_cast<std::uint32_t>(packed.symbols.size()));
  if (is_new)
    packed.symbols.push_back({.start = address, .end = address + 1, .name = named(outermost.function)});
  format::PackedSymbol& symbol = packed.symbols[known->second];
  symbol.start = std::min(symbol.start, address);
  symbol.end = std::max(symbol.end, address + 1);
  format::PackedAddress place{.address = address,
                              .elf_address = address,
                              .symbol = known->second,
                              .file = text(lines.front().file),
                              .line = lines.front().line};
  if (place.file == 0) place.line = 0;
  for (std::size_t i = lines.size(); lines.size() > 1 && i-- > 0;) {
    format::PackedFunction function{
        .name = named(lines[i].function), .start = address, .caller = place.function};
    if (i + 1 < lines.size()) {
      function.call_file = text(lines[i + 1].file);
      function.call_line = lines[i + 1].line;
    }
    place.function = static_cast<std::uint32_t>(packed.functions.size());
    packed.functions.push_back(function);
  }
  packed.addresses.push_back(place);
}

ImportedFrameId ImportedCapture::add_frame(ImportedModuleId number, std::span<const ImportedLine> lines) {
  Module& module = modules_[static_cast<std::size_t>(number)];
  const std::uint64_t address = module.next;
  module.next += kFrameBytes;
  return add_frame_at(number, address, lines);
}

ImportedFrameId ImportedCapture::add_frame_at(ImportedModuleId number, std::uint64_t address,
                                              std::span<const ImportedLine> lines) {
  Module& module = modules_[static_cast<std::size_t>(number)];
  if (!lines.empty()) pack_lines(module, address, lines);
  frames_.push_back(
      {module.is_kernel ? address : module.start + (address - module.page_offset), module.is_kernel});
  return static_cast<ImportedFrameId>(frames_.size() - 1);
}

format::EventSet ImportedCapture::events() const {
  format::EventSet events;
  for (const ImportedEvent& event : layout_.events) {
    format::Event made;
    made.name = event.name;
    made.ids = {events.size() + 1};
    made.attr.type = abi::kSoftware;
    made.attr.size = format::kCompatibleAttrSize;
    made.attr.config = is_clock_event(layout_, event) ? abi::kCpuClock : abi::kBpfOutput;
    made.attr.sample_period = event.sample_period;
    made.attr.sample_max_stack = kMostFrames;
    made.attr.sample_type = abi::kSampleIdentifier | abi::kSampleIp | abi::kSampleTid | abi::kSamplePeriod |
                            abi::kSampleCallchain;
    if (layout_.has_times) made.attr.sample_type |= abi::kSampleTime;
    if (layout_.has_cpus) made.attr.sample_type |= abi::kSampleCpu;
    if (has_imported_payloads(layout_)) made.attr.sample_type |= abi::kSampleRaw;
    made.attr.flags = abi::kSampleIdAll;
    if (events.empty()) made.attr.flags |= abi::kMmap | abi::kMmap2 | abi::kComm | abi::kTask | abi::kBuildId;
    events.add_event(std::move(made));
  }
  return events;
}

Result<format::Features> ImportedCapture::features() const {
  format::Features features;
  if (has_imported_payloads(layout_))
    for (const ImportedEvent& event : layout_.events)
      features.schemas.push_back(imported_schema(layout_, event));
  const ImportedFacts& facts = layout_.facts;
  // A clock that begins with the profile.
  if (facts.begin != 0)
    features.environment.clock_data =
        format::ClockData{.clockid = kMonotonicClock, .wall_ns = facts.begin, .clock_ns = 0};
  if (!layout_.has_times && (facts.begin != 0 || facts.length != 0))
    features.environment.sample_time = {0, facts.length};
  if (facts.comments.empty()) return features;
  auto attached = attach_comments(facts.comments, source_);
  if (!attached) return std::move(attached.error());
  features.attachments.push_back(std::move(*attached));
  return features;
}

Result<> ImportedCapture::begin_samples(const CopyOutput& output, ImportedLayout layout) {
  layout_ = std::move(layout);
  auto file = output.begin();
  if (!file) return std::move(file.error());
  const format::EventSet made = events();
  trailer_ = format::sample_id_size(made[0].attr);
  auto head = features();
  if (!head) return std::move(head.error());
  auto writer = format::CaptureWriter::create(std::move(*file), made, std::move(*head));
  if (!writer) return std::move(writer.error());
  writer_.emplace(std::move(*writer));
  for (const Module& module : modules_)
    if (module.is_kernel) write_mapping(module, ~std::uint32_t{0});
  return Done{};
}

std::uint32_t ImportedCapture::unused_pid() {
  while (layout_.pids.contains(next_pid_)) ++next_pid_;
  return next_pid_++;
}

// pid 0 is the idle task's, which has no mappings.
ImportedCapture::Ids ImportedCapture::ids_of(const ImportedThread& thread, std::string_view comm,
                                             bool has_user_frames) {
  constexpr std::uint32_t kReleased = ~std::uint32_t{0};
  const bool is_known = thread.pid && *thread.pid != kReleased && (*thread.pid != 0 || !has_user_frames);
  if (is_known) {
    const bool has_tid = thread.tid && *thread.tid != kReleased && (*thread.tid != 0 || *thread.pid == 0);
    return {*thread.pid, has_tid ? *thread.tid : *thread.pid};
  }
  const auto [own, is_new] = own_pids_.try_emplace(std::string(comm));
  if (is_new) own->second = unused_pid();
  const bool has_tid = thread.tid && *thread.tid != kReleased && *thread.tid != 0;
  return {own->second, has_tid ? *thread.tid : own->second};
}

void ImportedCapture::start_process(std::uint32_t pid) {
  if (pid == 0 || !processes_.insert(pid).second) return;
  if (first_pid_) {
    format::write_fork(
        records_, {.pid = pid, .parent_pid = *first_pid_, .tid = pid, .parent_tid = *first_pid_, .time = 0},
        trailer_);
    return;
  }
  first_pid_ = pid;
  for (const Module& module : modules_)
    if (!module.is_kernel) write_mapping(module, pid);
}

void ImportedCapture::write_mapping(const Module& module, std::uint32_t pid) {
  const format::MmapRecord record{.pid = pid,
                                  .tid = pid,
                                  .start = module.start,
                                  .length = module.length,
                                  .page_offset = module.page_offset,
                                  .filename = pack_.texts[module.packed.path],
                                  .is_mmap2 = true,
                                  .build_id = module.packed.build_id,
                                  .protection = kProtReadExec};
  format::write_mmap2(records_, record, module.is_kernel ? abi::kCpumodeKernel : abi::kCpumodeUser, trailer_);
}

ImportedCapture::Ids ImportedCapture::start_thread(const ImportedThread& thread, bool has_user_frames) {
  std::string_view comm = record_text(thread.comm, kLongestComm);
  if (comm.empty()) comm = std::string_view(source_).substr(0, kLongestComm);
  const Ids ids = ids_of(thread, comm, has_user_frames);
  start_process(ids.pid);
  KnownThread& known = threads_[ids.tid];
  if (known.comm == comm && known.pid == ids.pid) return ids;
  known = {ids.pid, std::string(comm)};
  format::write_comm(records_, {ids.pid, ids.tid, comm}, trailer_);
  return ids;
}

// After a context mark the first address was sampled, and the others are return addresses: one past the call.
void ImportedCapture::write_chain(std::span<const ImportedFrameId> frames) {
  const std::size_t at = records_.size();
  std::uint64_t words = 0;
  records_.u64(0);
  std::optional<bool> is_kernel;
  for (const ImportedFrameId number : frames) {
    const Frame& frame = frames_[static_cast<std::size_t>(number)];
    const bool is_first = is_kernel != frame.is_kernel;
    if (is_first) {
      records_.u64(frame.is_kernel ? abi::kContextKernel : abi::kContextUser);
      is_kernel = frame.is_kernel;
      ++words;
    }
    records_.u64(is_first ? frame.ip : frame.ip + 1);
    ++words;
  }
  records_.patch(at, words);
}

void ImportedCapture::write_payload(const ImportedSample& sample) {
  const std::size_t at = records_.size();
  records_.u32(0).u64(sample.weight);
  for (std::size_t i = 0; i < layout_.labels.size(); ++i) {
    const std::uint32_t room = layout_.labels[i].text_bytes;
    const ImportedLabelValue value = i < sample.labels.size() ? sample.labels[i] : ImportedLabelValue();
    if (room == 0) {
      records_.u64(static_cast<std::uint64_t>(value.number));
      continue;
    }
    const std::string_view text = value.text.substr(0, room);
    records_.bytes(std::as_bytes(std::span(text))).zeros(padded_to_words(room) - text.size());
  }
  const std::size_t size = records_.size() - at;
  records_.zeros((8 - size % 8) % 8);
  records_.patch(at, static_cast<std::uint32_t>(records_.size() - at - sizeof(std::uint32_t)));
}

Result<> ImportedCapture::add_sample(const ImportedSample& sample) {
  std::span<const ImportedFrameId> frames = sample.frames;
  if (frames.size() > kMostFrames) {
    frames = frames.first(kMostFrames);
    ++cut_stacks_;
  }
  const auto is_kernel = [this](ImportedFrameId number) {
    return frames_[static_cast<std::size_t>(number)].is_kernel;
  };
  if (!writer_) return Error{"a sample before begin()"};
  const Ids ids = start_thread(sample.thread, !std::ranges::all_of(frames, is_kernel));
  const bool in_kernel = !frames.empty() && is_kernel(frames[0]);
  const std::size_t start = records_.size();
  records_.u32(abi::kRecordSample).u16(in_kernel ? abi::kCpumodeKernel : abi::kCpumodeUser).u16(0);
  records_.u64(sample.event + 1);
  records_.u64(frames.empty() ? 0 : frames_[static_cast<std::size_t>(frames[0])].ip);
  records_.u32(ids.pid).u32(ids.tid);
  if (layout_.has_times) records_.u64(sample.time);
  if (layout_.has_cpus) records_.u32(sample.cpu).u32(0);
  records_.u64(sample.weight);
  write_chain(frames);
  if (has_imported_payloads(layout_)) write_payload(sample);
  records_.patch(start + 6, static_cast<std::uint16_t>(records_.size() - start));
  return records_.size() < kRecordsPiece ? Result<>(Done{}) : write_out();
}

Result<> ImportedCapture::write_out() {
  if (records_.empty()) return Done{};
  written_ += records_.size();
  if (written_ > kMostRecords)
    return Error{"its samples take more than " + std::to_string(kMostRecords >> 30) + " GiB as records"};
  auto written = writer_->write_records(records_.view());
  records_.clear();
  return written;
}

Result<> ImportedCapture::finish(const CopyOutput& output) {
  if (auto written = write_out(); !written) return written;
  if (cut_stacks_ > 0)
    diagnostics_->add_line(format::Damage::Note,
                           "stacks of more than " + std::to_string(kMostFrames) +
                               " frames, which is all that a sample holds, lose their outer callers: " +
                               std::to_string(cut_stacks_));
  for (Module& module : modules_) pack_.modules.push_back(std::move(module.packed));
  auto section = format::write_symbol_pack_section(pack_);
  if (!section) return std::move(section.error());
  if (auto readable = format::parse_symbol_pack(*section); !readable)
    return std::move(readable.error()).in("the names of the functions");
  format::Features late;
  late.symbol_pack = std::move(*section);
  if (auto closed = writer_->close_file(late); !closed) return closed;
  return output.finish();
}

}  // namespace tacho::report
