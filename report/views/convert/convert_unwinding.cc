#include "report/views/convert/convert_unwinding.h"

#include <algorithm>
#include <bit>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/base/file.h"
#include "format/records/record.h"
#include "format/records/sample.h"

namespace tacho::report {

namespace {

constexpr std::size_t kDeepest = 1024;  // frames

// Which stack each sample has, by a key of its bytes.
class Gatherer : public Sink {
 public:
  Gatherer(const format::SeededTextHash& hash, ChainsBySample& by_sample)
      : hash_(hash), by_sample_(by_sample) {}

  Flow on_sample(const ResolvedSample& sample) override {
    if (sample.stack == nullptr || sample.raw->user_stack.empty()) return Flow::GoOn;
    by_sample_[hash_(format::as_text(sample.record->bytes))] = sample.stack->number;
    if (sample.stack->number >= stacks_.size()) stacks_.resize(sample.stack->number + 1);
    stacks_[sample.stack->number] = sample.stack;
    return Flow::GoOn;
  }

  // The part of each stack that was unwound, by its number.
  std::vector<std::vector<std::uint64_t>> chains(Resolver& resolver) const {
    std::vector<std::vector<std::uint64_t>> chains(stacks_.size());
    for (std::size_t number = 0; number < stacks_.size(); ++number) {
      if (stacks_[number] == nullptr) continue;
      for (const std::uint32_t frame : stacks_[number]->frames)
        if (const Location& place = resolver.location(frame); place.is_unwound)
          chains[number].push_back(place.ip.value);
    }
    return chains;
  }

 private:
  const format::SeededTextHash& hash_;
  ChainsBySample& by_sample_;
  std::vector<const Stack*> stacks_;  // by number; as long as the session
};

}  // namespace

Result<UnwoundChains> UnwoundChains::read(SessionOptions reading) {
  reading.max_stack = kDeepest;
  reading.keeps_addresses = true;
  auto session = Session::open(std::move(reading));
  if (!session) return std::move(session.error());
  UnwoundChains chains;
  Gatherer gatherer(chains.hash_, chains.by_sample_);
  session->run(gatherer);
  chains.chains_ = gatherer.chains(session->resolver());
  return chains;
}

std::span<const std::uint64_t> UnwoundChains::of(format::Bytes sample) const {
  const auto found = by_sample_.find(hash_(format::as_text(sample)));
  return found == by_sample_.end() ? std::span<const std::uint64_t>() : chains_[found->second];
}

namespace {

namespace abi = format::abi;
using format::Bytes;
using format::Cursor;
using format::Damage;
using format::EventAttr;
using format::RecordView;

constexpr std::size_t kRegisterBytes = sizeof(std::uint64_t);
constexpr std::size_t kMostRecordBytes = 0xfff8;                        // bytes; sizes have 16 bits
constexpr std::size_t kMostFrames = kMostRecordBytes / kRegisterBytes;  // more have no room
constexpr std::uint64_t kWordsBefore = abi::kSampleIdentifier | abi::kSampleIp | abi::kSampleTid |
                                       abi::kSampleTime | abi::kSampleAddr | abi::kSampleId |
                                       abi::kSampleStreamId | abi::kSampleCpu | abi::kSamplePeriod;
constexpr std::uint64_t kOfCopies = abi::kSampleRegsUser | abi::kSampleStackUser;
constexpr std::uint64_t kBranchIndex = 1U << 17, kBranchCounters = 1U << 19;  // PERF_SAMPLE_BRANCH_...
constexpr std::size_t kBranchWords = 3;

// The positions of the parts of a sample that change, in bytes from the start of its body.
struct Pieces {
  std::size_t chain = 0, behind_chain = 0;
  std::size_t copies = 0, behind_copies = 0;  // registers and stack, side by side
};

void skip_words(Cursor& in, std::uint64_t words) {
  in.skip(words > in.left() / kRegisterBytes ? in.left() + 1
                                             : static_cast<std::size_t>(words) * kRegisterBytes);
}

// In the order of the kernel's ABI (perf_event_open(2), PERF_RECORD_SAMPLE).
std::optional<Pieces> pieces_of(Bytes body, const EventAttr& attr) {
  Pieces pieces;
  Cursor in(body);
  const auto here = [&] { return body.size() - in.left(); };
  in.skip(kRegisterBytes * static_cast<std::size_t>(std::popcount(attr.sample_type & kWordsBefore)));
  if (attr.samples(abi::kSampleRead)) (void)format::parse_read_values(in, attr.read_format);
  pieces.chain = here();
  skip_words(in, in.u64());
  pieces.behind_chain = here();
  if (attr.samples(abi::kSampleRaw)) in.skip(in.u32());
  if (attr.samples(abi::kSampleBranchStack)) {
    const std::uint64_t branches = in.u64();
    if ((attr.branch_sample_type & kBranchIndex) != 0) in.u64();
    skip_words(in, std::min<std::uint64_t>(branches, kMostRecordBytes) * kBranchWords);
    if ((attr.branch_sample_type & kBranchCounters) != 0) skip_words(in, branches);
  }
  pieces.copies = here();
  if (attr.samples(abi::kSampleRegsUser) && in.u64() != 0)
    skip_words(in, static_cast<std::uint64_t>(std::popcount(attr.sample_regs_user)));
  if (attr.samples(abi::kSampleStackUser)) {
    const std::uint64_t size = in.u64();
    in.skip(size > in.left() ? in.left() + 1 : static_cast<std::size_t>(size));
    if (size != 0) in.u64();  // so much of it is valid
  }
  pieces.behind_copies = here();
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

}  // namespace

ConvertUnwinding::ConvertUnwinding(const symbolize::SymbolOptions& symbols, const format::Features& features)
    : spaces_(std::make_unique<symbolize::AddressSpaces>()), unwinder_(symbols, features) {}

Result<ConvertUnwinding> ConvertUnwinding::create(const symbolize::SymbolOptions& symbols,
                                                  const format::EventSet& events,
                                                  const format::Features& features) {
  if (std::ranges::none_of(events, [](const auto& event) { return is_unwound(event.attr); }))
    return use_error(
        "--unwind: no event of the capture keeps pieces of stack (record --call-graph dwarf); its call "
        "chains are "
        "what they are");
  ConvertUnwinding made(symbols, features);
  for (const auto& entry : features.environment.build_ids) made.spaces_->add_build_id(entry);
  return made;
}

format::EventSet ConvertUnwinding::changed(const format::EventSet& events) {
  format::EventSet out;
  for (format::Event event : events) {
    event.attr = changed_attr(event.attr);
    out.add(std::move(event));
  }
  return out;
}

void ConvertUnwinding::adjust(format::Features& features) {
  const bool is_known = !features.event_descriptions.empty();
  for (format::Event& event : features.event_descriptions) event.attr = changed_attr(event.attr);
  if (is_known) format::drop_section(features, abi::kFeatureEventDesc);  // the bytes as they were
}

void ConvertUnwinding::note(const RecordView& record, const EventAttr& attr,
                            format::Diagnostics& diagnostics) {
  if (record.type == abi::kRecordSample) return;
  const auto parsed = format::parse_record(record, attr);
  if (!parsed) return diagnostics.add(Damage::BadRecord, record.offset, parsed.error().what);
  if (const auto* const entry = std::get_if<format::BuildIdRecord>(&*parsed))
    return spaces_->add_build_id({entry->pid, entry->misc, entry->build_id, std::string(entry->filename)});
  spaces_->apply(*parsed, record.misc);
  spaces_->take_replaced();
}

// What perf and we find as callers are their return addresses minus 1, which in a plain chain name the same
// calls.
std::optional<RecordView> ConvertUnwinding::apply(const RecordView& record, const EventAttr& attr,
                                                  format::ByteWriter& scratch,
                                                  format::Diagnostics& diagnostics) {
  if (record.type != abi::kRecordSample || !is_unwound(attr)) return record;
  const auto sample = format::parse_sample(record, attr);
  const Bytes head =
      record.bytes.first(std::min(record.bytes.size(), std::size_t{format::kRecordHeaderSize}));
  const Bytes body = record.bytes.subspan(head.size());
  const auto pieces = pieces_of(body, attr);
  if (!sample || !pieces) {
    diagnostics.add(Damage::BadRecord, record.offset, "a sample that is shorter than its fields");
    return std::nullopt;
  }
  auto frames = unwinder_.unwind(*sample, spaces_->version(sample->pid), kMostFrames, record.order);
  const std::size_t kept = head.size() + body.size() - (pieces->behind_copies - pieces->copies);
  const std::size_t room = (kMostRecordBytes - std::min(kMostRecordBytes, kept)) / kRegisterBytes;
  frames = frames.first(std::min(frames.size(), room == 0 ? 0 : room - 1));
  // The frames are valid until the next call of the unwinder.
  const std::vector<std::uint64_t> callers(frames.begin(), frames.end());
  const std::uint64_t known = Cursor(body.subspan(pieces->chain)).u64();
  std::vector<std::byte> copy(head.begin(), head.end());  // `record` may be inside `scratch`
  copy.insert(copy.end(), body.begin(), body.end());
  const Bytes all = Bytes(copy).subspan(head.size());
  scratch.clear();
  scratch.bytes(Bytes(copy).first(head.size())).bytes(all.first(pieces->chain));
  scratch.u64(known + (callers.empty() ? 0 : 1 + callers.size()));
  scratch.bytes(
      all.subspan(pieces->chain + kRegisterBytes, pieces->behind_chain - pieces->chain - kRegisterBytes));
  if (!callers.empty()) scratch.u64(abi::kContextUser);
  for (const std::uint64_t caller : callers) scratch.u64(caller);
  scratch.bytes(all.subspan(pieces->behind_chain, pieces->copies - pieces->behind_chain));
  scratch.bytes(all.subspan(pieces->behind_copies));
  scratch.patch<std::uint16_t>(sizeof(std::uint32_t) + sizeof(std::uint16_t),
                               static_cast<std::uint16_t>(scratch.size()));
  RecordView view = record;
  view.bytes = scratch.view();
  return view;
}

void ConvertUnwinding::report(format::Diagnostics& diagnostics) const {
  for (const auto& lack : unwinder_.ended_chains()) {
    const std::string path = std::string(lack.module->path) + ": ";
    // Below --symfs it is elsewhere, as the reason says then.
    const std::size_t at = lack.reason.find(path);
    const std::size_t behind = at == std::string::npos ? 0 : at + path.size();
    diagnostics.add_line(lack.was_used ? Damage::WrongNames : Damage::Note,
                         (behind == 0 ? path : std::string(lack.reason.substr(0, behind))) +
                             "call chains end there: " + std::string(lack.reason.substr(behind)));
  }
}

}  // namespace tacho::report
