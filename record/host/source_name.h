// What a C++ function is called in its source, for names that somebody types. A recorder that runs as root
// reads no more of a strange program's names than it must: those of templates, operators and the like are
// left to whoever reads the capture.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tacho::record {

// "server::Queue::push" for "_ZN6server5Queue4pushEi", without parameters; nothing for what is no C++ name,
// or one with other parts than plain names (of the Itanium C++ ABI's mangling).
std::optional<std::string> source_name(std::string_view symbol);

// The same of a name or pattern that somebody typed, perhaps as a view of a capture prints it: without what
// stands in <...> behind a template's name. Angles of operators stay.
std::string without_template_arguments(std::string_view name);

}  // namespace tacho::record
