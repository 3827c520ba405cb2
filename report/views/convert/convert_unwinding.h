// convert --unwind: replaces copied stacks and registers (--call-graph dwarf) by call chains.
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

// The index of a sample's stack, by a hash of the sample's bytes.
using ChainsBySample = std::unordered_map<std::uint64_t, std::uint32_t, format::SeededHash>;

// All unwound call chains of a capture; redact makes them before it drops the copied stacks.
class UnwoundChains {
 public:
  // Reads the capture and the files of its modules, with the FileGates in `reading`.
  static Result<UnwoundChains> read(SessionOptions reading);

  // The user part of the call chain of a sample (given by its bytes), leaf first; may be empty.
  std::span<const std::uint64_t> of(format::Bytes sample) const;

 private:
  UnwoundChains() = default;

  format::SeededTextHash hash_;
  std::vector<std::vector<std::uint64_t>> chains_;
  ChainsBySample by_sample_;
};

class ConvertUnwinding {
 public:
  // Refused when no event has copied stacks. `events` and `features` must outlive this.
  static Result<ConvertUnwinding> create(const symbolize::SymbolOptions& symbols,
                                         const format::EventSet& events, const format::Features& features);

  // The events of the copy.
  static format::EventSet changed(const format::EventSet& events);
  // Changes the feature sections to those of the copy.
  static void adjust(format::Features& features);

  // Applies a record of mappings or processes. To be called in order of time.
  void note(const format::RecordView& record, const format::EventAttr& attr,
            format::Diagnostics& diagnostics);
  // The sample (in this machine's byte order) with a call chain, in `scratch`; the record itself when there
  // is nothing to unwind; nullopt when it is damaged, which `diagnostics` counts.
  std::optional<format::RecordView> apply(const format::RecordView& record, const format::EventAttr& attr,
                                          format::ByteWriter& scratch, format::Diagnostics& diagnostics);
  // Reports modules in which call chains ended because unwind information was missing.
  void report(format::Diagnostics& diagnostics) const;

 private:
  ConvertUnwinding(const symbolize::SymbolOptions& symbols, const format::Features& features);

  std::unique_ptr<symbolize::AddressSpaces> spaces_;  // at a stable address: the unwinder refers to it
  symbolize::Unwinder unwinder_;
};

}  // namespace tacho::report
