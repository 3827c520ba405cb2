#include "symbolize/elf/named_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdlib>
#include <memory>

namespace tacho::symbolize {

std::string folder_of(int fd) {
  std::array<char, PATH_MAX> target{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t size = ::readlink(link.c_str(), target.data(), target.size());
  if (size <= 0) return {};
  const std::string path(target.data(), static_cast<std::size_t>(size));
  return path.substr(0, path.rfind('/') + 1);
}

Place look_at(const std::string& path, const std::string& root) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return Place::Empty;
  if (!S_ISREG(status.st_mode)) return Place::Harmful;
  if (root.empty()) return Place::Harmless;
  const auto resolved = [](const std::string& name) {
    const std::unique_ptr<char, decltype(&std::free)> real(::realpath(name.c_str(), nullptr), &std::free);
    return std::string(real ? real.get() : "");
  };
  const std::string real_root = resolved(root);
  const bool is_below = !real_root.empty() && resolved(path).starts_with(real_root + "/");
  return is_below ? Place::Harmless : Place::Harmful;
}

std::array<std::string, 2> split_places(std::string_view folder, std::string_view compiler_folder,
                                        std::string_view name) {
  const auto joined = [](std::string_view before, std::string_view after) {
    return after.starts_with('/') ? std::string(after) : std::string(before) + "/" + std::string(after);
  };
  return {joined(folder, name), joined(joined(folder, compiler_folder), name)};
}

bool may_open_split(std::string_view folder, std::string_view compiler_folder, std::string_view name,
                    const std::string& root) {
  if (name.empty() || folder.empty()) return false;
  const auto places = split_places(folder, compiler_folder, name);
  const Place beside = look_at(places[0], root), built = look_at(places[1], root);
  return beside != Place::Harmful && built != Place::Harmful &&
         (beside == Place::Harmless || built == Place::Harmless);
}

}  // namespace tacho::symbolize
