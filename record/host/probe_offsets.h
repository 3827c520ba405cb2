// Addresses for probes in a program or library, by ELF symbol or by the source's name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/result.h"

namespace tacho::record {

// The source's name of a C++ function, for names that users type. A recorder that runs as root demangles no
// more of a foreign program's names than it must: templates, operators and the like are left to readers of
// the capture.

// "server::Queue::push" for "_ZN6server5Queue4pushEi", without parameters; nothing for what is no C++ name,
// or one with other parts than plain names (of the Itanium C++ ABI's mangling).
std::optional<std::string> source_name(std::string_view symbol);

// The same of a name or pattern as typed, perhaps as a view of a capture prints it: without the <...> of a
// template's name. Angle brackets of operators stay.
std::string without_template_arguments(std::string_view name);

// Addresses for probes in a program or library: functions, USDT markers, and which file a name stands for.

// Offset of the function in the file: by the linker's name, or by its C++ source name ("ns::Class::f", see
// source_name.h) when only one function has it. An error names the nearest function, or the functions that
// share the name.
Result<std::uint64_t> function_offset(format::Bytes file, std::string_view name);

// Every one there is, as often as its tables of symbols name it; none where they were taken out.
Result<std::vector<std::string>> function_names(format::Bytes file);

// A USDT marker in the program (SystemTap's sys/sdt.h), from .note.stapsdt.
struct UsdtMarker {
  std::string provider, name;
  std::uint64_t offset = 0;     // in the file
  std::string arguments;        // where they are: "8@%rdi -4@-12(%rbp)"
  std::uint64_t semaphore = 0;  // likewise, of the counter that switches it on; 0: there is none
};
// All of them in the order of the file; none when it has no markers.
Result<std::vector<UsdtMarker>> usdt_markers(format::Bytes file);

struct FunctionOffset {
  std::string name;
  std::uint64_t offset = 0;  // in the file
  bool is_chooser = false;   // called once, to choose among several functions of that name (IFUNC)
};
// Whether the linker's name is that of a copy which a compiler made of a function and calls as it likes, with
// other arguments ("f.isra.0", "f.constprop.0.cold").
bool is_changed_copy(std::string_view name);
// All that its symbol tables name and that lie in its code. is_go: the Go compiler made it; throws: it has,
// or has from a library, what throws exceptions of C++ and Rust.
struct FunctionOffsets {
  std::vector<FunctionOffset> places;
  bool is_go = false, throws = false;
};
Result<FunctionOffsets> functions_of(format::Bytes file);

// How a program or library reports its calls, by its imported functions, and whether it works with replaced
// return addresses.
struct CallFacts {
  bool has_libraries = false;               // else it is statically linked
  bool by_begins = false, by_both = false;  // -pg or -mfentry; -finstrument-functions
  bool handles_exceptions = false;
  std::string switches_stacks;  // by this function; empty: by none that is known
};
Result<CallFacts> call_facts(format::Bytes file);

// The file that a library's or program's name means.

// `name`: a path, or a name that is searched for: among the files that this process has mapped
// ("libc.so.6"), in LD_LIBRARY_PATH, as the dynamic linker would find it, in the folders of libraries and
// along PATH. With a `process` (otherwise -1): among the files that it has mapped, as a container may have
// others; a path is one of its root folder. A use error names what is missing.
Result<std::string> library_file(const std::string& name, int process);

// Path of a library of this machine's kind in the dynamic linker's cache (/etc/ld.so.cache, which ldconfig
// writes).
std::optional<std::string> cached_library(format::Bytes cache, std::string_view name);

// The path of a library that is installed with tacho-record: beside it, or in the folder of libraries;
// nothing when it is not there.
std::optional<std::string> own_library(const std::string& name);

}  // namespace tacho::record
