#include "record/ring_checks.h"

namespace tacho::record {
namespace {

using bpf::ChannelKind;

// Files end in .c or .o.
bool is_recorder(const std::string& object) { return object.find('.') == std::string::npos; }

// A map tells what was counted, and neither when nor on which CPU.
Result<> check_summary(const std::string& summary, const std::string& object, ChannelKind kind,
                       const RecordOptions& options) {
  if (options.files.overwrite)
    return use_error("--overwrite: " + summary +
                     " is read at the end; a perf event array has its last events");
  if (!options.target.cgroups.empty())
    return use_error(
        "-G: " + summary +
        " does not tell the cgroup of what it counts; --filter 'cgroup == \"/NAME\"' does where its "
        "program asks tacho_wants() (tacho/emit.h)");
  if (!options.target.cpus.empty())
    return use_error("-C: " + summary + " counts what all CPUs do; leave the option out");
  if (kind == ChannelKind::Summary || options.target.watch == Watch::System) return Done{};
  if (is_recorder(object))
    return use_error("-e " + object +
                     ": it counts what everybody does, so record it with -a; a COMMAND only says how long "
                     "then: -e " +
                     object + " -a -- COMMAND");
  return use_error(summary +
                   " counts what everybody does: record that with -a, or have its program ask tacho_wants() "
                   "(tacho/emit.h)");
}

}  // namespace

// A perf event array has one slot for each CPU. A ring buffer is filled whatever the kernel knows of the
// target; only the heads can be asked.
Result<> check_channel(const std::string& object, const std::string& map, ChannelKind kind,
                       const RecordOptions& options) {
  if (options.target.per_thread)
    return use_error("--per-thread: a BPF channel has a ring for each CPU; leave the option out");
  if (kind == ChannelKind::PerfEventArray) return Done{};
  if (bpf::is_summary(kind)) return check_summary("the summary '" + map + "'", object, kind, options);
  const std::string ring = "the ring buffer '" + map + "'";
  if (options.files.overwrite)
    return use_error("--overwrite: " + ring + " cannot be written over; a perf event array can");
  if (!options.target.cgroups.empty())
    return use_error("-G: " + ring + " does not tell the cgroup of its events; use a perf event array");
  if (kind == ChannelKind::RingWithHeads) return Done{};
  if (options.target.watch != Watch::System || !options.target.cpus.empty())
    return use_error(ring +
                     " does not tell whose events it carries: record everybody's with -a, or send them "
                     "with tacho_reserve() (tacho/emit.h)");
  return Done{};
}

}  // namespace tacho::record
