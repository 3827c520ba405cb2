// Conditions of --filter that the kernel decides: of the language of --where what a list of comparisons can
// say (bpf/attach/event_filter.h). What it cannot say is refused at its column.
//
//   pid, tid, uid, gid, cpu, cgroup_id   numbers, compared with constants, or their bits: cpu & 1
//   comm                                 == "dd", ~ "kworker*"
//   cgroup                               == "/system.slice/x", ~ "/system.slice/*": what is below
//   members of the payload               numbers, enumerators, texts; where the program asks with its event
#pragma once

#include <functional>
#include <string>
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
  bool has_members = false;  // some look into the payload
};

// `option` is for messages.
Result<Condition> compile_condition(std::string_view option, const cli::Expression& expression,
                                    const ConditionNames& names);

}  // namespace tacho::record
