#include "bpf/object/elf_object.h"

#include <elf.h>
#include <linux/bpf.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <string>

namespace tacho::bpf {
namespace {

using format::Bytes;
using format::Cursor;

constexpr std::array<std::uint8_t, 4> kMagic{0x7f, 'E', 'L', 'F'};

struct MachineRow {
  std::uint16_t machine;
  std::string_view name;
};
constexpr MachineRow kMachines[] = {
    {EM_386, "i386"},      {EM_ARM, "ARM"},       {EM_PPC64, "PowerPC"}, {EM_S390, "s390"},
    {EM_X86_64, "x86-64"}, {EM_AARCH64, "ARM64"}, {EM_RISCV, "RISC-V"},
};

struct Header {
  std::uint64_t section_offset = 0;
  std::uint16_t section_count = 0;
  std::uint16_t names_section = 0;
};

Result<Header> parse_header(Bytes file) {
  Cursor in(file);
  for (const std::uint8_t expected : kMagic)
    if (in.u8() != expected)
      return Error{"not an ELF object (a BPF program is compiled by clang -target bpf; C source ends in .c)"};
  const std::uint8_t word_size = in.u8();
  const std::uint8_t order = in.u8();
  in.skip(EI_NIDENT - EI_VERSION);
  const std::uint16_t type = in.u16();
  const std::uint16_t machine = in.u16();
  if (in.failed()) return Error{"cut short inside the ELF header"};
  if (order != (std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB))
    return Error{"an ELF object of the other byte order; compile it on or for this machine"};
  if (machine != EM_BPF && machine != EM_NONE) {
    const auto row = std::ranges::find(kMachines, machine, &MachineRow::machine);
    const std::string name =
        row == std::end(kMachines) ? "machine " + std::to_string(machine) : std::string(row->name);
    return Error{"an ELF file for " + name +
                 ", not for BPF; compile the program with clang -target bpf -O2 -g -c"};
  }
  if (word_size != ELFCLASS64 || type != ET_REL)
    return Error{"not a relocatable 64-bit BPF object; compile the program with clang -target bpf -O2 -g -c"};
  in.skip(4 + 8 + 8);  // version, entry, program headers
  Header header;
  header.section_offset = in.u64();
  in.skip(4 + 2 + 2 + 2 + 2);  // flags, header size, program header size and count, section header size
  header.section_count = in.u16();
  header.names_section = in.u16();
  if (in.failed()) return Error{"cut short inside the ELF header"};
  return header;
}

struct SectionHeader {
  std::uint32_t name = 0, type = 0, link = 0;
  std::uint64_t flags = 0, offset = 0, size = 0;
};

SectionHeader parse_section_header(Cursor& in) {
  SectionHeader section;
  section.name = in.u32();
  section.type = in.u32();
  section.flags = in.u64();
  in.u64();  // address
  section.offset = in.u64();
  section.size = in.u64();
  section.link = in.u32();
  in.skip(4 + 8 + 8);  // info, alignment, entry size
  return section;
}

std::string_view name_at(Bytes names, std::uint32_t offset) {
  return offset < names.size() ? format::text_of(names.subspan(offset)) : std::string_view{};
}

std::vector<ElfSymbol> parse_symbols(Bytes table, Bytes names) {
  std::vector<ElfSymbol> symbols;
  for (Cursor in(table); in.left() >= sizeof(Elf64_Sym);) {
    ElfSymbol symbol;
    symbol.name = name_at(names, in.u32());
    in.skip(2);  // kind and visibility
    symbol.section = in.u16();
    symbol.value = in.u64();
    in.skip(8);  // size
    symbols.push_back(symbol);
  }
  return symbols;
}

std::string map_type_name(std::uint32_t type) {
  constexpr std::string_view kNames[] = {"UNSPEC",           "HASH",        "ARRAY",          "PROG_ARRAY",
                                         "PERF_EVENT_ARRAY", "PERCPU_HASH", "PERCPU_ARRAY",   "STACK_TRACE",
                                         "CGROUP_ARRAY",     "LRU_HASH",    "LRU_PERCPU_HASH"};
  return type < std::size(kNames) ? "BPF_MAP_TYPE_" + std::string(kNames[type]) : std::to_string(type);
}

}  // namespace

const ElfSection* ElfObject::find(std::string_view name) const {
  const auto section = std::ranges::find(sections, name, &ElfSection::name);
  return section == sections.end() ? nullptr : &*section;
}

Result<ElfObject> parse_elf_object(Bytes file) {
  const auto header = parse_header(file);
  if (!header) return header.error();
  Cursor at(file);
  at.skip(header->section_offset);
  Cursor table(at.take_items(header->section_count, sizeof(Elf64_Shdr)));
  if (at.failed() || header->section_count == 0)
    return Error{"damaged: its section table is outside the file"};

  std::vector<SectionHeader> headers;
  for (std::uint16_t i = 0; i < header->section_count; ++i) headers.push_back(parse_section_header(table));
  std::vector<Bytes> contents;
  for (const SectionHeader& section : headers) {
    Cursor body(file);
    if (section.type != SHT_NULL && section.type != SHT_NOBITS) body.skip(section.offset);
    contents.push_back(section.type == SHT_NULL || section.type == SHT_NOBITS ? Bytes{}
                                                                              : body.take(section.size));
    if (body.failed())
      return Error{"damaged: section " + std::to_string(contents.size() - 1) + " is outside the file"};
  }

  ElfObject object;
  const Bytes names = header->names_section < contents.size() ? contents[header->names_section] : Bytes{};
  for (std::size_t i = 0; i < headers.size(); ++i) {
    object.sections.push_back(
        {name_at(names, headers[i].name), headers[i].type, headers[i].flags, contents[i]});
    if (headers[i].type == SHT_SYMTAB && headers[i].link < contents.size())
      object.symbols = parse_symbols(contents[i], contents[headers[i].link]);
  }
  return object;
}

Result<> refuse_legacy_maps(const ElfObject& object) {
  const ElfSection* maps = object.find("maps");
  if (maps == nullptr) return Done{};
  const auto index = static_cast<std::uint16_t>(maps - object.sections.data());
  const auto map = std::ranges::find_if(object.symbols, [&](const ElfSymbol& symbol) {
    return symbol.section == index && !symbol.name.empty();
  });
  if (map == object.symbols.end())
    return Error{"its maps stand in the old section \"maps\"; define them with BTF, in SEC(\".maps\")"};
  Cursor definition(maps->content);
  definition.skip(map->value);
  const std::uint32_t type = definition.u32();
  const std::uint32_t key_size = definition.u32();
  const std::uint32_t value_size = definition.u32();
  const std::uint32_t max_entries = definition.u32();
  // tacho sizes perf event arrays itself, and the old ones were often too small.
  const std::string entries = type == BPF_MAP_TYPE_PERF_EVENT_ARRAY
                                  ? ""
                                  : " __uint(max_entries, " + std::to_string(max_entries) + ");";
  return Error{"map '" + std::string(map->name) +
               "' stands in the old section \"maps\", which libbpf no longer loads; write instead: struct { "
               "__uint(type, " +
               map_type_name(type) + "); __uint(key_size, " + std::to_string(key_size) +
               "); __uint(value_size, " + std::to_string(value_size) + ");" + entries + " } " +
               std::string(map->name) + " SEC(\".maps\");"};
}

std::string object_name(const std::string& path) {
  const std::string file = path.substr(path.rfind('/') + 1);
  std::string name = file.substr(0, file.find('.'));
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name.empty() ? "object" : name;
}

}  // namespace tacho::bpf
