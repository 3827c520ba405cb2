#include "report/views/convert/convert.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <bitset>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <utility>
#include <variant>

#include "format/base/printable.h"
#include "format/container/capture_writer.h"
#include "format/container/feature_sections.h"
#include "format/container/growing_file.h"
#include "format/container/pipe_writer.h"
#include "format/extensions/symbol_pack.h"
#include "format/records/byte_swap.h"
#include "format/records/perf_abi.h"
#include "format/records/record.h"
#include "format/records/sample.h"
#include "report/output/terminal.h"
#include "report/query/gather.h"
#include "report/samples/event_choice.h"
#include "report/samples/filter.h"
#include "report/samples/ordered_records.h"
#include "report/samples/session.h"
#include "symbolize/address_space.h"
#include "symbolize/files/decompress.h"
#include "symbolize/jit/jit_code.h"
#include "symbolize/symbol_options.h"
#include "symbolize/unwind/unwind.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;
using format::Bytes;
using format::CaptureReader;
using format::Cursor;
using format::Damage;
using format::EventAttr;
using format::EventSet;
using format::Features;
using format::RecordView;

// The result of a write: a closed pipe is an error here.
Result<> write_result(const Result<OutputFile::Reader>& reader) {
  if (reader && *reader == OutputFile::Reader::There) return Done{};
  const int code = reader ? EPIPE : reader.error().code;
  return output_error(system_error("write", code).what, code);
}

}  // namespace

Result<CaptureTarget> CaptureTarget::open(TargetOptions options) {
  CaptureTarget target(std::move(options));
  const TargetOptions& wish = target.options_;
  if (wish.replaces_input) {
    if (auto checked = check_no_folder(wish.input, "replaced"); !checked) return std::move(checked.error());
    auto state = FileState::of(wish.input);
    if (!state) return std::move(state.error());
    target.input_state_ = *state;
  }
  if (wish.output == "-") return target;
  std::error_code ignored;
  auto path = wish.replaces_input ? std::filesystem::canonical(wish.input, ignored)
                                  : std::filesystem::path(wish.output);
  if (path.empty()) path = wish.input;
  using Old = format::WholeOutput::Old;
  auto file = format::WholeOutput::create(path, wish.replaces_input ? Old::Replaced : Old::Kept);
  if (!file) return std::move(file.error());
  target.file_.emplace(std::move(*file));
  if (target.file_->has_temporary_name()) target.no_stopping_ = std::make_unique<NoStopping>();
  // A file that is named while it grows is marked for --follow here, since the sandboxed child may not do so.
  if (auto mark = target.file_->duplicate(); mark && !wish.is_whole_or_nothing)
    format::hold_for_writing(mark->get());
  return target;
}

Result<> CaptureTarget::begin_copy() {
  if (!file_ || options_.is_whole_or_nothing) return Done{};
  if (auto named = file_->finish(); !named) return named;
  if (no_stopping_) no_stopping_->let_stop();
  return Done{};
}

Result<> CaptureTarget::make_empty() {
  if (!file_) return Done{};
  const auto file = file_->duplicate();
  if (!file) return file.error();
  if (::ftruncate(file->get(), 0) == 0 && ::lseek(file->get(), 0, SEEK_SET) == 0) return Done{};
  return output_error(system_error(options_.output, errno).what, errno);
}

Result<> CaptureTarget::finish() {
  if (!file_ || !options_.is_whole_or_nothing) return Done{};
  if (input_state_)
    if (auto same = input_state_->check_same(options_.input); !same) return same;
  return file_->finish();
}

CopyOutput CaptureTarget::here() {
  CopyOutput output;
  output.begin = [this]() -> Result<format::Fd> {
    if (auto begun = begin_copy(); !begun) return std::move(begun.error());
    return file_ ? file_->duplicate() : Result<format::Fd>(format::Fd());
  };
  output.write = [](Bytes bytes) {
    return write_result(OutputFile(STDOUT_FILENO).write(format::as_text(bytes)));
  };
  output.finish = [this] { return finish(); };
  return output;
}

CopyOutput CaptureTarget::in_worker(sandbox::Child& child) {
  CopyOutput output;
  output.begin = [this, &child]() -> Result<format::Fd> {
    child_output_.emplace(child.open_output());
    return file_ ? file_->duplicate() : Result<format::Fd>(format::Fd());
  };
  output.write = [this](Bytes bytes) { return write_result(child_output_->write(format::as_text(bytes))); };
  output.finish = [this] { return child_output_->finish(); };
  return output;
}

void CaptureTarget::prepare(sandbox::Task& task) {
  task.input = options_.input;
  task.policy = sandbox::Policy::WriteOutput;
  task.is_whole_or_nothing = options_.is_whole_or_nothing;
  if (!file_) {
    task.open_output = [] { return output_of(OutputFile(STDOUT_FILENO)); };
    return;
  }
  task.kept = {file_->descriptor()};
  task.restart = [this] { return make_empty(); };
  task.open_output = [this]() -> Result<sandbox::Output> {
    if (auto begun = begin_copy(); !begun) return std::move(begun.error());
    return sandbox::Output{.write = [](std::string_view) -> Result<OutputFile::Reader> {
                             return Error{"the sandboxed process wrote to an output that it does not have"};
                           },
                           .finish = [this] { return finish(); },
                           .is_reader_gone = [] { return false; }};
  };
}

Result<cli::ExitStatus> make_capture(const CaptureTask& task, const CaptureWork& work) {
  auto target = CaptureTarget::open(task.target);
  if (!target) return std::move(target.error());
  const auto here = [&] { return work(target->here(), nullptr); };
  if (!task.has_worker) return here();
  sandbox::Task sandboxed;
  target->prepare(sandboxed);
  sandboxed.can_restart = task.can_restart;
  sandboxed.is_asked_to_stop = task.is_asked_to_stop;
  sandboxed.times = task.times;
  sandboxed.kept.insert(sandboxed.kept.end(), task.kept.begin(), task.kept.end());
  const off_t start = ::lseek(STDIN_FILENO, 0, SEEK_CUR);
  sandboxed.show_progress = progress_lines();
  sandboxed.work = [&](sandbox::Child& child) {
    if (task.target.input == "-" && start >= 0) (void)::lseek(STDIN_FILENO, start, SEEK_SET);
    return work(target->in_worker(child), &child);
  };
  return sandbox::run_view_or(sandboxed, here);
}

namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);

// Records that are dropped with their event.
constexpr std::uint32_t kOfTheEventAlone[] = {
    abi::kRecordSample,      abi::kRecordRead, abi::kRecordThrottle,    abi::kRecordUnthrottle,
    abi::kRecordLostSamples, abi::kRecordAux,  abi::kRecordItraceStart, abi::kRecordAuxOutputHwId,
};

bool has_sample_ids(const EventAttr& attr) {
  return attr.samples(abi::kSampleIdentifier) || attr.samples(abi::kSampleId);
}

// `record` with the bytes in `scratch`, after setting the size in their header.
RecordView view_of(format::ByteWriter& scratch, const RecordView& record) {
  scratch.patch<std::uint16_t>(6, static_cast<std::uint16_t>(scratch.size()));
  RecordView view = record;
  view.bytes = scratch.view();
  view.order = std::endian::native;
  return view;
}

// User records that name an event's id at this offset of their body.
struct IdOffsetRow {
  std::uint32_t type;
  std::size_t offset;  // bytes
};
constexpr IdOffsetRow kIdOffsets[] = {{abi::kRecordEventUpdate, 8}, {abi::kRecordStat, 0}};

// convert --events and --time: selects the events and samples of the copy, and assigns other records to the
// events that stay.
class Selection {
 public:
  // `names` are the events to keep, `times` is the value of --time; both may be empty: all. Refused when the
  // capture lacks one of them. `events` must outlive this.
  static Result<Selection> create(const std::vector<std::string>& names, const std::string& times,
                                  const EventSet& events, const Features& features) {
    Selection selection(events);
    if (!names.empty())
      if (auto chosen = selection.choose(names, features); !chosen) return std::move(chosen.error());
    if (!times.empty())
      if (auto chosen = selection.choose_times(times, features); !chosen) return std::move(chosen.error());
    return selection;
  }

  // The events of the copy: `events` itself, or a part of them in `scratch`.
  const EventSet& events(EventSet& scratch) const {
    if (kept_.empty()) return *all_;
    for (std::size_t i = 0; i < all_->size(); ++i)
      if (keeps(i)) scratch.add_event((*all_)[i]);
    return scratch;
  }

  // Adjusts the feature sections to the events of the copy.
  void adjust(Features& features) const {
    auto& environment = features.environment;
    if (!filter_.times.empty() && environment.sample_time) {
      auto& [first, last] = *environment.sample_time;
      first = std::max(first, filter_.times.front().first);
      last = std::max(first, std::min(last, filter_.times.back().last));
      format::drop_section(features, abi::kFeatureSampleTime);
    }
    if (kept_.empty()) return;
    if (features.event_descriptions.size() == kept_.size()) {
      std::vector<format::Event> descriptions;
      for (std::size_t i = 0; i < kept_.size(); ++i)
        if (kept_[i]) descriptions.push_back(std::move(features.event_descriptions[i]));
      features.event_descriptions = std::move(descriptions);
      format::drop_section(features, abi::kFeatureEventDesc);
    }
    std::vector<format::EventGroup> groups;
    for (format::EventGroup group : environment.groups) {
      if (group.leader >= kept_.size() || group.members > kept_.size() - group.leader) continue;
      const auto leader = kept_.begin() + group.leader;
      if (!*leader) continue;
      const auto members = std::count(leader, leader + group.members, true);
      group.leader = static_cast<std::uint32_t>(std::count(kept_.begin(), leader, true));
      group.members = static_cast<std::uint32_t>(members);
      if (members > 1) groups.push_back(std::move(group));
    }
    environment.groups = std::move(groups);
    format::drop_section(features, abi::kFeatureGroupDesc);
  }

  // A record (in this machine's byte order) in the copy: itself, a new one in `scratch`, or nullopt: dropped.
  std::optional<RecordView> apply(const RecordView& record, format::ByteWriter& scratch,
                                  format::Diagnostics& diagnostics) const {
    if (kept_.empty() && filter_.times.empty()) return record;
    if (record.type < abi::kRecordUserStart) return apply_to_kernel(record, scratch, diagnostics);
    if (kept_.empty()) return record;
    if (record.type == abi::kRecordIdIndex) return shorten_id_index(record, scratch);
    const auto row = std::ranges::find(kIdOffsets, record.type, &IdOffsetRow::type);
    if (row == std::end(kIdOffsets)) return record;
    Cursor body = record.body();
    body.skip(row->offset);
    return keeps_id(body.u64()) ? std::optional(record) : std::nullopt;
  }

 private:
  explicit Selection(const EventSet& events) : all_(&events) {}
  Result<> choose(const std::vector<std::string>& names, const Features& features) {
    const std::vector<std::string> all = event_names(*all_);
    EventChoice choice = choose_events(names, all);
    if (choice.unknown) return not_one_event("--events", *choice.unknown, all);
    kept_ = std::move(choice.chosen);
    const auto has_none = [](const format::Event& event) { return !has_sample_ids(event.attr); };
    if (all_->size() > 1 && std::ranges::any_of(*all_, has_none))
      return use_error("--events: the samples of this capture do not say which event they belong to");
    keep_groups_whole(features);
    first_ = static_cast<std::size_t>(std::ranges::find(kept_, true) - kept_.begin());
    return Done{};
  }

  // The leader's samples hold the values of all members: choosing one chooses the group.
  void keep_groups_whole(const Features& features) {
    for (const format::EventGroup& group : features.environment.groups) {
      if (group.leader >= kept_.size() || group.members > kept_.size() - group.leader) continue;
      const EventAttr& leader = (*all_)[group.leader].attr;
      if (!leader.samples(abi::kSampleRead) || (leader.read_format & abi::kReadGroup) == 0) continue;
      const auto first = kept_.begin() + group.leader;
      if (std::find(first, first + group.members, true) != first + group.members)
        std::fill(first, first + group.members, true);
    }
  }

  Result<> choose_times(const std::string& times, const Features& features) {
    auto ranges = parse_times(times, features.environment);
    if (!ranges) return std::move(ranges.error());
    filter_.times = std::move(*ranges);
    for (std::size_t i = 0; i < all_->size(); ++i)
      if (keeps(i) && !(*all_)[i].attr.samples(abi::kSampleTime))
        return use_error("--time: samples of the event '" + (*all_)[i].name + "' have no time");
    return Done{};
  }

  bool keeps(std::size_t event) const { return kept_.empty() || (event < kept_.size() && kept_[event]); }
  bool keeps_id(std::uint64_t id) const {
    if (kept_.empty() || id == 0) return true;
    const auto event = all_->find_id(id);
    return event && keeps(*event);
  }

  std::optional<RecordView> apply_to_kernel(const RecordView& record, format::ByteWriter& scratch,
                                            format::Diagnostics& diagnostics) const {
    const auto event = all_->event_of(record);
    if (!event) {
      diagnostics.add_finding(Damage::UnknownEvent, record.offset,
                              std::string(format::record_name(record.type)));
      return std::nullopt;
    }
    const EventAttr& attr = (*all_)[*event].attr;
    if (!keeps(*event)) {
      const bool goes = std::ranges::find(kOfTheEventAlone, record.type) != std::end(kOfTheEventAlone);
      return goes ? std::nullopt : std::optional(move_to_first_event(record, attr, scratch));
    }
    if (record.type != abi::kRecordSample || filter_.times.empty()) return record;
    const auto time = format::sample_time(record, attr);
    if (!time) {
      diagnostics.add_finding(Damage::BadRecord, record.offset, "a sample ends before its time");
      return std::nullopt;
    }
    return filter_.accepts_time(*time) ? std::optional(record) : std::nullopt;
  }

  // The same record as one of the first event that stays: with that event's sample_id layout and id.
  RecordView move_to_first_event(const RecordView& record, const EventAttr& from,
                                 format::ByteWriter& scratch) const {
    const format::Event& first = (*all_)[first_];
    const std::uint64_t first_id = first.ids.empty() ? 0 : first.ids.front();
    const std::size_t trailer = format::sample_id_size(from);
    const bool has_trailer = trailer != 0 && record.bytes.size() >= format::kRecordHeaderSize + trailer;
    format::SampleId id =
        has_trailer ? format::parse_sample_id(record, from) : format::SampleId{0, 0, 0, 0, 0, 0};
    if (id.id != 0) id.id = first_id;
    if (!from.samples(abi::kSampleTime)) id.time = 0;  // a time that is not known is written as 0
    scratch.clear();
    scratch.bytes(record.bytes.first(record.bytes.size() - (has_trailer ? trailer : 0)));
    if (record.type == abi::kRecordLost && scratch.size() >= format::kRecordHeaderSize + kWord)
      scratch.patch(format::kRecordHeaderSize, first_id);
    format::write_sample_id(scratch, id, first.attr);
    return view_of(scratch, record);
  }

  // u64 count, entries of four words beginning with an id, and perhaps as many entries of two words.
  RecordView shorten_id_index(const RecordView& record, format::ByteWriter& scratch) const {
    constexpr std::size_t kEntry = 4, kGuestEntry = 2;  // words
    Cursor in = record.body();
    const std::uint64_t count = in.u64();
    const format::U64Array entries = in.words(count, kEntry);
    if (in.failed()) return record;
    const bool has_guests = count != 0 && in.left() / (kGuestEntry * kWord) >= count;
    const format::U64Array guests = in.words(has_guests ? count : 0, kGuestEntry);
    scratch.clear();
    scratch.bytes(record.bytes.first(format::kRecordHeaderSize + kWord));  // the count is set below
    std::uint64_t stay = 0;
    const auto copy_kept = [&](const format::U64Array& from, std::size_t words) {
      for (std::size_t i = 0; i < from.size() / words; ++i)
        if (keeps_id(entries[i * kEntry]))
          scratch.bytes(from.bytes().subspan(i * words * kWord, words * kWord));
    };
    for (std::size_t i = 0; i < count; ++i) stay += keeps_id(entries[i * kEntry]) ? 1 : 0;
    copy_kept(entries, kEntry);
    copy_kept(guests, kGuestEntry);
    scratch.patch(format::kRecordHeaderSize, stay);
    return view_of(scratch, record);
  }

  const EventSet* all_;
  std::vector<bool> kept_;  // by event; empty: all
  std::size_t first_ = 0;   // the first event that stays; it gets mmap, comm and fork records of the others
  Filter filter_;           // times only
};

constexpr std::size_t kMostFrames = kLongestRecord / kWord;
constexpr std::uint64_t kWordsBefore = abi::kSampleIdentifier | abi::kSampleIp | abi::kSampleTid |
                                       abi::kSampleTime | abi::kSampleAddr | abi::kSampleId |
                                       abi::kSampleStreamId | abi::kSampleCpu | abi::kSamplePeriod;
constexpr std::uint64_t kOfCopies = abi::kSampleRegsUser | abi::kSampleStackUser;
constexpr std::uint64_t kBranchIndex = 1U << 17, kBranchCounters = 1U << 19;  // PERF_SAMPLE_BRANCH_...
constexpr std::size_t kBranchWords = 3;

// The positions of the parts of a sample that change, in bytes from the start of its body.
struct Pieces {
  std::size_t chain = 0, chain_end = 0;
  std::size_t copies = 0, copies_end = 0;  // registers and stack, side by side
};

void skip_words(Cursor& in, std::uint64_t words) {
  in.skip(words > in.left() / kWord ? in.left() + 1 : static_cast<std::size_t>(words) * kWord);
}

// In the order of the kernel's ABI (perf_event_open(2), PERF_RECORD_SAMPLE).
std::optional<Pieces> pieces_of(Bytes body, const EventAttr& attr) {
  Pieces pieces;
  Cursor in(body);
  const auto here = [&] { return body.size() - in.left(); };
  in.skip(kWord * static_cast<std::size_t>(std::popcount(attr.sample_type & kWordsBefore)));
  if (attr.samples(abi::kSampleRead)) (void)format::parse_read_values(in, attr.read_format);
  pieces.chain = here();
  skip_words(in, in.u64());
  pieces.chain_end = here();
  if (attr.samples(abi::kSampleRaw)) in.skip(in.u32());
  if (attr.samples(abi::kSampleBranchStack)) {
    const std::uint64_t branches = in.u64();
    if ((attr.branch_sample_type & kBranchIndex) != 0) in.u64();
    skip_words(in, std::min<std::uint64_t>(branches, kLongestRecord) * kBranchWords);
    if ((attr.branch_sample_type & kBranchCounters) != 0) skip_words(in, branches);
  }
  pieces.copies = here();
  if (attr.samples(abi::kSampleRegsUser) && in.u64() != 0)
    skip_words(in, static_cast<std::uint64_t>(std::popcount(attr.sample_regs_user)));
  if (attr.samples(abi::kSampleStackUser)) {
    const std::uint64_t size = in.u64();
    in.skip(size > in.left() ? in.left() + 1 : static_cast<std::size_t>(size));
    if (size != 0) in.u64();  // the number of valid bytes
  }
  pieces.copies_end = here();
  if (in.failed()) return std::nullopt;
  return pieces;
}

bool is_unwound(const EventAttr& attr) {
  return symbolize::Unwinder::can_unwind(attr) && attr.samples(abi::kSampleCallchain);
}

EventAttr changed_attr(EventAttr attr) {
  if (!is_unwound(attr)) return attr;
  attr.sample_type &= ~kOfCopies;
  attr.flags &= ~std::uint64_t{abi::kExcludeCallchainUser};
  attr.sample_regs_user = 0;
  attr.sample_stack_user = 0;
  return attr;
}

// The attr without the fields that perf 6.1 does not know: it refuses larger ones.
bool is_larger_than_perfs(const EventAttr& attr) { return attr.size > format::kCompatibleAttrSize; }
EventAttr compatible_attr(EventAttr attr) {
  attr.size = std::min(attr.size, format::kCompatibleAttrSize);
  attr.config3 = attr.config4 = 0;
  attr.tail.clear();
  return attr;
}

using ChangeAttr = EventAttr (*)(EventAttr);

EventSet changed_events(const EventSet& events, ChangeAttr change) {
  EventSet out;
  for (format::Event event : events) {
    event.attr = change(std::move(event.attr));
    out.add_event(std::move(event));
  }
  return out;
}

// Describes the events of the copy.
void adjust_descriptions(Features& features, ChangeAttr change) {
  if (features.event_descriptions.empty()) return;
  for (format::Event& event : features.event_descriptions) event.attr = change(std::move(event.attr));
  format::drop_section(features, abi::kFeatureEventDesc);
}

// convert --unwind: replaces copied stacks and registers (--call-graph dwarf) by call chains.
class Unwinding {
 public:
  // Refused when no event has copied stacks. `events` and `features` must outlive this.
  static Result<Unwinding> create(const symbolize::SymbolOptions& symbols, const EventSet& events,
                                  const Features& features) {
    if (std::ranges::none_of(events, [](const auto& event) { return is_unwound(event.attr); }))
      return use_error(
          "--unwind: no event of the capture has copies of stacks (record --call-graph dwarf), so there is "
          "nothing to unwind");
    Unwinding made(symbols, features, symbolize::clock_of(events));
    for (const auto& entry : features.environment.build_ids) made.spaces_->add_build_id(entry);
    return made;
  }

  // Applies a record of mappings or processes, and code of jitdumps up to `time` (ns; 0: unknown). To be
  // called in order of time.
  void note(const RecordView& record, const EventAttr& attr, std::uint64_t time,
            format::Diagnostics& diagnostics) {
    while (const auto mapping = time != 0 ? jit_->due(time) : std::nullopt) {
      spaces_->apply(*mapping, abi::kCpumodeUser);
      spaces_->take_replaced();
    }
    if (record.type == abi::kRecordSample) return;
    const auto parsed = format::parse_record(record, attr);
    if (!parsed) return diagnostics.add_finding(Damage::BadRecord, record.offset, parsed.error().what);
    if (const auto* const entry = std::get_if<format::BuildIdRecord>(&*parsed))
      return spaces_->add_build_id({entry->pid, entry->misc, entry->build_id, std::string(entry->filename)});
    const auto* const mapping = std::get_if<format::MmapRecord>(&*parsed);
    if (mapping != nullptr && jit_->consumes(*mapping, clock_)) return;
    spaces_->apply(*parsed, record.misc);
    spaces_->take_replaced();
  }

  // The sample (in this machine's byte order) with a call chain, in `scratch`; the record itself when there
  // is nothing to unwind; nullopt when it is damaged, which `diagnostics` counts. The call chain has return
  // addresses minus 1, as perf's unwinding has them: they are inside the calls.
  std::optional<RecordView> apply(const RecordView& record, const EventAttr& attr,
                                  format::ByteWriter& scratch, format::Diagnostics& diagnostics) {
    if (record.type != abi::kRecordSample || !is_unwound(attr)) return record;
    const auto sample = format::parse_sample(record, attr);
    // `record` may be in `scratch`.
    const std::vector<std::byte> copy(record.bytes.begin(), record.bytes.end());
    const Bytes head = Bytes(copy).first(format::kRecordHeaderSize);
    const Bytes body = Bytes(copy).subspan(format::kRecordHeaderSize);
    const auto pieces = pieces_of(body, attr);
    if (!sample || !pieces) {
      diagnostics.add_finding(Damage::BadRecord, record.offset, "a sample that is shorter than its fields");
      return std::nullopt;
    }
    auto frames = unwinder_.unwind(*sample, spaces_->version(sample->pid), kMostFrames, record.order);
    const std::size_t kept = copy.size() - (pieces->copies_end - pieces->copies);
    const std::size_t room = (kLongestRecord - std::min(kLongestRecord, kept)) / kWord;
    frames = frames.first(std::min(frames.size(), room == 0 ? 0 : room - 1));
    // The frames are valid until the next call of the unwinder.
    const std::vector<std::uint64_t> callers(frames.begin(), frames.end());
    const std::uint64_t known = Cursor(body.subspan(pieces->chain)).u64();
    scratch.clear();
    scratch.bytes(head).bytes(body.first(pieces->chain));
    scratch.u64(known + (callers.empty() ? 0 : 1 + callers.size()));
    scratch.bytes(body.subspan(pieces->chain + kWord, pieces->chain_end - pieces->chain - kWord));
    if (!callers.empty()) scratch.u64(abi::kContextUser);
    for (const std::uint64_t caller : callers) scratch.u64(caller);
    scratch.bytes(body.subspan(pieces->chain_end, pieces->copies - pieces->chain_end));
    scratch.bytes(body.subspan(pieces->copies_end));
    return view_of(scratch, record);
  }

  // Reports modules in which call chains ended because unwind information was missing.
  void report(format::Diagnostics& diagnostics) const {
    jit_->report(diagnostics);
    for (const auto& ended : unwinder_.ended_chains()) {
      const std::string path = std::string(ended.module->path) + ": ";
      // With --symfs the reason names the file below that folder.
      const std::size_t at = ended.reason.find(path);
      const std::size_t after = at == std::string::npos ? 0 : at + path.size();
      diagnostics.add_line(ended.was_used ? Damage::WrongNames : Damage::Note,
                           (after == 0 ? path : std::string(ended.reason.substr(0, after))) +
                               "call chains end there: " + std::string(ended.reason.substr(after)));
    }
  }

 private:
  Unwinding(const symbolize::SymbolOptions& symbols, const Features& features, symbolize::JitClock clock)
      : spaces_(std::make_unique<symbolize::AddressSpaces>()),
        jit_(std::make_unique<symbolize::JitCode>(
            symbols.jitdump_dir, symbolize::DebugFiles(symbols.symfs, {}, symbols.pinned), symbols.access)),
        clock_(clock),
        unwinder_(symbols, features, jit_.get()) {
    jit_->use(features);
  }

  // At stable addresses: the unwinder refers to them.
  std::unique_ptr<symbolize::AddressSpaces> spaces_;
  std::unique_ptr<symbolize::JitCode> jit_;
  symbolize::JitClock clock_;
  symbolize::Unwinder unwinder_;
};

// Keeps attached copies of files, perf maps and jitdumps only if samples hit their modules, and source files
// only if samples hit their functions.
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

// Reads the samples of the copy and drops from `features` what they did not hit: packed symbols, copies of
// files, perf maps and jitdumps. Drops nothing if stacks were copied, since their addresses are known only
// after unwinding.
Result<> keep_needed_symbols(const ConvertOptions& options, const EventSet& events, Features& features) {
  const auto before = format::parse_symbol_pack(features.symbol_pack);
  const auto has_stacks = [](const format::Event& event) {
    return event.attr.samples(abi::kSampleStackUser);
  };
  if (!before || std::ranges::any_of(events, has_stacks)) return Done{};
  SessionOptions reading;
  reading.input = options.input;
  reading.capture = options.capture;
  reading.symbols.symfs = symbolize::kNoFiles;
  reading.symbols.access = options.access;
  reading.filter.pids = options.pids;
  reading.filter.time_text = options.times;
  set_for_gathering(reading);
  auto session = Session::open(std::move(reading));
  if (!session) return std::move(session.error());
  session->filter().events = event_names(events);
  GatheredSymbols gathered = gather_symbols(*session, {.level = before->level, .only_packed = true});
  auto section = format::write_symbol_pack_section(gathered.pack);
  if (!section) return std::move(section.error());
  keep_needed_files(gathered, features.attachments);
  format::drop_section(features, abi::kFeatureAttachments);
  features.symbol_pack = std::move(*section);
  format::drop_section(features, abi::kFeatureSymbolPack);
  return Done{};
}

constexpr std::size_t kPiece = std::size_t{512} << 10;  // bytes of records written at a time
constexpr std::uint64_t kName = 2;                      // EVENT_UPDATE's kind
// In a pipe the names of events come before the first sample. Records before it are held, up to this size.
constexpr std::size_t kMostHeld = std::size_t{8} << 20;  // bytes

std::uint64_t first_word(const RecordView& record) { return record.body().u64(); }

// Whether the record belongs to the header of a pipe, which the reader has in its events and features.
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

// Whether the record follows the head of a pipe.
bool ends_head(const RecordView& record) {
  return record.type == abi::kRecordSample || record.type == abi::kRecordFinishedInit ||
         record.type == abi::kRecordFinishedRound || record.type == abi::kRecordAuxtrace;
}

// The feature section of a header record; nullopt: it describes an event.
std::optional<std::uint32_t> section_of(const RecordView& record) {
  Cursor body = record.body();
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
  Conversion(const ConvertOptions& options, const CopyOutput& output, CaptureReader& reader,
             format::Diagnostics& diagnostics)
      : options_(options), output_(output), reader_(reader), diagnostics_(diagnostics) {}

  Result<> run();
  // Ends a file after a failed write with its last whole round. Returns the error with the output's name.
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
  bool note_large_attrs(const EventSet& events);
  Result<> keep_symbols(const EventSet& events, Features& features) const;
  Result<> create_writer(const EventSet& events, Features features);
  Result<> pass(const RecordView& record);
  Result<> pass_late_header(const RecordView& record);
  Result<> put(const RecordView& record);
  std::optional<RecordView> to_native(const RecordView& record);
  Result<> finish_round();
  bool is_at_round() const { return ends_with_round_ && pending_.empty(); }  // no record since
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
  const CopyOutput& output_;
  CaptureReader& reader_;
  format::Diagnostics& diagnostics_;
  std::optional<Selection> selection_;
  std::optional<Writer> writer_;
  std::vector<Held> held_;  // of a pipe, until its events are known
  std::size_t held_bytes_ = 0;
  std::optional<Unwinding> unwinding_;
  std::uint64_t time_ = 0;  // of the current record, if they are read in order; ns, 0: unknown
  // Scratch: a record in this machine's byte order, selected, with its call chain, and changed.
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
  bool is_directory_ = false;  // the input has several files, whose rounds do not match
  struct AuxExtent {
    std::uint64_t offset, size;
  };
  std::vector<AuxExtent> aux_;  // AUXTRACE records of the file
};

Result<> Conversion::run() {
  if (options_.unwinds) return run_in_order();
  for (bool has_ended = !reader_.follows();;) {
    if (const auto record = reader_.next_record()) {
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

// Unwinding needs the mappings of earlier times, so records are read in order of time, and a round may end
// after any of them. Records about rings and files of the recording are dropped.
Result<> Conversion::run_in_order() {
  const Filter all;
  OrderedRecords records(reader_, diagnostics_);
  records.use(all);
  OrderedRecord record;
  for (;;) {
    const auto step = records.next(record);
    if (step == OrderedRecords::Step::End) break;
    if (step == OrderedRecords::Step::Record) {
      time_ = record.time;
      if (auto taken = take(record.view); !taken) return taken;
    } else if (writer_ && !is_at_round()) {
      // Also once when a pipe pauses, so that the output is complete up to here.
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
    diagnostics_.add_finding(Damage::UnknownEvent, format::Diagnostics::kNoOffset,
                             "an event described after the first records is left out by --unwind", late);
}

Result<> Conversion::take(const RecordView& record) {
  if (writer_) return pass(record);
  if (is_pipe_in()) {
    names_known_ = names_known_ || is_name(record);
    if (is_header(record) || (is_name(record) && !is_pipe_out())) return Done{};
    if (!ends_head(record) && held_bytes_ < kMostHeld) {
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
    symbols.pinned = options_.pinned;
    symbols.access = options_.access;
    // In a recorded chain the address -1 is no frame but an unknown context: perf drops such chains.
    symbols.cut_mark = symbolize::CutMark::None;
    auto unwinding = Unwinding::create(symbols, reader_.events(), reader_.features());
    if (!unwinding) return std::move(unwinding.error());
    unwinding_.emplace(std::move(*unwinding));
    early_ = reader_.features().present;
    known_events_ = reader_.events().size();
    // OrderedRecords does not return the records with the events' names.
    names_known_ =
        std::ranges::any_of(reader_.events(), [](const auto& event) { return !event.name_is_made; });
  }
  auto selection = Selection::create(options_.events, options_.times, reader_.events(), reader_.features());
  if (!selection) return std::move(selection.error());
  selection_ = std::move(*selection);
  Features features = options_.unwinds ? reader_.features() : reader_.take_features();
  is_directory_ = features.environment.directory_format.value_or(0) != 0;
  names_known_ = names_known_ || !features.event_descriptions.empty();
  EventSet scratch;
  const EventSet& events = selection_->events(scratch);
  // Only EVENT_DESC has names in a file.
  if (is_pipe_in() && !is_pipe_out() && features.event_descriptions.empty() && names_known_)
    features.event_descriptions.assign(reader_.events().begin(), reader_.events().end());
  selection_->adjust(features);
  if (unwinding_) adjust_descriptions(features, changed_attr);
  const bool cuts_attrs = options_.packing == Packing::Plain && note_large_attrs(events);
  if (cuts_attrs) adjust_descriptions(features, compatible_attr);
  format::drop_section(features, abi::kFeatureAuxtrace);  // has offsets, so it is rebuilt at the end
  format::drop_section(features, abi::kFeatureDirFormat);
  features.environment.directory_format.reset();
  if (auto kept = keep_symbols(events, features); !kept) return std::move(kept.error()).in(options_.input);
  std::optional<EventSet> changed;  // copied only if needed: events may have millions of ids
  if (unwinding_) changed = changed_events(events, changed_attr);
  if (cuts_attrs) changed = changed_events(changed ? *changed : events, compatible_attr);
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

// Whether attrs of events are larger than perf 6.1 reads them. What it does not know of them is said.
bool Conversion::note_large_attrs(const EventSet& events) {
  for (const format::Event& event : events)
    if (format::size_to_write(event.attr) > format::kCompatibleAttrSize)
      diagnostics_.add_line(Damage::Note, "'" + format::printable(event.name) +
                                              "': fields of its attribute that perf 6.1 does not know (from "
                                              "config3 on) are left out by --plain");
  return std::ranges::any_of(events, is_larger_than_perfs, &format::Event::attr);
}

// Drops the symbols that a part does not need, except from a pipe, which cannot be read twice. A file on
// standard input is read from its start, and its position is restored.
Result<> Conversion::keep_symbols(const EventSet& events, Features& features) const {
  if (!is_part() || is_pipe_in() || features.symbol_pack.empty()) return Done{};
  const bool is_stdin = options_.input == "-";
  const off_t position = is_stdin ? ::lseek(STDIN_FILENO, 0, SEEK_CUR) : 0;
  if (is_stdin && (position < 0 || ::lseek(STDIN_FILENO, 0, SEEK_SET) != 0))
    return system_error("seek", errno);
  auto kept = keep_needed_symbols(options_, events, features);
  if (is_stdin && ::lseek(STDIN_FILENO, position, SEEK_SET) != position) return system_error("seek", errno);
  return kept;
}

Result<> Conversion::create_writer(const EventSet& events, Features features) {
  format::WriteOptions options;
  options.as_given = true;
  const auto& compression = features.environment.compression;
  // Compressed input is compressed again with the usual level: that of its header, which may be any number,
  // would decide how long this takes.
  if (options_.packing != Packing::AsItIs || !compression) options.compression_level.reset();
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
  // A stack is unwound with the file of this build id.
  if (unwinding_ && record.type == abi::kRecordBuildId)
    unwinding_->note(record, EventAttr(), 0, diagnostics_);
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
    if (is_directory_) return Done{};
    return finish_round();
  }
  const auto native = to_native(record);
  if (!native) return Done{};
  auto selected = selection_->apply(*native, selected_, diagnostics_);
  if (const auto event = unwinding_ ? reader_.events().event_of(*native) : std::nullopt) {
    const auto& attr = reader_.events()[*event].attr;
    unwinding_->note(*native, attr, time_, diagnostics_);
    if (selected) selected = unwinding_->apply(*selected, attr, unwound_, diagnostics_);
  }
  if (selected && options_.change != nullptr) selected = options_.change->change(*selected, changed_);
  if (native->type == abi::kRecordSample) {
    has_samples_ = true;
    keeps_samples_ = keeps_samples_ || selected.has_value();
  }
  return selected ? put(*selected) : Done{};
}

// After a round the output is completed (header, features), which takes several writes. The ends of rounds
// without records are only collected.
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
      diagnostics_.add_finding(Damage::UnknownEvent, record.offset,
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
  // The record is passed on. One in the other byte order, if it is a piece of a section, cannot be converted
  // alone: its section is written at the end.
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
    diagnostics_.add_finding(Damage::UnknownEvent, record.offset,
                             std::string(format::record_name(record.type)));
    return std::nullopt;
  }
  turned_.clear();
  if (!format::swap_record(record, reader_.events()[*event].attr, turned_)) {
    diagnostics_.add_finding(Damage::BadRecord, record.offset,
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
  const auto write = [&](Bytes bytes) {
    return std::visit([&](auto& writer) { return writer.write_plain(bytes); }, *writer_);
  };
  auto written = write(pending_.view());
  pending_.clear();
  for (std::uint64_t left = record.payload_size - record.payload.size(); written && left > 0;) {
    const Bytes piece = reader_.next_payload();
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
  // The names that came late; a description from the start already has them.
  if (late_[abi::kFeatureEventDesc] && reader_.features().event_descriptions.empty()) {
    EventSet scratch;
    const EventSet& events = selection_->events(scratch);
    late.event_descriptions.assign(events.begin(), events.end());
    if (unwinding_) adjust_descriptions(late, changed_attr);
    if (options_.packing == Packing::Plain) adjust_descriptions(late, compatible_attr);
  }
  if (!aux_.empty()) {
    format::ByteWriter index;
    index.u64(aux_.size());
    for (const AuxExtent& extent : aux_) index.u64(extent.offset).u64(extent.size);
    format::keep_section(late, abi::kFeatureAuxtrace, index.view());
  }
  return late;
}

Result<> Conversion::close() {
  if (is_part() && has_samples_ && !keeps_samples_)
    diagnostics_.add_line(Damage::Note, "the selected part has no samples: " + output_name() + " holds none");
  if (auto flushed = flush(); !flushed) return flushed;
  const Features late = late_features();
  if (auto* file = std::get_if<format::CaptureWriter>(&*writer_)) {
    if (auto closed = file->close_file(late); !closed) return closed;
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

Result<> convert(const ConvertOptions& options, const CopyOutput& output, format::Diagnostics& diagnostics) {
  format::ReadOptions reading = options.capture;
  reading.keep_all = options.change == nullptr;
  auto reader = CaptureReader::open(options.input, diagnostics, reading);
  if (!reader) return std::move(reader.error());
  std::error_code ignored;
  if (options.input != "-" && std::filesystem::exists(options.input + "/kcore_dir", ignored))
    diagnostics.add_line(Damage::Note, "the kernel's image in kcore_dir is not copied");
  Conversion conversion(options, output, *reader, diagnostics);
  auto done = conversion.run();
  if (done || done.error().fault != Fault::Output) return done;
  if (options.output == "-" && done.error().code == EPIPE) return output.finish();
  return conversion.give_up(std::move(done.error()));
}

}  // namespace tacho::report
