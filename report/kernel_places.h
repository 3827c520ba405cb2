// Undoes KASLR: the kernel's address in memory is private: its addresses are moved to where
// they would be without it. Distances within the kernel's image, and among its modules and BPF programs,
// stay.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "report/aliases.h"

namespace tacho::report {

class KernelPlaces {
 public:
  // The kernel's mapping says where its text begins.
  void see_text(std::uint64_t start);
  // Any address of kernel code: modules are moved by the lowest.
  void see_code(std::uint64_t address);

  bool is_known() const { return text() != 0; }
  // An address of the kernel's image or modules, moved; any other as it is.
  std::uint64_t moved(std::uint64_t address) const;
  // Whether it is inside the known range of the image or the modules, also when they are not moved at all.
  bool is_code(std::uint64_t address) const { return place_of(address).has_value(); }
  // An address of the kernel's half: code is moved, and pointers to kernel memory, which would reveal its
  // address too, get an alias.
  std::uint64_t hidden(std::uint64_t address, const Aliases& aliases) const;
  // A text with such addresses in it, of 16 hexadecimal digits: "mem:0xffffffff9a601234/8:rw".
  std::string hidden_in(std::string_view text, const Aliases& aliases) const;

 private:
  // x86-64: the image is between these, by a multiple of 2 MB; modules above, up to the fixed mappings.
  static constexpr std::uint64_t kImages = 0xffffffff80000000, kUsualText = 0xffffffff81000000,
                                 kModules = 0xffffffffc0000000, kModulesEnd = 0xffffffffff000000;
  // Elsewhere image and modules are within this distance, and move together.
  static constexpr std::uint64_t kNear = std::uint64_t{4} << 30, kOtherText = 0xffff800080000000;
  std::uint64_t text() const;
  // Where an address of image or modules is moved to; nothing for others.
  std::optional<std::uint64_t> place_of(std::uint64_t address) const;

  std::uint64_t told_text_ = 0;
  std::uint64_t lowest_in_image_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t lowest_module_ = std::numeric_limits<std::uint64_t>::max();
};

}  // namespace tacho::report
