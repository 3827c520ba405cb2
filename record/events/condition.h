// Conditions of --filter, compiled for the kernel: the part of the language of --where that is a list of
// comparisons (bpf/attach/event_filter.h). Other expressions are refused with their column.
//
//   pid, tid, uid, gid, cpu, cgroup_id   numbers, compared with constants, or their bits: cpu & 1
//   comm                                 == "dd", ~ "kworker*"
//   cgroup                               == "/system.slice/x", ~ "/system.slice/*": those below
//   members of the payload               numbers, enumerators, texts; if the program checks its filled event
#pragma once

#include <functional>
#include <string_view>

#include "bpf/attach/event_filter.h"
#include "cli/expression.h"
#include "format/base/result.h"
#include "format/extensions/payload_schema.h"
#include "record/events/target.h"

namespace tacho::record {

// Names that a condition may use.
struct ConditionNames {
  const format::PayloadSchema* payload = nullptr;  // of BPF events
  std::function<Result<CgroupNumber>(std::string_view path)> cgroup = number_of_cgroup;
};

struct Condition {
  bpf::FilterSteps steps;
  bool has_members = false;  // it has comparisons of payload members
};

// `option` is for messages.
Result<Condition> compile_condition(std::string_view option, const cli::Expression& expression,
                                    const ConditionNames& names);

}  // namespace tacho::record
