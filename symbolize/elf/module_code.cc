#include "symbolize/elf/module_code.h"

#include <algorithm>

#include "symbolize/elf/elf_file.h"
#include "symbolize/files/attached_text.h"

namespace tacho::symbolize {
namespace {

constexpr std::uint64_t kLargestFile = std::uint64_t{1} << 31;  // bytes
constexpr std::size_t kClassAt = 4;                             // EI_CLASS of an ELF file
constexpr std::byte kClass64{2};

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
  auto bytes = files_.read(std::string(module.path), kLargestFile);
  if (!is_it(bytes)) {
    bytes = files_.read_held(module.path, module.build_id, kLargestFile);
    if (!is_it(bytes) && features_ != nullptr)
      bytes = unpack_attached_file(*features_, module.path, module.build_id);
    if (!is_it(bytes)) return file;
  }
  file.bytes = std::move(*bytes);
  file.is_64_bit = file.bytes[kClassAt] == kClass64;
  return file;
}

format::Bytes ModuleCode::read(const Module& module, std::uint64_t offset, std::size_t size) {
  const format::Bytes all = file_of(module).bytes;
  if (offset >= all.size()) return {};
  return all.subspan(offset, std::min<std::uint64_t>(size, all.size() - offset));
}

}  // namespace tacho::symbolize
