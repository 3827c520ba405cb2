#include "report/output/paired_output.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace tacho::report {
namespace {

constexpr std::size_t kSizeBytes = 8;  // little endian

struct Pair {
  OutputFile text, second;
  std::size_t size_bytes = 0;  // of the text's size that were written
  std::uint64_t left = 0;      // of the text

  Result<OutputFile::Reader> write(std::string_view bytes) {
    for (; !bytes.empty() && size_bytes < kSizeBytes; bytes.remove_prefix(1))
      left |= std::uint64_t{static_cast<unsigned char>(bytes.front())} << 8 * size_bytes++;
    const std::size_t of_text = std::min<std::uint64_t>(left, bytes.size());
    left -= of_text;
    // The second file is wanted, even when nobody reads the text.
    if (auto done = text.write(bytes.substr(0, of_text)); !done) return done;
    if (auto done = second.write(bytes.substr(of_text)); !done) return done;
    return OutputFile::Reader::There;
  }
  Result<> finish() {
    if (auto done = second.finish(); !done) return done;
    return text.finish();
  }
};

}  // namespace

OutputFile paired_output(OutputFile text, OutputFile second) {
  const bool is_for_person = text.is_for_person();
  const auto pair = std::make_shared<Pair>(Pair{.text = std::move(text), .second = std::move(second)});
  return OutputFile(sandbox::Output{.write = [pair](std::string_view bytes) { return pair->write(bytes); },
                                    .finish = [pair] { return pair->finish(); },
                                    .is_reader_gone = [] { return false; },
                                    .is_for_person = is_for_person});
}

void begin_pair(TextOutput& out, std::string_view text) {
  std::array<char, kSizeBytes> size{};
  for (std::size_t i = 0; i < kSizeBytes; ++i)
    size[i] = static_cast<char>(std::uint64_t{text.size()} >> 8 * i & 0xff);
  out.text({size.data(), size.size()});
  out.text(text);
}

}  // namespace tacho::report
