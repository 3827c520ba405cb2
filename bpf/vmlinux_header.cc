#include "bpf/vmlinux_header.h"

#include <bpf/btf.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <memory>

#include "bpf/libbpf_log.h"

namespace tacho::bpf {
namespace {

struct FreeBtf {
  void operator()(btf* types) const noexcept { btf__free(types); }
};
struct FreeDump {
  void operator()(btf_dump* dump) const noexcept { btf_dump__free(dump); }
};

void append(void* context, const char* format, va_list arguments) noexcept {
  auto& text = *static_cast<std::string*>(context);
  va_list again;
  va_copy(again, arguments);
  const int size = std::vsnprintf(nullptr, 0, format, again);
  va_end(again);
  if (size <= 0) return;
  const std::size_t start = text.size();
  text.resize(start + static_cast<std::size_t>(size) + 1);
  std::vsnprintf(text.data() + start, static_cast<std::size_t>(size) + 1, format, arguments);
  text.pop_back();  // the NUL
}

// Every access to a type of the kernel is to be relocated to the kernel that runs the program (CO-RE).
constexpr std::string_view kHead =
    "#ifndef __VMLINUX_H__\n#define __VMLINUX_H__\n\n"
    "#ifndef BPF_NO_PRESERVE_ACCESS_INDEX\n"
    "#pragma clang attribute push (__attribute__((preserve_access_index)), apply_to = record)\n"
    "#endif\n\n";
constexpr std::string_view kTail =
    "#ifndef BPF_NO_PRESERVE_ACCESS_INDEX\n#pragma clang attribute pop\n#endif\n\n#endif /* __VMLINUX_H__ "
    "*/\n";

}  // namespace

Result<std::string> vmlinux_header(format::Bytes bytes) {
  LibbpfLog log;
  const std::unique_ptr<btf, FreeBtf> types(btf__new(bytes.data(), static_cast<std::uint32_t>(bytes.size())));
  if (types == nullptr) return Error{"the kernel's BTF cannot be read"};
  std::string text(kHead);
  const std::unique_ptr<btf_dump, FreeDump> dump(btf_dump__new(types.get(), append, &text, nullptr));
  if (dump == nullptr) return Error{"the kernel's BTF cannot be written as C"};
  for (std::uint32_t id = 1; id < btf__type_cnt(types.get()); ++id)
    if (const int code = btf_dump__dump_type(dump.get(), id); code != 0)
      return system_error("the kernel's BTF cannot be written as C: type " + std::to_string(id), -code);
  text += kTail;
  return text;
}

}  // namespace tacho::bpf
