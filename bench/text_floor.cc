// A lower bound for the cost of script and folded: a program that has all names before it starts.
//   text_floor FILE...
// For each capture of call chains, wall time, medians of seven, one thread, text to /dev/null:
//   walk   read the file, find where each record ends, hash every word of it
//   text   the same walk, and for each sample a line and for each frame a line of usual length, copied from a
//          table by the address
//   fold   the same walk, and each chain looked up by its hash in a table that counts
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "format/base/file.h"
#include "format/container/capture_reader.h"

namespace tacho::format {
namespace {

constexpr std::size_t kFrameLine = 79, kSampleLine = 59;  // bytes: the averages of what script writes
constexpr std::size_t kChunk = std::size_t{1} << 20;

[[noreturn]] void give_up(const std::string& what) {
  std::fprintf(stderr, "text_floor: %s\n", what.c_str());
  std::exit(2);
}

// Words before a sample's call chain.
std::size_t words_before_chain(const std::string& path) {
  Diagnostics diagnostics;
  const auto reader = CaptureReader::open(path, diagnostics);
  if (!reader) give_up(reader.error().what);
  const std::uint64_t type = reader->events()[0].attr.sample_type;
  if ((type & abi::kSampleCallchain) == 0 || (type & abi::kSampleRead) != 0)
    give_up(path + ": its samples have no call chain, or something of varying length before it");
  constexpr std::uint64_t kBefore = abi::kSampleIdentifier | abi::kSampleIp | abi::kSampleTid |
                                    abi::kSampleTime | abi::kSampleAddr | abi::kSampleId |
                                    abi::kSampleStreamId | abi::kSampleCpu | abi::kSamplePeriod;
  return static_cast<std::size_t>(std::popcount(type & kBefore));
}

std::uint64_t spread(std::uint64_t hash, std::uint64_t word) { return (hash ^ word) * 0x9e3779b97f4a7c15; }

class Walk {  // what is done with a sample's chain
 public:
  virtual ~Walk() = default;
  virtual void chain(const std::uint64_t*, std::size_t) {}
  std::uint64_t hash = 0;
  std::uint64_t lines = 0;  // written
};

class Text : public Walk {
 public:
  Text() : null_(::open("/dev/null", O_WRONLY | O_CLOEXEC)), lines_(kLines * kFrameLine, 'x') {}
  void chain(const std::uint64_t* words, std::size_t count) override {
    put(lines_.data(), kSampleLine);
    for (std::size_t i = 0; i < count; ++i) {
      if (words[i] < abi::kContextMax)
        put(lines_.data() + (spread(0, words[i]) >> 48) % kLines * kFrameLine, kFrameLine);
    }
    if (used_ + kChunk / 8 < out_.size()) return;
    if (::write(null_.get(), out_.data(), used_) < 0) give_up("cannot write");
    used_ = 0;
  }

 private:
  static constexpr std::size_t kLines = 1 << 16;
  void put(const char* text, std::size_t size) {
    std::memcpy(out_.data() + used_, text, size);
    used_ += size;
    ++lines;
  }
  Fd null_;
  std::vector<char> lines_, out_ = std::vector<char>(2 * kChunk);
  std::size_t used_ = 0;
};

class Fold : public Walk {
 public:
  void chain(const std::uint64_t* words, std::size_t count) override {
    std::uint64_t key = count + 1;
    for (std::size_t i = 0; i < count; ++i) key = std::rotl(spread(key, words[i]), 29);
    std::size_t at = key % slots_.size();
    while (slots_[at].key != 0 && slots_[at].key != key) at = (at + 1) % slots_.size();
    slots_[at].key = key;
    ++slots_[at].count;
  }

 private:
  struct Slot {
    std::uint64_t key = 0, count = 0;
  };
  std::vector<Slot> slots_ = std::vector<Slot>(std::size_t{1} << 21);
};

void walk(const std::string& path, std::size_t before_chain, Walk& each, bool has_chains) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::uint64_t head[7] = {};
  if (::read(file.get(), head, sizeof head) != sizeof head) give_up(path + ": cannot be read");
  ::lseek(file.get(), static_cast<off_t>(head[5]), SEEK_SET);
  std::uint64_t left = head[6];
  std::vector<std::uint64_t> buffer(kChunk / sizeof(std::uint64_t));
  std::size_t kept = 0;  // words
  for (;;) {
    const std::size_t room = std::min<std::uint64_t>(kChunk - kept * 8, left);
    const ssize_t count = ::read(file.get(), buffer.data() + kept, room);
    if (count <= 0) return;
    left -= static_cast<std::uint64_t>(count);
    const std::size_t end = kept + static_cast<std::size_t>(count) / 8;
    std::size_t at = 0;
    while (at < end) {
      const std::size_t words = buffer[at] >> 51;  // the size's 16 bits, in words
      if (words == 0 || at + words > end) break;
      for (std::size_t i = 0; i < words; ++i) each.hash = each.hash * 31 + buffer[at + i];
      const bool is_sample = static_cast<std::uint32_t>(buffer[at]) == abi::kRecordSample;
      const std::size_t chain = at + 1 + before_chain;
      if (has_chains && is_sample && chain < at + words)
        each.chain(&buffer[chain + 1], std::min(buffer[chain], at + words - chain - 1));
      at += words;
    }
    kept = end - at;
    std::memmove(buffer.data(), buffer.data() + at, kept * 8);
  }
}

template <class Kind>
double milliseconds(const std::string& path, std::size_t before_chain, bool has_chains,
                    std::uint64_t& lines) {
  std::vector<double> took;
  for (int round = 0; round < 7; ++round) {
    const auto start = std::chrono::steady_clock::now();
    Kind kind;
    walk(path, before_chain, kind, has_chains);
    took.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    if (kind.hash == 0) give_up(path + ": no records were read");
    lines = kind.lines;
  }
  std::ranges::sort(took);
  return took[took.size() / 2];
}

}  // namespace
}  // namespace tacho::format

int main(int count, char** words) {
  using namespace tacho::format;
  if (count < 2) {
    std::fputs("usage: text_floor FILE...\n", stderr);
    return 1;
  }
  for (const std::string& path : std::vector<std::string>(words + 1, words + count)) {
    const std::size_t before = words_before_chain(path);
    std::uint64_t lines = 0, none = 0;
    const double walk = milliseconds<Walk>(path, before, false, none);
    const double fold = milliseconds<Fold>(path, before, true, none);
    const double text = milliseconds<Text>(path, before, true, lines);
    std::printf("%s: walk %.0f ms, text %.0f ms (%.2f M lines), fold %.0f ms\n", path.c_str(), walk, text,
                static_cast<double>(lines) / 1e6, fold);
  }
  return 0;
}
