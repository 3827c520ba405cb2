#include "report/views/annotate/code_json.h"

#include "report/output/field_sinks.h"

namespace tacho::report {
namespace {

std::string_view kind_text(const DisassembledInstruction& instruction) {
  switch (instruction.kind) {
    case InstructionKind::Jump:
      return instruction.is_conditional ? "conditional-jump" : "jump";
    case InstructionKind::Call:
      return "call";
    case InstructionKind::Return:
      return "return";
    case InstructionKind::Bad:
      return "bad";
    case InstructionKind::Other:
      break;
  }
  return {};
}

void write_counts(JsonFields& to, const ShownCode& shown, std::span<const HitCount> counts,
                  const CodeOptions& options) {
  to.begin_list("counts");
  for (std::size_t event = 0; event < counts.size(); ++event) {
    to.begin_object({});
    to.number("samples", counts[event].samples);
    to.number("period", counts[event].period);
    to.real("percent", shown.percent(event, counts[event], options));
    to.end_object();
  }
  to.end_list();
}

bool has_samples(std::span<const HitCount> counts) {
  for (const HitCount& count : counts)
    if (count.samples != 0) return true;
  return false;
}

void write_branches(JsonFields& to, const BranchHits& hits) {
  to.begin_object("branches");
  to.number("taken", hits.taken);
  to.number("mispredicted", hits.mispredicted);
  to.number("entered", hits.entered);
  if (hits.timed != 0) {
    to.number("cycles", hits.cycles);
    to.number("timed", hits.timed);
  }
  to.end_object();
}

void write_line(JsonFields& to, const ShownCode& shown, std::size_t number, const CodeOptions& options) {
  const CodeLine& line = shown.code.lines[number];
  const DisassembledInstruction& instruction = line.instruction;
  to.begin_object({});
  to.hex("address", shown.code.address + line.offset);
  to.number("offset", line.offset);
  to.bytes("bytes", line.bytes);
  constexpr std::size_t kMnemonic = 6;
  to.text("text", instruction_text(line, kMnemonic));
  if (const std::string_view kind = kind_text(instruction); !kind.empty()) to.text("kind", kind);
  if (instruction.target) to.hex("target", *instruction.target);
  if (instruction.memory) to.hex("memory", *instruction.memory);
  if (!line.target_name.empty()) to.text("names", line.target_name);
  if (line.line != 0) {
    to.text("file", line.file);
    to.number("line", line.line);
  }
  if (!line.function.empty() && line.function != shown.function.name) to.text("inlined", line.function);
  if (has_samples(shown.code.counts_of(number)))
    write_counts(to, shown, shown.code.counts_of(number), options);
  if (line.branches.is_any()) write_branches(to, line.branches);
  to.end_object();
}

// The lines of source that instructions come from, where their files are known: by file and number.
void write_source(JsonFields& to, const ShownCode& shown, SourceFiles& files) {
  std::map<std::string_view, std::map<std::uint32_t, std::string_view>> lines;
  for (const CodeLine& line : shown.code.lines) {
    if (line.line == 0) continue;
    if (!line.source.empty()) {
      lines[line.file].emplace(line.line, line.source);
      continue;
    }
    const auto& all = files.lines_of(line.file);
    if (line.line <= all.size()) lines[line.file].emplace(line.line, all[line.line - 1]);
  }
  to.begin_list("source");
  for (const auto& [file, texts] : lines)
    for (const auto& [number, text] : texts) {
      to.begin_object({});
      to.text("file", file);
      to.number("line", number);
      to.text("text", text);
      to.end_object();
    }
  to.end_list();
}

}  // namespace

void write_code_json(TextOutput& out, const ShownCode& shown, SourceFiles& files,
                     const CodeOptions& options) {
  JsonFields to(out);
  to.text("symbol", shown.function.name);
  to.text("dso", shown.function.module->path);
  to.hex("address", shown.code.address);
  to.number("size", shown.code.size);
  to.begin_list("events");
  for (std::size_t event = 0; event < shown.events.size(); ++event) {
    to.begin_object({});
    to.text("event", shown.events[event]);
    to.number("samples", shown.totals[event].samples);
    to.number("period", shown.totals[event].period);
    to.number("all_samples", shown.everything[event].samples);
    to.number("all_period", shown.everything[event].period);
    to.end_object();
  }
  to.end_list();
  if (!shown.code.lack.empty()) to.text("lack", shown.code.lack);
  to.begin_list("lines");
  for (std::size_t i = 0; i < shown.code.lines.size(); ++i) write_line(to, shown, i, options);
  to.end_list();
  if (options.has_source) write_source(to, shown, files);
  to.finish();
  out.character('\n');
  out.line_end();
}

}  // namespace tacho::report
