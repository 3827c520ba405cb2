#include "format/base/text_pool.h"

#include <cstring>
#include <limits>
#include <new>

namespace tacho::format {

TextPool::Number TextPool::add_text(std::string_view text) {
  if (text.size() > std::numeric_limits<Size>::max()) throw std::bad_alloc();
  if ((count_ + 1) * 4 > slots_.size() * 3) grow();
  const auto tag = static_cast<std::uint32_t>(hash_(text) >> 32);
  Slot& slot = slots_[place_of(tag, text)];
  if (slot.number == kNone) {
    slot = {append(text), tag};
    ++count_;
  }
  return slot.number;
}

TextPool::Number TextPool::find_text(std::string_view text) const {
  if (slots_.empty()) return kNone;
  return slots_[place_of(static_cast<std::uint32_t>(hash_(text) >> 32), text)].number;
}

std::string_view TextPool::operator[](Number number) const {
  const char* const at = &pieces_[number / kPieceUnits][number % kPieceUnits * kUnit];
  Size size;
  std::memcpy(&size, at, sizeof size);
  return {at + sizeof size, size};
}

// The slot of the text, or the free slot where it belongs.
std::size_t TextPool::place_of(std::uint32_t tag, std::string_view text) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = tag & mask;
  while (slots_[at].number != kNone && (slots_[at].tag != tag || (*this)[slots_[at].number] != text))
    at = (at + 1) & mask;
  return at;
}

TextPool::Number TextPool::append(std::string_view text) {
  const std::size_t units = 1 + (text.size() + kUnit - 1) / kUnit;
  if (units > end_ - next_) {
    const std::size_t pieces = (units + kPieceUnits - 1) / kPieceUnits;
    const std::size_t first = pieces_.size();
    if (units > kNone || (first + pieces) * kPieceUnits > kNone) throw std::bad_alloc();
    pieces_.resize(first + pieces);
    pieces_[first] = std::make_unique_for_overwrite<char[]>(pieces == 1 ? kPiece : units * kUnit);
    next_ = first * kPieceUnits;
    end_ = next_ + (pieces == 1 ? kPieceUnits : units);
  }
  const auto number = static_cast<Number>(next_);
  const auto size = static_cast<Size>(text.size());
  char* const at = &pieces_[next_ / kPieceUnits][next_ % kPieceUnits * kUnit];
  std::memcpy(at, &size, sizeof size);
  text.copy(at + sizeof size, text.size());
  next_ += units;
  return number;
}

void TextPool::grow() {
  std::vector<Slot> old(slots_.empty() ? 64 : slots_.size() * 2);
  old.swap(slots_);
  const std::size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.number == kNone) continue;
    std::size_t at = slot.tag & mask;
    while (slots_[at].number != kNone) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

}  // namespace tacho::format
