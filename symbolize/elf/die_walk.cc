#include "symbolize/elf/die_walk.h"

#include <dwarf.h>

namespace tacho::symbolize {

bool DieWalk::next() {
  if (levels_.empty() || is_too_deep() || leads_back_) return false;
  const Dwarf_Off last = dwarf_dieoffset(&levels_.back());
  Dwarf_Die child{};
  if (dwarf_haschildren(&levels_.back()) > 0 && dwarf_child(&levels_.back(), &child) == 0) {
    levels_.push_back(child);
  } else if (levels_.size() == 1 || !step()) {
    levels_.clear();
    return false;
  }
  leads_back_ = dwarf_dieoffset(&levels_.back()) <= last;
  return !leads_back_ && !is_too_deep();
}

// To what follows the last entry, which has no children.
bool DieWalk::step() {
  Dwarf_Die next{};
  const int status = dwarf_siblingof(&levels_.back(), &next);
  if (status == 0) levels_.back() = next;
  if (status <= 0 || next.addr == nullptr) return status == 0;
  // Past the last entry of a level stands a zero byte; libdw says where. What follows is the next entry of
  // the level above, or the zero that ends that one. libdw reads no byte beyond the unit, and knows no tag
  // for zero.
  auto* at = static_cast<unsigned char*>(next.addr);
  for (levels_.pop_back(); levels_.size() > 1; levels_.pop_back()) {
    Dwarf_Die follower = levels_.back();
    follower.addr = ++at;
    follower.abbrev = nullptr;
    if (dwarf_tag(&follower) == DW_TAG_invalid) continue;
    levels_.back() = follower;
    return true;
  }
  return false;
}

}  // namespace tacho::symbolize
