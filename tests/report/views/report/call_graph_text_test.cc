#include "report/views/report/call_graph_text.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>

namespace tacho::report {
namespace {

// A row's chains, of functions with names of one letter. The texts here are what perf 6.1 draws for them.
struct Row {
  Row& chain(std::string_view letters, std::uint64_t period, std::uint64_t samples = 1) {
    auto& path = paths.emplace_back();
    for (const char letter : letters) path.push_back(function_of(letter));
    strands.push_back({path, period, samples});
    total += period;
    return *this;
  }
  FunctionId function_of(char letter) {
    for (const FunctionId id : table.ids()) {
      if (table[id].name()[0] == letter) return id;
    }
    Function function;
    const std::string_view name = texts.emplace_back(1, letter);
    function.named = &names.emplace_back(NamedFacts{.name = name, .shown_name = name});
    function.name_id = id_of<NameId>(names.size() - 1);
    function.start = static_cast<std::uint64_t>(letter);
    function.chain_key = id_of<ChainKeyId>(table.size());
    function.is_inlined = letter == 'i';
    return table.push_back(function);
  }
  std::string drawn(std::string_view g, std::uint64_t event_total, bool leaves_out_first = false) {
    GraphOptions options;
    EXPECT_TRUE(parse_graph_options(g, options));
    CallTree tree(table, options.key);
    tree.build(strands, graph_limit(options, event_total));
    TextBuffer out;
    const CallGraphText text(options, table, Names::Safe);
    text.write(out, tree,
               {.event_total = event_total, .row_total = total, .leaves_out_first = leaves_out_first});
    return std::string(out.view());
  }
  std::deque<std::string> texts;
  std::deque<NamedFacts> names;
  std::deque<std::vector<FunctionId>> paths;
  StableArray<Function, FunctionId> table;
  std::vector<Strand> strands;
  std::uint64_t total = 0;
};

constexpr std::string_view kTree =
    "            |\n"
    "            ---h\n"
    "               |          \n"
    "               |--60.00%--m\n"
    "               |          s\n"
    "               |          |          \n"
    "               |          |--40.00%--x\n"
    "               |          |          \n"
    "               |           --20.00%--w\n"
    "               |          \n"
    "                --20.00%--a\n"
    "                          m\n"
    "\n";

Row tree_row() {
  Row row;
  row.chain("hmsx", 40, 4).chain("hmsw", 20, 2).chain("ham", 20, 1);
  return row;
}

TEST(CallGraphText, BarsGoDownToTheLastSibling) { EXPECT_EQ(tree_row().drawn("graph", 100), kTree); }

TEST(CallGraphText, WhatTheSymbolColumnSaysIsNotToldTwice) {
  std::string expected(kTree.substr(kTree.find("               |          \n")));
  for (std::size_t at = 0; at < expected.size(); at = expected.find('\n', at) + 1) {
    if (expected[at] != '\n') expected.erase(at, 3);
  }
  EXPECT_EQ(tree_row().drawn("graph", 100, true), expected);
}

TEST(CallGraphText, SeveralRootsAreSiblings) {
  Row row;
  EXPECT_EQ(row.chain("ab", 30).chain("c", 10).drawn("graph", 40),
            "            |          \n"
            "            |--75.00%--a\n"
            "            |          b\n"
            "            |          \n"
            "             --25.00%--c\n"
            "\n");
}

TEST(CallGraphText, AnUnknownFrameIsItsAddressAndAnInlinedOneSaysSo) {
  Row row;
  row.chain("i", 10);
  Function unknown;
  unknown.start = 0x7f01;
  unknown.chain_key = ChainKeyId{1};
  row.table.push_back(unknown);
  unknown.start = 0;
  unknown.chain_key = ChainKeyId{2};
  row.table.push_back(unknown);
  row.paths.back().insert(row.paths.back().end(), {FunctionId{1}, FunctionId{2}});
  row.strands.back().frames = row.paths.back();
  EXPECT_EQ(row.drawn("graph", 10),
            "            |\n"
            "            ---i (inlined)\n"
            "               0x7f01\n"
            "               0\n"
            "\n");
}

TEST(CallGraphText, WithTheKeysAddressAndSourceLineFramesTellTheirs) {
  Row row;
  row.chain("ab", 10);
  Function known = row.table[FunctionId{0}], unknown = row.table[FunctionId{1}];
  const RareFacts known_line{.line = "main.c:12"}, unknown_line{.line = "+20"};
  const NamedFacts known_facts{.name = known.name(), .shown_name = known.name(), .rare = &known_line};
  const NamedFacts unknown_facts{.name = unknown.name(), .shown_name = unknown.name(), .rare = &unknown_line};
  known.named = &known_facts;
  known.has_line = true;
  known.chain_key = ChainKeyId{2};
  unknown.named = &unknown_facts;
  unknown.chain_key = ChainKeyId{3};
  row.table.push_back(known);
  row.table.push_back(unknown);
  row.paths.back() = {FunctionId{2}, FunctionId{3}};
  row.strands.back().frames = row.paths.back();
  EXPECT_EQ(row.drawn("address", 10), "            |\n            ---a main.c:12\n               b +20\n\n");
  EXPECT_EQ(row.drawn("srcline", 10), "            |\n            ---a main.c:12\n               b\n\n");
  EXPECT_EQ(row.drawn("function", 10), "            |\n            ---a\n               b\n\n");
}

TEST(CallGraphText, TheRestOfAFractalGraphIsShown) {
  Row row;
  row.chain("hx", 90, 9).chain("hy", 6, 3).chain("h", 4, 1);
  EXPECT_EQ(row.drawn("fractal,10", 1000),
            "            |\n"
            "            ---h\n"
            "               |          \n"
            "               |--90.00%--x\n"
            "                --10.00%--[...]\n"
            "\n");
  EXPECT_EQ(row.drawn("fractal,10,count", 1000),
            "            |\n"
            "            ---h\n"
            "               |          \n"
            "               |--9--x\n"
            "                --3--[...]\n"
            "\n");
}

TEST(CallGraphText, ThePrintLimitIsOfEachLevelAndOfTheStem) {
  EXPECT_EQ(tree_row().drawn("graph,0.5,1", 100),
            "            |\n"
            "            ---h\n"
            "               |          \n"
            "               |--60.00%--m\n"
            "               |          s\n"
            "               |          |          \n"
            "               |          |--40.00%--x\n"
            "\n");
}

TEST(CallGraphText, FlatAndFoldedShowEachChain) {
  Row row;
  row.chain("hm", 30, 3).chain("hmx", 50, 2).chain("ha", 1, 1);
  EXPECT_EQ(row.drawn("flat,5", 100),
            "           50.00%\n"
            "                h\n"
            "                m\n"
            "                x\n"
            "\n"
            "           80.00%\n"
            "                h\n"
            "                m\n"
            "\n");
  EXPECT_EQ(row.drawn("folded,5,period", 100), "50 h;m;x\n30 h;m\n");
  EXPECT_EQ(row.drawn("folded,0,2,count", 100), "2 h;m;x\n3 h;m\n");
}

TEST(CallGraphText, NothingHeavyEnoughIsNothing) {
  EXPECT_EQ(tree_row().drawn("graph,50", 1000), "");
  EXPECT_EQ(tree_row().drawn("none", 100), "");
}

TEST(GraphOptions, AWordMayBeCutShortAndTheFirstOneThatFitsCounts) {
  GraphOptions options;
  ASSERT_TRUE(parse_graph_options("fr,1.5,0x10,c,a,co", options));
  EXPECT_EQ(options.form, GraphForm::Fractal);
  EXPECT_EQ(options.min_percent, 1.5);
  EXPECT_EQ(options.print_limit, 16u);
  EXPECT_EQ(options.order, ChainOrder::Caller);
  EXPECT_TRUE(options.is_order_given);
  EXPECT_EQ(options.key, ChainKey::Address);
  EXPECT_EQ(options.value, GraphValue::Count);
}

TEST(GraphOptions, WhatIsNeitherWordNorNumberIsWrong) {
  for (const char* text : {"dwarf", "graph,x", "GRAPH", "0.5,3,x"}) {
    GraphOptions options;
    const auto parsed = parse_graph_options(text, options);
    ASSERT_FALSE(parsed) << text;
    EXPECT_TRUE(parsed.error().what.starts_with("--call-graph: '")) << parsed.error().what;
  }
}

TEST(GraphOptions, AfterNoneAFormMustBeNamed) {
  GraphOptions options;
  ASSERT_TRUE(parse_graph_options("caller,none,nonsense", options)) << "nothing is read after it";
  EXPECT_EQ(options.form, GraphForm::None);
  EXPECT_FALSE(parse_graph_options("0.1", options));
  ASSERT_TRUE(parse_graph_options("graph", options));
}

}  // namespace
}  // namespace tacho::report
