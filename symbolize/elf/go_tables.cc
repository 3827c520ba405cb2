#include "symbolize/elf/go_tables.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

namespace tacho::symbolize {
namespace {

using format::Bytes;
using format::Cursor;
using unwind::ElfImage;

constexpr std::uint64_t kMostSteps = std::uint64_t{1} << 28;  // in all tables of values of a file: a second
constexpr std::uint64_t kMostSearched = std::uint64_t{1} << 30;  // bytes that are searched for the tables
constexpr std::size_t kMostSearchedSegments = 32;                // that are searched
constexpr std::size_t kMostModuleSearches = 8;                   // for moduledata
constexpr std::size_t kTried = 64;             // possible headers, and functions by which a layout is chosen
constexpr std::size_t kLongestGoName = 65536;  // bytes of a function's name or a path
constexpr std::array<std::string_view, 2> kSections = {".gopclntab", ".data.rel.ro.gopclntab"};
constexpr std::array<std::string_view, 2> kMarks = {".note.go.buildid", ".go.buildinfo"};
constexpr std::uint32_t kNoFile = ~std::uint32_t{0}, kNoData = ~std::uint32_t{0};
// Fields of moduledata, in words from its start: `gofunc`, to which FUNCDATA is relative (where it is depends
// on the version), and `text`.
constexpr std::uint8_t kGofunc[] = {38, 40, 41, 42, 43};
constexpr std::uint8_t kText = 22;

// An unsigned number of 7 bits a byte, of at most 32 bits.
std::uint32_t read_varint(Cursor& in) {
  std::uint32_t value = 0;
  for (int shift = 0; shift < 35; shift += 7) {
    const std::uint8_t byte = in.u8();
    value |= shift < 32 ? std::uint32_t{byte & 0x7fU} << shift : 0;
    if ((byte & 0x80) == 0) break;
  }
  return value;
}

bool is_readable(std::string_view name) {
  return !name.empty() && name.size() < kLongestGoName &&
         std::ranges::none_of(name, [](char letter) { return static_cast<unsigned char>(letter) < ' '; });
}

Bytes from_offset(Bytes bytes, std::uint64_t offset) {
  return offset < bytes.size() ? bytes.subspan(static_cast<std::size_t>(offset)) : Bytes();
}

// The start of the header: a magic number, 2 zeros, and two sizes in bytes.
constexpr std::size_t kStartSize = 8;  // bytes
struct Start {
  std::uint8_t version = 0;  // index of its magic number
  std::uint8_t quantum = 0, word = 0;
};
std::optional<Start> start_of(Bytes table, std::endian order) {
  constexpr std::uint32_t kMagics[] = {0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1};  // by Version
  Cursor in(table, order);
  const auto* const magic = std::ranges::find(kMagics, in.u32());
  const bool is_padded = in.u16() == 0;
  const std::uint8_t quantum = in.u8(), word = in.u8();
  const bool is_known = magic != std::end(kMagics) && is_padded && !in.failed() &&
                        (quantum == 1 || quantum == 2 || quantum == 4) && (word == 4 || word == 8);
  if (!is_known) return std::nullopt;
  return Start{static_cast<std::uint8_t>(magic - std::begin(kMagics)), quantum, word};
}

}  // namespace

Bytes GoTables::Memory::from(std::uint64_t address) {
  for (const ElfImage::Section& known : segments_)
    if (address >= known.address && address - known.address < known.bytes.size())
      return from_offset(known.bytes, address - known.address);
  for (const format::ElfSegment& segment : image_.segments()) {
    if (segment.type != PT_LOAD || address < segment.address ||
        address - segment.address >= segment.file_size)
      continue;
    // Segments of a hostile file may overlap.
    if (bytes_ + segment.file_size > 2 * image_.file_size()) return {};
    auto loaded = image_.loaded_from(segment.address);
    if (!loaded) return {};
    bytes_ += loaded->bytes.size();
    segments_.push_back(std::move(*loaded));
    return from_offset(segments_.back().bytes, address - segments_.back().address);
  }
  return {};
}

// Relative relocations of a position-independent file, by its dynamic section.
void GoTables::Memory::read_relocations() {
  relocations_.emplace();
  const auto dynamic =
      std::ranges::find(image_.segments(), std::uint32_t{PT_DYNAMIC}, &format::ElfSegment::type);
  if (dynamic == image_.segments().end() || image_.address_size() != 8) return;
  Cursor in(from(dynamic->address), image_.order());
  std::uint64_t at = 0, size = 0;
  for (std::uint64_t left = dynamic->file_size / 16; left > 0 && !in.failed(); --left) {
    const std::uint64_t tag = in.u64(), value = in.u64();
    if (tag == DT_NULL) break;
    if (tag == DT_RELA) at = value;
    if (tag == DT_RELASZ) size = value;
  }
  const Bytes table = from(at);
  Cursor rows(table.first(static_cast<std::size_t>(std::min<std::uint64_t>(size, table.size()))),
              image_.order());
  while (rows.left() >= sizeof(Elf64_Rela)) {
    const std::uint64_t offset = rows.u64(), info = rows.u64(), addend = rows.u64();
    if (ELF64_R_SYM(info) == 0) relocations_->emplace_back(offset, addend);
  }
  std::ranges::sort(*relocations_);
}

std::optional<std::uint64_t> GoTables::Memory::relocation(std::uint64_t address) {
  if (!relocations_) read_relocations();
  const auto found =
      std::ranges::lower_bound(*relocations_, address, {}, &std::pair<std::uint64_t, std::uint64_t>::first);
  if (found == relocations_->end() || found->first != address) return std::nullopt;
  return found->second;
}

template <class IsWanted>
std::optional<std::uint64_t> GoTables::Memory::find_relocation(std::uint64_t value, IsWanted&& is_wanted) {
  if (!relocations_) read_relocations();
  for (const auto& [address, addend] : *relocations_)
    if (addend == value && is_wanted(address)) return address;
  return std::nullopt;
}

std::optional<std::uint64_t> GoTables::Memory::word(std::uint64_t address, std::uint8_t size) {
  if (const auto set = relocation(address)) return set;
  Cursor in(from(address), image_.order());
  const std::uint64_t value = size == 4 ? in.u32() : in.u64();
  return in.failed() ? std::nullopt : std::optional(value);
}

std::optional<GoTables> GoTables::find_in(ElfImage image) {
  GoTables tables(std::move(image));
  tables.order_ = tables.memory_.image().order();
  for (const std::string_view name : kSections) {
    const auto place = tables.memory_.image().section_place(name);
    if (place && tables.open_at(place->address, place->size)) return tables;
  }
  const ElfImage& file = tables.memory_.image();
  const bool may_be_go = !file.has_sections() || std::ranges::any_of(kMarks, [&](auto name) {
    return file.section_place(name).has_value();
  });
  if (!may_be_go) return std::nullopt;
  return tables.open_anywhere() ? std::optional(std::move(tables)) : std::nullopt;
}

bool GoTables::open_at(std::uint64_t address, std::uint64_t size) {
  const Bytes there = memory_.from(address);
  return read_header(address,
                     there.first(static_cast<std::size_t>(std::min<std::uint64_t>(size, there.size()))));
}

// Searches the segments for the magic numbers: for files without section headers, or with the tables in
// another section.
bool GoTables::open_anywhere() {
  std::uint64_t searched = 0;
  std::size_t segments = 0;
  const std::vector<format::ElfSegment> all = memory_.image().segments();
  for (const format::ElfSegment& segment : all) {
    if (segment.type != PT_LOAD || (segment.flags & PF_X) != 0) continue;
    if (++segments > kMostSearchedSegments || (searched += segment.file_size) > kMostSearched) break;
    const Bytes bytes = memory_.from(segment.address);
    std::size_t tried = 0;
    for (std::size_t at = 0; at + kStartSize <= bytes.size();) {
      const void* const next = std::memchr(bytes.data() + at + 1, 0xff, bytes.size() - at - 1);
      if (next == nullptr) break;
      at = static_cast<std::size_t>(static_cast<const std::byte*>(next) - bytes.data()) - 1;
      if (at % 4 == 0 && start_of(bytes.subspan(at), order_) && ++tried <= kTried &&
          read_header(segment.address + at, bytes.subspan(at)))
        return true;
      ++at;
    }
  }
  return false;
}

// False: this is no such table, or its first and last functions cannot be read.
bool GoTables::read_header(std::uint64_t address, Bytes table) {
  const auto start = start_of(table, order_);
  if (!start) return false;
  version_ = static_cast<Version>(start->version);
  quantum_ = start->quantum;
  word_ = start->word;
  Cursor in(table.subspan(kStartSize), order_);
  address_ = address;
  table_ = table;
  const auto read_word = [&] { return word_ == 4 ? in.u32() : in.u64(); };
  count_ = read_word();
  if (version_ == Version::Go2) {
    names_ = values_ = records_ = table;
    functions_ = in.rest();
    const auto files = number(functions_, count_ * 2 * word_ + word_, 4);
    if (count_ > functions_.size() / word_ || !files) return false;
    files_ = from_offset(table, *files);
  } else {
    read_word();  // count of files
    if (version_ >= Version::Go18) {
      const std::uint64_t at = address + 8 + 2 * word_;
      text_ = memory_.word(at, word_).value_or(0);
      read_word();
    }
    for (Bytes* const part : {&names_, &units_, &files_, &values_, &records_})
      *part = from_offset(table, read_word());
    functions_ = records_;
    if (version_ >= Version::Go18 && text_ == 0) {  // since Go 1.26
      const auto module = find_module_data();
      text_ = module ? memory_.word(*module + kText * word_, word_).value_or(0) : 0;
      if (text_ == 0) return false;
    }
  }
  is_relocated_ =
      version_ < Version::Go18 && count_ > 0 &&
      memory_.relocation(address_ + static_cast<std::uint64_t>(functions_.data() - table.data())).has_value();
  if (in.failed() || count_ == 0 || count_ > functions_.size() / 8) return false;
  const auto first = function_at(0);
  const auto end = entry(count_);
  return first && end && is_readable(first->name) && first->start < *end;
}

// The address of moduledata, whose first word is the address of these tables.
std::optional<std::uint64_t> GoTables::find_module_data() {
  // A hostile file may have any number of headers that need a search.
  if (++module_searches_ > kMostModuleSearches) return std::nullopt;
  const auto names = static_cast<std::uint64_t>(names_.data() - table_.data());
  const auto is_it = [&](std::uint64_t at) {
    return memory_.word(at, word_) == address_ && memory_.word(at + word_, word_) == address_ + names;
  };
  std::size_t segments = 0;
  std::uint64_t searched = 0;
  const std::vector<format::ElfSegment> all = memory_.image().segments();
  for (const format::ElfSegment& segment : all) {
    if (segment.type != PT_LOAD || (segment.flags & PF_X) != 0) continue;
    if (++segments > kMostSearchedSegments || (searched += segment.file_size) > kMostSearched) break;
    const Bytes bytes = memory_.from(segment.address);
    const std::uint64_t skew = (word_ - segment.address % word_) % word_;
    for (std::uint64_t at = skew; at + word_ <= bytes.size(); at += word_) {
      Cursor in(bytes.subspan(static_cast<std::size_t>(at), word_), order_);
      const std::uint64_t value = word_ == 4 ? in.u32() : in.u64();
      if (value == address_ && is_it(segment.address + at)) return segment.address + at;
    }
  }
  return memory_.find_relocation(address_, is_it);
}

std::optional<std::uint64_t> GoTables::number(Bytes table, std::uint64_t at, std::uint8_t size) const {
  if (at > table.size()) return std::nullopt;
  Cursor in(from_offset(table, at), order_);
  const std::uint64_t value = size == 4 ? in.u32() : in.u64();
  return in.failed() ? std::nullopt : std::optional(value);
}

std::optional<std::uint32_t> GoTables::word32(Bytes table, std::uint64_t at) const {
  const auto value = number(table, at, 4);
  return value ? std::optional(static_cast<std::uint32_t>(*value)) : std::nullopt;
}

// The ELF address at which a function begins; of number count_: at which the last one ends.
std::optional<std::uint64_t> GoTables::entry(std::uint64_t index) const {
  const std::uint8_t size = version_ >= Version::Go18 ? 4 : word_;
  const std::uint64_t at = index * 2 * size;
  if (is_relocated_) {
    const auto place = address_ + static_cast<std::uint64_t>(functions_.data() - table_.data()) + at;
    if (at + size > functions_.size()) return std::nullopt;
    return memory_.word(place, size);
  }
  const auto value = number(functions_, at, size);
  return value ? std::optional(version_ >= Version::Go18 ? text_ + *value : *value) : std::nullopt;
}

std::optional<std::uint64_t> GoTables::entry_offset(std::uint64_t index) const {
  const std::uint8_t size = version_ >= Version::Go18 ? 4 : word_;
  return number(functions_, index * 2 * size + size, size);
}

std::optional<std::uint64_t> GoTables::function_number(std::uint64_t address) const {
  std::uint64_t low = 0, high = count_;  // the first function that begins after the address
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    const auto start = entry(middle);
    if (!start) return std::nullopt;
    if (*start <= address)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == 0) return std::nullopt;
  const auto end = entry(low);
  return end && address < *end ? std::optional(low - 1) : std::nullopt;
}

std::optional<GoTables::Record> GoTables::record(std::uint64_t number) const {
  const auto start = entry(number), end = entry(number + 1), at = entry_offset(number);
  if (!start || !end || !at || *end <= *start || *at >= records_.size()) return std::nullopt;
  Cursor in(from_offset(records_, *at), order_);
  in.skip(version_ >= Version::Go18 ? 4 : word_);  // the address
  Record record{.start = *start, .end = *end, .at = *at};
  record.name = in.u32();
  in.skip(12);  // size of arguments, place of the deferred return, table of stack pointers
  record.files = in.u32();
  record.lines = in.u32();
  record.pcdata = in.u32();
  if (version_ >= Version::Go16) record.unit = in.u32();
  if (version_ >= Version::Go20) in.skip(4);  // line at which the function starts
  const std::uint32_t last = in.u32();
  // The count of FUNCDATA: the whole field up to Go 1.11, then its last byte.
  record.funcdata = order_ == std::endian::little && last >= 0x100 ? last >> 24 : last & 0xff;
  if (in.failed()) return std::nullopt;
  record.tables_at = records_.size() - in.left();
  return record;
}

std::string_view GoTables::name_at(std::uint64_t offset) const {
  const Bytes rest = from_offset(names_, offset);
  return format::text_of(rest.first(std::min(rest.size(), kLongestGoName)));
}

std::optional<GoTables::Function> GoTables::function_at(std::size_t number) const {
  const auto found = record(number);
  return found ? std::optional(Function{found->start, found->end, name_at(found->name)}) : std::nullopt;
}

// The path of a source file by its number, a value of the function's table of files.
std::string_view GoTables::file_of(const Record& function, std::int64_t number) const {
  if (number < 0) return {};
  std::uint64_t offset = 0;
  Bytes texts = files_;
  if (version_ == Version::Go2) {
    const auto place = word32(files_, static_cast<std::uint64_t>(number) * 4);
    if (!place || number == 0) return {};
    offset = *place;
    texts = table_;
  } else {
    const auto place =
        word32(units_, (std::uint64_t{function.unit} + static_cast<std::uint64_t>(number)) * 4);
    if (!place || *place == kNoFile) return {};
    offset = *place;
  }
  const Bytes rest = from_offset(texts, offset);
  return format::text_of(rest.first(std::min(rest.size(), kLongestGoName)));
}

// Calls visit(value, end of its range of addresses) until that returns false.
template <class Visit>
void GoTables::each_value(const Record& function, std::uint32_t table, Visit&& visit) {
  if (table == 0) return;
  Cursor in(from_offset(values_, table), order_);
  std::uint64_t end = function.start;
  std::int32_t value = -1;
  for (bool is_first = true; end < function.end; is_first = false) {
    if (++steps_ > kMostSteps) {
      missing_reason_ =
          "lookups in its Go tables take too long (lines and inlined calls are left out from here on)";
      return;
    }
    const std::uint32_t difference = read_varint(in);
    if (difference == 0 && !is_first) return;
    // The lowest bit is the sign.
    const std::uint32_t step = (difference >> 1) ^ (0U - (difference & 1));
    value = static_cast<std::int32_t>(static_cast<std::uint32_t>(value) + step);
    end += std::uint64_t{read_varint(in)} * quantum_;
    if (in.failed() || !visit(value, end)) return;
  }
}

// -1: there is none.
std::int64_t GoTables::value_at(const Record& function, std::uint32_t table, std::uint64_t address) {
  std::int64_t found = -1;
  each_value(function, table, [&](std::int32_t value, std::uint64_t end) {
    if (address >= end) return true;
    found = value;
    return false;
  });
  return found;
}

// The offset of a PCDATA table in values_; 0: none.
std::uint32_t GoTables::pcdata_at(const Record& function, std::uint32_t index) const {
  if (index >= function.pcdata) return 0;
  return word32(records_, function.tables_at + std::uint64_t{index} * 4).value_or(0);
}

const GoTables::Inlining GoTables::kInlinings[] = {
    {Version::Go2, Version::Go2, 1, 2, 16},  // Go 1.9 to 1.11
    {Version::Go2, Version::Go2, 1, 2, 20},  // Go 1.12
    {Version::Go2, Version::Go18, 2, 4, 20}, {Version::Go2, Version::Go18, 2, 3, 20},
    {Version::Go2, Version::Go2, 2, 2, 20},  {Version::Go20, Version::Go20, 2, 3, 16},
};

// The bytes from the function's tree on; empty: it has none.
Bytes GoTables::tree_of(const Record& function, const Inlining& inlining) {
  if (inlining.tree >= function.funcdata) return {};
  std::uint64_t at = function.tables_at + std::uint64_t{function.pcdata} * 4;
  if (version_ >= Version::Go18) {
    const auto offset = word32(records_, at + std::uint64_t{inlining.tree} * 4);
    if (!offset || *offset == kNoData || !funcdata_base_) return {};
    return memory_.from(*funcdata_base_ + *offset);
  }
  const std::uint64_t place = address_ + static_cast<std::uint64_t>(records_.data() - table_.data()) + at;
  at = (place + word_ - 1) / word_ * word_ + std::uint64_t{inlining.tree} * word_;
  const auto tree = memory_.word(at, word_);
  return tree && *tree != 0 ? memory_.from(*tree) : Bytes();
}

// The number of the innermost inlined call at an address; -1: it is the function's own code.
std::int64_t GoTables::inlined_at(const Record& function, const Inlining& inlining, std::uint64_t address) {
  return value_at(function, pcdata_at(function, inlining.index), address);
}

std::optional<GoTables::InlinedCall> GoTables::inlined_call(const Record& function, const Inlining& inlining,
                                                            std::int64_t number) {
  const Bytes tree = tree_of(function, inlining);
  if (number < 0 || tree.empty()) return std::nullopt;
  Cursor in(from_offset(tree, static_cast<std::uint64_t>(number) * inlining.call_size), order_);
  InlinedCall call;
  if (version_ >= Version::Go20) {
    in.skip(4);  // kind of function
    call.name = name_at(in.u32());
    const std::uint32_t place = in.u32();
    if (in.failed() || place >= function.end - function.start) return std::nullopt;
    const std::uint64_t address = function.start + place;
    call.caller = inlined_at(function, inlining, address);
    call.file = file_of(function, value_at(function, function.files, address));
    call.line =
        static_cast<std::uint32_t>(std::max<std::int64_t>(value_at(function, function.lines, address), 0));
  } else {
    if (inlining.call_size == 16) {
      call.caller = static_cast<std::int32_t>(in.u32());
    } else {
      call.caller = static_cast<std::int16_t>(in.u16());
      in.skip(2);  // kind of function
    }
    const auto file = static_cast<std::int32_t>(in.u32());
    call.line = in.u32();
    call.name = name_at(in.u32());
    call.file = file_of(function, file);
  }
  if (in.failed() || !is_readable(call.name) || call.caller >= number) return std::nullopt;
  return call;
}

// Whether the trees of the first functions can be read by this layout; false too if no function has a tree.
bool GoTables::makes_sense(const Inlining& inlining) {
  if (version_ < inlining.first || version_ > inlining.last) return false;
  std::size_t tried = 0;
  for (std::uint64_t number = 0; number < count_ && tried < kTried && missing_reason_.empty(); ++number) {
    const auto function = record(number);
    if (!function) continue;
    std::int32_t last = -1;
    each_value(*function, pcdata_at(*function, inlining.index), [&](std::int32_t value, std::uint64_t) {
      last = std::max(last, value);
      return true;
    });
    if (last < 0) continue;
    ++tried;
    for (const std::int64_t call : {std::int64_t{0}, std::int64_t{last}}) {
      const auto found = inlined_call(*function, inlining, call);
      if (!found || found->file.empty() || !is_readable(found->file)) return false;
    }
  }
  return tried > 0;
}

// Null: the file has no inlined calls, or they are in no known layout.
const GoTables::Inlining* GoTables::choose_inlining() {
  const auto choose = [this]() -> const Inlining* {
    for (const Inlining& inlining : kInlinings)
      if (makes_sense(inlining)) return &inlining;
    return nullptr;
  };
  if (version_ < Version::Go18) return choose();
  const auto module = find_module_data();
  if (!module) return nullptr;
  for (const std::uint8_t words : kGofunc) {
    funcdata_base_ = memory_.word(*module + std::uint64_t{words} * word_, word_);
    if (const Inlining* const found = choose()) return found;
  }
  return nullptr;
}

std::optional<LineSource::LineInfo> GoTables::line_info(format::ElfAddress address) {
  const auto number = function_number(address.value);
  if (!number || *number > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  const auto function = record(*number);
  if (!function) return std::nullopt;
  if (!inlining_) inlining_ = choose_inlining();
  LineInfo info;
  info.file = file_of(*function, value_at(*function, function->files, address.value));
  info.line = static_cast<std::uint32_t>(
      std::max<std::int64_t>(value_at(*function, function->lines, address.value), 0));
  info.unit = static_cast<std::uint32_t>(*number);
  const std::int64_t inlined = *inlining_ ? inlined_at(*function, **inlining_, address.value) : -1;
  const bool is_known = inlined >= 0 && inlined_call(*function, **inlining_, inlined);
  info.function = is_known ? static_cast<std::uint32_t>(inlined) + 1 : 0;
  return info;
}

// `number`: 0 for the function itself, or 1 + that of an inlined call.
InlineFunction& GoTables::function(std::uint32_t unit, std::uint32_t number) {
  const auto [entry, is_new] = known_.try_emplace(std::uint64_t{unit} << 32 | number);
  InlineFunction& known = entry->second;
  const auto function = is_new ? record(unit) : std::nullopt;
  if (!function) return known;
  if (number == 0) {
    known.name = name_at(function->name);
    known.start = function->start;
    return known;
  }
  const auto call =
      *inlining_ ? inlined_call(*function, **inlining_, std::int64_t{number} - 1) : std::nullopt;
  if (!call) return known;
  known.name = call->name;
  known.caller = static_cast<std::uint32_t>(call->caller + 1);
  known.call_file = call->file;
  known.call_line = call->line;
  return known;
}

}  // namespace tacho::symbolize
