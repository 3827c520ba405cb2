#include "symbolize/elf/module_files.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/auxv.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "format/base/file.h"
#include "format/codec/compression.h"
#include "symbolize/elf/dwarf_lines.h"
#include "symbolize/elf/go_tables.h"
#include "symbolize/files/build_id_match.h"
#include "symbolize/files/decompress.h"
#include "unwind/cfi.h"
#include "unwind/elf_image.h"
#include "unwind/fde_index.h"
#include "unwind/packed_section.h"

namespace tacho::symbolize {

Result<std::vector<std::byte>> running_vdso() {
  const auto* const start = reinterpret_cast<const std::byte*>(::getauxval(AT_SYSINFO_EHDR));
  if (start == nullptr) return Error{"this kernel has none"};
  Elf64_Ehdr header;
  std::memcpy(&header, start, sizeof header);
  // The table of sections is its last part.
  const std::uint64_t size = header.e_shoff + std::uint64_t{header.e_shnum} * header.e_shentsize;
  return std::vector<std::byte>(start, start + size);
}

Result<std::vector<std::byte>> running_vdso(const format::BuildId& wanted) {
  if (wanted.empty()) return Error{"the capture does not have its build id"};
  auto image = running_vdso();
  if (!image) return image;
  const auto seen = format::build_id_in_elf(*image);
  if (!seen) return Error{"this kernel's has no build id"};
  if (*seen != wanted) return Error{"this kernel's has another build id, " + seen->hex()};
  return image;
}

namespace {

constexpr std::uint64_t kLargestModule = std::uint64_t{1} << 28;  // bytes of a kernel module
constexpr std::string_view kDeleted = " (deleted)";               // the kernel's mark after a path
constexpr std::size_t kPiece = std::size_t{1} << 20;              // bytes of a file summed at a time

// The limit of decompressed bytes of a .gnu_debugdata of `size` bytes: symbols pack to a sixth at best.
std::uint64_t most_embedded(std::uint64_t size) { return (std::uint64_t{1} << 24) + 8 * size; }

// The part of a function [start, end) in a code segment, as offsets in the file; nothing: it starts
// elsewhere.
std::optional<FunctionRanges::Range> range_in_file(const unwind::ElfImage::Code& code, std::uint64_t start,
                                                   std::uint64_t end) {
  const std::uint64_t before = start - code.address;
  if (start < code.address || before >= code.size) return std::nullopt;
  return FunctionRanges::Range{code.offset + before,
                               code.offset + before + std::min(end - start, code.size - before)};
}

// The functions in .eh_frame. All are listed, since .eh_frame itself takes several times as much memory.
std::unique_ptr<FunctionRanges> all_functions(const unwind::ElfImage& image,
                                              const unwind::CfiSection& section) {
  const std::vector<unwind::ElfImage::Code> code = image.code_segments();
  const std::vector<unwind::FdeRange> fdes = unwind::list_fdes(section);
  std::vector<FunctionRanges::Range> ranges;
  ranges.reserve(fdes.size());
  for (const unwind::FdeRange& fde : fdes) {
    if (fde.is_signal_frame) continue;
    for (const unwind::ElfImage::Code& segment : code) {
      const auto range = range_in_file(segment, fde.start, fde.end);
      if (!range) continue;
      ranges.push_back(*range);
      break;
    }
  }
  return std::make_unique<FunctionRanges>(std::move(ranges));
}

// Decompresses a kernel module, as distributions pack them.
Result<std::vector<std::byte>> unpack_module(format::Bytes packed, const std::string& name) {
  const std::uint64_t most = unwind::max_decompressed(packed.size());
  if (name.ends_with(".xz")) return unpack_xz(packed, most);
  if (!name.ends_with(".zst")) return Error{"is packed in a way that is not known; unpack it to a .ko"};
  auto inflater = format::RecordInflater::create();
  format::Buffer bytes;
  if (!inflater) return std::move(inflater.error());
  if (auto done = inflater->inflate(packed, most, bytes); !done) return std::move(done.error());
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

// Whether it is unknown if there is such a file: the system gives no descriptor, memory or data now, or
// several files match. No other file is used instead, since that could give other names.
bool is_refusal(const Error& error) {
  return error.code == ENOTUNIQ || error.code == EMFILE || error.code == ENFILE || error.code == ENOMEM ||
         error.code == EIO;
}

bool has_checksum(int file, std::uint32_t wanted) {
  std::uint32_t seen = 0;
  for (std::uint64_t offset = 0;;) {
    const auto piece = format::read_at(file, offset, kPiece);
    if (!piece) return false;
    if (piece->empty()) return seen == wanted;
    seen = crc32(*piece, seen);
    offset += piece->size();
  }
}

std::optional<GoTables> go_tables_of(format::Fd file) {
  auto image = unwind::ElfImage::open(std::move(file), unwind::ElfImage::Width::Any);
  return image ? GoTables::find_in(std::move(*image)) : std::nullopt;
}

// The functions in the tables of a Go program; empty: it is none.
SymbolTable go_functions(const format::Fd& file, const LoadMap& loads) {
  SymbolTable table;
  const auto tables = go_tables_of(format::Fd(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0)));
  for (std::size_t number = 0; tables && number < tables->size(); ++number) {
    const auto function = tables->function_at(number);
    const auto start = function ? loads.offset_of({function->start}) : std::nullopt;
    if (!start || function->name.empty()) continue;
    const std::uint64_t end = format::end_of_range(start->value, function->end - function->start);
    table.add_symbol({.start = start->value, .end = end, .name = table.own(std::string(function->name))});
  }
  table.finish();
  return table;
}

}  // namespace

// The file if it is the wanted one.
Result<ModuleFiles::Opened> ModuleFiles::open_checked(Result<format::Fd> file, const Candidate& candidate,
                                                      const std::string& name,
                                                      const format::BuildId& wanted) const {
  if (!file) return std::move(file.error());
  format::Fd again(::fcntl(file->get(), F_DUPFD_CLOEXEC, 0));
  if (!again) return system_error(name, errno);
  auto elf = ElfFile::open(std::move(*file));
  if (!elf) return std::move(elf.error()).in(name);
  if (match_build_ids(elf->build_id(), wanted) == BuildIdMatch::Other)
    return wrong_build_id(elf->build_id()).in(name);
  return Opened{std::move(again), std::move(*elf), candidate};
}

Result<ModuleFiles::Opened> ModuleFiles::open_candidate(const Candidate& candidate,
                                                        const format::BuildId& wanted) const {
  return open_checked(files_.open_candidate(candidate), candidate, files_.local_path(candidate), wanted);
}

Result<ModuleFiles::Opened> ModuleFiles::fetch(const format::BuildId& id, bool is_debug) const {
  if (!servers_) return Error{"no server is asked"};
  auto file = is_debug ? servers_->debug_information(id) : servers_->executable(id);
  return open_checked(std::move(file), {"", 'D', Host::This}, "debuginfod's file", id);
}

// The file that ran: where the capture says, in perf's cache, or from a server.
Result<ModuleFiles::Opened> ModuleFiles::own(const Module& module) const {
  const auto open_pinned = [&]() -> Result<Opened> {
    auto file = files_.open_pinned(module.path, module.build_id);
    if (!file) return std::move(file.error());
    return open_checked(std::move(file), {std::string(module.path), 'd'}, "a file that was held open",
                        module.build_id);
  };
  // Without a build id it is unknown whether the file of this name is the one that ran.
  if (module.build_id.empty())
    if (auto pinned = open_pinned(); pinned || pinned.error().code != ENOENT) return pinned;
  auto found = open_candidate({std::string(module.path), 'd'}, module.build_id);
  if (found)
    if (auto checked = files_.check_mapped(found->file, module); !checked) return std::move(checked.error());
  if (found || module.build_id.empty() || is_refusal(found.error())) return found;
  if (auto pinned = open_pinned()) return pinned;
  // Replaced while it ran, as an upgrade does: another file may have its name, so only the build id decides.
  if (module.path.ends_with(kDeleted)) {
    const std::string path(module.path.substr(0, module.path.size() - kDeleted.size()));
    if (auto again = open_candidate({path, 'd'}, module.build_id)) return again;
  }
  for (const Candidate& candidate : files_.candidates(std::string(module.path), module.build_id, "")) {
    if (candidate.source != 'B') continue;
    if (auto cached = open_candidate(candidate, module.build_id)) return cached;
  }
  if (!servers_) return found;
  auto fetched = fetch(module.build_id, false);
  if (fetched) return fetched;
  found.error().what += "; " + fetched.error().what;
  return found;
}

Result<format::Fd> ModuleFiles::file(const Module& module) const {
  auto ran = own(module);
  return ran ? std::move(ran->file) : Result<format::Fd>(std::move(ran.error()));
}

// The first candidate that has what `has` asks for. The file of a .gnu_debuglink is verified by the build id,
// or else by the link's checksum.
std::optional<ModuleFiles::Opened> ModuleFiles::debug_file(const Module& module, const Result<Opened>& own,
                                                           bool (ElfFile::*has)() const) const {
  const format::BuildId id = own ? own->elf.build_id() : module.build_id;
  const auto sum = own ? own->elf.debuglink_checksum() : std::nullopt;
  for (const Candidate& candidate :
       files_.candidates(std::string(module.path), id, own ? own->elf.debuglink() : "")) {
    auto found = open_candidate(candidate, id);
    if (!found || !(found->elf.*has)()) continue;
    if (candidate.source == 'l' && id.empty() && !(sum && has_checksum(found->file.get(), *sum))) continue;
    return std::move(*found);
  }
  if (!servers_ || id.empty()) return std::nullopt;
  if (own && (own->elf.*has)()) return std::nullopt;
  auto fetched = fetch(id, true);
  return fetched && (fetched->elf.*has)() ? std::optional(std::move(*fetched)) : std::nullopt;
}

// Nothing when the file has none, or none that can be read.
Result<std::optional<SymbolTable>> ModuleFiles::embedded(const ElfFile& file) const {
  const format::Bytes packed = file.embedded_symbols();
  if (packed.empty()) return std::optional<SymbolTable>();
  auto image = unpack_xz(packed, most_embedded(packed.size()));
  if (!image && image.error().code == EFBIG) return std::move(image.error()).in("its .gnu_debugdata");
  auto elf = image ? ElfFile::in_memory(*image) : Result<ElfFile>(image.error());
  auto table =
      elf ? read_symbols(*elf, file, demangler_, labels_) : Result<SymbolTable>(std::move(elf.error()));
  return table ? std::optional(std::move(*table)) : std::nullopt;
}

Result<ModuleSymbols> ModuleFiles::read_module(const Opened& file, const ElfFile& loaded, char letter) const {
  ModuleSymbols symbols;
  symbols.loads = loaded.load_map();
  symbols.build_id = loaded.build_id();
  symbols.letter = letter;
  symbols.is_full = file.elf.has_full_symbols();
  if (!symbols.is_full) {
    auto found = embedded(loaded);
    if (found)
      symbols.embedded = std::move(*found);
    else
      symbols.missing_reason = std::move(found.error());
  }
  auto table = read_symbols(file.elf, loaded, demangler_, labels_);
  if (table) symbols.table = std::move(*table);
  if (!table && !symbols.embedded)
    return symbols.missing_reason ? std::move(*symbols.missing_reason) : std::move(table.error());
  return symbols;
}

Result<ModuleSymbols> ModuleFiles::symbols(const Module& module) const {
  if (!module.path.starts_with('/')) return Error{"it was not mapped from a file"};
  const auto ran = own(module);
  if (!ran && is_refusal(ran.error())) return ran.error();
  if (const auto debug = debug_file(module, ran, &ElfFile::has_full_symbols)) {
    auto symbols = read_module(*debug, ran ? ran->elf : debug->elf, debug->candidate.source);
    if (symbols) return symbols;
  }
  if (!ran && module.build_id.empty()) return ran.error();
  if (!ran) return Error{ran.error().what + "; build id " + module.build_id.hex() + " was recorded"};
  auto symbols = read_module(*ran, ran->elf, ran->candidate.source);
  if (symbols && symbols->is_full) return symbols;
  if (auto functions = go_functions(ran->file, ran->elf.load_map()); !functions.empty()) {
    ModuleSymbols of_go;
    of_go.loads = ran->elf.load_map();
    of_go.build_id = ran->elf.build_id();
    of_go.letter = ran->candidate.source;
    of_go.is_full = true;
    of_go.table = std::move(functions);
    if (symbols && !symbols->table.empty()) of_go.embedded = std::move(symbols->table);
    return of_go;
  }
  if (symbols) return symbols;
  ModuleSymbols none;
  none.loads = ran->elf.load_map();
  none.build_id = ran->elf.build_id();
  none.missing_reason = std::move(symbols.error()).in(files_.local_path(ran->candidate));
  return none;
}

std::unique_ptr<FunctionRanges> ModuleFiles::function_ranges(const Module& module) const {
  auto opened = file(module);
  if (!opened) return nullptr;
  const auto image = unwind::ElfImage::open(std::move(*opened), unwind::ElfImage::Width::Any);
  if (!image) return nullptr;
  auto frames = unwind::eh_frame_of(*image);
  if (!frames) return nullptr;
  return all_functions(*image, {frames->bytes, frames->address, unwind::CfiForm::EhFrame, image->order(),
                                image->address_size()});
}

Result<ModuleSymbols> ModuleFiles::kernel_module_symbols(const Module& module) const {
  const std::string file(module.file), name = files_.local_path(file);
  auto image = files_.read_file(file, kLargestModule);
  if (!image) return std::move(image.error());
  const bool is_packed = !module.file.ends_with(".ko");
  if (is_packed) image = unpack_module(*image, file);
  auto elf = image ? ElfFile::in_memory(*image) : Result<ElfFile>(std::move(image.error()));
  if (!elf) return std::move(elf.error()).in(name);
  if (match_build_ids(elf->build_id(), module.build_id) == BuildIdMatch::Other)
    return Error{"has another build id, " + elf->build_id().hex()}.in(name);
  auto table = read_symbols(*elf, *elf, demangler_, labels_);
  if (!table) return std::move(table.error()).in(name);
  ModuleSymbols symbols;
  symbols.table = std::move(*table);
  symbols.loads = elf->module_load_map();
  symbols.letter = is_packed ? 'm' : 'K';
  symbols.is_full = elf->has_full_symbols();
  return symbols;
}

template <class Reader>
void ModuleFiles::find_supplementary_file(const Candidate& from, Reader& reader) const {
  const auto part = reader.supplementary_file();
  if (!part) return;
  for (const Candidate& candidate : DebugFiles::supplementary_files(from, part->path, part->build_id)) {
    // The reader checks a supplementary file itself.
    auto shared = open_candidate(candidate, part->is_supplementary ? format::BuildId{} : part->build_id);
    if (shared && reader.use_supplementary_file(std::move(shared->file))) return;
  }
}

Result<std::unique_ptr<LineSource>> ModuleFiles::read_lines(Opened file) const {
  const std::string name = files_.local_path(file.candidate);
  auto lines = DwarfLines::open(std::move(file.file), files_.root());
  if (!lines) return std::move(lines.error()).in(name);
  find_supplementary_file(file.candidate, *lines);
  return std::unique_ptr<LineSource>(std::make_unique<DwarfLines>(std::move(*lines)));
}

Result<std::unique_ptr<LineSource>> ModuleFiles::lines(const Module& module) const {
  if (!module.path.starts_with('/')) return std::unique_ptr<LineSource>();
  auto ran = own(module);
  if (ran && ran->elf.has_lines()) return read_lines(std::move(*ran));
  if (!ran && is_refusal(ran.error())) return std::unique_ptr<LineSource>();
  if (auto debug = debug_file(module, ran, &ElfFile::has_lines)) return read_lines(std::move(*debug));
  if (!ran) return std::unique_ptr<LineSource>();
  auto tables = go_tables_of(std::move(ran->file));
  return tables ? std::unique_ptr<LineSource>(std::make_unique<GoTables>(std::move(*tables))) : nullptr;
}

Result<std::optional<ModuleFiles::Parameters>> ModuleFiles::parameters(const Module& module) const {
  auto ran = own(module);
  if (!ran) return std::move(ran.error());
  LoadMap loads = ran->elf.load_map();
  auto file =
      ran->elf.has_lines() ? std::optional(std::move(*ran)) : debug_file(module, ran, &ElfFile::has_lines);
  if (!file) return std::optional<Parameters>{};
  auto functions = FunctionParameters::open(std::move(file->file));
  if (!functions) return std::move(functions.error()).in(files_.local_path(file->candidate));
  find_supplementary_file(file->candidate, *functions);
  return std::optional(Parameters{std::move(*functions), std::move(loads)});
}

Result<KernelSymbols> ModuleFiles::kernel_symbols(const std::string& path, const format::BuildId& id,
                                                  const std::string& reference,
                                                  std::uint64_t reference_address) const {
  const auto file = open_candidate({path, 'v', Host::This}, id);
  if (!file) return file.error();
  const auto address = file->elf.address_of(reference);
  if (!address) return Error{path + ": has no symbol " + reference + " to find where the kernel was loaded"};
  auto symbols = read_module(*file, file->elf, 'v');
  if (!symbols) return std::move(symbols.error()).in(path);
  return KernelSymbols{std::move(*symbols), reference_address - address->value};
}

Result<std::unique_ptr<LineSource>> ModuleFiles::kernel_lines(const std::string& path,
                                                              const format::BuildId& id) const {
  auto file = open_candidate({path, 'v', Host::This}, id);
  if (!file || !file->elf.has_lines()) return std::unique_ptr<LineSource>();
  return read_lines(std::move(*file));
}

// The file that ran: the one at the module's path, a pinned one, or a copy in the capture. Without a build id
// the file at the path comes last, since another one may have its name by now.
const ModuleCode::File& ModuleCode::file_of(const Module& module) {
  constexpr std::uint64_t kMostFileBytes = std::uint64_t{1} << 31;
  const auto [row, is_new] = by_module_.try_emplace(&module);
  File& file = row->second;
  if (!is_new || module.kind != ModuleKind::User) return file;
  const bool has_id = !module.build_id.empty();
  Result<std::vector<std::byte>> bytes(Error{"it has no build id", ENOENT});
  const auto is_right_file = [&] {
    if (!bytes || bytes->size() <= EI_CLASS) return false;
    const auto elf = ElfFile::in_memory(*bytes);
    return elf && match_build_ids(elf->build_id(), module.build_id) != BuildIdMatch::Other;
  };
  const auto is_found = [&] { return has_id ? is_right_file() : bytes || bytes.error().code != ENOENT; };
  if (has_id) bytes = files_.read_file(std::string(module.path), kMostFileBytes);
  if (!is_found()) bytes = files_.read_pinned(module.path, module.build_id, kMostFileBytes);
  if (!is_found() && features_ != nullptr)
    bytes = unpack_attached_file(*features_, module.path, module.build_id);
  if (!is_found() && !has_id) bytes = files_.read_file(std::string(module.path), kMostFileBytes);
  if (!is_right_file()) return file;
  file.bytes = std::move(*bytes);
  file.is_64_bit = file.bytes[EI_CLASS] == std::byte{ELFCLASS64};
  return file;
}

format::Bytes ModuleCode::read_code(const Module& module, std::uint64_t offset, std::size_t size) {
  const format::Bytes all = file_of(module).bytes;
  if (offset >= all.size()) return {};
  return all.subspan(offset, std::min<std::uint64_t>(size, all.size() - offset));
}

// Only this piece is read, since a vmlinux may have a gigabyte of debugging information.
format::Bytes ModuleCode::read_vmlinux(const std::string& path, std::uint64_t offset, std::size_t size) {
  const auto file = format::open_input(path);
  if (!file) return {};
  auto bytes = format::read_at(file->get(), offset, size);
  return bytes ? format::Bytes(kernel_code_.emplace_back(std::move(*bytes))) : format::Bytes();
}

}  // namespace tacho::symbolize
