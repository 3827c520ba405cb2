// Collects the names and lines of a capture's addresses for its symbol pack.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/extensions/symbol_pack.h"
#include "symbolize/symbolizer.h"

namespace tacho::symbolize {

class PackMaker {
 public:
  explicit PackMaker(format::PackLevel level) { pack_.level = level; }

  // What Symbolizer::facts() said of one address; the symbolizer must not take names as AtFirst. Its module
  // is in the pack in any case, the address when there is something to say of it, or always: a call without a
  // name is told apart so from one that was not looked up, where the return address has a name.
  enum class Keep : std::uint8_t { WithFacts, Always };
  void add(const PlaceFacts& facts, Keep keep = Keep::WithFacts);
  // Instructions from a shown address on, of the module of an address that was added. In addition to those
  // that came before; what these cover is there once.
  void add_code(const PlaceFacts& facts, std::uint64_t start, format::Bytes code, bool is_64_bit);
  bool has_code(const PlaceFacts& facts, std::uint64_t start, std::uint64_t size);
  // All that was added.
  format::SymbolPack finish();

 private:
  struct SymbolKey {
    std::uint64_t start, end;
    const char* name;
    bool operator==(const SymbolKey&) const = default;
  };
  struct SymbolHash {
    std::size_t operator()(const SymbolKey& key) const noexcept {
      return (key.start ^ key.end << 20 ^ reinterpret_cast<std::uintptr_t>(key.name)) * 0x9E3779B97F4A7C15 >>
             8;
    }
  };
  struct Gathered {
    format::PackedModule module;
    std::unordered_map<SymbolKey, std::uint32_t, SymbolHash> symbols;
    std::unordered_map<std::uint64_t, std::uint32_t> functions;  // by unit and number of their source
    std::map<std::uint64_t, std::vector<std::byte>> code;        // by start
  };
  Gathered& gathered(const PlaceFacts& facts);
  std::uint32_t symbol_of(Gathered& to, const Symbol& symbol);
  void add_lines(Gathered& to, const PlaceFacts& facts, format::PackedAddress& address);
  // `function_at` gives the InlineFunction of a number in `unit`.
  template <class FunctionAt>
  std::uint32_t function_of(Gathered& to, std::uint32_t unit, std::uint32_t number, FunctionAt&& function_at);

  format::SymbolPack pack_;
  std::map<std::pair<const Module*, bool>, Gathered>
      modules_;  // the second: the kernel's code around BPF programs
};

}  // namespace tacho::symbolize
