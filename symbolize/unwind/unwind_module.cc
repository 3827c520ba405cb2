#include "symbolize/unwind/unwind_module.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "format/extensions/attachment.h"
#include "symbolize/elf/elf_file.h"
#include "symbolize/elf/module_files.h"
#include "symbolize/files/build_id_match.h"
#include "symbolize/files/decompress.h"
#include "unwind/packed_section.h"

namespace tacho::symbolize {
namespace {

// The image of a file, if it has the build id `wanted`; empty: any.
Result<ElfImage> image_with_id(format::Fd file, const format::BuildId& wanted) {
  if (!wanted.empty()) {
    const auto elf = ElfFile::open(format::Fd(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0)));
    if (!elf) return elf.error();
    if (match_build_ids(elf->build_id(), wanted) == BuildIdMatch::Other)
      return wrong_build_id(elf->build_id());
  }
  return ElfImage::open(std::move(file), ElfImage::Width::Any);
}

}  // namespace

std::optional<CfiTable> CfiTable::from_eh_frame(const ElfImage& image) {
  auto frames = unwind::eh_frame_of(image);
  if (!frames) return std::nullopt;
  CfiTable table(std::move(*frames), CfiForm::EhFrame, image.order(), image.address_size());
  table.index_by_address_ = unwind::FdeIndex::of(image);
  return table;
}

std::optional<CfiTable> CfiTable::from_debug_frame(const ElfImage& image) {
  auto frames = unwind::debug_frame_of(image);
  if (!frames) return std::nullopt;
  return CfiTable(std::move(*frames), CfiForm::DebugFrame, image.order(), image.address_size());
}

CfiTable CfiTable::from_jit(const JitCode::Function& function) {
  ElfImage::Section section{function.eh_frame_address(),
                            {function.eh_frame->begin(), function.eh_frame->end()}};
  return CfiTable(std::move(section), CfiForm::EhFrame, function.order, 8);
}

std::optional<std::uint64_t> CfiTable::fde_offset(std::uint64_t pc) {
  if (index_by_address_) {
    const auto entry = index_by_address_->find_entry(pc);
    return entry ? std::optional(entry->fde_address - section_.address)
                 : std::nullopt;  // parse_fde checks it
  }
  if (!index_) index_ = unwind::list_fdes(view());
  const auto after = std::ranges::upper_bound(*index_, pc, {}, &FdeRange::start);
  if (after == index_->begin()) return std::nullopt;
  return std::prev(after)->offset;
}

CfiTable::Found CfiTable::find_rules(std::uint64_t pc) {
  const auto offset = fde_offset(pc);
  if (!offset) return {};
  const CfiSection section = view();
  const auto fde = unwind::parse_fde(section, *offset);
  if (!fde) return {nullptr, true};
  if (pc < fde->start || pc >= fde->end) return {};
  auto row = unwind::evaluate_cfi(section, *fde, pc);
  if (!row) return {nullptr, true};
  rows_.push_back(std::make_unique<UnwindRow>(std::move(*row)));
  return {rows_.back().get(), false};
}

Result<ElfImage> UnwindModule::open_checked(const Candidate& candidate, const format::BuildId& wanted) {
  auto file = files_.open_candidate(candidate);
  if (!file) return std::move(file.error());
  auto image = image_with_id(std::move(*file), wanted);
  if (!image) return std::move(image.error()).in(files_.local_path(candidate));
  return image;
}

// The vdso: attached by the recorder, or this machine's if it has the same build id.
Result<ElfImage> UnwindModule::open_vdso() {
  constexpr std::uint64_t kLargestVdso = 1 << 20;  // bytes
  if (const auto* const attached = features_.attachment("vdso")) {
    auto bytes = format::unpack_attachment(*attached, kLargestVdso);
    if (!bytes) return std::move(bytes.error()).in("the attached vdso");
    return ElfImage::in_memory(std::move(*bytes));
  }
  if (!files_.root().empty()) return Error{kVdsoNotAttached};
  auto bytes = running_vdso(module_.build_id);
  if (!bytes) return std::move(bytes.error()).in("it is not attached to the capture");
  return ElfImage::in_memory(std::move(*bytes));
}

// Opens the file that has the module's name now.
Result<ElfImage> UnwindModule::open_named() {
  const std::string path(module_.path);
  const auto there = files_.open_file(path);
  const auto checked = there ? files_.check_mapped(*there, module_) : Result<>(Done{});
  auto found = checked ? open_checked({.path = path}, module_.build_id) : Result<ElfImage>(checked.error());
  is_named_ = static_cast<bool>(found);
  return found;
}

Result<ElfImage> UnwindModule::open_pinned() {
  auto file = files_.open_pinned(module_.path, module_.build_id);
  return file ? image_with_id(std::move(*file), module_.build_id) : std::move(file.error());
}

Result<ElfImage> UnwindModule::open_image() {
  if (module_.kind == ModuleKind::Vdso) return open_vdso();
  if (module_.kind != ModuleKind::User || !module_.path.starts_with('/'))
    return Error{"it was not mapped from a file"};
  // Without a build id it is unknown whether the file of this name is the one that ran.
  const bool has_id = !module_.build_id.empty();
  auto found = has_id ? open_named() : Result<ElfImage>(Error{"it has no build id", ENOENT});
  if (found) return found;
  auto pinned = open_pinned();
  if (pinned || (!has_id && pinned.error().code != ENOENT)) return pinned;
  auto copy = unpack_attached_file(features_, module_.path, module_.build_id);
  if (!copy && !has_id && copy.error().code == ENOENT) return open_named();
  auto image = copy ? ElfImage::in_memory(std::move(*copy), ElfImage::Width::Any)
                    : Result<ElfImage>(std::move(copy.error()));
  return image || !has_id ? std::move(image) : std::move(found);
}

const ElfImage* UnwindModule::image() {
  if (is_disabled_) return nullptr;
  if (!image_) {
    image_.emplace(open_image());
    was_unsure_ = is_named_ && module_.build_id.empty();
  }
  return *image_ ? &**image_ : nullptr;
}

void UnwindModule::open_again() {
  was_unsure_ = false;
  if (open_named()) return;  // it has the id
  known_.clear();
  eh_frame_.reset();
  debug_frame_.reset();
  has_opened_tables_ = has_sought_debug_frame_ = false;
  missing_reason_.clear();
  image_.emplace(open_image());
  had_wrong_file_ = true;
}

void UnwindModule::use_jit_function(const JitCode::Function& function) {
  if (!function.eh_frame) {
    disable("its jitdump has no unwinding information");
    return;
  }
  is_jit_ = has_opened_tables_ = has_sought_debug_frame_ = true;
  eh_frame_ = CfiTable::from_jit(function);
  image_.emplace(Error{"it is code of a jitdump"});
}

void UnwindModule::open_tables() {
  has_opened_tables_ = true;
  const ElfImage* const file = image();
  if (!file) {
    missing_reason_ = image_->error().what;
    return;
  }
  eh_frame_ = CfiTable::from_eh_frame(*file);
  if (!eh_frame_ && !debug_frame()) missing_reason_ = "has neither .eh_frame nor .debug_frame";
}

// In the file itself, or in its debug file if that has the same build id.
std::optional<CfiTable> UnwindModule::find_debug_frame() {
  if (auto own = CfiTable::from_debug_frame(*image())) return own;
  if (module_.kind != ModuleKind::User) return std::nullopt;
  // A file that was found by build id only has no debuglink to follow.
  if (!is_named_) return debug_frame_beside(module_.build_id, "");
  auto file = files_.open_file(std::string(module_.path));
  const auto elf = file ? ElfFile::open(std::move(*file)) : Result<ElfFile>(std::move(file.error()));
  return elf ? debug_frame_beside(elf->build_id(), elf->debuglink()) : std::nullopt;
}

std::optional<CfiTable> UnwindModule::debug_frame_beside(const format::BuildId& id,
                                                         const std::string& debuglink) {
  if (id.empty()) return std::nullopt;
  for (const Candidate& candidate : files_.candidates(std::string(module_.path), id, debuglink)) {
    const auto debug = open_checked(candidate, id);
    if (!debug) continue;
    if (auto table = CfiTable::from_debug_frame(*debug)) return table;
  }
  return std::nullopt;
}

CfiTable* UnwindModule::debug_frame() {
  if (!has_sought_debug_frame_) debug_frame_ = find_debug_frame();
  has_sought_debug_frame_ = true;
  return debug_frame_ ? &*debug_frame_ : nullptr;
}

UnwindModule::Found UnwindModule::find_rules(std::uint64_t offset, std::uint8_t address_size) {
  if (!has_opened_tables_ && !is_disabled_) open_tables();
  if (!missing_reason_.empty()) return {};
  if (is_jit_ ? address_size != 8 : image()->address_size() != address_size) {
    if (is_jit_ || module_.kind == ModuleKind::Vdso) return {};  // only the 64-bit vdso is known
    missing_reason_ = address_size == 4 ? "is a 64-bit file, but a 32-bit process mapped it"
                                        : "is a 32-bit file, but a 64-bit process mapped it";
    return {};
  }
  const auto known = known_.find(offset);
  return known != known_.end() ? known->second : known_.emplace(offset, look_up(offset)).first->second;
}

UnwindModule::Found UnwindModule::look_up(std::uint64_t offset) {
  // The addresses in perf's file of a function are its offsets.
  const auto pc = is_jit_ ? std::optional(offset) : image()->code_address(offset);
  if (!pc) return {CfiStatus::NoFunction, nullptr};
  CfiTable::Found found;
  if (eh_frame_) found = eh_frame_->find_rules(*pc);
  if (!found.row && !found.is_damaged)
    if (CfiTable* const other = debug_frame()) found = other->find_rules(*pc);
  if (found.is_damaged) return {};
  return {found.row ? CfiStatus::Found : CfiStatus::NoFunction, found.row};
}

std::optional<std::uint64_t> UnwindModule::word(std::uint64_t offset, std::uint8_t size) {
  const ElfImage* const file = image();
  return file && file->address_size() == size ? file->word(offset, size) : std::nullopt;
}

}  // namespace tacho::symbolize
