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

std::vector<CpuWatch::Change> CpuWatch::look() {
  std::vector<Change> changes;
  const auto text =
      cpus_.empty() ? Result<std::vector<std::byte>>(Error{"none"}) : format::read_file(online_file_);
  if (!text) return changes;
  const auto list = format::as_text(*text);
  const auto online = parse_cpu_list(list.substr(0, list.find('\n')));
  if (!online) return changes;
  for (const int cpu : cpus_) {
    const bool is_online = std::ranges::find(*online, cpu) != online->end();
    const auto gone = std::ranges::find(gone_, cpu);
    if (is_online == (gone == gone_.end())) continue;
    changes.push_back({cpu, is_online});
    if (is_online) {
      gone_.erase(gone);
    } else {
      gone_.push_back(cpu);
    }
  }
  return changes;
}

}  // namespace tacho::record
