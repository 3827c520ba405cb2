#include "bpf/private_folder.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "format/trusted_path.h"

namespace tacho::bpf {
namespace {

void remove(const std::string& path) {
  if (path.empty()) return;
  std::error_code ignored;  // a folder that stays behind harms nobody
  std::filesystem::remove_all(path, ignored);
}

}  // namespace

Result<PrivateFolder> PrivateFolder::create(const std::string& parent) {
  const char* temporary = std::getenv("TMPDIR");
  std::string path = parent;
  if (parent.empty() && temporary != nullptr && *temporary != '\0' && format::check_trusted_path(temporary))
    path = temporary;
  if (path.empty()) path = "/tmp";
  if (auto trusted = format::check_trusted_path(path); !trusted)
    return std::move(trusted.error()).in("a private folder in " + path);
  path += "/tacho.XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) return system_error("cannot make a private folder " + path, errno);
  return PrivateFolder(std::move(path));
}

PrivateFolder& PrivateFolder::operator=(PrivateFolder&& other) noexcept {
  if (this != &other) {
    remove(path_);
    path_ = std::exchange(other.path_, {});
  }
  return *this;
}

PrivateFolder::~PrivateFolder() { remove(path_); }

bool PrivateFolder::become(const std::string& path) {
  if (std::rename(path_.c_str(), path.c_str()) != 0) return false;  // ENOTEMPTY: another recorder was faster
  path_.clear();
  return true;
}

}  // namespace tacho::bpf
