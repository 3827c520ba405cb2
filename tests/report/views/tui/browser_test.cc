#include "report/views/tui/browser.h"

#include <gtest/gtest.h>

#include <ctime>
#include <string>

namespace tacho::report {
namespace {

// main calls a, which calls x and y, and b; shares as perf shows them. Every second row has that graph.
class MadeRows : public BrowsedRows {
 public:
  explicit MadeRows(std::size_t count) : count_(count) {}
  std::size_t size() const override { return count_; }
  std::vector<BrowsedColumn> columns() const override {
    return {{.header = "Overhead", .width = 8, .is_right = true, .is_share = true},
            {.header = "Shared Object", .width = 30, .is_name = true},
            {.header = "Symbol", .width = 40, .is_name = true}};
  }
  std::vector<Cell> cells(std::size_t row) const override {
    return {{"  12.50%", 12.5}, {"a_shared_object_of_some_length", 0}, {"function" + std::to_string(row), 0}};
  }
  std::string identity(std::size_t row) const override { return "function" + std::to_string(row + first); }
  bool has_graph(std::size_t row) const override { return row % 2 == 0; }
  std::vector<BrowsedNode> graph(std::size_t) const override {
    return {{.frames = {}, .functions = {}, .share = "", .first_child = 1, .children = 1},
            {.frames = {"start", "main"},
             .functions = {FunctionId{0}, FunctionId{1}},
             .share = "",
             .first_child = 2,
             .children = 2},
            {.frames = {"a", "aa"},
             .functions = {FunctionId{2}, FunctionId{3}},
             .share = "60.00%",
             .first_child = 4,
             .children = 2},
            {.frames = {"b"}, .functions = {FunctionId{4}}, .share = "40.00%"},
            {.frames = {"x"}, .functions = {FunctionId{5}}, .share = "40.00%"},
            {.frames = {"y"}, .functions = {FunctionId{6}}, .share = "20.00%"}};
  }

  std::size_t first = 0;  // the function of the first row

 private:
  std::size_t count_;
};

std::string drawn(Browser& browser, ScreenSize size) {
  Frame frame(size);
  browser.draw(frame, 0, size.height);
  std::string text;
  for (const FrameRow& row : frame.rows) {
    std::string line;
    for (const StyledText& run : row.runs) line = padded_to(line, run.column) + run.text;
    line.erase(line.find_last_not_of(' ') + 1);
    text += (row.is_selected ? ">" : "") + line + "\n";
  }
  return text;
}

Browser& pressed(Browser& browser, std::string_view keys) {
  for (const char key : keys) (void)browser.on_key({.key = static_cast<Key>(key), .size = {}});
  return browser;
}
void press(Browser& browser, Key key) { (void)browser.on_key({.key = key, .size = {}}); }

TEST(Browser, OpensACallGraphLevelByLevel) {
  const MadeRows rows(2);
  Browser browser(rows);
  press(browser, Key::Enter);
  EXPECT_EQ(drawn(browser, {80, 6}),
            "  Overhead  Shared Object                   Symbol\n"
            ">-   12.50%  a_shared_object_of_some_length  function0\n"
            "     start\n"
            "   + main\n"
            "    12.50%  a_shared_object_of_some_length  function1\n"
            "\n");
}

TEST(Browser, RowsThatAreMadeAnewAreOpenAsBefore) {
  const MadeRows rows(30);
  Browser browser(rows);
  for (int i = 0; i < 4; ++i) press(browser, Key::Down);
  pressed(browser, "e");
  press(browser, Key::Down);
  const std::string before = drawn(browser, {80, 20});
  const Browser::Memory memory = browser.remember();
  // The same function is two rows up now.
  MadeRows anew(30);
  anew.first = 2;
  Browser other(anew);
  other.restore(memory);
  EXPECT_EQ(other.cursor(), (Browser::Position{2, 1}));
  const std::string after = drawn(other, {80, 20});
  EXPECT_NE(after.find(">     start\n   - main\n      - 60.00% a\n"), std::string::npos) << after;
  // Gone: closed, and the cursor is at the first row.
  MadeRows others(30);
  others.first = 100;
  Browser third(others);
  third.restore(memory);
  EXPECT_EQ(third.cursor(), Browser::Position());
  EXPECT_EQ(drawn(third, {80, 20}).find("start"), std::string::npos);
}

TEST(Browser, ACursorThatWasNotMovedStaysAtTheFirstRow) {
  const MadeRows rows(5);
  Browser browser(rows);
  MadeRows anew(5);
  anew.first = 3;
  Browser other(anew);
  other.restore(browser.remember());
  EXPECT_EQ(other.cursor(), Browser::Position());
}

TEST(Browser, OpensAllOfItAsPerfDrawsIt) {
  const MadeRows rows(1);
  Browser browser(rows);
  EXPECT_EQ(drawn(pressed(browser, "e"), {120, 9}),
            "  Overhead  Shared Object                   Symbol\n"
            ">-   12.50%  a_shared_object_of_some_length  function0\n"
            "     start\n"
            "   - main\n"
            "      - 60.00% a\n"
            "         - aa\n"
            "              40.00% x\n"
            "              20.00% y\n"
            "        40.00% b\n");
  // A node of several frames closes to its first one.
  browser.move_to({0, 3});
  press(browser, Key::Enter);
  browser.move_to({0, 2});
  EXPECT_EQ(browser.function_at_cursor(), FunctionId{1});
}

TEST(Browser, LeftClosesOrGoesToTheParent) {
  const MadeRows rows(1);
  Browser browser(rows);
  pressed(browser, "e");
  browser.move_to({0, 7});
  EXPECT_EQ(browser.function_at_cursor(), FunctionId{4});  // b
  press(browser, Key::Left);
  EXPECT_EQ(browser.cursor().line, 2u) << "main, which called it";
  press(browser, Key::Left);
  EXPECT_EQ(browser.cursor().line, 2u);
  EXPECT_EQ(drawn(browser, {80, 5}).find("60.00%"), std::string::npos) << "it is closed now";
  press(browser, Key::Left);
  EXPECT_EQ(browser.cursor(), (Browser::Position{0, 0}));
  press(browser, Key::Left);
  EXPECT_EQ(drawn(browser, {80, 3}).find("start"), std::string::npos);
}

TEST(Browser, ACursorStaysInSight) {
  const MadeRows rows(1000);
  Browser browser(rows);
  press(browser, Key::End);
  std::string text = drawn(browser, {80, 10});
  EXPECT_NE(text.find(">    12.50%  a_shared_object_of_some_length  function999"), std::string::npos) << text;
  EXPECT_NE(text.find("function991"), std::string::npos) << "no empty lines below";
  press(browser, Key::PageUp);
  press(browser, Key::Up);
  text = drawn(browser, {80, 10});
  EXPECT_NE(text.find(">+   12.50%  a_shared_object_of_some_length  function990"), std::string::npos) << text;
  press(browser, Key::Home);
  EXPECT_EQ(drawn(browser, {80, 10}).find(">"), drawn(browser, {80, 10}).find("\n") + 1);
}

TEST(Browser, ColumnsFitAnyWidth) {
  const MadeRows rows(3);
  Browser browser(rows);
  pressed(browser, "E");
  for (std::uint16_t width = 20; width < 130; ++width)
    for (std::uint16_t height = 1; height < 12; ++height) {
      Frame frame({width, height});
      browser.draw(frame, 0, height);
      for (const FrameRow& row : frame.rows)
        for (const StyledText& run : row.runs) EXPECT_LE(run.column + columns_of(run.text), width);
    }
  EXPECT_NE(drawn(browser, {60, 12}).find("a_shared_ob..ome_length"), std::string::npos)
      << drawn(browser, {60, 12});
  pressed(browser, "w");
  EXPECT_NE(drawn(browser, {60, 12}).find("a_shared_object_of_some_length"), std::string::npos);
}

TEST(Browser, AMillionRowsScrollWithoutAStutter) {
  const MadeRows rows(1'000'000);
  Browser browser(rows);
  pressed(browser, "E");
  press(browser, Key::End);
  const std::clock_t start = std::clock();
  for (int i = 0; i < 1000; ++i) {
    press(browser, i % 3 == 0 ? Key::PageUp : Key::Up);
    (void)drawn(browser, {200, 60});
  }
  EXPECT_LT(std::clock() - start, 10 * CLOCKS_PER_SEC) << "10 ms of CPU time a key";
}

TEST(Browser, NoRowsAreNoTrouble) {
  const MadeRows rows(0);
  Browser browser(rows);
  pressed(browser, "eEcC+- Hw");
  for (const Key key : {Key::Up, Key::Down, Key::End, Key::PageUp, Key::Enter, Key::Left, Key::Right})
    press(browser, key);
  EXPECT_NE(drawn(browser, {40, 5}).find("no rows"), std::string::npos);
}

}  // namespace
}  // namespace tacho::report
