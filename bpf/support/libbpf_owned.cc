#include "bpf/support/libbpf_owned.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>

namespace tacho::bpf {

void FreeLibbpf::operator()(bpf_object* object) const noexcept { bpf_object__close(object); }
void FreeLibbpf::operator()(bpf_link* link) const noexcept { bpf_link__destroy(link); }
void FreeLibbpf::operator()(btf* types) const noexcept { btf__free(types); }

OwnedObject open_object(format::Bytes elf, const char* name, const char* types) {
  LIBBPF_OPTS(bpf_object_open_opts, options);
  options.btf_custom_path = types;
  options.object_name = name;
  return OwnedObject(bpf_object__open_mem(elf.data(), elf.size(), &options));
}

OwnedBtf parse_btf(format::Bytes bytes) {
  return OwnedBtf(btf__new(bytes.data(), static_cast<std::uint32_t>(bytes.size())));
}

std::span<std::byte> initial_bytes(bpf_map* map) {
  std::size_t size = 0;
  // libbpf 1.1 returns them as a const pointer.
  void* const bytes = map == nullptr ? nullptr : const_cast<void*>(bpf_map__initial_value(map, &size));
  return {static_cast<std::byte*>(bytes), bytes == nullptr ? 0 : size};
}

std::string_view name_at(const btf* types, std::uint32_t offset) {
  const char* const name = btf__name_by_offset(types, offset);
  return name == nullptr ? std::string_view() : name;
}

std::string_view name_of_type(const btf* types, std::uint32_t id) {
  const btf_type* const type = types == nullptr ? nullptr : btf__type_by_id(types, id);
  return type == nullptr ? std::string_view() : name_at(types, type->name_off);
}

Result<std::uint32_t> possible_cpus() {
  const int count = libbpf_num_possible_cpus();
  if (count < 0) return system_error("the number of possible CPUs is not known", -count);
  return static_cast<std::uint32_t>(count);
}

}  // namespace tacho::bpf
