#include "report/output/output_parts.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace tacho::report {
namespace {

constexpr std::size_t kSizeBytes = 8;  // little endian

struct Parts {
  std::vector<OutputFile> files;
  std::size_t now = 0;         // index of the part that is written
  std::size_t size_bytes = 0;  // of its size that were read
  std::uint64_t left = 0;      // of it

  Result<OutputFile::Reader> write(std::string_view bytes) {
    while (!bytes.empty()) {
      const bool is_last = now + 1 == files.size();
      if (!is_last && size_bytes < kSizeBytes) {
        left |= std::uint64_t{static_cast<unsigned char>(bytes.front())} << 8 * size_bytes++;
        bytes.remove_prefix(1);
      } else {
        const std::size_t of_part = is_last ? bytes.size() : std::min<std::uint64_t>(left, bytes.size());
        // The text's reader may be gone (Reader); the other files are wanted all the same.
        if (auto done = files[now].write(bytes.substr(0, of_part)); !done) return done;
        bytes.remove_prefix(of_part);
        left -= is_last ? 0 : of_part;
      }
      if (!is_last && size_bytes == kSizeBytes && left == 0) ++now, size_bytes = 0;
    }
    return OutputFile::Reader::There;
  }
  Result<> finish() {
    for (std::size_t i = files.size(); i-- > 0;)
      if (auto done = files[i].finish(); !done) return done;
    return Done{};
  }
};

}  // namespace

OutputFile output_of_parts(std::vector<OutputFile> files) {
  const bool is_for_person = files.front().is_for_person();
  const auto parts = std::make_shared<Parts>(Parts{.files = std::move(files)});
  return OutputFile(sandbox::Output{.write = [parts](std::string_view bytes) { return parts->write(bytes); },
                                    .finish = [parts] { return parts->finish(); },
                                    .is_reader_gone = [] { return false; },
                                    .is_for_person = is_for_person});
}

void write_part(TextOutput& out, std::string_view bytes) {
  std::array<char, kSizeBytes> size{};
  for (std::size_t i = 0; i < kSizeBytes; ++i)
    size[i] = static_cast<char>(std::uint64_t{bytes.size()} >> 8 * i & 0xff);
  out.text({size.data(), size.size()});
  out.text(bytes);
}

}  // namespace tacho::report
