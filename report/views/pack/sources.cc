#include "report/views/pack/sources.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "symbolize/files/attached_text.h"
#include "symbolize/files/debug_files.h"

namespace tacho::report {
namespace {

constexpr std::uint64_t kMostOfOne = std::uint64_t{4} << 20, kMostOfAll = std::uint64_t{64} << 20;  // bytes
constexpr std::size_t kMostFiles = 4096;

constexpr std::string_view kEndings[] = {
    ".c",   ".h",   ".cc",  ".cpp", ".cxx", ".c++", ".hh",  ".hpp", ".hxx",  ".ipp", ".inl",   ".inc",
    ".tcc", ".tpp", ".def", ".s",   ".S",   ".asm", ".rs",  ".go",  ".d",    ".zig", ".nim",   ".swift",
    ".m",   ".mm",  ".f",   ".f90", ".F90", ".f95", ".adb", ".ads", ".ml",   ".mli", ".hs",    ".pas",
    ".cu",  ".cl",  ".y",   ".l",   ".js",  ".ts",  ".py",  ".rb",  ".java", ".kt",  ".scala", ".cs",
};
// Headers of the C++ library have no ending.
constexpr std::string_view kHeaderFolders[] = {"/usr/include/", "/usr/local/include/", "/usr/lib/gcc/"};

bool is_source(std::string_view path) {
  if (!path.starts_with('/') || path.find("/../") != std::string_view::npos) return false;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const auto dot = name.rfind('.');
  if (dot == std::string_view::npos)
    return std::ranges::any_of(kHeaderFolders,
                               [path](std::string_view folder) { return path.starts_with(folder); });
  return dot != 0 && std::ranges::find(kEndings, name.substr(dot)) != std::end(kEndings);
}

// Text has no zeros.
bool is_text(format::Bytes bytes) { return std::ranges::find(bytes, std::byte{}) == bytes.end(); }

}  // namespace

SourceCopies copy_sources(const std::set<std::string>& paths, const symbolize::SymbolOptions& options,
                          symbolize::FileGate& gate) {
  const symbolize::DebugFiles files(options.symfs);
  SourceCopies copies;
  std::uint64_t room = kMostOfAll;
  for (const std::string& path : paths) {
    if (!is_source(path)) continue;
    const symbolize::AtFile reading(&gate, path);
    if (reading.is_refused()) continue;
    const auto content = files.read(path, kMostOfOne);
    if (!content || !is_text(*content)) continue;
    if (content->size() > room || copies.attachments.size() == kMostFiles) {
      ++copies.left_out;
      continue;
    }
    auto packed = format::pack_attachment(std::string(symbolize::kAttachedSource) + path, path, *content);
    if (!packed || !symbolize::check_attached_size(*packed)) continue;
    room -= content->size();
    copies.attachments.push_back(std::move(*packed));
  }
  return copies;
}

}  // namespace tacho::report
