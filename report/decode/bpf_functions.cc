#include "report/decode/bpf_functions.h"

#include <fmt/format.h>

#include <algorithm>

namespace tacho::report {
namespace {

using format::Bytes;
using format::Cursor;

// Offsets of the fields of struct bpf_prog_info (linux/bpf.h). Arrays are offsets into the data behind it.
constexpr std::size_t kId = 4, kCodeSize = 16, kCodeArray = 24, kName = 64, kFunctions = 104, kSizes = 108,
                      kAddressArray = 112, kSizeArray = 120;
constexpr std::size_t kBtfId = 128, kFuncInfoSize = 132, kFuncInfoArray = 136, kFuncInfos = 144,
                      kTagArray = 184;
constexpr std::size_t kUpToTags = 192, kNameSize = 16;  // bytes
constexpr std::uint32_t kMostFunctions = 65536;

// And which bit of BpfProgramInfo::arrays says that the array is there.
constexpr std::uint64_t kHasCode = 1 << 0, kHasFuncInfo = 1 << 5;

constexpr std::uint16_t kBtfMagic = 0xeb9f;
constexpr std::uint32_t kKindFunction = 12;

// Bytes behind the twelve that every type has, by its kind; nothing for kinds that BTF does not have.
std::optional<std::size_t> size_behind(std::uint32_t kind, std::size_t members) {
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
    const std::size_t place = types_.size() - in.left();
    in.skip(4);  // its name
    const std::uint32_t info = in.u32();
    in.skip(4);  // its size, or another type
    const auto behind = size_behind(info >> 24 & 0x1f, info & 0xffff);
    if (!behind) return;
    in.skip(*behind);
    if (in.failed()) return;
    places_.push_back(static_cast<std::uint32_t>(place));
  }
}

std::string_view BtfFunctions::name(std::uint32_t type) const {
  if (type == 0 || type > places_.size()) return {};
  const std::uint32_t place = places_[type - 1];
  if ((u32_at(types_, std::uint64_t{place} + 4) >> 24 & 0x1f) != kKindFunction) return {};
  return format::text_of(part(strings_, u32_at(types_, place), strings_.size()));
}

std::uint32_t BpfFunctions::id(const format::BpfProgramInfo& program) { return u32_at(program.info, kId); }

const BtfFunctions* BpfFunctions::btf(std::uint32_t id) {
  const auto [known, is_new] = btf_.try_emplace(id);
  if (is_new) {
    const auto found = std::ranges::find(environment_->btf, id, &format::BtfBlob::id);
    if (found != environment_->btf.end()) known->second.emplace(found->bytes);
  }
  return known->second ? &*known->second : nullptr;
}

// As in perf, the functions of a program without BTF are called F when it has several.
std::vector<BpfFunction> BpfFunctions::of(const format::BpfProgramInfo& program) {
  const Bytes info = program.info, data = program.data;
  std::vector<BpfFunction> functions;
  const std::uint32_t count = u32_at(info, kFunctions);
  if (info.size() < kUpToTags || count == 0 || count != u32_at(info, kSizes) || count > kMostFunctions)
    return functions;
  const std::uint32_t btf_id = u32_at(info, kBtfId);
  const BtfFunctions* const names = btf_id == 0 ? nullptr : btf(btf_id);
  const bool has_names =
      names != nullptr && (program.arrays & kHasFuncInfo) != 0 && u32_at(info, kFuncInfos) >= count;
  // The code of all functions, one behind the other.
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
    function.address = u64_at(data, u64_at(info, kAddressArray) + 8 * i);
    function.size = u32_at(data, u64_at(info, kSizeArray) + 4 * i);
    function.code = part(code, code_at, function.size);
    code_at += function.size;
  }
  return functions;
}

}  // namespace tacho::report
