// The source's name of a C++ function, for names that users type. A recorder that runs as root demangles no
// more of a foreign program's names than it must: templates, operators and the like are left to readers of
// the capture.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tacho::record {

// "server::Queue::push" for "_ZN6server5Queue4pushEi", without parameters; nothing for what is no C++ name,
// or one with other parts than plain names (of the Itanium C++ ABI's mangling).
std::optional<std::string> source_name(std::string_view symbol);

// The same of a name or pattern as typed, perhaps as a view of a capture prints it: without the <...> of a
// template's name. Angle brackets of operators stay.
std::string without_template_arguments(std::string_view name);

}  // namespace tacho::record
