#include "report/decode/branch_flags.h"

#include <iterator>

namespace tacho::report {
namespace {

constexpr unsigned kTypeAt = 20, kExtendedAt = 26;

constexpr std::string_view kTypes[] = {"",         "COND", "UNCOND",  "IND",    "CALL",
                                       "IND_CALL", "RET",  "SYSCALL", "SYSRET", "COND_CALL",
                                       "COND_RET", "ERET", "IRQ",     "SERROR", "NO_TX"};
constexpr std::string_view kExtendedTypes[] = {"FAULT_ALGN", "FAULT_DATA", "FAULT_INST", "ARCH_1",
                                               "ARCH_2",     "ARCH_3",     "ARCH_4",     "ARCH_5"};
static_assert(std::size(kExtendedTypes) == BranchType::kExtendedCount);

}  // namespace

BranchType branch_type(std::uint64_t flags) {
  return {static_cast<unsigned>(flags >> kTypeAt & 15), static_cast<unsigned>(flags >> kExtendedAt & 15)};
}

std::string_view branch_type_name(BranchType type) {
  if (type.type != BranchType::kExtended) return kTypes[type.type];
  // As perf prints what it has no name for.
  return type.extended < std::size(kExtendedTypes) ? kExtendedTypes[type.extended] : "(null)";
}

}  // namespace tacho::report
