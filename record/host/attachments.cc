#include "record/host/attachments.h"

#include <sys/auxv.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "format/file.h"
#include "record/host/running_processes.h"

namespace tacho::record {

std::vector<std::byte> own_vdso() {
  const auto maps = format::read_file("/proc/self/maps");
  const std::uint64_t address = getauxval(AT_SYSINFO_EHDR);
  if (!maps || address == 0) return {};
  std::string_view rest = format::as_text(*maps);
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const auto parsed = parse_maps_line(line);
    if (!parsed || parsed->mapping.start != address) continue;
    const auto* const begin = reinterpret_cast<const std::byte*>(address);
    return {begin, begin + parsed->mapping.length};
  }
  return {};
}

Result<std::vector<format::Attachment>> gather_attachments(format::Bytes kallsyms) {
  std::vector<format::Attachment> out;
  const auto add = [&out](std::string name, std::string origin, format::Bytes content) -> Result<> {
    if (content.empty()) return Done{};
    auto packed = format::pack_attachment(std::move(name), std::move(origin), content);
    if (!packed) return std::move(packed.error());
    out.push_back(std::move(*packed));
    return Done{};
  };
  if (auto done = add(std::string(format::kKallsymsAttachment), "/proc/kallsyms", kallsyms); !done)
    return done.error();
  if (auto done = add("vdso", "[vdso]", own_vdso()); !done) return done.error();
  return out;
}

}  // namespace tacho::record
