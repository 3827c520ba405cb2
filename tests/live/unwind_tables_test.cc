// Tables beside the program that walks stacks, in the kernel.
#include "record/stacks/unwind_tables.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "bpf/unwinder/stack_walker.h"
#include "format/base/file.h"

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
    tables_ = std::make_unique<UnwindTables>(*walker_, std::uint64_t{4} << 20, reader_);
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

  std::shared_ptr<ForeignReader> reader_ = ForeignReader::start();
  std::unique_ptr<bpf::StackWalker> walker_;
  std::unique_ptr<UnwindTables> tables_;
};

TEST_F(UnwindTablesLive, AFileHasOneNumberAndItsTableComes) {
  MappedFile own;
  own.name = std::filesystem::read_symlink("/proc/self/exe")
                 .string();  // a link names no mapping, and is not followed
  auto exe = reader_->open_file({"", "/proc/self/exe"}, "exe");
  ASSERT_TRUE(exe);
  own.build_id = build_id_of(*exe);
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

// A copy of a program that is another one by its build id.
void copy_as_another(const std::filesystem::path& from, const std::filesystem::path& to,
                     std::uint32_t number) {
  std::string bytes = format::read_file(from) ? std::string(format::as_text(*format::read_file(from))) : "";
  const std::size_t note = bytes.find(std::string("\4\0\0\0\x14\0\0\0\3\0\0\0GNU\0", 16));
  ASSERT_NE(note, std::string::npos) << from;
  std::memcpy(bytes.data() + note + 16, &number, sizeof number);
  std::ofstream(to, std::ios::binary) << bytes;
}

// Each that goes has to rest: one after another they took half a second each, and the libraries of a compiler
// had no table for ten seconds.
TEST_F(UnwindTablesLive, AllThatMakesRoomForALargeTableGoesAtOnce) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("tables_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const auto built = [&](const std::filesystem::path& path) {
    MappedFile copy;
    copy.name = path;
    auto opened = reader_->open_file({"/", path}, path);
    EXPECT_TRUE(opened);
    if (opened) copy.build_id = build_id_of(*opened);
    copy.process = static_cast<std::uint32_t>(getpid());
    const std::uint32_t number = tables_->module_of(copy);
    EXPECT_TRUE(tables_->wait_for(number, kPatience));
    return number;
  };
  std::uint32_t copies = 0;
  for (; tables_->facts().evicted == 0 && copies < 1000; ++copies) {
    const auto path = folder / "small";
    copy_as_another("/bin/ls", path, copies);
    (void)built(path);
  }
  const std::size_t evicted = tables_->facts().evicted;
  EXPECT_GT(evicted, 2u) << "room for more than one, after " << copies;
  const auto begin = std::chrono::steady_clock::now();
  copy_as_another(std::filesystem::canonical("/proc/self/exe"), folder / "large", 1);
  EXPECT_EQ(state_of(built(folder / "large")), static_cast<std::uint32_t>(TACHO_MODULE_READY));
  const auto more = tables_->facts().evicted - evicted;
  if (more > 4) {
    EXPECT_LT(std::chrono::steady_clock::now() - begin, more * IdRangeAllocator::kQuarantine);
  }
  std::filesystem::remove_all(folder);
}

// A file of a file system whose server hangs.
// After the first sample a table is built when a stack needs it.
TEST_F(UnwindTablesLive, ProcessesThatWereNotReadBeforeTheFirstSampleAreLeftOut) {
  std::promise<void> answer;
  const auto answered = answer.get_future().share();
  std::atomic<int> of_parent = 0;
  const auto parent = static_cast<std::uint32_t>(getppid());
  const auto waits = [&](const MappedFile& file, const unwind::RowLimits&) -> Result<FileTable> {
    answered.wait();
    if (file.process == parent) ++of_parent;
    return Error{"none"};
  };
  tables_ = std::make_unique<UnwindTables>(*walker_, std::uint64_t{4} << 20, reader_, waits);
  ASSERT_TRUE(tables_->start());  // the thread waits in the vdso
  const int process = getppid();
  tables_->look_at({&process, 1});
  tables_->look_no_further();
  answer.set_value();
  EXPECT_TRUE(tables_->wait(kPatience));
  EXPECT_EQ(of_parent, 0);
  tables_->look_at({&process, 1});
  EXPECT_TRUE(tables_->wait(kPatience));
  EXPECT_GT(of_parent, 0);
}

TEST_F(UnwindTablesLive, ATableThatStacksNeedIsBuiltFirst) {
  std::promise<void> answer;
  const auto answered = answer.get_future().share();
  std::atomic<bool> has_begun = false;
  std::vector<std::string> built;
  const auto waits = [&](const MappedFile& file, const unwind::RowLimits&) -> Result<FileTable> {
    has_begun = true;
    answered.wait();
    built.push_back(file.name);
    return Error{"none"};
  };
  tables_ = std::make_unique<UnwindTables>(*walker_, std::uint64_t{4} << 20, reader_, waits);
  ASSERT_TRUE(tables_->start());
  while (!has_begun) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // in the vdso
  for (const std::uint32_t number : {1, 2}) (void)tables_->module_of(file(number));
  walker_->modules()[tables_->module_of(file(3))].last_used = 1;  // as a walk leaves it
  answer.set_value();
  EXPECT_TRUE(tables_->wait(kPatience));
  EXPECT_EQ(built, (std::vector<std::string>{"[vdso]", "/nowhere/3", "/nowhere/1", "/nowhere/2"}));
}

TEST_F(UnwindTablesLive, AThreadThatHangsInAFileIsLeftBehind) {
  std::promise<void> answer;
  const auto answered = answer.get_future().share();
  std::atomic<bool> is_asked = false;
  const auto hangs = [&](const MappedFile& file, const unwind::RowLimits& limits) -> Result<FileTable> {
    if (file.name == "[vdso]") return table_of_file(file, *reader_, limits);
    is_asked = true;
    answered.wait();
    return Error{"gone", kNotOpened};
  };
  tables_ = std::make_unique<UnwindTables>(*walker_, std::uint64_t{4} << 20, reader_, hangs);
  ASSERT_TRUE(tables_->start());
  const std::uint32_t number = tables_->module_of(file(1));
  while (!is_asked) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_NE(tables_->module_of(file(2)), number) << "others may ask meanwhile";
  EXPECT_FALSE(tables_->wait_for(number, std::chrono::milliseconds(10)));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(tables_->end_thread());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kPatience);
  answer.set_value();
  EXPECT_TRUE(tables_->end_thread()) << "it ends when it can";
}

}  // namespace
}  // namespace tacho::record
