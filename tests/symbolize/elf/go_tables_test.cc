#include "symbolize/elf/go_tables.h"

#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "symbolize/elf/module_files.h"
#include "tests/symbolize/elf/go_program.h"
#include "tests/symbolize/folder.h"

namespace tacho::symbolize {
namespace {

using test::GoForm;
using test::GoProgram;

std::optional<GoTables> tables_of(const std::string& file) {
  const auto bytes = std::as_bytes(std::span(file));
  auto image = unwind::ElfImage::in_memory({bytes.begin(), bytes.end()}, unwind::ElfImage::Width::Any);
  return image ? GoTables::find_in(std::move(*image)) : std::nullopt;
}

std::string text_of(const std::vector<Call>& calls) {
  std::string text;
  for (const Call& call : calls)
    text +=
        std::string(call.function) + " " + std::string(call.file) + ":" + std::to_string(call.line) + "\n";
  return text;
}

std::string go_calls_at(LineSource& tables, std::uint64_t address) {
  std::vector<Call> calls;
  tables.find_calls({address}, {}, UseSymbolName::Outermost, calls);
  return text_of(calls);
}

void check_program(const GoForm& form) {
  auto tables = tables_of(GoProgram(form).file());
  ASSERT_TRUE(tables);
  ASSERT_EQ(tables->size(), 2u);
  const auto run = tables->function_at(0), main = tables->function_at(1);
  ASSERT_TRUE(run && main);
  EXPECT_EQ(run->name, "main.run");
  EXPECT_EQ(std::pair(run->start, run->end), std::pair(GoProgram::kText, GoProgram::kMain));
  EXPECT_EQ(main->name, "main.main");
  EXPECT_EQ(go_calls_at(*tables, GoProgram::kText), "main.run /src/run.go:10\n");
  EXPECT_EQ(go_calls_at(*tables, GoProgram::kText + 0x2f),
            "main.scaled /src/lib.go:21\nmain.run /src/run.go:11\n");
  EXPECT_EQ(go_calls_at(*tables, GoProgram::kText + 0x30),
            "main.twice /src/lib.go:31\nmain.scaled /src/lib.go:21\nmain.run /src/run.go:11\n");
  EXPECT_EQ(go_calls_at(*tables, GoProgram::kText + 0x40), "main.run /src/run.go:12\n");
  EXPECT_EQ(go_calls_at(*tables, GoProgram::kEnd - 1), "main.main /src/run.go:40\n");
  EXPECT_EQ(go_calls_at(*tables, GoProgram::kEnd), "");
  EXPECT_EQ(go_calls_at(*tables, GoProgram::kText - 1), "");
  EXPECT_EQ(tables->missing_reason(), "");
}

// The versions differ in the header, the records of functions, and where inlined calls are.
std::vector<GoForm> go_versions() {
  return {{.magic = 0xfffffffb, .inline_index = 1, .tree_index = 2, .call_size = 16},  // Go 1.9
          {.magic = 0xfffffffb, .inline_index = 1, .tree_index = 2},                   // Go 1.12
          {.magic = 0xfffffffb, .tree_index = 4},                                      // Go 1.13
          {.magic = 0xfffffffa},                                                       // Go 1.16
          {.magic = 0xfffffff0},                                                       // Go 1.18
          {.magic = 0xfffffff1}};                                                      // Go 1.20
}

TEST(GoTables, EveryVersionGivesFunctionsLinesAndInlinedCalls) {
  for (GoForm form : go_versions()) {
    for (const std::uint8_t word : {std::uint8_t{4}, std::uint8_t{8}}) {
      for (const bool is_swapped : {false, true}) {
        SCOPED_TRACE(testing::Message() << std::hex << form.magic << " tree " << int{form.tree_index}
                                        << " word " << int{word} << (is_swapped ? " swapped" : ""));
        form.word = word;
        form.is_swapped = is_swapped;
        check_program(form);
      }
    }
  }
}

TEST(GoTables, AFileWithoutSectionHeadersIsSearched) {
  for (GoForm form : go_versions()) {
    SCOPED_TRACE(form.magic);
    form.has_sections = false;
    check_program(form);
  }
}

// A table says anything: every fifth byte is changed in turn, by two values.
TEST(GoTables, DamagedTablesCostNamesOnly) {
  constexpr std::size_t kTables = 0x2000;
  for (const GoForm& form : go_versions()) {
    const std::string whole = GoProgram(form).file();
    for (std::size_t at = kTables; at < whole.size(); at += 5) {
      for (const char value : {'\xff', '\x7f'}) {
        std::string changed = whole;
        changed[at] = value;
        auto tables = tables_of(changed);
        if (!tables) continue;
        for (std::uint64_t address = GoProgram::kText; address < GoProgram::kEnd; address += 0x10)
          (void)go_calls_at(*tables, address);
      }
    }
    for (std::size_t size = kTables; size < whole.size(); size += 3) (void)tables_of(whole.substr(0, size));
  }
}

TEST(GoTables, OtherProgramsHaveNone) {
  auto image = unwind::ElfImage::open(std::move(*format::open_input("/proc/self/exe")));
  ASSERT_TRUE(image);
  EXPECT_FALSE(GoTables::find_in(std::move(*image)));
}

TEST(GoTables, AProgramWithoutSymbolsHasTheirs) {
  test::Folder folder;
  folder.write("/demo", GoProgram({}).file());
  const std::string path = folder.path() + "/demo";
  Module module;
  module.kind = ModuleKind::User;
  module.path = path;
  const ModuleFiles files(DebugFiles(""), nullptr, nullptr);
  auto symbols = files.symbols(module);
  ASSERT_TRUE(symbols) << symbols.error().what;
  EXPECT_TRUE(symbols->is_full);
  EXPECT_FALSE(symbols->missing_reason);
  const Symbol* const found = symbols->table.find_symbol(0x1090);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->name, "main.main");
  EXPECT_EQ(found->start, 0x1080u);
  EXPECT_EQ(found->end, 0x1100u);
  auto lines = files.lines(module);
  ASSERT_TRUE(lines && *lines);
  EXPECT_EQ(go_calls_at(**lines, GoProgram::kText + 0x20),
            "main.scaled /src/lib.go:21\nmain.run /src/run.go:11\n");
}

}  // namespace
}  // namespace tacho::symbolize
