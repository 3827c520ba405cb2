// Copies of user stacks, from which walks are continued by unwind rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "format/base/cursor.h"
#include "record/stacks/callchain_merger.h"
#include "unwind/row_finder.h"

namespace tacho::record {

// struct tacho_stack_copy, with as many bytes as were copied.
struct StackCopy {
  std::uint64_t number = 0, sp = 0, bp = 0;
  std::uint64_t extra = 0;  // rbx; on arm64 x30
  std::size_t frames = 0;   // found by the BPF walk; the last one is where the walk continues
  bool is_return = false;   // the last frame is a return address
  bool is_bp_known = false, is_extra_known = false;
  std::size_t part = 0;          // part of a deep stack; the first one has the other members
  std::vector<std::byte> bytes;  // from sp up
};
// nullopt: it is cut short.
std::optional<StackCopy> stack_copy_of(format::Bytes written);
// Appends the next part of the same stack. False, without a change: it does not begin at the end.
bool add_part(StackCopy& copy, const StackCopy& part);

// The unwind row for an address: of kind NOTHING for mapped code without unwind information. nullopt, with
// `end` set: no code is mapped there (TACHO_END_NO_MAPPING), or its file cannot be read (TACHO_END_NO_TABLE).
// `is_return`: the address is a return address.
using RowOfAddress = std::function<std::optional<unwind::RowFinder::Found>(
    std::uint64_t address, bool is_return, std::uint16_t& end)>;

// Continues the walk from the copy, and stores its frames and its end in `walk`. Frames beyond `most` are
// left out.
void finish_unwind(CallchainMerger::Walk& walk, const StackCopy& copy, std::size_t most,
                   const RowOfAddress& row_of);

}  // namespace tacho::record
