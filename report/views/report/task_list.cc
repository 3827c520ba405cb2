#include "report/views/report/task_list.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <tuple>

#include "format/records/perf_abi.h"

namespace tacho::report {
namespace {

// Each fork may copy all mappings of a process: without a limit, a small capture could take any amount of
// memory.
constexpr std::uint64_t kMostStored = std::uint64_t{1} << 23;

// Whether perf takes the mapping for code of a JIT compiler, and names it after the compiler's perf map.
bool is_jit_code(const format::MmapRecord& record, std::uint32_t protection) {
  constexpr std::uint32_t kHugePages = 0x40000;  // MAP_HUGETLB
  if ((protection & PROT_EXEC) == 0) return false;
  return (record.flags & kHugePages) != 0 || record.filename == "//anon" ||
         record.filename.starts_with("/dev/zero") || record.filename.starts_with("/anon_hugepage");
}

}  // namespace

TaskList::TaskList(Maps maps) : wants_maps_(maps) {
  Task& idle = make(0, 0);
  idle.comm = "swapper";
  idle.is_named = true;
}

TaskList::Task& TaskList::make(std::uint32_t pid, std::uint32_t tid) {
  Task& task = tasks_[tid];
  task = {.pid = pid, .tid = tid, .comm = fmt::format(":{}", static_cast<std::int32_t>(tid))};
  if (pid == tid || pid == ~0U) task.maps = std::make_shared<MapsByStart>();
  return task;
}

TaskList::Task& TaskList::find_or_make(std::uint32_t pid, std::uint32_t tid) {
  const auto found = tasks_.find(tid);
  if (found == tasks_.end()) return make(pid, tid);
  if (found->second.pid == ~0U && pid != ~0U) found->second.pid = pid;
  return found->second;
}

Sink::Flow TaskList::on_non_sample(const NonSampleRecord& other) {
  namespace abi = format::abi;
  const auto cpumode = static_cast<std::uint8_t>(other.view->misc & abi::kCpumodeMask);
  if (cpumode == abi::kCpumodeGuestKernel || cpumode == abi::kCpumodeGuestUser) return Flow::Continue;
  if (const auto* const map = std::get_if<format::MmapRecord>(other.record)) {
    take_record(*map, cpumode == abi::kCpumodeKernel);
  } else if (const auto* const task = std::get_if<format::TaskRecord>(other.record)) {
    // For processes that ran already, perf writes a FORK with this bit, and then their mappings.
    take_record(*task, (other.view->misc & abi::kMiscForkExec) == 0);
  } else if (const auto* const comm = std::get_if<format::CommRecord>(other.record)) {
    take_record(*comm);
  }
  return failure_ ? Flow::Stop : Flow::Continue;
}

void TaskList::take_record(const format::CommRecord& record) {
  Task& task = find_or_make(record.pid, record.tid);
  task.comm = record.name;
  task.is_named = true;
}

// After an EXIT the thread stays in the list.
void TaskList::take_record(const format::TaskRecord& record, bool inherits_maps) {
  if (record.is_exit) return;
  Task* parent = &find_or_make(record.parent_pid, record.parent_tid);
  if (parent->pid != record.parent_pid) parent = &make(record.parent_pid, record.parent_tid);
  const Task from = *parent;  // a copy: adding the child may move the parent
  Task& child = make(record.pid, record.tid);
  child.parent = from.tid;
  if (from.is_named) {
    child.comm = from.comm;
    child.is_named = true;
  }
  if (inherits_maps && record.pid != record.parent_pid && record.pid == record.tid) {
    const auto process = tasks_.find(from.pid);
    if (process != tasks_.end() && process->second.maps) child.maps = process->second.maps;
  }
}

void TaskList::take_record(const format::MmapRecord& record, bool is_kernel) {
  if (wants_maps_ == Maps::No || is_kernel || record.pid == ~0U) return;
  find_or_make(record.pid, record.tid);
  Task& process = find_or_make(record.pid, record.pid);
  if (!process.maps) process.maps = std::make_shared<MapsByStart>();
  if (process.maps.use_count() > 1) {
    process.maps = std::make_shared<MapsByStart>(*process.maps);
    stored_ += process.maps->size();
  }
  if (++stored_ > kMostStored) {
    failure_ = Error{"--mmaps: the processes have more than " + std::to_string(kMostStored) + " mappings"};
    return;
  }
  const std::uint32_t protection = record.is_mmap2 || record.is_data ? record.protection : PROT_EXEC;
  std::uint64_t end = 0;
  if (record.length == 0 || __builtin_add_overflow(record.start, record.length, &end)) return;
  auto name = is_jit_code(record, protection)
                  ? fmt::format("/tmp/perf-{}.map", static_cast<std::int32_t>(record.pid))
                  : std::string(record.filename);
  // The vdso is no file. simpleperf writes uninitialized bytes into this field; perf ignores the field.
  const bool is_vdso = record.filename.starts_with("[vdso");
  insert(*process.maps, {.start = record.start,
                         .end = end,
                         .page_offset = record.page_offset,
                         .inode = is_vdso ? 0 : record.inode,
                         .protection = protection,
                         .flags = record.flags,
                         .name = std::make_shared<const std::string>(std::move(name))});
}

// Replaces mappings in the same range.
void TaskList::insert(MapsByStart& maps, Map map) {
  auto at = maps.upper_bound(map.start);
  if (at != maps.begin() && std::prev(at)->second.end > map.start) --at;
  while (at != maps.end() && at->second.start < map.end) {
    const Map old = at->second;
    at = maps.erase(at);
    if (old.start < map.start) {
      Map before = old;
      before.end = map.start;
      maps.emplace(before.start, before);
    }
    if (old.end > map.end) {
      Map after = old;
      after.page_offset += map.end - old.start;
      after.start = map.end;
      at = maps.emplace(after.start, after).first;
      break;
    }
  }
  maps.insert_or_assign(map.start, std::move(map));
}

// perf keeps threads in 256 trees by tid.
std::vector<const TaskList::Task*> TaskList::in_perfs_order() const {
  std::vector<const Task*> all;
  all.reserve(tasks_.size());
  for (const auto& [tid, task] : tasks_) all.push_back(&task);
  std::ranges::sort(all, {}, [](const Task* task) {
    return std::tuple(task->tid % 256, static_cast<std::int32_t>(task->tid));
  });
  return all;
}

void TaskList::write(TextOutput& out, Names names) const {
  // A thread is linked below its parent, and the parent below its own, before the next thread follows. In a
  // cycle of parents the last one is at the top.
  std::unordered_map<std::uint32_t, std::vector<const Task*>> below;  // by the parent's tid
  std::vector<const Task*> top;
  std::unordered_map<std::uint32_t, std::uint32_t, format::SeededHash>
      linked;  // the first of the walk, by tid
  for (const Task* task : in_perfs_order()) {
    const std::uint32_t first = task->tid;
    while (linked.try_emplace(task->tid, first).second) {
      const auto parent =
          task->parent < 0 ? tasks_.end() : tasks_.find(static_cast<std::uint32_t>(task->parent));
      const auto seen = parent == tasks_.end() ? linked.end() : linked.find(parent->first);
      if (parent == tasks_.end() || (seen != linked.end() && seen->second == first)) {
        top.push_back(task);
        break;
      }
      below[parent->first].push_back(task);
      task = &parent->second;
    }
  }
  out.text(fmt::format("# {:>8} {:>8} {:>8}  {}\n", "pid", "tid", "ppid", "comm"));
  struct Next {
    const Task* task;
    std::size_t level;
  };
  std::vector<Next> left;
  for (auto task = top.rbegin(); task != top.rend(); ++task) left.push_back({*task, 0});
  while (!left.empty() && !out.is_done()) {
    const auto [task, level] = left.back();
    left.pop_back();
    write_task(out, *task, level, names);
    const auto children = below.find(task->tid);
    if (children == below.end()) continue;
    for (auto child = children->second.rbegin(); child != children->second.rend(); ++child)
      left.push_back({*child, level + 1});
  }
}

void TaskList::write_task(TextOutput& out, const Task& task, std::size_t level, Names names) const {
  out.text(fmt::format("  {:8} {:8} {:8} |", static_cast<std::int32_t>(task.pid),
                       static_cast<std::int32_t>(task.tid), task.parent));
  out.blanks(level);
  out.text(printable(task.comm, names));
  out.character('\n');
  out.line_end();
  if (wants_maps_ == Maps::No) return;
  const auto process = tasks_.find(task.pid);
  if (process == tasks_.end() || !process->second.maps) return;
  for (const auto& [start, map] : *process->second.maps) {
    const auto letter = [&map = map](std::uint32_t bit, char shown) {
      return (map.protection & bit) != 0 ? shown : '-';
    };
    constexpr std::size_t kNumbers = 30;  // the width of pid, tid and ppid
    out.blanks(kNumbers + level);
    out.text(fmt::format("  {:x}-{:x} {}{}{}{} {:08x} {} {}\n", start, map.end, letter(PROT_READ, 'r'),
                         letter(PROT_WRITE, 'w'), letter(PROT_EXEC, 'x'),
                         (map.flags & MAP_SHARED) != 0 ? 's' : 'p', map.page_offset, map.inode,
                         printable(*map.name, names)));
    out.line_end();
  }
}

Result<Shown> show_tasks(Session& session, TextOutput& out, TaskList::Maps maps, Names names) {
  TaskList tasks(maps);
  run_with_progress(session, tasks, out);
  if (tasks.failure()) return *tasks.failure();
  tasks.write(out, names);
  return Shown(Symbols::NotUsed);
}

namespace {

std::size_t digits(std::uint32_t number) { return std::to_string(static_cast<std::int32_t>(number)).size(); }

}  // namespace

void ThreadValues::add_record(const NonSampleRecord& other) {
  const auto* const read = std::get_if<format::ReadRecord>(other.record);
  if (read == nullptr || read->values.size() == 0) return;
  const std::uint64_t thread = std::uint64_t{read->pid} << 32 | read->tid;
  const auto [number, is_new] = row_of_.try_emplace(thread, rows_.size());
  if (is_new) rows_.push_back({read->pid, read->tid, {}});
  Row& row = rows_[number->second];
  const auto [known, is_new_event] = column_of_.try_emplace(other.event_index, events_.size());
  if (is_new_event) events_.push_back(other.event_index);
  row.values[known->second] += read->values.entry(0).value;
}

void ThreadValues::write(TextOutput& out, const Session& session, Names names, ValueForm form) const {
  std::vector<std::string> events;
  for (const std::size_t event : events_) events.push_back(printable(session.events()[event].name, names));
  form == ValueForm::Raw ? write_raw(out, events) : write_table(out, events);
}

void ThreadValues::write_table(TextOutput& out, std::span<const std::string> headers) const {
  std::size_t pid_width = 3, tid_width = 3;  // at least as wide as the headings
  std::vector<std::size_t> widths;
  for (const std::string& header : headers) widths.push_back(header.size());
  for (const Row& row : rows_) {
    pid_width = std::max(pid_width, digits(row.pid));
    tid_width = std::max(tid_width, digits(row.tid));
    for (const auto& [column, value] : row.values)
      widths[column] = std::max(widths[column], std::to_string(value).size());
  }
  out.text("# ");
  out.padded("PID", pid_width);
  out.text("  ");
  out.padded("TID", tid_width);
  for (std::size_t i = 0; i < headers.size(); ++i) {
    out.text("  ");
    out.padded(headers[i], widths[i]);
  }
  out.character('\n');
  for (const Row& row : rows_) {
    out.text("  ");
    out.signed_decimal(static_cast<std::int32_t>(row.pid), pid_width);
    out.text("  ");
    out.signed_decimal(static_cast<std::int32_t>(row.tid), tid_width);
    for (std::size_t i = 0; i < headers.size(); ++i) {
      out.text("  ");
      out.decimal(row.value(i), widths[i]);
    }
    out.character('\n');
    out.line_end();
  }
}

void ThreadValues::write_raw(TextOutput& out, std::span<const std::string> events) const {
  // At least as wide as the headings.
  std::size_t pid_width = 3, tid_width = 3, name_width = 4, number_width = 3, count_width = 5;
  for (const std::string& event : events) name_width = std::max(name_width, event.size());
  for (const std::size_t event : events_)
    number_width = std::max(number_width, fmt::formatted_size("{:x}", event));
  for (const Row& row : rows_) {
    pid_width = std::max(pid_width, digits(row.pid));
    tid_width = std::max(tid_width, digits(row.tid));
    for (const auto& [column, value] : row.values)
      count_width = std::max(count_width, std::to_string(value).size());
  }
  out.text("# ");
  const auto head = [&out](std::string_view name, std::size_t width) {
    out.padded(name, width);
    out.text(name == "Count" ? "\n" : "  ");
  };
  head("PID", pid_width);
  head("TID", tid_width);
  head("Name", name_width);
  head("Raw", number_width);
  head("Count", count_width);
  for (const Row& row : rows_) {
    for (std::size_t i = 0; i < events.size(); ++i) {
      out.text(fmt::format("  {:{}}  {:{}}  {:>{}}  {:{}x}  {:{}}", static_cast<std::int32_t>(row.pid),
                           pid_width, static_cast<std::int32_t>(row.tid), tid_width, events[i], name_width,
                           events_[i], number_width, row.value(i), count_width));
    }
    out.line_end();  // the whole list is one line
  }
}

}  // namespace tacho::report
