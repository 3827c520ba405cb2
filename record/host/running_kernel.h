// The running kernel: its symbols, modules and images, and functions that can be probed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bpf/object/loaded_programs.h"
#include "format/base/byte_writer.h"
#include "format/base/result.h"
#include "format/container/environment.h"
#include "format/extensions/attachment.h"
#include "format/records/build_id.h"

namespace tacho::record {

// From kallsyms. The reference symbol lets a reader see by how much a kernel was moved since (KASLR).
struct KernelText {
  std::string reference;    // "_text" or "_stext"
  std::uint64_t start = 0;  // its address
  std::uint64_t end = 0;    // 0: not known
};
// Nothing when the addresses are hidden (kernel.kptr_restrict) or there are none.
std::optional<KernelText> find_kernel_text(std::string_view kallsyms);

// Code that the kernel makes for BPF: trampolines (fentry, fexit) and dispatchers. They are no programs, so
// only kallsyms lists them.
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

// Functions of the running kernel by name, as /proc/kallsyms lists them, for probes.

// Whether the kernel or one of its modules has the function and `offset` (bytes from its start) is inside.
// The error names the nearest function, or the function's length. Where addresses are hidden
// (kernel.kptr_restrict) the kernel checks offsets.
Result<> check_kernel_function(std::string_view kallsyms, std::string_view function, std::uint64_t offset);

// All of them, in the order of the list.
std::vector<std::string> kernel_function_names(std::string_view kallsyms);

// Addresses of the functions whose names match a pattern of fnmatch(3) and that multi-probes can be put on:
// `traceable` is what tracefs lists in available_filter_functions, or in available_filter_functions_addrs
// (Linux 6.5), which has addresses; otherwise kallsyms does. Ascending, each once; none where addresses are
// hidden.
std::vector<std::uint64_t> traceable_functions(std::string_view traceable, bool has_addresses,
                                               std::string_view kallsyms, const std::string& pattern);

// Addresses of functions of exactly these names, by name: all addresses in `kallsyms` of functions that
// `traceable` (available_filter_functions) lists; with an empty `traceable` every function may be. The
// addresses of available_filter_functions_addrs are a little behind the start on some kernels, which search
// for the start when they look up a probe's cookie.
std::map<std::string, std::vector<std::uint64_t>> function_places(std::string_view traceable,
                                                                  std::string_view kallsyms,
                                                                  const std::vector<std::string>& names);

// The kernel's list of its symbols (/proc/kallsyms), and what of it a capture begins with.

struct KernelSymbols {
  std::optional<KernelText> text;
  std::vector<BpfImage> images;
  std::optional<format::Attachment> list;  // to travel inside the capture
  std::string lack;                        // why there are no names; empty: there are
};
// As they are now.
Result<KernelSymbols> read_kernel_symbols(std::size_t page_size);

// The same on a thread of its own: the kernel takes as long to write the list as all else takes before the
// first sample.
class KernelSymbolsAhead {
 public:
  explicit KernelSymbolsAhead(std::size_t page_size);
  std::optional<Result<KernelSymbols>> take();  // once, then nothing

 private:
  std::future<Result<KernelSymbols>> read_;
};

}  // namespace tacho::record
