#include "report/wait_options.h"

#include "cli/option_rows.h"

namespace tacho::report {

void add_wait_options(std::vector<cli::Option>& rows, WaitOptions& options) {
  rows.push_back(
      {"--off-cpu", cli::Takes::Nothing, "",
       "waits by their time in nanoseconds: those of -e offcpu, or those between two sched:sched_switch "
       "(with -g); idle CPUs and threads that could run are left out. --comm, -C and --where choose by the "
       "thread that waits, when it goes to sleep",
       [&options](std::string_view) -> Result<> {
         options.is_asked_for = true;
         return Done{};
       }});
  rows.push_back({"--wakers", cli::Takes::Optional, "N",
                  "--off-cpu, and behind a frame '-- waker --' the stack that ended the wait, leaf first (-e "
                  "offcpu,waking, or sched:sched_waking with -g), [timer] or [irq] where a timer or another "
                  "interrupt did; =N: and who woke "
                  "that one, N wakers at most",
                  [&options](std::string_view text) -> Result<> {
                    const auto number = text.empty() ? Result<std::uint64_t>(1)
                                                     : cli::parse_number("--wakers", text, 1, kMostWakers);
                    if (!number) return number.error();
                    options.is_asked_for = true;
                    options.wakers = static_cast<unsigned>(*number);
                    return Done{};
                  }});
}

Result<> check_wall_filter(const Filter& filter) {
  const bool has_parts = filter.condition != nullptr || !filter.cpus.empty() || filter.looks_at_names();
  if (!has_parts) return Done{};
  return use_error(
      "--wall shows the whole time of threads; of the options that choose samples it takes --comm, --pid, "
      "--tid and "
      "--time");
}

}  // namespace tacho::report
