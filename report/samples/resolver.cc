#include "report/samples/resolver.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

#include "format/records/perf_abi.h"
#include "symbolize/files/build_id_match.h"
#include "symbolize/files/decompress.h"
#include "symbolize/files/file_access.h"
#include "symbolize/files/source_files.h"

namespace tacho::report {

namespace abi = format::abi;

namespace {

symbolize::AddressKind address_kind(const Location& location) {
  return location.is_caller ? symbolize::AddressKind::Return : symbolize::AddressKind::Instruction;
}

}  // namespace

Resolver::Resolver(const symbolize::SymbolOptions& options, const format::Features& features,
                   symbolize::KernelSpace kernel, const symbolize::JitCode& jit,
                   const StableArray<Location, LocationId>& locations)
    : features_(&features),
      kernel_(kernel),
      jit_(&jit),
      locations_(&locations),
      root_(options.symfs),
      access_(options.name_access),
      vmlinux_(options.vmlinux),
      kcore_(options.kcore),
      is_core_of_capture_(options.is_kcore_of_capture),
      symbolizer_(options, features, kernel, &jit),
      code_(symbolize::DebugFiles(options.symfs, {}, options.pinned), &features) {}

std::span<const symbolize::Frame> Resolver::frames(const Location& location) {
  const auto origin = location.is_unwound ? symbolize::Origin::Unwound : symbolize::Origin::Chain;
  return symbolizer_.resolve(location.mapping, location.ip, location.cpumode, origin, address_kind(location));
}

const symbolize::Frame& Resolver::frame(const Location& location) {
  return symbolizer_
      .resolve(location.mapping, location.ip, location.cpumode, symbolize::Origin::Alone,
               address_kind(location))
      .front();
}

std::span<const symbolize::Frame> Resolver::kernel_frames(std::uint64_t address) {
  const format::RuntimeAddress ip{address};
  return symbolizer_.resolve(kernel_.find_mapping(ip), ip, abi::kCpumodeKernel);
}

symbolize::PackedSource* Resolver::packed_code(const symbolize::Module& module) {
  symbolize::PackedSource* const packed = symbolizer_.packed(module);
  return packed != nullptr && packed->is(format::PackedModule::kHasCode) ? packed : nullptr;
}

// Code that a JIT compiler made, from its jitdump.
format::Bytes Resolver::made_code(const symbolize::Module& module, std::uint64_t shown,
                                  std::size_t size) const {
  const auto* const function = jit_->find_function(std::string(module.path));
  if (function == nullptr || shown < symbolize::JitCode::kTextOffset) return {};
  const std::uint64_t offset = shown - symbolize::JitCode::kTextOffset;
  if (offset >= function->code.size()) return {};
  return function->code.subspan(static_cast<std::size_t>(offset),
                                std::min<std::uint64_t>(size, function->code.size() - offset));
}

// From --kcore. Memory of another boot has other code at these addresses.
symbolize::KernelCore* Resolver::kernel_core(const symbolize::Module& module) {
  if (const int file = std::exchange(kcore_, -1); file >= 0) {
    auto core = symbolize::KernelCore::open(file);
    if (!core) {
      core_error_ = core.error().what;
      return nullptr;
    }
    const auto& start = core->start_of_text();
    const bool is_of_kernel =
        module.kind != symbolize::ModuleKind::Kernel || core->build_id().empty() ||
        symbolize::match_build_ids(core->build_id(), module.build_id) != symbolize::BuildIdMatch::Other;
    // One boot's kernel is 2 MB or more from another's (KASLR), and _stext is at or a little above _text.
    constexpr std::uint64_t kStep = std::uint64_t{1} << 21;  // bytes
    const auto& text = kernel_.text();
    const bool is_elsewhere =
        start && text && !text->reference_symbol.empty() && *start - text->reference_address >= kStep;
    if (!is_of_kernel)
      core_error_ = "is of another kernel, " + core->build_id().hex();
    else if (is_elsewhere)
      core_error_ = "is of another boot, in which the kernel lay elsewhere";
    else
      core_.emplace(std::move(*core));
    if (core_ && !start && !is_core_of_capture_)
      core_error_ = "does not say of which kernel it is (VMCOREINFO)";
  }
  return core_ ? &*core_ : nullptr;
}

// From --vmlinux. The running kernel has patched some of these instructions.
format::Bytes Resolver::kernel_code(const Location& location, std::uint64_t address, std::size_t size) {
  if (vmlinux_.empty()) {
    symbolize::KernelCore* const core = kernel_core(*location.mapping->module);
    return core != nullptr ? core->read_memory(address, size) : format::Bytes();
  }
  const symbolize::LocationFacts facts = symbolizer_.facts(location.mapping, {address}, location.cpumode);
  if (facts.source == nullptr || !facts.source->is_vmlinux() || facts.source->packed != nullptr) return {};
  const auto offset = facts.source->loads.offset_of({address - facts.source->moved});
  return offset ? code_.read_vmlinux(vmlinux_, offset->value, size) : format::Bytes();
}

format::Bytes Resolver::code(const Location& location, std::uint64_t address, std::size_t size) {
  const symbolize::Mapping* const mapping = location.mapping;
  if (mapping == nullptr || address < mapping->start || address >= mapping->end) return {};
  const std::uint64_t shown = mapping->shown_address({address});
  format::Bytes known;
  if (auto* const packed = packed_code(*mapping->module)) known = packed->code_at(shown, size);
  if (known.size() == size) return known;
  const symbolize::ScopedRead reading(access_, mapping->module->path);
  if (reading.is_refused()) return known;
  format::Bytes read = made_code(*mapping->module, shown, size);
  if (read.empty() && (mapping->module->kind == symbolize::ModuleKind::Kernel ||
                       mapping->module->kind == symbolize::ModuleKind::KernelModule))
    read = kernel_code(location, address, size);
  if (read.empty()) read = code_.read_code(*mapping->module, shown, size);
  // Without a build id the file may be another version, so it is used only if it begins with the packed code,
  // which is certain.
  if (known.empty() && read.empty()) note_missing_code(*mapping->module);
  const bool goes_on = read.size() > known.size() && std::ranges::equal(read.first(known.size()), known);
  return goes_on ? read : known;
}

void Resolver::note_missing_code(const symbolize::Module& module) {
  const bool has_file = module.kind == symbolize::ModuleKind::User && module.path.starts_with('/');
  if (has_file && std::ranges::find(without_code_, &module) == without_code_.end())
    without_code_.push_back(&module);
}

bool Resolver::is_64_bit(const Location& location) {
  if (location.mapping == nullptr) return false;
  const symbolize::Module& module = *location.mapping->module;
  if (const auto* const packed = packed_code(module)) return packed->is_64_bit();
  // Only 64-bit kernels and JIT code are supported.
  if (module.kind != symbolize::ModuleKind::User || jit_->find_function(std::string(module.path)) != nullptr)
    return true;
  const symbolize::ScopedRead reading(access_, module.path);
  return !reading.is_refused() && code_.is_64_bit(module);
}

Result<std::vector<std::byte>> Resolver::source_file(const symbolize::Module* module,
                                                     const std::string& path) {
  const auto* const attached = features_->attachment(std::string(symbolize::kAttachedSource) + path);
  if (attached != nullptr) return symbolize::unpack_attached_text(*attached);
  const bool is_kernel = module != nullptr && module->kind == symbolize::ModuleKind::Kernel;
  const std::string program = module == nullptr ? ""
                              : is_kernel       ? vmlinux_
                                                : root_ + std::string(module->path);
  auto source = [&]() -> Result<symbolize::SourceBytes> {
    const symbolize::ScopedRead reading(access_, path);
    if (reading.is_refused()) return Error{"it is left out", EPERM};
    return symbolize::read_source(root_, path, program);
  }();
  if (!source) {
    const bool is_missing = source.error().code == ENOENT || source.error().code == ENOTDIR;
    if (!is_missing) note_source(path, "is not shown as source: " + source.error().what);
    return std::move(source.error());
  }
  if (module == nullptr) return std::move(source->bytes);
  const std::vector<symbolize::Md5> sums = symbolizer_.source_sums(*module, path);
  if (sums.empty()) {
    const std::uint32_t last = symbolizer_.last_source_line(*module, path);
    if (const std::size_t lines = symbolize::SourceText(source->bytes).lines(); last > lines) {
      note_other_text(path, last, lines);
      return Error{"is another text"};
    }
    check_source_time(*module, path, source->modified);
  } else if (std::ranges::find(sums, symbolize::md5_of(source->bytes)) == sums.end()) {
    note_source(path, "is not shown as source: it is another text than " + std::string(module->short_name) +
                          " was compiled from (its MD5 sum is not that of the debug information)");
    return Error{"is another text"};
  }
  return std::move(source->bytes);
}

// A newer file may be an edited one, or of a checkout after the build.
void Resolver::check_source_time(const symbolize::Module& module, const std::string& path,
                                 std::int64_t modified) {
  const auto [known, is_new] = program_times_.try_emplace(&module);
  if (is_new) known->second = symbolizer_.program_time(module);
  if (known->second && modified > *known->second)
    note_source(path, "is more recent than " + std::string(module.path) +
                          ": its lines may not be those that it was compiled from");
}

void Resolver::note_source(const std::string& path, const std::string& what) {
  source_notes_.push_back(path + ": " + what);
}

void Resolver::note_other_text(const std::string& path, std::uint32_t last_line, std::size_t lines) {
  note_source(path,
              "is not shown as source: it is another text than the program was compiled from, which had at "
              "least " +
                  std::to_string(last_line) + " lines; it has " + std::to_string(lines));
}

void Resolver::report_missing(format::Diagnostics& diagnostics,
                              std::span<const symbolize::EndedChains> ended_chains) const {
  jit_->report(diagnostics);
  constexpr std::size_t kMostOfSources = 20;
  for (std::size_t i = 0; i < std::min(source_notes_.size(), kMostOfSources); ++i)
    diagnostics.add_line(format::Damage::Note, source_notes_[i]);
  if (source_notes_.size() > kMostOfSources)
    diagnostics.add_line(
        format::Damage::Note,
        "and " + std::to_string(source_notes_.size() - kMostOfSources) + " more lines about source files");
  if (!core_error_.empty()) diagnostics.add_line(format::Damage::Note, "the file of --kcore " + core_error_);
  constexpr std::size_t kMaxListed = 20;
  for (std::size_t i = 0; i < std::min(without_code_.size(), kMaxListed); ++i)
    diagnostics.add_line(format::Damage::Note,
                         std::string(without_code_[i]->path) +
                             ": its instructions are neither in the capture nor here; on the recording host "
                             "tacho pack --level code puts them into it");
  if (without_code_.size() > kMaxListed)
    diagnostics.add_line(format::Damage::Note,
                         "and of " + std::to_string(without_code_.size() - kMaxListed) + " more files");
  symbolizer_.report_missing(diagnostics, ended_chains);
}

const symbolize::Frame* frame_at(Resolver& resolver, const ResolvedSample& sample, std::uint64_t address) {
  if (sample.finder == nullptr) return nullptr;
  const Location& location = sample.locate(address);
  return location.mapping == nullptr ? nullptr : &resolver.frame(location);
}

std::string address_name(Resolver& resolver, const ResolvedSample& sample, std::uint64_t address) {
  const symbolize::Frame* const frame = frame_at(resolver, sample, address);
  if (frame == nullptr || frame->function.empty()) return {};
  std::string name(frame->function);
  const std::uint64_t offset = frame->shown_address - frame->function_start;
  if (offset == 0) return name;
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), offset, 16).ptr;
  return name.append("+0x").append(digits.data(), end);
}

}  // namespace tacho::report
