// Names in command lines that are shown to be typed.
#pragma once

#include <string>
#include <string_view>

namespace tacho::report {

// As it is where a shell takes it as one word, else made printable, in single quotes.
std::string shell_word(std::string_view text);

}  // namespace tacho::report
