// Places of probes in a program or library (functions, USDT markers), and the file of a library's name.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/result.h"

namespace tacho::record {

// The name in the source of a C++ function, without parameters: "server::Queue::push" for
// "_ZN6server5Queue4pushEi". nullopt for names that are not C++, or have other parts than plain names
// (Itanium C++ ABI): a recorder with root's rights demangles as little of a foreign program's names as
// possible.
std::optional<std::string> source_name(std::string_view symbol);

// A name or pattern as typed, perhaps copied from a view, without the <...> of a template's arguments. Angle
// brackets of operators stay.
std::string without_template_arguments(std::string_view name);

// The file offset of a function, by ELF symbol, or by its C++ name in the source ("ns::Class::f") if only one
// function has it. An error names the nearest function, or all functions with the name.
Result<std::uint64_t> function_offset(format::Bytes file, std::string_view name);

// The names in its symbol tables, with duplicates; empty if it was stripped.
Result<std::vector<std::string>> function_names(format::Bytes file);

// A USDT marker in the program (SystemTap's sys/sdt.h), from .note.stapsdt.
struct UsdtMarker {
  std::string provider, name;
  std::uint64_t offset = 0;     // in the file
  std::string arguments;        // their locations: "8@%rdi -4@-12(%rbp)"
  std::uint64_t semaphore = 0;  // file offset of the counter that enables it; 0: none
};
// All markers in the order of the file; empty: it has none.
Result<std::vector<UsdtMarker>> usdt_markers(format::Bytes file);

struct FunctionOffset {
  std::string name;
  std::uint64_t offset = 0;  // in the file
  bool is_chooser = false;   // an IFUNC resolver: called once, to choose an implementation
};
// Whether the symbol is a copy of a function made by a compiler, which may be called with other arguments
// ("f.isra.0", "f.constprop.0.cold").
bool is_changed_copy(std::string_view name);
// All functions in its symbol tables that are in its code. is_go: compiled by Go; throws: it, or one of its
// libraries, throws C++ or Rust exceptions.
struct FunctionOffsets {
  std::vector<FunctionOffset> functions;
  bool is_go = false, throws = false;
};
Result<FunctionOffsets> functions_of(format::Bytes file);

// How a program or library reports its calls (by its imported functions), and whether it works with replaced
// return addresses.
struct CallFacts {
  bool has_libraries = false;                          // false: statically linked
  bool reports_entries = false, reports_both = false;  // -pg or -mfentry; -finstrument-functions
  bool handles_exceptions = false;
  std::string switches_stacks;  // by this function; empty: it does not, as far as known
};
Result<CallFacts> call_facts(format::Bytes file);

// The file of a library or program. `name`: a path, or a name that is looked up: among the files that this
// process maps ("libc.so.6"), in LD_LIBRARY_PATH, in the dynamic linker's cache, in the folders of libraries,
// and in PATH. With a `process` (else -1): among the files that it maps, as a container may have others; a
// path is relative to its root folder. A usage error says what is missing.
Result<std::string> library_file(const std::string& name, int process);

// The libraries for this architecture in the dynamic linker's cache (/etc/ld.so.cache, written by ldconfig):
// paths by name, the first of several. Empty: the file is not in glibc's format (2.2 and later).
using LibraryPaths = std::map<std::string, std::string, std::less<>>;
LibraryPaths libraries_of_cache(format::Bytes cache);

// The path of a library that is installed with tacho-record: next to it, or in the folder of libraries;
// nullopt: it is not there.
std::optional<std::string> own_library(const std::string& name);

}  // namespace tacho::record
