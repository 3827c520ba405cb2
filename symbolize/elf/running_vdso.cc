#include "symbolize/elf/running_vdso.h"

#include <elf.h>
#include <sys/auxv.h>

#include <cstdint>
#include <cstring>
#include <string>

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

}  // namespace tacho::symbolize
