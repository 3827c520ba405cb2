#include "record/stacks/walk_rest.h"

#include <cstring>
#include <utility>

namespace tacho::record {
namespace {

constexpr std::uint64_t kWord = sizeof(std::uint64_t);
constexpr std::uint64_t kFramePointerReach = 0x100000;  // bytes to the caller's frame that a guess may span

class Rest {
 public:
  Rest(StackSplice::Walk& walk, const StackCopy& copy, const RowOfAddress& row_of)
      : walk_(walk),
        copy_(copy),
        row_of_(row_of),
        sp_(copy.sp),
        bp_(copy.bp),
        is_return_(copy.is_return),
        is_bp_known_(copy.is_bp_known) {}

  // Leaves the frame that stands last, for its caller; false: the walk ended, and its end is set.
  bool step() {
    std::uint16_t lack = TACHO_END_NO_MAPPING;
    const auto row = row_of_(walk_.frames.back(), is_return_, lack);
    if (!row && is_guess_ && lack == TACHO_END_NO_MAPPING) lack = TACHO_END_NO_RULE;
    if (!row) return ends(lack);
    return follow(*row);
  }

 private:
  bool ends(std::uint16_t how) {
    walk_.end = how;
    return false;
  }

  std::optional<std::uint64_t> word(std::uint64_t address) const {
    const std::uint64_t offset = address - copy_.sp;
    if (offset >= copy_.bytes.size() || copy_.bytes.size() - offset < kWord) return std::nullopt;
    std::uint64_t value = 0;
    std::memcpy(&value, copy_.bytes.data() + offset, sizeof value);
    return value;
  }
  // `words` above.
  static std::uint64_t above(std::uint64_t address, std::int64_t words) {
    return address + static_cast<std::uint64_t>(words) * kWord;
  }

  bool follow(const tacho_unwind_row& row) {
    std::int8_t rbp = row.rbp;
    switch (row.kind) {
      case TACHO_UNWIND_RSP:
        return return_from(above(sp_, row.cfa), rbp);
      case TACHO_UNWIND_RBP:
        if (!is_bp_known_) return ends(TACHO_END_ODD_RULE);
        return return_from(above(bp_, row.cfa), rbp);
      case TACHO_UNWIND_PLT: {
        const auto place = static_cast<std::int8_t>(walk_.frames.back() & 15);
        return return_from(above(sp_, row.cfa) + (place >= rbp ? kWord : 0), TACHO_UNWIND_RBP_SAME);
      }
      case TACHO_UNWIND_AT_RBP: {
        if (!is_bp_known_) return ends(TACHO_END_ODD_RULE);
        const auto cfa = word(above(bp_, row.cfa));
        return cfa ? return_from(*cfa, rbp) : ends(TACHO_END_UNREADABLE);
      }
      case TACHO_UNWIND_AT_RSP: {
        const auto cfa = word(above(sp_, row.cfa));
        return cfa ? load_caller(*cfa + kWord, rbp) : ends(TACHO_END_UNREADABLE);
      }
      case TACHO_UNWIND_SIGNAL:
        return leave_signal_frame();
      case TACHO_UNWIND_END:
        return ends(TACHO_END_WHOLE);
      case TACHO_UNWIND_NOTHING:
        return guess();
      default:
        return ends(TACHO_END_ODD_RULE);  // or a register that the copy does not hold
    }
  }

  bool return_from(std::uint64_t cfa, std::int8_t rbp) {
    return cfa <= sp_ ? ends(TACHO_END_LOOP) : load_caller(cfa, rbp);
  }

  bool load_caller(std::uint64_t cfa, std::int8_t rbp) {
    const auto caller = word(cfa - kWord);
    if (!caller) return ends(TACHO_END_UNREADABLE);
    if (rbp < 0 || rbp == TACHO_UNWIND_RBP_AT_RBP) {
      if (rbp > 0 && !is_bp_known_) return ends(TACHO_END_UNREADABLE);
      const auto saved = word(rbp < 0 ? above(cfa, rbp) : bp_);
      if (!saved) return ends(TACHO_END_UNREADABLE);
      bp_ = *saved;
      is_bp_known_ = true;
    } else if (rbp == TACHO_UNWIND_RBP_LOST) {
      is_bp_known_ = false;
    }
    if (*caller == 0) return ends(TACHO_END_WHOLE);
    return go_to(*caller, cfa, true, false);
  }

  bool leave_signal_frame() {
    const auto ip = word(above(sp_, TACHO_UNWIND_SIGNAL_RIP)), bp = word(above(sp_, TACHO_UNWIND_SIGNAL_RBP)),
               sp = word(above(sp_, TACHO_UNWIND_SIGNAL_RSP));
    if (!ip || !bp || !sp) return ends(TACHO_END_UNREADABLE);
    bp_ = *bp;
    is_bp_known_ = true;
    return go_to(*ip, *sp, false, false);
  }

  // Code that nothing describes may keep a frame pointer.
  bool guess() {
    if (!is_bp_known_) return ends(TACHO_END_NO_RULE);
    if (bp_ == 0) return ends(TACHO_END_FRAME_ZERO);
    if (bp_ % kWord != 0 || bp_ < sp_ || bp_ - sp_ > kFramePointerReach) return ends(TACHO_END_NO_RULE);
    const auto saved = word(bp_), caller = word(bp_ + kWord);
    if (!saved || !caller) return ends(TACHO_END_UNREADABLE);
    if (*caller == 0) return ends(TACHO_END_FRAME_ZERO);
    const std::uint64_t sp = bp_ + 2 * kWord;
    bp_ = *saved;
    return go_to(*caller, sp, true, true);
  }

  bool go_to(std::uint64_t ip, std::uint64_t sp, bool is_return, bool is_guess) {
    sp_ = sp;
    is_return_ = is_return;
    is_guess_ = is_guess;
    walk_.frames.push_back(ip);
    return true;
  }

  StackSplice::Walk& walk_;
  const StackCopy& copy_;
  const RowOfAddress& row_of_;
  std::uint64_t sp_, bp_;
  bool is_return_, is_bp_known_, is_guess_ = false;
};

}  // namespace

std::optional<StackCopy> stack_copy_of(format::Bytes written) {
  format::Cursor in(written);
  StackCopy copy;
  copy.number = in.u64();
  copy.sp = in.u64();
  copy.bp = in.u64();
  copy.frames = in.u32();
  copy.is_return = in.u8() != 0;
  copy.is_bp_known = in.u8() != 0;
  in.u16();
  if (in.failed() || copy.frames == 0) return std::nullopt;
  const format::Bytes rest = in.take(in.left());
  copy.bytes.assign(rest.begin(), rest.end());
  return copy;
}

void walk_rest(StackSplice::Walk& walk, const StackCopy& copy, std::size_t most, const RowOfAddress& row_of) {
  if (copy.frames == 0 || copy.frames > walk.frames.size()) return;
  const StackSplice::Walk before = walk;
  walk.frames.resize(copy.frames);
  Rest rest(walk, copy, row_of);
  while (rest.step()) {
    if (walk.frames.size() <= most) continue;
    walk.frames.pop_back();
    walk.end = TACHO_END_CUT;
    break;
  }
  // A file that nobody can read any more: what the kernel guessed is not worse.
  if (walk.end == TACHO_END_NO_TABLE && walk.frames.size() < before.frames.size()) walk = before;
}

}  // namespace tacho::record
