#include "bpf/loaded_programs.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>

#include "bpf/libbpf_log.h"
#include "format/byte_writer.h"
#include "format/file.h"

namespace tacho::bpf {
namespace {

using format::Fd;

struct FreeBtf {
  void operator()(btf* types) const noexcept { btf__free(types); }
};
using Btf = std::unique_ptr<btf, FreeBtf>;

constexpr std::uint64_t kMaxArray = std::uint64_t{64} << 20;  // bytes; the kernel's programs are far smaller

// The arrays of struct bpf_prog_info that a capture carries: their bit in BpfProgramInfo::arrays, which is
// perf's numbering, and where their pointer, count and element size stand.
struct ArrayRow {
  unsigned bit;
  std::uint64_t (*pointer)(const bpf_prog_info&);
  void (*set_pointer)(bpf_prog_info&, std::uint64_t);
  std::uint32_t (*count)(const bpf_prog_info&);
  void (*set_count)(bpf_prog_info&, std::uint32_t);
  std::uint32_t (*element)(const bpf_prog_info&);  // bytes
  void (*set_element)(bpf_prog_info&, std::uint32_t);
};

template <auto Member>
std::uint64_t read64(const bpf_prog_info& info) {
  return info.*Member;
}
template <auto Member>
std::uint32_t read32(const bpf_prog_info& info) {
  return info.*Member;
}
template <auto Member>
void write64(bpf_prog_info& info, std::uint64_t value) {
  info.*Member = value;
}
template <auto Member>
void write32(bpf_prog_info& info, std::uint32_t value) {
  info.*Member = value;
}
template <std::uint32_t Bytes>
std::uint32_t always(const bpf_prog_info&) {
  return Bytes;
}
void leave(bpf_prog_info&, std::uint32_t) {}

using Info = bpf_prog_info;
template <auto Pointer, auto Count, std::uint32_t Bytes>
constexpr ArrayRow fixed(unsigned bit) {
  return {bit, read64<Pointer>, write64<Pointer>, read32<Count>, write32<Count>, always<Bytes>, leave};
}
template <auto Pointer, auto Count, auto Element>
constexpr ArrayRow sized(unsigned bit) {
  return {bit,
          read64<Pointer>,
          write64<Pointer>,
          read32<Count>,
          write32<Count>,
          read32<Element>,
          write32<Element>};
}
// What perf's own recorder asks for; the programs' instructions before the kernel's changes and its map ids
// are not.
constexpr ArrayRow kArrays[] = {
    fixed<&Info::jited_prog_insns, &Info::jited_prog_len, 1>(0),
    fixed<&Info::jited_ksyms, &Info::nr_jited_ksyms, 8>(3),
    fixed<&Info::jited_func_lens, &Info::nr_jited_func_lens, 4>(4),
    sized<&Info::func_info, &Info::nr_func_info, &Info::func_info_rec_size>(5),
    sized<&Info::line_info, &Info::nr_line_info, &Info::line_info_rec_size>(6),
    sized<&Info::jited_line_info, &Info::nr_jited_line_info, &Info::jited_line_info_rec_size>(7),
    fixed<&Info::prog_tags, &Info::nr_prog_tags, BPF_TAG_SIZE>(8),
};

// Everything the kernel tells about one program, with the arrays' pointers replaced by offsets into `data`.
struct Told {
  bpf_prog_info info{};
  std::uint64_t arrays = 0;
  std::vector<std::byte> data;

  // The bytes of an array; empty when the kernel did not give it.
  format::Bytes array(unsigned bit) const {
    const auto row = std::ranges::find(kArrays, bit, &ArrayRow::bit);
    if ((arrays >> bit & 1U) == 0) return {};
    return format::Bytes(data).subspan(row->pointer(info),
                                       std::size_t{row->count(info)} * row->element(info));
  }
};

Result<Told> ask(int program_fd) {
  bpf_prog_info sizes{};
  std::uint32_t length = sizeof sizes;
  if (bpf_obj_get_info_by_fd(program_fd, &sizes, &length) != 0)
    return system_error("BPF program info", errno);

  Told told;
  std::array<std::uint64_t, std::size(kArrays)> offsets{};
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < std::size(kArrays); ++i) {
    const std::uint64_t bytes = std::uint64_t{kArrays[i].count(sizes)} * kArrays[i].element(sizes);
    if (bytes == 0 || total + bytes > kMaxArray) continue;
    offsets[i] = total;
    total += (bytes + 7) / 8 * 8;
    told.arrays |= std::uint64_t{1} << kArrays[i].bit;
    kArrays[i].set_count(told.info, kArrays[i].count(sizes));
    kArrays[i].set_element(told.info, kArrays[i].element(sizes));
  }
  told.data.resize(total);
  for (std::size_t i = 0; i < std::size(kArrays); ++i)
    if ((told.arrays >> kArrays[i].bit & 1U) != 0)
      kArrays[i].set_pointer(told.info, reinterpret_cast<std::uint64_t>(told.data.data() + offsets[i]));
  length = sizeof told.info;
  if (bpf_obj_get_info_by_fd(program_fd, &told.info, &length) != 0)
    return system_error("BPF program info", errno);

  for (std::size_t i = 0; i < std::size(kArrays); ++i) {
    const bool asked = (told.arrays >> kArrays[i].bit & 1U) != 0;
    // The kernel clears the pointer of what it does not show us (kptr_restrict); sizes of a program never
    // change.
    const bool given = asked && kArrays[i].pointer(told.info) != 0 &&
                       kArrays[i].count(told.info) == kArrays[i].count(sizes) &&
                       kArrays[i].element(told.info) == kArrays[i].element(sizes);
    if (!given) told.arrays &= ~(std::uint64_t{1} << kArrays[i].bit);
    kArrays[i].set_pointer(told.info, given ? offsets[i] : 0);
  }
  return told;
}

std::string hex(format::Bytes bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte each : bytes) {
    text += kDigits[std::to_integer<unsigned>(each) >> 4];
    text += kDigits[std::to_integer<unsigned>(each) & 15];
  }
  return text;
}

// The names of the program's functions, from BTF: func_info has a type id for each.
std::vector<std::string> function_names(const Told& told, const btf* types) {
  std::vector<std::string> names;
  constexpr unsigned kFuncInfo = 5;
  const std::uint32_t record = told.info.func_info_rec_size;
  const auto records = told.array(kFuncInfo);
  if (types == nullptr || record < 8) return names;
  for (format::Cursor in(records); in.left() >= record;) {
    format::Cursor one(in.take(record));
    one.u32();  // offset of the first instruction
    const btf_type* function = btf__type_by_id(types, one.u32());
    const char* name = function == nullptr ? nullptr : btf__name_by_offset(types, function->name_off);
    names.emplace_back(name == nullptr ? "" : name);
  }
  return names;
}

// As the kernel and perf name it: "bpf_prog_TAG_NAME"; without BTF only a program without functions has a
// name.
std::string symbol_name(const Told& told, std::size_t function, const std::vector<std::string>& names,
                        format::Bytes tag) {
  std::string name = "bpf_prog_" + hex(tag);
  if (function < names.size() && !names[function].empty()) return name + "_" + names[function];
  const char* own = told.info.name;
  if (names.empty() && told.info.nr_prog_tags <= 1 && *own != '\0')
    return name + "_" + std::string(own, ::strnlen(own, sizeof told.info.name));
  return name + "_F";
}

std::vector<LoadedSymbol> symbols_of(const Told& told, const btf* types) {
  constexpr unsigned kKsyms = 3;
  constexpr unsigned kLengths = 4;
  constexpr unsigned kTags = 8;
  const auto names = function_names(told, types);
  const auto tags = told.array(kTags);
  format::Cursor addresses(told.array(kKsyms));
  format::Cursor lengths(told.array(kLengths));
  std::vector<LoadedSymbol> symbols;
  while (addresses.left() >= 8 && lengths.left() >= 4) {
    const std::size_t function = symbols.size();
    const bool own_tag = (function + 1) * BPF_TAG_SIZE <= tags.size();
    const format::Bytes tag = own_tag ? tags.subspan(function * BPF_TAG_SIZE, BPF_TAG_SIZE)
                                      : std::as_bytes(std::span(told.info.tag));
    symbols.push_back({addresses.u64(), lengths.u32(), symbol_name(told, function, names, tag)});
  }
  // Without the right to see addresses they are zero.
  std::erase_if(symbols,
                [](const LoadedSymbol& symbol) { return symbol.address == 0 || symbol.length == 0; });
  return symbols;
}

LoadedProgram describe(std::uint32_t id, Told told) {
  LoadedProgram program;
  program.id = id;
  std::memcpy(program.tag.data(), told.info.tag, program.tag.size());
  const Btf types(told.info.btf_id == 0 ? nullptr : btf__load_from_kernel_by_id(told.info.btf_id));
  if (types != nullptr) {
    std::uint32_t size = 0;
    const auto* bytes = static_cast<const std::byte*>(btf__raw_data(types.get(), &size));
    program.btf.id = told.info.btf_id;
    if (bytes != nullptr) program.btf.bytes.assign(bytes, bytes + size);
  }
  program.symbols = symbols_of(told, types.get());
  const auto info = std::as_bytes(std::span(&told.info, 1));
  program.info.info.assign(info.begin(), info.end());
  program.info.arrays = told.arrays;
  program.info.data = std::move(told.data);
  return program;
}

}  // namespace

Result<std::vector<LoadedProgram>> loaded_programs() {
  LibbpfLog log;
  std::vector<LoadedProgram> programs;
  for (std::uint32_t id = 0;;) {
    if (bpf_prog_get_next_id(id, &id) != 0) {
      if (errno == ENOENT) return programs;
      if (errno == EPERM)
        return Error{
            "no permission to list loaded BPF programs; run as root, or with the capability CAP_SYS_ADMIN",
            EPERM};
      return system_error("listing loaded BPF programs", errno);
    }
    const Fd program(bpf_prog_get_fd_by_id(id));
    if (!program && errno == ENOENT) continue;  // unloaded in between
    if (!program) return system_error("loaded BPF program " + std::to_string(id), errno);
    auto told = ask(program.get());
    if (!told) return std::move(told.error()).in("loaded BPF program " + std::to_string(id));
    programs.push_back(describe(id, std::move(*told)));
  }
}

}  // namespace tacho::bpf
