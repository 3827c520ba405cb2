// How places are told apart by their functions: whoever reads samples asks whoever names them.
#pragma once

#include <functional>

#include "symbolize/address_space.h"
#include "symbolize/names/symbol_table.h"

namespace tacho::report {

// The table that alone gives the places of a mapping their names, asked by shown address; null: there is
// none.
using NamesOf = std::function<symbolize::SymbolTable*(const symbolize::Mapping&)>;

}  // namespace tacho::report
