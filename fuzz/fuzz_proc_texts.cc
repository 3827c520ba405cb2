// Lines that others can shape by the names of their files and modules: /proc/PID/maps, /proc/modules,
// kallsyms; and those of /proc/PID/stack and /proc/PID/syscall.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "record/host/process_maps.h"
#include "record/host/running_kernel.h"
#include "record/now/thread_stacks.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto line = tacho::record::parse_maps_line(text); line && line->mapping.filename.empty())
    std::abort();
  if (const auto module = tacho::record::parse_module_line(text); module && module->start == 0) std::abort();
  if (const auto kernel = tacho::record::find_kernel_text(text); kernel && kernel->start == 0) std::abort();
  (void)tacho::record::parse_call_line(text);
  (void)tacho::record::parse_kernel_stack(text, [](std::string_view function) { return function.size(); });
  return 0;
}
