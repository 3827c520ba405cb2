#include "report/views/redact/head_redaction.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/base/text_pool.h"
#include "format/extensions/attachment.h"
#include "format/extensions/symbol_pack.h"
#include "report/decode/bpf_instructions.h"
#include "symbolize/files/decompress.h"
#include "symbolize/frame.h"
#include "symbolize/jit/jitdump.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;
using format::Features;
using symbolize::ModuleKind;

// Calls change(line, changed) for each line, which appends the new line to `changed`.
template <class Change>
std::string changed_lines(std::string_view text, Change&& change) {
  std::string changed;
  changed.reserve(text.size());
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    change(text.substr(0, end), changed);
    if (end < text.size()) changed += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return changed;
}

// Redacts event names and feature sections, with the symbol pack and attached files.
class HeadRedaction {
 public:
  // All arguments must outlive this. `time_shift` (ns) is subtracted from each time.
  HeadRedaction(const Redaction& redaction, const Aliases& aliases, const KaslrRemap& kernel,
                std::uint64_t time_shift)
      : redaction_(redaction),
        aliases_(aliases),
        kernel_(kernel),
        time_shift_(time_shift),
        path_rule_(redaction.path_rule()) {}

  Result<> change(format::EventSet& events, Features& features) const {
    features.raw.clear();
    format::EventSet changed_events;
    for (const format::Event& event : events) changed_events.add_event(changed(event));
    events = std::move(changed_events);
    for (format::Event& event : features.event_descriptions) event = changed(std::move(event));
    change_environment(features.environment);
    features.tracing.printk_formats = moved_lines(features.tracing.printk_formats);
    if (hides(Content::Comm)) features.tracing.saved_cmdlines.clear();  // a thread and its name on each line
    for (format::PayloadSchema& schema : features.schemas) schema.event = event_name(schema.event);
    change_attachments(features.attachments);
    return change_pack(features.symbol_pack);
  }

 private:
  void change_environment(format::Environment& environment) const {
    if (hides(Content::Host) && environment.hostname) {
      if (how(Content::Host) == How::Hash)
        environment.hostname = aliases_.alias_of(*environment.hostname);
      else
        environment.hostname.reset();
    }
    if (how(Content::CommandLine) == How::Drop) environment.command_line.clear();
    if (how(Content::CommandLine) == How::Hash)
      for (std::string& word : environment.command_line) word = aliases_.alias_of(word);
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
      environment.bpf_maps.clear();
    }
    if (hides(Content::Kernel) || hides(Content::Paths)) environment.bpf_places.clear();
    for (format::EventLoss& loss : environment.losses.events) {
      loss.event = event_name(loss.event);
      if (hides(Content::Containers)) loss.cgroup = loss.cgroup.empty() ? "" : aliases_.alias_of(loss.cgroup);
    }
    for (auto& [what, value] : environment.user_stacks) what = numbers_in(paths_in(what));
    for (format::AttachedProgram& program : environment.attached_programs) {
      program.object = path(program.object);
      program.section = numbers_in(hidden_section(program.section, path_rule_, aliases_));
      program.state = numbers_in(paths_in(program.state));
    }
  }

  void change_attachments(std::vector<format::Attachment>& attachments) const {
    std::vector<format::Attachment> kept;
    const bool hides_processes = hides(Content::CommandLine) || hides(Content::Paths) ||
                                 hides(Content::Containers) || hides(Content::Host);
    for (format::Attachment& attachment : attachments) {
      Result<> done = Done{};
      if (attachment.name == format::kKallsymsAttachment || attachment.name == kBpfCallsAttachment) {
        done = change_text(attachment, &HeadRedaction::moved_lines);
      } else if (attachment.name.starts_with("perf-map/")) {
        done = change_text(attachment, &HeadRedaction::paths_in_lines);
        attachment.origin = path(attachment.origin);
      } else if (attachment.name.starts_with(symbolize::kAttachedJitdump)) {
        done = change_jitdump(attachment);
      } else if (attachment.name != "vdso" && (attachment.name != "processes" || hides_processes)) {
        continue;
      }
      if (done) kept.push_back(std::move(attachment));  // drop what cannot be decompressed
    }
    attachments = std::move(kept);
  }

  Result<> change_pack(std::vector<std::byte>& section) const {
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

  // The attr of probes and breakpoints has an address.
  format::Event changed(format::Event event) const {
    event.name = event_name(event.name);
    if (!hides(Content::Kernel)) return event;
    // Of other events than breakpoints it may be no address.
    const bool is_address = event.attr.type == abi::kBreakpoint;
    for (std::uint64_t* const word : {&event.attr.config1, &event.attr.config2})
      if (*word >= kKernelHalf && *word < abi::kContextMax)
        *word = is_address ? kernel_.hidden(*word, aliases_) : moved(*word);
    return event;
  }

  bool hides(Content content) const { return redaction_.hides(content); }
  How how(Content content) const { return redaction_.how_of(content); }
  std::string path(std::string_view text) const { return hidden_path(text, path_rule_, aliases_); }
  std::string paths_in(std::string_view text) const { return hidden_paths_in(text, path_rule_, aliases_); }
  std::string numbers_in(const std::string& text) const {
    return hides(Content::Kernel) ? kernel_.hidden_in(text, aliases_) : text;
  }
  std::string event_name(std::string_view name) const {
    return numbers_in(hidden_event(name, path_rule_, aliases_));
  }
  std::uint64_t moved(std::uint64_t address) const {
    return hides(Content::Kernel) ? kernel_.moved(address) : address;
  }
  std::uint64_t shifted(std::uint64_t time) const { return time < time_shift_ ? time : time - time_shift_; }
  // Lines that begin with an address, as /proc/kallsyms has them and printk_formats (with 0x).
  std::string moved_lines(std::string_view text) const {
    if (!hides(Content::Kernel)) return std::string(text);
    return changed_lines(text, [this](std::string_view line, std::string& changed) {
      const std::string_view before = line.starts_with("0x") ? line.substr(0, 2) : std::string_view();
      line.remove_prefix(before.size());
      std::uint64_t address = 0;
      const auto [number_end, failed] = std::from_chars(line.data(), line.data() + line.size(), address, 16);
      if (failed != std::errc{}) return;
      const auto digits = static_cast<std::size_t>(number_end - line.data());
      changed += before;
      changed += fmt::format("{:0{}x}", moved(address), digits);
      changed += line.substr(digits);
    });
  }

  Result<> change_text(format::Attachment& attachment,
                       std::string (HeadRedaction::*change)(std::string_view) const) const {
    const auto content = format::unpack_attachment(attachment);
    if (!content) return content.error();
    const std::string text = (this->*change)(format::as_text(*content));
    auto packed = format::pack_attachment(attachment.name, attachment.origin, std::as_bytes(std::span(text)));
    if (!packed) return std::move(packed.error());
    attachment = std::move(*packed);
    return Done{};
  }

  // Names of JIT code: "LazyCompile:*run /home/me/app.js:7".
  std::string paths_in_lines(std::string_view text) const {
    return changed_lines(text,
                         [this](std::string_view line, std::string& changed) { changed += paths_in(line); });
  }

  // Redacts the names of code and source files in a jitdump that `tacho pack` attached.
  Result<> change_jitdump(format::Attachment& attachment) const {
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
    all.reserve(events.size());
    for (const symbolize::JitEvent& event : events) all.push_back(&event);
    const std::string where = path(attachment.name.substr(symbolize::kAttachedJitdump.size()));
    auto attached = symbolize::attach_jitdump(where, dump->pid(), all);
    if (!attached) return std::move(attached.error());
    attachment = std::move(attached->attachment);
    return Done{};
  }

  void pack_module(const format::PackTexts& texts, format::PackedModule& module,
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
    module.missing_reason = to.number_of(paths_in(texts[module.missing_reason]));
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

  const Redaction& redaction_;
  const Aliases& aliases_;
  const KaslrRemap& kernel_;
  std::uint64_t time_shift_;
  PathRule path_rule_;
};

}  // namespace

Result<> redact_head(format::EventSet& events, Features& features, const Redaction& redaction,
                     const Aliases& aliases, const KaslrRemap& kernel, std::uint64_t time_shift) {
  return HeadRedaction(redaction, aliases, kernel, time_shift).change(events, features);
}

}  // namespace tacho::report
