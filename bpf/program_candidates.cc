#include "bpf/program_candidates.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "bpf/section.h"

namespace tacho::bpf {

std::vector<Candidate> candidates_of(const Object& object, const Declarations& declared) {
  std::vector<Candidate> candidates;
  for (std::size_t index = 0; index < object.programs().size(); ++index) {
    const Program& program = object.programs()[index];
    Candidate candidate{program.name, program.section, "", "", program.optional, false};
    const auto section = parse_section(program.section);
    candidate.drops_events = section && section->hook == Hook::Tracepoint && object.may_drop_events(index);
    const auto alternative = std::ranges::find(declared.alternatives, program.name, &Alternative::program);
    if (alternative != declared.alternatives.end()) {
      candidate.group = alternative->group;
      candidate.set = alternative->set;
    }
    candidates.push_back(std::move(candidate));
  }
  const auto rank = [&](const Candidate& candidate) {
    return std::ranges::find(declared.alternatives, candidate.name, &Alternative::program);
  };
  std::ranges::stable_sort(candidates, {}, rank);
  return candidates;
}

bool is_for_functions(const Program& program) {
  const auto section = parse_section(program.section);
  return section && section->hook == Hook::Functions;
}

std::vector<std::string> names_of_functions(const std::vector<Program>& programs) {
  std::vector<std::string> names;
  for (const Program& program : programs) {
    const auto section = parse_section(program.section);
    if (!section || section->hook != Hook::Functions) continue;
    for (std::string_view rest = section->target; !rest.empty();) {
      const std::string_view name = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(name.size() + 1, rest.size()));
      if (std::ranges::find(names, name) == names.end()) names.emplace_back(name);
    }
  }
  return names;
}

}  // namespace tacho::bpf
