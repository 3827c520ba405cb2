#include "symbolize/elf/dwarf_file.h"

#include <dwarf.h>
#include <elfutils/libdwelf.h>

#include <algorithm>
#include <array>

#include "format/base/cursor.h"

namespace tacho::symbolize {

bool has_unmangled_names(int language) {
  constexpr std::array kPlain = {DW_LANG_C89,     DW_LANG_C,       DW_LANG_C99,           DW_LANG_C11,
                                 DW_LANG_Cobol74, DW_LANG_Cobol85, DW_LANG_Fortran77,     DW_LANG_Pascal83,
                                 DW_LANG_PLI,     DW_LANG_UPC,     DW_LANG_Mips_Assembler};
  return std::ranges::find(kPlain, language) != kPlain.end();
}

void add_range(AddressRanges& ranges, std::uint64_t start, std::uint64_t end) {
  constexpr std::size_t kLookedAt = 64;
  const std::size_t count = std::min(ranges.size(), kLookedAt);
  for (std::size_t i = 0; i < count; ++i) {
    if (start == ranges[i].second) {
      ranges[i].second = end;
      return;
    }
    if (end == ranges[i].first) {
      ranges[i].first = start;
      return;
    }
  }
  ranges.emplace_back(start, end);
}

std::optional<Dwarf_Word> number_of(Dwarf_Die& die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (!dwarf_attr(&die, name, &attribute) || dwarf_formudata(&attribute, &value) != 0) return std::nullopt;
  return value;
}

std::size_t cost_of(Dwarf_Die& die) {
  std::size_t attributes = 1;
  if (dwarf_tag(&die) != DW_TAG_invalid) dwarf_getattrcnt(die.abbrev, &attributes);
  return attributes + 1;
}

bool DieIterator::next_die() {
  if (levels_.empty() || is_too_deep() || has_cycle_) return false;
  const Dwarf_Off last = dwarf_dieoffset(&levels_.back());
  Dwarf_Die child{};
  if (dwarf_haschildren(&levels_.back()) > 0 && dwarf_child(&levels_.back(), &child) == 0) {
    levels_.push_back(child);
  } else if (levels_.size() == 1 || !step()) {
    levels_.clear();
    return false;
  }
  has_cycle_ = dwarf_dieoffset(&levels_.back()) <= last;
  return !has_cycle_ && !is_too_deep();
}

// Moves past an entry without children.
bool DieIterator::step() {
  Dwarf_Die next{};
  const int status = dwarf_siblingof(&levels_.back(), &next);
  if (status == 0) levels_.back() = next;
  if (status <= 0 || next.addr == nullptr) return status == 0;
  // A zero byte ends the entries of a level. After it comes the next entry of the level above, or the zero
  // byte that ends that level. libdw never reads beyond the unit.
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

Error libdw_error() {
  const char* const text = dwarf_errmsg(-1);
  return Error{text ? text : "not readable as DWARF"};
}

Result<> DwarfFile::open_into(const format::Fd& file, DebugImage& image, OwnedDwarf& dwarf) {
  auto read = DebugImage::read(file);
  if (!read) return std::move(read.error());
  image = std::move(*read);
  dwarf.reset(dwarf_begin_elf(image.elf(), DWARF_C_READ, nullptr));
  return dwarf ? Result<>(Done{}) : libdw_error();
}

Result<DwarfFile> DwarfFile::open(const format::Fd& file) {
  DwarfFile made;
  if (auto opened = open_into(file, made.image_, made.dwarf_); !opened) return std::move(opened.error());
  return made;
}

namespace {

// .debug_sup (DWARF 5, 7.3.6).
struct Supplement {
  bool is_itself = false;  // this is the supplementary file
  std::string path;
  format::BuildId checksum;
};
std::optional<Supplement> supplement_of(const DebugImage& image) {
  format::Cursor in(image.section(".debug_sup"), image.order());
  Supplement found;
  const std::uint16_t version = in.u16();
  found.is_itself = in.u8() != 0;
  found.path = in.terminated();
  const std::uint8_t size = in.u8();  // LEB128; checksums have at most 20 bytes, so one byte is enough
  const format::Bytes checksum = in.take_bytes(size);
  if (in.failed() || version < 5 || size == 0 || size > format::BuildId{}.bytes.size()) return std::nullopt;
  found.checksum = format::BuildId::from_bytes(checksum);
  return found;
}

}  // namespace

std::optional<SupplementaryFile> DwarfFile::supplementary_file() const {
  const char* name = nullptr;
  const void* id = nullptr;
  const std::ptrdiff_t size = dwelf_dwarf_gnu_debugaltlink(dwarf_.get(), &name, &id);
  if (size <= 0 || !name || !id) {
    const auto supplement = supplement_of(image_);
    if (!supplement || supplement->is_itself) return std::nullopt;
    return SupplementaryFile{supplement->path, supplement->checksum, true};
  }
  const format::Bytes bytes(static_cast<const std::byte*>(id), static_cast<std::size_t>(size));
  return SupplementaryFile{name, format::BuildId::from_bytes(bytes), false};
}

Result<> DwarfFile::use_supplementary_file(const format::Fd& file) {
  DebugImage image;
  OwnedDwarf dwarf;
  if (auto opened = open_into(file, image, dwarf); !opened) return opened;
  if (const auto part = supplementary_file(); part && part->is_supplementary) {
    const auto supplement = supplement_of(image);
    if (!supplement || !supplement->is_itself || supplement->checksum != part->build_id)
      return Error{"has another checksum in its .debug_sup"};
  }
  supplementary_image_ = std::move(image);
  supplementary_ = std::move(dwarf);
  dwarf_setalt(dwarf_.get(), supplementary_.get());
  return Done{};
}

// Whether the entry or string of an attribute of this form (DW_FORM_*) is in a file that is open.
bool DwarfFile::may_read(unsigned form) const {
  constexpr std::array kInSupplementaryFile = {DW_FORM_GNU_ref_alt, DW_FORM_GNU_strp_alt, DW_FORM_ref_sup4,
                                               DW_FORM_ref_sup8, DW_FORM_strp_sup};
  return supplementary_ != nullptr ||
         std::ranges::find(kInSupplementaryFile, static_cast<int>(form)) == kInSupplementaryFile.end();
}

std::string_view DwarfFile::text(Dwarf_Die& die, unsigned name) const {
  Dwarf_Attribute attribute;
  if (!dwarf_attr(&die, name, &attribute) || !may_read(dwarf_whatform(&attribute))) return {};
  const char* const found = dwarf_formstring(&attribute);
  return found ? std::string_view(found) : std::string_view{};
}

bool DwarfFile::follow(Dwarf_Die& die, unsigned name, Dwarf_Die& target) const {
  Dwarf_Attribute attribute;
  if (!dwarf_attr(&die, name, &attribute) || !may_read(dwarf_whatform(&attribute))) return false;
  // libdw 0.188 resolves DW_FORM_ref_sup4 in the wrong file. In 32-bit DWARF it is encoded like
  // DW_FORM_GNU_ref_alt, which libdw resolves in the supplementary file.
  Dwarf_Die unit;
  std::uint8_t offset_size = 0;
  if (attribute.form == DW_FORM_ref_sup4 && dwarf_diecu(&die, &unit, nullptr, &offset_size) &&
      offset_size == 4)
    attribute.form = DW_FORM_GNU_ref_alt;
  return dwarf_formref_die(&attribute, &target);
}

}  // namespace tacho::symbolize
