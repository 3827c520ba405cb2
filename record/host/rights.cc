#include "record/host/rights.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <string_view>

namespace tacho::record {
namespace {

// Names that old kernel headers lack.
constexpr unsigned kPerfmon = 38, kBpf = 39, kCheckpoint = 40;

struct RightRow {
  unsigned number;
  std::string_view name;
  bool LaterWork::*needed_for;  // nullptr: for files in another user's folder
};
// One row for each kind of work that needs the capability.
constexpr RightRow kRightRows[] = {
    {CAP_DAC_OVERRIDE, "cap_dac_override", nullptr},
    {CAP_DAC_READ_SEARCH, "cap_dac_read_search", &LaterWork::tells_again},  // others' files, for build ids
    {CAP_DAC_READ_SEARCH, "cap_dac_read_search", &LaterWork::reads_binaries},
    {CAP_DAC_READ_SEARCH, "cap_dac_read_search", &LaterWork::packs},
    {CAP_DAC_READ_SEARCH, "cap_dac_read_search", &LaterWork::holds_files},
    {CAP_KILL, "cap_kill", &LaterWork::signals_command},
    {CAP_IPC_LOCK, "cap_ipc_lock", &LaterWork::maps_rings},
    {CAP_SYS_PTRACE, "cap_sys_ptrace", &LaterWork::tells_again},  // mappings of others' processes
    {CAP_SYS_PTRACE, "cap_sys_ptrace", &LaterWork::reads_binaries},
    {CAP_SYS_PTRACE, "cap_sys_ptrace", &LaterWork::holds_files},
    {CAP_SYS_ADMIN, "cap_sys_admin", &LaterWork::tells_again},  // BPF programs by their numbers
    {CAP_SYS_ADMIN, "cap_sys_admin", &LaterWork::asks_programs},
    {CAP_SYSLOG, "cap_syslog", &LaterWork::tells_again},  // addresses in /proc/kallsyms
    {kPerfmon, "cap_perfmon", &LaterWork::tells_again},   // which programs sit on a tracepoint
    {kPerfmon, "cap_perfmon", &LaterWork::asks_programs},
    {kPerfmon, "cap_perfmon", &LaterWork::takes_in_cpus},
    {kBpf, "cap_bpf", &LaterWork::tells_again},
    {kCheckpoint, "cap_checkpoint_restore", &LaterWork::reads_binaries},  // files that were deleted
    {kCheckpoint, "cap_checkpoint_restore", &LaterWork::holds_files},
    {kBpf, "cap_bpf", &LaterWork::reads_binaries},
    {kBpf, "cap_bpf", &LaterWork::has_objects},  // before Linux 5.19, for bpf(2) of any kind
};

Capabilities bit(unsigned number) { return Capabilities{1} << number; }

struct Sets {
  Capabilities effective = 0, permitted = 0;
};

Result<Sets> present_rights() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
  if (syscall(SYS_capget, &header, data.data()) != 0) return system_error("capget", errno);
  return Sets{data[0].effective | Capabilities{data[1].effective} << 32,
              data[0].permitted | Capabilities{data[1].permitted} << 32};
}

// Nothing is inherited. A program that root starts gets the bounding set: no more than this process has.
Result<> set_rights(Sets sets) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
  for (std::size_t word = 0; word < data.size(); ++word) {
    data.at(word).effective = static_cast<std::uint32_t>(sets.effective >> (32 * word));
    data.at(word).permitted = static_cast<std::uint32_t>(sets.permitted >> (32 * word));
  }
  if (syscall(SYS_capset, &header, data.data()) != 0) return system_error("capset", errno);
  return Done{};
}

// With the rights that are in effect now.
bool can_make_files_in(const std::string& folder) {
  return folder.empty() || faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0;
}

// A process without CAP_SETPCAP keeps the bounding set, which is without effect once no_new_privs is set.
void lower_bounding_set(Capabilities kept) {
  for (unsigned number = 0; number < 64; ++number) {
    if ((kept & bit(number)) == 0 && prctl(PR_CAPBSET_DROP, number, 0, 0, 0) != 0 && errno == EINVAL) return;
  }
}

}  // namespace

Capabilities rights_for(const LaterWork& work) {
  Capabilities rights = 0;
  for (const RightRow& row : kRightRows) {
    if (row.needed_for != nullptr && work.*row.needed_for) rights |= bit(row.number);
  }
  return rights;
}

std::string names_of(Capabilities rights) {
  std::string names;
  for (const RightRow& row : kRightRows) {
    if ((rights & bit(row.number)) == 0) continue;
    rights &= ~bit(row.number);
    names.append(names.empty() ? "" : ", ").append(row.name);
  }
  return names.empty() ? "none" : names;
}

Result<Capabilities> drop_rights(const LaterWork& work, const std::string& folder) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return system_error("no_new_privs", errno);
  const auto present = present_rights();
  if (!present) return present.error();
  Capabilities kept = rights_for(work) & present->permitted;
  // First only out of effect, to see whether the folder wants more; the bounding set while we may lower it.
  const Capabilities for_bounds = bit(CAP_SETPCAP) & present->effective;
  if (auto done = set_rights({kept | for_bounds, present->permitted}); !done) return done.error();
  if (!can_make_files_in(folder)) kept |= bit(CAP_DAC_OVERRIDE) & present->permitted;
  lower_bounding_set(kept);
  if (auto done = set_rights({kept, kept}); !done) return done.error();
  return kept;
}

}  // namespace tacho::record
