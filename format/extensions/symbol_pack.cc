#include "format/extensions/symbol_pack.h"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <numeric>
#include <tuple>
#include <utility>

#include "format/base/byte_writer.h"
#include "format/codec/compression.h"

namespace tacho::format {
namespace {

constexpr std::uint32_t kPackVersion = 1;
constexpr int kPackLevel = 6;  // of zstd: a fifth smaller than with level 3, and not slower in practice
constexpr std::size_t kAlignment = 8;

// Limits: real packs inflate to 3 to 6 times their size, and the tables made from them take 16 times.
constexpr std::uint64_t kMostAlways = std::uint64_t{16} << 20;
constexpr std::uint64_t kMostInflation = 16, kMostMemory = 40;
constexpr std::size_t kLongestText = std::size_t{1} << 20;

// Numbers of variable length, seven bits in each byte, the lowest first.
class PackWriter {
 public:
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_.u8(static_cast<std::uint8_t>(value | 0x80));
    out_.u8(static_cast<std::uint8_t>(value));
  }
  // Zigzag coding of a signed distance.
  void distance(std::uint64_t value, std::uint64_t from) {
    const auto signed_distance = static_cast<std::int64_t>(value - from);
    number(static_cast<std::uint64_t>(signed_distance) << 1 ^
           static_cast<std::uint64_t>(signed_distance >> 63));
  }
  void text(std::string_view text) {
    number(text.size());
    out_.bytes(std::as_bytes(std::span(text)));
  }
  ByteWriter& out() { return out_; }
  // One field of all items, as differences to the previous item's. `field`: a member, or a function.
  template <class Items, class Field>
  void column(const Items& items, Field field) {
    std::uint64_t last = 0;
    for (const auto& item : items) {
      const std::uint64_t value = std::invoke(field, item);
      distance(value, last);
      last = value;
    }
  }

 private:
  ByteWriter out_;
};

class PackReader {
 public:
  PackReader(Bytes bytes, std::uint64_t most_memory) : in_(bytes), memory_left_(most_memory) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::uint8_t byte = in_.u8();
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    in_.fail();
    return 0;
  }
  std::uint64_t distance(std::uint64_t from) {
    const std::uint64_t value = number();
    return from + (value >> 1 ^ (0 - (value & 1)));
  }
  std::uint8_t byte() { return in_.u8(); }
  Bytes bytes(std::uint64_t size) { return in_.take_bytes(size); }
  // Reads the number of items that follow, each of at least `item_bytes` bytes in the section and of
  // `item_memory` bytes in memory. Counts their memory against the limit.
  std::size_t count(std::size_t item_bytes, std::size_t item_memory) {
    const std::uint64_t count = number();
    if (count > in_.left() / item_bytes || count > memory_left_ / item_memory) {
      is_too_much_ = is_too_much_ || count <= in_.left() / item_bytes;
      in_.fail();
      return 0;
    }
    memory_left_ -= count * item_memory;
    return static_cast<std::size_t>(count);
  }
  template <class Items, class Set>
  void column(Items& items, Set&& set) {
    std::uint64_t last = 0;
    for (auto& item : items) {
      last = distance(last);
      set(item, last);
    }
  }
  template <class Items, class Item>
  void column64(Items& items, std::uint64_t Item::*field) {
    column(items, [&](Item& item, std::uint64_t value) { item.*field = value; });
  }
  // A number that must fit into 32 bits.
  template <class Items, class Item>
  void column32(Items& items, std::uint32_t Item::*field) {
    column(items, [&](Item& item, std::uint64_t value) { item.*field = as_32_bits(value); });
  }
  std::uint32_t as_32_bits(std::uint64_t value) {
    if (value > std::numeric_limits<std::uint32_t>::max()) in_.fail();
    return static_cast<std::uint32_t>(value);
  }
  void fail() { in_.fail(); }
  bool failed() const { return in_.failed(); }
  bool is_too_much() const { return is_too_much_; }
  bool is_at_end() const { return in_.left() == 0; }

 private:
  Cursor in_;
  std::uint64_t memory_left_;
  bool is_too_much_ = false;
};

// kNone is stored as 0, other numbers plus 1.
std::uint64_t one_higher(std::uint32_t number) {
  return number == PackedFunction::kNone ? 0 : number + std::uint64_t{1};
}
std::uint32_t one_lower(std::uint64_t number) {
  return number == 0 ? PackedFunction::kNone : static_cast<std::uint32_t>(number - 1);
}

// Sorts symbols, and renumbers references to them.
void put_in_order(PackedModule& module) {
  std::vector<std::uint32_t> order(module.symbols.size()), place(module.symbols.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
    const PackedSymbol &left = module.symbols[a], &right = module.symbols[b];
    return std::tie(left.start, left.end, a) < std::tie(right.start, right.end, b);
  });
  std::vector<PackedSymbol> symbols;
  symbols.reserve(order.size());
  for (const std::uint32_t number : order) {
    place[number] = static_cast<std::uint32_t>(symbols.size());
    symbols.push_back(module.symbols[number]);
  }
  module.symbols = std::move(symbols);
  for (PackedAddress& address : module.addresses)
    if (address.symbol != PackedFunction::kNone) address.symbol = place[address.symbol];
  std::ranges::stable_sort(module.addresses, {}, &PackedAddress::address);
  const auto is_same = [](const PackedAddress& a, const PackedAddress& b) { return a.address == b.address; };
  module.addresses.erase(std::unique(module.addresses.begin(), module.addresses.end(), is_same),
                         module.addresses.end());
}

void write_code(PackWriter& out, const PackedModule& module) {
  out.out().u8(module.is_64_bit ? 1 : 0);
  out.number(module.code.size());
  out.column(module.code, &PackedPiece::start);
  out.column(module.code, &PackedPiece::size);
  out.out().bytes(module.code_bytes);
}

void write_module(PackWriter& out, const PackedModule& module) {
  out.out().u8(module.kind).u8(module.flags).u8(module.letter).u8(module.build_id.size);
  out.out().bytes(std::as_bytes(std::span(module.build_id.bytes)).first(module.build_id.size));
  out.number(module.path);
  out.number(module.missing_reason);
  const auto& symbols = module.symbols;
  out.number(symbols.size());
  out.column(symbols, &PackedSymbol::start);
  for (const PackedSymbol& symbol : symbols) out.distance(symbol.end, symbol.start);
  out.column(symbols, &PackedSymbol::name);
  for (const PackedSymbol& symbol : symbols) out.out().u8(symbol.is_data ? 1 : 0);
  const auto& functions = module.functions;
  out.number(functions.size());
  out.column(functions, &PackedFunction::name);
  for (const PackedFunction& function : functions) out.out().u8(function.is_linkage_name ? 1 : 0);
  out.column(functions, &PackedFunction::start);
  out.column(functions, [](const PackedFunction& function) { return one_higher(function.caller); });
  out.column(functions, &PackedFunction::call_file);
  out.column(functions, &PackedFunction::call_line);
  const auto& addresses = module.addresses;
  out.number(addresses.size());
  out.column(addresses, &PackedAddress::address);
  out.column(addresses, [](const PackedAddress& address) { return address.elf_address - address.address; });
  out.column(addresses, [](const PackedAddress& address) { return one_higher(address.symbol); });
  if ((module.flags & PackedModule::kHasLines) != 0) {
    out.column(addresses, [](const PackedAddress& address) { return one_higher(address.function); });
    out.column(addresses, &PackedAddress::file);
    out.column(addresses, &PackedAddress::line);
  }
  if ((module.flags & PackedModule::kHasCode) != 0) write_code(out, module);
}

void read_symbols(PackReader& in, PackedModule& module) {
  module.symbols.resize(in.count(4, sizeof(PackedSymbol)));
  in.column64(module.symbols, &PackedSymbol::start);
  for (PackedSymbol& symbol : module.symbols) {
    symbol.end = in.distance(symbol.start);
    if (symbol.end < symbol.start) in.fail();
  }
  in.column32(module.symbols, &PackedSymbol::name);
  for (PackedSymbol& symbol : module.symbols) symbol.is_data = in.byte() != 0;
}

void read_functions(PackReader& in, PackedModule& module) {
  auto& functions = module.functions;
  functions.resize(in.count(6, sizeof(PackedFunction)));
  in.column32(functions, &PackedFunction::name);
  for (PackedFunction& function : functions) function.is_linkage_name = in.byte() != 0;
  in.column64(functions, &PackedFunction::start);
  // A caller has a lower number than its callee, so chains of callers have no cycles.
  std::uint64_t number = 0;
  in.column(functions, [&](PackedFunction& function, std::uint64_t value) {
    if (value > number++) in.fail();
    function.caller = one_lower(value);
  });
  in.column32(functions, &PackedFunction::call_file);
  in.column32(functions, &PackedFunction::call_line);
}

void read_addresses(PackReader& in, PackedModule& module) {
  const bool has_lines = (module.flags & PackedModule::kHasLines) != 0;
  auto& addresses = module.addresses;
  addresses.resize(in.count(has_lines ? 6 : 3, sizeof(PackedAddress)));
  in.column64(addresses, &PackedAddress::address);
  if (std::ranges::adjacent_find(addresses, std::greater_equal(), &PackedAddress::address) != addresses.end())
    in.fail();
  in.column(addresses, [](PackedAddress& address, std::uint64_t value) {
    address.elf_address = address.address + value;
  });
  in.column(addresses, [&](PackedAddress& address, std::uint64_t value) {
    if (value > module.symbols.size()) in.fail();
    address.symbol = one_lower(value);
  });
  if (!has_lines) return;
  in.column(addresses, [&](PackedAddress& address, std::uint64_t value) {
    if (value > module.functions.size()) in.fail();
    address.function = one_lower(value);
  });
  in.column32(addresses, &PackedAddress::file);
  in.column32(addresses, &PackedAddress::line);
}

void read_code(PackReader& in, PackedModule& module) {
  module.is_64_bit = in.byte() != 0;
  module.code.resize(in.count(2, sizeof(PackedPiece)));
  in.column64(module.code, &PackedPiece::start);
  in.column32(module.code, &PackedPiece::size);
  if (!std::ranges::is_sorted(module.code, {}, &PackedPiece::start)) in.fail();
  std::uint64_t size = 0;  // no overflow: fewer than 2^32 pieces of 32 bits
  for (PackedPiece& piece : module.code) {
    piece.offset = size;
    size += piece.size;
    if (piece.start + piece.size < piece.start) in.fail();
  }
  const Bytes bytes = in.failed() ? Bytes() : in.bytes(size);
  module.code_bytes.assign(bytes.begin(), bytes.end());
}

PackedModule read_module(PackReader& in) {
  PackedModule module;
  module.kind = in.byte();
  module.flags = in.byte();
  module.letter = in.byte();
  const std::uint8_t id_size = in.byte();
  if (id_size > module.build_id.bytes.size()) in.fail();
  if (!in.failed()) module.build_id = BuildId::from_bytes(in.bytes(id_size));
  module.path = in.as_32_bits(in.number());
  module.missing_reason = in.as_32_bits(in.number());
  read_symbols(in, module);
  read_functions(in, module);
  read_addresses(in, module);
  if ((module.flags & PackedModule::kHasCode) != 0) read_code(in, module);
  return module;
}

struct Head {
  std::uint8_t level = 0;
  std::uint64_t raw_size = 0;
  Bytes frame;
};

// u32 version, u32 level, u64 bytes when unpacked, u64 bytes of the frame, the frame.
Result<Head> read_head(Bytes section) {
  Cursor in(section);
  const std::uint32_t version = in.u32(), level = in.u32();
  Head head;
  head.raw_size = in.u64();
  head.frame = in.take_bytes(in.u64());
  if (in.failed()) return Error{"cut short"};
  if (version != kPackVersion) return Error{"version " + std::to_string(version) + " is not known, 1 is"};
  if (level < 1 || level > static_cast<std::uint32_t>(PackLevel::Code))
    return Error{"level " + std::to_string(level) + " is not known"};
  head.level = static_cast<std::uint8_t>(level);
  return head;
}

Result<std::vector<std::byte>> unpack(const Head& head) {
  if (head.raw_size > kMostAlways + kMostInflation * head.frame.size())
    return Error{"would take " + std::to_string(head.raw_size) + " bytes, which is too large for its size",
                 EFBIG};
  return inflate_whole(head.frame, head.raw_size);
}

}  // namespace

std::uint32_t PackTexts::number_of(std::string_view text) {
  if (text.empty()) return 0;
  if (const auto known = numbers_.find(text); known != numbers_.end()) return known->second;
  const auto number = static_cast<std::uint32_t>(texts_.size());
  numbers_.emplace(texts_.emplace_back(text), number);
  return number;
}

Result<std::vector<std::byte>> write_symbol_pack_section(SymbolPack& pack) {
  PackWriter raw;
  raw.number(pack.texts.size());
  for (std::uint32_t i = 0; i < pack.texts.size(); ++i) raw.text(pack.texts[i].substr(0, kLongestText));
  raw.number(pack.modules.size());
  for (PackedModule& module : pack.modules) {
    put_in_order(module);
    write_module(raw, module);
  }
  const Bytes content = raw.out().view();
  const auto frame = compress_whole(content, kPackLevel);
  if (!frame) return frame.error();
  ByteWriter out;
  out.u32(kPackVersion).u32(static_cast<std::uint32_t>(pack.level)).u64(content.size()).u64(frame->size());
  out.bytes(*frame).align(kAlignment);
  return std::move(out).take_bytes();
}

Result<> check_symbol_pack(Bytes section) {
  const auto head = read_head(section);
  return head ? Result<>(Done{}) : Result<>(head.error());
}

Result<SymbolPack> parse_symbol_pack(Bytes section) {
  const auto head = read_head(section);
  if (!head) return head.error();
  const auto raw = unpack(*head);
  if (!raw) return raw.error();
  PackReader in(*raw, kMostAlways + kMostMemory * section.size());
  SymbolPack pack;
  pack.level = static_cast<PackLevel>(head->level);
  constexpr std::size_t kTextCost = 128;  // bytes of overhead for each text
  const std::size_t texts = in.count(1, kTextCost);
  for (std::size_t i = 0; i < texts && !in.failed(); ++i) {
    const Bytes text = in.bytes(in.number());
    if (i == 0 && !text.empty()) in.fail();
    if (i != 0) pack.texts.append(as_text(text));
  }
  const std::size_t modules = in.count(8, sizeof(PackedModule));
  for (std::size_t i = 0; i < modules && !in.failed(); ++i) pack.modules.push_back(read_module(in));
  if (in.is_too_much()) return Error{"would take too much memory for its size", EFBIG};
  if (in.failed() || !in.is_at_end()) return Error{"its tables contradict each other"};
  return pack;
}

}  // namespace tacho::format
