// The rest of a stack that the kernel's walk had to leave at a module without a table: found in a copy of the
// stack, by the same rows and in the same way (bpf/programs/stack_walk.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "bpf/programs/stack_maps.h"
#include "format/cursor.h"
#include "record/stacks/stack_splice.h"
#include "unwind/row_finder.h"

namespace tacho::record {

// struct tacho_stack_copy, of which the bytes are as many as were there.
struct StackCopy {
  std::uint64_t number = 0, sp = 0, bp = 0, rbx = 0;
  std::size_t frames = 0;  // found before; the last one is where to go on
  bool is_return = false;  // it stands behind a call
  bool is_bp_known = false, is_rbx_known = false;
  std::size_t part = 0;          // of a deep stack; the first one has all the rest
  std::vector<std::byte> bytes;  // from sp on
};
// Nothing when it is cut short.
std::optional<StackCopy> stack_copy_of(format::Bytes written);
// Puts the next part of the same stack behind it; false, and nothing is changed, when it does not begin
// there.
bool add_part(StackCopy& copy, const StackCopy& part);

// The row for code at an address: of kind NOTHING for mapped code that nothing describes. Nothing where no
// code is mapped (TACHO_END_NO_MAPPING) or its file cannot be read (TACHO_END_NO_TABLE), which `end` is set
// to. `is_return`: the address stands behind a call.
using RowOfAddress = std::function<std::optional<unwind::RowFinder::Found>(
    std::uint64_t address, bool is_return, std::uint16_t& end)>;

// Goes on from the copy, and leaves in `walk` what was found and how it ended. Frames beyond `most` are left
// out.
void walk_rest(StackSplice::Walk& walk, const StackCopy& copy, std::size_t most, const RowOfAddress& row_of);

}  // namespace tacho::record
