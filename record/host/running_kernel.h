// The kernel as it runs: where its text and its modules lie, their build ids, the BPF programs in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bpf/loaded_programs.h"
#include "format/build_id.h"
#include "format/byte_writer.h"
#include "format/environment.h"

namespace tacho::record {

// From kallsyms. The reference symbol lets a reader see by how much a kernel was moved since (KASLR).
struct KernelText {
  std::string reference;    // "_text" or "_stext"
  std::uint64_t start = 0;  // its address
  std::uint64_t end = 0;    // 0: not known
};
// Nothing when the addresses are hidden (kernel.kptr_restrict) or there are none.
std::optional<KernelText> find_kernel_text(std::string_view kallsyms);

// Code that the kernel makes for BPF itself: trampolines (fentry, fexit) and dispatchers. They are no
// programs, so nothing but kallsyms knows of those that exist already.
struct BpfImage {
  std::string name;  // "bpf_trampoline_6442466132", as the kernel's own KSYMBOL records have it
  std::uint64_t start = 0;
  std::uint32_t length = 0;  // bytes: up to the next symbol of BPF, a page at most
};
// Ascending by address; none when the addresses are hidden.
std::vector<BpfImage> find_bpf_images(std::string_view kallsyms, std::size_t page_size);

struct KernelModule {
  std::string name, path;  // path: "[name]" when its file was not found
  std::uint64_t start = 0, size = 0;
  format::BuildId build_id;
};
// A line of /proc/modules; nothing when its address is hidden.
std::optional<KernelModule> parse_module_line(std::string_view line);
std::vector<KernelModule> loaded_modules();

// "[kernel.kallsyms]" and the modules, for the header.
std::vector<format::BuildIdEntry> kernel_build_ids(const std::vector<KernelModule>& modules);

// The records a reader needs before the first sample; `trailer`: bytes of sample_id_all.
void write_kernel_records(format::ByteWriter& out, const std::optional<KernelText>& text,
                          const std::vector<KernelModule>& modules, std::size_t trailer);
void write_image_records(format::ByteWriter& out, const std::vector<BpfImage>& images, std::size_t trailer);
void write_program_records(format::ByteWriter& out, const std::vector<bpf::LoadedProgram>& programs,
                           std::size_t trailer);

}  // namespace tacho::record
