#include "bpf/kernel_layout.h"

#include <bpf/btf.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "format/file.h"

namespace tacho::bpf {
namespace {

constexpr const char* kKernelBtf = "/sys/kernel/btf/vmlinux";
constexpr int kMostNesting = 8;  // of structs without a name, and of types behind other names
constexpr std::uint32_t kBitsOfByte = 8;

struct MemberRow {
  const char* type;
  const char* path;  // members of members by dots
  std::uint32_t tacho_kernel_layout::*to;
};
constexpr std::array kMembers{
    MemberRow{"task_struct", "mm", &tacho_kernel_layout::task_mm},
    MemberRow{"task_struct", "perf_event_ctxp", &tacho_kernel_layout::task_perf_contexts},
    MemberRow{"mm_struct", "mm_mt.ma_root", &tacho_kernel_layout::mm_mappings},
    MemberRow{"mm_struct", "context.vdso", &tacho_kernel_layout::mm_vdso},
    MemberRow{"vm_area_struct", "vm_start", &tacho_kernel_layout::vma_start},
    MemberRow{"vm_area_struct", "vm_end", &tacho_kernel_layout::vma_end},
    MemberRow{"vm_area_struct", "vm_mm", &tacho_kernel_layout::vma_mm},
    MemberRow{"vm_area_struct", "vm_flags", &tacho_kernel_layout::vma_flags},
    MemberRow{"vm_area_struct", "vm_pgoff", &tacho_kernel_layout::vma_page_offset},
    MemberRow{"vm_area_struct", "vm_file", &tacho_kernel_layout::vma_file},
    MemberRow{"file", "f_inode", &tacho_kernel_layout::file_inode},
    MemberRow{"inode", "i_ino", &tacho_kernel_layout::inode_number},
    MemberRow{"inode", "i_size", &tacho_kernel_layout::inode_size},
    MemberRow{"inode", "i_generation", &tacho_kernel_layout::inode_generation},
    MemberRow{"inode", "i_sb", &tacho_kernel_layout::inode_super_block},
    MemberRow{"super_block", "s_dev", &tacho_kernel_layout::super_block_device},
};

// Not all kernels have probes.
constexpr std::array kReturns{
    MemberRow{"task_struct", "utask", &tacho_kernel_layout::task_probes},
    MemberRow{"uprobe_task", "return_instances", &tacho_kernel_layout::probes_returns},
    MemberRow{"return_instance", "next", &tacho_kernel_layout::return_next},
    MemberRow{"return_instance", "stack", &tacho_kernel_layout::return_place},
    MemberRow{"return_instance", "orig_ret_vaddr", &tacho_kernel_layout::return_address},
    MemberRow{"mm_struct", "uprobes_state.xol_area", &tacho_kernel_layout::mm_probe_area},
    MemberRow{"xol_area", "vaddr", &tacho_kernel_layout::probe_area_address},
    MemberRow{"uprobe_task", "vaddr", &tacho_kernel_layout::probes_place},
    MemberRow{"uprobe_task", "xol_vaddr", &tacho_kernel_layout::probes_copy},
};

// When an inode's status changed, as kernels have called it; some may have another name for it yet.
struct ChangeRow {
  const char* seconds;
  const char* nanoseconds;
};
constexpr std::array kChanges{ChangeRow{"i_ctime_sec", "i_ctime_nsec"},
                              ChangeRow{"__i_ctime.tv_sec", "__i_ctime.tv_nsec"},
                              ChangeRow{"i_ctime.tv_sec", "i_ctime.tv_nsec"}};

// What the program has as fixed numbers.
struct FixedRow {
  const char* type;
  const char* path;
  std::uint32_t offset;
};
constexpr std::uint32_t kWord = 8;
constexpr std::array kFixed{
    FixedRow{"maple_range_64", "pivot", kWord},
    FixedRow{"maple_range_64", "slot", (1 + TACHO_MAPLE_PIVOTS) * kWord},
    FixedRow{"maple_arange_64", "pivot", kWord},
    FixedRow{"maple_arange_64", "slot", (1 + TACHO_MAPLE_PIVOTS_WITH_GAPS) * kWord},
};

struct Member {
  std::uint32_t offset = 0;
  std::uint32_t count = 1;  // of an array
};

const btf_type* without_names(const btf* types, std::uint32_t id) {
  const btf_type* type = btf__type_by_id(types, id);
  for (int i = 0; i < kMostNesting && type != nullptr; ++i) {
    if (!btf_is_typedef(type) && !btf_is_mod(type)) return type;
    type = btf__type_by_id(types, type->type);
  }
  return nullptr;
}

std::optional<Member> find_member(const btf* types, const btf_type* owner, std::string_view path,
                                  int depth = 0) {
  if (owner == nullptr || !btf_is_composite(owner) || depth > kMostNesting) return std::nullopt;
  const auto first = path.substr(0, path.find('.'));
  const auto rest = path.substr(std::min(path.size(), first.size() + 1));
  const btf_member* const members = btf_members(owner);
  for (std::uint32_t i = 0; i < btf_vlen(owner); ++i) {
    const char* const name = btf__name_by_offset(types, members[i].name_off);
    const std::uint32_t offset = btf_member_bit_offset(owner, i) / kBitsOfByte;
    const btf_type* const type = without_names(types, members[i].type);
    std::optional<Member> found;
    if (name == nullptr || *name == '\0') {
      found = find_member(types, type, path, depth + 1);
    } else if (first == name && !rest.empty()) {
      found = find_member(types, type, rest, depth + 1);
    } else if (first == name) {
      found = Member{0, type != nullptr && btf_is_array(type) ? btf_array(type)->nelems : 1};
    }
    if (found) return Member{offset + found->offset, found->count};
  }
  return std::nullopt;
}

// The structs that the tables name, found in one pass: a kernel has some hundred thousand types.
class Structs {
 public:
  explicit Structs(const btf* types) : types_(types) {
    for (std::uint32_t id = 1; id < btf__type_cnt(types); ++id) {
      const btf_type* const type = btf__type_by_id(types, id);
      if (!btf_is_struct(type)) continue;
      const char* const text = btf__name_by_offset(types, type->name_off);
      if (text == nullptr) continue;
      const std::string_view name(text);
      for (std::size_t i = 0; i < kNames.size(); ++i)
        if (found_[i] == nullptr && kNames[i] == name) found_[i] = type;
    }
  }
  std::optional<Member> find(std::string_view type, std::string_view path) const {
    const auto name = std::ranges::find(kNames, type);
    if (name == kNames.end()) return std::nullopt;
    return find_member(types_, found_[static_cast<std::size_t>(name - kNames.begin())], path);
  }

 private:
  static constexpr std::array<std::string_view, 11> kNames{
      "task_struct", "mm_struct",       "vm_area_struct", "file",
      "inode",       "super_block",     "maple_range_64", "maple_arange_64",
      "uprobe_task", "return_instance", "xol_area"};
  const btf* types_;
  std::array<const btf_type*, kNames.size()> found_{};
};

Error missing(const char* type, const char* path) {
  return Error{"this kernel keeps mappings in another way (it has no " + std::string(type) + "." + path +
                   " as Linux 6.1 and later)",
               ENOENT};
}

}  // namespace

Result<tacho_kernel_layout> kernel_layout_in(format::Bytes bytes) {
  const std::unique_ptr<btf, void (*)(btf*)> types(
      btf__new(bytes.data(), static_cast<std::uint32_t>(bytes.size())), btf__free);
  if (types == nullptr) return Error{"the kernel's BTF cannot be read", EINVAL};
  const Structs structs(types.get());
  tacho_kernel_layout layout{};
  for (const MemberRow& row : kMembers) {
    const auto found = structs.find(row.type, row.path);
    if (!found) return missing(row.type, row.path);
    layout.*row.to = found->offset;
    if (row.to == &tacho_kernel_layout::task_perf_contexts) layout.perf_contexts = found->count;
  }
  for (const ChangeRow& row : kChanges) {
    const auto seconds = structs.find("inode", row.seconds), rest = structs.find("inode", row.nanoseconds);
    if (!seconds || !rest) continue;
    layout.inode_changed = seconds->offset;
    layout.inode_changed_ns = rest->offset;
    break;
  }
  layout.knows_returns = 1;
  for (const MemberRow& row : kReturns) {
    const auto found = structs.find(row.type, row.path);
    if (found) layout.*row.to = found->offset;
    if (!found) layout.knows_returns = 0;
  }
  for (const FixedRow& row : kFixed) {
    const auto found = structs.find(row.type, row.path);
    if (!found || found->offset != row.offset) return missing(row.type, row.path);
  }
  layout.is_known = 1;
  return layout;
}

Result<tacho_kernel_layout> kernel_layout() {
  const auto bytes = format::read_file(kKernelBtf);
  if (!bytes) return Error{"this kernel has no BTF (CONFIG_DEBUG_INFO_BTF)", ENOENT};
  return kernel_layout_in(*bytes);
}

}  // namespace tacho::bpf
