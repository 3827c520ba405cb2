// libdw behind a small class: the source line of an address, and the chain of inlined calls it lies in.
//
// Names and lines are those that addr2line of binutils 2.40 gives, since those are what perf 6.1 prints. Each
// compilation unit is read when an address first falls into it, and then indexed: a lookup is two binary
// searches.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/address.h"
#include "format/build_id.h"
#include "format/file.h"
#include "format/result.h"

namespace tacho::symbolize {

// One function that an address lies in: the innermost inlined one, its caller, and so on to the one that has
// code of its own. Views stay valid as long as the DwarfLines.
struct Call {
  std::string_view function;  // as the linker knows it where the language mangles names; empty: not told
  std::string_view file;      // with its folder; empty: not told
  std::uint32_t line = 0;  // of the address in the innermost function, of the call in the others; 0: not told
};

// The function that the symbol table has at an address. Its name stands in for that of the innermost function
// where DWARF has a name that is no linker's, as of `extern "C"` functions in C++.
struct LinkerSymbol {
  std::string_view name;
  format::ElfAddress start;
};

// How long it stands in for such a function.
enum class StandIn : std::uint8_t {
  Always,   // what addr2line answers when it is asked for this address alone
  AtFirst,  // as perf, which asks for many: the first time a function is met, and later only if both start at
            // the same place; so an answer depends on the questions before
};

// Another file that holds what several files had in common (dwz, .gnu_debugaltlink).
struct SharedPart {
  std::string path;  // as the link says: absolute, or beside the file
  format::BuildId build_id;
};

class DwarfLines {
 public:
  // `file` is open for reading. `root` is the folder that stands for the recording host's "/"; parts that
  // were split off into files of their own (.dwo) are looked for beside the file and where the compiler left
  // them, if that is below `root`. The error does not name the file.
  static Result<DwarfLines> open(format::Fd file, std::string root);
  DwarfLines(DwarfLines&&) noexcept;
  DwarfLines& operator=(DwarfLines&&) noexcept;
  ~DwarfLines();

  // To be given before the first lookup; without it the names in that file are missing.
  std::optional<SharedPart> shared_part() const;
  Result<> use_shared_part(format::Fd file);

  // Puts the calls at `address` into `calls`, the innermost first. None when this file knows nothing of it.
  // `symbol` must live as long as this.
  void find(format::ElfAddress address, const LinkerSymbol& symbol, StandIn stand_in,
            std::vector<Call>& calls);

  // The first thing that the lookups so far needed and that is damaged or not there; empty when there was
  // none.
  const std::string& lack() const;
  // True when it was left out because it would have taken more than the file is worth.
  bool left_out() const;

 private:
  struct State;
  explicit DwarfLines(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tacho::symbolize
