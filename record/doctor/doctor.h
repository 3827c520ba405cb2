// `tacho doctor`: what this user can record on this host, what is missing, and the command that fixes it.
// Changes nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bpf/program_trial.h"
#include "record/host/host.h"

namespace tacho::record {

struct HostFacts {
  std::string kernel, machine;  // "6.1.0-56-amd64", "x86_64"
  std::string program;          // the path of tacho-record
  bool is_root = false;
  bool is_in_pid_namespace = false, is_in_user_namespace = false;
  std::uint64_t capabilities = 0;  // bits of CapEff
  std::string lockdown;            // "none", "integrity", "confidentiality"; empty: the kernel has none

  Host host;
  // The kernel's error for an event; empty: it can be opened.
  std::string own_refusal;       // a clock on this process
  std::string kernel_refusal;    // the same with kernel mode
  std::string system_refusal;    // a clock on a CPU
  std::string hardware_refusal;  // cycles
  std::string cgroup_refusal;    // a clock in a cgroup
  bool counts_losses = false;    // PERF_FORMAT_LOST
  bool has_build_ids = false;    // in MMAP2 records

  std::string tracefs;  // where it is mounted; empty: nowhere
  bool can_read_tracefs = false;
  bool has_kprobes = false, has_uprobes = false;
  bool shows_kernel_symbols = false;
  int kptr_restrict = 0;
  bool has_btf = false;
  std::vector<bpf::ProgramTrial> programs;
  std::string unwinding_refusal;  // why the BPF unwinder cannot be loaded; empty: it can
  std::string clang;              // path; empty: not found

  std::string cgroup_mount;
  bool has_cgroups_v1 = false;     // the mount is of version 1
  std::uint64_t ring_kib = 0;      // kernel.perf_event_mlock_kb, of a CPU
  std::uint64_t locked_bytes = 0;  // RLIMIT_MEMLOCK
  std::uint64_t descriptors = 0;   // RLIMIT_NOFILE, the hard one
};

struct Finding {
  enum class State : std::uint8_t { Good, Limited, Missing };
  std::string name;
  State state = State::Good;
  std::string value;        // the setting, limit or error on this host
  std::string consequence;  // events that cannot be recorded; empty if Good
  std::string remedy;       // a command or an option; empty: none
};
// One finding for each capability of the host.
std::vector<Finding> judge(const HostFacts& facts);
// Whether anything can be recorded here by this user.
bool can_record(const HostFacts& facts);

std::string doctor_text(const std::vector<Finding>& findings, bool can_record);
std::string doctor_json(const std::vector<Finding>& findings, bool can_record);

// `arguments`: after "doctor". Returns the exit status.
int run_doctor(const std::vector<std::string>& arguments);

}  // namespace tacho::record
