// Kernel addresses as they would be without KASLR.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "report/aliases.h"

namespace tacho::report {

// Addresses of the kernel are in the upper half.
inline constexpr std::uint64_t kKernelHalf = std::uint64_t{1} << 63;

// Undoes KASLR: moves kernel addresses to where they would be without it, since the kernel's load address is
// private. Distances within the kernel's image, and among modules and BPF programs, stay the same.
class KaslrRemap {
 public:
  // The start of the kernel's text, from its mapping.
  void see_text(std::uint64_t start);
  // Any address of kernel code. The lowest one of modules is the start of the modules.
  void see_code(std::uint64_t address);

  // An address of the kernel's image or modules, moved; any other as it is.
  std::uint64_t moved(std::uint64_t address) const;
  // Redacts an address in the kernel's half: code is moved; pointers to kernel data, which would reveal the
  // load address too, become aliases.
  std::uint64_t hidden(std::uint64_t address, const Aliases& aliases) const;
  // Redacts such addresses (16 hexadecimal digits) in a text: "mem:0xffffffff9a601234/8:rw".
  std::string hidden_in(std::string_view text, const Aliases& aliases) const;

 private:
  // x86-64: the image is between these, by a multiple of 2 MB; modules above, up to the fixed mappings.
  static constexpr std::uint64_t kImages = 0xffffffff80000000, kUsualText = 0xffffffff81000000,
                                 kModules = 0xffffffffc0000000, kModulesEnd = 0xffffffffff000000;
  // Elsewhere image and modules are within this distance, and move together.
  static constexpr std::uint64_t kNear = std::uint64_t{4} << 30, kOtherText = 0xffff800080000000;
  std::uint64_t text() const;
  // The moved address; nullopt: it is neither in the image nor in a module.
  std::optional<std::uint64_t> place_of(std::uint64_t address) const;

  std::uint64_t mapped_text_ = 0;  // of see_text()
  std::uint64_t lowest_in_image_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t lowest_module_ = std::numeric_limits<std::uint64_t>::max();
};

}  // namespace tacho::report
