#include "report/views/redact/redact.h"

#include <optional>
#include <utility>

#include "cli/message_text.h"
#include "report/census.h"
#include "report/samples/session.h"
#include "report/views/redact/head_redaction.h"
#include "report/views/redact/kept_processes.h"
#include "report/views/redact/record_redaction.h"
#include "report/views/redact/unwound_chains.h"

namespace tacho::report {
namespace {

using format::CaptureReader;
using format::Features;
using format::RecordView;

// The first reading of the capture, before the copy is written.
struct Scan {
  Census census;
  KeptProcesses processes;
};

class Redacting : public CaptureChange {
 public:
  Redacting(const RedactOptions& options, const Aliases& aliases, const Scan& scan,
            const UnwoundChains* chains, std::vector<format::ContentClass> content)
      : options_(options), aliases_(aliases), scan_(scan), chains_(chains), content_(std::move(content)) {}

  Result<> change_head(format::EventSet& events, Features& features) override {
    events_ = events;
    descriptions_.tracing = features.tracing;
    descriptions_.schemas = features.schemas;
    const Census& census = scan_.census;
    const std::uint64_t shift = options_.redaction.hides(Content::Time) ? census.time_shift() : 0;
    records_.emplace(events_, descriptions_, options_.redaction, aliases_, census.kernel(), shift, chains_);
    if (auto reduced = scan_.processes.reduce(features); !reduced) return reduced;
    features.environment.content = content_;
    return redact_head(events, features, options_.redaction, aliases_, census.kernel(), shift);
  }

  std::optional<RecordView> change(const RecordView& record, format::ByteWriter& scratch) override {
    if (!scan_.processes.keeps(record, events_)) return std::nullopt;
    return records_->change(record, scratch);
  }

  std::uint64_t not_understood() const { return records_ ? records_->not_understood() : 0; }

 private:
  const RedactOptions& options_;
  const Aliases& aliases_;
  const Scan& scan_;
  const UnwoundChains* chains_;
  std::vector<format::ContentClass> content_;
  format::EventSet events_;  // of the copy, before they are changed
  Features descriptions_;    // of payloads, as they were recorded
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
  Scan scan{{}, KeptProcesses(options.pids)};
  scan.census.see_head(reader->events(), reader->features());
  while (const auto record = reader->next_record()) {
    scan.census.see(*record, reader->events());
    scan.processes.see(*record, reader->events());
  }
  scan.processes.finish();
  if (options.in_place)
    if (auto whole = check_whole(*reader, diagnostics, options.copy.input, "replaced"); !whole)
      return std::move(whole.error());
  return scan;
}

SessionOptions session_options(const RedactOptions& options) {
  SessionOptions reading;
  reading.input = options.copy.input;
  reading.capture = options.copy.capture;
  reading.symbols.access = options.copy.access;
  reading.symbols.name_access = options.name_access;
  reading.in_step = options.in_step;
  return reading;
}

Result<Aliases> make_aliases(const RedactOptions& options) {
  return options.key.empty() ? Aliases::create() : Result<Aliases>(Aliases::of_key(options.key));
}

std::string alias_of(Content content, How how, const std::string& example, const RedactOptions& options,
                     const Aliases& aliases) {
  if (example.empty() || how == How::Drop || content == Content::Containers) return {};
  if (content == Content::Paths) return hidden_path(example, options.redaction.path_rule(), aliases);
  return how == How::Hash ? aliases.alias_of(example) : example;
}

Redacted class_counts(const RedactOptions& options, const Census& census, const Aliases& aliases) {
  Redacted redacted;
  const auto counts = census.counts();
  for (const format::ContentRow& row : format::kContents) {
    const Census::Count& count = counts[static_cast<std::size_t>(row.content)];
    const How how = options.redaction.how_of(row.content);
    redacted.classes.push_back({row.content, how, count.number, count.unit, count.example,
                                alias_of(row.content, how, count.example, options, aliases)});
  }
  return redacted;
}

}  // namespace

Result<Redacted> examine_for_redaction(const RedactOptions& options, format::Diagnostics& diagnostics) {
  auto aliases = make_aliases(options);
  if (!aliases) return std::move(aliases.error());
  const auto scan = scan_capture(options, diagnostics);
  if (!scan) return scan.error();
  return class_counts(options, scan->census, *aliases);
}

Result<Redacted> redact(const RedactOptions& options, const CopyOutput& output,
                        format::Diagnostics& diagnostics) {
  auto aliases = make_aliases(options);
  if (!aliases) return std::move(aliases.error());
  format::Diagnostics seen_again;  // of damage that the copy reports
  ConvertOptions copying = options.copy;
  const auto scan = scan_capture(options, seen_again);
  if (!scan) return scan.error();
  Redacted redacted = class_counts(options, scan->census, *aliases);
  std::vector<format::ContentClass> content;
  for (const RedactedClass& one : redacted.classes)
    if (one.number > 0)
      content.push_back({std::string(name_of(one.content)), std::string(state_of(one.how))});
  std::optional<UnwoundChains> chains;
  if (options.redaction.hides(Content::Stacks) && scan->census.has_stacks()) {
    auto read = UnwoundChains::read(session_options(options));
    if (read)
      chains = std::move(*read);
    else
      diagnostics.add_line(
          format::Damage::Note,
          "the calls in copied stacks go with these, they could not be unwound: " + read.error().what);
  }
  Redacting change(options, *aliases, *scan, chains ? &*chains : nullptr, std::move(content));
  copying.change = &change;
  copying.is_whole_or_nothing = true;
  copying.pids = options.pids;
  if (auto done = convert(copying, output, diagnostics); !done) return std::move(done.error());
  redacted.not_understood = change.not_understood();
  return redacted;
}

}  // namespace tacho::report
