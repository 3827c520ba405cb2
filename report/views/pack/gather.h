// Every address that the samples of a capture hit, with what is known of it here.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "format/symbol_pack.h"
#include "report/samples/session.h"

namespace tacho::report {

struct GatheredSymbols {
  format::SymbolPack pack;
  std::size_t addresses = 0;  // distinct places that samples hit
  std::size_t named = 0;      // of these, with a function
};

// Options that packing needs of a session, whatever the user says.
void set_for_gathering(SessionOptions& options);

struct GatherRules {
  format::PackLevel level = format::PackLevel::Inlines;
  // Told whenever the file of another module is about to be read; may be empty.
  std::function<void(std::string_view path)> at_module;
  // Why a module is not to be read; empty: it is. May be empty as well.
  std::function<std::string(std::string_view path)> lack;
};
// Reads the whole capture.
GatheredSymbols gather_symbols(Session& session, const GatherRules& rules);

}  // namespace tacho::report
