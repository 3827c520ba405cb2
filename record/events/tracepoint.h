// Tracepoints as tracefs describes them.
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

// The tracefs of this host as a directory. Mounts it at /sys/kernel/tracing when it is missing and the
// rights allow it.
class Tracefs {
 public:
  static Result<Tracefs> find();
  // For tests: any directory of that shape.
  explicit Tracefs(std::string directory) : directory_(std::move(directory)) {}

  // The tracepoints that both globs match, in alphabetical order; never empty. An error gives the nearest
  // name.
  Result<std::vector<Tracepoint>> matching(const std::string& system, const std::string& name) const;
  // Formats of these tracepoints, which a reader decodes their fields with.
  Result<format::TracingData> describe(std::span<const Tracepoint> tracepoints) const;

 private:
  std::string directory_;
};

// "pid_t prev_pid" for each field that a format file describes; what every tracepoint has is left out.
std::vector<std::string> fields_in(std::string_view format);
// "prev_pid"
std::string name_of_field(std::string_view field);

// The field of that name as a program at the tracepoint finds it in the record: a number of 1 to 8 bytes, or
// a text.
Result<bpf::ProbeArgument> field_argument(std::string_view format, const std::string& name);

}  // namespace tacho::record
