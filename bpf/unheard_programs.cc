#include "bpf/unheard_programs.h"

#include <cstddef>

#include "bpf/section.h"

namespace tacho::bpf {

std::vector<std::string> unheard_programs(const Object& object, IteratorsAre iterators_are) {
  std::vector<std::string> lines;
  std::string printing, iterators;
  const auto& programs = object.programs();
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const auto section = parse_section(programs[i].section);
    std::string& names = section && section->hook == Hook::Iterator ? iterators : printing;
    if (&names == &iterators || object.prints(i)) names += (names.empty() ? "" : ", ") + programs[i].name;
  }
  if (!printing.empty())
    lines.push_back(
        "what program " + printing +
        " says with bpf_printk() goes to /sys/kernel/tracing/trace_pipe and into no capture; an event "
        "is what bpf_perf_event_output() gives to a map of type BPF_MAP_TYPE_PERF_EVENT_ARRAY");
  if (!iterators.empty() && iterators_are == IteratorsAre::Idle)
    lines.push_back(iterators +
                    ": an iterator (SEC(\"iter/...\")) runs when somebody reads it and brings no events; "
                    "with SUMMARY(NAME, MAP) the recorder runs it before it reads MAP; "
                    "bpftool iter pin FILE.o PATH, and then cat PATH, shows what it writes");
  return lines;
}

}  // namespace tacho::bpf
