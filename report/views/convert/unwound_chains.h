// The call chains of copied stacks, unwound before the copies go.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "format/capture_reader.h"
#include "format/cursor.h"
#include "format/result.h"
#include "format/seeded_hash.h"
#include "symbolize/files/file_gate.h"

namespace tacho::report {

class UnwoundChains {
 public:
  // Reads the capture at `input` and the files that it names, these in a process of its own
  // (report/worker.h). An error when that fails or dies.
  static Result<UnwoundChains> read(const std::string& input, const format::ReadOptions& options);

  // The part of the chain that lies in the process, leaf first, of a sample by all its bytes. Empty: there is
  // none.
  std::span<const std::uint64_t> of(format::Bytes sample) const;
  // Files in which chains end though they need not: a line for each.
  const std::vector<std::string>& lacks() const { return lacks_; }

 private:
  UnwoundChains() = default;
  std::vector<std::byte> gather(const std::string& input, const format::ReadOptions& options,
                                symbolize::FileGate& gate) const;
  Result<> parse(format::Bytes told);

  format::SeededTextHash hash_;
  std::vector<std::vector<std::uint64_t>> chains_;
  std::vector<std::string> lacks_;
  std::unordered_map<std::uint64_t, std::uint32_t, format::SeededHash> by_sample_;
};

}  // namespace tacho::report
