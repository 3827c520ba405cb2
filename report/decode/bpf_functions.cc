#include "report/decode/bpf_functions.h"

#include <fmt/format.h>
#include <linux/bpf.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <set>
#include <string_view>

#include "format/base/file.h"

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

namespace {

constexpr std::size_t kInstructionSize = 8;  // bytes

// Masks: of the class, the size, the mode of loads and stores, and the operation.
constexpr std::uint8_t kClass = 0x07, kSize = 0x18, kMode = 0xe0, kOperationBits = 0xf0, kFromRegister = 0x08;
// Not in the kernel headers of the distributions yet.
constexpr std::uint8_t kMemorySigned = 0x80, kConditional = 0xe0, kNoSpeculation = 0xc0;
constexpr std::int32_t kLoadAcquire = 0x100, kStoreRelease = 0x110;
constexpr std::int16_t kCastAddressSpace = 1, kPerCpuAddress = -1;

constexpr std::string_view kSizeNames[] = {"u32", "u16", "u8", "u64"};
constexpr std::string_view kSignedSizes[] = {"s32", "s16", "s8", "s64"};
constexpr std::string_view kArithmetic[] = {
    "+=", "-=", "*=", "/=", "|=", "&=", "<<=", ">>=", "neg", "%=", "^=", "=", "s>>=", "endian", "?", "?"};
constexpr std::string_view kJumps[] = {
    "jmp", "==", ">", ">=", "&", "!=", "s>", "s>=", "call", "exit", "<", "<=", "s<", "s<=", "?", "?"};

// The kernel's helper functions by number: calls have numbers until the verifier replaces them by addresses.
#define TACHO_HELPER_NAME(name) "bpf_" #name
constexpr std::string_view kHelpers[] = {__BPF_FUNC_MAPPER(TACHO_HELPER_NAME)};
#undef TACHO_HELPER_NAME

BpfInstruction read_instruction(format::Cursor& in) {
  BpfInstruction one;
  one.code = in.u8();
  const std::uint8_t registers = in.u8();
  one.destination = registers & 0xfU;
  one.source = registers >> 4U;
  one.offset = static_cast<std::int16_t>(in.u16());
  one.immediate = static_cast<std::int32_t>(in.u32());
  return one;
}

std::uint8_t class_of(const BpfInstruction& one) { return one.code & kClass; }
std::string_view size_of(const BpfInstruction& one) { return kSizeNames[(one.code & kSize) >> 3U]; }
bool is_from_register(const BpfInstruction& one) { return (one.code & kFromRegister) != 0; }

std::string unknown(std::string_view kind, const BpfInstruction& one) {
  return fmt::format("BUG_{}{:02x}", kind, one.code);
}

std::string memory_text(const BpfInstruction& one, std::uint8_t base, std::string_view size) {
  return fmt::format("*({} *)(r{} {:+})", size, base, one.offset);
}

// BPF_ALU and BPF_ALU64.
std::string arithmetic(const BpfInstruction& one) {
  const bool is_wide = class_of(one) == BPF_ALU64;
  const std::uint8_t operation = one.code & kOperationBits;
  const std::string to = fmt::format("{}{}", is_wide ? 'r' : 'w', one.destination);
  if (operation == BPF_END) {
    const std::string_view order = is_wide ? "bswap" : is_from_register(one) ? "be" : "le";
    return fmt::format("r{} = {}{} r{}", one.destination, order, one.immediate, one.destination);
  }
  if (operation == BPF_NEG) return fmt::format("{} = -{}", to, to);
  if (kArithmetic[operation >> 4U] == "?") return unknown("alu_", one);
  const bool is_division = operation == BPF_DIV || operation == BPF_MOD;
  const std::string sign = is_division && one.offset == 1 ? "s" : "";
  const std::string with = sign + std::string(kArithmetic[operation >> 4U]);
  if (!is_from_register(one)) return fmt::format("{} {} {}", to, with, one.immediate);
  if (operation == BPF_MOV && is_wide && one.offset == kCastAddressSpace) {
    const auto spaces = static_cast<std::uint32_t>(one.immediate);
    return fmt::format("r{} = addr_space_cast(r{}, {}, {})", one.destination, one.source, spaces >> 16U,
                       spaces & 0xffffU);
  }
  if (operation == BPF_MOV && is_wide && one.offset == kPerCpuAddress)
    return fmt::format("r{} = &(void __percpu *)(r{})", one.destination, one.source);
  std::string extended;
  if (operation == BPF_MOV && (one.offset == 8 || one.offset == 16 || one.offset == 32))
    extended = fmt::format("(s{})", one.offset);
  return fmt::format("{} {} {}{}{}", to, with, extended, is_wide ? 'r' : 'w', one.source);
}

std::string atomic(const BpfInstruction& one) {
  const std::string place = fmt::format("({} *)(r{} {:+})", size_of(one), one.destination, one.offset);
  const std::string_view wide = (one.code & kSize) == BPF_DW ? "64" : "";
  switch (one.immediate) {
    case BPF_ADD:
    case BPF_AND:
    case BPF_OR:
    case BPF_XOR:
      return fmt::format("lock *{} {} r{}", place, kArithmetic[one.immediate >> 4], one.source);
    case BPF_ADD | BPF_FETCH:
      return fmt::format("r{} = atomic{}_fetch_add({}, r{})", one.source, wide, place, one.source);
    case BPF_AND | BPF_FETCH:
      return fmt::format("r{} = atomic{}_fetch_and({}, r{})", one.source, wide, place, one.source);
    case BPF_OR | BPF_FETCH:
      return fmt::format("r{} = atomic{}_fetch_or({}, r{})", one.source, wide, place, one.source);
    case BPF_XOR | BPF_FETCH:
      return fmt::format("r{} = atomic{}_fetch_xor({}, r{})", one.source, wide, place, one.source);
    case BPF_CMPXCHG:
      return fmt::format("r0 = atomic{}_cmpxchg({}, r0, r{})", wide, place, one.source);
    case BPF_XCHG:
      return fmt::format("r{} = atomic{}_xchg({}, r{})", one.source, wide, place, one.source);
    case kLoadAcquire:
      return fmt::format("r{} = load_acquire(({} *)(r{} {:+}))", one.destination, size_of(one), one.source,
                         one.offset);
    case kStoreRelease:
      return fmt::format("store_release({}, r{})", place, one.source);
    default:
      return unknown("", one);
  }
}

// BPF_LDX, BPF_ST and BPF_STX.
std::string load_or_store(const BpfInstruction& one) {
  const std::uint8_t mode = one.code & kMode;
  if (class_of(one) == BPF_LDX) {
    const bool is_signed = mode == kMemorySigned;
    if (mode != BPF_MEM && !is_signed) return unknown("ldx_", one);
    const std::string_view size = is_signed ? kSignedSizes[(one.code & kSize) >> 3U] : size_of(one);
    return fmt::format("r{} = {}", one.destination, memory_text(one, one.source, size));
  }
  if (class_of(one) == BPF_ST) {
    if (mode == kNoSpeculation) return "nospec";
    if (mode != BPF_MEM) return unknown("st_", one);
    return fmt::format("{} = {}", memory_text(one, one.destination, size_of(one)), one.immediate);
  }
  if (mode == BPF_ATOMIC) return atomic(one);
  if (mode != BPF_MEM) return unknown("", one);
  return fmt::format("{} = r{}", memory_text(one, one.destination, size_of(one)), one.source);
}

// BPF_LD: legacy packet loads, and immediates of 64 bits, which the kernel prints as the object they refer
// to.
std::string load_wide(const BpfInstruction& one, const BpfInstruction& next) {
  const std::uint8_t mode = one.code & kMode;
  if (mode == BPF_ABS) return fmt::format("r0 = *({} *)skb[{}]", size_of(one), one.immediate);
  if (mode == BPF_IND)
    return fmt::format("r0 = *({} *)skb[r{} + {}]", size_of(one), one.source, one.immediate);
  if (mode != BPF_IMM || (one.code & kSize) != BPF_DW) return unknown("ld_", one);
  const auto low = static_cast<std::uint32_t>(one.immediate),
             high = static_cast<std::uint32_t>(next.immediate);
  switch (one.source) {
    case BPF_PSEUDO_MAP_FD:
      return fmt::format("r{} = map[id:{}]", one.destination, low);
    case BPF_PSEUDO_MAP_VALUE:
      return fmt::format("r{} = map[id:{}][0]+{}", one.destination, low, high);
    case BPF_PSEUDO_MAP_IDX_VALUE:
      return fmt::format("r{} = map[idx:{}]+{}", one.destination, low, high);
    case BPF_PSEUDO_FUNC:
      return fmt::format("r{} = subprog[{:+}]", one.destination, one.immediate);
    default:
      return fmt::format("r{} = {:#x}", one.destination, std::uint64_t{high} << 32U | low);
  }
}

std::string call(const BpfInstruction& one, const BpfCallName& name_of_call) {
  if (!one.calls_own_function() && one.source == 0 && one.immediate >= 0 &&
      static_cast<std::size_t>(one.immediate) < std::size(kHelpers))
    return fmt::format("call {}#{}", kHelpers[static_cast<std::size_t>(one.immediate)], one.immediate);
  const auto name = name_of_call ? name_of_call(one) : std::nullopt;
  if (one.calls_own_function()) return "call pc" + (name ? *name : fmt::format("{:+}", one.immediate));
  const std::string_view without = one.source == BPF_PSEUDO_KFUNC_CALL ? "kernel-function" : "unknown";
  return fmt::format("call {}#{}", name ? *name : std::string(without), one.immediate);
}

// BPF_JMP and BPF_JMP32.
std::string jump(const BpfInstruction& one, const BpfCallName& name_of_call) {
  const std::uint8_t operation = one.code & kOperationBits;
  const bool is_wide = class_of(one) == BPF_JMP;
  if (one.is_call()) return call(one, name_of_call);
  if (one.code == (BPF_JMP | BPF_JA)) return fmt::format("goto pc{:+}", one.offset);
  if (one.code == (BPF_JMP32 | BPF_JA)) return fmt::format("gotol pc{:+}", one.immediate);
  if (one.code == (BPF_JMP | BPF_JA | BPF_X)) return fmt::format("gotox r{}", one.destination);
  if (one.code == (BPF_JMP | kConditional)) return fmt::format("may_goto pc{:+}", one.offset);
  if (one.code == (BPF_JMP | BPF_EXIT)) return "exit";
  const std::string_view with = kJumps[operation >> 4U];
  if (with == "?" || operation == BPF_JA || operation == BPF_CALL || operation == BPF_EXIT)
    return unknown("jmp_", one);
  const char width = is_wide ? 'r' : 'w';
  if (is_from_register(one))
    return fmt::format("if {}{} {} {}{} goto pc{:+}", width, one.destination, with, width, one.source,
                       one.offset);
  return fmt::format("if {}{} {} {:#x} goto pc{:+}", width, one.destination, with,
                     static_cast<std::uint32_t>(one.immediate), one.offset);
}

std::string disassembly_of(const BpfInstruction& one, const BpfInstruction& next,
                           const BpfCallName& name_of_call) {
  switch (class_of(one)) {
    case BPF_ALU:
    case BPF_ALU64:
      return arithmetic(one);
    case BPF_JMP:
    case BPF_JMP32:
      return jump(one, name_of_call);
    case BPF_LD:
      return load_wide(one, next);
    default:
      return load_or_store(one);
  }
}

// The distance to the next instruction that runs, counted from the following one.
std::optional<std::int64_t> distance_of(const BpfInstruction& one) {
  const bool is_jump = class_of(one) == BPF_JMP || class_of(one) == BPF_JMP32;
  if (!is_jump || one.code == (BPF_JMP | BPF_EXIT) || one.code == (BPF_JMP | BPF_JA | BPF_X))
    return std::nullopt;
  if (one.code == (BPF_JMP32 | BPF_JA)) return one.immediate;
  if (!one.is_call()) return one.offset;
  if (!one.calls_own_function()) return std::nullopt;
  return one.offset;  // once the program is loaded, the immediate is the function's number
}

}  // namespace

bool BpfInstruction::is_call() const { return code == (BPF_JMP | BPF_CALL); }
bool BpfInstruction::calls_own_function() const { return is_call() && source == BPF_PSEUDO_CALL; }

std::vector<BpfCodeLine> disassemble_bpf(format::Bytes code, const BpfCallName& name_of_call) {
  std::vector<BpfCodeLine> lines;
  format::Cursor in(code);
  const std::size_t count = code.size() / kInstructionSize;
  for (std::uint32_t number = 0; in.left() >= kInstructionSize; ++number) {
    BpfCodeLine& line = lines.emplace_back();
    line.number = number;
    line.instruction = read_instruction(in);
    BpfInstruction next;
    if (line.instruction.code == (BPF_LD | BPF_IMM | BPF_DW) && in.left() >= kInstructionSize) {
      next = read_instruction(in);
      ++number;
    }
    line.text = fmt::format("({:02x}) {}", line.instruction.code,
                            disassembly_of(line.instruction, next, name_of_call));
    const auto distance = distance_of(line.instruction);
    const std::int64_t target = distance ? std::int64_t{line.number} + 1 + *distance : -1;
    if (target >= 0 && static_cast<std::uint64_t>(target) < count)
      line.target = static_cast<std::uint32_t>(target);
  }
  return lines;
}

namespace {

constexpr std::string_view kBase = "__bpf_call_base";

const format::Attachment* list_of(const format::Features& features) {
  const format::Attachment* const all = features.attachment(format::kKallsymsAttachment);
  return all != nullptr ? all : features.attachment(kBpfCallsAttachment);
}

}  // namespace

BpfCallNames::BpfCallNames(const format::Features& features) {
  const format::Attachment* const list = list_of(features);
  auto unpacked = list != nullptr ? format::unpack_attachment(*list) : Error{};
  if (!unpacked) return;
  text_ = std::move(*unpacked);
  // "ffffffff81000000 T name", and of a module "\t[name]".
  std::string_view rest = format::as_text(text_);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    std::uint64_t address = 0;
    const auto [stop, failed] = std::from_chars(line.data(), line.data() + line.size(), address, 16);
    const auto after = static_cast<std::size_t>(stop - line.data());
    if (failed != std::errc{} || address == 0 || after + 3 >= line.size()) continue;
    const std::string_view name = line.substr(after + 3, line.find('\t', after + 3) - (after + 3));
    if (name == kBase) base_ = address;
    names_.emplace_back(address, name);
  }
  std::ranges::stable_sort(names_, {}, &std::pair<std::uint64_t, std::string_view>::first);
}

std::string_view BpfCallNames::at(std::uint64_t address) const {
  const auto found =
      std::ranges::lower_bound(names_, address, {}, &std::pair<std::uint64_t, std::string_view>::first);
  return found != names_.end() && found->first == address ? found->second : std::string_view();
}

std::string_view BpfCallNames::called(std::int32_t distance) const {
  return base_ == 0 ? std::string_view() : at(address_of(distance));
}

std::string BpfCallNames::lines_of_calls(const format::Environment& environment) const {
  std::set<std::uint64_t> addresses;
  BpfFunctions functions(environment);
  for (const format::BpfProgramInfo& info : environment.bpf_programs)
    for (const BpfCodeLine& line : disassemble_bpf(functions.program(info).translated, {}))
      if (line.instruction.is_call() && !called(line.instruction.immediate).empty())
        addresses.insert(address_of(line.instruction.immediate));
  if (addresses.empty()) return {};
  std::string lines = fmt::format("{:016x} T {}\n", base_, kBase);
  for (const std::uint64_t address : addresses)
    if (address != base_) lines += fmt::format("{:016x} T {}\n", address, at(address));
  return lines;
}

}  // namespace tacho::report
