#include "symbolize/elf/stripped_copy.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "format/base/file.h"
#include "symbolize/elf/elf_file.h"
#include "unwind/elf_image.h"

namespace tacho::symbolize {
namespace {

constexpr std::uint64_t kPlenty = std::uint64_t{1} << 30;

Result<std::vector<std::byte>> copy_of(const std::string& path, std::uint64_t most = kPlenty) {
  const auto file = format::open_input(path);
  if (!file) return file.error();
  return stripped_copy(*file, most);
}

std::uint64_t size_of(const std::string& path) {
  std::ifstream file(path, std::ios::ate | std::ios::binary);
  return static_cast<std::uint64_t>(file.tellg());
}

TEST(StrippedCopy, HasWhatIsMappedSymbolsAndUnwindInformation) {
  const auto copy = copy_of("/proc/self/exe");
  ASSERT_TRUE(copy) << copy.error().what;
  EXPECT_LE(copy->size(), size_of("/proc/self/exe") + 4096);
  const auto whole = format::read_file("/proc/self/exe");
  ASSERT_TRUE(whole);
  const auto elf = ElfFile::in_memory(*copy), original = ElfFile::in_memory(*whole);
  ASSERT_TRUE(elf) << elf.error().what;
  ASSERT_TRUE(original);
  EXPECT_EQ(elf->build_id(), original->build_id());
  EXPECT_EQ(elf->has_full_symbols(), original->has_full_symbols());
  EXPECT_FALSE(elf->has_lines());
  const auto image = unwind::ElfImage::in_memory(*copy), from = unwind::ElfImage::in_memory(*whole);
  ASSERT_TRUE(image) << image.error().what;
  ASSERT_TRUE(from);
  const auto frames = image->section(".eh_frame"), wanted = from->section(".eh_frame");
  ASSERT_TRUE(frames && wanted);
  EXPECT_EQ(frames->bytes, wanted->bytes);
}

// Looked at to their ends they would be 500 GB.
TEST(StrippedCopy, NamesWithoutAnEndCostNoTime) {
  constexpr std::size_t kSections = 32000, kName = std::size_t{1} << 24;
  Elf64_Ehdr head{};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_ident[EI_DATA] = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  head.e_shentsize = sizeof(Elf64_Shdr);
  head.e_shnum = kSections;
  head.e_shoff = sizeof head;
  std::vector<Elf64_Shdr> sections(kSections);
  for (Elf64_Shdr& section : sections) section.sh_type = SHT_PROGBITS;
  sections[0].sh_offset = sizeof head + kSections * sizeof(Elf64_Shdr);
  sections[0].sh_size = kName;
  const std::string path = testing::TempDir() + "tacho-long-names-" + std::to_string(::getpid());
  std::ofstream(path, std::ios::binary)
          .write(reinterpret_cast<const char*>(&head), sizeof head)
          .write(reinterpret_cast<const char*>(sections.data()), kSections * sizeof(Elf64_Shdr))
      << std::string(kName, 'x');
  const auto copy = copy_of(path);
  ::unlink(path.c_str());
  ASSERT_TRUE(copy) << copy.error().what;
  EXPECT_LT(copy->size(), kName);
}

TEST(StrippedCopy, OfALimitedSizeOrOfNoElfFileIsAnError) {
  const auto small = copy_of("/proc/self/exe", 4096);
  ASSERT_FALSE(small);
  EXPECT_EQ(small.error().code, EFBIG);
  EXPECT_FALSE(copy_of("/etc/passwd"));
  EXPECT_FALSE(copy_of("/dev/null"));
}

// Whatever stands in its headers, it ends, and takes no more than it may.
TEST(StrippedCopy, OfDamagedHeadersTakesNoMoreThanItMay) {
  const auto whole = format::read_file("/proc/self/exe");
  ASSERT_TRUE(whole);
  const std::string path = testing::TempDir() + "tacho-damaged-elf-" + std::to_string(::getpid());
  std::srand(1);
  for (int round = 0; round < 200; ++round) {
    auto bytes = *whole;
    bytes.resize(std::min<std::size_t>(bytes.size(), std::size_t{1} << 16));
    for (int i = 0; i < 8; ++i) {
      const std::size_t head = sizeof(Elf64_Ehdr) + 12 * sizeof(Elf64_Phdr);
      bytes[5 + static_cast<std::size_t>(std::rand()) % (head - 5)] = static_cast<std::byte>(std::rand());
    }
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    const auto copy = copy_of(path, std::uint64_t{1} << 20);
    if (copy) {
      EXPECT_LE(copy->size(), (std::uint64_t{1} << 20) + 4096);
    }
  }
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace tacho::symbolize
