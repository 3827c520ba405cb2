#include "report/views/pack/copies.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "symbolize/elf/module_files.h"
#include "symbolize/elf/stripped_copy.h"
#include "symbolize/files/attached_text.h"

namespace tacho::report {
namespace {

constexpr std::uint64_t kMostOfOne = std::uint64_t{128} << 20, kMostOfAll = std::uint64_t{512} << 20,
                        kMostPacked = std::uint64_t{128} << 20;
// Bytes of a copy, compressed: so little room is none.
constexpr std::uint64_t kLeast = std::uint64_t{1} << 12;
constexpr std::size_t kMostTold = 20;     // files that are not copied
constexpr std::size_t kMostMisfits = 50;  // files that are read and compressed in vain

std::uint64_t less(std::uint64_t from, std::uint64_t what) { return from - std::min(from, what); }

using Modules = std::vector<const format::PackedModule*>;

Modules programs_and_libraries(const format::SymbolPack& pack) {
  Modules modules;
  for (const format::PackedModule& module : pack.modules)
    if (module.kind == static_cast<std::uint8_t>(symbolize::ModuleKind::User) &&
        pack.texts[module.path].starts_with('/'))
      modules.push_back(&module);
  std::ranges::stable_sort(modules, std::greater(),
                           [](const format::PackedModule* module) { return module->addresses.size(); });
  return modules;
}

// The room that is left, in bytes of content and of the capture. What a capture says of its own copies may be
// anything.
class Room {
 public:
  void take(const format::Attachment& copy) {
    content_ = less(content_, copy.raw_size);
    packed_ = less(packed_, copy.packed.size());
  }
  // What there is when `old`, which may be null, goes.
  Room without(const format::Attachment* old) const {
    Room room = *this;
    if (old == nullptr) return room;
    room.content_ = std::min(kMostOfAll, content_ + std::min(kMostOfAll, old->raw_size));
    room.packed_ = std::min<std::uint64_t>(kMostPacked, packed_ + old->packed.size());
    return room;
  }
  std::uint64_t content() const { return content_; }
  std::uint64_t packed() const { return packed_; }
  bool is_none() const { return content_ < kLeast || packed_ < kLeast; }

 private:
  std::uint64_t content_ = kMostOfAll, packed_ = kMostPacked;
};

class FileCopier {
 public:
  FileCopier(std::span<const format::Attachment> before, const symbolize::SymbolOptions& options,
             symbolize::FileGate& gate)
      : files_(symbolize::DebugFiles(options.symfs, options.build_id_dir, options.held), nullptr, nullptr),
        gate_(gate) {
    for (const format::Attachment& copy : before) {
      if (!copy.name.starts_with(symbolize::kAttachedFile)) continue;
      old_.emplace(copy.name, &copy);
      room_.take(copy);
    }
  }
  void add(const std::string& path, const format::BuildId& id) {
    std::string name = symbolize::attached_file_name(path, id);
    if (!known_.insert(name).second) return;
    const auto old = old_.find(name);
    const format::Attachment* const before = old == old_.end() ? nullptr : old->second;
    const Room room = room_.without(before);
    auto made = copy(path, id, std::move(name), room);
    if (made) {
      room_ = room;
      room_.take(*made);
      copies_.attachments.push_back(std::move(*made));
    } else if (before == nullptr) {
      omit(path + ": is not copied: " + made.error().what);
    }
  }
  FileCopies take() { return std::move(copies_); }

 private:
  static Error no_room() { return Error{"there is no room for it"}; }
  void omit(std::string line) {
    if (copies_.omissions.size() < kMostTold)
      copies_.omissions.push_back(std::move(line));
    else
      ++copies_.more_omissions;
  }
  Result<format::Attachment> copy(const std::string& path, const format::BuildId& id, std::string name,
                                  const Room& room) {
    if (room.is_none() || misfits_ == kMostMisfits || copies_.attachments.size() == kMostCopies)
      return no_room();
    const symbolize::AtFile reading(&gate_, path);
    if (reading.is_refused()) return Error{gate_.lack(path)};
    const auto file = files_.file({.path = path, .short_name = path, .build_id = id});
    if (!file) return file.error();
    const auto content = symbolize::stripped_copy(*file, std::min(kMostOfOne, room.content()));
    if (!content) return content.error();
    auto packed = format::pack_attachment(std::move(name), path, *content);
    if (!packed) return packed;
    if (packed->packed.size() > room.packed()) {
      ++misfits_;
      return no_room();
    }
    if (auto readable = symbolize::check_attached_size(*packed); !readable)
      return std::move(readable.error());
    return packed;
  }

  symbolize::ModuleFiles files_;
  symbolize::FileGate& gate_;
  std::map<std::string_view, const format::Attachment*> old_;  // by name
  std::set<std::string> known_;
  Room room_;
  std::size_t misfits_ = 0;
  FileCopies copies_;
};

}  // namespace

FileCopies copy_files(const format::SymbolPack& pack, std::span<const format::Attachment> before,
                      const symbolize::SymbolOptions& options, symbolize::FileGate& gate) {
  FileCopier copier(before, options, gate);
  for (const format::PackedModule* const module : programs_and_libraries(pack))
    copier.add(std::string(pack.texts[module->path]), module->build_id);
  return copier.take();
}

}  // namespace tacho::report
