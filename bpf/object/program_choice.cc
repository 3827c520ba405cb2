#include "bpf/object/program_choice.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "bpf/object/channel.h"
#include "bpf/support/section.h"
#include "format/base/parse_text.h"

namespace tacho::bpf {

std::string candidate_text(const Candidate& candidate) {
  return candidate.name + " (" + candidate.section + ")";
}

ProgramChoice::ProgramChoice(std::vector<Candidate> candidates) : rejected_(candidates.size()) {
  std::vector<Candidate> last;
  for (const Candidate& candidate : candidates) {
    const bool drops =
        !candidate.group.empty() && std::ranges::any_of(candidates, [&](const Candidate& each) {
          return each.drops_events && each.group == candidate.group && each.set == candidate.set;
        });
    (drops ? last : candidates_).push_back(candidate);
  }
  std::ranges::move(last, std::back_inserter(candidates_));
}

std::size_t ProgramChoice::leader(const std::string& group) const {
  for (std::size_t i = 0; i < candidates_.size(); ++i)
    if (candidates_[i].group == group && rejected_[i].empty()) return i;
  return candidates_.size();
}

bool ProgramChoice::wanted(std::size_t candidate) const {
  const Candidate& asked = candidates_[candidate];
  if (!rejected_[candidate].empty()) return false;
  return asked.group.empty() || candidates_[leader(asked.group)].set == asked.set;
}

Result<> ProgramChoice::reject(std::size_t candidate, std::string reason) {
  const Candidate asked = candidates_[candidate];
  rejected_[candidate] = std::move(reason);
  if (asked.group.empty())
    return asked.optional ? Result<>(Done{})
                          : Result<>(Error{"program " + candidate_text(asked) + ": " + rejected_[candidate]});

  for (std::size_t i = 0; i < candidates_.size(); ++i)
    if (candidates_[i].group == asked.group && candidates_[i].set == asked.set && rejected_[i].empty())
      rejected_[i] = "its companion " + candidate_text(asked) + " cannot be used";
  if (leader(asked.group) != candidates_.size()) return Done{};

  std::string reasons;
  bool optional = true;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    if (candidates_[i].group != asked.group) continue;
    optional = optional && candidates_[i].optional;
    reasons += "\n  " + candidate_text(candidates_[i]) + ": " + rejected_[i];
  }
  if (optional) return Done{};
  return Error{"none of the alternatives '" + asked.group + "' can run on this kernel:" + reasons};
}

std::string ProgramChoice::why_not(std::size_t candidate) const {
  if (wanted(candidate)) return "";
  if (!rejected_[candidate].empty()) return rejected_[candidate];
  return "not needed: " + candidate_text(candidates_[leader(candidates_[candidate].group)]) + " is used";
}

std::vector<Candidate> candidates_of(const Object& object, const Declarations& declared) {
  const auto alternative_of = [&](const Candidate& candidate) {
    return std::ranges::find(declared.alternatives, candidate.name, &Alternative::program);
  };
  std::vector<Candidate> candidates;
  for (std::size_t index = 0; index < object.programs().size(); ++index) {
    const Program& program = object.programs()[index];
    Candidate candidate{program.name, program.section, "", "", program.optional, false};
    const auto section = parse_section(program.section);
    candidate.drops_events = section && section->hook == Hook::Tracepoint && object.may_drop_events(index);
    const auto alternative = alternative_of(candidate);
    if (alternative != declared.alternatives.end()) {
      candidate.group = alternative->group;
      candidate.set = alternative->set;
    }
    candidates.push_back(std::move(candidate));
  }
  std::ranges::stable_sort(candidates, {}, alternative_of);
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
      const std::string_view name = format::take_until(rest, ',');
      if (std::ranges::find(names, name) == names.end()) names.emplace_back(name);
    }
  }
  return names;
}

std::vector<std::string> unsupported_output_of(const Object& object, bool runs_iterators) {
  std::vector<std::string> lines;
  std::string printing, iterators;
  const auto& programs = object.programs();
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const auto section = parse_section(programs[i].section);
    const bool is_iterator = section && section->hook == Hook::Iterator;
    if (is_iterator ? programs[i].name == kAtBegin : !object.prints(i)) continue;
    std::string& names = is_iterator ? iterators : printing;
    names += (names.empty() ? "" : ", ") + programs[i].name;
  }
  if (!printing.empty())
    lines.push_back(
        "program " + printing +
        " prints with bpf_printk() to /sys/kernel/tracing/trace_pipe, which is not recorded; to record an "
        "event, call bpf_perf_event_output() with a map of type BPF_MAP_TYPE_PERF_EVENT_ARRAY");
  if (!iterators.empty() && !runs_iterators)
    lines.push_back(iterators +
                    ": an iterator (SEC(\"iter/...\")) runs when it is read and emits no events; "
                    "with SUMMARY(NAME, MAP) the recorder runs it before it reads MAP; "
                    "bpftool iter pin FILE.o PATH, and then cat PATH, shows what it writes");
  return lines;
}

}  // namespace tacho::bpf
