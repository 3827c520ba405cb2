// Collects the names and lines of a capture's addresses for its symbol pack.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/extensions/symbol_pack.h"
#include "symbolize/files/source_files.h"
#include "symbolize/symbolizer.h"

namespace tacho::symbolize {

class PackMaker {
 public:
  explicit PackMaker(format::PackLevel level) { pack_.level = level; }

  // Adds the result of Symbolizer::facts() for one address; the symbolizer must not use
  // UseSymbolName::AsPerf. The module is always added, the address only if it has facts, or with
  // Keep::Always: so readers can distinguish a call without a name from one that was not looked up.
  enum class Keep : std::uint8_t { WithFacts, Always };
  void add_location(const LocationFacts& facts, Keep keep = Keep::WithFacts);
  // Adds instructions from a shown address on, of the module of an added address. Overlapping instructions
  // are stored once.
  void add_code(const LocationFacts& facts, std::uint64_t start, format::Bytes code, bool is_64_bit);
  bool has_code(const LocationFacts& facts, std::uint64_t start, std::uint64_t size);
  // The MD5 sums of the source files that were added.
  SourceSums take_source_sums() { return std::move(source_sums_); }
  // The pack of all that was added.
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
    std::size_t number = 0;  // in the order of first use
    std::unordered_map<SymbolKey, std::uint32_t, SymbolHash> symbols;
    std::unordered_map<std::uint64_t, std::uint32_t> functions;  // by unit and number in their source
    std::map<std::uint64_t, std::vector<std::byte>> code;        // by start
  };
  Gathered& gathered(const LocationFacts& facts);
  std::uint32_t symbol_of(Gathered& to, const Symbol& symbol);
  void add_lines(Gathered& to, const LocationFacts& facts, format::PackedAddress& address);
  // `function_at` returns the InlineFunction of a number in `unit`.
  template <class FunctionAt>
  std::uint32_t function_of(Gathered& to, std::uint32_t unit, std::uint32_t number, FunctionAt&& function_at);

  format::SymbolPack pack_;
  SourceSums source_sums_;
  // Files whose sums were added, by module: programs may be compiled from several texts of one path.
  std::set<std::pair<const LineSource*, std::uint32_t>> summed_files_;  // number of the path's text
  std::map<std::pair<const Module*, bool>, Gathered>
      modules_;  // key: module, and whether it is the BPF trampolines
};

}  // namespace tacho::symbolize
