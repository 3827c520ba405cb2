// Tracepoints, from tracefs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bpf/object/probe_program.h"
#include "format/base/result.h"
#include "format/extensions/tracing_data.h"

namespace tacho::record {

struct Tracepoint {
  std::string system, name;
  std::uint64_t id = 0;  // perf_event_attr.config
};

// The tracefs of this host. find() mounts it at /sys/kernel/tracing if it is not mounted and the rights
// suffice.
class Tracefs {
 public:
  static Result<Tracefs> find();
  // For tests: any directory of that shape.
  explicit Tracefs(std::string directory) : directory_(std::move(directory)) {}

  // The tracepoints that both globs match, in alphabetical order; never empty. An error gives the nearest
  // name.
  Result<std::vector<Tracepoint>> matching(const std::string& system, const std::string& name) const;
  // The formats of these tracepoints, by which readers decode their fields.
  Result<format::TracingData> formats_of(std::span<const Tracepoint> tracepoints) const;

 private:
  std::string directory_;
};

// "pid_t prev_pid" for each field in a format file, without the common_* fields.
std::vector<std::string> fields_in(std::string_view format);
// "prev_pid"
std::string name_of_field(std::string_view field);

// The location of a field in the tracepoint's record: a number of 1 to 8 bytes, or a text.
Result<bpf::ProbeArgument> field_argument(std::string_view format, const std::string& name);

}  // namespace tacho::record
