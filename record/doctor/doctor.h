// `tacho doctor`: what this host can record, what is missing, and the command that fixes it. Looking
// changes nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bpf/program_trial.h"
#include "record/host/host.h"

namespace tacho::record {

struct HostFacts {
  std::string kernel, machine;  // "6.1.0-56-amd64", "x86_64"
  std::string program;          // the path of this one
  bool is_root = false;
  std::uint64_t capabilities = 0;  // bits of CapEff
  std::string lockdown;            // "none", "integrity", "confidentiality"; empty: the kernel has none

  Host host;
  // Why the kernel refuses such an event; empty: it takes it.
  std::string own_refusal;       // a clock on this process
  std::string kernel_refusal;    // the same with the kernel's side
  std::string system_refusal;    // a clock on a CPU
  std::string hardware_refusal;  // cycles
  std::string cgroup_refusal;    // a clock in a cgroup
  bool counts_losses = false;    // for each event (read format LOST)
  bool has_build_ids = false;    // with mappings

  std::string tracefs;  // where it is mounted; empty: nowhere
  bool can_read_tracefs = false;
  bool has_kprobes = false, has_uprobes = false;
  bool shows_kernel_symbols = false;
  int kptr_restrict = 0;
  bool has_btf = false;
  std::vector<bpf::ProgramTrial> programs;
  std::string unwinding_refusal;  // why stacks cannot be unwound in the kernel; empty: they can
  std::string clang;              // empty: there is none

  std::string cgroup_mount;
  bool has_cgroups_v1 = false;     // the mount is of version 1
  std::uint64_t ring_kib = 0;      // kernel.perf_event_mlock_kb, of a CPU
  std::uint64_t locked_bytes = 0;  // RLIMIT_MEMLOCK
  std::uint64_t descriptors = 0;   // RLIMIT_NOFILE, the hard one
};
HostFacts look_at_host();

// `tacho doctor`: what this host can record, what follows from what is missing, and the command that fixes
// it.

struct Finding {
  enum class State : std::uint8_t { Good, Limited, Missing };
  std::string name;
  State state = State::Good;
  std::string value;        // what was seen
  std::string consequence;  // what cannot be done; empty when all is well
  std::string remedy;       // a command or an option; empty when there is none
};
// Judges the facts one by one.
std::vector<Finding> judge(const HostFacts& facts);
// Whether anything can be recorded here by this user.
bool can_record(const HostFacts& facts);

std::string doctor_text(const std::vector<Finding>& findings, bool can_record);
std::string doctor_json(const std::vector<Finding>& findings, bool can_record);

// `arguments`: those after "doctor". Returns the exit status.
int run_doctor(const std::vector<std::string>& arguments);

}  // namespace tacho::record
