// Containers and pods by the names of their control groups.
#pragma once

#include <string>
#include <string_view>

#include "format/result.h"

namespace tacho::record {

// What a cgroup's own name (the last part of its path) says of what runs in it: the id or name that the
// container runtime gave, as its users know it. Empty: it is no container, or no pod.
std::string container_of(std::string_view cgroup);  // "docker-4f5e.scope", "lxc.payload.web", 64 hex digits
std::string pod_of(std::string_view cgroup);  // "kubepods-burstable-pod12_ab.slice", "pod12-ab": "12-ab"

// The cgroup, below `mount`, of the one container (pod) whose id begins with `name`, or is it; `name` may
// also be what an LXC or systemd machine is called. An error lists them when there are several, or none.
Result<std::string> cgroup_of_container(const std::string& mount, const std::string& name);
Result<std::string> cgroup_of_pod(const std::string& mount, const std::string& name);

}  // namespace tacho::record
