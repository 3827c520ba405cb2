#include "record/stacks/stack_copy.h"

#include <cstring>

#include "bpf/programs/stack_maps.h"
#include "unwind/arm64_caller.h"
#include "unwind/unwind_row.h"

namespace tacho::record {
namespace {

constexpr std::uint64_t kWordBytes = sizeof(std::uint64_t);
#ifdef __aarch64__
constexpr std::uint64_t kAddressMask =
    (std::uint64_t{1} << 48) - 1;  // without the signature of a return address
constexpr int kSignalExtra = TACHO_UNWIND_SIGNAL_LINK;
constexpr bool kFrameEndsAtRecord = false;  // a frame record may be anywhere in its frame
#else
constexpr std::uint64_t kAddressMask = ~std::uint64_t{0};
constexpr int kRbx = 3;           // DWARF's number of rbx
constexpr int kSignalExtra = 16;  // words above rsp in a signal frame: rbx
constexpr bool kFrameEndsAtRecord = true;
#endif
constexpr std::uint64_t kFramePointerReach = 0x100000;  // maximum distance to the caller's frame for a guess

class UserStackUnwinder {
 public:
  UserStackUnwinder(CallchainMerger::Walk& walk, const StackCopy& copy, const RowOfAddress& row_of)
      : walk_(walk),
        copy_(copy),
        row_of_(row_of),
        sp_(copy.sp),
        bp_(copy.bp),
        extra_(copy.extra),
        is_return_(copy.is_return),
        is_bp_known_(copy.is_bp_known),
        is_extra_known_(copy.is_extra_known) {}

  // Moves from the last frame to its caller. False: the walk ended, and its end is set.
  bool step() {
    std::uint16_t end = TACHO_END_NO_MAPPING;
    const auto row = row_of_(walk_.frames.back(), is_return_, end);
    if (!row && is_guess_ && end == TACHO_END_NO_MAPPING) {
      walk_.frames.pop_back();  // not code: a word of the stack, which may be private data
      return ends(TACHO_END_NO_RULE);
    }
    if (!row) return ends(end);
    return follow(row->row, row->rbx);
  }

 private:
  bool ends(std::uint16_t how) {
    walk_.end = how;
    return false;
  }

  std::optional<std::uint64_t> word(std::uint64_t address) const {
    const std::uint64_t offset = address - copy_.sp;
    if (offset >= copy_.bytes.size() || copy_.bytes.size() - offset < kWordBytes) return std::nullopt;
    std::uint64_t value = 0;
    std::memcpy(&value, copy_.bytes.data() + offset, sizeof value);
    return value;
  }
  // `words` above `address`.
  static std::uint64_t above(std::uint64_t address, std::int64_t words) {
    return address + static_cast<std::uint64_t>(words) * kWordBytes;
  }

#ifdef __aarch64__
  bool follow(const tacho_unwind_row& row, std::int8_t) {
    switch (row.kind) {
      case TACHO_UNWIND_SIGNAL:
        return leave_signal_frame();
      case TACHO_UNWIND_END:
        return ends(TACHO_END_WHOLE);
      case TACHO_UNWIND_NOTHING:
        return guess();
      default:
        return tacho_has_arm64_caller(row.kind) ? return_by(row) : ends(TACHO_END_ODD_RULE);
    }
  }

  bool return_by(const tacho_unwind_row& row) {
    const tacho_arm64_frame frame{sp_, bp_, is_sp_known_};
    tacho_arm64_caller caller{};
    if (!is_bp_known_) return ends(TACHO_END_ODD_RULE);
    if (!tacho_find_arm64_caller(row.kind, row.cfa, row.rbp, &frame, &caller)) return ends(TACHO_END_NO_RULE);
    const bool is_leaf = caller.link_at == 0;
    if (is_leaf ? !is_extra_known_ || caller.sp < sp_ : caller.sp <= sp_) return ends(TACHO_END_LOOP);
    const auto link = is_leaf ? std::optional(extra_) : word(caller.link_at);
    const auto bp = caller.frame_at == 0 ? std::optional(bp_) : word(caller.frame_at);
    if (!link || !bp) return ends(TACHO_END_COPY);
    bp_ = *bp;
    is_extra_known_ = false;
    if (*link == 0) return ends(walk_.frames.size() == 1 ? TACHO_END_NO_RULE : TACHO_END_WHOLE);
    is_sp_known_ = true;
    return go_to(*link, caller.sp, true, !frame.is_sp_known);
  }
#else
  bool follow(const tacho_unwind_row& row, std::int8_t rbx) {
    const Saved saved{row.rbp, rbx};
    switch (row.kind) {
      case TACHO_UNWIND_RSP:
        return return_from(above(sp_, row.cfa), saved);
      case TACHO_UNWIND_RBP:
        if (!is_bp_known_) return ends(TACHO_END_ODD_RULE);
        return return_from(above(bp_, row.cfa), saved);
      case kRbx:
        if (!is_extra_known_) return ends(TACHO_END_ODD_RULE);
        return return_from(above(extra_, row.cfa), saved);
      case TACHO_UNWIND_PLT: {
        const auto place = static_cast<std::int8_t>(walk_.frames.back() & 15);
        return return_from(above(sp_, row.cfa) + (place >= row.rbp ? kWordBytes : 0),
                           {TACHO_UNWIND_RBP_SAME, rbx});
      }
      case TACHO_UNWIND_AT_RBP: {
        if (!is_bp_known_) return ends(TACHO_END_ODD_RULE);
        const auto cfa = word(above(bp_, row.cfa));
        return cfa ? return_from(*cfa, saved) : ends(TACHO_END_COPY);
      }
      case TACHO_UNWIND_AT_RSP: {
        const auto cfa = word(above(sp_, row.cfa));
        return cfa ? load_caller(*cfa + kWordBytes, saved) : ends(TACHO_END_COPY);
      }
      case TACHO_UNWIND_SIGNAL:
        return leave_signal_frame();
      case TACHO_UNWIND_END:
        return ends(TACHO_END_WHOLE);
      case TACHO_UNWIND_NOTHING:
        return guess();
      default:
        return ends(TACHO_END_ODD_RULE);  // or a register is not in the copy
    }
  }

  // Where the rows say the caller's registers are saved.
  struct Saved {
    std::int8_t rbp, rbx;
  };

  bool return_from(std::uint64_t cfa, Saved saved) {
    return cfa <= sp_ ? ends(TACHO_END_LOOP) : load_caller(cfa, saved);
  }

  bool load_caller(std::uint64_t cfa, Saved saved) {
    const auto caller = word(cfa - kWordBytes);
    if (!caller) return ends(TACHO_END_COPY);
    // Before rbp changes, by which rbx may be found.
    is_extra_known_ = load(extra_, is_extra_known_, cfa, saved.rbx);
    const bool is_bp_lost = saved.rbp == TACHO_UNWIND_RBP_LOST;
    is_bp_known_ = load(bp_, is_bp_known_, cfa, saved.rbp);
    if (!is_bp_known_ && !is_bp_lost && saved.rbp != TACHO_UNWIND_RBP_SAME) return ends(TACHO_END_COPY);
    // The sampled function is in its epilogue, in a way that unwind rules do not describe.
    if (*caller == 0) return ends(walk_.frames.size() == 1 ? TACHO_END_NO_RULE : TACHO_END_WHOLE);
    return go_to(*caller, cfa, true, false);
  }

  // Whether the caller's value becomes known.
  bool load(std::uint64_t& value, bool is_known, std::uint64_t cfa, std::int8_t place) const {
    if (place == TACHO_UNWIND_RBP_SAME) return is_known;
    if (place == TACHO_UNWIND_RBP_LOST || (place > 0 && !is_bp_known_)) return false;
    const auto saved = word(place < 0 ? above(cfa, place) : bp_);
    value = saved.value_or(0);
    return saved.has_value();
  }
#endif

  bool leave_signal_frame() {
    const auto ip = word(above(sp_, TACHO_UNWIND_SIGNAL_RIP)), bp = word(above(sp_, TACHO_UNWIND_SIGNAL_RBP)),
               sp = word(above(sp_, TACHO_UNWIND_SIGNAL_RSP)), extra = word(above(sp_, kSignalExtra));
    if (!is_sp_known_) return ends(TACHO_END_NO_RULE);
    if (!ip || !bp || !sp) return ends(TACHO_END_COPY);
    bp_ = *bp;
    extra_ = extra.value_or(0);
    is_bp_known_ = true;
    is_extra_known_ = extra.has_value();
    walk_.frames.push_back(TACHO_INTERRUPTED);
    return go_to(*ip, *sp, false, false);
  }

  // Code without unwind information may keep a frame pointer.
  bool guess() {
    if (!is_bp_known_ || walk_.frames.size() == 1) return ends(TACHO_END_NO_RULE);  // it may keep none
    if (bp_ == 0) return ends(TACHO_END_FRAME_ZERO);
    if (bp_ % kWordBytes != 0 || bp_ < sp_ || bp_ - sp_ > kFramePointerReach) return ends(TACHO_END_NO_RULE);
    const auto saved = word(bp_), caller = word(bp_ + kWordBytes);
    if (!saved || !caller) return ends(TACHO_END_COPY);
    if (*caller == 0) return ends(TACHO_END_FRAME_ZERO);
    const std::uint64_t sp = bp_ + 2 * kWordBytes;
    bp_ = *saved;
    is_extra_known_ = false;
    is_sp_known_ = kFrameEndsAtRecord;
    return go_to(*caller, sp, true, true);
  }

  bool go_to(std::uint64_t ip, std::uint64_t sp, bool is_return, bool is_guess) {
    sp_ = sp;
    is_return_ = is_return;
    is_guess_ = is_guess;
    walk_.frames.push_back(is_return ? ip & kAddressMask : ip);
    return true;
  }

  CallchainMerger::Walk& walk_;
  const StackCopy& copy_;
  const RowOfAddress& row_of_;
  std::uint64_t sp_, bp_, extra_;
  bool is_return_, is_bp_known_, is_extra_known_, is_guess_ = false;
  bool is_sp_known_ = true;  // false: sp_ is at least that
};

}  // namespace

std::optional<StackCopy> stack_copy_of(format::Bytes written) {
  format::Cursor in(written);
  StackCopy copy;
  copy.number = in.u64();
  copy.sp = in.u64();
  copy.bp = in.u64();
  copy.extra = in.u64();
  copy.frames = in.u32();
  copy.is_return = in.u8() != 0;
  copy.is_bp_known = in.u8() != 0;
  copy.is_extra_known = in.u8() != 0;
  copy.part = in.u8();
  if (in.failed() || copy.frames == 0) return std::nullopt;
  const format::Bytes rest = in.take_bytes(in.left());
  copy.bytes.assign(rest.begin(), rest.end());
  return copy;
}

bool add_part(StackCopy& copy, const StackCopy& part) {
  if (part.number != copy.number || part.sp != copy.sp + copy.bytes.size()) return false;
  copy.bytes.insert(copy.bytes.end(), part.bytes.begin(), part.bytes.end());
  return true;
}

void finish_unwind(CallchainMerger::Walk& walk, const StackCopy& copy, std::size_t most,
                   const RowOfAddress& row_of) {
  if (copy.frames == 0 || copy.frames > walk.frames.size()) return;
  const CallchainMerger::Walk before = walk;
  walk.frames.resize(copy.frames);
  UserStackUnwinder rest(walk, copy, row_of);
  while (rest.step()) {
    if (walk.frames.size() <= most) continue;
    walk.frames.pop_back();
    walk.end = TACHO_END_CUT;
    break;
  }
  // The kernel's walk may be better: a file may be gone, and the kernel sees the code of functions without
  // unwind information.
  if (walk.end > TACHO_END_FRAME_ZERO && walk.frames.size() < before.frames.size()) walk = before;
}

}  // namespace tacho::record
