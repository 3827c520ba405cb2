#include "report/views/pack/copies.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "symbolize/elf/module_files.h"
#include "symbolize/elf/stripped_copy.h"
#include "symbolize/files/attached_text.h"

namespace tacho::report {
namespace {

constexpr std::uint64_t kMostOfOne = std::uint64_t{128} << 20, kMostOfAll = std::uint64_t{512} << 20,
                        kMostPacked = std::uint64_t{128} << 20;

}  // namespace

FileCopies copy_files(const format::SymbolPack& pack, const symbolize::SymbolOptions& options,
                      symbolize::FileGate& gate) {
  const symbolize::ModuleFiles files(symbolize::DebugFiles(options.symfs, options.build_id_dir, options.held),
                                     nullptr, nullptr);
  std::vector<const format::PackedModule*> modules;
  for (const format::PackedModule& module : pack.modules)
    if (module.kind == static_cast<std::uint8_t>(symbolize::ModuleKind::User) &&
        pack.texts[module.path].starts_with('/'))
      modules.push_back(&module);
  std::ranges::stable_sort(modules, std::greater(),
                           [](const format::PackedModule* module) { return module->addresses.size(); });
  FileCopies copies;
  std::set<std::string> known;
  std::uint64_t bytes = 0, packed_bytes = 0;
  for (const format::PackedModule* const module : modules) {
    const std::string path(pack.texts[module->path]);
    std::string name = symbolize::attached_file_name(path, module->build_id);
    if (!known.insert(name).second) continue;
    const auto copy = [&]() -> Result<format::Attachment> {
      const symbolize::AtFile reading(&gate, path);
      if (reading.is_refused()) return Error{gate.lack(path)};
      const auto file = files.file({.path = path, .short_name = path, .build_id = module->build_id});
      if (!file) return file.error();
      const auto content = symbolize::stripped_copy(*file, std::min(kMostOfOne, kMostOfAll - bytes));
      if (!content) return content.error();
      auto packed = format::pack_attachment(std::move(name), path, *content);
      if (!packed) return packed;
      if (packed->packed.size() > kMostPacked - packed_bytes) return Error{"there is no room for it"};
      if (auto readable = symbolize::check_attached_size(*packed); !readable)
        return std::move(readable.error());
      bytes += content->size();
      packed_bytes += packed->packed.size();
      return packed;
    }();
    if (copy)
      copies.attachments.push_back(*copy);
    else
      copies.omissions.push_back(path + ": is not copied: " + copy.error().what);
  }
  return copies;
}

}  // namespace tacho::report
