#include "symbolize/elf/debug_image.h"

#include <dwarf.h>
#include <gelf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "unwind/leb128.h"
#include "unwind/packed_section.h"

namespace tacho::symbolize {
namespace {

constexpr std::uint64_t kLargestFile = std::uint64_t{1} << 36;  // bytes
constexpr std::size_t kPadding = 4096;                          // bytes of zeros at the end

struct Part {
  std::uint64_t offset, size;
};

struct Compressed {
  std::size_t number = 0;  // of the section
  std::uint32_t type = 0;  // ELFCOMPRESS_*
  format::Bytes bytes;     // libelf's, after the section's own header
  std::uint64_t size = 0;  // unpacked
};

// Which parts of a file are copied, and which are decompressed.
struct Plan {
  std::vector<Part> copied;  // at their offsets in the file
  std::vector<Compressed> compressed;
  std::uint64_t unpacked_size = 0;
};

bool is_kept(std::string_view name) {
  return name.starts_with(".debug_") || name.starts_with(".zdebug_") || name == ".gnu_debugaltlink";
}

bool is_inside(std::uint64_t offset, std::uint64_t size, std::uint64_t whole) {
  return offset <= whole && size <= whole - offset;
}

// Reads a part to its offset in `image`.
Result<> copy_part(int file, char* image, std::uint64_t offset, std::uint64_t size) {
  while (size > 0) {
    const ssize_t count = ::pread(file, image + offset, size, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error("read", errno);
    if (count == 0) return Error{"was truncated while it was read"};
    offset += static_cast<std::uint64_t>(count);
    size -= static_cast<std::uint64_t>(count);
  }
  return Done{};
}

Result<Compressed> compressed_section(Elf_Scn* section, std::size_t number, bool is_64_bit) {
  GElf_Chdr header;
  const Elf_Data* const data = elf_rawdata(section, nullptr);
  const std::size_t header_size = is_64_bit ? sizeof(Elf64_Chdr) : sizeof(Elf32_Chdr);
  if (!data || data->d_size < header_size || !gelf_getchdr(section, &header)) {
    return Error{"a compressed section has no header"};
  }
  const format::Bytes bytes(static_cast<const std::byte*>(data->d_buf), data->d_size);
  const Compressed part{number, header.ch_type, bytes.subspan(header_size), header.ch_size};
  if (!unwind::can_hold(part.bytes.size(), part.size))
    return Error{"a compressed section has an impossible size"};
  return part;
}

// The decompressed size that a .zdebug_* section states, which libdw allocates; 0: it is no such section.
std::uint64_t size_of_zdebug(Elf_Scn* section, std::string_view name) {
  constexpr std::size_t kMagicSize = 4;
  const Elf_Data* const data = name.starts_with(".zdebug_") ? elf_rawdata(section, nullptr) : nullptr;
  if (!data || !data->d_buf) return 0;
  format::Cursor in({static_cast<const std::byte*>(data->d_buf), data->d_size}, std::endian::big);
  in.skip(kMagicSize);
  return in.u64();
}

// Adds up the decompressed bytes of a file of `size` bytes; an error if they exceed the limit for that size.
Result<> add_unpacked(std::uint64_t bytes, std::uint64_t size, Plan& plan) {
  if (bytes > unwind::max_decompressed(size) - plan.unpacked_size) {
    return Error{"its compressed sections would take more than " +
                     std::to_string(unwind::max_decompressed(size)) +
                     " bytes, too many for a file of its size",
                 EFBIG};
  }
  plan.unpacked_size += bytes;
  return Done{};
}

Result<Plan> plan_of(Elf* source, std::uint64_t size) {
  GElf_Ehdr header;
  std::size_t count = 0, names = 0;
  if (!source || elf_kind(source) != ELF_K_ELF || !gelf_getehdr(source, &header) ||
      elf_getshdrnum(source, &count) != 0 || elf_getshdrstrndx(source, &names) != 0) {
    return Error{"not an ELF file"};
  }
  Plan plan;
  plan.copied = {{0, header.e_ehsize}, {header.e_shoff, std::uint64_t{header.e_shentsize} * count}};
  for (std::size_t i = 1; i < count; ++i) {
    Elf_Scn* const section = elf_getscn(source, i);
    GElf_Shdr row;
    if (!section || !gelf_getshdr(section, &row) || row.sh_type == SHT_NOBITS) continue;
    const char* const name = elf_strptr(source, names, row.sh_name);
    if (i != names && !(name && is_kept(name))) continue;
    if ((row.sh_flags & SHF_COMPRESSED) == 0) {
      auto added = add_unpacked(size_of_zdebug(section, name ? name : ""), size, plan);
      if (!added) return std::move(added.error());
      plan.copied.push_back({row.sh_offset, row.sh_size});
      continue;
    }
    const bool is_64_bit = header.e_ident[EI_CLASS] == ELFCLASS64;
    auto part = compressed_section(section, i, is_64_bit);
    if (!part) return std::move(part.error());
    if (auto added = add_unpacked(part->size, size, plan); !added) return std::move(added.error());
    plan.compressed.push_back(*part);
  }
  std::uint64_t total = 0;
  for (const Part& part : plan.copied) {
    total += part.size;
    if (!is_inside(part.offset, part.size, size)) return Error{"a part of it is outside the file"};
    if (total > 2 * size) return Error{"its sections overlap"};
  }
  return plan;
}

// Moves the section `one` of `image` to `offset`.
Result<> move_section(Elf* image, const Compressed& one, std::uint64_t offset) {
  Elf_Scn* const section = elf_getscn(image, one.number);
  GElf_Shdr row;
  if (!section || !gelf_getshdr(section, &row)) return Error{"a section header cannot be read"};
  row.sh_offset = offset;
  row.sh_size = one.size;
  row.sh_flags &= ~static_cast<GElf_Xword>(SHF_COMPRESSED);
  if (!gelf_update_shdr(section, &row)) return Error{"a section header cannot be changed"};
  return Done{};
}

}  // namespace

void ElfEnd::operator()(Elf* elf) const noexcept { elf_end(elf); }

Result<DebugImage> DebugImage::read(const format::Fd& file) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return system_error("fstat", errno);
  if (!S_ISREG(status.st_mode)) return Error{"is not a regular file", EINVAL};
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > kLargestFile) return Error{"is too large for an ELF file"};
  elf_version(EV_CURRENT);
  // Read, not mapped: a file that shrinks meanwhile then gives an error instead of a SIGBUS.
  const OwnedElf source(elf_begin(file.get(), ELF_C_READ, nullptr));
  const auto plan = plan_of(source.get(), size);
  if (!plan) return plan.error();

  std::uint64_t end = size + kPadding;
  const std::uint64_t whole = end + plan->unpacked_size + plan->compressed.size() * kPadding;
  DebugImage image;
  image.size_ = size + plan->unpacked_size;
  // Pages that are never written take no memory.
  image.bytes_.reset(static_cast<char*>(std::calloc(whole, 1)));
  if (!image.bytes_) return Error{"needs more memory than there is", ENOMEM};
  for (const Part& part : plan->copied) {
    auto copied = copy_part(file.get(), image.bytes_.get(), part.offset, part.size);
    if (!copied) return std::move(copied.error());
  }
  image.elf_.reset(elf_memory(image.bytes_.get(), whole));
  if (!image.elf_) return Error{"not an ELF file"};
  const std::span<std::byte> bytes_of_image(reinterpret_cast<std::byte*>(image.bytes_.get()), whole);
  for (const Compressed& one : plan->compressed) {
    auto unpacked = unwind::unpack_section_into(one.type, one.bytes, bytes_of_image.subspan(end, one.size));
    if (!unpacked) return std::move(unpacked.error());
    if (auto moved = move_section(image.elf(), one, end); !moved) return std::move(moved.error());
    end += one.size + kPadding;
  }
  return image;
}

Result<DebugImage> DebugImage::from_sections(std::span<const Section> sections, const DebugImage& like) {
  GElf_Ehdr head;
  if (!gelf_getehdr(like.elf(), &head) || head.e_ident[EI_CLASS] != ELFCLASS64)
    return Error{"is a 32-bit file, which is not supported here"};
  if (like.order() != std::endian::native) return Error{"is for a machine of the other byte order"};
  std::string names(1, '\0');
  std::uint64_t size = sizeof(Elf64_Ehdr);
  std::vector<Elf64_Shdr> rows(1);  // section 0 is unused
  for (const Section& section : sections) {
    rows.push_back({.sh_name = static_cast<Elf64_Word>(names.size()),
                    .sh_type = SHT_PROGBITS,
                    .sh_offset = size,
                    .sh_size = section.bytes.size(),
                    .sh_addralign = 1});
    names += section.name + '\0';
    size += section.bytes.size() + kPadding;
  }
  rows.push_back({.sh_type = SHT_STRTAB, .sh_offset = size, .sh_size = names.size(), .sh_addralign = 1});
  const std::uint64_t table = (size + names.size() + kPadding) / 8 * 8;
  DebugImage image;
  image.size_ = table + rows.size() * sizeof(Elf64_Shdr);
  image.bytes_.reset(static_cast<char*>(std::calloc(image.size_ + kPadding, 1)));
  if (!image.bytes_) return Error{"needs more memory than there is", ENOMEM};
  char* const bytes = image.bytes_.get();
  for (std::size_t i = 0; i < sections.size(); ++i)
    std::ranges::copy(std::as_bytes(std::span(sections[i].bytes)),
                      reinterpret_cast<std::byte*>(bytes + rows[i + 1].sh_offset));
  std::ranges::copy(names, bytes + rows.back().sh_offset);
  Elf64_Ehdr header{};
  std::ranges::copy(head.e_ident, header.e_ident);
  header.e_type = ET_REL;
  header.e_machine = head.e_machine;
  header.e_version = EV_CURRENT;
  header.e_shoff = table;
  header.e_ehsize = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<Elf64_Half>(rows.size());
  header.e_shstrndx = static_cast<Elf64_Half>(rows.size() - 1);
  std::memcpy(bytes, &header, sizeof header);
  std::memcpy(bytes + table, rows.data(), rows.size() * sizeof(Elf64_Shdr));
  image.elf_.reset(elf_memory(bytes, image.size_));
  if (!image.elf_) return Error{"not an ELF file"};
  return image;
}

format::Bytes DebugImage::section(std::string_view name) const {
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf(), &names) != 0) return {};
  for (Elf_Scn* one = nullptr; (one = elf_nextscn(elf(), one)) != nullptr;) {
    GElf_Shdr row;
    const char* const found = gelf_getshdr(one, &row) ? elf_strptr(elf(), names, row.sh_name) : nullptr;
    if (!found || found != name) continue;
    const Elf_Data* const data = elf_rawdata(one, nullptr);
    if (!data || !data->d_buf) return {};
    return {static_cast<const std::byte*>(data->d_buf), data->d_size};
  }
  return {};
}

std::endian DebugImage::order() const {
  GElf_Ehdr header;
  const bool is_big = gelf_getehdr(elf(), &header) && header.e_ident[EI_DATA] == ELFDATA2MSB;
  return is_big ? std::endian::big : std::endian::little;
}

namespace {

constexpr std::uint32_t kLongUnit = 0xffffffff;  // the size follows in 64 bits

struct Program {
  format::Bytes opcodes;
  std::uint64_t names = 0;                       // number of files and directories
  std::uint8_t first_special = 1;                // opcodes from here on make a row each
  std::array<std::uint8_t, 256> arguments = {};  // number of LEB128 operands of each opcode below
};

// Skips the next string; false when it is empty.
bool skip_text(format::Cursor& in) {
  std::uint64_t size = 0;
  while (in.u8() != 0) ++size;
  return size != 0;
}

// DWARF 2 to 4: directories up to an empty one, then files, each with three numbers.
std::uint64_t count_names(format::Cursor in) {
  std::uint64_t names = 0;
  while (skip_text(in)) ++names;
  for (; skip_text(in); ++names)
    for (int i = 0; i < 3; ++i) unwind::read_uleb128(in);
  return names;
}

void skip_form(format::Cursor& in, std::uint64_t form, bool is_long) {
  using Size = std::pair<std::uint64_t, std::uint64_t>;  // a form, and its bytes
  constexpr Size kSizes[] = {
      {DW_FORM_data1, 1}, {DW_FORM_data2, 2}, {DW_FORM_data4, 4}, {DW_FORM_data8, 8}, {DW_FORM_data16, 16}};
  if (form == DW_FORM_string) {
    skip_text(in);
  } else if (form == DW_FORM_udata) {
    unwind::read_uleb128(in);
  } else if (form == DW_FORM_block) {
    in.skip(unwind::read_uleb128(in));
  } else {  // of a known size, or an offset into a string section
    const auto* const known = std::ranges::find(kSizes, form, &Size::first);
    in.skip(known != std::end(kSizes) ? known->second : is_long ? 8 : 4);
  }
}

// DWARF 5: a list of directories and one of files, each after a description of its entries.
std::uint64_t count_described_names(format::Cursor in, bool is_long) {
  std::uint64_t names = 0;
  for (int list = 0; list < 2; ++list) {
    std::vector<std::uint64_t> forms(in.u8());
    for (std::uint64_t& form : forms) {
      unwind::read_uleb128(in);  // what the field is: DW_LNCT_*
      form = unwind::read_uleb128(in);
    }
    const std::uint64_t count = unwind::read_uleb128(in);
    if (forms.empty()) continue;
    for (std::uint64_t i = 0; i < count && in.left() > 0; ++i, ++names)
      for (const std::uint64_t form : forms) skip_form(in, form, is_long);
  }
  return names;
}

std::optional<Program> read_header(format::Bytes section, std::uint64_t offset, std::endian order) {
  if (offset > section.size()) return std::nullopt;
  format::Cursor in(section.subspan(offset), order);
  std::uint64_t size = in.u32();
  const bool is_long = size == kLongUnit;
  if (is_long) size = in.u64();
  if (in.failed() || size > in.left()) return std::nullopt;
  format::Cursor unit(in.take_bytes(size), order);
  const std::uint16_t version = unit.u16();
  if (version >= 5) unit.skip(2);  // sizes of an address and of a segment
  const std::uint64_t header_size = is_long ? unit.u64() : unit.u32();
  if (unit.failed() || header_size > unit.left()) return std::nullopt;
  format::Cursor header(unit.take_bytes(header_size), order);
  Program program;
  program.opcodes = unit.take_bytes(unit.left());
  header.skip(version >= 4 ? 5 : 4);  // instruction lengths, is_stmt, the range of lines
  program.first_special = header.u8();
  for (unsigned i = 1; i < program.first_special; ++i) program.arguments[i] = header.u8();
  if (header.failed() || program.first_special == 0) return std::nullopt;
  program.names = version >= 5 ? count_described_names(header, is_long) : count_names(header);
  return program;
}

}  // namespace

std::uint64_t count_line_rows(format::Bytes section, std::uint64_t offset, std::endian order) {
  const auto program = read_header(section, offset, order);
  if (!program) return 0;
  std::uint64_t rows = program->names;
  format::Cursor in(program->opcodes, order);
  while (in.left() > 0) {
    const std::uint8_t opcode = in.u8();
    if (opcode >= program->first_special) {
      ++rows;
    } else if (opcode == 0) {  // an extended opcode: its size, then its number
      const std::uint64_t size = unwind::read_uleb128(in);
      if (size == 0 || size > in.left()) return rows;
      rows += in.u8() == DW_LNE_end_sequence ? 1 : 0;
      in.skip(size - 1);
    } else if (opcode == DW_LNS_fixed_advance_pc) {
      in.skip(2);
    } else {
      rows += opcode == DW_LNS_copy ? 1 : 0;
      for (unsigned i = 0; i < program->arguments[opcode]; ++i) unwind::read_uleb128(in);
    }
  }
  return rows;
}

LineTables::LineTables(const DebugImage& image)
    : section_(image.section(".debug_line")), order_(image.order()) {
  const format::Bytes compressed = image.section(".zdebug_line");
  if (compressed.empty()) return;
  auto unpacked = unwind::unpack_zdebug(compressed, unwind::max_decompressed(image.size()));
  if (unpacked) unpacked_ = std::move(*unpacked);
  section_ = unpacked_;
}

std::uint64_t LineTables::rows_to_read(std::uint64_t offset) const {
  return read_.contains(offset) ? 0 : count_line_rows(section_, offset, order_);
}

}  // namespace tacho::symbolize
