#include "symbolize/elf/elf_file.h"

#include <gelf.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <span>
#include <utility>

#include "symbolize/elf/debug_image.h"

namespace tacho::symbolize {
namespace {

constexpr std::uint64_t kLargestNotes = 1 << 20;  // bytes of one note segment
constexpr std::size_t kMostSections = 1 << 18;  // -ffunction-sections makes a tenth of this in large objects
constexpr std::uint64_t kLargestTable = std::uint64_t{1} << 30;  // bytes of one symbol or string table

struct Section {
  Elf_Scn* handle = nullptr;
  GElf_Shdr header{};
  std::string_view name;  // valid as long as the Elf
};

std::string_view text_at(std::string_view table, std::uint64_t offset) {
  if (offset >= table.size()) return {};
  const std::string_view rest = table.substr(offset);
  return rest.substr(0, rest.find('\0'));
}

std::optional<format::BuildId> build_id_in(const Elf_Data* notes, std::endian order) {
  if (!notes || !notes->d_buf) return std::nullopt;
  return format::build_id_in_notes({static_cast<const std::byte*>(notes->d_buf), notes->d_size}, order);
}

Binding binding_of(const GElf_Sym& symbol) {
  const int binding = GELF_ST_BIND(symbol.st_info);
  return binding == STB_WEAK ? Binding::Weak : binding == STB_GLOBAL ? Binding::Global : Binding::Local;
}

LoadMap load_map_of(const std::vector<GElf_Phdr>& segments) {
  std::vector<LoadMap::Segment> loads;
  for (const GElf_Phdr& segment : segments) {
    if (segment.p_type != PT_LOAD) continue;
    loads.push_back(
        {segment.p_offset, segment.p_vaddr, std::max(segment.p_memsz, segment.p_filesz), segment.p_filesz});
  }
  return LoadMap(std::move(loads));
}

bool is_function_or_object(const GElf_Sym& symbol) {
  const int type = GELF_ST_TYPE(symbol.st_info);
  return (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_OBJECT) && symbol.st_shndx != SHN_UNDEF;
}

// A label without type or size, as in assembler sources.
bool is_label(const GElf_Sym& symbol) {
  return GELF_ST_TYPE(symbol.st_info) == STT_NOTYPE && symbol.st_shndx != SHN_UNDEF &&
         symbol.st_other != STV_HIDDEN && symbol.st_other != STV_INTERNAL;
}

bool holds_code_or_data(std::string_view section) {
  return section.find("text") != std::string_view::npos || section.find("data") != std::string_view::npos;
}

// ARM's mapping symbols ("$x", "$d.12") say where code or data begins; they are no functions.
bool is_mapping_symbol(std::uint16_t machine, std::string_view name) {
  constexpr std::string_view kKinds = "adtx";
  return (machine == EM_ARM || machine == EM_AARCH64) && name.size() >= 2 && name[0] == '$' &&
         kKinds.find(name[1]) != std::string_view::npos && (name.size() == 2 || name[2] == '.');
}

struct PltShape {
  std::uint64_t header = 0, entry = 0;  // bytes
};

// For machines that perf does not list, it uses the section's entry size.
PltShape plt_shape(std::uint16_t machine, std::uint64_t entry_size) {
  struct Row {
    std::uint16_t machine;
    PltShape shape;
  };
  constexpr Row kRows[] = {
      {EM_ARM, {20, 12}}, {EM_AARCH64, {32, 16}}, {EM_SPARC, {48, 12}}, {EM_SPARCV9, {128, 32}}};
  const auto row = std::ranges::find(kRows, machine, &Row::machine);
  return row == std::end(kRows) ? PltShape{entry_size, entry_size} : row->shape;
}

}  // namespace

std::optional<format::ElfAddress> LoadMap::address_of(format::FileOffset offset) const {
  const Segment* found = nullptr;
  for (const Segment& segment : segments_) {
    if (offset.value < segment.offset || offset.value - segment.offset >= segment.size) continue;
    const bool is_in_file = offset.value - segment.offset < segment.file_size;
    if (is_in_file || !found) found = &segment;
    if (is_in_file) break;
  }
  if (!found) return std::nullopt;
  return format::ElfAddress{offset.value - found->offset + found->address};
}

std::optional<format::FileOffset> LoadMap::offset_of(format::ElfAddress address) const {
  for (const Segment& segment : segments_) {
    if (address.value < segment.address || address.value - segment.address >= segment.size) continue;
    return format::FileOffset{address.value - segment.address + segment.offset};
  }
  return std::nullopt;
}

struct ElfFile::State {
  format::Fd fd;  // closed after the Elf that reads from it
  OwnedElf elf;
  std::uint64_t size = 0;  // bytes
  GElf_Ehdr header{};
  std::vector<Section> sections;  // by index; sections that cannot be read are empty
  std::vector<GElf_Phdr> segments;
  LoadMap loads;

  // Reads the headers by `elf`.
  Result<> read_headers() {
    if (!elf || elf_kind(elf.get()) != ELF_K_ELF || !gelf_getehdr(elf.get(), &header))
      return Error{"not an ELF file"};
    std::size_t count = 0, names = 0;
    if (elf_getphdrnum(elf.get(), &count) == 0) {
      for (std::size_t i = 0; i < count; ++i) {
        GElf_Phdr segment;
        if (!gelf_getphdr(elf.get(), static_cast<int>(i), &segment)) break;
        segments.push_back(segment);
      }
    }
    loads = load_map_of(segments);
    if (elf_getshdrnum(elf.get(), &count) != 0 || elf_getshdrstrndx(elf.get(), &names) != 0) return Done{};
    count = std::min({count, static_cast<std::size_t>(size / sizeof(Elf32_Shdr)), kMostSections});
    sections.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      Section& section = sections[i];
      section.handle = elf_getscn(elf.get(), i);
      if (section.handle && !gelf_getshdr(section.handle, &section.header)) section.handle = nullptr;
    }
    if (names >= count || !sections[names].handle) return Done{};
    const std::string_view texts = text(sections[names]);
    for (Section& section : sections) section.name = text_at(texts, section.header.sh_name);
    return Done{};
  }

  std::endian order() const {
    return header.e_ident[EI_DATA] == ELFDATA2MSB ? std::endian::big : std::endian::little;
  }

  const Section* section(std::string_view name) const {
    const auto found =
        std::ranges::find_if(sections, [&](const Section& s) { return s.handle && s.name == name; });
    return found == sections.end() ? nullptr : &*found;
  }

  const Section* section(std::size_t number) const {
    return number < sections.size() && sections[number].handle ? &sections[number] : nullptr;
  }

  const Section* symbols(std::string_view name, std::uint32_t type) const {
    const Section* const found = section(name);
    return found && found->header.sh_type == type ? found : nullptr;
  }

  // Null when the section is not inside the file, is compressed or too large to be a symbol table.
  Elf_Data* data(const Section& section) const {
    const bool is_compressed = (section.header.sh_flags & SHF_COMPRESSED) != 0;
    if (!is_inside(section) || is_compressed || section.header.sh_size > kLargestTable) return nullptr;
    return elf_getdata(section.handle, nullptr);
  }

  std::string_view text(const Section& section) const {
    const Elf_Data* const found = data(section);
    return found && found->d_buf ? std::string_view(static_cast<const char*>(found->d_buf), found->d_size)
                                 : std::string_view{};
  }

  bool is_inside(const Section& section) const {
    const GElf_Shdr& row = section.header;
    return row.sh_type != SHT_NOBITS && row.sh_offset <= size && row.sh_size <= size - row.sh_offset;
  }

  std::size_t symbol_count(const Elf_Data& rows) const {
    return rows.d_size / gelf_fsize(elf.get(), ELF_T_SYM, 1, EV_CURRENT);
  }

  // Adds all entries of one symbol table.
  void add_symbols(const Section& rows, const State& loaded, Labels labels, SymbolTable& table) const {
    const Section* const strings = section(rows.header.sh_link);
    Elf_Data* const found = data(rows);
    if (!strings || !found) return;
    const std::string_view texts = table.own(std::string(text(*strings)));
    const std::size_t count = symbol_count(*found);
    table.reserve(count);
    const RangeIndex functions =
        labels == Labels::All ? RangeIndex() : functions_around_labels(*found, count);
    for (std::size_t i = 0; i < count; ++i) {
      GElf_Sym symbol;
      if (!gelf_getsym(found, static_cast<int>(i), &symbol)) return;
      if (is_label(symbol) && functions.find_range(symbol.st_value)) continue;
      add_symbol(symbol, text_at(texts, symbol.st_name), loaded, table);
    }
  }

  // The ranges of functions, each without its first byte; none if there are no labels, as in most files.
  RangeIndex functions_around_labels(Elf_Data& rows, std::size_t count) const {
    std::vector<RankedRange> functions;
    bool has_labels = false;
    for (std::size_t i = 0; i < count; ++i) {
      GElf_Sym symbol;
      if (!gelf_getsym(&rows, static_cast<int>(i), &symbol)) break;
      has_labels |= is_label(symbol);
      if (GELF_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF || symbol.st_size < 2)
        continue;
      functions.push_back({.start = symbol.st_value + 1,
                           .end = format::end_of_range(symbol.st_value, symbol.st_size),
                           .owner = static_cast<std::uint32_t>(functions.size())});
    }
    return has_labels ? RangeIndex(std::move(functions)) : RangeIndex();
  }

  // Adds one entry of a symbol table.
  void add_symbol(const GElf_Sym& symbol, std::string_view name, const State& loaded,
                  SymbolTable& table) const {
    const bool label = is_label(symbol);
    if (name.empty() || (!label && !is_function_or_object(symbol)) ||
        is_mapping_symbol(header.e_machine, name))
      return;
    const Section* own_section = section(std::size_t{symbol.st_shndx});
    if (symbol.st_shndx >= SHN_LORESERVE || !own_section || (own_section->header.sh_flags & SHF_ALLOC) == 0)
      return;
    if (own_section->header.sh_type == SHT_NOBITS) own_section = loaded.section(std::size_t{symbol.st_shndx});
    if (!own_section || (label && !holds_code_or_data(own_section->name))) return;
    std::uint64_t value = symbol.st_value;
    if (header.e_machine == EM_ARM && GELF_ST_TYPE(symbol.st_info) == STT_FUNC) value &= ~std::uint64_t{1};
    const auto offset = loaded.loads.offset_of({value});
    const std::uint64_t start =
        offset ? offset->value : value - own_section->header.sh_addr + own_section->header.sh_offset;
    table.add_symbol({.start = start,
                      .end = format::end_of_range(start, symbol.st_size),
                      .name = name,
                      .binding = binding_of(symbol),
                      .is_data = GELF_ST_TYPE(symbol.st_info) == STT_OBJECT});
  }

  // The n-th entry of .plt belongs to the n-th relocation of .rela.plt.
  void add_plt(Demangler* demangler, SymbolTable& table) const {
    const Section* const dynamic = symbols(".dynsym", SHT_DYNSYM);
    const Section* const plt = section(".plt");
    const Section* relocations = section(".rela.plt");
    if (!relocations) relocations = section(".rel.plt");
    if (!dynamic || !plt || !relocations || section(relocations->header.sh_link) != dynamic) return;
    const Section* const strings = section(dynamic->header.sh_link);
    Elf_Data* const rows = data(*relocations);
    Elf_Data* const symbols_of = data(*dynamic);
    if (!strings || !rows || !symbols_of) return;
    const bool has_addends = relocations->header.sh_type == SHT_RELA;
    const std::size_t row_size = gelf_fsize(elf.get(), has_addends ? ELF_T_RELA : ELF_T_REL, 1, EV_CURRENT);
    const PltShape shape = plt_shape(header.e_machine, plt->header.sh_entsize);
    std::uint64_t start = plt->header.sh_offset + shape.header;
    std::uint64_t left = size;  // limit of name bytes: many relocations may refer to one long name
    for (std::size_t i = 0; i < rows->d_size / row_size; ++i, start += shape.entry) {
      GElf_Rela rela{};
      GElf_Rel rel{};
      const int number = static_cast<int>(i);
      const bool is_read = has_addends ? gelf_getrela(rows, number, &rela) != nullptr
                                       : gelf_getrel(rows, number, &rel) != nullptr;
      GElf_Sym symbol;
      const auto target = GELF_R_SYM(has_addends ? rela.r_info : rel.r_info);
      if (!is_read || !gelf_getsym(symbols_of, static_cast<int>(target), &symbol)) return;
      const std::string_view name = text_at(text(*strings), symbol.st_name);
      if (name.size() > left) return;
      left -= name.size();
      const auto readable = demangler ? demangle(name) : std::nullopt;
      table.add_symbol({.start = start,
                        .end = start + shape.entry,
                        .name = table.own(readable.value_or(std::string(name)) + "@plt"),
                        .binding = Binding::Global});
    }
  }
};

ElfFile::ElfFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
ElfFile::ElfFile(ElfFile&&) noexcept = default;
ElfFile& ElfFile::operator=(ElfFile&&) noexcept = default;
ElfFile::~ElfFile() = default;

Result<ElfFile> ElfFile::open(format::Fd file) {
  auto state = std::make_unique<State>();
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return system_error("fstat", errno);
  if (!S_ISREG(status.st_mode)) return Error{"is not a regular file", EINVAL};
  elf_version(EV_CURRENT);
  state->size = static_cast<std::uint64_t>(status.st_size);
  state->fd = std::move(file);
  // Read, not mapped: a file that shrinks meanwhile then gives an error instead of a SIGBUS.
  errno = 0;
  state->elf.reset(elf_begin(state->fd.get(), ELF_C_READ, nullptr));
  const int refused = state->elf ? 0 : errno;
  auto read = state->read_headers();
  if (!read && refused != 0) read.error().code = refused;
  if (!read) return std::move(read.error());
  return ElfFile(std::move(state));
}

Result<ElfFile> ElfFile::in_memory(format::Bytes image) {
  auto state = std::make_unique<State>();
  elf_version(EV_CURRENT);
  state->size = image.size();
  // libelf takes a non-const image, but writes to it only in elf_update(), which is not used.
  auto* const bytes = const_cast<char*>(reinterpret_cast<const char*>(image.data()));
  if (!image.empty()) state->elf.reset(elf_memory(bytes, image.size()));
  if (auto read = state->read_headers(); !read) return std::move(read.error());
  return ElfFile(std::move(state));
}

format::BuildId ElfFile::build_id() const {
  const std::endian order = state_->order();
  // Sections first: the program headers of a debug file still have the offsets of the stripped file.
  for (const Section& section : state_->sections) {
    if (section.handle == nullptr || section.header.sh_type != SHT_NOTE || !state_->is_inside(section))
      continue;
    if (const auto id = build_id_in(elf_rawdata(section.handle, nullptr), order)) return *id;
  }
  for (const GElf_Phdr& segment : state_->segments) {
    const bool is_inside =
        segment.p_offset <= state_->size && segment.p_filesz <= state_->size - segment.p_offset;
    if (segment.p_type != PT_NOTE || !is_inside || segment.p_filesz > kLargestNotes) continue;
    const auto offset = static_cast<std::int64_t>(segment.p_offset);
    Elf_Data* const notes = elf_getdata_rawchunk(state_->elf.get(), offset, segment.p_filesz, ELF_T_BYTE);
    if (const auto id = build_id_in(notes, order)) return *id;
  }
  return {};
}

std::string ElfFile::debuglink() const {
  const Section* const section = state_->section(".gnu_debuglink");
  const std::string_view name = section ? text_at(state_->text(*section), 0) : std::string_view{};
  // Accepts a plain file name only: a path would lead out of the folders that may be searched.
  if (name.find('/') != std::string_view::npos || name == "." || name == "..") return {};
  return std::string(name);
}

std::optional<std::uint32_t> ElfFile::debuglink_checksum() const {
  const Section* const section = state_->section(".gnu_debuglink");
  const std::string_view content = section ? state_->text(*section) : std::string_view{};
  if (content.size() < 4) return std::nullopt;
  return format::Cursor(std::as_bytes(std::span(content)).last(4), state_->order()).u32();
}

bool ElfFile::has_lines() const {
  constexpr std::string_view kNames[] = {".debug_info", ".debug_line", ".zdebug_info", ".zdebug_line"};
  return std::ranges::any_of(kNames, [this](std::string_view name) {
    const Section* const found = state_->section(name);
    return found && state_->is_inside(*found);
  });
}

LoadMap ElfFile::load_map() const { return state_->loads; }

// As the kernel's module loader: code first, in the file's order; init sections are in a region of their own.
LoadMap ElfFile::module_load_map() const {
  constexpr std::uint64_t kCode = SHF_ALLOC | SHF_EXECINSTR;
  std::vector<LoadMap::Segment> loads;
  std::uint64_t address = 0;
  for (const Section& section : state_->sections) {
    const GElf_Shdr& row = section.header;
    if (!section.handle || (row.sh_flags & kCode) != kCode || section.name.starts_with(".init")) continue;
    const std::uint64_t alignment = std::has_single_bit(row.sh_addralign) ? row.sh_addralign : 1;
    address = (address + alignment - 1) & ~(alignment - 1);
    loads.push_back({row.sh_offset, address, row.sh_size, row.sh_size});
    address = format::end_of_range(address, row.sh_size);
  }
  return LoadMap(std::move(loads));
}

format::Bytes ElfFile::embedded_symbols() const {
  const Section* const section = state_->section(".gnu_debugdata");
  return section ? std::as_bytes(std::span(state_->text(*section))) : format::Bytes{};
}

std::optional<format::ElfAddress> ElfFile::address_of(std::string_view symbol) const {
  const Section* const rows = state_->symbols(".symtab", SHT_SYMTAB);
  const Section* const strings = rows ? state_->section(rows->header.sh_link) : nullptr;
  Elf_Data* const found = strings ? state_->data(*rows) : nullptr;
  if (!found) return std::nullopt;
  const std::string_view texts = state_->text(*strings);
  const std::size_t count = state_->symbol_count(*found);
  for (std::size_t i = 0; i < count; ++i) {
    GElf_Sym row;
    if (!gelf_getsym(found, static_cast<int>(i), &row)) break;
    if (row.st_shndx != SHN_UNDEF && text_at(texts, row.st_name) == symbol) {
      return format::ElfAddress{row.st_value};
    }
  }
  return std::nullopt;
}

Error wrong_build_id(const format::BuildId& seen) {
  return Error{seen.empty() ? "has no build id" : "has another build id, " + seen.hex()};
}

bool ElfFile::has_full_symbols() const { return state_->symbols(".symtab", SHT_SYMTAB) != nullptr; }
bool ElfFile::has_dynamic_symbols() const { return state_->symbols(".dynsym", SHT_DYNSYM) != nullptr; }

Result<SymbolTable> read_symbols(const ElfFile& file, const ElfFile& loaded, Demangler* demangler,
                                 Labels labels) {
  const ElfFile::State& state = *file.state_;
  if (!file.has_full_symbols() && !file.has_dynamic_symbols()) return Error{"has no symbol table"};
  SymbolTable table;
  for (const Section* rows : {state.symbols(".symtab", SHT_SYMTAB), state.symbols(".dynsym", SHT_DYNSYM)}) {
    if (!rows) continue;
    state.add_symbols(*rows, *loaded.state_, labels, table);
    table.fix_up([demangler](std::string_view name) { return demangler ? demangler->shown(name) : name; });
  }
  if (table.empty()) return Error{"its symbol table is empty or cannot be read"};
  loaded.state_->add_plt(demangler, table);
  table.finish();
  return table;
}

}  // namespace tacho::symbolize
