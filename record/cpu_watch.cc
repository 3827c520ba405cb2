#include "record/cpu_watch.h"

#include <algorithm>
#include <utility>

#include "format/file.h"
#include "record/events/target.h"

namespace tacho::record {

CpuWatch::CpuWatch(std::vector<int> cpus, std::vector<int> later, std::string online_file)
    : cpus_(std::move(cpus)), gone_(std::move(later)), online_file_(std::move(online_file)) {
  cpus_.insert(cpus_.end(), gone_.begin(), gone_.end());
  std::ranges::sort(cpus_);
  cpus_.erase(std::unique(cpus_.begin(), cpus_.end()), cpus_.end());
  std::erase(cpus_, -1);
}

void CpuWatch::look_at(int cpu, bool is_online, std::size_t times_told, std::vector<Change>& changes) {
  const auto gone = std::ranges::find(gone_, cpu);
  const bool was_online = gone == gone_.end();
  if (!was_online && is_online) {
    changes.push_back({cpu, true});
    gone_.erase(gone);
    untold_.push_back(cpu);
  }
  for (; times_told != 0 && std::ranges::find(untold_, cpu) != untold_.end(); --times_told)
    untold_.erase(std::ranges::find(untold_, cpu));
  if (was_online && !is_online) {
    changes.push_back({cpu, false});
    gone_.push_back(cpu);
  } else if (was_online && times_told != 0) {
    changes.push_back({cpu, false});
    changes.push_back({cpu, true});
  }
}

std::vector<CpuWatch::Change> CpuWatch::look(std::span<const int> came) {
  std::vector<Change> changes;
  const auto text =
      cpus_.empty() ? Result<std::vector<std::byte>>(Error{"none"}) : format::read_file(online_file_);
  if (!text) return changes;
  const auto list = format::as_text(*text);
  const auto online = parse_cpu_list(list.substr(0, list.find('\n')));
  if (!online) return changes;
  for (const int cpu : cpus_) {
    const bool is_online = std::ranges::find(*online, cpu) != online->end();
    look_at(cpu, is_online, static_cast<std::size_t>(std::ranges::count(came, cpu)), changes);
  }
  return changes;
}

}  // namespace tacho::record
