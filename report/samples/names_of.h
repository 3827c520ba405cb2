// Distinguishes places by their functions instead of their addresses.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>

#include "symbolize/address_space.h"
#include "symbolize/symbolizer.h"

namespace tacho::report {

struct NamesOf {
  // Returns the symbol table of a mapping; empty: places are distinguished by address.
  std::function<symbolize::Symbolizer::Names(const symbolize::Mapping&)> ask;
  bool of_chains = false;      // of the frames of call chains, and not of the samples' own places
  bool joins_unknown = false;  // places of a mapping's file that have no name are one
  // Locked for questions that may change what other threads read: by threads that share the symbol tables.
  // Null: no other thread does.
  std::mutex* naming = nullptr;
};

}  // namespace tacho::report
