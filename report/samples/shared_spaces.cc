#include "report/samples/shared_spaces.h"

#include <variant>

namespace tacho::report {

Change SharedSpaces::apply(const format::Record& record, std::uint16_t misc, symbolize::JitClock clock,
                           Outlet& outlet) {
  const auto* const mmap = std::get_if<format::MmapRecord>(&record);
  if (mmap != nullptr) {
    if (symbolize::JitCode::is_mark(*mmap)) outlet.wait_until_shown();
    if (jit_.takes(*mmap, clock)) return {};
  }
  const Change change = std::visit(ChangeOf{misc}, record);
  if (change.kernel) outlet.wait_until_shown();
  spaces_.apply(record, misc);
  return change;
}

void SharedSpaces::add_build_id(const format::BuildIdEntry& entry, Outlet& outlet) {
  outlet.wait_until_shown();
  spaces_.add_build_id(entry);
}

}  // namespace tacho::report
