#include "record/stacks/needed_libraries.h"

#include <elf.h>

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
constexpr std::string_view kMagic = "glibc-ld.so.cache1.1";
constexpr std::size_t kHeadSize = 48, kEntrySize = 24;
constexpr std::uint32_t kThisMachine = 0x0303;  // FLAG_X8664_LIB64 | FLAG_ELF_LIBC6

std::string_view text_at(Bytes bytes, std::uint64_t offset) {
  return offset < bytes.size() ? format::text_of(bytes.subspan(static_cast<std::size_t>(offset)))
                               : std::string_view{};
}

// What one file asks for.
struct Needs {
  std::string interpreter;
  std::vector<std::string> names, folders;
};

std::vector<std::string> split(std::string_view folders, const std::string& origin) {
  std::vector<std::string> found;
  while (!folders.empty()) {
    std::string one(folders.substr(0, folders.find(':')));
    folders.remove_prefix(std::min(folders.size(), one.size() + 1));
    for (const std::string_view word : {"$ORIGIN", "${ORIGIN}"})
      if (one.starts_with(word)) one = origin + one.substr(word.size());
    if (one.starts_with('/')) found.push_back(std::move(one));
  }
  return found;
}

Needs needs_of(const std::string& path) {
  Needs needs;
  auto file = format::open_input(path);
  if (!file) return needs;
  const auto image = unwind::ElfImage::open(std::move(*file));
  if (!image) return needs;
  if (const auto name = image->section(".interp")) needs.interpreter = format::text_of(name->bytes);
  const auto dynamic = image->section(".dynamic"), texts = image->section(".dynstr");
  if (!dynamic || !texts) return needs;
  const std::string origin = path.substr(0, path.rfind('/'));
  std::size_t left = kMostEntries;
  for (Cursor in(dynamic->bytes, image->order()); in.left() >= sizeof(Elf64_Dyn) && left > 0; --left) {
    const std::uint64_t tag = in.u64(), value = in.u64();
    if (tag == DT_NULL) break;
    if (tag == DT_NEEDED) needs.names.emplace_back(text_at(texts->bytes, value));
    if (tag == DT_RPATH || tag == DT_RUNPATH) needs.folders = split(text_at(texts->bytes, value), origin);
  }
  return needs;
}

std::optional<std::string> find_library(const std::string& name, const std::vector<std::string>& folders,
                                        const LibraryPaths& known) {
  if (name.starts_with('/')) return name;
  for (const std::string& folder : folders)
    if (const std::string path = folder + "/" + name; format::open_input(path)) return path;
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

std::vector<std::string> needed_libraries(const std::string& program, const LibraryPaths& known) {
  std::vector<std::string> found;
  const auto add = [&found](const std::string& path) {
    const bool is_new = std::ranges::find(found, path) == found.end();
    if (is_new && found.size() < kMostLibraries) found.push_back(path);
  };
  const Needs first = needs_of(program);
  if (first.interpreter.starts_with('/')) add(first.interpreter);
  const auto add_needs = [&](const Needs& needs) {
    for (const std::string& name : needs.names)
      if (const auto path = find_library(name, needs.folders, known)) add(*path);
  };
  add_needs(first);
  for (std::size_t at = 0; at < found.size(); ++at) add_needs(needs_of(std::string(found[at])));
  return found;
}

}  // namespace tacho::record
