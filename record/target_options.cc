#include "record/target_options.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "cli/option_rows.h"
#include "record/events/cgroup.h"
#include "record/events/container.h"

namespace tacho::record {
namespace {

Result<> set_list(std::vector<int>& list, Result<std::vector<int>> parsed, std::string_view option) {
  if (!parsed) return std::move(parsed.error()).in(option);
  list = std::move(*parsed);
  return Done{};
}

Result<> set_user(TargetOptions& target, std::string_view text) {
  const auto user = parse_user(std::string(text));
  if (!user) return user.error();
  target.user = *user;
  return Done{};
}

using FindCgroup = Result<std::string> (*)(const std::string& mount, const std::string& name);

Result<> add_found(TargetOptions& target, FindCgroup find, std::string_view name) {
  const auto mount = mounted_cgroups();
  if (!mount) return mount.error();
  auto cgroup = find(*mount, std::string(name));
  if (!cgroup) return std::move(cgroup.error());
  target.each_cgroup.push_back(std::move(*cgroup));
  return Done{};
}

}  // namespace

void add_target_options(TargetOptions& target, std::vector<cli::Option>& rows) {
  using cli::Takes;
  std::vector<cli::Option> own{
      cli::flag("-a,--all-cpus", "Watch the whole system", target.all_cpus),
      {"-p,--pid", Takes::Value, "PID[,PID]", "Watch these processes with all their threads",
       [&target](std::string_view text) { return set_list(target.processes, parse_id_list(text), "-p"); }},
      {"-t,--tid", Takes::Value, "TID[,TID]", "Watch these threads alone",
       [&target](std::string_view text) { return set_list(target.threads, parse_id_list(text), "-t"); }},
      {"-u,--uid", Takes::Value, "USER",
       "Watch the processes that this user (name or number) has now, and what they start",
       [&target](std::string_view text) { return set_user(target, text); }},
      {"-C,--cpu", Takes::Value, "CPUS", "Watch these CPUs, as in 0-3,6",
       [&target](std::string_view text) { return set_list(target.cpus, parse_cpu_list(text), "-C"); }},
      {"-G,--cgroup", Takes::Value, "NAME[,NAME]",
       "Watch what runs in this cgroup and in those below it, named by its path below the mount point "
       "(system.slice/nginx.service) or in whole. One goes for all events, several one for each",
       [&target](std::string_view text) -> Result<> {
         std::ranges::move(parse_cgroup_list(text), std::back_inserter(target.cgroups));
         return Done{};
       }},
      {"--for-each-cgroup", Takes::Value, "NAME[,NAME]",
       "Watch what runs in these cgroups (names as for -G), with all events in each of them",
       [&target](std::string_view text) -> Result<> {
         std::ranges::move(parse_cgroup_list(text), std::back_inserter(target.each_cgroup));
         return Done{};
       }},
      {"--container", Takes::Value, "ID",
       "Watch what runs in this container, found by its cgroup: the begin of its id (docker, containerd, "
       "CRI-O, podman), or what an LXC container or systemd machine is called. Again: that one too",
       [&target](std::string_view text) { return add_found(target, cgroup_of_container, text); }},
      {"--pod", Takes::Value, "UID",
       "Watch what runs in all containers of this Kubernetes pod: the begin of its uid "
       "(metadata.uid of kubectl get pod -o yaml)",
       [&target](std::string_view text) { return add_found(target, cgroup_of_pod, text); }},
      cli::flag("--per-thread",
                "A ring for each watched thread instead of one for each CPU; without children",
                target.per_thread),
      cli::flag("-i,--no-inherit", "Do not watch what the watched processes start", target.no_inherit),
  };
  std::ranges::move(own, std::back_inserter(rows));
}

}  // namespace tacho::record
