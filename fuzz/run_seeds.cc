// Gives each fuzz target its seeds, fuzz/seeds/TARGET/*, once: what libFuzzer would begin with. The targets
// are compiled with their entry point named after them (fuzz/CMakeLists.txt).
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <vector>

#define FUZZ_TARGET(name) extern "C" int name(const std::uint8_t* data, std::size_t size);
#include "fuzz_targets.inc"
#undef FUZZ_TARGET

namespace {

namespace fs = std::filesystem;

struct Target {
  std::string_view name;
  int (*run)(const std::uint8_t*, std::size_t);
};
#define FUZZ_TARGET(name) {#name, name},
constexpr Target kTargets[] = {
#include "fuzz_targets.inc"
};
#undef FUZZ_TARGET

// In order of their names, so that a failure is found again.
std::vector<fs::path> seeds_of(const Target& target) {
  std::vector<fs::path> seeds;
  std::error_code code;
  for (fs::directory_iterator entry(fs::path(TACHO_FUZZ_SEEDS) / target.name, code), end;
       !code && entry != end; entry.increment(code))
    seeds.push_back(entry->path());
  std::ranges::sort(seeds);
  return seeds;
}

std::vector<std::uint8_t> bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

int main() {
  int status = 0;
  for (const Target& target : kTargets) {
    const std::vector<fs::path> seeds = seeds_of(target);
    if (seeds.empty()) {
      std::printf("%s has no seeds\n", std::string(target.name).c_str());
      status = 1;
    }
    for (const fs::path& seed : seeds) {
      // Before it runs: a target that finds something ends the program.
      std::printf("%s %s\n", std::string(target.name).c_str(), seed.filename().c_str());
      std::fflush(stdout);
      const std::vector<std::uint8_t> bytes = bytes_of(seed);
      if (bytes.empty() && fs::file_size(seed) > 0) {
        std::printf("%s cannot be read\n", seed.c_str());
        status = 1;
      }
      target.run(bytes.data(), bytes.size());
    }
  }
  return status;
}
