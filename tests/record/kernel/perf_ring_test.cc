#include "record/kernel/perf_ring.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <string>
#include <vector>

namespace tacho::record {
namespace {

constexpr std::size_t kPage = 4096;

// A ring of one page whose kernel is the test.
struct FakeRing {
  FakeRing() : memory(mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    page()->data_offset = kPage;
    page()->data_size = kPage;
  }
  perf_event_mmap_page* page() const { return static_cast<perf_event_mmap_page*>(memory); }
  void write(std::string_view text) {
    for (const char letter : text) {
      static_cast<char*>(memory)[kPage + page()->data_head % kPage] = letter;
      page()->data_head = page()->data_head + 1;
    }
  }
  void* memory;
};

std::vector<std::string> drained(PerfRing& ring) {
  std::vector<std::string> runs;
  ring.drain([&](format::Bytes run) { runs.emplace_back(format::as_text(run)); });
  return runs;
}

TEST(PerfRing, GivesWhatIsNewAndFreesIt) {
  FakeRing fake;
  PerfRing ring(format::Mapping(fake.memory, 2 * kPage));
  EXPECT_TRUE(drained(ring).empty());
  fake.write("abc");
  EXPECT_EQ(drained(ring), std::vector<std::string>{"abc"});
  EXPECT_EQ(fake.page()->data_tail, 3u);
  EXPECT_TRUE(drained(ring).empty()) << "nothing is given twice";
}

TEST(PerfRing, ARunThatWrapsComesAsTwo) {
  FakeRing fake;
  PerfRing ring(format::Mapping(fake.memory, 2 * kPage));
  fake.write(std::string(kPage - 2, '.'));
  drained(ring);
  fake.write("wrap");
  EXPECT_EQ(drained(ring), (std::vector<std::string>{"wr", "ap"}));
  EXPECT_EQ(fake.page()->data_tail, kPage + 2);
}

TEST(PerfRing, AFullRingIsGivenWhole) {
  FakeRing fake;
  PerfRing ring(format::Mapping(fake.memory, 2 * kPage));
  fake.write("x");
  drained(ring);
  fake.write(std::string(kPage, 'y'));
  const auto runs = drained(ring);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].size() + runs[1].size(), kPage);
}

}  // namespace
}  // namespace tacho::record
