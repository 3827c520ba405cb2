// The call chains of copied stacks.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/result.h"
#include "format/base/seeded_hash.h"
#include "report/samples/session.h"

namespace tacho::report {

// All unwound call chains of a capture, made before redact drops the copied stacks.
class UnwoundChains : private Sink {
 public:
  // Reads the capture and the files of its modules.
  static Result<UnwoundChains> read(SessionOptions reading);

  // The user part of the call chain of a sample (given by its bytes), leaf first; may be empty.
  std::span<const std::uint64_t> chain_of(format::Bytes sample) const {
    const auto found = stack_of_.find(hash_(format::as_text(sample)));
    return found == stack_of_.end() ? std::span<const std::uint64_t>() : chains_[index_of(found->second)];
  }

 private:
  UnwoundChains() = default;

  Flow on_sample(const ResolvedSample& sample) override;

  format::SeededTextHash hash_;
  std::unordered_map<std::uint64_t, StackId, format::SeededHash>
      stack_of_;                                    // by a hash of the sample's bytes
  std::vector<const Stack*> stacks_;                // by id; the session has them
  std::vector<std::vector<std::uint64_t>> chains_;  // by id
};

}  // namespace tacho::report
