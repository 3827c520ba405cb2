#include "report/views/convert/redact.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "cli/message_text.h"
#include "format/base/file.h"
#include "format/base/text_pool.h"
#include "format/container/capture_reader.h"
#include "format/extensions/attachment.h"
#include "format/extensions/symbol_pack.h"
#include "report/output/output_file.h"
#include "report/redaction.h"
#include "report/views/convert/convert.h"
#include "report/views/convert/redact_records.h"
#include "symbolize/files/attached_text.h"
#include "symbolize/frame.h"
#include "symbolize/jit/jitdump.h"

namespace tacho::report {

namespace {

namespace abi = format::abi;
using format::Features;
using symbolize::ModuleKind;

constexpr std::uint64_t kKernelHalf = std::uint64_t{1} << 63;

class Head {
 public:
  explicit Head(const HeadRedaction& rules) : rules_(rules), path_rule_(rules.redaction.path_rule()) {}

  format::EventSet events(const format::EventSet& from) const;
  void environment(format::Environment& environment) const;
  void tracing(format::TracingData& tracing) const;
  void schemas(std::vector<format::PayloadSchema>& schemas) const;
  Result<> attachments(std::vector<format::Attachment>& attachments) const;
  Result<> pack(std::vector<std::byte>& section) const;
  format::Event event(format::Event event) const;

 private:
  bool hides(Content content) const { return rules_.redaction.hides(content); }
  How how(Content content) const { return rules_.redaction.of(content); }
  std::string path(std::string_view text) const { return hidden_path(text, path_rule_, rules_.aliases); }
  std::string paths_in(std::string_view text) const {
    return hidden_paths_in(text, path_rule_, rules_.aliases);
  }
  std::string numbers_in(std::string text) const {
    return hides(Content::Kernel) ? rules_.kernel.hidden_in(text, rules_.aliases) : text;
  }
  std::string event_name(std::string_view name) const {
    return numbers_in(hidden_event(name, path_rule_, rules_.aliases));
  }
  std::uint64_t moved(std::uint64_t address) const {
    return hides(Content::Kernel) ? rules_.kernel.moved(address) : address;
  }
  std::uint64_t shifted(std::uint64_t time) const {
    return time < rules_.time_shift ? time : time - rules_.time_shift;
  }
  std::string moved_lines(std::string_view text) const;
  Result<> change_text(format::Attachment& attachment,
                       std::string (Head::*change)(std::string_view) const) const;
  std::string paths_in_lines(std::string_view text) const;
  Result<> change_jitdump(format::Attachment& attachment) const;
  void pack_module(const format::PackTexts& texts, format::PackedModule& module, format::PackTexts& to) const;

  const HeadRedaction& rules_;
  PathRule path_rule_;
};

// The attr of probes and breakpoints has an address.
format::Event Head::event(format::Event event) const {
  event.name = event_name(event.name);
  if (!hides(Content::Kernel)) return event;
  // Of other events than breakpoints it may be no address.
  const bool is_address = event.attr.type == abi::kBreakpoint;
  for (std::uint64_t* const word : {&event.attr.config1, &event.attr.config2})
    if (*word >= kKernelHalf && *word < abi::kContextMax)
      *word = is_address ? rules_.kernel.hidden(*word, rules_.aliases) : moved(*word);
  return event;
}

format::EventSet Head::events(const format::EventSet& from) const {
  format::EventSet events;
  for (const format::Event& one : from) events.add(event(one));
  return events;
}

void Head::environment(format::Environment& environment) const {
  if (hides(Content::Host) && environment.hostname) {
    if (how(Content::Host) == How::Hash)
      environment.hostname = rules_.aliases.of(*environment.hostname);
    else
      environment.hostname.reset();
  }
  if (how(Content::CommandLine) == How::Drop) environment.command_line.clear();
  if (how(Content::CommandLine) == How::Hash)
    for (std::string& word : environment.command_line) word = rules_.aliases.of(word);
  for (format::BuildIdEntry& entry : environment.build_ids) entry.filename = path(entry.filename);
  for (format::EventGroup& group : environment.groups) group.name = event_name(group.name);
  if (hides(Content::Time)) environment.clock_data.reset();
  if (environment.sample_time) {
    environment.sample_time->first = shifted(environment.sample_time->first);
    environment.sample_time->second = shifted(environment.sample_time->second);
  }
  // The kernel's description of BPF programs has their code, with addresses in it.
  if (hides(Content::Kernel)) {
    environment.bpf_programs.clear();
    environment.btf.clear();
  }
  for (format::EventLoss& loss : environment.losses.events) {
    loss.event = event_name(loss.event);
    if (hides(Content::Containers)) loss.cgroup = loss.cgroup.empty() ? "" : rules_.aliases.of(loss.cgroup);
  }
  for (auto& [what, value] : environment.user_stacks) what = numbers_in(paths_in(what));
  for (format::AttachedProgram& program : environment.attached_programs) {
    program.object = path(program.object);
    program.section = numbers_in(hidden_section(program.section, path_rule_, rules_.aliases));
    program.state = numbers_in(paths_in(program.state));
  }
}

void Head::tracing(format::TracingData& tracing) const {
  tracing.printk_formats = moved_lines(tracing.printk_formats);
  if (hides(Content::Comm)) tracing.saved_cmdlines.clear();  // a thread and its name on each line
}

void Head::schemas(std::vector<format::PayloadSchema>& schemas) const {
  for (format::PayloadSchema& schema : schemas) schema.event = event_name(schema.event);
}

// Lines that begin with an address, as /proc/kallsyms has them and printk_formats (with 0x).
std::string Head::moved_lines(std::string_view text) const {
  if (!hides(Content::Kernel)) return std::string(text);
  std::string moved_text;
  moved_text.reserve(text.size());
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    const std::string_view before = line.starts_with("0x") ? line.substr(0, 2) : std::string_view();
    line.remove_prefix(before.size());
    std::uint64_t address = 0;
    const auto [behind, failed] = std::from_chars(line.data(), line.data() + line.size(), address, 16);
    if (failed == std::errc{}) {
      const auto digits = static_cast<std::size_t>(behind - line.data());
      moved_text += before;
      moved_text += fmt::format("{:0{}x}", moved(address), digits);
      moved_text += line.substr(digits);
    }
    if (end < text.size()) moved_text += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return moved_text;
}

// Names of JIT code: "LazyCompile:*run /home/me/app.js:7".
std::string Head::paths_in_lines(std::string_view text) const {
  std::string changed;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    changed += paths_in(text.substr(0, end));
    if (end < text.size()) changed += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return changed;
}

Result<> Head::change_text(format::Attachment& attachment,
                           std::string (Head::*change)(std::string_view) const) const {
  const auto content = format::unpack_attachment(attachment);
  if (!content) return content.error();
  const std::string text = (this->*change)(format::as_text(*content));
  auto packed = format::pack_attachment(attachment.name, attachment.origin, std::as_bytes(std::span(text)));
  if (!packed) return std::move(packed.error());
  attachment = std::move(*packed);
  return Done{};
}

// Redacts the names of code and source files in a jitdump that `tacho pack` attached.
Result<> Head::change_jitdump(format::Attachment& attachment) const {
  auto content = symbolize::unpack_attached_text(attachment);
  if (!content) return content.error();
  const auto dump = symbolize::Jitdump::parse(std::move(*content));
  if (!dump) return dump.error();
  std::vector<symbolize::JitEvent> events = dump->events();
  format::TextPool texts;
  std::unordered_map<const char*, std::string_view> files;  // one long name may be that of a million lines
  for (symbolize::JitEvent& event : events) {
    event.name = texts.keep(paths_in(event.name));
    for (symbolize::JitLine& line : event.lines) {
      const auto [file, is_new] = files.try_emplace(line.file.data());
      if (is_new) file->second = texts.keep(path(line.file));
      line.file = file->second;
    }
  }
  std::vector<const symbolize::JitEvent*> all;
  for (const symbolize::JitEvent& event : events) all.push_back(&event);
  const std::string where = path(attachment.name.substr(symbolize::kAttachedJitdump.size()));
  auto attached = symbolize::attach_jitdump(where, dump->pid(), all);
  if (!attached) return std::move(attached.error());
  attachment = std::move(attached->attachment);
  return Done{};
}

Result<> Head::attachments(std::vector<format::Attachment>& attachments) const {
  std::vector<format::Attachment> kept;
  const bool hides_processes = hides(Content::CommandLine) || hides(Content::Paths) ||
                               hides(Content::Containers) || hides(Content::Host);
  for (format::Attachment& attachment : attachments) {
    Result<> done = Done{};
    if (attachment.name == format::kKallsymsAttachment) {
      done = change_text(attachment, &Head::moved_lines);
    } else if (attachment.name.starts_with("perf-map/")) {
      done = change_text(attachment, &Head::paths_in_lines);
      attachment.origin = path(attachment.origin);
    } else if (attachment.name.starts_with(symbolize::kAttachedJitdump)) {
      done = change_jitdump(attachment);
    } else if (attachment.name != "vdso" && (attachment.name != "processes" || hides_processes)) {
      continue;
    }
    if (done) kept.push_back(std::move(attachment));  // drop what cannot be decompressed
  }
  attachments = std::move(kept);
  return Done{};
}

void Head::pack_module(const format::PackTexts& texts, format::PackedModule& module,
                       format::PackTexts& to) const {
  const auto kind = static_cast<ModuleKind>(module.kind);
  const bool is_kernel =
      kind == ModuleKind::Kernel || kind == ModuleKind::KernelModule || kind == ModuleKind::Bpf;
  const bool has_made_names = kind == ModuleKind::Anonymous;
  const auto name = [&](std::uint32_t number) {
    return to.number_of(has_made_names ? paths_in(texts[number]) : std::string(texts[number]));
  };
  const auto file = [&](std::uint32_t number) { return to.number_of(path(texts[number])); };
  module.path = file(module.path);
  module.lack = to.number_of(paths_in(texts[module.lack]));
  for (format::PackedSymbol& symbol : module.symbols) {
    symbol.name = name(symbol.name);
    if (!is_kernel) continue;
    const std::uint64_t length = symbol.end - symbol.start;
    symbol.start = moved(symbol.start);
    symbol.end = symbol.start + length;
  }
  for (format::PackedFunction& function : module.functions) {
    function.name = name(function.name);
    function.call_file = file(function.call_file);
  }
  for (format::PackedAddress& address : module.addresses) {
    address.file = file(address.file);
    if (!is_kernel) continue;
    const std::uint64_t before = address.address;
    address.address = moved(before);
    // Without a file the ELF address equals the shown one; an address in a file is no secret.
    if (address.elf_address == before) address.elf_address = address.address;
  }
}

Result<> Head::pack(std::vector<std::byte>& section) const {
  if (section.empty()) return Done{};
  auto pack = format::parse_symbol_pack(section);
  if (!pack) return std::move(pack.error()).in("the symbol pack");
  format::SymbolPack changed;
  changed.level = pack->level;
  for (format::PackedModule& module : pack->modules) pack_module(pack->texts, module, changed.texts);
  changed.modules = std::move(pack->modules);
  auto written = format::write_symbol_pack_section(changed);
  if (!written) return std::move(written.error());
  section = std::move(*written);
  return Done{};
}

}  // namespace

Result<> redact_head(const HeadRedaction& rules, format::EventSet& events, Features& features) {
  const Head head(rules);
  features.raw.clear();
  events = head.events(events);
  for (format::Event& event : features.event_descriptions) event = head.event(std::move(event));
  head.environment(features.environment);
  head.tracing(features.tracing);
  head.schemas(features.schemas);
  if (auto done = head.attachments(features.attachments); !done) return done;
  features.environment.content = rules.content;
  return head.pack(features.symbol_pack);
}

namespace {

using format::CaptureReader;

// The first reading of the capture, before the copy is written.
struct Scan {
  Census census;
  RedactProcesses processes;
};

class Redacting : public CaptureChange {
 public:
  Redacting(const RedactOptions& options, const Aliases& aliases, const Scan& scan,
            const UnwoundChains* chains, std::vector<format::ContentClass> content)
      : options_(options), aliases_(aliases), scan_(scan), chains_(chains), content_(std::move(content)) {}

  Result<> change_head(format::EventSet& events, format::Features& features) override {
    events_ = events;
    descriptions_.tracing = features.tracing;
    descriptions_.schemas = features.schemas;
    const Census& census = scan_.census;
    const std::uint64_t shift = options_.redaction.hides(Content::Time) ? census.time_shift() : 0;
    records_.emplace(events_, descriptions_, options_.redaction, aliases_, census.kernel(), shift, chains_);
    if (auto reduced = scan_.processes.reduce(features); !reduced) return reduced;
    return redact_head({options_.redaction, aliases_, census.kernel(), shift, content_}, events, features);
  }

  std::optional<format::RecordView> change(const format::RecordView& record,
                                           format::ByteWriter& scratch) override {
    if (!scan_.processes.keeps(record, events_)) return std::nullopt;
    return records_->change(record, scratch);
  }

  std::uint64_t not_understood() const {
    std::uint64_t sum = 0;
    if (records_)
      for (const auto& [type, count] : records_->not_understood()) sum += count;
    return sum;
  }

 private:
  const RedactOptions& options_;
  const Aliases& aliases_;
  const Scan& scan_;
  const UnwoundChains* chains_;
  std::vector<format::ContentClass> content_;
  format::EventSet events_;        // of the copy, before they are changed
  format::Features descriptions_;  // of payloads, as they were recorded
  std::optional<RecordRedaction> records_;
};

Result<> check(const CaptureReader& reader, const std::string& input) {
  const std::string remedy =
      "; 'tacho convert -i " + cli::shell_word(input) + " -o FILE' makes one that can be";
  if (reader.layout().is_pipe)
    return Error{input + ": has the form of a pipe, which is not redacted" + remedy};
  if (reader.layout().order != std::endian::native)
    return Error{input + ": was recorded in the other byte order and is not redacted" + remedy};
  return Done{};
}

Result<Scan> scan_capture(const RedactOptions& options, format::Diagnostics& diagnostics) {
  auto reader = CaptureReader::open(options.copy.input, diagnostics, options.copy.capture);
  if (!reader) return std::move(reader.error());
  if (auto checked = check(*reader, options.copy.input); !checked) return std::move(checked.error());
  Scan scan{{}, RedactProcesses(options.pids)};
  scan.census.see_head(reader->events(), reader->features());
  while (const auto record = reader->next()) {
    scan.census.see(*record, reader->events());
    scan.processes.see(*record, reader->events());
  }
  if (options.in_place)
    if (auto whole = check_whole(*reader, diagnostics, options.copy.input, "replaced"); !whole)
      return std::move(whole.error());
  return scan;
}

Result<Aliases> make_aliases(const RedactOptions& options) {
  return options.key.empty() ? Aliases::create() : Result<Aliases>(Aliases::of_key(options.key));
}

std::string alias_of(Content content, How how, const std::string& example, const RedactOptions& options,
                     const Aliases& aliases) {
  if (example.empty() || how == How::Drop || content == Content::Containers) return {};
  if (content == Content::Paths) return hidden_path(example, options.redaction.path_rule(), aliases);
  return how == How::Hash ? aliases.of(example) : example;
}

Redacted described(const RedactOptions& options, const Census& census, const Aliases& aliases) {
  Redacted redacted;
  const auto counts = census.counts();
  for (const format::ContentRow& row : format::kContents) {
    const Census::Count& count = counts[static_cast<std::size_t>(row.content)];
    const How how = options.redaction.of(row.content);
    redacted.classes.push_back({row.content, how, count.number, count.unit, count.example,
                                alias_of(row.content, how, count.example, options, aliases)});
  }
  return redacted;
}

// nullopt after a failure, which is reported.
std::optional<UnwoundChains> unwind(const RedactOptions& options, format::Diagnostics& diagnostics) {
  SessionOptions reading;
  reading.input = options.copy.input;
  reading.capture = options.copy.capture;
  reading.symbols.gate = options.copy.gate;
  reading.symbols.name_gate = options.name_gate;
  reading.in_step = options.in_step;
  auto chains = UnwoundChains::read(std::move(reading));
  if (!chains) {
    diagnostics.add_line(
        format::Damage::Note,
        "the calls in copied stacks go with these, they could not be unwound: " + chains.error().what);
    return std::nullopt;
  }
  return std::move(*chains);
}

}  // namespace

Result<Redacted> examine_for_redaction(const RedactOptions& options, format::Diagnostics& diagnostics) {
  auto aliases = make_aliases(options);
  if (!aliases) return std::move(aliases.error());
  const auto scan = scan_capture(options, diagnostics);
  if (!scan) return scan.error();
  return described(options, scan->census, *aliases);
}

Result<Redacted> redact(const RedactOptions& options, const CaptureOutput& output,
                        format::Diagnostics& diagnostics) {
  auto aliases = make_aliases(options);
  if (!aliases) return std::move(aliases.error());
  format::Diagnostics seen_again;  // the copying below finds the same damage once more
  ConvertOptions copying = options.copy;
  const auto scan = scan_capture(options, seen_again);
  if (!scan) return scan.error();
  Redacted redacted = described(options, scan->census, *aliases);
  std::vector<format::ContentClass> content;
  for (const RedactedClass& one : redacted.classes)
    if (one.number > 0)
      content.push_back({std::string(name_of(one.content)), std::string(state_of(one.how))});
  std::optional<UnwoundChains> chains;
  if (options.redaction.hides(Content::Stacks) && scan->census.has_stacks())
    chains = unwind(options, diagnostics);
  Redacting change(options, *aliases, *scan, chains ? &*chains : nullptr, std::move(content));
  copying.change = &change;
  copying.is_whole_or_nothing = true;
  copying.pids = options.pids;
  if (auto done = convert(copying, output, diagnostics); !done) return std::move(done.error());
  redacted.not_understood = change.not_understood();
  return redacted;
}

}  // namespace tacho::report
