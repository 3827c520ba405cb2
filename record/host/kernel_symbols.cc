#include "record/host/kernel_symbols.h"

#include <system_error>
#include <utility>

#include "format/file.h"

namespace tacho::record {

Result<KernelSymbols> read_kernel_symbols(std::size_t page_size) {
  constexpr const char* kList = "/proc/kallsyms";
  KernelSymbols symbols;
  const auto kallsyms = format::read_file(kList);
  if (!kallsyms) {
    symbols.lack = kallsyms.error().what + ": kernel frames will have no names";
    return symbols;
  }
  symbols.text = find_kernel_text(format::as_text(*kallsyms));
  symbols.images = find_bpf_images(format::as_text(*kallsyms), page_size);
  if (!symbols.text) {
    symbols.lack =
        "kernel symbols are hidden or absent: kernel frames will have no names (run as root, or set "
        "kernel.kptr_restrict to 0)";
    return symbols;
  }
  auto packed = format::pack_attachment(std::string(format::kKallsymsAttachment), kList, *kallsyms);
  if (!packed) return std::move(packed.error());
  symbols.list = std::move(*packed);
  return symbols;
}

KernelSymbolsAhead::KernelSymbolsAhead(std::size_t page_size) {
  const auto read = [page_size] { return read_kernel_symbols(page_size); };
  try {
    read_ = std::async(std::launch::async, read);
  } catch (const std::system_error&) {
    read_ = std::async(std::launch::deferred, read);  // there is no thread to be had
  }
}

std::optional<Result<KernelSymbols>> KernelSymbolsAhead::take() {
  if (!read_.valid()) return std::nullopt;
  return read_.get();
}

}  // namespace tacho::record
