#include "bpf/object/elf_object.h"

#include <elf.h>
#include <linux/bpf.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <string>

namespace tacho::bpf {
namespace {

using format::Bytes;
using format::Cursor;

struct MachineRow {
  std::uint16_t machine;
  std::string_view name;
};
constexpr MachineRow kMachines[] = {
    {EM_386, "i386"},      {EM_ARM, "ARM"},       {EM_PPC64, "PowerPC"}, {EM_S390, "s390"},
    {EM_X86_64, "x86-64"}, {EM_AARCH64, "ARM64"}, {EM_RISCV, "RISC-V"},
};

Result<> check_elf_header(const format::ElfHeader& header) {
  if (header.order != std::endian::native)
    return Error{"an ELF object of the other byte order; compile it on or for this machine"};
  if (header.machine != EM_BPF && header.machine != EM_NONE) {
    const auto row = std::ranges::find(kMachines, header.machine, &MachineRow::machine);
    const std::string name =
        row == std::end(kMachines) ? "machine " + std::to_string(header.machine) : std::string(row->name);
    return Error{"an ELF file for " + name +
                 ", not for BPF; compile the program with clang -target bpf -O2 -g -c"};
  }
  if (!header.is_64 || header.type != ET_REL)
    return Error{"not a relocatable 64-bit BPF object; compile the program with clang -target bpf -O2 -g -c"};
  return Done{};
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
  const auto elf = format::ElfView::parse(file);
  if (!elf)
    return Error{"not an ELF object (a BPF program is compiled by clang -target bpf; C source ends in .c)"};
  if (auto checked = check_elf_header(elf->header()); !checked) return std::move(checked.error());
  if (elf->sections().empty() || elf->sections().size() != elf->header().section_count)
    return Error{"damaged: its section table is outside the file"};
  ElfObject object;
  for (const format::ElfSection& section : elf->sections()) {
    const Bytes content = elf->content(section);
    const bool has_bytes = section.type != SHT_NULL && section.type != SHT_NOBITS;
    if (has_bytes && content.size() != section.size)
      return Error{"damaged: section " + std::to_string(object.sections.size()) + " is outside the file"};
    object.sections.push_back({elf->name(section), section.type, section.flags, content});
    if (section.type != SHT_SYMTAB || section.link >= elf->sections().size()) continue;
    object.symbols.clear();
    elf->each_symbol(section, [&object](const format::ElfSymbol& symbol) {
      object.symbols.push_back(symbol);
      return false;
    });
  }
  return object;
}

Result<> refuse_legacy_maps(const ElfObject& object) {
  const ElfSection* maps = object.find("maps");
  if (maps == nullptr) return Done{};
  const auto index = static_cast<std::uint16_t>(maps - object.sections.data());
  const auto map = std::ranges::find_if(object.symbols, [&](const format::ElfSymbol& symbol) {
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
