// The call chains of copied stacks, unwound before the copies go.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/result.h"
#include "format/base/seeded_hash.h"
#include "format/container/capture_reader.h"
#include "report/samples/session.h"

namespace tacho::report {

// By a key of a sample's bytes: the number of its stack.
using ChainsBySample = std::unordered_map<std::uint64_t, std::uint32_t, format::SeededHash>;

class UnwoundChains {
 public:
  // Reads the capture and the files that it names, by the gates that `reading` has.
  static Result<UnwoundChains> read(SessionOptions reading);

  // The user part of the chain, leaf first, of a sample by all its bytes. Empty: there is
  // none.
  std::span<const std::uint64_t> of(format::Bytes sample) const;

 private:
  UnwoundChains() = default;

  format::SeededTextHash hash_;
  std::vector<std::vector<std::uint64_t>> chains_;
  ChainsBySample by_sample_;
};

}  // namespace tacho::report
