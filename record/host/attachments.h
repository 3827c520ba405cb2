// Facts of this host that are stored in the capture: cgroups, block devices, the vdso.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/byte_writer.h"
#include "format/base/result.h"
#include "format/extensions/attachment.h"

namespace tacho::record {

// The kernel's symbol list, if there is one, and the kernel's vdso.
Result<std::vector<format::Attachment>> gather_attachments(std::optional<format::Attachment> kallsyms);
// The vdso as an ELF image. It is in no file; all processes map the same one. Empty: there is none.
std::vector<std::byte> own_vdso();

// A cgroup of this host: samples have cgroup ids only.
struct Cgroup {
  std::uint64_t id = 0;
  std::string path;  // below the mount: "/", "/user.slice"
};
// The cgroups below `mount`, parents first; at most `most`.
std::vector<Cgroup> cgroups_below(const std::string& mount, std::size_t most = 1 << 16);

// The cgroups of the hierarchy that perf events use; empty: it is not mounted.
std::vector<Cgroup> all_cgroups();

// Appends a CGROUP record for each; nothing if no hierarchy is mounted. `trailer`: bytes of sample_id_all.
void write_cgroup_records(format::ByteWriter& out, std::size_t trailer);

// A disk or partition of this host: tracepoints of block I/O have device numbers only.
struct BlockDevice {
  std::uint32_t dev = 0;  // as in the kernel: major number << 20 | minor number
  std::string name;
  std::string disk;  // of a partition, its disk; empty: it is no partition
};

// All devices in `partitions`, the text of /proc/partitions. `folder`: sysfs's folder of block devices.
std::vector<BlockDevice> block_devices(std::string_view partitions,
                                       const std::string& folder = "/sys/class/block");

// The disk with that name; /dev/NAME is accepted, too.
Result<BlockDevice> disk_named(const std::vector<BlockDevice>& devices, std::string_view name);

}  // namespace tacho::record
