#include "format/container/capture_reader.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <utility>

#include "format/base/file.h"
#include "format/base/large_pages.h"
#include "format/container/event_name.h"
#include "format/container/feature_sections.h"
#include "format/container/file_head.h"
#include "format/container/header_check.h"
#include "format/container/record_stream.h"
#include "format/container/simpleperf_start.h"
#include "format/records/byte_swap.h"
#include "format/records/record.h"

namespace tacho::format {

namespace {

constexpr std::size_t kPackingSize = 262;  // bytes that parse_file_head() needs to recognize a tar archive
constexpr std::uint64_t kUpdateName = 2;   // kind of an EVENT_UPDATE record that names its event
constexpr int kPatience = 100;             // ms: how long wait_for_more() waits

}  // namespace

struct CaptureReader::State {
  explicit State(Diagnostics& out, ReadOptions with) : diagnostics(&out), options(with) {}

  Fd file;
  Diagnostics* diagnostics;
  ReadOptions options;
  CaptureLayout layout;
  EventSet events;
  Features features;
  EventNames names;
  // The header of a file, moved here once it was read: later records cannot change it.
  std::shared_ptr<CaptureHeader> fixed;

  // For a file that is followed: its growth, and the end of the data that the stream may read.
  std::optional<GrowingFile> growing;
  std::uint64_t known_end = 0;  // offset in the file
  std::uint32_t following_records = 0;
  bool was_stopped = false;  // Following::waits() ended the reading before the end of the data

  std::uint64_t missing = 0;  // bytes that were cut out of the data
  std::optional<RecordStream> stream;
  // COMPRESSED and COMPRESSED2 records of the files before the stream's.
  std::map<abi::RecordType, std::uint64_t> compressed_before;
  // A capture in a directory: the folder, and the number of the next of its files data.0, data.1, ... (bare
  // records).
  std::string directory;
  bool has_parts = false;  // it has such files
  unsigned next_part = 0;
  SectionPieces pieces;
  SeenFeatures seen;  // in a pipe

  Result<> open(const std::string& path);
  bool open_next_part();
  void stream_from(std::uint64_t offset, std::uint64_t size) {
    const bool grows = options.following != nullptr;
    stream.emplace(RecordStream::Source{file.get(), offset, size, layout.order, grows}, options.inflate,
                   known_events(), *diagnostics);
  }
  Result<std::vector<std::byte>> read_start();
  Result<> open_layout(const FileHead& head);
  Result<> read_attrs(const FileHead& head);
  void read_features(const FileHead& head);
  void read_event_types(const FileSection& place);
  void read_section(const FeatureSection& section);
  void take_section(std::uint32_t feature, Bytes bytes, std::uint64_t offset);
  void keep(std::uint32_t feature, Bytes bytes, const FieldLog& log, std::uint64_t offset);
  void name_events() {
    EventNames::apply(events, features.event_descriptions);
    for (std::size_t event = 0; event < events.size(); ++event) names.name_event(events, event);
  }
  const EventSet& known_events() const { return fixed ? fixed->events : events; }
  const Features& known_features() const { return fixed ? fixed->features : features; }

  void apply(const RecordView& record);
  void apply_feature(const HeaderFeatureRecord& header, std::uint64_t offset);
  void apply_update(const EventUpdateRecord& update, std::uint64_t offset);
  bool end_following(Following::End why);
  bool is_stopped();  // called before each record
  bool wait_for_file();
  void end_of_pieces();
  void refuse(const RecordView& record);
  void check_length(const RecordView& record);
  bool keeps(const RecordView& record);
};

Result<> CaptureReader::State::open(const std::string& name) {
  std::string path = name;
  std::error_code ignored;
  if (name != "-" && std::filesystem::is_directory(name, ignored)) {
    if (options.following != nullptr)
      return use_error("--follow: " + name + " is a folder, and only captures in one file are followed");
    directory = name;
    path = name + "/data";
    if (!std::filesystem::exists(path, ignored))
      return Error{name +
                   ": is a directory without a capture in it (no file 'data'); name the capture's file"};
  }
  if (path == "-") {
    file = Fd(::dup(STDIN_FILENO));
    if (!file) return system_error("standard input", errno);
  } else {
    auto opened = open_input(path, Streams::Allow);
    if (!opened) return std::move(opened.error());
    file = std::move(*opened);
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return system_error(path, errno);
  layout.modified = status.st_mtime;
  const bool is_regular = S_ISREG(status.st_mode);
  if (is_regular) layout.file_size = static_cast<std::uint64_t>(status.st_size);
  auto start = read_start();
  if (!start) return std::move(start.error()).in(path);
  if (start->empty() && S_ISFIFO(status.st_mode) && path != "-")
    return Error{"is a FIFO that no process writes to; start its writer first"}.in(path);
  auto head = parse_file_head(*start);
  if (!head) return std::move(head.error()).in(path);
  layout.order = head->order;
  layout.is_pipe = head->is_pipe;
  if (head->is_pipe) {
    layout.data_offset = FileHead::kPipeSize;
    if (is_regular && options.following != nullptr)
      return use_error("--follow: " + path +
                       " has the form of a pipe and does not say where it ends; pipe the recorder into this");
    if (is_regular && ::lseek(file.get(), FileHead::kPipeSize, SEEK_SET) < 0)
      return system_error(path, errno);
    stream_from(FileHead::kPipeSize, RecordStream::kUntilTheEnd);
    return Done{};
  }
  if (!is_regular)
    return Error{path + ": has the layout of a file and cannot be read from a pipe; name the file"};
  if (auto opened = open_layout(*head); !opened) return std::move(opened.error()).in(path);
  return Done{};
}

// The first bytes: of a pipe its header of 16 bytes, of other input as many as parse_file_head() needs to
// recognize its format.
Result<std::vector<std::byte>> CaptureReader::State::read_start() {
  std::vector<std::byte> start;
  std::size_t wanted = FileHead::kPipeSize;
  while (start.size() < wanted) {
    const std::size_t had = start.size();
    start.resize(wanted);
    const ssize_t count = ::read(file.get(), start.data() + had, wanted - had);
    start.resize(had + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error("read", errno);
    if (count == 0) break;
    if (start.size() != FileHead::kPipeSize || wanted != FileHead::kPipeSize) continue;
    const auto head = parse_file_head(start);
    if (!head || !head->is_pipe)
      wanted = is_capture_magic(Cursor(start).u64()) ? FileHead::kSize : kPackingSize;
  }
  return start;
}

// Opens the next data.N: perf record --threads writes one for each thread, without a header. False: none.
bool CaptureReader::State::open_next_part() {
  if (!has_parts) return false;
  auto part = open_input(directory + "/data." + std::to_string(next_part));
  if (!part) return false;
  ++next_part;
  for (const auto type : {abi::kRecordCompressed, abi::kRecordCompressed2})
    compressed_before[type] += stream->compressed_records(type);
  file = std::move(*part);
  stream_from(0, RecordStream::kUntilTheEnd);
  return true;
}

// A file: events, header sections, then the stream is set to the start of the data.
Result<> CaptureReader::State::open_layout(const FileHead& head) {
  layout.data_offset = head.data.offset;
  layout.data_size = head.data.size;
  layout.features_offset = head.data.offset + head.data.size;
  if (auto read = read_attrs(head); !read) return read;
  if (head.data.offset < FileHead::kSize - 32 || head.data.offset > layout.file_size)
    return Error{"is cut short: its data should start at byte " + std::to_string(head.data.offset) +
                 ", the file has " + std::to_string(layout.file_size) + "; copy or record it again"};
  read_features(head);
  read_simpleperf_start(file.get(), {layout.data_offset, layout.data_size}, layout.order, features,
                        *diagnostics);
  names.add_tracepoints(features.tracing, events);
  read_event_types(head.event_types);
  name_events();
  check_descriptions(events, features, head.attr_size - FileHead::kIdsEntrySize, *diagnostics);
  std::uint64_t size = layout.data_size - missing;
  if (options.following != nullptr) {
    growing.emplace(file.get(), head.data.offset);
    known_end = growing->data_end();
    size = known_end - head.data.offset;
  }
  if (!layout.is_closed && size == 0 && !growing) size = layout.file_size - head.data.offset;
  const bool is_torn = size > layout.file_size - head.data.offset && !growing;
  if (is_torn) {
    diagnostics->add_finding(Damage::CutShort, layout.file_size,
                             "the header promises data up to byte " +
                                 std::to_string(head.data.offset + size) +
                                 ", the file ends before; everything up to there is read");
    size = layout.file_size - head.data.offset;
  }
  if (::lseek(file.get(), static_cast<off_t>(head.data.offset), SEEK_SET) < 0)
    return system_error("seek", errno);
  has_parts = !directory.empty() && features.environment.directory_format.value_or(0) != 0;
  fixed = std::make_shared<CaptureHeader>(
      CaptureHeader{.layout = layout, .events = std::move(events), .features = std::move(features)});
  stream_from(head.data.offset, size);
  if (is_torn) stream->end_is_torn();
  return Done{};
}

Result<> CaptureReader::State::read_attrs(const FileHead& head) {
  constexpr std::uint64_t kLeast = FileHead::kIdsEntrySize + 64, kMost = 65536;
  if (head.attr_size < kLeast || head.attr_size > kMost)
    return Error{"has event attributes of " + std::to_string(head.attr_size) + " bytes, " +
                 std::to_string(kLeast) + " to " + std::to_string(kMost) +
                 " were expected; copy or record it again"};
  if (head.attrs.offset > layout.file_size || head.attrs.size > layout.file_size - head.attrs.offset)
    return Error{"is cut short: its event attributes should be at bytes " +
                 std::to_string(head.attrs.offset) + " to " +
                 std::to_string(head.attrs.offset + head.attrs.size) + ", the file has " +
                 std::to_string(layout.file_size) + "; copy or record it again"};
  auto table = read_at(file.get(), head.attrs.offset, static_cast<std::size_t>(head.attrs.size));
  if (!table) return std::move(table.error());
  Cursor in(*table, head.order);
  // Lists of ids do not overlap: those of all events together cannot be larger than the file.
  std::uint64_t ids_left = layout.file_size;
  while (in.left() >= head.attr_size) {
    Cursor entry(in.take_bytes(head.attr_size), head.order);
    const Cursor attr_bytes(entry.take_bytes(head.attr_size - FileHead::kIdsEntrySize), head.order);
    const FileSection ids{entry.u64(), entry.u64()};
    auto attr = parse_event_attr(attr_bytes);
    if (!attr) return std::move(attr.error()).in("event " + std::to_string(events.size()));
    check_known(*attr, events.size(), *diagnostics);
    check_ids(ids, head.attrs, *diagnostics);
    Event event{std::move(*attr), {}, {}};
    if (ids.size > ids_left && ids.size <= layout.file_size) {
      diagnostics->add_finding(Damage::BadFeature, ids.offset,
                               "the ids of an event overlap those of another event; they are ignored");
    } else if (ids.offset <= layout.file_size && ids.size <= layout.file_size - ids.offset) {
      ids_left -= ids.size;
      auto bytes = read_at(file.get(), ids.offset, static_cast<std::size_t>(ids.size));
      if (!bytes) return std::move(bytes.error());
      const U64Array words(*bytes, head.order);
      event.ids.reserve(words.size());
      for (std::size_t i = 0; i < words.size(); ++i) event.ids.push_back(words[i]);
    } else {
      diagnostics->add_finding(Damage::BadFeature, ids.offset, "the ids of an event are outside the file");
    }
    events.add_event(std::move(event));
  }
  if (in.left() > 0)
    diagnostics->add_finding(
        Damage::BadFeature, head.attrs.offset,
        "the table of events ends with " + std::to_string(in.left()) + " bytes that are not an event");
  if (events.empty()) return Error{"describes no event"};
  return Done{};
}

void CaptureReader::State::read_features(const FileHead& head) {
  const FeatureTable table = find_feature_sections(file.get(), head, layout.file_size, *diagnostics);
  layout.is_closed = table.is_closed;
  if (!layout.is_closed && options.following == nullptr)
    diagnostics->add_finding(
        Damage::NotClosed, Diagnostics::kNoOffset,
        "it was killed or still runs; everything it wrote up to its last whole round is read");
  missing = table.missing;
  // Sections do not overlap, so that all together they are no larger than the file.
  std::uint64_t left = layout.file_size;
  for (const FeatureSection& section : table.sections) {
    if (section.place.size > left) {
      diagnostics->add_finding(
          Damage::BadFeature, section.place.offset,
          "section " + std::to_string(section.feature) + " overlaps another section and is ignored");
      continue;
    }
    left -= section.place.size;
    read_section(section);
  }
}

// The names of tracepoints in files of perf up to Linux 3.9.
void CaptureReader::State::read_event_types(const FileSection& place) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 20;  // bytes
  if (place.size == 0 || place.offset > layout.file_size || place.size > layout.file_size - place.offset)
    return;
  const auto bytes =
      read_at(file.get(), place.offset, static_cast<std::size_t>(std::min<std::uint64_t>(place.size, kMost)));
  if (!bytes) return;
  for (Cursor in(*bytes, layout.order); in.left() >= EventNames::kTypeSize;)
    names.add_event_type(in.over(in.take_bytes(EventNames::kTypeSize)), events);
}

void CaptureReader::State::read_section(const FeatureSection& section) {
  auto bytes = read_at(file.get(), section.place.offset,
                       static_cast<std::size_t>(std::min(section.place.size, layout.file_size)));
  if (!bytes) return diagnostics->add_finding(Damage::BadFeature, section.place.offset, bytes.error().what);
  take_section(section.feature, *bytes, section.place.offset);
}

// Reads one feature section of a file or a pipe; `offset` is its position.
void CaptureReader::State::take_section(std::uint32_t feature, Bytes bytes, std::uint64_t offset) {
  // A flag has no body. Any other section without a body was reserved by the recorder and never written.
  if (bytes.empty() && !is_flag(feature)) return;
  if (layout.is_pipe && seen.is_duplicate(feature, bytes, offset, *diagnostics)) return;
  FieldLog log;
  const bool is_turned = options.keep_all && layout.order != std::endian::native;
  const Cursor section(bytes, layout.order, is_turned ? &log : nullptr);
  if (auto read = format::read_feature(feature, section, features); !read)
    return diagnostics->add_finding(Damage::BadFeature, offset, read.error().what);
  const bool adds_up = layout.is_pipe && feature == abi::kFeatureBuildId;  // to BUILD_ID records
  if (options.keep_all && !adds_up) keep(feature, bytes, log, offset);
  if (!layout.is_pipe) return;  // open_layout() names the events after the last section
  seen.add_section(feature, bytes);
  if (feature == abi::kFeatureTracingData) names.add_tracepoints(features.tracing, events);
  if (feature == abi::kFeatureEventDesc) EventNames::apply(events, features.event_descriptions);
}

void CaptureReader::State::keep(std::uint32_t feature, Bytes bytes, const FieldLog& log,
                                std::uint64_t offset) {
  keep_section(features, feature, bytes);
  if (layout.order == std::endian::native || bytes.empty()) return;
  // Tracing data has its own byte order mark, which holds for the payloads as well.
  if (feature == abi::kFeatureTracingData) return;
  if (log.fields().empty()) {
    drop_section(features, feature);
    return diagnostics->add_finding(
        Damage::BadFeature, offset,
        "section " + std::to_string(feature) +
            " is unknown to this program, which cannot convert its byte order: ignored");
  }
  swap_fields(features.raw.back().bytes, bytes, log, layout.order);
}

// Reads a record of a pipe that carries a part of the header.
void CaptureReader::State::apply(const RecordView& record) {
  static const EventAttr kNone;  // records from 64 up do not depend on an event
  auto parsed = parse_record(record, kNone);
  if (!parsed) return diagnostics->add_finding(Damage::BadRecord, record.offset, parsed.error().what);
  if (auto* header = std::get_if<HeaderAttrRecord>(&*parsed)) {
    check_known(header->attr, events.size(), *diagnostics);
    names.name_event(events, events.add_event({header->attr, "", header->ids}));
    EventNames::apply(events, features.event_descriptions);  // EVENT_DESC may come before the attrs
  } else if (auto* update = std::get_if<EventUpdateRecord>(&*parsed)) {
    apply_update(*update, record.offset);
  } else if (auto* build_id = std::get_if<BuildIdRecord>(&*parsed)) {
    features.environment.build_ids.push_back(
        {build_id->pid, build_id->misc, build_id->build_id, std::string(build_id->filename)});
  } else if (auto* feature = std::get_if<HeaderFeatureRecord>(&*parsed)) {
    apply_feature(*feature, record.offset);
  } else if (record.type == abi::kRecordTracingData) {
    take_section(abi::kFeatureTracingData, record.payload, record.offset);
  } else if (record.type == abi::kRecordEventType) {
    names.add_event_type(record.body(), events);
  }
}

void CaptureReader::State::apply_update(const EventUpdateRecord& update, std::uint64_t offset) {
  if (update.kind == kUpdateName) {
    const auto event = events.find_id(update.id);
    if (std::string name(text_of(update.data)); event && !name.empty()) events.set_name(*event, name);
  } else if (update.kind == kSectionPiece) {
    auto section = pieces.add_piece(update, layout.order);
    if (!section) return diagnostics->add_finding(Damage::BadFeature, offset, section.error().what);
    if (*section) take_section((*section)->feature, (*section)->bytes, offset);
  }
}

void CaptureReader::State::end_of_pieces() {
  if (!pieces.is_open()) return;
  pieces = {};
  diagnostics->add_finding(Damage::BadFeature, Diagnostics::kNoOffset,
                           "the last pieces of a section are missing");
}

void CaptureReader::State::apply_feature(const HeaderFeatureRecord& header, std::uint64_t offset) {
  // An empty section is a flag, or perf's end of the features: its number is the first one that the writer
  // does not know.
  if (header.section.empty() && !is_flag(header.feature)) return;
  if (header.feature >= abi::kFeatureCount) return;
  const auto feature = static_cast<std::uint32_t>(header.feature);
  take_section(feature, header.section, offset);
  if (feature != abi::kFeatureEventDesc) return;
  // Compare only if the events came before this section, as perf writes them.
  if (events.size() == features.event_descriptions.size())
    check_descriptions(events, features, 0, *diagnostics);
}

// Whether a record of a file would change the header. It is ignored, since other threads read the header
// meanwhile, and recorders write such records into pipes only. Build ids are kept: perf inject writes them
// between a file's records, and AddressSpaces applies them.
void CaptureReader::State::refuse(const RecordView& record) {
  bool changes_header = record.type == abi::kRecordHeaderAttr || record.type == abi::kRecordTracingData ||
                        record.type == abi::kRecordHeaderFeature;
  if (record.type == abi::kRecordEventUpdate) {
    const std::uint64_t kind = record.body().u64();
    changes_header = kind == kUpdateName || kind == kSectionPiece;
  }
  if (!changes_header) return;
  diagnostics->add_finding(Damage::BadFeature, record.offset,
                           std::string(record_name(record.type)) +
                               " record in a file, which has its header at the start: ignored");
}

// Reports a record that is longer than its fields: its size is damaged and covers the records after it.
void CaptureReader::State::check_length(const RecordView& record) {
  static const EventAttr kNone;
  if (record.type == abi::kRecordSample) return;  // checked when its fields are parsed: Sample::unread
  const auto event = known_events().event_of(record);
  if (!event && record.type < abi::kRecordUserStart) return;
  const EventAttr& attr = event ? known_events()[*event].attr : kNone;
  if (record.type < abi::kRecordUserStart && !has_sound_trailer(record, attr))
    return diagnostics->add_finding(Damage::BadRecord, record.offset,
                                    std::string(record_name(record.type)) +
                                        " record ends with a trailer whose reserved word is not zero");
  if (const std::size_t unread = unread_bytes(record, attr); unread != 0)
    diagnostics->add_finding(Damage::BadRecord, record.offset,
                             std::string(record_name(record.type)) + " record has " + std::to_string(unread) +
                                 " bytes after its last field");
}

// Whether next_record() returns the record.
bool CaptureReader::State::keeps(const RecordView& record) {
  if (record_name(record.type).empty()) {
    if (is_simpleperf_type(record.type)) return false;  // simpleperf_start.h reads the useful ones
    if (!options.keep_all)
      diagnostics->add_finding(Damage::UnknownRecord, record.offset, "type " + std::to_string(record.type));
    return options.keep_all;
  }
  check_length(record);
  if (record.type >= abi::kRecordUserStart) fixed ? refuse(record) : apply(record);
  return true;
}

CaptureReader::CaptureReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
CaptureReader::CaptureReader(CaptureReader&&) noexcept = default;
CaptureReader& CaptureReader::operator=(CaptureReader&&) noexcept = default;
CaptureReader::~CaptureReader() = default;

Result<CaptureReader> CaptureReader::open(const std::string& path, Diagnostics& diagnostics,
                                          ReadOptions options) {
  auto state = std::make_unique<State>(diagnostics, options);
  if (auto opened = state->open(path); !opened) return std::move(opened.error());
  return CaptureReader(std::move(state));
}

const EventSet& CaptureReader::events() const { return state_->known_events(); }
const Features& CaptureReader::features() const { return state_->known_features(); }
Features CaptureReader::take_features() {
  return state_->fixed ? std::exchange(state_->fixed->features, {}) : state_->features;
}
const CaptureLayout& CaptureReader::layout() const { return state_->layout; }
std::shared_ptr<const CaptureHeader> CaptureReader::fixed_header() const { return state_->fixed; }

Bytes CaptureReader::next_payload() { return state_->stream->next_payload(); }
const BlockRef& CaptureReader::block() const { return state_->stream->block(); }
std::uint64_t CaptureReader::compressed_records(abi::RecordType type) const {
  const auto before = state_->compressed_before.find(type);
  return (before == state_->compressed_before.end() ? 0 : before->second) +
         state_->stream->compressed_records(type);
}
bool CaptureReader::follows() const { return state_->options.following != nullptr; }
bool CaptureReader::shows_at_once() const { return follows() && state_->options.following->shows_at_once; }

bool CaptureReader::State::end_following(Following::End why) {
  stream->end_growing();
  options.following->end = why;
  if (why == Following::End::Died)
    diagnostics->add_finding(Damage::NotClosed, Diagnostics::kNoOffset,
                             "it was killed; everything it wrote up to its last whole round is read");
  return false;
}

// Call it only after all available bytes were read.
bool CaptureReader::State::is_stopped() {
  constexpr std::uint32_t kRecordsBetween = 1024;
  if (options.following == nullptr || was_stopped) return was_stopped;
  if (++following_records % kRecordsBetween != 0 || options.following->waits()) return false;
  end_following(Following::End::Stopped);
  return was_stopped = true;
}

bool CaptureReader::State::wait_for_file() {
  // Opening the file was the first look at its size.
  if (growing->end() == Following::End::NotYet) ::poll(nullptr, 0, kPatience);
  const std::uint64_t end = growing->data_end();
  if (end > known_end) {
    stream->extend(end - known_end);
    known_end = end;
    return true;
  }
  return growing->end() == Following::End::NotYet || end_following(growing->end());
}

bool CaptureReader::wait_for_more() {
  State& state = *state_;
  if (state.was_stopped) return false;
  if (!state.stream->grows()) return state.end_following(Following::End::Closed);
  if (!state.options.following->waits()) return state.end_following(Following::End::Stopped);
  if (state.growing) return state.wait_for_file();
  pollfd pipe{state.file.get(), POLLIN, 0};
  static_cast<void>(::poll(&pipe, 1, kPatience));
  return true;
}

std::optional<RecordView> CaptureReader::next_record() {
  if (state_->is_stopped()) return std::nullopt;
  std::optional<RecordView> record(std::in_place);
  do {
    while (state_->stream->next_record(*record)) {
      if (record->type == abi::kRecordSample || state_->keeps(*record)) return record;
    }
  } while (state_->open_next_part());
  if (!state_->stream->grows()) state_->end_of_pieces();
  record.reset();
  return record;
}

SampleRun CaptureReader::next_samples() { return follows() ? SampleRun() : state_->stream->next_samples(); }

}  // namespace tacho::format
