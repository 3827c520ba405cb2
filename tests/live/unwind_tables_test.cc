// Tables beside the program that walks stacks, in the kernel.
#include "record/stacks/unwind_tables.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "bpf/stack_walker.h"

namespace tacho::record {
namespace {

constexpr std::chrono::seconds kPatience{20};

class UnwindTablesLive : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root";
    auto loaded = bpf::StackWalker::load({}, {});
    if (!loaded) GTEST_SKIP() << loaded.error().what;
    walker_ = std::make_unique<bpf::StackWalker>(std::move(*loaded));
    if (!walker_->reads_mappings()) GTEST_SKIP() << "this kernel's mappings are not read";
    tables_ = std::make_unique<UnwindTables>(*walker_, std::uint64_t{4} << 20);
    ASSERT_TRUE(tables_->start());
  }
  static MappedFile file(std::uint32_t number) {
    MappedFile made;
    made.build_id.size = 20;
    std::memcpy(made.build_id.bytes.data(), &number, sizeof number);
    made.name = "/nowhere/" + std::to_string(number);
    made.process = 1;
    made.start = std::uint64_t{number} << 12;
    return made;
  }
  std::uint32_t state_of(std::uint32_t module) const { return walker_->modules()[module].state; }

  std::unique_ptr<bpf::StackWalker> walker_;
  std::unique_ptr<UnwindTables> tables_;
};

TEST_F(UnwindTablesLive, AFileHasOneNumberAndItsTableComes) {
  MappedFile own;
  own.name = "/proc/self/exe";
  own.build_id = build_id_of(*format::open_input("/proc/self/exe"));
  own.process = static_cast<std::uint32_t>(getpid());
  const std::uint32_t number = tables_->module_of(own);
  EXPECT_GT(number, static_cast<std::uint32_t>(TACHO_MODULE_OF_VDSO));
  EXPECT_EQ(tables_->module_of(own), number);
  ASSERT_TRUE(tables_->wait_for(number, kPatience));
  EXPECT_EQ(state_of(number), static_cast<std::uint32_t>(TACHO_MODULE_READY));
  EXPECT_EQ(state_of(TACHO_MODULE_OF_VDSO), static_cast<std::uint32_t>(TACHO_MODULE_READY));
}

// Soon there were more files than numbers: conftest and a.out of every build.
TEST_F(UnwindTablesLive, NumbersOfFilesThatNoStackLeadsToAreGivenOutAgain) {
  constexpr std::uint32_t kFiles = TACHO_MOST_MODULES + 2000;
  std::set<std::uint32_t> numbers;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (std::uint32_t i = 0; i < kFiles;) {
    const std::uint32_t number = tables_->module_of(file(i));
    if (number == UnwindTables::kBare) {  // all are in use, or rest
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "after " << i << " files";
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      continue;
    }
    ASSERT_GT(number, static_cast<std::uint32_t>(TACHO_MODULE_OF_VDSO)) << "the vdso keeps its own";
    numbers.insert(number);
    ++i;
  }
  EXPECT_LE(numbers.size(), static_cast<std::size_t>(TACHO_MOST_MODULES));
  EXPECT_TRUE(tables_->wait(kPatience));
  EXPECT_EQ(state_of(TACHO_MODULE_OF_VDSO), static_cast<std::uint32_t>(TACHO_MODULE_READY));
  const std::uint32_t last = tables_->module_of(file(kFiles - 1));  // looked for again, in another process
  EXPECT_TRUE(tables_->wait_for(last, kPatience));
  EXPECT_EQ(state_of(last), static_cast<std::uint32_t>(TACHO_MODULE_BARE)) << "there is no such file";
}

}  // namespace
}  // namespace tacho::record
