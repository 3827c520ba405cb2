#include "report/query/code_places.h"

#include "format/extensions/symbol_pack.h"
#include "symbolize/name_source.h"

namespace tacho::report {

std::optional<std::uint64_t> CodePlaces::shown_address(const symbolize::PlaceFacts& facts,
                                                       std::uint64_t elf_address) {
  const symbolize::Source* const source = facts.source;
  if (source == nullptr || source->jit != nullptr || source->is_kernel_module) return std::nullopt;
  if (source->packed != nullptr) {
    const auto [known, is_new] = packed_.try_emplace(source->packed);
    if (is_new)
      for (const format::PackedAddress& address : source->packed->addresses())
        if (address.symbol != format::PackedFunction::kNone)
          known->second.emplace(address.elf_address, address.address);
    const auto found = known->second.find(elf_address);
    // Functions without a symbol were packed as ranges, which lie in the same segment.
    return found != known->second.end() ? found->second
                                        : facts.shown_address + (elf_address - facts.elf_address);
  }
  if (source->is_vmlinux) return elf_address + source->moved;
  const auto offset = source->loads.offset_of({elf_address});
  return offset ? std::optional(offset->value) : std::nullopt;
}

}  // namespace tacho::report
