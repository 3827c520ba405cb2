#include "report/views/script/script_text.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <seccomp.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <utility>

#include "report/decode/coded_values.h"
#include "report/samples/resolver.h"

namespace tacho::report {
namespace {

// Payloads of BPF programs have descriptions of how their fields are shown; only tracepoints lack them.
bool is_tracepoint(std::string_view event) { return event.find(':') != std::string_view::npos; }

bool is_number(const PayloadField& field) {
  return !is_list(field) &&
         (field.kind == format::FieldKind::Signed || field.kind == format::FieldKind::Unsigned);
}

// libseccomp has GCC's names of architectures.
std::uint32_t machine(std::string_view architecture) {
  constexpr std::pair<std::string_view, const char*> kNames[] = {
      {"i386", "x86"},    {"i486", "x86"},        {"i586", "x86"},        {"i686", "x86"},
      {"armv7l", "arm"},  {"x86_64", "x86_64"},   {"aarch64", "aarch64"}, {"ppc64le", "ppc64le"},
      {"s390x", "s390x"}, {"riscv64", "riscv64"},
  };
  const auto row = std::ranges::find(kNames, architecture, &std::pair<std::string_view, const char*>::first);
  return row == std::end(kNames) ? 0 : ::seccomp_arch_resolve_name(row->second);
}

NumberText call_text(std::string_view architecture) {
  const std::uint32_t of = machine(architecture);
  if (of == 0) return {};
  return [of](std::int64_t number) {
    const bool is_possible = number >= 0 && number < 0x10000;
    const std::unique_ptr<char, decltype(&std::free)> name(
        is_possible ? ::seccomp_syscall_resolve_num_arch(of, static_cast<int>(number)) : nullptr, &std::free);
    return name != nullptr ? std::string(name.get()) : fmt::format("{}", number);
  };
}

std::string returned_text(std::int64_t number) {
  constexpr std::int64_t kMostErrors = 4095;
  const bool is_error = number < 0 && number >= -kMostErrors;
  const char* const name = is_error ? ::strerrorname_np(static_cast<int>(-number)) : nullptr;
  return name != nullptr ? fmt::format("-{}", name) : fmt::format("{}", number);
}

// The bits of task states as kernels since 4.14 report them; without any, the task could run (R).
std::string state_text(std::int64_t state) {
  constexpr std::string_view kLetters = "SDTtXZPI";
  std::string text;
  for (std::size_t bit = 0; bit < kLetters.size(); ++bit)
    if ((state >> bit & 1) != 0) text.append(text.empty() ? "" : "|").append(1, kLetters[bit]);
  return text.empty() ? "R" : text;
}

std::string device_text(std::int64_t device) {
  constexpr int kMinorBits = 20;
  const auto bits = static_cast<std::uint32_t>(device);
  return fmt::format("{}:{}", bits >> kMinorBits, bits & ((1U << kMinorBits) - 1));
}

}  // namespace

NumberText kernel_number_text(std::string_view event, const PayloadField& field,
                              std::string_view architecture) {
  if (!is_tracepoint(event) || !is_number(field)) return {};
  const bool is_raw = event.starts_with("raw_syscalls:");
  if (field.name == "__syscall_nr" || (is_raw && field.name == "id")) return call_text(architecture);
  const bool is_end = event == "raw_syscalls:sys_exit" || event.starts_with("syscalls:sys_exit_");
  if (is_end && field.name == "ret") return returned_text;
  if (event == "sched:sched_switch" && field.name == "prev_state") return state_text;
  if ((field.name == "dev" || field.name == "s_dev") && field.bit_size == 32) return device_text;
  return {};
}

bool is_internet_address(const PayloadField& field) {
  return field.kind == format::FieldKind::Unsigned && field.bit_size == 8 &&
         (field.count == 4 || field.count == 16) && field.name.find("addr") != std::string::npos;
}

std::string internet_address(const PayloadField& field, Bytes payload, std::endian order) {
  std::array<std::uint8_t, 16> bytes{};
  for (std::uint32_t i = 0; i < field.count; ++i) {
    const auto value = read_field(field, payload, order, i);
    if (!value) return {};
    bytes[i] = static_cast<std::uint8_t>(bits_of(*value));
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = field.count == 4 ? AF_INET : AF_INET6;
  return ::inet_ntop(family, bytes.data(), text.data(), text.size()) != nullptr ? text.data() : std::string();
}

namespace {

using format::Record;

std::string alternate_hex(std::uint64_t value) {  // %#x: zero has no 0x
  return value == 0 ? "0" : fmt::format("{:#x}", value);
}

struct BodyOf {
  Names names;

  std::string operator()(const format::MmapRecord& r) const {
    const auto pid = static_cast<std::int32_t>(r.pid), tid = static_cast<std::int32_t>(r.tid);
    const std::string range = fmt::format(" {}/{}: [{}({}) @ {}", pid, tid, alternate_hex(r.start),
                                          alternate_hex(r.length), alternate_hex(r.page_offset));
    const std::string name = printable(r.filename, names);
    if (!r.is_mmap2) return fmt::format("{}]: {} {}", range, r.is_data ? 'r' : 'x', name);
    const std::string rights = {
        (r.protection & PROT_READ) != 0 ? 'r' : '-', (r.protection & PROT_WRITE) != 0 ? 'w' : '-',
        (r.protection & PROT_EXEC) != 0 ? 'x' : '-', (r.flags & MAP_SHARED) != 0 ? 's' : 'p'};
    const std::string file =
        r.build_id.empty() ? fmt::format("{:02x}:{:02x} {} {}", r.major, r.minor, r.inode, r.inode_generation)
                           : fmt::format("<{}>", r.build_id.hex());
    return fmt::format("{} {}]: {} {}", range, file, rights, name);
  }
  std::string operator()(const format::CommRecord& r) const {
    return fmt::format("{}: {}:{}/{}", r.is_exec ? " exec" : "", printable(r.name, names),
                       static_cast<std::int32_t>(r.pid), static_cast<std::int32_t>(r.tid));
  }
  std::string operator()(const format::TaskRecord& r) const {
    return fmt::format("({}:{}):({}:{})", static_cast<std::int32_t>(r.pid), static_cast<std::int32_t>(r.tid),
                       static_cast<std::int32_t>(r.parent_pid), static_cast<std::int32_t>(r.parent_tid));
  }
  std::string operator()(const format::SwitchRecord& r) const {
    const std::string_view direction = !r.is_out      ? " IN         "
                                       : r.is_preempt ? " OUT preempt"
                                                      : " OUT        ";
    if (!r.is_cpu_wide) return std::string(direction);
    return fmt::format("{}  {} pid/tid: {:5}/{:<5}", direction, r.is_out ? "next" : "prev",
                       static_cast<std::int32_t>(r.next_prev_pid),
                       static_cast<std::int32_t>(r.next_prev_tid));
  }
  std::string operator()(const format::NamespacesRecord& r) const {
    static constexpr std::string_view kNames[] = {"net", "uts", "ipc", "pid", "user", "mnt", "cgroup"};
    const std::size_t count = r.links.size() / 2;
    std::string text = fmt::format(" {}/{} - nr_namespaces: {}\n\t\t[", static_cast<std::int32_t>(r.pid),
                                   static_cast<std::int32_t>(r.tid), count);
    for (std::size_t i = 0; i < count; ++i) {
      if (i != 0 && i % 4 == 0) text += "\n\t\t ";
      text += fmt::format("{}/{}: {}/{}{}", i, i < std::size(kNames) ? kNames[i] : "unknown", r.links[2 * i],
                          alternate_hex(r.links[2 * i + 1]), i + 1 == count ? "" : ", ");
    }
    return text + "]";
  }
  std::string operator()(const format::LostRecord& r) const { return fmt::format(" lost {}", r.lost); }
  std::string operator()(const format::LostSamplesRecord& r) const { return fmt::format(" lost {}", r.lost); }
  std::string operator()(const format::KsymbolRecord& r) const {
    return fmt::format(" addr {:x} len {} type {} flags 0x{:x} name {}", r.address, r.length, r.type, r.flags,
                       printable(r.name, names));
  }
  std::string operator()(const format::BpfEventRecord& r) const {
    return fmt::format(" type {}, flags {}, id {}", r.type, r.flags, r.id);
  }
  std::string operator()(const format::CgroupRecord& r) const {
    return fmt::format(" cgroup: {} {}", r.id, printable(r.path, names));
  }
  std::string operator()(const auto&) const { return {}; }
};

struct GroupOf {
  RecordGroup operator()(const format::MmapRecord&) const { return RecordGroup::Mmap; }
  RecordGroup operator()(const format::CommRecord&) const { return RecordGroup::Task; }
  RecordGroup operator()(const format::TaskRecord&) const { return RecordGroup::Task; }
  RecordGroup operator()(const format::SwitchRecord&) const { return RecordGroup::Switch; }
  RecordGroup operator()(const format::NamespacesRecord&) const { return RecordGroup::Namespaces; }
  RecordGroup operator()(const format::LostRecord&) const { return RecordGroup::Lost; }
  RecordGroup operator()(const format::KsymbolRecord&) const { return RecordGroup::Bpf; }
  RecordGroup operator()(const format::BpfEventRecord&) const { return RecordGroup::Bpf; }
  RecordGroup operator()(const format::CgroupRecord&) const { return RecordGroup::Cgroup; }
  RecordGroup operator()(const format::TextPokeRecord&) const { return RecordGroup::TextPoke; }
  RecordGroup operator()(const auto&) const { return RecordGroup::None; }
};

// Writes "            Old bytes: 0f 1f", sixteen bytes a line.
void write_bytes(TextBuffer& out, std::string_view label, format::Bytes bytes) {
  constexpr std::size_t kPerLine = 16;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    if (at % kPerLine == 0) {
      if (at != 0) out.character('\n');
      out.text("            ");
      out.text(label);
    }
    out.character(' ');
    out.hex_byte(std::to_integer<std::uint8_t>(bytes[at]));
  }
  if (!bytes.empty()) out.character('\n');
}

}  // namespace

RecordGroup group_of(const Record& record) { return std::visit(GroupOf{}, record); }

void write_record(TextBuffer& out, std::uint32_t type, const Record& record, Names names) {
  out.text("PERF_RECORD_");
  out.text(format::record_name(type));
  out.text(std::visit(BodyOf{names}, record));
  out.character('\n');
}

void write_text_poke(TextBuffer& out, const format::TextPokeRecord& record, const symbolize::Frame& frame,
                     Names names) {
  std::string function;
  if (!frame.function.empty())
    function = fmt::format("{}+0x{:x}", printable(frame.function, names),
                           frame.shown_address - frame.function_start);
  out.text(fmt::format("PERF_RECORD_TEXT_POKE {:x} {} old len {} new len {}\n", record.address, function,
                       record.old_bytes.size(), record.new_bytes.size()));
  write_bytes(out, "Old bytes:", record.old_bytes);
  write_bytes(out, "New bytes:", record.new_bytes);
}

namespace {

namespace abi = format::abi;

constexpr char kHexDigits[] = "0123456789abcdef";

constexpr std::size_t kFlagsWidth = 24;  // of perf's empty -F flags
// Fields that are in the fixed part of a record.
constexpr Fields kStartFields{Field::Comm, Field::Pid,    Field::Tid,     Field::Cpu, Field::Time,
                              Field::Tod,  Field::Event,  Field::Period,  Field::Ip,  Field::Sym,
                              Field::Dso,  Field::Symoff, Field::Srcline, Field::Misc};
// Fields whose text resolves addresses other than the sample's own.
constexpr Fields kBranchFields{Field::Brstack, Field::Brstacksym, Field::Brstackoff};

// Whether each sample is one branch with its target as data address. perf then shows the target and nothing
// more.
bool is_branch_trace(const format::EventAttr& attr) {
  constexpr std::uint64_t kBranchInstructions = 4;  // bits of the config
  return attr.type == abi::kHardware && (attr.config & kBranchInstructions) != 0 && attr.sample_period == 1;
}

// Whether the data address of the event can have a symbol.
bool has_symbol_address(const format::EventAttr& attr) {
  return is_branch_trace(attr) || (attr.type == abi::kSoftware &&
                                   (attr.config == abi::kPageFaults || attr.config == abi::kMinorFaults ||
                                    attr.config == abi::kMajorFaults));
}

}  // namespace

void write_bpf_output(TextBuffer& out, Bytes payload, Names names) {
  constexpr std::size_t kPerLine = 8;
  out.character('\n');
  bool is_text = true, has_end = false;
  for (std::size_t at = 0; at < payload.size(); at += kPerLine) {
    // "LABEL 0000: xx xx xx xx xx xx xx xx  ........", blanks where there is nothing.
    constexpr std::size_t kOffset = 18, kBytes = 23, kText = kBytes + 3 * kPerLine + 2;
    char line[kText + kPerLine + 1];
    std::memset(line, ' ', sizeof line);
    if (at == 0) std::memcpy(line, "      BPF output:", 17);
    for (std::size_t i = 0; i < 4; ++i) line[kOffset + i] = kHexDigits[at >> (12 - 4 * i) & 15];
    line[kOffset + 4] = ':';
    const Bytes part = payload.subspan(at, std::min(kPerLine, payload.size() - at));
    for (std::size_t i = 0; i < part.size(); ++i) {
      const auto value = std::to_integer<std::uint8_t>(part[i]);
      line[kBytes + 3 * i + 1] = kHexDigits[value >> 4];
      line[kBytes + 3 * i + 2] = kHexDigits[value & 15];
      const bool is_shown = (value >= 0x20 && value < 0x7f) || value >= 0xa0;
      if (value != 0 && (has_end || !is_shown)) is_text = false;
      if (value == 0) has_end = true;
      // perf writes bytes from 0xa0 up unchanged, which is not valid UTF-8.
      const bool is_safe = is_shown && (names == Names::Raw || value < 0x7f);
      line[kText + i] = is_safe ? static_cast<char>(value) : '.';
    }
    line[kText + kPerLine] = '\n';
    out.text({line, sizeof line});
  }
  if (is_text && has_end) {
    out.text("      BPF string: \"");
    out.text(printable(format::text_of(payload), names));
    out.text("\"\n");
  }
}

bool names_other_addresses(const Session& session, const FieldChoice& fields) {
  const bool has_addresses = std::ranges::any_of(session.features().schemas, has_named_addresses);
  for (const format::Event& event : session.events()) {
    const Fields shown = fields.fields_of(event.attr);
    if (shown.has(Field::Payload) && has_addresses && event.attr.is_bpf_output()) return true;
    if (shown.has(Field::Addr) && has_symbol_address(event.attr)) return true;
    if (is_branch_trace(event.attr) || shown.has_any(InstructionText::kFields) ||
        shown.has_any(kBranchFields))
      return true;
  }
  return false;
}

ScriptText::ScriptText(Session& session, const FieldChoice& fields, Names names, TimeText times,
                       FrameShape shape, std::mutex* naming)
    : session_(&session),
      resolver_(&session.resolver()),
      naming_(naming),
      fields_(&fields),
      comms_(names),
      times_(times),
      shape_(std::move(shape)),
      source_path_(shape_.has_folders ? SourcePath::Whole : SourcePath::Last),
      schemas_(session.events(), session.features()),
      more_(session, names),
      source_code_(*resolver_, names) {
  learn_events();
}

// A pipe may bring events after samples were shown: their names keep the width.
void ScriptText::learn_events() {
  const std::size_t known = event_names_.size();
  std::size_t width = 0;
  for (std::size_t i = known; i < session_->events().size(); ++i) {
    event_names_.push_back(printable(session_->events()[i].name, comms_.mode()));
    width = std::max(width, event_names_.back().size());
  }
  for (std::size_t i = known; i < event_names_.size(); ++i)
    event_names_[i].insert(0, width - event_names_[i].size(), ' ');
}

bool ScriptText::has_chain(const ResolvedSample& sample) const {
  return sample.has_payload_stack ||
         (fields_->shows_callchains() && sample.event().attr.samples(abi::kSampleCallchain));
}

bool ScriptText::can_fork() const {
  if (!shape_.last_functions.empty() || times_.base() != TimeBase::Clock) return false;
  return std::ranges::none_of(session_->events(), [this](const format::Event& event) {
    Fields shown = fields_->fields_of(event.attr);
    // Defaults are the same for all events of a type, even if one has nothing to show.
    if (!event.attr.samples(abi::kSampleRaw))
      for (const Field field : {Field::Trace, Field::Payload, Field::Synth}) shown.remove(field);
    if (!event.attr.is_bpf_output()) shown.remove(Field::BpfOutput);
    return (shown.bits() & ~kStartFields.bits()) != 0 || is_branch_trace(event.attr);
  });
}

FrameLines& ScriptText::lines_of(const Fields& fields) {
  const std::uint64_t deciding = fields.bits() & FrameLines::kFields.bits();
  for (auto& [known, lines] : lines_) {
    if (known == deciding) return lines;
  }
  const FrameLines::Options options{.fields = fields,
                                    .names = comms_.mode(),
                                    .source_path = source_path_,
                                    .is_pipe = session_->layout().is_pipe,
                                    .naming = naming_};
  return lines_.emplace_back(deciding, FrameLines(*resolver_, options)).second;
}

void ScriptText::write_cut_chain(TextBuffer& out, const Stack& stack, const Fields& fields) {
  for (const LocationId number : stack.frames) {
    for (const symbolize::Frame& frame : resolver_->frames(resolver_->location(number))) {
      write_frame(out, frame, fields, comms_.mode(), source_path_);
      if (std::ranges::find(shape_.last_functions, frame.function) != shape_.last_functions.end()) return;
    }
  }
}

void ScriptText::write_chain(TextBuffer& out, const ResolvedSample& sample, const Fields& fields) {
  FrameLines& lines = lines_of(fields);
  if (sample.frames) {
    for (const Location& frame : *sample.frames) lines.write(out, frame);
  } else if (shape_.last_functions.empty()) {
    for (const LocationId number : sample.stack->frames) lines.write(out, resolver_->location(number));
  } else {
    write_cut_chain(out, *sample.stack, fields);
  }
}

void ScriptText::report(format::Diagnostics& diagnostics) const {
  if (traces_) traces_->report(diagnostics);
}

namespace {

// Keeps tabs, which print formats have (maple_tree:ma_read).
void write_tabbed(TextBuffer& out, std::string_view text) {
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\t', at), text.size());
    out.text(printable(text.substr(at, end - at)));
    if (end < text.size()) out.character('\t');
    at = end + 1;
  }
}

}  // namespace

// Writes the text by the capture's print format; without one, the fields by name.
void ScriptText::write_trace(TextBuffer& out, const ResolvedSample& sample) {
  if (!traces_) {
    traces_.emplace(session_->features().tracing,
                    [resolver = resolver_](std::uint64_t address) -> std::optional<TracepointText::Function> {
                      const auto frames = resolver->kernel_frames(address);
                      if (frames.empty() || frames.back().function.empty()) return std::nullopt;
                      const symbolize::Frame& frame = frames.back();
                      return TracepointText::Function{std::string(frame.function),
                                                      address - (frame.shown_address - frame.function_start)};
                    });
  }
  const std::uint64_t id = sample.event().attr.config;
  if (traces_->write_plain(out, id, sample.fields->raw, sample.order)) return;
  const auto text = traces_->text_of(id, sample.fields->raw, sample.fields->cpu, sample.order);
  if (text && (comms_.mode() == Names::Raw || is_plain(*text))) {
    out.text(*text);
  } else if (text) {
    write_tabbed(out, *text);
  } else if (const PayloadSchema* schema = schemas_.schema_of(sample.event_index)) {
    out.text(show_payload(*schema, sample.fields->raw, sample.order, comms_.mode()));
  }
}

void ScriptText::write_payload(TextBuffer& out, const ResolvedSample& sample, const PayloadSchema& schema) {
  AddressName name;
  if (has_named_addresses(schema))
    name = [&](std::uint64_t address) { return address_name(session_->resolver(), sample, address); };
  out.text(show_payload(schema, sample.fields->raw, sample.order, comms_.mode(), name));
}

void ScriptText::write_address(TextBuffer& out, const ResolvedSample& sample, const Fields& fields) {
  out.hex(sample.fields->addr, 16);
  if (!has_symbol_address(sample.event().attr)) return;
  const Location& location = sample.locate(sample.fields->addr);
  const symbolize::Frame& frame = resolver_->frame(location);
  if (fields.has(Field::Sym)) {
    out.character(' ');
    write_symbol(out, frame, fields, comms_.mode());
  }
  if (fields.has(Field::Dso)) write_module(out, frame, comms_.mode());
}

void ScriptText::write_location(TextBuffer& out, const ResolvedSample& sample, const Fields& fields) {
  if ((sample.stack != nullptr || sample.frames) && has_chain(sample)) {
    out.character('\n');
    return write_chain(out, sample, fields);
  }
  out.character(' ');
  out.hex(sample.fields->ip, 16);
  if (fields.has(Field::Sym) || fields.has(Field::Dso) || fields.has(Field::Srcline))
    lines_of(fields).write_alone(out, *sample.location);
}

void ScriptText::write_branch_sample(TextBuffer& out, const ResolvedSample& sample, const Fields& fields) {
  Fields without_line = fields;
  without_line.remove(Field::Srcline);
  const bool is_line_last = sample.stack == nullptr || !has_chain(sample);
  if (fields.has(Field::Ip)) write_location(out, sample, is_line_last ? without_line : fields);
  const format::EventAttr& attr = sample.event().attr;
  if (fields.has(Field::Addr) || (attr.samples(abi::kSampleAddr) && !fields_->is_changed(attr))) {
    out.text(" => ");
    write_address(out, sample, fields);
  }
  if (fields.has(Field::Srcline) && is_line_last)
    write_source_line(out, resolver_->frame(*sample.location), comms_.mode(), source_path_);
  if (fields.has_any(InstructionText::kFields)) write_instructions(out, sample, fields);
  write_end(out, sample, fields);
}

void ScriptText::write_instructions(TextBuffer& out, const ResolvedSample& sample, const Fields& fields) {
  if (!instructions_) instructions_.emplace(*session_, comms_.mode(), shape_.most_blocks);
  instructions_->write(out, sample, fields, source_code_);
}

// Writes the line's end, and the source line after it.
void ScriptText::write_end(TextBuffer& out, const ResolvedSample& sample, const Fields& fields) {
  out.character('\n');
  if (fields.has(Field::Srccode)) source_code_.write(out, *sample.thread, resolver_->frame(*sample.location));
}

void ScriptText::write(TextBuffer& out, const ResolvedSample& sample) {
  const format::EventAttr& attr = sample.event().attr;
  const Fields fields = fields_->fields_of(attr);
  if (fields.empty()) return;
  LineStart start{comms_.safe_name(sample.comm), sample.pid(),        sample.tid(),      sample.fields->cpu,
                  sample.fields->time,           sample.fields->misc, abi::kRecordSample};
  start.is_comm_padded = !(fields.has(Field::Ip) && has_chain(sample));
  write_line_start(out, fields, start, times_);
  if (fields.has(Field::Period)) {
    out.decimal(sample.period, 10);
    out.character(' ');
  }
  if (fields.has(Field::Event)) {
    if (sample.event_index >= event_names_.size()) learn_events();
    out.text(event_names_[sample.event_index]);
    out.text(": ");
  }
  if (fields_->shows_flags()) out.blanks(kFlagsWidth);
  if (is_branch_trace(attr)) return write_branch_sample(out, sample, fields);
  const bool has_raw = attr.samples(abi::kSampleRaw);
  if (fields.has(Field::Trace) && has_raw && attr.type == abi::kTracepoint) write_trace(out, sample);
  const PayloadSchema* const schema =
      fields.has(Field::Payload) && has_raw ? schemas_.schema_of(sample.event_index) : nullptr;
  if (schema != nullptr) write_payload(out, sample, *schema);
  if (fields.has(Field::Synth) && has_raw && attr.type == abi::kSynth)
    write_synth(out, attr.config, sample.fields->raw, sample.order);
  if (fields.has(Field::Addr)) write_address(out, sample, fields);
  if (fields.has_any(SampleFieldsText::kBeforeLocation)) more_.write_before_location(out, sample, fields);
  if (fields.has(Field::Ip)) write_location(out, sample, fields);
  if (fields.has_any(SampleFieldsText::kAfterLocation)) more_.write_after_location(out, sample, fields);
  const bool dumps = schema == nullptr || fields_->asks_for(attr, Field::BpfOutput);
  if (fields.has(Field::BpfOutput) && attr.is_bpf_output() && dumps)
    write_bpf_output(out, sample.fields->raw, comms_.mode());
  if (fields.has_any(InstructionText::kFields)) write_instructions(out, sample, fields);
  if (fields.has_any(SampleFieldsText::kAtEnd)) more_.write_at_end(out, sample, fields);
  write_end(out, sample, fields);
}

void ScriptText::write_start(TextBuffer& out, const NonSampleRecord& event) {
  const format::EventAttr& attr = session_->events()[event.event_index].attr;
  const Fields fields = fields_->fields_of(attr);
  const bool has_chains = fields_->shows_callchains() && attr.samples(abi::kSampleCallchain);
  LineStart start{.comm = event.thread == nullptr ? std::string_view(":-1") : comms_.safe_name(event.comm),
                  .pid = event.id.pid,
                  .tid = event.id.tid,
                  .cpu = event.id.cpu,
                  .time = event.id.time,
                  .misc = event.view->misc,
                  .record_type = event.view->type,
                  .is_comm_padded = !(fields.has(Field::Ip) && has_chains)};
  if (!attr.has(abi::kSampleIdAll)) {
    start.cpu = 0;
    start.time = 0;
    if (event.thread != nullptr) start.pid = event.thread->pid, start.tid = event.thread->tid;
  }
  write_line_start(out, fields, start, times_);
}

}  // namespace tacho::report
