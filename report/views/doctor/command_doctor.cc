// tacho doctor FILE: reports what a capture lacks on another machine.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "cli/exit_status.h"
#include "cli/message_text.h"
#include "format/base/result.h"
#include "format/container/content_classes.h"
#include "format/extensions/attachment.h"
#include "format/records/perf_abi.h"
#include "format/records/record.h"
#include "report/census.h"
#include "report/command.h"
#include "report/commands.h"
#include "report/output/field_sinks.h"
#include "report/query/gather.h"
#include "report/redaction.h"
#include "report/samples/session.h"
#include "symbolize/files/decompress.h"

namespace tacho::report {
namespace {

// Frames without a name in one module, for one reason.
struct LackingModule {
  std::string path;      // empty: nothing was mapped there
  std::string build_id;  // hexadecimal; empty: unknown
  std::string reason;
  std::uint64_t frames = 0;     // of all samples
  std::uint64_t addresses = 0;  // distinct
};

struct SensitiveClass {
  std::string_view name;  // as tacho redact calls it
  std::uint64_t count = 0;
  std::string what;   // the unit of `count`
  std::string state;  // how tacho redact changed it; empty: not at all
};

// What a capture shows on a machine without the files of the recording host, and its private content.
struct CaptureFacts {
  std::uint64_t samples = 0;
  NamedFrames names;
  std::vector<LackingModule> lacking;  // most frames first
  std::uint64_t unsure_frames = 0;     // frames in modules without a build id
  std::uint64_t lost = 0, throttled = 0;
  std::uint64_t cut_chains = 0;     // call chains with the kernel's maximum number of frames
  std::uint64_t copied_stacks = 0;  // copied stacks, whose unwinding needs the files of the host
  std::uint64_t cut_copies = 0;     // copied stacks that fill their space
  std::uint64_t file_copies = 0;    // copies of programs and libraries in the capture
  std::uint64_t source_files = 0;   // copies of source files in the capture
  std::string clock;                // the recording clock
  bool has_wall_clock = false;      // times can be converted to times of day
  std::uint64_t cgroups = 0, namespaces = 0, deleted_modules = 0;
  std::vector<SensitiveClass> sensitive;  // the classes of which the capture has any content
};

namespace abi = format::abi;

constexpr std::uint32_t kUsualDepth = 127;  // frames of a call chain where the event does not say

std::string_view clock_name(std::int32_t clock) {
  constexpr std::pair<std::int32_t, std::string_view> kNames[] = {{CLOCK_REALTIME, "realtime"},
                                                                  {CLOCK_MONOTONIC, "monotonic"},
                                                                  {CLOCK_MONOTONIC_RAW, "monotonic_raw"},
                                                                  {CLOCK_BOOTTIME, "boottime"},
                                                                  {CLOCK_TAI, "tai"}};
  const auto row = std::ranges::find(kNames, clock, &std::pair<std::int32_t, std::string_view>::first);
  return row == std::end(kNames) ? "another" : row->second;
}

std::string reason_of(const symbolize::LocationFacts& facts) {
  using symbolize::ModuleKind;
  if (facts.module == nullptr) return "nothing was mapped there";
  const symbolize::SymbolSource* const source = facts.source;
  // The module's names are known, from the pack or from a copy of the file.
  if (source != nullptr && (source->packed != nullptr || source->table != nullptr))
    return facts.module->kind == ModuleKind::User
               ? "no symbol covers the address; if it is stripped, tacho pack finds names in installed debug "
                 "symbols, or with --debuginfod"
               : "no symbol covers the address";
  switch (facts.module->kind) {
    case ModuleKind::Anonymous:
      return "code made at run time that no perf map in the capture names; the program can write one: "
             "node --perf-basic-prof, python3.12 -X perf, java -XX:+UnlockDiagnosticVMOptions "
             "-XX:+DumpPerfMapAtExit";
    case ModuleKind::User:
    case ModuleKind::Vdso:
      return "its names are not in the capture; run tacho pack on the host";
    default:
      break;
  }
  if (source != nullptr) return source->missing.text.empty() ? "it has no symbols" : source->missing.text;
  return "no symbol covers the address";
}

class Examiner : public Sink {
 public:
  explicit Examiner(Session& session) : session_(session) {}

  Flow on_sample(const ResolvedSample& sample) override {
    const format::Sample& fields = *sample.fields;
    const format::EventAttr& attr = (*sample.events)[sample.record_event].attr;
    ++facts_.samples;
    hits_.add_sample(sample);
    const std::size_t deepest = attr.sample_max_stack != 0 ? attr.sample_max_stack : kUsualDepth;
    if (attr.samples(abi::kSampleCallchain)) {
      std::size_t frames = 0;
      for (std::size_t i = 0; i < fields.callchain.size(); ++i)
        frames += fields.callchain[i] < abi::kContextMax ? 1 : 0;
      if (frames >= deepest) ++facts_.cut_chains;
    }
    if (!fields.user_stack.empty()) {
      ++facts_.copied_stacks;
      constexpr std::size_t kRoundedBy = 8;
      if (fields.user_stack.size() + kRoundedBy >= attr.sample_stack_user) ++facts_.cut_copies;
    }
    census_.see_sample(fields, attr);
    return Flow::Continue;
  }

  Flow on_non_sample(const NonSampleRecord& event) override {
    const format::Record& record = *event.record;
    census_.see_other(record);
    if (const auto* throttle = std::get_if<format::ThrottleRecord>(&record))
      facts_.throttled += !throttle->is_unthrottle;
    if (std::holds_alternative<format::NamespacesRecord>(record)) ++facts_.namespaces;
    if (std::holds_alternative<format::CgroupRecord>(record)) ++facts_.cgroups;
    if (const auto* mapping = std::get_if<format::MmapRecord>(&record);
        mapping != nullptr && mapping->filename.starts_with('/') && paths_.emplace(mapping->filename).second)
      facts_.deleted_modules += mapping->filename.ends_with(" (deleted)") ? 1 : 0;
    return Flow::Continue;
  }

  CaptureFacts finish() {
    name_locations();
    add_sensitive();
    facts_.lost = all_lost_samples(session_);
    for (const format::Attachment& attachment : session_.features().attachments) {
      if (attachment.name.starts_with(symbolize::kAttachedFile)) ++facts_.file_copies;
      if (attachment.name.starts_with(symbolize::kAttachedSource)) ++facts_.source_files;
    }
    facts_.has_wall_clock = session_.features().environment.clock_data.has_value();
    const format::EventSet& events = session_.events();
    const bool has_clock = !events.empty() && events[0].attr.has(abi::kUseClockid);
    facts_.clock =
        has_clock ? clock_name(events[0].attr.clockid) : "perf's own, the time since the host started";
    if (has_clock && events[0].attr.clockid == CLOCK_REALTIME) facts_.has_wall_clock = true;
    return std::move(facts_);
  }

 private:
  void name_locations() {
    std::map<std::tuple<const symbolize::Module*, std::string>, LackingModule> lacking;
    Resolver& resolver = session_.resolver();
    facts_.names =
        hits_.count_named(resolver, [&](const Location& location, std::uint64_t frames, bool is_named) {
          const auto facts = resolver.facts(location);
          const bool is_guess = facts.source != nullptr && facts.source->is_guess;
          if (is_guess || (facts.module != nullptr && facts.module->is_unsure()))
            facts_.unsure_frames += frames;
          if (is_named) return;
          std::string reason = reason_of(facts);
          LackingModule& module = lacking[{facts.module, reason}];
          if (facts.module != nullptr) {
            module.path = facts.module->path;
            if (!facts.module->build_id.empty()) module.build_id = facts.module->build_id.hex();
          }
          module.reason = std::move(reason);
          module.frames += frames;
          ++module.addresses;
        });
    for (auto& [key, module] : lacking) facts_.lacking.push_back(std::move(module));
    std::ranges::sort(facts_.lacking, [](const LackingModule& a, const LackingModule& b) {
      return std::tie(b.frames, a.path, a.reason) < std::tie(a.frames, b.path, b.reason);
    });
  }

  void add(std::string_view name, std::uint64_t count, std::string what) {
    if (count == 0) return;
    const auto& content = session_.features().environment.content;
    const auto found = std::ranges::find(content, name, &format::ContentClass::name);
    const bool is_changed = found != content.end() && found->state != format::kAsRecorded;
    facts_.sensitive.push_back({name, count, std::move(what), is_changed ? found->state : std::string()});
  }

  // As tacho redact --dry-run counts them.
  void add_sensitive() {
    const format::Features& features = session_.features();
    census_.see_head(session_.events(), features);
    const auto counts = census_.counts();
    for (const format::ContentRow& row : format::kContents) {
      const Census::Count& count = counts[static_cast<std::size_t>(row.content)];
      add(row.name, count.number, std::string(count.unit));
    }
    // A processor's trace is in no sample, so its size is not counted here.
    const auto by_head = format::content_by_head(session_.events(), features);
    const auto traces = format::name_of(format::Content::Traces);
    if (std::ranges::find(by_head, traces, &format::ContentClass::name) != by_head.end() &&
        std::ranges::find(facts_.sensitive, traces, &SensitiveClass::name) == facts_.sensitive.end())
      add(traces, 1, "set of them, not counted here");
  }

  Census census_;
  Session& session_;
  CaptureFacts facts_;
  AddressHits hits_;
  std::unordered_set<std::string> paths_;
};

// Reads the whole capture. The session's symfs is symbolize::kNoFiles: names come from the capture alone.
CaptureFacts examine(Session& session) {
  Examiner examiner(session);
  session.run(examiner);
  return examiner.finish();
}

constexpr double kUsualShare = 95;      // per cent
constexpr std::size_t kMostShown = 20;  // modules in the text

struct Options {
  ReadingOptions reading;
  bool as_json = false;
  double at_least = kUsualShare;
};

cli::CommandLine describe(Options& options) {
  auto line = command_line(
      "doctor",
      "Reports what the capture FILE lacks when it is read on another machine, without the files of the "
      "recording host: the share of frames that get a name from FILE alone, the other frames by module and "
      "reason, lost events and truncated stacks, the clock, and the classes of sensitive content. (tacho "
      "doctor without FILE reports what this host can record.)");
  line.synopsis = "FILE [options]";
  add_input_options(line.options, options.reading);
  line.options.push_back(flag("--json", "one JSON object with the same facts", options.as_json));
  line.options.push_back({"--at-least", cli::Takes::Value, "PERCENT",
                          "the least share of frames with names; below it the exit status is 3 (default: 95)",
                          [&options](std::string_view text) -> Result<> {
                            const auto share = parse_percentage(text);
                            if (!share)
                              return use_error("--at-least: '" + std::string(text) +
                                               "' is no number of per cent, 0 to 100");
                            options.at_least = *share;
                            return Done{};
                          }});
  line.epilog =
      "Examples:\n"
      "  tacho doctor perf.data\n"
      "  tacho doctor perf.data --json --at-least 99.5\n\n"
      "Exit status: 0 enough frames have names and nothing was lost or damaged; 3 not so; 1 wrong use;\n"
      "2 the capture cannot be read; 4 the output could not be written.";
  return line;
}

// Rounds down, so that 99.99 is not shown as 100.
std::string percent(const CaptureFacts& facts) {
  const double share = 100 * facts.names.share();
  const bool is_all = facts.names.named_frames == facts.names.frames;
  return fmt::format("{:.1f}", is_all ? 100.0 : std::min(share, 99.9));
}

void write_names(TextOutput& out, const CaptureFacts& facts, Names names) {
  out.text(fmt::format("{} % of {} have a name from this file alone ({} of {}), in {}\n", percent(facts),
                       cli::counted(facts.names.frames, "frame"), facts.names.named_addresses,
                       cli::counted(facts.names.addresses, "distinct address"),
                       cli::counted(facts.samples, "sample")));
  const std::span<const LackingModule> lacking(facts.lacking);
  const std::size_t shown = std::min(lacking.size(), kMostShown);
  for (const LackingModule& module : lacking.first(shown)) {
    const std::string path = module.path.empty() ? "[unknown]" : printable(module.path, names);
    const std::string id = module.build_id.empty() ? "" : " (build id " + module.build_id + ")";
    out.text(fmt::format("  {}, {}: {}{}: {}\n", cli::counted(module.frames, "frame"),
                         cli::counted(module.addresses, "address"), path, id,
                         printable(module.reason, names)));
  }
  std::uint64_t rest = 0;
  for (const LackingModule& module : lacking.subspan(shown)) rest += module.frames;
  if (shown < lacking.size())
    out.text(fmt::format("  {} in {}\n", cli::counted(rest, "frame"),
                         cli::counted(lacking.size() - shown, "more module")));
  if (facts.unsure_frames > 0)
    out.text(fmt::format(
        "{} in files whose build id is not known: their names may be of another file than the one that ran\n",
        cli::counted(facts.unsure_frames, "frame")));
}

void write_rest(TextOutput& out, const CaptureFacts& facts) {
  out.text(fmt::format("lost: {}; throttled {}\n", cli::counted(facts.lost, "sample"),
                       cli::counted(facts.throttled, "time")));
  out.text(
      fmt::format("call chains: {} with the maximum number of frames, perhaps cut off\n", facts.cut_chains));
  if (facts.copied_stacks > 0)
    out.text(fmt::format(
        "copied stacks: {}, {} of them as large as copies get, and perhaps cut off; they are "
        "unwound with {}\n",
        facts.copied_stacks, facts.cut_copies,
        facts.file_copies == 0
            ? "the files of the host, which are not here; tacho pack --level elf puts copies into it"
            : "the copies of files that the capture has"));
  if (facts.file_copies > 0)
    out.text(fmt::format("copies of files: {} programs and libraries are in the capture, code and all\n",
                         facts.file_copies));
  if (facts.source_files > 0)
    out.text(
        fmt::format("source: {} of functions that were hit\n", cli::counted(facts.source_files, "file")));
  out.text("clock: " + facts.clock +
           (facts.has_wall_clock ? "; times of day are known\n" : "; times of day are not known\n"));
  out.text(fmt::format("containers: {}, {} of threads; {} deleted while mapped\n",
                       cli::counted(facts.cgroups, "cgroup"), cli::counted(facts.namespaces, "namespace"),
                       cli::counted(facts.deleted_modules, "file")));
  out.text(facts.sensitive.empty() ? "sensitive content: none\n" : "sensitive content:\n");
  for (const SensitiveClass& one : facts.sensitive)
    out.text(fmt::format("  {:<11} {} {}{}\n", one.name, one.count, one.what,
                         one.state.empty() ? "" : ": " + printable(one.state)));
}

void write_json(TextOutput& out, const CaptureFacts& facts) {
  JsonFields to(out);
  const std::pair<std::string_view, std::uint64_t> numbers[] = {
      {"samples", facts.samples},
      {"frames", facts.names.frames},
      {"named_frames", facts.names.named_frames},
      {"addresses", facts.names.addresses},
      {"named_addresses", facts.names.named_addresses},
      {"unsure_frames", facts.unsure_frames},
      {"lost", facts.lost},
      {"throttled", facts.throttled},
      {"cut_chains", facts.cut_chains},
      {"copied_stacks", facts.copied_stacks},
      {"cut_copies", facts.cut_copies},
      {"file_copies", facts.file_copies},
      {"source_files", facts.source_files},
      {"cgroups", facts.cgroups},
      {"namespaces", facts.namespaces},
      {"deleted_modules", facts.deleted_modules}};
  to.real("named_share", facts.names.share());
  for (const auto& [name, value] : numbers) to.number(name, value);
  to.text("clock", facts.clock);
  to.flag("has_wall_clock", facts.has_wall_clock);
  to.begin_list("lacking");
  for (const LackingModule& module : facts.lacking) {
    to.begin_object({});
    to.text("module", module.path);
    if (!module.build_id.empty()) to.text("build_id", module.build_id);
    to.text("reason", module.reason);
    to.number("frames", module.frames);
    to.number("addresses", module.addresses);
    to.end_object();
  }
  to.end_list();
  to.begin_list("sensitive");
  for (const SensitiveClass& one : facts.sensitive) {
    to.begin_object({});
    to.text("class", one.name);
    to.number("count", one.count);
    to.text("what", one.what);
    if (!one.state.empty()) to.text("state", one.state);
    to.end_object();
  }
  to.end_list();
  to.finish();
  out.character('\n');
}

}  // namespace

Result<cli::ExitStatus> run_doctor(const std::vector<std::string>& arguments) {
  Options options;
  options.reading.session.symbols.symfs = symbolize::kNoFiles;
  return run_view(describe(options), arguments, options.reading,
                  [&options](Session& session, TextOutput& out) -> Result<Shown> {
                    const CaptureFacts facts = examine(session);
                    Shown shown(Symbols::NotUsed);
                    const bool is_enough = 100 * facts.names.share() >= options.at_least && facts.lost == 0;
                    shown.status = is_enough ? cli::kWhole : cli::kIncomplete;
                    if (options.as_json) {
                      write_json(out, facts);
                    } else {
                      write_names(out, facts, options.reading.names);
                      write_rest(out, facts);
                    }
                    return shown;
                  });
}

}  // namespace tacho::report
