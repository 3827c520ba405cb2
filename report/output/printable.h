// Names from outside made safe for where they are going (format/base/printable.h).
#pragma once

#include "format/base/printable.h"

namespace tacho::report {

using format::is_plain;
using format::Names;
using format::printable;
using format::printable_csv;
using format::printable_folded;
using format::printable_json;
using format::printable_quoted;

}  // namespace tacho::report
