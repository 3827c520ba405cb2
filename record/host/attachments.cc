#include "record/host/attachments.h"

#include <sys/auxv.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

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

Result<std::vector<format::Attachment>> gather_attachments(std::optional<format::Attachment> kallsyms) {
  std::vector<format::Attachment> out;
  if (kallsyms) out.push_back(std::move(*kallsyms));
  const std::vector<std::byte> vdso = own_vdso();
  if (vdso.empty()) return out;
  auto packed = format::pack_attachment("vdso", "[vdso]", vdso);
  if (!packed) return std::move(packed.error());
  out.push_back(std::move(*packed));
  return out;
}

}  // namespace tacho::record
