#include "report/views/convert/convert.h"

#include <unistd.h>

#include <algorithm>
#include <bitset>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <variant>

#include "format/container/capture_reader.h"
#include "format/container/capture_writer.h"
#include "format/container/feature_sections.h"
#include "format/container/pipe_writer.h"
#include "format/extensions/symbol_pack.h"
#include "format/records/byte_swap.h"
#include "format/records/perf_abi.h"
#include "format/records/record.h"
#include "report/query/gather.h"
#include "report/samples/ordered_records.h"
#include "report/samples/session.h"
#include "report/views/convert/convert_selection.h"
#include "report/views/convert/convert_unwinding.h"
#include "symbolize/files/attached_text.h"

namespace tacho::report {

namespace {

namespace abi = format::abi;

std::vector<std::string> names_of(const format::EventSet& events) {
  std::vector<std::string> names;
  for (const format::Event& event : events) names.push_back(event.name);
  return names;
}

// Copies of files, perf maps and jitdumps: those of modules that were hit; source files of functions that
// were.
void keep_needed_files(GatheredSymbols& gathered, std::vector<format::Attachment>& attachments) {
  const format::SymbolPack& pack = gathered.pack;
  std::unordered_set<std::string> hit;
  for (const format::PackedModule& module : pack.modules)
    hit.insert(symbolize::attached_file_name(pack.texts[module.path], module.build_id));
  const auto has_map_of = [&](std::string_view pid) {
    const std::string path = "/tmp/perf-" + std::string(pid) + ".map";
    return std::ranges::any_of(pack.modules,
                               [&](const auto& module) { return pack.texts[module.path] == path; });
  };
  constexpr std::string_view kMap = "perf-map/";
  std::erase_if(attachments, [&](const format::Attachment& attachment) {
    const std::string_view name = attachment.name;
    if (name.starts_with(symbolize::kAttachedFile)) return !hit.contains(attachment.name);
    if (name.starts_with(symbolize::kAttachedSource))
      return !gathered.sources.contains(std::string(name.substr(symbolize::kAttachedSource.size())));
    if (name.starts_with(kMap)) return !has_map_of(name.substr(kMap.size()));
    return name.starts_with(symbolize::kAttachedJitdump);
  });
  for (auto& [path, attached] : gathered.jitdumps)
    if (attached) attachments.push_back(std::move(attached->attachment));
}

}  // namespace

Result<> keep_needed_symbols(const CapturePart& part, const format::EventSet& events,
                             format::Features& features) {
  const auto before = format::parse_symbol_pack(features.symbol_pack);
  const auto has_stacks = [](const format::Event& event) {
    return event.attr.samples(abi::kSampleStackUser);
  };
  if (!before || std::ranges::any_of(events, has_stacks)) return Done{};
  SessionOptions reading;
  reading.input = part.input;
  reading.capture = part.capture;
  reading.symbols.symfs = symbolize::kNoFiles;
  reading.symbols.gate = part.gate;
  reading.filter.pids = part.pids;
  reading.filter.time_text = part.times;
  set_for_gathering(reading);
  auto session = Session::open(std::move(reading));
  if (!session) return std::move(session.error());
  session->filter().events = names_of(events);
  GatheredSymbols gathered = gather_symbols(*session, {.level = before->level, .only_packed = true});
  auto section = format::write_symbol_pack_section(gathered.pack);
  if (!section) return std::move(section.error());
  keep_needed_files(gathered, features.attachments);
  format::drop_section(features, abi::kFeatureAttachments);
  features.symbol_pack = std::move(*section);
  format::drop_section(features, abi::kFeatureSymbolPack);
  return Done{};
}

namespace {

namespace abi = format::abi;
using format::Bytes;
using format::CaptureReader;
using format::Damage;
using format::Features;
using format::RecordView;

constexpr std::size_t kPiece = std::size_t{512} << 10;  // bytes of records written at a time
constexpr std::uint64_t kName = 2;                      // EVENT_UPDATE's kind
// A pipe has its events' names somewhere before its first sample: up to so many bytes are held until then.
constexpr std::size_t kMostHeld = std::size_t{8} << 20;  // bytes

std::uint64_t first_word(const RecordView& record) { return record.body().u64(); }

// Records of a pipe that are its header. What they say is in the reader's events and features.
bool is_header(const RecordView& record) {
  switch (record.type) {
    case abi::kRecordHeaderAttr:
    case abi::kRecordHeaderFeature:
    case abi::kRecordTracingData:
    case abi::kRecordBuildId:
      return true;
    case abi::kRecordEventUpdate:
      return first_word(record) == format::kSectionPiece;
    default:
      return false;
  }
}

bool is_name(const RecordView& record) {
  return record.type == abi::kRecordEventUpdate && first_word(record) == kName;
}

bool is_live(const RecordView& record) {
  return record.type == abi::kRecordSample || record.type == abi::kRecordFinishedInit ||
         record.type == abi::kRecordFinishedRound || record.type == abi::kRecordAuxtrace;
}

// The section that a header record is about; nothing for an event's.
std::optional<std::uint32_t> section_of(const RecordView& record) {
  format::Cursor body = record.body();
  switch (record.type) {
    case abi::kRecordTracingData:
      return abi::kFeatureTracingData;
    case abi::kRecordBuildId:
      return abi::kFeatureBuildId;
    case abi::kRecordHeaderFeature:
      return static_cast<std::uint32_t>(body.u64());
    case abi::kRecordEventUpdate:
      body.skip(2 * sizeof(std::uint64_t));
      return body.u32();
    default:
      return std::nullopt;
  }
}

using Writer = std::variant<format::CaptureWriter, format::PipeWriter>;

class Conversion {
 public:
  Conversion(const ConvertOptions& options, const CaptureOutput& output, CaptureReader& reader,
             format::Diagnostics& diagnostics)
      : options_(options), output_(output), reader_(reader), diagnostics_(diagnostics) {}

  Result<> run();
  // After a failed write: says where, and leaves a file that ends with its last whole round.
  Error give_up(Error error);

 private:
  struct Held {
    RecordView record;
    std::vector<std::byte> bytes;
  };
  Result<> run_in_order();
  void take_late_head();
  Result<> take(const RecordView& record);
  Result<> start();
  Result<> keep_symbols(const format::EventSet& events, Features& features) const;
  Result<> create_writer(const format::EventSet& events, Features features);
  Result<> pass(const RecordView& record);
  Result<> pass_late_header(const RecordView& record);
  Result<> put(const RecordView& record);
  std::optional<RecordView> to_native(const RecordView& record);
  Result<> finish_round();
  bool is_at_round() const { return ends_with_round_ && pending_.empty(); }  // nothing came since its end
  Result<> flush();
  Result<> close();
  Features late_features() const;
  bool is_pipe_in() const { return reader_.layout().is_pipe; }
  std::string output_name() const { return options_.output == "-" ? "standard output" : options_.output; }
  bool is_part() const {
    return !options_.pids.empty() || !options_.times.empty() || !options_.events.empty();
  }
  bool is_pipe_out() const { return options_.form == CaptureForm::Pipe; }

  const ConvertOptions& options_;
  const CaptureOutput& output_;
  CaptureReader& reader_;
  format::Diagnostics& diagnostics_;
  std::optional<ConvertSelection> selection_;
  std::optional<Writer> writer_;
  std::vector<Held> held_;  // of a pipe, until its events are known
  std::size_t held_bytes_ = 0;
  std::optional<ConvertUnwinding> unwinding_;
  // Scratch: a record in our byte order, selected, with its call chain, and changed.
  format::ByteWriter turned_, selected_, unwound_, changed_;
  format::ByteWriter pending_;            // records to be written together
  format::ByteWriter rounds_;             // FINISHED_ROUND records of empty rounds, to be written before them
  bool ends_with_round_ = false;          // the output so far ends with a whole round
  std::bitset<abi::kFeatureCount> late_;  // feature sections that came after the start
  std::bitset<abi::kFeatureCount> early_;  // feature sections that came before the start
  std::size_t known_events_ = 0;           // at the start
  bool names_known_ = false;               // the capture says its events' names
  bool names_written_ = false;
  bool has_samples_ = false, keeps_samples_ = false;
  bool is_parted_ = false;  // the input is a directory of several files, whose rounds do not match
  struct AuxPlace {
    std::uint64_t offset, size;
  };
  std::vector<AuxPlace> aux_;  // AUXTRACE records of the file
};

Result<> Conversion::run() {
  if (options_.unwinds) return run_in_order();
  for (bool has_ended = !reader_.follows();;) {
    if (const auto record = reader_.next()) {
      if (auto taken = take(*record); !taken) return taken;
    } else if (has_ended) {
      break;
    } else {
      has_ended = !reader_.wait_for_more();
    }
  }
  if (!writer_)
    if (auto started = start(); !started) return started;
  return close();
}

// Call chains depend on what was mapped before. What is written is in order, so a round may end anywhere;
// records about rings and files of the recording are dropped.
Result<> Conversion::run_in_order() {
  const Filter all;
  OrderedRecords records(reader_, diagnostics_);
  records.use(all);
  OrderedRecord record;
  for (;;) {
    const auto step = records.next(record);
    if (step == OrderedRecords::Step::End) break;
    if (step == OrderedRecords::Step::Record) {
      if (auto taken = take(record.view); !taken) return taken;
    } else if (writer_ && !is_at_round()) {
      // Of a pipe as well when it is silent, once: what came is sound then.
      if (auto finished = finish_round(); !finished) return finished;
    }
  }
  if (!writer_)
    if (auto started = start(); !started) return started;
  unwinding_->report(diagnostics_);
  take_late_head();
  return close();
}

// Only kernel records are sorted; the header records of a pipe are kept by the reader.
void Conversion::take_late_head() {
  if (!is_pipe_in()) return;
  early_.reset(abi::kFeatureUserStacks).reset(abi::kFeatureAttachedPrograms);  // these are written again
  late_ |= reader_.features().present & ~early_;
  late_.reset(abi::kFeatureEventDesc);  // attrs are changed
  if (const std::size_t late = reader_.events().size() - known_events_; late != 0)
    diagnostics_.add(Damage::UnknownEvent, format::Diagnostics::kNoOffset,
                     "an event described after the first records is left out by --unwind", late);
}

Result<> Conversion::take(const RecordView& record) {
  if (writer_) return pass(record);
  if (is_pipe_in()) {
    names_known_ = names_known_ || is_name(record);
    if (is_header(record) || (is_name(record) && !is_pipe_out())) return Done{};
    if (!is_live(record) && held_bytes_ < kMostHeld) {
      held_.push_back({record, {record.bytes.begin(), record.bytes.end()}});
      held_.back().bytes.insert(held_.back().bytes.end(), record.payload.begin(), record.payload.end());
      held_bytes_ += held_.back().bytes.size();
      return Done{};
    }
  }
  if (auto started = start(); !started) return started;
  return pass(record);
}

// To be called when the head is known: selects events, opens the output and passes the held records.
Result<> Conversion::start() {
  if (reader_.events().empty()) return Error{options_.input + ": describes no event before its records"};
  if (options_.unwinds) {
    symbolize::SymbolOptions symbols;
    symbols.symfs = options_.symfs;
    symbols.gate = options_.gate;
    // In a recorded chain the address -1 is no frame but an unknown context: perf drops such chains.
    symbols.cut_mark = symbolize::CutMark::None;
    auto unwinding = ConvertUnwinding::create(symbols, reader_.events(), reader_.features());
    if (!unwinding) return std::move(unwinding.error());
    unwinding_.emplace(std::move(*unwinding));
    early_ = reader_.features().present;
    known_events_ = reader_.events().size();
    // Its names came with records that stay behind.
    names_known_ =
        std::ranges::any_of(reader_.events(), [](const auto& event) { return !event.name_is_made; });
  }
  auto selection =
      ConvertSelection::create(options_.events, options_.times, reader_.events(), reader_.features());
  if (!selection) return std::move(selection.error());
  selection_ = std::move(*selection);
  Features features = options_.unwinds ? reader_.features() : reader_.take_features();
  is_parted_ = features.environment.directory_format.value_or(0) != 0;
  names_known_ = names_known_ || !features.event_descriptions.empty();
  format::EventSet scratch;
  const format::EventSet& events = selection_->events(scratch);
  // Only EVENT_DESC has names in a file.
  if (is_pipe_in() && !is_pipe_out() && features.event_descriptions.empty() && names_known_)
    features.event_descriptions.assign(reader_.events().begin(), reader_.events().end());
  selection_->adjust(features);
  if (unwinding_) ConvertUnwinding::adjust(features);
  format::drop_section(features, abi::kFeatureAuxtrace);  // has offsets, so it is rebuilt at the end
  format::drop_section(features, abi::kFeatureDirFormat);
  features.environment.directory_format.reset();
  if (auto kept = keep_symbols(events, features); !kept) return std::move(kept.error()).in(options_.input);
  std::optional<format::EventSet> changed;  // a copy of its own, as events may have millions of ids
  if (unwinding_) changed = ConvertUnwinding::changed(events);
  if (options_.change != nullptr) {
    if (!changed) changed = events;
    if (auto done = options_.change->change_head(*changed, features); !done)
      return std::move(done.error()).in(options_.input);
  }
  if (auto created = create_writer(changed ? *changed : events, std::move(features)); !created)
    return created;
  for (const Held& held : std::exchange(held_, {})) {
    RecordView record = held.record;
    record.bytes = Bytes(held.bytes).first(held.record.bytes.size());
    record.payload = Bytes(held.bytes).subspan(held.record.bytes.size());
    if (auto passed = pass(record); !passed) return passed;
  }
  return Done{};
}

// A pipe cannot be read twice. A file on standard input can, but reopening it gives the same file position.
Result<> Conversion::keep_symbols(const format::EventSet& events, Features& features) const {
  if (!is_part() || is_pipe_in() || features.symbol_pack.empty()) return Done{};
  const bool is_stdin = options_.input == "-";
  const off_t position = is_stdin ? ::lseek(STDIN_FILENO, 0, SEEK_CUR) : 0;
  if (is_stdin && (position < 0 || ::lseek(STDIN_FILENO, 0, SEEK_SET) != 0))
    return system_error("seek", errno);
  auto kept = keep_needed_symbols({.input = options_.input,
                                   .capture = options_.capture,
                                   .gate = options_.gate,
                                   .pids = options_.pids,
                                   .times = options_.times},
                                  events, features);
  if (is_stdin && ::lseek(STDIN_FILENO, position, SEEK_SET) != position) return system_error("seek", errno);
  return kept;
}

Result<> Conversion::create_writer(const format::EventSet& events, Features features) {
  format::WriteOptions options;
  options.as_given = true;
  const auto& compression = features.environment.compression;
  options.compression_level.reset();
  if (options_.packing == Packing::AsItIs && compression)
    options.compression_level = std::clamp<int>(static_cast<int>(compression->level), 1, 22);
  if (options_.packing == Packing::Compressed) options.compression_level = options_.level;
  auto file = output_.begin();
  if (!file) return std::move(file.error());
  if (!is_pipe_out()) {
    auto writer = format::CaptureWriter::create(std::move(*file), events, std::move(features), options);
    if (!writer) return std::move(writer.error()).in(output_name());
    writer_.emplace(std::move(*writer));
    return Done{};
  }
  // A pipe's own names come with its records.
  names_written_ = (!is_pipe_in() || unwinding_) && names_known_;
  const auto names = names_written_ ? format::PipeNames::Write : format::PipeNames::LeaveOut;
  auto writer =
      *file ? format::PipeWriter::create(std::move(*file), events, std::move(features), options, names)
            : format::PipeWriter::create(output_.write, events, std::move(features), options, names);
  if (!writer) return std::move(writer.error()).in(output_name());
  writer_.emplace(std::move(*writer));
  return Done{};
}

Result<> Conversion::pass(const RecordView& record) {
  // Stacks are unwound by the file that has the id.
  if (unwinding_ && record.type == abi::kRecordBuildId)
    unwinding_->note(record, format::EventAttr(), diagnostics_);
  if (is_pipe_in() && is_header(record)) return pass_late_header(record);
  if (is_name(record)) {
    if (names_written_) return Done{};
    if (is_pipe_in() && !is_pipe_out()) {
      late_.set(abi::kFeatureEventDesc);
      return Done{};
    }
  }
  if (record.type == abi::kRecordFinishedRound) {
    // Records of the other files of a directory come later and belong before.
    if (is_parted_) return Done{};
    return finish_round();
  }
  const auto native = to_native(record);
  if (!native) return Done{};
  auto selected = selection_->apply(*native, selected_, diagnostics_);
  if (const auto event = unwinding_ ? reader_.events().event_of(*native) : std::nullopt) {
    const auto& attr = reader_.events()[*event].attr;
    unwinding_->note(*native, attr, diagnostics_);
    if (selected) selected = unwinding_->apply(*selected, attr, unwound_, diagnostics_);
  }
  if (selected && options_.change != nullptr) selected = options_.change->change(*selected, changed_);
  if (native->type == abi::kRecordSample) {
    has_samples_ = true;
    keeps_samples_ = keeps_samples_ || selected.has_value();
  }
  return selected ? put(*selected) : Done{};
}

// Each round that ends makes the output sound as a whole, which takes several writes; one without records has
// nothing to make sound.
Result<> Conversion::finish_round() {
  if (is_at_round()) {
    format::write_mark(rounds_, abi::kRecordFinishedRound);
    return rounds_.size() < kPiece ? Done{} : flush();
  }
  if (auto flushed = flush(); !flushed) return flushed;
  ends_with_round_ = true;
  return std::visit([](auto& writer) { return writer.finish_round(); }, *writer_);
}

// A pipe may have header records after its first samples.
Result<> Conversion::pass_late_header(const RecordView& record) {
  const auto section = section_of(record);
  if (!section) {
    if (!is_pipe_out()) {
      diagnostics_.add(Damage::UnknownEvent, record.offset,
                       "an event described after the first records has no place in a file");
      return Done{};
    }
    const auto native = to_native(record);
    return native ? put(*native) : Done{};
  }
  if (*section >= abi::kFeatureCount || !is_pipe_out()) {
    if (*section < abi::kFeatureCount) late_.set(*section);
    return Done{};
  }
  // Sections are given on as records; those in pieces are in our byte order only when they are whole.
  const auto native = to_native(record);
  if (native) return put(*native);
  late_.set(*section);
  return Done{};
}

// The record in this machine's byte order.
std::optional<RecordView> Conversion::to_native(const RecordView& record) {
  if (record.order == std::endian::native) return record;
  const auto event = reader_.events().event_of(record);
  if (!event) {
    diagnostics_.add(Damage::UnknownEvent, record.offset, std::string(format::record_name(record.type)));
    return std::nullopt;
  }
  turned_.clear();
  if (!format::swap_record(record, reader_.events()[*event].attr, turned_)) {
    diagnostics_.add(Damage::BadRecord, record.offset,
                     "a record of type " + std::to_string(record.type) +
                         " cannot be put into this machine's byte order and is left out");
    return std::nullopt;
  }
  RecordView native = record;
  native.bytes = turned_.view();
  native.order = std::endian::native;
  return native;
}

Result<> Conversion::put(const RecordView& record) {
  if (record.type < abi::kRecordUserStart) {
    pending_.bytes(record.bytes);
    return pending_.size() < kPiece ? Done{} : flush();
  }
  if (auto flushed = flush(); !flushed) return flushed;
  if (auto* file = std::get_if<format::CaptureWriter>(&*writer_);
      file != nullptr && record.type == abi::kRecordAuxtrace)
    aux_.push_back({file->next_offset(), record.bytes.size()});
  ends_with_round_ = false;
  pending_.bytes(record.bytes).bytes(record.payload);
  const auto write = [&](format::Bytes bytes) {
    return std::visit([&](auto& writer) { return writer.write_plain(bytes); }, *writer_);
  };
  auto written = write(pending_.view());
  pending_.clear();
  for (std::uint64_t left = record.payload_size - record.payload.size(); written && left > 0;) {
    const format::Bytes piece = reader_.next_payload();
    left -= piece.size();
    if (!piece.empty())
      written = write(piece);
    else if (!reader_.follows() || !reader_.wait_for_more())
      break;
  }
  return written;
}

Result<> Conversion::flush() {
  if (!rounds_.empty()) {
    auto written = std::visit([&](auto& writer) { return writer.write_plain(rounds_.view()); }, *writer_);
    rounds_.clear();
    if (!written) return written;
  }
  if (pending_.empty()) return Done{};
  ends_with_round_ = false;
  auto written = std::visit([&](auto& writer) { return writer.write_records(pending_.view()); }, *writer_);
  pending_.clear();
  return written;
}

Features Conversion::late_features() const {
  Features late;
  for (std::uint32_t feature = 0; feature < abi::kFeatureCount; ++feature) {
    format::ByteWriter section;
    if (late_[feature] && format::write_feature(feature, reader_.features(), section))
      format::keep_section(late, feature, section.view());
  }
  // The names that came late; a description that was there from the start knows them already.
  if (late_[abi::kFeatureEventDesc] && reader_.features().event_descriptions.empty()) {
    format::EventSet scratch;
    const format::EventSet& events = selection_->events(scratch);
    late.event_descriptions.assign(events.begin(), events.end());
    if (unwinding_) ConvertUnwinding::adjust(late);
  }
  if (!aux_.empty()) {
    format::ByteWriter index;
    index.u64(aux_.size());
    for (const AuxPlace& place : aux_) index.u64(place.offset).u64(place.size);
    format::keep_section(late, abi::kFeatureAuxtrace, index.view());
  }
  return late;
}

Result<> Conversion::close() {
  if (is_part() && has_samples_ && !keeps_samples_)
    diagnostics_.add_line(Damage::Note,
                          "no sample is in the part that was asked for: " + output_name() + " holds none");
  if (auto flushed = flush(); !flushed) return flushed;
  const Features late = late_features();
  if (auto* file = std::get_if<format::CaptureWriter>(&*writer_)) {
    if (auto closed = file->close(late); !closed) return closed;
  }
  if (auto* pipe = std::get_if<format::PipeWriter>(&*writer_))
    for (const format::RawSection& section : late.raw)
      if (auto written = pipe->write_section(section.feature, section.bytes); !written) return written;
  return output_.finish();
}

Error Conversion::give_up(Error error) {
  if (!writer_) return error;
  if (options_.is_whole_or_nothing) return std::move(error).in(output_name());
  if (auto* file = std::get_if<format::CaptureWriter>(&*writer_)) {
    const auto closed = file->close_after_failure();
    diagnostics_.add_line(
        Damage::Note, options_.output + ": " +
                          (closed ? "ends with the last round that could be written" : closed.error().what));
  }
  return std::move(error).in(output_name());
}

}  // namespace

Result<> convert(const ConvertOptions& options, const CaptureOutput& output,
                 format::Diagnostics& diagnostics) {
  format::ReadOptions reading = options.capture;
  reading.keep_all = options.change == nullptr;
  auto reader = CaptureReader::open(options.input, diagnostics, reading);
  if (!reader) return std::move(reader.error());
  std::error_code ignored;
  if (options.input != "-" && std::filesystem::exists(options.input + "/kcore_dir", ignored))
    diagnostics.add_line(Damage::Note, "the kernel's image in kcore_dir stays behind");
  Conversion conversion(options, output, *reader, diagnostics);
  auto done = conversion.run();
  if (done || done.error().fault != Fault::Output) return done;
  if (options.output == "-" && done.error().code == EPIPE) return output.finish();
  return conversion.give_up(std::move(done.error()));
}

}  // namespace tacho::report
