#include "bpf/function_arguments.h"

#include <bpf/btf.h>
#include <linux/btf.h>

#include <cerrno>
#include <cstdint>
#include <memory>

#include "bpf/libbpf_log.h"
#include "bpf/probe_program.h"

namespace tacho::bpf {
namespace {

FunctionArgument described(const btf* types, const btf_param& param) {
  FunctionArgument out;
  const char* const name = btf__name_by_offset(types, param.name_off);
  out.name = name == nullptr ? "" : name;
  const int id = btf__resolve_type(types, param.type);  // behind typedefs and const
  const btf_type* const type = id < 0 ? nullptr : btf__type_by_id(types, static_cast<std::uint32_t>(id));
  if (type == nullptr) return out;
  out.is_pointer = btf_is_ptr(type);
  if (out.is_pointer) return out;
  const auto size = btf__resolve_size(types, static_cast<std::uint32_t>(id));
  const bool is_number = btf_is_int(type) || btf_is_any_enum(type);
  const bool fits = size == 1 || size == 2 || size == 4 || size == 8;
  out.size = is_number && fits ? static_cast<std::uint8_t>(size) : std::uint8_t{0};
  out.is_signed = btf_is_int(type) ? (btf_int_encoding(type) & BTF_INT_SIGNED) != 0 : btf_kflag(type);
  return out;
}

}  // namespace

std::size_t registers_of(const btf* types, std::uint32_t type_id, std::size_t left) {
  constexpr std::int64_t kWord = 8;
  const int id = btf__resolve_type(types, type_id);
  const btf_type* const type = id < 0 ? nullptr : btf__type_by_id(types, static_cast<std::uint32_t>(id));
  if (type == nullptr || !btf_is_composite(type)) return 1;
  const std::int64_t size = btf__resolve_size(types, static_cast<std::uint32_t>(id));
  const std::size_t words = size <= kWord ? 1 : 2;
  return size > 2 * kWord || words > left ? 0 : words;
}

Result<std::vector<FunctionArgument>> kernel_function_arguments(std::string_view function) {
  const LibbpfLog quiet;
  const std::unique_ptr<btf, void (*)(btf*)> types(btf__load_vmlinux_btf(), btf__free);
  if (types == nullptr)
    return Error{"this kernel has no BTF (CONFIG_DEBUG_INFO_BTF), which names the arguments of its functions",
                 ENOENT};
  const std::string name(function);
  const int id = btf__find_by_name_kind(types.get(), name.c_str(), BTF_KIND_FUNC);
  if (id < 0) return Error{"the kernel's BTF does not tell the arguments of " + name, ENOENT};
  const btf_type* const found = btf__type_by_id(types.get(), static_cast<std::uint32_t>(id));
  const btf_type* const prototype = found == nullptr ? nullptr : btf__type_by_id(types.get(), found->type);
  if (prototype == nullptr || !btf_is_func_proto(prototype))
    return Error{"the kernel's BTF does not tell the arguments of " + name, ENOENT};
  std::vector<FunctionArgument> arguments;
  const btf_param* const params = btf_params(prototype);
  std::size_t next = 1;
  for (std::uint16_t i = 0; i < btf_vlen(prototype); ++i) {
    arguments.push_back(described(types.get(), params[i]));
    arguments.back().number = next;
    next += registers_of(types.get(), params[i].type,
                         next > kRegisterArguments ? 0 : kRegisterArguments + 1 - next);
  }
  return arguments;
}

}  // namespace tacho::bpf
