// Damaged, missing or ignored parts of a capture. Damage is not an error: it is counted, reading goes on, and
// the program prints one line for each kind at the end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tacho::format {

enum class Damage : std::uint8_t {
  NotClosed,        // the recorder did not finish the file
  CutShort,         // the file is truncated
  BadRecord,        // a record with an impossible size or contents
  BadFeature,       // a damaged feature section; only that section is ignored
  BadFrame,         // a compressed record that does not decompress
  UnknownEvent,     // a record of an event that the capture does not describe
  UnknownRecord,    // a record type newer than this reader: skipped, the result is complete
  OutOfOrder,       // records older than earlier ones
  OrderGivenUp,     // records older than earlier ones: sorting would have exceeded the memory limit
  NoSymbols,        // a module without symbols: the result is complete, but has fewer names
  BadSymbolSource,  // a symbol table, or a part of it, exceeds the limits for its file's size: ignored
  WrongNames,       // names of another file were used, since the build id came too late in the capture
  Outside,          // samples of processes outside of the recorder's pid namespace: which ones is not known
  Lost,             // events that the kernel lost while recording
  Note,             // a message; nothing is missing
};

struct Finding {
  Damage kind;
  std::uint64_t count;         // number of occurrences
  std::uint64_t first_offset;  // file offset of the first one in bytes; kNoOffset: none
  std::string first;           // details of the first one
  std::uint64_t bytes = 0;     // bytes of the capture that were ignored, if known
};

class Diagnostics {
 public:
  static constexpr std::uint64_t kNoOffset = ~std::uint64_t{0};

  // Adds to the line of this kind; the first `detail` is kept.
  void add_finding(Damage kind, std::uint64_t offset, std::string detail, std::uint64_t count = 1,
                   std::uint64_t bytes = 0);
  // Adds a line of its own (NoSymbols).
  void add_line(Damage kind, std::string detail);
  // Moves the entries of `other` here.
  void take_findings(Diagnostics& other);

  // Removes the entries of this kind, which the view itself reports.
  void remove(Damage kind);

  const std::vector<Finding>& findings() const { return findings_; }
  // Whether the result lacks something: exit status 3.
  bool incomplete() const;
  // The text after "tacho: FILE: ": "not closed by its recorder; ... (at offset 4096, 3 times)".
  static std::string finding_text(const Finding& finding);

 private:
  std::vector<Finding> findings_;
};

}  // namespace tacho::format
