// A capture written again with another header: its records stay as they are, byte for byte.
#pragma once

#include <functional>
#include <string>

#include "format/base/diagnostics.h"
#include "format/base/result.h"
#include "format/container/features.h"

namespace tacho::report {

struct RewriteOptions {
  std::string input;
  std::string output;  // empty: in place of the input
};

// Why the capture at `input` cannot be rewritten, in words that say what to do; opens it.
Result<> check_rewritable(const std::string& input);
// `change` gets the header's sections: the ones that it drops (format::drop_section) are written from the
// values. The output gets its name when it is whole; one that had the name is kept as NAME.old, but for the
// input itself.
Result<> rewrite(const RewriteOptions& options, const std::function<Result<>(format::Features&)>& change);

}  // namespace tacho::report
