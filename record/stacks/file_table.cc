#include "record/stacks/file_table.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "record/host/attachments.h"
#include "record/host/process_maps.h"
#include "unwind/elf_image.h"

namespace tacho::record {

std::optional<std::uint32_t> IdRangeAllocator::take_range(std::uint32_t count, Clock::time_point now) {
  release_quarantined(now);
  for (auto run = free_.begin(); run != free_.end(); ++run) {
    const auto [first, room] = *run;
    if (room < count) continue;
    free_.erase(run);
    if (room > count) free_.emplace(first + count, room - count);
    taken_ += count;
    return first;
  }
  return std::nullopt;
}

void IdRangeAllocator::give_back(std::uint32_t first, std::uint32_t count, Clock::time_point now) {
  if (count != 0) quarantine_.push_back({now, first, count});
}

std::uint32_t IdRangeAllocator::free_later() const {
  std::uint32_t free = size_ - taken_;
  for (const Quarantined& run : quarantine_) free += run.count;
  return free;
}

bool IdRangeAllocator::will_have(std::uint32_t count, std::uint32_t anywhere) const {
  if (free_later() < anywhere) return false;
  IdRangeAllocator later(0);
  for (const auto& [first, room] : free_) later.add_free(first, room);
  for (const Quarantined& run : quarantine_) later.add_free(run.first, run.count);
  return std::ranges::any_of(later.free_, [count](const auto& run) { return run.second >= count; });
}

void IdRangeAllocator::grow(std::uint32_t more) {
  add_free(size_, more);
  size_ += more;
}

void IdRangeAllocator::release_quarantined(Clock::time_point now) {
  while (!quarantine_.empty() && now - quarantine_.front().since >= kQuarantine) {
    add_free(quarantine_.front().first, quarantine_.front().count);
    taken_ -= quarantine_.front().count;
    quarantine_.pop_front();
  }
}

void IdRangeAllocator::add_free(std::uint32_t first, std::uint32_t count) {
  const auto after = free_.lower_bound(first);
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == first) {
      first = before->first;
      count += before->second;
      free_.erase(before);
    }
  }
  if (after != free_.end() && first + count == after->first) {
    count += after->second;
    free_.erase(after);
  }
  if (count != 0) free_[first] = count;
}

namespace {

constexpr std::size_t kHeadOfBinary = std::size_t{64} << 10;  // the build id is in it
constexpr std::size_t kMostCodeSegments = 256;                // linkers make one or two
constexpr std::string_view kDebugFolder = "/usr/lib/debug";
constexpr unsigned kMinorBits = 20;  // of a device, as the kernel counts them

// On stacked file systems the device differs from the kernel's; then the program asks.
std::optional<tacho_file_key> key_of(const ForeignFile& file) {
  const struct stat& info = file.status();
  if (!file.generation()) return std::nullopt;
  constexpr std::uint64_t kNanoseconds = 1'000'000'000;
  return tacho_file_key{info.st_ino, static_cast<std::uint64_t>(info.st_size),
                        static_cast<std::uint64_t>(info.st_ctim.tv_sec) * kNanoseconds +
                            static_cast<std::uint64_t>(info.st_ctim.tv_nsec),
                        major(info.st_dev) << kMinorBits | minor(info.st_dev), *file.generation()};
}

bool is_the_same(ForeignFile& opened, const MappedFile& file) {
  if (!file.build_id.empty()) return build_id_of(opened) == file.build_id;
  const struct stat& info = opened.status();
  if (info.st_ino != file.inode) return false;
  if (file.size == 0) return true;
  const auto key = key_of(opened);
  return static_cast<std::uint64_t>(info.st_size) == file.size &&
         (!key ||
          (key->generation == file.generation && (file.changed == 0 || key->changed == file.changed)));
}

// Converts ELF addresses to file offsets. Segments with code usually have equal layouts in both.
void count_from_file(unwind::RowTable& table, const unwind::ElfImage& image) {
  const auto segments = image.code_segments();
  if (segments.empty() || table.rows.empty()) return;
  if (segments.size() > kMostCodeSegments) {
    table.rows.clear();
    return;
  }
  const auto shift = [](const unwind::ElfImage::Code& code) { return code.address - code.offset; };
  const bool is_even = std::ranges::all_of(
      segments, [&](const auto& segment) { return shift(segment) == shift(segments.front()); });
  if (is_even) {
    table.base -= shift(segments.front());
    return;
  }
  std::vector<unwind::Row> moved;
  const std::uint64_t old_base = table.base;
  table.base = 0;
  for (const unwind::Row& row : table.rows) {
    const std::uint64_t address = old_base + row.pc;
    for (const auto& segment : segments) {
      if (address < segment.address || address > segment.address + segment.size) continue;
      const std::uint64_t place = address - shift(segment);
      if (place >= std::numeric_limits<std::uint32_t>::max()) continue;
      moved.push_back(row);
      moved.back().pc = static_cast<std::uint32_t>(place);
      if (address < segment.address + segment.size) break;
    }
  }
  std::ranges::stable_sort(moved, {}, &unwind::Row::pc);
  table.rows = std::move(moved);
}

}  // namespace

MappedFile file_of(const format::MmapRecord& mapping) {
  MappedFile file;
  file.build_id = mapping.build_id;
  file.major = mapping.major;
  file.minor = mapping.minor;
  file.inode = mapping.inode;
  file.name = mapping.filename;
  file.process = mapping.pid;
  file.start = mapping.start;
  file.end = mapping.start + mapping.length;
  return file;
}

std::string identity(const MappedFile& file) {
  if (file.name == "[vdso]") return file.name;
  if (!file.build_id.empty()) return file.build_id.hex();
  return fmt::format("{}:{}:{}:{}:{}:{}", file.major, file.minor, file.inode, file.size, file.generation,
                     file.changed);
}

// The names that the kernel makes for memory. Programs may be in files of memory (memfd) and in /dev/shm.
bool is_code_of_no_file(const std::string& name) {
  if (!name.starts_with('/')) return name != "[vdso]";
  return name.starts_with("//anon") || name.starts_with("/dev/zero") || name.starts_with("/SYSV");
}

format::BuildId build_id_of(ForeignFile& file) {
  const auto head = file.read_bytes(0, kHeadOfBinary);
  const auto id = head ? format::build_id_in_elf(*head) : std::nullopt;
  return id.value_or(format::BuildId{});
}

Result<unwind::ElfImage> image_of_file(ForeignFile file) {
  const auto size = static_cast<std::uint64_t>(file.status().st_size);
  const auto read = [shared = std::make_shared<ForeignFile>(std::move(file))](std::uint64_t offset,
                                                                              std::size_t bytes) {
    auto found = shared->read_bytes(offset, bytes);
    return found ? std::optional(std::move(*found)) : std::nullopt;
  };
  return unwind::ElfImage::open(read, size);
}

void know(MappedFile& file, ForeignFile& opened) {
  file.build_id = build_id_of(opened);
  if (const auto key = key_of(opened)) {
    file.size = key->size;
    file.changed = key->changed;
    file.generation = key->generation;
  }
}

std::vector<ForeignPath> paths_of(const MappedFile& file, const std::string& proc) {
  const std::string folder = folder_of_process(file.process, proc);
  // For a mapping, the file's name is not trusted. A file of a layered file system has two inodes; its build
  // id identifies it as well.
  const std::uint64_t inode = file.build_id.empty() ? file.inode : 0;
  std::vector<ForeignPath> paths = {{"", fmt::format("{}/map_files/{:x}-{:x}", folder, file.start, file.end)},
                                    {folder + "/root", file.name, inode}};
  if (view_of(folder) != View::Other) paths.push_back({"/", file.name, inode});
  // The program itself, for users who may not open map_files.
  if (file.inode != 0) paths.push_back({"", folder + "/exe", file.inode});
  return paths;
}

std::string scope_of(const MappedFile& file, const std::string& proc) {
  return scope_of_file(file.major, file.minor, file.name, folder_of_process(file.process, proc));
}

Result<ForeignFile> open_binary(const MappedFile& file, ForeignReader& reader, const std::string& proc) {
  const std::string scope = scope_of(file, proc);
  for (const ForeignPath& path : paths_of(file, proc)) {
    auto opened = reader.open_file(path, scope, file.name);
    if (!opened && opened.error().code == ETIMEDOUT) return Error{opened.error().what, kNotOpened};
    if (opened && is_the_same(*opened, file)) return opened;
  }
  return Error{file.name + ": cannot be opened", kNotOpened};
}

MappedFile file_of(const tacho_file_request& request) {
  MappedFile file;
  file.process = request.process;
  file.start = request.start;
  file.end = request.end;
  file.inode = request.key.inode;
  file.major = request.key.device >> kMinorBits;
  file.minor = request.key.device & ((1U << kMinorBits) - 1);
  return file;
}

Result<MappedFile> requested_file(const tacho_file_request& request, ForeignReader& reader) {
  MappedFile file = file_of(request);
  const ForeignPath mapped = paths_of(file).front();
  const std::string& path = mapped.path;
  auto opened = reader.open_file(mapped, scope_of(file));
  if (!opened) return std::move(opened.error());
  const struct stat& info = opened->status();
  // The process may have mapped something else meanwhile.
  if (static_cast<std::uint64_t>(info.st_size) != request.key.size)
    return Error{path + ": another file", kNotOpened};
  if (auto key = key_of(*opened); key && key->device == request.key.device) {
    if (request.key.changed == 0) key->changed = 0;
    if (std::memcmp(&*key, &request.key, sizeof *key) != 0) return Error{path + ": another file", kNotOpened};
  }
  file.size = request.key.size;
  file.changed = request.key.changed;
  file.generation = request.key.generation;
  file.name = opened->target();
  file.build_id = build_id_of(*opened);
  file.inode = info.st_ino;
  return file;
}

std::optional<unwind::ElfImage> debug_image_of(const MappedFile& file, const unwind::ElfImage& image,
                                               ForeignReader& reader, const std::string& proc) {
  const format::BuildId id = image.build_id();
  if (id.size < 2) return std::nullopt;
  const std::string hex = id.hex();
  const std::string by_id =
      fmt::format("{}/.build-id/{}/{}.debug", kDebugFolder, hex.substr(0, 2), hex.substr(2));
  const auto find = [&](const std::vector<ForeignPath>& paths,
                        const std::string& scope) -> std::optional<unwind::ElfImage> {
    for (const ForeignPath& path : paths) {
      auto opened = reader.open_file(path, scope);
      auto debug = opened ? image_of_file(std::move(*opened)) : Error{"cannot be opened"};
      if (debug && debug->build_id() == id) return std::move(*debug);
    }
    return std::nullopt;
  };
  if (auto found = find({{"/", by_id}}, std::string(kDebugFolder))) return found;

  std::vector<std::string> names{by_id};
  const std::string link = image.debuglink();
  if (!link.empty() && file.name.starts_with('/')) {
    const std::string folder = file.name.substr(0, file.name.rfind('/') + 1);
    names.push_back(folder + link);
    names.push_back(folder + ".debug/" + link);
    names.push_back(std::string(kDebugFolder) + folder + link);
  }
  const std::string process = fmt::format("{}/{}", proc, file.process);
  std::vector<ForeignPath> paths;
  for (const std::string& name : names) {
    paths.push_back({process + "/root", name});
    if (view_of(process) != View::Other) paths.push_back({"/", name});
  }
  return find(paths, scope_of(file, proc));
}

Result<FileTable> table_of_file(const MappedFile& file, ForeignReader& reader,
                                const unwind::RowLimits& limits, const std::string& proc) {
  FileTable made;
  Result<unwind::ElfImage> image = Error{"no image"};
  if (file.name == "[vdso]") {
    image = unwind::ElfImage::in_memory(own_vdso());
  } else {
    auto opened = open_binary(file, reader, proc);
    if (!opened) return std::move(opened.error());
    made.key = key_of(*opened);
    image = image_of_file(std::move(*opened));
  }
  if (!image) return std::move(image.error()).in(file.name);
  const auto debug = file.name == "[vdso]" ? std::nullopt : debug_image_of(file, *image, reader, proc);
  auto table = unwind::row_table_of(*image, limits, debug ? &*debug : nullptr);
  if (!table) return std::move(table.error()).in(file.name);
  count_from_file(*table, *image);
  made.rows = std::move(*table);
  return made;
}

}  // namespace tacho::record
