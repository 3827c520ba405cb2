#include "format/capture_reader.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "format/file.h"
#include "format/file_head.h"
#include "format/foreign_order.h"
#include "format/header_check.h"
#include "format/large_pages.h"
#include "format/record.h"
#include "format/record_stream.h"
#include "format/section_pieces.h"

namespace tacho::format {

namespace {

constexpr std::uint64_t kIdsSection = 16;  // bytes behind each attr in the table of events

}  // namespace

struct CaptureReader::State {
  explicit State(Diagnostics& out, ReadOptions with) : diagnostics(&out), options(with) {}

  Fd file;
  Diagnostics* diagnostics;
  ReadOptions options;
  CaptureLayout layout;
  EventSet events;
  Features features;

  // What is above may be read by one thread while another calls next(), which writes here all the time.
  alignas(kApart) std::optional<RecordStream> stream;
  std::uint64_t compressed_before = 0;  // compressed records of the files before this stream's
  // A capture in a directory: the folder, and the number of the next of its files data.0, data.1, ... (bare
  // records).
  std::string directory;
  unsigned next_part = 0;
  SectionPieces pieces;

  Result<> open(const std::string& path);
  bool open_next_part();
  Result<std::vector<std::byte>> read_start();
  Result<> open_layout(const FileHead& head);
  Result<> read_attrs(const FileHead& head);
  void read_features(const FileHead& head);
  bool take_table(const FileHead& head, std::uint64_t at_offset, std::vector<FeatureSection>& sections);
  void read_section(const FeatureSection& section);
  void take_section(std::uint32_t feature, Bytes bytes, std::uint64_t offset);
  void keep(std::uint32_t feature, Bytes bytes, const FieldLog& log, std::uint64_t offset);
  void name_events();

  void apply(const RecordView& record);
  void apply_feature(const HeaderFeatureRecord& header, std::uint64_t offset);
  void apply_update(const EventUpdateRecord& update, std::uint64_t offset);
  void end_of_pieces();
  void check_length(const RecordView& record);
  bool keeps(const RecordView& record);
};

Result<> CaptureReader::State::open(const std::string& name) {
  std::string path = name;
  std::error_code ignored;
  if (name != "-" && std::filesystem::is_directory(name, ignored)) {
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
  auto head = parse_file_head(*start);
  if (!head) return std::move(head.error()).in(path);
  layout.order = head->order;
  layout.is_pipe = head->is_pipe;
  if (head->is_pipe) {
    layout.data_offset = FileHead::kPipeSize;
    if (is_regular && ::lseek(file.get(), FileHead::kPipeSize, SEEK_SET) < 0)
      return system_error(path, errno);
    stream.emplace(file.get(), FileHead::kPipeSize, RecordStream::kUntilTheEnd, layout.order,
                   options.inflate_limit, *diagnostics);
    return Done{};
  }
  if (!is_regular)
    return Error{path + ": has the layout of a file and cannot be read from a pipe; name the file"};
  if (auto opened = open_layout(*head); !opened) return std::move(opened.error()).in(path);
  return Done{};
}

// The first bytes: of a pipe, whose header has 16, not one more.
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
    if (start.size() != FileHead::kPipeSize || wanted == FileHead::kSize) continue;
    const auto head = parse_file_head(start);
    if (!head || !head->is_pipe) wanted = FileHead::kSize;
  }
  return start;
}

// A recorder of several threads writes one file each, without a header. False when there is no further one.
bool CaptureReader::State::open_next_part() {
  if (directory.empty() || features.environment.directory_format.value_or(0) == 0) return false;
  auto part = open_input(directory + "/data." + std::to_string(next_part));
  if (!part) return false;
  ++next_part;
  compressed_before += stream->compressed_records();
  file = std::move(*part);
  stream.emplace(file.get(), 0, RecordStream::kUntilTheEnd, layout.order, options.inflate_limit,
                 *diagnostics);
  return true;
}

// A file: events, header sections, then the stream is set to the start of the data.
Result<> CaptureReader::State::open_layout(const FileHead& head) {
  layout.data_offset = head.data.offset;
  layout.data_size = head.data.size;
  layout.features_offset = head.data.offset + head.data.size;
  if (auto read = read_attrs(head); !read) return read;
  if (head.data.offset < FileHead::kSize - 32 || head.data.offset > layout.file_size)
    return Error{"is cut short: its data should begin at byte " + std::to_string(head.data.offset) +
                 ", the file has " + std::to_string(layout.file_size)};
  read_features(head);
  name_events();
  check_descriptions(events, features, head.attr_size - kIdsSection, *diagnostics);
  std::uint64_t size = layout.data_size;
  if (!layout.is_closed && size == 0) size = layout.file_size - head.data.offset;
  const bool is_torn = size > layout.file_size - head.data.offset;
  if (is_torn) {
    diagnostics->add(Damage::CutShort, layout.file_size,
                     "the header promises data up to byte " + std::to_string(head.data.offset + size) +
                         ", the file ends before; everything up to there is read");
    size = layout.file_size - head.data.offset;
  }
  if (::lseek(file.get(), static_cast<off_t>(head.data.offset), SEEK_SET) < 0)
    return system_error("seek", errno);
  stream.emplace(file.get(), head.data.offset, size, layout.order, options.inflate_limit, *diagnostics);
  if (is_torn) stream->end_is_torn();
  return Done{};
}

Result<> CaptureReader::State::read_attrs(const FileHead& head) {
  if (head.attr_size < kIdsSection + 64 || head.attr_size > 65536)
    return Error{"has event attributes of " + std::to_string(head.attr_size) +
                 " bytes, at least 80 were expected"};
  if (head.attrs.offset > layout.file_size || head.attrs.size > layout.file_size - head.attrs.offset)
    return Error{"is cut short: its events should stand at bytes " + std::to_string(head.attrs.offset) +
                 " to " + std::to_string(head.attrs.offset + head.attrs.size) + ", the file has " +
                 std::to_string(layout.file_size)};
  auto table = read_at(file.get(), head.attrs.offset, static_cast<std::size_t>(head.attrs.size));
  if (!table) return std::move(table.error());
  Cursor in(*table, head.order);
  while (in.left() >= head.attr_size) {
    Cursor entry(in.take(head.attr_size), head.order);
    const Cursor attr_bytes(entry.take(head.attr_size - kIdsSection), head.order);
    const FileSection ids{entry.u64(), entry.u64()};
    auto attr = parse_event_attr(attr_bytes);
    if (!attr) return std::move(attr.error()).in("event " + std::to_string(events.size()));
    check_known(*attr, events.size(), *diagnostics);
    check_ids(ids, head.attrs, *diagnostics);
    Event event{std::move(*attr), {}, {}};
    if (ids.offset <= layout.file_size && ids.size <= layout.file_size - ids.offset) {
      auto bytes = read_at(file.get(), ids.offset, static_cast<std::size_t>(ids.size));
      if (!bytes) return std::move(bytes.error());
      const U64Array words(*bytes, head.order);
      for (std::size_t i = 0; i < words.size(); ++i) event.ids.push_back(words[i]);
    } else {
      diagnostics->add(Damage::BadFeature, ids.offset, "the ids of an event lie outside the file");
    }
    events.add(std::move(event));
  }
  if (in.left() > 0)
    diagnostics->add(
        Damage::BadFeature, head.attrs.offset,
        "the table of events ends with " + std::to_string(in.left()) + " bytes that are no event");
  if (events.empty()) return Error{"describes no event"};
  return Done{};
}

// Reads the table of {offset, size} behind the data. False when a section of it cannot be where it says: the
// table is not there, because the recorder did not get to write it.
bool CaptureReader::State::take_table(const FileHead& head, std::uint64_t at_offset,
                                      std::vector<FeatureSection>& sections) {
  const std::size_t size = head.features.count() * 16;
  if (at_offset > layout.file_size || size > layout.file_size - at_offset) return false;
  auto bytes = read_at(file.get(), at_offset, size);
  if (!bytes) return false;
  Cursor in(*bytes, head.order);
  for (std::uint32_t feature = 0; feature < abi::kFeatureCount; ++feature) {
    if (!head.features[feature]) continue;
    const FeatureSection section{feature, {in.u64(), in.u64()}};
    sections.push_back(section);
  }
  return std::ranges::all_of(sections, [&](const FeatureSection& section) {
    return section.place.offset <= layout.file_size &&
           section.place.size <= layout.file_size - section.place.offset;
  });
}

void CaptureReader::State::read_features(const FileHead& head) {
  std::optional<EarlyTable> early;
  std::vector<FeatureSection> early_sections;
  if (head.data.offset >= FileHead::kSize + EarlyTable::kTrailerSize) {
    const auto trailer =
        read_at(file.get(), head.data.offset - EarlyTable::kTrailerSize, EarlyTable::kTrailerSize);
    if (trailer) early = parse_early_trailer(*trailer);
  }
  if (early && early->offset <= head.data.offset &&
      early->entries <= (head.data.offset - early->offset) / EarlyTable::kEntrySize) {
    const auto entries = read_at(file.get(), early->offset, early->entries * EarlyTable::kEntrySize);
    if (entries) early_sections = parse_early_entries(*entries);
  }
  std::vector<FeatureSection> sections;
  const bool has_table = take_table(head, layout.features_offset, sections);
  // perf leaves data size 0 until it closes the file; then what stands where the table should be is data.
  const bool table_is_data =
      head.data.size == 0 && std::ranges::any_of(sections, [&](const FeatureSection& section) {
        return section.place.size != 0 && section.place.offset < head.data.offset;
      });
  layout.is_closed = early ? early->is_closed : head.data.size != 0 || (has_table && !table_is_data);
  if (!layout.is_closed)
    diagnostics->add(Damage::NotClosed, Diagnostics::kNoOffset,
                     "it was killed or still runs; everything it wrote up to its last whole round is read");
  const bool use_early = early && (!early->is_closed || !has_table);
  if (use_early) {
    // Where the data end too early as well, that is told, and everything behind them goes without saying.
    if (early->is_closed && layout.features_offset <= layout.file_size)
      diagnostics->add(Damage::CutShort, layout.features_offset,
                       "the header sections behind the data are missing; those before the data are used");
    sections = std::move(early_sections);
  } else if (!layout.is_closed) {
    sections.clear();
  } else if (!has_table) {
    diagnostics->add(Damage::BadFeature, layout.features_offset,
                     "the table of header sections is missing or points outside the file");
    const auto outside = [&](const FeatureSection& section) {
      return section.place.offset > layout.file_size ||
             section.place.size > layout.file_size - section.place.offset;
    };
    std::erase_if(sections, outside);
  }
  if (has_table && !use_early && layout.is_closed) {
    check_sections({layout.features_offset, head.features.count() * 16}, sections, layout.file_size,
                   *diagnostics);
    if (early) check_early_table(early_sections, sections, head.data.offset, *diagnostics);
  }
  for (const FeatureSection& section : sections) read_section(section);
}

void CaptureReader::State::read_section(const FeatureSection& section) {
  auto bytes = read_at(file.get(), section.place.offset,
                       static_cast<std::size_t>(std::min(section.place.size, layout.file_size)));
  if (!bytes) return diagnostics->add(Damage::BadFeature, section.place.offset, bytes.error().what);
  take_section(section.feature, *bytes, section.place.offset);
}

// One section, wherever it came from; it stood at `offset`.
void CaptureReader::State::take_section(std::uint32_t feature, Bytes bytes, std::uint64_t offset) {
  FieldLog log;
  const bool is_turned = options.keep_all && layout.order != std::endian::native;
  const Cursor section(bytes, layout.order, is_turned ? &log : nullptr);
  if (auto read = format::read_feature(feature, section, features); !read)
    return diagnostics->add(Damage::BadFeature, offset, read.error().what);
  if (options.keep_all) keep(feature, bytes, log, offset);
}

void CaptureReader::State::keep(std::uint32_t feature, Bytes bytes, const FieldLog& log,
                                std::uint64_t offset) {
  keep_section(features, feature, bytes);
  if (layout.order == std::endian::native || bytes.empty()) return;
  // Tracepoint descriptions say their byte order themselves, and so do the payloads that they describe.
  if (feature == abi::kFeatureTracingData) return;
  if (log.fields().empty()) {
    drop_section(features, feature);
    return diagnostics->add(Damage::BadFeature, offset,
                            "section " + std::to_string(feature) +
                                " is of a kind this program does not know in the other byte order: left out");
  }
  turn_fields(features.raw.back().bytes, bytes, log, layout.order);
}

// User-given names stand only in EVENT_DESC; without it the kernel's generic events have perf's names.
void CaptureReader::State::name_events() {
  const auto& described = features.event_descriptions;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const bool is_described = described.size() == events.size() && !described[i].name.empty();
    if (is_described) events.set_name(i, described[i].name);
    if (events[i].name.empty()) events.set_name(i, std::string(generic_event_name(events[i].attr)));
  }
}

// Pipes carry their header as records.
void CaptureReader::State::apply(const RecordView& record) {
  static const EventAttr kNone;  // records from 64 up do not depend on an event
  auto parsed = parse_record(record, kNone);
  if (!parsed) return diagnostics->add(Damage::BadRecord, record.offset, parsed.error().what);
  if (auto* header = std::get_if<HeaderAttrRecord>(&*parsed)) {
    check_known(header->attr, events.size(), *diagnostics);
    events.add({header->attr, std::string(generic_event_name(header->attr)), header->ids});
  } else if (auto* update = std::get_if<EventUpdateRecord>(&*parsed)) {
    apply_update(*update, record.offset);
  } else if (auto* build_id = std::get_if<BuildIdRecord>(&*parsed)) {
    features.environment.build_ids.push_back(
        {build_id->pid, build_id->misc, build_id->build_id, std::string(build_id->filename)});
  } else if (auto* feature = std::get_if<HeaderFeatureRecord>(&*parsed)) {
    apply_feature(*feature, record.offset);
  } else if (record.type == abi::kRecordTracingData) {
    take_section(abi::kFeatureTracingData, record.payload, record.offset);
  }
}

void CaptureReader::State::apply_update(const EventUpdateRecord& update, std::uint64_t offset) {
  constexpr std::uint64_t kName = 2;
  if (update.kind == kName) {
    if (const auto event = events.find_id(update.id))
      events.set_name(*event, std::string(text_of(update.data)));
  } else if (update.kind == kSectionPiece) {
    auto section = pieces.take(update, layout.order);
    if (!section) return diagnostics->add(Damage::BadFeature, offset, section.error().what);
    if (*section) take_section((*section)->feature, (*section)->bytes, offset);
    if (*section && (*section)->feature == abi::kFeatureEventDesc) name_events();
  }
}

void CaptureReader::State::end_of_pieces() {
  if (!pieces.is_open()) return;
  pieces = {};
  diagnostics->add(Damage::BadFeature, Diagnostics::kNoOffset, "the last pieces of a section are missing");
}

void CaptureReader::State::apply_feature(const HeaderFeatureRecord& header, std::uint64_t offset) {
  // Without a section it is a mere flag, or perf's mark for the end of the features, whose number is that of
  // the first feature the writer does not know.
  const bool is_flag = header.feature == abi::kFeatureBranchStack || header.feature == abi::kFeatureStat;
  if (header.section.empty() && !is_flag) return;
  if (header.feature >= abi::kFeatureCount) return;
  const auto feature = static_cast<std::uint32_t>(header.feature);
  take_section(feature, header.section, offset);
  if (feature != abi::kFeatureEventDesc) return;
  name_events();
  // The events themselves came before, as perf writes them; when they did not, there is nothing to compare
  // yet.
  if (events.size() == features.event_descriptions.size())
    check_descriptions(events, features, 0, *diagnostics);
}

// A record that swallowed what follows it, because its size is wrong, has bytes that are no field of it.
void CaptureReader::State::check_length(const RecordView& record) {
  static const EventAttr kNone;
  if (record.type == abi::kRecordSample) return;  // taken apart by whoever wants its fields: Sample::unread
  const auto event = events.event_of(record);
  if (!event && record.type < abi::kRecordUserStart) return;
  const EventAttr& attr = event ? events[*event].attr : kNone;
  if (record.type < abi::kRecordUserStart && !has_sound_trailer(record, attr))
    return diagnostics->add(Damage::BadRecord, record.offset,
                            std::string(record_name(record.type)) +
                                " record ends with a trailer whose reserved word is not zero");
  const std::size_t unread = unread_bytes(record, attr);
  if (unread == 0) return;
  diagnostics->add(Damage::BadRecord, record.offset,
                   std::string(record_name(record.type)) + " record has " + std::to_string(unread) +
                       " bytes behind its last field");
}

// Whether the caller gets the record.
bool CaptureReader::State::keeps(const RecordView& record) {
  if (record_name(record.type).empty()) {
    if (!options.keep_all)
      diagnostics->add(Damage::UnknownRecord, record.offset, "type " + std::to_string(record.type));
    return options.keep_all;
  }
  check_length(record);
  if (record.type >= abi::kRecordUserStart) apply(record);
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

const EventSet& CaptureReader::events() const { return state_->events; }
const Features& CaptureReader::features() const { return state_->features; }
const CaptureLayout& CaptureReader::layout() const { return state_->layout; }

const BlockRef& CaptureReader::block() const { return state_->stream->block(); }
std::uint64_t CaptureReader::compressed_records() const {
  return state_->compressed_before + state_->stream->compressed_records();
}

std::optional<RecordView> CaptureReader::next() {
  std::optional<RecordView> record(std::in_place);
  do {
    while (state_->stream->next(*record))
      if (record->type == abi::kRecordSample || state_->keeps(*record)) return record;
  } while (state_->open_next_part());
  state_->end_of_pieces();
  record.reset();
  return record;
}

}  // namespace tacho::format
