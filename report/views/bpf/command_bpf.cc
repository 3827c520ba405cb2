// tacho bpf: BPF programs of a capture, their costs, and their code with the source lines of their BTF.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cli/text_table.h"
#include "report/commands.h"
#include "report/decode/bpf_functions.h"
#include "report/decode/bpf_instructions.h"
#include "report/decode/instructions.h"
#include "report/decode/payload.h"
#include "report/output/field_sinks.h"

namespace tacho::report {
namespace {

constexpr std::string_view kCosts = "bpfstat";  // the event with the runs of each program
constexpr std::uint64_t kSecond = 1'000'000'000;

using Kind = cli::TableColumn::Kind;

struct Options {
  ReadingOptions reading;
  std::string program;  // name, number or tag; empty: a list of all
  AsmSyntax syntax = AsmSyntax::Att;
  std::optional<std::uint64_t> interval;  // seconds
  bool is_machine_code = false, as_json = false;
};

cli::CommandLine describe(Options& options) {
  auto line = command_line(
      "bpf",
      "Lists BPF programs: type, tag, how often each ran and for how long, where it is attached, and the "
      "maps. -s shows the code of one: the instructions after the verifier in the form of bpftool prog dump "
      "xlated, or with --jited the machine code, with the source lines that the program's BTF has. FILE is a "
      "capture and shows what was loaded when it was made; without FILE what is loaded now. tacho annotate "
      "--bpf PROGRAM shows machine code with samples.");
  line.synopsis = "[FILE] [-s PROGRAM] [options]";
  auto& rows = line.options;
  add_input_options(rows, options.reading);
  rows.push_back(cli::text("-s,--program", "PROGRAM", "the code of this program: its name, number or tag",
                           options.program));
  rows.push_back(
      flag("--jited", "with -s: the machine code of the kernel's JIT compiler", options.is_machine_code));
  rows.push_back({"-M,--disassembler-style", cli::Takes::Value, "STYLE",
                  "with --jited: how x86 code is written: att (default) or intel",
                  [&options](std::string_view text) -> Result<> {
                    if (text != "intel" && text != "att")
                      return use_error("-M: '" + std::string(text) +
                                       "' is not known; x86 code is written as att or intel has it");
                    options.syntax = text == "intel" ? AsmSyntax::Intel : AsmSyntax::Att;
                    return Done{};
                  }});
  rows.push_back({"--interval", cli::Takes::Value, "S",
                  "the cost of each program in every S seconds: of a capture with the event bpfstat "
                  "(tacho record -e bpfstat --interval S), without FILE of now, until Ctrl-C",
                  [&options](std::string_view text) -> Result<> {
                    const auto seconds = cli::parse_number("--interval", text, 1, 86400);
                    if (!seconds) return seconds.error();
                    options.interval = *seconds;
                    return Done{};
                  }});
  rows.push_back(
      {"--count", cli::Takes::Value, "N", "without FILE and with --interval: end after N intervals",
       [](std::string_view) -> Result<> {
         return use_error("--count: a capture ends by itself; it is for tacho bpf --interval without FILE");
       }});
  rows.push_back(wide_option("--wide", options.reading));
  rows.push_back(flag("--json", "one JSON object a program, each on a line (docs/bpf.md)", options.as_json));
  line.epilog =
      "Examples:\n"
      "  tacho bpf                            what is loaded now\n"
      "  tacho bpf -s switches                the code of one of them\n"
      "  tacho bpf --interval 1               what each costs, every second\n"
      "  tacho bpf perf.data -s switches      of a capture\n\n" +
      line.epilog;
  return line;
}

// ---- costs

struct ProgramCost {
  std::uint64_t runs = 0, nanoseconds = 0;
};
using Costs = std::map<std::uint32_t, ProgramCost>;  // by number of the program

// Adds up the samples of bpfstat: the cost of each program since the sample before.
class CostSink : public Sink {
 public:
  CostSink(Session& session, std::optional<std::uint64_t> interval)
      : schemas_(session.events(), session.features()), interval_(interval) {}
  Flow on_sample(const ResolvedSample& sample) override {
    const PayloadSchema* const schema = schemas_.schema_of(sample.event_index);
    if (sample.event().name != kCosts || schema == nullptr) return Flow::Continue;
    std::uint32_t id = 0;
    ProgramCost cost;
    for (const PayloadField& field : schema->fields) {
      const auto value = read_field(field, sample.fields->raw, sample.order);
      if (!value) continue;
      if (field.name == "id") id = static_cast<std::uint32_t>(bits_of(*value));
      if (field.name == "runs") cost.runs = bits_of(*value);
      if (field.name == "total_ns") cost.nanoseconds = bits_of(*value);
    }
    const std::uint64_t time = sample.fields->time;
    if (by_interval_.empty()) first_time_ = time;
    const std::uint64_t number =
        interval_ ? (time - std::min(time, first_time_)) / (*interval_ * kSecond) : 0;
    ProgramCost& sum = by_interval_[number][id];
    sum.runs += cost.runs;
    sum.nanoseconds += cost.nanoseconds;
    return Flow::Continue;
  }

  // By number of the interval; without --interval all are in the first.
  const std::map<std::uint64_t, Costs>& by_interval() const { return by_interval_; }
  std::uint64_t first_time() const { return first_time_; }  // ns

 private:
  EventSchemas schemas_;
  std::optional<std::uint64_t> interval_;
  std::map<std::uint64_t, Costs> by_interval_;
  std::uint64_t first_time_ = 0;
};

// ---- text

// The source lines before instructions, at most one before each, as in bpftool: of two lines at one
// instruction the last one.
class LineWalk {
 public:
  explicit LineWalk(std::span<const BpfLine> lines) : lines_(lines) {}
  const BpfLine* at(std::uint64_t offset) {
    const BpfLine* found = nullptr;
    for (std::size_t i = next_; i < lines_.size() && lines_[i].offset <= offset; ++i) found = &lines_[i];
    next_ += found != nullptr ? 1 : 0;
    return found;
  }

 private:
  std::span<const BpfLine> lines_;
  std::size_t next_ = 0;
};

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\n\v\f\r"), text.size()));
  return text;
}

std::string time_of_one(const ProgramCost& cost) {
  return cost.runs == 0 ? "-" : std::to_string(cost.nanoseconds / cost.runs);
}

class BpfText {
 public:
  BpfText(Session& session, TextOutput& out, const Options& options)
      : out_(out),
        options_(options),
        environment_(session.features().environment),
        functions_(environment_),
        calls_(session.features()),
        disassembler_(environment_.arch.value_or(""), WordSize::Bits64, options.syntax) {
    for (const format::BpfProgramInfo& info : environment_.bpf_programs) {
      BpfProgram program = functions_.program(info);
      if (options.program.empty() || program.is_called(options.program))
        programs_.emplace_back(std::move(program), &info);
    }
  }

  Result<Shown> write(const CostSink& costs) {
    const std::string input = printable(options_.reading.shown_input());
    if (programs_.empty() && !options_.program.empty())
      return use_error(fmt::format("{}: has no BPF program '{}'; tacho bpf without -s lists them", input,
                                   printable(options_.program)));
    if (options_.interval && costs.by_interval().empty())
      return use_error(
          fmt::format("--interval: {} has no event bpfstat; tacho record -e bpfstat -a --interval {} "
                      "records what programs cost",
                      input, *options_.interval));
    Shown done(Symbols::NotUsed);
    if (options_.as_json) {
      for (const auto& [program, info] : programs_)
        write_json(program, functions_.functions_of(*info), costs);
    } else if (options_.interval) {
      for (const auto& [number, interval] : costs.by_interval())
        write_interval(costs.first_time() + number * *options_.interval * kSecond, interval);
    } else if (options_.program.empty()) {
      write_list(costs);
    } else {
      for (const auto& [program, info] : programs_) write_code(program, functions_.functions_of(*info));
    }
    if (lacks_code_) {
      done.notes.push_back(fmt::format(
          "tacho: {}: code is missing: the recorder had no right to see it, or was another than tacho",
          input));
      done.status = cli::kIncomplete;
    }
    return done;
  }

 private:
  std::string safe(std::string_view text) const { return printable(text, options_.reading.names); }

  // "tracepoint sched_switch": from the kernel's links, else from the section of a program that tacho
  // attached.
  std::vector<std::string> places_of(const BpfProgram& program) const {
    std::vector<std::string> places;
    for (const auto& [id, place] : environment_.bpf_places)
      if (id == std::to_string(program.id)) places.push_back(place);
    if (!places.empty()) return places;
    for (const format::AttachedProgram& each : environment_.attached_programs)
      if (each.id == program.id && program.id != 0 && each.state.starts_with("attached"))
        places.push_back(each.section);
    return places;
  }

  void write_list(const CostSink& costs) {
    if (programs_.empty()) {
      // A capture in memory is of now, by a recorder that could list them (record/now).
      out_.text(options_.reading.input_name.empty()
                    ? "no BPF programs: none was loaded when it was recorded, or its recorder was not root\n"
                    : "no BPF program is loaded\n");
      return;
    }
    const bool has_costs = !costs.by_interval().empty();
    std::vector<cli::TableColumn> columns = {{"id", Kind::Number, 6},    {"type", Kind::Word, 16, 2},
                                             {"tag", Kind::Spare, 16},   {"name", Kind::Name, 24},
                                             {"runs", Kind::Number, 12}, {"ns/run", Kind::Number, 8},
                                             {"where", Kind::Name, 0, 3}};
    if (has_costs) {
      columns.back().gap = 2;
      columns.insert(columns.end() - 1, {"ms", Kind::Number, 10});
    }
    std::vector<std::vector<std::string>> rows;
    for (const auto& [program, info] : programs_) {
      ProgramCost cost{program.runs, program.nanoseconds};
      if (has_costs) {
        const Costs& all = costs.by_interval().begin()->second;
        const auto found = all.find(program.id);
        cost = found == all.end() ? ProgramCost{} : found->second;
      }
      const std::vector<std::string> places = places_of(program);
      auto& row = rows.emplace_back(
          std::vector<std::string>{std::to_string(program.id), program.type, program.tag, safe(program.name),
                                   cost.runs == 0 ? "-" : std::to_string(cost.runs), time_of_one(cost)});
      if (has_costs) row.push_back(fmt::format("{:.3f}", static_cast<double>(cost.nanoseconds) / 1e6));
      row.push_back(places.empty() ? "-" : safe(places.front()));
      for (std::size_t i = 1; i < places.size(); ++i) rows.push_back({"        also at: " + safe(places[i])});
    }
    write_table(columns, std::move(rows));
    write_maps();
  }

  void write_table(std::span<const cli::TableColumn> columns, std::vector<std::vector<std::string>> rows) {
    out_.text(cli::text_table(columns, std::move(rows), options_.reading.room()));
    out_.line_end();
  }

  void write_maps() {
    if (environment_.bpf_maps.empty()) return;
    std::map<std::uint32_t, std::vector<std::uint32_t>> users;
    for (const auto& [program, info] : programs_)
      for (const std::uint32_t map : program.maps) users[map].push_back(program.id);
    std::vector<std::vector<std::string>> rows;
    for (const format::BpfMap& map : environment_.bpf_maps)
      rows.push_back({std::to_string(map.id), std::string(bpf_map_type(map.type)), safe(map.name),
                      std::to_string(map.key_bytes), std::to_string(map.value_bytes),
                      std::to_string(map.most_entries), fmt::format("{}", fmt::join(users[map.id], " "))});
    out_.character('\n');
    write_table(std::vector<cli::TableColumn>{{"map", Kind::Number, 6},
                                              {"type", Kind::Name, 16, 2},
                                              {"name", Kind::Name, 16},
                                              {"key", Kind::Number, 6},
                                              {"value", Kind::Number, 8},
                                              {"entries", Kind::Number, 10},
                                              {"programs", Kind::List, 0, 2}},
                std::move(rows));
  }

  void write_interval(std::uint64_t time, const Costs& costs) {
    const auto seconds = static_cast<double>(*options_.interval);
    out_.text(fmt::format("from {}.{:06} s\n", time / kSecond, time % kSecond / 1000));
    std::vector<std::vector<std::string>> rows;
    for (const auto& [program, info] : programs_) {
      const auto cost = costs.find(program.id);
      if (cost == costs.end()) continue;
      const double share = static_cast<double>(cost->second.nanoseconds) / 1e9 / seconds * 100;
      rows.push_back({std::to_string(program.id), program.type, safe(program.name),
                      fmt::format("{:.0f}", static_cast<double>(cost->second.runs) / seconds),
                      time_of_one(cost->second), fmt::format("{:.2f} %", share)});
    }
    write_table(std::vector<cli::TableColumn>{{"id", Kind::Number, 6},
                                              {"type", Kind::Word, 16, 2},
                                              {"name", Kind::Name, 24},
                                              {"runs/s", Kind::Number, 10},
                                              {"ns/run", Kind::Number, 8},
                                              {"of a CPU", Kind::Number, 8}},
                std::move(rows));
  }

  void write_code(const BpfProgram& program, const std::vector<BpfFunction>& functions) {
    if (programs_.size() > 1)
      out_.text(fmt::format("{}: {}  name {}  tag {}\n", program.id, program.type, safe(program.name),
                            program.tag));
    if (options_.is_machine_code)
      write_machine_code(functions);
    else
      write_translated(program, functions);
    if (programs_.size() > 1) out_.end_line();
  }

  void write_source(const BpfLine* line) {
    if (line == nullptr) return;
    out_.text(fmt::format("; {} [file:{} line_num:{} line_col:{}]\n", safe(trimmed(line->text)),
                          safe(line->file), line->line, line->column));
  }

  // As `bpftool prog dump xlated linum` has it.
  void write_translated(const BpfProgram& program, const std::vector<BpfFunction>& functions) {
    lacks_code_ |= program.translated.empty();
    LineWalk lines(program.lines);
    auto function = functions.begin();
    for (const BpfCodeLine& each : disassembled(program, functions)) {
      if (function != functions.end() && function->first == each.number) {
        if (!function->prototype.empty()) out_.text(safe(function->prototype) + ":\n");
        ++function;
      }
      write_source(lines.at(each.number));
      out_.text(fmt::format("{: 4d}: {}\n", std::int64_t{each.number}, safe(each.text)));
    }
  }

  std::vector<BpfCodeLine> disassembled(const BpfProgram& program,
                                        const std::vector<BpfFunction>& functions) const {
    return disassemble_bpf(program.translated, [&](const BpfInstruction& one) -> std::optional<std::string> {
      if (one.calls_own_function()) {
        const auto number = static_cast<std::uint32_t>(one.immediate);
        if (functions.empty()) return fmt::format("{:+}", one.offset);
        const BpfFunction* const called = number < functions.size() ? &functions[number] : nullptr;
        return called == nullptr ? std::optional<std::string>()
                                 : fmt::format("{:+}#{}", one.offset, called->name);
      }
      const std::string_view name = calls_.called(one.immediate);
      return name.empty() ? std::nullopt : std::optional<std::string>(name);
    });
  }

  // In the layout of `bpftool prog dump jited linum`; the texts of instructions are capstone's.
  void write_machine_code(const std::vector<BpfFunction>& functions) {
    lacks_code_ |= functions.empty();
    for (const BpfFunction& function : functions) {
      lacks_code_ |= function.code.empty();
      if (!function.prototype.empty()) out_.text(safe(function.prototype) + ":\n");
      out_.text(safe(function.name) + ":\n");
      LineWalk lines(function.lines);
      for (const DisassembledInstruction& each : disassembler_.disassemble(function.code, function.address)) {
        write_source(lines.at(each.address - function.address));
        out_.text(fmt::format("{:4x}:\t{}\n", each.address - function.address,
                              safe(text_of(each, function, functions))));
      }
      out_.character('\n');
    }
  }

  std::string text_of(const DisassembledInstruction& one, const BpfFunction& function,
                      const std::vector<BpfFunction>& functions) const {
    std::string operands = one.operands;
    if (one.target) operands += target_text(*one.target, function, functions);
    return operands.empty() ? one.mnemonic : one.mnemonic + ' ' + operands;
  }

  std::string target_text(std::uint64_t target, const BpfFunction& function,
                          const std::vector<BpfFunction>& functions) const {
    if (target - function.address < function.size) return fmt::format("{:#x}", target - function.address);
    for (const BpfFunction& each : functions)
      if (target == each.address) return fmt::format("{:#x} <{}>", target, each.name);
    const std::string_view name = calls_.at(target);
    return name.empty() ? fmt::format("{:#x}", target) : fmt::format("{:#x} <{}>", target, name);
  }

  // ---- JSON

  void write_json(const BpfProgram& program, const std::vector<BpfFunction>& functions,
                  const CostSink& costs) {
    JsonFields to(out_);
    to.number("id", program.id);
    to.text("name", program.name);
    to.text("type", program.type);
    to.text("tag", program.tag);
    to.number("loaded_by", program.loaded_by);
    to.number("translated_bytes", program.translated_bytes);
    to.number("machine_bytes", program.machine_bytes);
    to.number("runs", program.runs);
    to.number("run_ns", program.nanoseconds);
    to.number("skipped", program.skipped);
    write_costs(to, program, costs);
    to.begin_list("maps");
    for (const std::uint32_t map : program.maps) write_map(to, map);
    to.end_list();
    to.begin_list("places");
    for (const std::string& place : places_of(program)) to.text({}, place);
    to.end_list();
    const bool has_code = !options_.program.empty();
    to.begin_list("functions");
    for (const BpfFunction& function : functions) {
      to.begin_object({});
      to.text("name", function.name);
      if (!function.prototype.empty()) to.text("prototype", function.prototype);
      to.number("first", function.first);
      to.hex("address", function.address);
      to.number("size", function.size);
      if (has_code && options_.is_machine_code) write_json_code(to, function, functions);
      to.end_object();
    }
    to.end_list();
    if (has_code && !options_.is_machine_code) write_json_translated(to, program, functions);
    to.finish();
    out_.end_line();
  }

  void write_costs(JsonFields& to, const BpfProgram& program, const CostSink& costs) const {
    if (costs.by_interval().empty()) return;
    to.begin_list("costs");
    for (const auto& [number, interval] : costs.by_interval()) {
      const auto cost = interval.find(program.id);
      if (cost == interval.end()) continue;
      to.begin_object({});
      if (options_.interval) to.number("from_ns", costs.first_time() + number * *options_.interval * kSecond);
      to.number("runs", cost->second.runs);
      to.number("run_ns", cost->second.nanoseconds);
      to.end_object();
    }
    to.end_list();
  }

  void write_map(JsonFields& to, std::uint32_t id) const {
    to.begin_object({});
    to.number("id", id);
    const auto map = std::ranges::find(environment_.bpf_maps, id, &format::BpfMap::id);
    if (map != environment_.bpf_maps.end()) {
      to.text("name", map->name);
      to.text("type", bpf_map_type(map->type));
      to.number("key_bytes", map->key_bytes);
      to.number("value_bytes", map->value_bytes);
      to.number("most_entries", map->most_entries);
    }
    to.end_object();
  }

  static void write_json_source(JsonFields& to, const BpfLine* line) {
    if (line == nullptr) return;
    to.text("file", line->file);
    to.number("line", line->line);
    to.number("column", line->column);
    to.text("source", trimmed(line->text));
  }

  void write_json_translated(JsonFields& to, const BpfProgram& program,
                             const std::vector<BpfFunction>& functions) {
    lacks_code_ |= program.translated.empty();
    LineWalk lines(program.lines);
    const BpfLine* line = nullptr;
    to.begin_list("instructions");
    for (const BpfCodeLine& each : disassembled(program, functions)) {
      if (const BpfLine* const next = lines.at(each.number)) line = next;
      to.begin_object({});
      to.number("number", each.number);
      to.text("text", each.text);
      if (each.target) to.number("target", *each.target);
      write_json_source(to, line);
      to.end_object();
    }
    to.end_list();
  }

  void write_json_code(JsonFields& to, const BpfFunction& function,
                       const std::vector<BpfFunction>& functions) {
    lacks_code_ |= function.code.empty();
    LineWalk lines(function.lines);
    const BpfLine* line = nullptr;
    to.begin_list("instructions");
    for (const DisassembledInstruction& each : disassembler_.disassemble(function.code, function.address)) {
      if (const BpfLine* const next = lines.at(each.address - function.address)) line = next;
      to.begin_object({});
      to.number("offset", each.address - function.address);
      to.bytes("bytes",
               function.code.subspan(static_cast<std::size_t>(each.address - function.address), each.size));
      to.text("text", text_of(each, function, functions));
      if (each.target) to.hex("target", *each.target);
      write_json_source(to, line);
      to.end_object();
    }
    to.end_list();
  }

  TextOutput& out_;
  const Options& options_;
  const format::Environment& environment_;
  BpfFunctions functions_;
  BpfCallNames calls_;
  Disassembler disassembler_;
  std::vector<std::pair<BpfProgram, const format::BpfProgramInfo*>> programs_;
  bool lacks_code_ = false;
};

Result<Shown> show(Session& session, TextOutput& out, const Options& options) {
  read_head(session);
  CostSink costs(session, options.interval);
  const bool may_have_costs =
      session.layout().is_pipe ||
      std::ranges::any_of(session.events(), [](const format::Event& event) { return event.name == kCosts; });
  // Code needs no samples.
  if (may_have_costs && (options.program.empty() || options.as_json)) run_with_progress(session, costs, out);
  return BpfText(session, out, options).write(costs);
}

}  // namespace

Result<cli::ExitStatus> run_bpf(const std::vector<std::string>& arguments) {
  Options options;
  options.reading.session.wants_stacks = false;
  return run_view(describe(options), arguments, options.reading,
                  [&options](Session& session, TextOutput& out) { return show(session, out, options); });
}

}  // namespace tacho::report
