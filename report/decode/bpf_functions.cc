#include "report/decode/bpf_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace tacho::report {
namespace {

using format::Bytes;
using format::Cursor;

// Offsets of the fields of struct bpf_prog_info (linux/bpf.h). Arrays are given as offsets into the data
// after it.
constexpr std::size_t kType = 0, kId = 4, kTag = 8, kCodeSize = 16, kTranslatedSize = 20, kCodeArray = 24,
                      kTranslatedArray = 32, kLoadedBy = 48, kMaps = 52, kMapArray = 56, kName = 64,
                      kFunctions = 104, kCodeSizes = 108, kAddressArray = 112, kSizeArray = 120;
constexpr std::size_t kBtfId = 128, kFuncInfoSize = 132, kFuncInfoArray = 136, kFuncInfos = 144,
                      kLineInfos = 148, kLineInfoArray = 152, kMachineLineArray = 160, kMachineLines = 168,
                      kLineInfoSize = 172, kMachineLineSize = 176, kTagArray = 184, kRunTime = 192,
                      kRunCount = 200, kSkipped = 208;
constexpr std::size_t kUpToTags = 192, kNameSize = 16;  // bytes
constexpr std::uint32_t kMostFunctions = 65536, kMostMaps = 4096, kMostLines = 1 << 22;

// The bits of BpfProgramInfo::arrays for the arrays that are present.
constexpr std::uint64_t kHasCode = 1 << 0, kHasTranslated = 1 << 1, kHasMaps = 1 << 2, kHasFuncInfo = 1 << 5,
                        kHasLineInfo = 1 << 6, kHasMachineLines = 1 << 7;

// enum bpf_prog_type and enum bpf_map_type, as bpftool names them.
constexpr std::string_view kProgramTypes[] = {"unspec",
                                              "socket_filter",
                                              "kprobe",
                                              "sched_cls",
                                              "sched_act",
                                              "tracepoint",
                                              "xdp",
                                              "perf_event",
                                              "cgroup_skb",
                                              "cgroup_sock",
                                              "lwt_in",
                                              "lwt_out",
                                              "lwt_xmit",
                                              "sock_ops",
                                              "sk_skb",
                                              "cgroup_device",
                                              "sk_msg",
                                              "raw_tracepoint",
                                              "cgroup_sock_addr",
                                              "lwt_seg6local",
                                              "lirc_mode2",
                                              "sk_reuseport",
                                              "flow_dissector",
                                              "cgroup_sysctl",
                                              "raw_tracepoint_writable",
                                              "cgroup_sockopt",
                                              "tracing",
                                              "struct_ops",
                                              "ext",
                                              "lsm",
                                              "sk_lookup",
                                              "syscall",
                                              "netfilter"};
constexpr std::string_view kMapTypes[] = {"unspec",
                                          "hash",
                                          "array",
                                          "prog_array",
                                          "perf_event_array",
                                          "percpu_hash",
                                          "percpu_array",
                                          "stack_trace",
                                          "cgroup_array",
                                          "lru_hash",
                                          "lru_percpu_hash",
                                          "lpm_trie",
                                          "array_of_maps",
                                          "hash_of_maps",
                                          "devmap",
                                          "sockmap",
                                          "cpumap",
                                          "xskmap",
                                          "sockhash",
                                          "cgroup_storage",
                                          "reuseport_sockarray",
                                          "percpu_cgroup_storage",
                                          "queue",
                                          "stack",
                                          "sk_storage",
                                          "devmap_hash",
                                          "struct_ops",
                                          "ringbuf",
                                          "inode_storage",
                                          "task_storage",
                                          "bloom_filter",
                                          "user_ringbuf",
                                          "cgrp_storage",
                                          "arena",
                                          "insn_array"};

template <std::size_t Count>
std::string word_of(const std::string_view (&words)[Count], std::uint32_t number) {
  return number < Count ? std::string(words[number]) : fmt::format("#{}", number);
}

constexpr std::uint16_t kBtfMagic = 0xeb9f;
// Types may refer to each other in cycles, and strings may be as long as the blob.
constexpr unsigned kDeepestBtfType = 32;
constexpr std::size_t kLongest = 1024;  // bytes of a text, and about as many of a prototype

// Kinds of types (Documentation/bpf/btf.rst).
enum BtfKind : std::uint32_t {
  kInteger = 1,
  kPointer = 2,
  kArray = 3,
  kStruct = 4,
  kUnion = 5,
  kEnum = 6,
  kForward = 7,
  kTypedef = 8,
  kVolatile = 9,
  kConst = 10,
  kRestrict = 11,
  kFunction = 12,
  kPrototype = 13,
  kFloat = 16,
  kEnum64 = 19
};

// The size of a type's data after the common twelve bytes; nullopt for kinds that BTF does not have.
std::optional<std::size_t> members_size(std::uint32_t kind, std::size_t members) {
  struct Row {
    std::size_t fixed, each;
  };
  constexpr std::size_t kNone = ~std::size_t{0};
  constexpr Row kRows[] = {{kNone, 0}, {4, 0},  {0, 0}, {12, 0}, {0, 12}, {0, 12}, {0, 8},
                           {0, 0},     {0, 0},  {0, 0}, {0, 0},  {0, 0},  {0, 0},  {0, 8},
                           {4, 0},     {0, 12}, {0, 0}, {4, 0},  {0, 0},  {0, 12}};
  if (kind >= std::size(kRows) || kRows[kind].fixed == kNone) return std::nullopt;
  return kRows[kind].fixed + kRows[kind].each * members;
}

Bytes part(Bytes all, std::uint64_t offset, std::uint64_t size) {
  if (offset > all.size()) return {};
  return all.subspan(offset, std::min<std::uint64_t>(size, all.size() - offset));
}

std::uint32_t u32_at(Bytes bytes, std::uint64_t offset) { return Cursor(part(bytes, offset, 4)).u32(); }
std::uint64_t u64_at(Bytes bytes, std::uint64_t offset) { return Cursor(part(bytes, offset, 8)).u64(); }

}  // namespace

BtfFunctions::BtfFunctions(Bytes blob) {
  Cursor head(blob);
  const std::uint16_t magic = head.u16();
  head.skip(2);  // version, flags
  const std::uint32_t head_size = head.u32();
  const std::uint32_t types_at = head.u32(), types_size = head.u32();
  const std::uint32_t strings_at = head.u32(), strings_size = head.u32();
  if (head.failed() || magic != kBtfMagic) return;
  const Bytes body = part(blob, head_size, blob.size());
  types_ = part(body, types_at, types_size);
  strings_ = part(body, strings_at, strings_size);
  Cursor in(types_);
  while (in.left() > 0) {
    const std::size_t offset = types_.size() - in.left();
    in.skip(4);  // its name
    const std::uint32_t info = in.u32();
    in.skip(4);  // its size, or another type
    const auto size = members_size(info >> 24 & 0x1f, info & 0xffff);
    if (!size) return;
    in.skip(*size);
    if (in.failed()) return;
    offsets_.push_back(static_cast<std::uint32_t>(offset));
  }
}

std::optional<BtfFunctions::Type> BtfFunctions::type(std::uint32_t number) const {
  if (number == 0 || number > offsets_.size()) return std::nullopt;
  const std::uint32_t offset = offsets_[number - 1];
  return Type{.name = text(u32_at(types_, offset)),
              .info = u32_at(types_, std::uint64_t{offset} + 4),
              .refers_to = u32_at(types_, std::uint64_t{offset} + 8),
              .members_offset = offset + 12};
}

std::string_view BtfFunctions::name(std::uint32_t number) const {
  const auto found = type(number);
  return found && found->kind() == kFunction ? found->name : std::string_view();
}

std::string_view BtfFunctions::text(std::uint32_t offset) const {
  return format::text_of(part(strings_, offset, kLongest));
}

std::string BtfFunctions::prototype(std::uint32_t number) const {
  const auto found = type(number);
  if (!found || found->kind() != kFunction) return {};
  const auto arguments = type(found->refers_to);
  std::string text;
  if (!arguments || arguments->kind() != kPrototype || !write_function(*arguments, found->name, 0, text))
    return {};
  return text;
}

bool BtfFunctions::write(std::uint32_t number, unsigned depth, std::string& to) const {
  if (depth > kDeepestBtfType || to.size() > kLongest) return false;
  if (number == 0) {
    to += "void ";
    return true;
  }
  const auto found = type(number);
  if (!found) return false;
  const auto named = [&](std::string_view before) {
    to.append(before).append(found->name).append(" ");
    return true;
  };
  const auto qualified = [&](std::string_view before) {
    to += before;
    return write(found->refers_to, depth + 1, to);
  };
  switch (found->kind()) {
    case kInteger:
    case kTypedef:
    case kFloat:
      return named("");
    case kStruct:
      return named("struct ");
    case kUnion:
      return named("union ");
    case kEnum:
    case kEnum64:
      return named("enum ");
    case kForward:
      return named(found->info >> 31U != 0 ? "union " : "struct ");
    case kVolatile:
      return qualified("volatile ");
    case kConst:
      return qualified("const ");
    case kRestrict:
      return qualified("restrict ");
    case kPointer:
      if (!write(found->refers_to, depth + 1, to)) return false;
      to += "* ";
      return true;
    case kArray:
      if (!write(u32_at(types_, found->members_offset), depth + 1, to)) return false;
      to += fmt::format("[{}]", u32_at(types_, std::uint64_t{found->members_offset} + 8));
      return true;
    case kPrototype:
      return write_function(*found, "", depth + 1, to);
    default:
      return false;
  }
}

bool BtfFunctions::write_function(const Type& prototype, std::string_view name, unsigned depth,
                                  std::string& to) const {
  if (!write(prototype.refers_to, depth + 1, to)) return false;
  to.append(name).append("(");
  const std::uint32_t count = prototype.info & 0xffff;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (to.size() > kLongest) return false;
    if (i != 0) to += ", ";
    const std::uint64_t argument = prototype.members_offset + 8 * i;
    const std::uint32_t type = u32_at(types_, argument + 4);
    if (type == 0) {
      to += "...";
      continue;
    }
    if (!write(type, depth + 1, to)) return false;
    const std::string_view its_name = text(u32_at(types_, argument));
    to += its_name;
    if (its_name.empty() && to.ends_with(' ')) to.pop_back();
  }
  to += ')';
  return true;
}

std::string bpf_map_type(std::uint32_t type) { return word_of(kMapTypes, type); }

std::uint32_t BpfFunctions::id(const format::BpfProgramInfo& program) { return u32_at(program.info, kId); }

const BtfFunctions* BpfFunctions::btf(std::uint32_t id) {
  const auto [known, is_new] = btf_.try_emplace(id);
  if (is_new) {
    const auto found = std::ranges::find(environment_->btf, id, &format::BtfBlob::id);
    if (found != environment_->btf.end()) known->second.emplace(found->bytes);
  }
  return known->second ? &*known->second : nullptr;
}

// As perf, which names the functions of a program without BTF "F" if it has several.
std::vector<BpfFunction> BpfFunctions::functions_of(const format::BpfProgramInfo& program) {
  const Bytes info = program.info, data = program.data;
  std::vector<BpfFunction> functions;
  const std::uint32_t count = u32_at(info, kFunctions);
  if (info.size() < kUpToTags || count == 0 || count != u32_at(info, kCodeSizes) || count > kMostFunctions)
    return functions;
  const std::uint32_t btf_id = u32_at(info, kBtfId);
  const BtfFunctions* const names = btf_id == 0 ? nullptr : btf(btf_id);
  const bool has_names =
      names != nullptr && (program.arrays & kHasFuncInfo) != 0 && u32_at(info, kFuncInfos) >= count;
  // The code of all functions, one after another.
  const Bytes code = (program.arrays & kHasCode) != 0
                         ? part(data, u64_at(info, kCodeArray), u32_at(info, kCodeSize))
                         : Bytes();
  std::uint64_t code_at = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    BpfFunction& function = functions.emplace_back();
    const Bytes tag = part(data, u64_at(info, kTagArray) + 8 * i, 8);
    function.name = fmt::format("bpf_prog_{:016x}", Cursor(tag, std::endian::big).u64());
    const std::uint64_t func_info = u64_at(info, kFuncInfoArray) + u32_at(info, kFuncInfoSize) * i;
    const std::string_view name = has_names   ? names->name(u32_at(data, func_info + 4))
                                  : count > 1 ? "F"
                                              : format::text_of(part(info, kName, kNameSize));
    if (!name.empty()) function.name.append("_").append(name);
    if (has_names) {
      function.prototype = names->prototype(u32_at(data, func_info + 4));
      function.first = u32_at(data, func_info);
    }
    function.address = u64_at(data, u64_at(info, kAddressArray) + 8 * i);
    function.size = u32_at(data, u64_at(info, kSizeArray) + 4 * i);
    function.code = part(code, code_at, function.size);
    code_at += function.size;
  }
  add_machine_lines(program, functions);
  return functions;
}

namespace {

// struct bpf_line_info, its first 16 bytes.
BpfLine line_at(Bytes data, std::uint64_t place, const BtfFunctions& texts) {
  constexpr unsigned kColumnBits = 10;
  const std::uint32_t line = u32_at(data, place + 12);
  return {.offset = u32_at(data, place),
          .file = texts.text(u32_at(data, place + 4)),
          .text = texts.text(u32_at(data, place + 8)),
          .line = line >> kColumnBits,
          .column = line & ((1U << kColumnBits) - 1)};
}

}  // namespace

std::vector<BpfLine> BpfFunctions::translated_lines(const format::BpfProgramInfo& program) {
  const Bytes info = program.info, data = program.data;
  const BtfFunctions* const texts = btf(u32_at(info, kBtfId));
  std::vector<BpfLine> lines;
  constexpr std::uint64_t kRecord = 16;
  const std::uint64_t record = u32_at(info, kLineInfoSize), first = u64_at(info, kLineInfoArray);
  if (texts == nullptr || (program.arrays & kHasLineInfo) == 0 || record < kRecord || first > data.size())
    return lines;
  const std::uint64_t count = std::min({u32_at(info, kLineInfos), kMostLines});
  for (std::uint64_t i = 0; i < count && first + record * i + kRecord <= data.size(); ++i)
    lines.push_back(line_at(data, first + record * i, *texts));
  return lines;
}

// The kernel has the address of the machine code for each source line.
void BpfFunctions::add_machine_lines(const format::BpfProgramInfo& program,
                                     std::vector<BpfFunction>& functions) {
  const Bytes info = program.info, data = program.data;
  const std::uint64_t size = u32_at(info, kMachineLineSize), first = u64_at(info, kMachineLineArray);
  if ((program.arrays & kHasMachineLines) == 0 || size < 8 || first > data.size()) return;
  const std::vector<BpfLine> lines = translated_lines(program);
  const std::size_t count = std::min<std::size_t>(lines.size(), u32_at(info, kMachineLines));
  std::map<std::uint64_t, BpfFunction*> by_address;
  for (BpfFunction& function : functions) by_address.emplace(function.address, &function);
  for (std::uint64_t i = 0; i < count && first + size * i + 8 <= data.size(); ++i) {
    const std::uint64_t address = u64_at(data, first + size * i);
    const auto next = by_address.upper_bound(address);
    if (next == by_address.begin()) continue;
    BpfFunction& function = *std::prev(next)->second;
    if (address - function.address >= function.size) continue;
    function.lines.push_back(lines[i]);
    function.lines.back().offset = address - function.address;
  }
  for (BpfFunction& function : functions) std::ranges::stable_sort(function.lines, {}, &BpfLine::offset);
}

BpfProgram BpfFunctions::program(const format::BpfProgramInfo& program) {
  const Bytes info = program.info, data = program.data;
  BpfProgram out;
  out.id = id(program);
  out.type = word_of(kProgramTypes, u32_at(info, kType));
  out.tag = fmt::format("{:016x}", Cursor(part(info, kTag, 8), std::endian::big).u64());
  out.name = format::text_of(part(info, kName, kNameSize));
  const BtfFunctions* const names = btf(u32_at(info, kBtfId));
  if (names != nullptr && (program.arrays & kHasFuncInfo) != 0 && u32_at(info, kFuncInfos) != 0) {
    const std::string_view whole = names->name(u32_at(data, u64_at(info, kFuncInfoArray) + 4));
    if (whole.starts_with(out.name)) out.name = whole;
  }
  out.loaded_by = u32_at(info, kLoadedBy);
  out.translated_bytes = u32_at(info, kTranslatedSize);
  out.machine_bytes = u32_at(info, kCodeSize);
  out.nanoseconds = u64_at(info, kRunTime);
  out.runs = u64_at(info, kRunCount);
  out.skipped = u64_at(info, kSkipped);
  if ((program.arrays & kHasTranslated) != 0)
    out.translated = part(data, u64_at(info, kTranslatedArray), out.translated_bytes);
  out.lines = translated_lines(program);
  if ((program.arrays & kHasMaps) == 0) return out;
  const std::uint64_t maps = u64_at(info, kMapArray);
  const std::uint32_t count = std::min(u32_at(info, kMaps), kMostMaps);
  for (std::uint64_t i = 0; i < count && maps + 4 * i + 4 <= data.size(); ++i)
    out.maps.push_back(u32_at(data, maps + 4 * i));
  return out;
}

}  // namespace tacho::report
