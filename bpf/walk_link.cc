#include "bpf/walk_link.h"

#include <bpf/libbpf.h>
#include <elf.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "bpf/elf_object.h"
#include "bpf/libbpf_log.h"
#include "bpf/stack_walk_object.h"
#include "format/file.h"

namespace tacho::bpf {
namespace {

constexpr std::size_t kMostLinked = std::size_t{64} << 20;
constexpr std::string_view kWalk = "tacho_walk_stack", kStack = "tacho_user_stack";

struct FreeLinker {
  void operator()(bpf_linker* linker) const noexcept { bpf_linker__free(linker); }
};

// libbpf links files, by name.
struct MemoryFile {
  format::Fd fd;
  std::string path;
};
Result<MemoryFile> memory_file(format::Bytes content) {
  MemoryFile file{format::Fd(memfd_create("tacho-object", MFD_CLOEXEC)), ""};
  if (!file.fd) return system_error("memory for a BPF object", errno);
  file.path = "/proc/self/fd/" + std::to_string(file.fd.get());
  if (auto done = format::write_at(file.fd.get(), 0, content); !done) return std::move(done.error());
  return file;
}

std::size_t outputs_in(const ElfSection& code) {
  std::size_t found = 0;
  for (format::Cursor in(code.content); in.left() >= sizeof(bpf_insn);) {
    const std::uint8_t operation = in.u8();
    const bool is_helper = in.u8() == 0;
    in.u16();
    const std::uint32_t number = in.u32();
    if (operation == (BPF_JMP | BPF_CALL) && is_helper && number == BPF_FUNC_perf_event_output) ++found;
  }
  return found;
}

std::size_t uses_of(const ElfObject& object, const ElfSection& relocations, std::string_view symbol) {
  constexpr unsigned kSymbolShift = 32;
  std::size_t found = 0;
  for (format::Cursor in(relocations.content); in.left() >= sizeof(Elf64_Rel);) {
    in.u64();  // where
    const std::uint64_t number = in.u64() >> kSymbolShift;
    if (number < object.symbols.size() && object.symbols[number].name == symbol) ++found;
  }
  return found;
}

}  // namespace

// Every call of the unwinder stands in front of a call that writes an event.
WalkUse walk_use_of(format::Bytes bytes) {
  const auto object = parse_elf_object(bytes);
  if (!object) return {};
  std::size_t outputs = 0, walks = 0, stacks = 0;
  for (const ElfSection& section : object->sections) {
    if (section.type == SHT_PROGBITS && (section.flags & SHF_EXECINSTR) != 0) outputs += outputs_in(section);
    const bool is_of_types = section.name.starts_with(".rel.BTF") || section.name.starts_with(".rel.debug");
    if (section.type != SHT_REL || is_of_types) continue;
    walks += uses_of(*object, section, kWalk);
    stacks += uses_of(*object, section, kStack);
  }
  return {outputs != 0 && walks >= outputs, stacks != 0};
}

Result<> link_walker(LinkedWalk& out, format::Bytes object, MapsByName maps) {
  out = {};
  if (maps.empty()) return Done{};
  const format::Bytes walker = linked_walk_object();
  if (walker.empty())
    return Error{"this tacho was built without clang, and has no program that walks stacks"};
  // libbpf 1.1's linker dies of what is no ELF file, instead of refusing it.
  if (const auto parsed = parse_elf_object(object); !parsed) return parsed.error();
  auto first = memory_file(object), second = memory_file(walker), both = memory_file({});
  for (const auto* file : {&first, &second, &both})
    if (!*file) return file->error();
  LibbpfLog said;
  bpf_linker_opts options{};
  options.sz = sizeof options;
  const std::unique_ptr<bpf_linker, FreeLinker> linker(bpf_linker__new(both->path.c_str(), &options));
  const bool is_linked = linker != nullptr &&
                         bpf_linker__add_file(linker.get(), first->path.c_str(), nullptr) == 0 &&
                         bpf_linker__add_file(linker.get(), second->path.c_str(), nullptr) == 0 &&
                         bpf_linker__finalize(linker.get()) == 0;
  if (!is_linked) {
    const auto lines = libbpf_lines(said.text());
    return Error{"libbpf cannot link it with the unwinder" + (lines.empty() ? "" : ": " + lines.back())};
  }
  auto elf = format::read_file(both->path, kMostLinked);
  if (!elf) return std::move(elf.error());
  out = {std::move(*elf), std::move(maps)};
  return Done{};
}

}  // namespace tacho::bpf
