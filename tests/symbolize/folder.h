// Folders of tests: that of the test files, and one that stands for a recording host's root, gone when the
// test ends.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace tacho::symbolize {

// Folder of the test files of this repository.
inline const std::string kData = TACHO_TEST_DATA;

}  // namespace tacho::symbolize

namespace tacho::symbolize::test {

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "tacho-symbolize-XXXXXX").string();
    path_ = mkdtemp(name.data()) ? name : std::string();
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  // `at` as the recording host had it: "/usr/bin/x".
  void write(const std::string& at, std::string_view text) const {
    std::filesystem::create_directories(std::filesystem::path(path_ + at).parent_path());
    std::ofstream(path_ + at, std::ios::binary) << text;
  }
  void copy(const std::string& from, const std::string& at) const {
    std::filesystem::create_directories(std::filesystem::path(path_ + at).parent_path());
    std::filesystem::copy_file(from, path_ + at);
  }

 private:
  std::string path_;
};

}  // namespace tacho::symbolize::test
