// What was damaged, missing or left out while a capture was read. Damage is data, not an error: it is
// counted, reading goes on, and the program shows one line for each kind at the end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tacho::format {

enum class Damage : std::uint8_t {
  NotClosed,        // the recorder did not finish the file
  CutShort,         // the file ends before what its header promises
  BadRecord,        // a record whose size or contents cannot be right
  BadFeature,       // a header section that cannot be read; only that section is lost
  BadFrame,         // a compressed record that does not decompress
  UnknownEvent,     // a record of an event that the capture does not describe
  UnknownRecord,    // a record type newer than this reader: counted and skipped, the result is whole
  OutOfOrder,       // records older than what was already given out
  OrderGivenUp,     // the same, since more records had to wait than memory is given for
  NoSymbols,        // a module whose names were not found: the result is whole but poorer
  BadSymbolSource,  // a symbol table, or a part of it, that takes more than its file is worth: it is left out
  WrongNames,       // names of another file were shown, since the capture named the right one too late
  Lost,             // events the kernel could not deliver while recording
  Note,             // worth a line, nothing is missing
};

struct Finding {
  Damage kind;
  std::uint64_t count;         // how often
  std::uint64_t first_offset;  // file offset in bytes of the first place, kNoOffset when there is none
  std::string first;           // what was seen there, and what was expected
  std::uint64_t bytes = 0;     // of the capture that were left out by it, as far as they were counted
};

class Diagnostics {
 public:
  static constexpr std::uint64_t kNoOffset = ~std::uint64_t{0};

  // One line is kept for each kind; `detail` of the first occurrence wins.
  void add(Damage kind, std::uint64_t offset, std::string detail, std::uint64_t count = 1,
           std::uint64_t bytes = 0);
  // For kinds whose every detail matters (NoSymbols): kept as lines of their own.
  void add_line(Damage kind, std::string detail);
  // Moves the entries of `other` here.
  void take(Diagnostics& other);

  const std::vector<Finding>& findings() const { return findings_; }
  // True when something the user asked for is not in the result: exit status 3.
  bool incomplete() const;
  // "not closed by its recorder; ... (at offset 4096, 3 times)": ready to follow "tacho: FILE: ".
  static std::string describe(const Finding& finding);

 private:
  std::vector<Finding> findings_;
};

}  // namespace tacho::format
