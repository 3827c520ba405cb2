// Copies of stacks (--call-graph dwarf) unwound for good: samples with plain call chains in place of pieces
// of stack and registers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "format/base/byte_writer.h"
#include "format/base/cursor.h"
#include "format/base/diagnostics.h"
#include "format/base/result.h"
#include "format/base/seeded_hash.h"
#include "format/container/capture_reader.h"
#include "format/container/features.h"
#include "format/records/event_set.h"
#include "format/records/record_view.h"
#include "report/samples/session.h"
#include "symbolize/address_space.h"
#include "symbolize/symbol_options.h"
#include "symbolize/unwind/unwind.h"

namespace tacho::report {

// The call chains of copied stacks, unwound before the copies go.

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

class ConvertUnwinding {
 public:
  // An error when no event keeps pieces of stack. `events` and `features` must outlive it.
  static Result<ConvertUnwinding> create(const symbolize::SymbolOptions& symbols,
                                         const format::EventSet& events, const format::Features& features);

  // What the events are in the copy.
  static format::EventSet changed(const format::EventSet& events);
  // The same of the header's sections.
  static void adjust(format::Features& features);

  // The record, in order of time, takes effect: mappings and processes.
  void note(const format::RecordView& record, const format::EventAttr& attr,
            format::Diagnostics& diagnostics);
  // What a sample of the event, in this machine's byte order, becomes: bytes in `scratch`; the record itself
  // where there is nothing to unwind. Nothing when it is damaged, which is counted.
  std::optional<format::RecordView> apply(const format::RecordView& record, const format::EventAttr& attr,
                                          format::ByteWriter& scratch, format::Diagnostics& diagnostics);
  // Where chains ended for want of unwind information.
  void report(format::Diagnostics& diagnostics) const;

 private:
  ConvertUnwinding(const symbolize::SymbolOptions& symbols, const format::Features& features);

  std::unique_ptr<symbolize::AddressSpaces> spaces_;  // where it is, since the unwinder looks into it
  symbolize::Unwinder unwinder_;
};

}  // namespace tacho::report
