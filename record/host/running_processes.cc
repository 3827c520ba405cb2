#include "record/host/running_processes.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <ctime>
#include <optional>
#include <tuple>

#include "record/events/target.h"
#include "record/host/process_maps.h"
#include "record/parse_text.h"

namespace tacho::record {
namespace {

// The table is in the head of each capture: this number of lines is about 20 MB before compression.
constexpr std::size_t kMostProcesses = 100'000;
// Notes of nearly every binary are in its first page; some linkers put them after the symbol tables.
constexpr std::size_t kHeadOfBinary = std::size_t{64} << 10;
constexpr std::string_view kHead =
    "pid\tpids\tstart_ns\tpid_namespace\tmount_namespace\tcgroup\texecutable\n";

// The inode of a namespace; 0: it cannot be read.
std::uint64_t number_of_namespace(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

std::string target_of_link(const std::string& path) {
  std::array<char, PATH_MAX> room{};
  const ssize_t size = readlink(path.c_str(), room.data(), room.size());
  return size > 0 ? std::string(room.data(), static_cast<std::size_t>(size)) : std::string();
}

// A file's or cgroup's name may contain tabs and line ends.
std::string in_one_field(std::string_view name) {
  std::string out;
  for (const char letter : name) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte >= ' ' && byte != 0x7F && byte != '\\') {
      out += letter;
      continue;
    }
    constexpr std::string_view kDigits = "01234567";
    out += '\\';
    for (const int shift : {6, 3, 0}) out += kDigits[byte >> shift & 7];
  }
  return out;
}

}  // namespace

std::string numbers_in_namespaces(std::string_view status) {
  std::string numbers(field_of_status(status, "NSpid"));
  std::ranges::replace(numbers, '\t', ',');
  return numbers.find_first_not_of("0123456789,") == std::string::npos ? numbers : std::string();
}

namespace {

// Fields of /proc/PID/stat, as proc(5) counts them.
constexpr std::size_t kStateField = 3, kUserTimeField = 14, kSystemTimeField = 15, kStartField = 22;

// A field after the name; empty: there is none.
std::string_view field_of_stat(std::string_view stat, std::size_t field) {
  // The second field is the name in parentheses, which may contain blanks and parentheses.
  const auto name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return {};
  stat.remove_prefix(std::min(name_end + 2, stat.size()));
  for (std::size_t before = kStateField; before < field; ++before) take_until(stat, ' ');
  return take_until(stat, ' ');
}

}  // namespace

unsigned long long start_of(std::string_view stat, long ticks_a_second) {
  if (ticks_a_second <= 0) return 0;
  const auto ticks = number_at<unsigned long long>(field_of_stat(stat, kStartField));
  const auto tick_ns = 1'000'000'000ULL / static_cast<unsigned long long>(ticks_a_second);
  return ticks < ULLONG_MAX / tick_ns ? ticks * tick_ns : 0;
}

std::string cgroup_path(std::string_view lines) {
  std::string second;
  while (!lines.empty()) {
    // "4:net_cls,perf_event:/docker/4f" of version 1, "0::/system.slice" of version 2
    std::string_view line = take_until(lines, '\n');
    take_until(line, ':');
    std::string_view controllers = take_until(line, ':');
    if (controllers.empty()) second = line;
    while (!controllers.empty()) {
      if (take_until(controllers, ',') == "perf_event") return std::string(line);
    }
  }
  return second;
}

ProcessTable::ProcessTable(std::shared_ptr<ForeignReader> reader, std::string proc)
    : reader_(std::move(reader)), proc_(std::move(proc)), text_(kHead) {}

void ProcessTable::add_process(int process) {
  if (count_ >= kMostProcesses) return;
  const std::string number = std::to_string(process);
  const std::string folder = proc_ + "/" + number;
  const std::string status = text_of_file(folder + "/status");
  if (status.empty() || !answers_now(reader_.get(), folder)) return;
  std::string numbers = numbers_in_namespaces(status);
  if (numbers.empty()) numbers = number;
  const std::string stat = text_of_file(folder + "/stat"), cgroups = text_of_file(folder + "/cgroup");
  const std::string executable =
      target_of_link(folder_of_process(static_cast<std::uint32_t>(process), proc_) + "/exe");
  ++count_;
  text_ += number + '\t' + numbers + '\t' + std::to_string(start_of(stat, sysconf(_SC_CLK_TCK))) + '\t' +
           std::to_string(number_of_namespace(folder + "/ns/pid")) + '\t' +
           std::to_string(number_of_namespace(folder + "/ns/mnt")) + '\t' +
           in_one_field(cgroup_path(cgroups)) + '\t' + in_one_field(executable) + '\n';
}

std::vector<int> RunningProcesses::all() const { return numbers_in(proc_); }

std::vector<int> RunningProcesses::busiest_first() const {
  struct Busy {
    bool is_running = false;
    double share = 0;  // of its life
    int process = 0;
  };
  timespec boot{};
  ::clock_gettime(CLOCK_BOOTTIME, &boot);
  const double second = static_cast<double>(sysconf(_SC_CLK_TCK));
  const double now = (static_cast<double>(boot.tv_sec) + static_cast<double>(boot.tv_nsec) / 1e9) * second;
  std::vector<Busy> found;
  for (const int process : all()) {
    if (!answers_now(reader_.get(), proc_ + "/" + std::to_string(process))) continue;
    const std::string stat = text_of_file(proc_ + "/" + std::to_string(process) + "/stat");
    const auto ticks = [&stat](std::size_t field) {
      return static_cast<double>(number_at<unsigned long long>(field_of_stat(stat, field)));
    };
    const double life = std::max(now - ticks(kStartField), 1.0);
    found.push_back({field_of_stat(stat, kStateField) == "R",
                     (ticks(kUserTimeField) + ticks(kSystemTimeField)) / life, process});
  }
  std::ranges::stable_sort(found, [](const Busy& a, const Busy& b) {
    return std::tuple(!a.is_running, -a.share) < std::tuple(!b.is_running, -b.share);
  });
  std::vector<int> processes;
  for (const Busy& one : found) processes.push_back(one.process);
  return processes;
}

void RunningProcesses::describe_process(int process, format::ByteWriter& out, Describe describe) {
  const std::string folder = proc_ + "/" + std::to_string(process);
  const std::string status = text_of_file(folder + "/status");
  if (status.empty()) return;
  const auto pid = static_cast<std::uint32_t>(process);
  for (const int thread : numbers_in(folder + "/task")) {
    std::string name = text_of_file(folder + "/task/" + std::to_string(thread) + "/comm");
    if (name.empty()) continue;
    if (name.ends_with('\n')) name.pop_back();
    const auto tid = static_cast<std::uint32_t>(thread);
    // The parent of a thread is taken to be its process, as perf does.
    const std::uint32_t parent = tid == pid ? number_at<std::uint32_t>(field_of_status(status, "PPid")) : pid;
    format::write_fork(out, {pid, parent, tid, parent, 0, false}, trailer_);
    format::write_comm(out, {pid, tid, name, false}, trailer_);
  }
  if (!answers_now(reader_.get(), folder)) return;
  if (records_.namespaces) describe_namespaces(process, out);
  if (describe == Describe::All) describe_mappings(process, out);
}

// As in the kernel's NAMESPACES record: device and inode of each of these files.
void RunningProcesses::describe_namespaces(int process, format::ByteWriter& out) const {
  std::vector<std::uint64_t> links;
  for (const char* kind : {"net", "uts", "ipc", "pid", "user", "mnt", "cgroup"}) {
    struct stat info {};
    const std::string path = proc_ + "/" + std::to_string(process) + "/ns/" + kind;
    const bool is_known = stat(path.c_str(), &info) == 0;  // older kernels lack some
    links.push_back(is_known ? info.st_dev : 0);
    links.push_back(is_known ? info.st_ino : 0);
  }
  const auto pid = static_cast<std::uint32_t>(process);
  format::write_namespaces(out, pid, pid, links, trailer_);
}

void RunningProcesses::describe_mappings(int process, format::ByteWriter& out) {
  if (!reader_) return;
  const std::string folder = folder_of_process(static_cast<std::uint32_t>(process), proc_);
  const std::string text = reader_->text_of(folder + "/maps");
  MapsReader reader(text);
  while (auto parsed = reader.next_line()) {
    format::MmapRecord& mapping = parsed->mapping;
    if (!parsed->is_executable) {
      if (!records_.data_mappings || (mapping.protection & PROT_READ) == 0) continue;
      mapping.is_data = true;
    }
    mapping.pid = mapping.tid = static_cast<std::uint32_t>(process);
    const std::string filename = with_newlines(mapping.filename);
    mapping.filename = filename;
    if (records_.build_ids) mapping.build_id = build_id_of(folder, mapping);
    format::write_mmap2(out, mapping, format::abi::kCpumodeUser, trailer_);
  }
}

format::BuildId RunningProcesses::build_id_of(const std::string& folder, const format::MmapRecord& mapping) {
  if (mapping.inode == 0) return {};
  const auto [found, is_new] = build_ids_.try_emplace({mapping.major, mapping.minor, mapping.inode});
  if (!is_new) return found->second;
  const std::string range = fmt::format("{:x}-{:x}", mapping.start, mapping.start + mapping.length);
  const std::string scope =
      scope_of_file(mapping.major, mapping.minor, std::string(mapping.filename), folder);
  // By /proc/PID/map_files, which also works for deleted files, else by its path in the process's root, or as
  // the process's program.
  for (const ForeignPath& path : {ForeignPath{"", folder + "/map_files/" + range, mapping.inode},
                                  ForeignPath{folder + "/root", std::string(mapping.filename), mapping.inode},
                                  ForeignPath{"", folder + "/exe", mapping.inode}}) {
    const auto head = reader_->head_of(path, kHeadOfBinary, scope, std::string(mapping.filename));
    if (!head && head.error().code != ETIMEDOUT) continue;
    if (const auto id = head ? format::build_id_in_elf(*head) : std::nullopt) found->second = *id;
    break;
  }
  return found->second;
}

std::chrono::nanoseconds thread_cpu_time() {
  timespec time{};
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace tacho::record
