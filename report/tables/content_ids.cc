#include "report/tables/content_ids.h"

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "format/base/file.h"
#include "report/profile/frame_names.h"

namespace tacho::report {
namespace {

// XXH3 over fields, one after another.
class FieldHash {
 public:
  FieldHash() { XXH3_128bits_reset(&state_); }
  void add(format::Bytes bytes) { XXH3_128bits_update(&state_, bytes.data(), bytes.size()); }
  void add_number(std::uint64_t number) {
    std::array<std::byte, 8> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(number >> 8 * i & 0xff);
    add(bytes);
  }
  // With its size, so that two texts never read as two others.
  void add_text(std::string_view text) {
    add_number(text.size());
    add(std::as_bytes(std::span(text)));
  }
  ContentId id() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(&state_);
    return {hash.high64, hash.low64};
  }

 private:
  XXH3_state_t state_;
};

Result<> add_file(const std::string& path, FieldHash& hash) {
  auto file = format::open_input(path);
  if (!file) return std::move(file.error());
  constexpr std::size_t kBlock = std::size_t{1} << 20;  // bytes
  for (std::uint64_t at = 0;;) {
    const auto block = format::read_at(file->get(), at, kBlock);
    if (!block) return Error(block.error()).in(path);
    hash.add(*block);
    at += block->size();
    if (block->size() < kBlock) return Done{};
  }
}

// Whether the module's code belongs to one process or one boot: its addresses mean nothing elsewhere.
bool is_made_code(const symbolize::Module& module) {
  using symbolize::ModuleKind;
  const bool is_jit = module.kind == ModuleKind::Anonymous || module.short_name.starts_with("jitted-") ||
                      is_jit_map(module.path);
  const bool is_kernel = module.kind == ModuleKind::Kernel || module.kind == ModuleKind::KernelModule ||
                         module.kind == ModuleKind::GuestKernel;
  return module.build_id.empty() && (is_jit || is_kernel);
}

}  // namespace

std::string ContentId::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

Result<ContentId> id_of_capture(const std::string& path) {
  FieldHash hash;
  std::error_code failed;
  if (!std::filesystem::is_directory(path, failed)) {
    if (auto added = add_file(path, hash); !added) return std::move(added.error());
    return hash.id();
  }
  std::vector<std::filesystem::path> files;
  for (std::filesystem::directory_iterator file(path, failed), end; !failed && file != end;
       file.increment(failed))
    files.push_back(file->path());
  if (failed) return system_error(path, failed.value());
  std::ranges::sort(files);
  for (const auto& file : files) {
    hash.add_text(file.filename().string());
    if (!std::filesystem::is_regular_file(file, failed)) continue;
    if (auto added = add_file(file.string(), hash); !added) return std::move(added.error());
  }
  return hash.id();
}

ContentId id_of_part(const ContentId& capture, const std::string& choice) {
  FieldHash hash;
  hash.add_number(capture.high);
  hash.add_number(capture.low);
  hash.add_text(choice);
  return hash.id();
}

FramePlace place_of(const Location& location) {
  using symbolize::ModuleKind;
  const format::RuntimeAddress ip{location.ip.value - (location.is_caller ? 1 : 0)};
  if (location.mapping == nullptr) return {.offset = ip.value};
  const symbolize::Mapping& mapping = *location.mapping;
  const symbolize::Module& module = *mapping.module;
  // KASLR and the loader of BPF programs choose the start.
  const bool is_moved = module.kind == ModuleKind::Kernel || module.kind == ModuleKind::Bpf;
  const bool is_made = is_made_code(module);
  return {.module = &module,
          .offset = is_moved ? ip.value - mapping.start : mapping.nameless_address(ip),
          .pid = is_made ? mapping.pid : 0,
          .is_of_capture = is_made};
}

std::uint64_t id_of_frame(const FramePlace& place, const ContentId& capture) {
  FieldHash hash;
  if (place.module != nullptr && !place.module->build_id.empty()) {
    hash.add(std::as_bytes(std::span(place.module->build_id.bytes)).first(place.module->build_id.size));
  } else {
    hash.add_text(place.module == nullptr ? std::string_view() : place.module->path);
  }
  hash.add_number(place.offset);
  if (place.is_of_capture) {
    hash.add_number(place.pid);
    hash.add_number(capture.high);
    hash.add_number(capture.low);
  }
  return hash.id().low;
}

ContentId id_of_stack(std::span<const std::uint64_t> frames) {
  FieldHash hash;
  for (const std::uint64_t frame : frames) hash.add_number(frame);
  return hash.id();
}

}  // namespace tacho::report
