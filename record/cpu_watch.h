// Processors that leave and come while they are recorded: the kernel takes their events away with them, for
// good and without a word.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace tacho::record {

class CpuWatch {
 public:
  // `cpus`: those that are recorded, all on line now; -1 (wherever a thread runs) is none of them. `later`:
  // those that are off line now and to be recorded as well.
  explicit CpuWatch(std::vector<int> cpus, std::vector<int> later = {},
                    std::string online_file = "/sys/devices/system/cpu/online");

  struct Change {
    int cpu = 0;
    bool is_online = false;
  };
  // What happened to them since the last look. A machine that does not tell changes nothing. `came`: those
  // that came on line since then as the kernel told it, which may be a moment after the file says so: one
  // that was never seen away went and came.
  std::vector<Change> look(std::span<const int> came = {});

 private:
  void look_at(int cpu, bool is_online, std::size_t times_told, std::vector<Change>& changes);

  std::vector<int> cpus_, gone_;
  std::vector<int> untold_;  // seen to come, and not told yet
  std::string online_file_;
};

}  // namespace tacho::record
