#include "symbolize/elf/module_code.h"

#include <algorithm>
#include <cerrno>

#include "format/base/file.h"
#include "symbolize/elf/elf_file.h"
#include "symbolize/files/attached_text.h"

namespace tacho::symbolize {
namespace {

constexpr std::uint64_t kMostFileBytes = std::uint64_t{1} << 31;  // bytes
constexpr std::size_t kClassAt = 4;                               // EI_CLASS of an ELF file
constexpr std::byte kClass64{2};

// A build id identifies the file; without it the file of this name comes last, as it may be
// another one by now, and only where neither the one that was held nor a copy is known.
template <class Is>
Result<std::vector<std::byte>> read_one(const DebugFiles& files, const format::Features* features,
                                        const Module& module, Is&& is_it) {
  const bool has_id = !module.build_id.empty();
  auto bytes = has_id ? files.read(std::string(module.path), kMostFileBytes)
                      : Result<std::vector<std::byte>>(Error{"it has no build id", ENOENT});
  const auto is_over = [&] { return has_id ? is_it(bytes) : bytes || bytes.error().code != ENOENT; };
  if (!is_over()) bytes = files.read_held(module.path, module.build_id, kMostFileBytes);
  if (!is_over() && features != nullptr)
    bytes = unpack_attached_file(*features, module.path, module.build_id);
  if (!is_over() && !has_id) bytes = files.read(std::string(module.path), kMostFileBytes);
  return bytes;
}

}  // namespace

const ModuleCode::File& ModuleCode::file_of(const Module& module) {
  const auto [row, is_new] = by_module_.try_emplace(&module);
  File& file = row->second;
  if (!is_new || module.kind != ModuleKind::User) return file;
  const auto is_it = [&](const Result<std::vector<std::byte>>& bytes) {
    if (!bytes || bytes->size() <= kClassAt) return false;
    const auto elf = ElfFile::in_memory(*bytes);
    return elf && (module.build_id.empty() || elf->build_id() == module.build_id);
  };
  auto bytes = read_one(files_, features_, module, is_it);
  if (!is_it(bytes)) return file;
  file.bytes = std::move(*bytes);
  file.is_64_bit = file.bytes[kClassAt] == kClass64;
  return file;
}

format::Bytes ModuleCode::read(const Module& module, std::uint64_t offset, std::size_t size) {
  const format::Bytes all = file_of(module).bytes;
  if (offset >= all.size()) return {};
  return all.subspan(offset, std::min<std::uint64_t>(size, all.size() - offset));
}

// It may have a gigabyte of debugging information: the piece alone is read.
format::Bytes ModuleCode::read_vmlinux(const std::string& path, std::uint64_t offset, std::size_t size) {
  const auto file = format::open_input(path);
  if (!file) return {};
  auto bytes = format::read_at(file->get(), offset, size);
  return bytes ? format::Bytes(kernel_code_.emplace_back(std::move(*bytes))) : format::Bytes();
}

}  // namespace tacho::symbolize
