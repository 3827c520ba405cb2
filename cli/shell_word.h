// A word for a command line that is printed to be typed or pasted: a file name in a hint.
#pragma once

#include <string>
#include <string_view>

namespace tacho::cli {

// As it is, where no shell would see anything else in it; else quoted, bytes that cannot be shown as $'\xNN'.
// A word that starts with a dash gets "./" in front, since it would be taken for an option.
std::string shell_word(std::string_view word);

}  // namespace tacho::cli
