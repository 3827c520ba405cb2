// The running kernel: its symbols, modules and images, and functions that can be probed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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

// The kernel's text from kallsyms. With the reference symbol, a reader computes how far a kernel has moved
// since (KASLR).
struct KernelText {
  std::string reference;    // "_text" or "_stext"
  std::uint64_t start = 0;  // its address
  std::uint64_t end = 0;    // 0: unknown
};
// nullopt: addresses are hidden (kernel.kptr_restrict), or there are none.
std::optional<KernelText> find_kernel_text(std::string_view kallsyms);

// Code that the kernel generates for BPF: trampolines (fentry, fexit) and dispatchers. These are not
// programs, so only kallsyms lists them.
struct BpfImage {
  std::string name;  // "bpf_trampoline_6442466132", as in the kernel's KSYMBOL records
  std::uint64_t start = 0;
  std::uint32_t length = 0;  // bytes: to the next symbol of BPF, at most a page
};
// Ascending by address; empty: addresses are hidden.
std::vector<BpfImage> find_bpf_images(std::string_view kallsyms, std::size_t page_size);

struct KernelModule {
  std::string name, path;  // path: "[name]" if its file was not found
  std::uint64_t start = 0, size = 0;
  format::BuildId build_id;
};
// Parses a line of /proc/modules; nullopt: its address is hidden.
std::optional<KernelModule> parse_module_line(std::string_view line);
std::vector<KernelModule> loaded_modules();

// "[kernel.kallsyms]" and the modules, for the header.
std::vector<format::BuildIdEntry> kernel_build_ids(const std::vector<KernelModule>& modules);

// Writes the records that a reader needs before the first sample; `trailer`: bytes of sample_id_all.
void write_kernel_records(format::ByteWriter& out, const std::optional<KernelText>& text,
                          const std::vector<KernelModule>& modules, std::size_t trailer);
void write_image_records(format::ByteWriter& out, const std::vector<BpfImage>& images, std::size_t trailer);
void write_program_records(format::ByteWriter& out, const std::vector<bpf::LoadedProgram>& programs,
                           std::size_t trailer);

// Calls `use` with each function in /proc/kallsyms, in its order.
void each_kernel_function(std::string_view kallsyms,
                          const std::function<void(std::string_view name, std::uint64_t address)>& use);

// Whether the kernel or a module has the function, and `offset` (bytes from its start) is inside. The error
// names the nearest function, or the function's length. If addresses are hidden (kernel.kptr_restrict), the
// kernel checks the offset.
Result<> check_kernel_function(std::string_view kallsyms, std::string_view function, std::uint64_t offset);

// All functions, in the order of the list.
std::vector<std::string> kernel_function_names(std::string_view kallsyms);

// Addresses of the functions with names that match a pattern (fnmatch(3)) and that multi-probes can be
// attached to. `traceable`: available_filter_functions of tracefs, or available_filter_functions_addrs (Linux
// 6.5), which has addresses; with the former, kallsyms has them. Ascending, each once; empty if addresses are
// hidden.
std::vector<std::uint64_t> traceable_functions(std::string_view traceable, bool has_addresses,
                                               std::string_view kallsyms, const std::string& pattern);

// Addresses of functions by exact name: all addresses in `kallsyms` of functions in `traceable`
// (available_filter_functions); an empty `traceable` allows every function. On some kernels the addresses of
// available_filter_functions_addrs are a little after the start, but a probe's cookie is looked up by the
// start.
std::map<std::string, std::vector<std::uint64_t>> function_places(std::string_view traceable,
                                                                  std::string_view kallsyms,
                                                                  const std::vector<std::string>& names);

// What a capture's start has of the kernel's symbol list (/proc/kallsyms).
struct KernelSymbols {
  std::optional<KernelText> text;
  std::vector<BpfImage> images;
  std::optional<format::Attachment> list;  // to be stored in the capture
  std::string missing_reason;              // why there are no names; empty: there are
};
// Reads the current ones.
Result<KernelSymbols> read_kernel_symbols(std::size_t page_size);

// The same on a thread, since it takes as long as all other work before the first sample: the kernel writes
// the list.
class KernelSymbolsAhead {
 public:
  explicit KernelSymbolsAhead(std::size_t page_size);
  std::optional<Result<KernelSymbols>> take_symbols();  // once; later nullopt

 private:
  std::future<Result<KernelSymbols>> read_;
};

}  // namespace tacho::record
