// Owners of libbpf's objects and BTF, and short functions on both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "format/base/cursor.h"
#include "format/base/result.h"

struct bpf_link;  // libbpf's
struct bpf_map;
struct bpf_object;
struct btf;

namespace tacho::bpf {

struct FreeLibbpf {
  void operator()(bpf_object* object) const noexcept;
  void operator()(bpf_link* link) const noexcept;
  void operator()(btf* types) const noexcept;
};
using OwnedObject = std::unique_ptr<bpf_object, FreeLibbpf>;
using OwnedLink = std::unique_ptr<bpf_link, FreeLibbpf>;
using OwnedBtf = std::unique_ptr<btf, FreeLibbpf>;

// Opens an ELF object under a name in the kernel. `types`: a file with BTF, or an ELF file with it, in place
// of the kernel's; null: the kernel's. Null, with errno: libbpf refuses it.
OwnedObject open_object(format::Bytes elf, const char* name, const char* types = nullptr);
// Null, with errno: the bytes are not BTF.
OwnedBtf parse_btf(format::Bytes bytes);
// The initial bytes of a data section's map, which may be changed until the object is loaded; empty: none.
std::span<std::byte> initial_bytes(bpf_map* map);
// A name in the strings of BTF; empty: none.
std::string_view name_at(const btf* types, std::uint32_t offset);
// The name of a type; empty: it has none, or does not exist. `types` may be null.
std::string_view name_of_type(const btf* types, std::uint32_t id);
Result<std::uint32_t> possible_cpus();

}  // namespace tacho::bpf
