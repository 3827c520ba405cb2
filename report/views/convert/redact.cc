#include "report/views/convert/redact.h"

#include <optional>
#include <utility>

#include "cli/shell_word.h"
#include "format/container/capture_reader.h"
#include "report/census.h"
#include "report/output/whole_capture.h"
#include "report/views/convert/capture_change.h"
#include "report/views/convert/redact_head.h"
#include "report/views/convert/redact_processes.h"
#include "report/views/convert/redact_records.h"

namespace tacho::report {
namespace {

using format::CaptureReader;

// What is known of a capture before it is written again.
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

// Nothing where it failed, which is said.
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
