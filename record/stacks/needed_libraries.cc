#include "record/stacks/needed_libraries.h"

#include <elf.h>
#include <limits.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "format/file.h"
#include "unwind/elf_image.h"

namespace tacho::record {
namespace {

using format::Bytes;
using format::Cursor;

constexpr std::size_t kMostLibraries = 128, kMostEntries = 1U << 16;
// What one file may ask for, and how often files may be looked for in folders that files name.
constexpr std::size_t kMostNames = 128, kMostFolders = 64, kMostLooks = 1U << 14;
constexpr std::size_t kLongestName = NAME_MAX, kLongestPath = PATH_MAX - 1;
constexpr std::string_view kMagic = "glibc-ld.so.cache1.1";
constexpr std::size_t kHeadSize = 48, kEntrySize = 24;
constexpr std::uint32_t kThisMachine = 0x0303;  // FLAG_X8664_LIB64 | FLAG_ELF_LIBC6

std::string_view text_at(Bytes bytes, std::uint64_t offset) {
  return offset < bytes.size() ? format::text_of(bytes.subspan(static_cast<std::size_t>(offset)))
                               : std::string_view{};
}

// The text at an offset; nothing when it is longer than that.
std::string_view short_text_at(Bytes bytes, std::uint64_t offset, std::size_t longest) {
  if (offset >= bytes.size()) return {};
  const Bytes rest = bytes.subspan(static_cast<std::size_t>(offset));
  const std::string_view text = format::text_of(rest.first(std::min(rest.size(), longest + 1)));
  return text.size() <= longest ? text : std::string_view{};
}

// What one file asks for.
struct Needs {
  std::string interpreter;
  std::vector<std::string> names, folders;
};

std::vector<std::string> split(std::string_view folders, const std::string& origin) {
  std::vector<std::string> found;
  while (!folders.empty() && found.size() < kMostFolders) {
    const std::string_view written = folders.substr(0, folders.find(':'));
    folders.remove_prefix(std::min(folders.size(), written.size() + 1));
    if (written.size() > kLongestPath) continue;
    std::string one(written);
    for (const std::string_view word : {"$ORIGIN", "${ORIGIN}"})
      if (one.starts_with(word)) one = origin + one.substr(word.size());
    if (one.starts_with('/') && one.size() <= kLongestPath) found.push_back(std::move(one));
  }
  return found;
}

Needs needs_of(const std::string& path) {
  Needs needs;
  auto file = format::open_input(path);
  if (!file) return needs;
  const auto image = unwind::ElfImage::open(std::move(*file));
  if (!image) return needs;
  if (const auto name = image->section(".interp"))
    needs.interpreter = short_text_at(name->bytes, 0, kLongestPath);
  const auto dynamic = image->section(".dynamic"), texts = image->section(".dynstr");
  if (!dynamic || !texts) return needs;
  const std::string origin = path.substr(0, path.rfind('/'));
  std::size_t left = kMostEntries;
  bool has_folders = false;  // one of the two tells of them, once
  for (Cursor in(dynamic->bytes, image->order()); in.left() >= sizeof(Elf64_Dyn) && left > 0; --left) {
    const std::uint64_t tag = in.u64(), value = in.u64();
    if (tag == DT_NULL) break;
    if (tag == DT_NEEDED && needs.names.size() < kMostNames) {
      const std::string_view name = short_text_at(texts->bytes, value, kLongestName);
      if (!name.empty()) needs.names.emplace_back(name);
    }
    if ((tag == DT_RPATH || tag == DT_RUNPATH) && !std::exchange(has_folders, true))
      needs.folders = split(short_text_at(texts->bytes, value, kMostFolders * PATH_MAX), origin);
  }
  return needs;
}

std::optional<std::string> find_library(const std::string& name, const std::vector<std::string>& folders,
                                        const LibraryPaths& known, std::size_t& looks) {
  if (name.starts_with('/')) return name;
  for (const std::string& folder : folders) {
    if (looks == 0) break;
    --looks;
    if (const std::string path = folder + "/" + name; format::open_input(path)) return path;
  }
  const auto found = known.find(name);
  return found == known.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

// char magic[20]; u32 libraries, text bytes; 20 bytes; then for each: u32 flags, offset of the name, offset
// of the path, u32 version, u64 hardware. Offsets count from the magic.
LibraryPaths libraries_of_cache(Bytes cache) {
  LibraryPaths paths;
  Cursor head(cache);
  if (head.text(kMagic.size()) != kMagic) return paths;
  const std::uint32_t count = head.u32();
  if (cache.size() < kHeadSize) return paths;
  Cursor in(cache.subspan(kHeadSize));
  for (std::uint32_t i = 0; i < count && in.left() >= kEntrySize; ++i) {
    const std::uint32_t flags = in.u32(), name = in.u32(), path = in.u32();
    in.u32();  // version
    const std::uint64_t hardware = in.u64();
    const std::string_view where = text_at(cache, path);
    if (flags == kThisMachine && hardware == 0 && where.starts_with('/'))
      paths.emplace(text_at(cache, name), where);
  }
  return paths;
}

std::vector<std::string> needed_libraries(const std::string& program, const LibraryPaths& known,
                                          const std::function<bool()>& stop) {
  std::vector<std::string> found;
  std::size_t looks = kMostLooks;
  const auto add = [&found](const std::string& path) {
    const bool is_new = std::ranges::find(found, path) == found.end();
    if (is_new && found.size() < kMostLibraries) found.push_back(path);
  };
  const Needs first = needs_of(program);
  if (first.interpreter.starts_with('/')) add(first.interpreter);
  const auto add_needs = [&](const Needs& needs) {
    for (const std::string& name : needs.names) {
      if (stop && stop()) return;
      if (const auto path = find_library(name, needs.folders, known, looks)) add(*path);
    }
  };
  add_needs(first);
  for (std::size_t at = 0; at < found.size() && !(stop && stop()); ++at)
    add_needs(needs_of(std::string(found[at])));
  return found;
}

}  // namespace tacho::record
