// Files that an ELF file names: where they would be, and what opening them would do.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tacho::symbolize {

// The folder of an open file, with its slash, as libdw finds it; empty when unknown.
std::string folder_of(int fd);

enum class Place : std::uint8_t { Empty, Harmless, Harmful };

// What opening `path` would do: a regular file below `root` does no harm. An empty `root` holds everything.
Place look_at(const std::string& path, const std::string& root);

// Where a part that was split off may be, as libdw looks for it: beside the file in `folder`, then in
// `compiler_folder`.
std::array<std::string, 2> split_places(std::string_view folder, std::string_view compiler_folder,
                                        std::string_view name);

// True when libdw finds a part that was split off (a .dwo file) and nothing harmful on its way: first beside
// the file in `folder`, then in `compiler_folder`.
bool may_open_split(std::string_view folder, std::string_view compiler_folder, std::string_view name,
                    const std::string& root);

}  // namespace tacho::symbolize
