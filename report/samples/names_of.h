// How places are told apart by their functions: whoever reads samples asks whoever names them.
#pragma once

#include <cstdint>
#include <functional>

#include "symbolize/address_space.h"
#include "symbolize/symbolizer.h"

namespace tacho::report {

struct NamesOf {
  // What gives the places of a mapping their names; empty: places are told apart by their addresses.
  std::function<symbolize::Symbolizer::Names(const symbolize::Mapping&)> ask;
  bool of_chains = false;      // of the frames of call chains, and not of the samples' own places
  bool joins_unknown = false;  // places of a mapping's file that have no name are one
};

}  // namespace tacho::report
