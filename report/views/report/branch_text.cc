#include "report/views/report/branch_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "report/output/terminal.h"

namespace tacho::report {

namespace {

struct BlockColumn {
  std::string_view header;
  std::size_t width;
};
constexpr BlockColumn kColumns[] = {{"Sampled Cycles%", 15},       {"Sampled Cycles", 14},
                                    {"Avg Cycles%", 11},           {"Avg Cycles", 10},
                                    {"[Program Block Range]", 70}, {"Shared Object", 20}};
constexpr std::size_t kLongestRange = 1023;  // bytes, as perf

struct BlockRow {
  const Function* function = nullptr;
  CycleBlock block;
};

// "873", "1.2K", "5.0M"
std::string rounded(std::uint64_t cycles) {
  constexpr double kThousand = 1000, kMillion = 1000000;
  const auto number = static_cast<double>(cycles);
  if (number >= kMillion) return fmt::format("{:.1f}M", number / kMillion);
  if (number >= kThousand) return fmt::format("{:.1f}K", number / kThousand);
  return std::to_string(cycles);
}

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// "file.c:12"; "FUNCTION+12" if the module has no lines; empty if it has lines, but none for this address.
std::string line_at(Resolver& resolver, const Location& location, Names names) {
  const symbolize::Frame& frame = resolver.frame(location);
  if (frame.line_state == symbolize::LineState::Known)
    return fmt::format("{}:{}", printable(frame.file.substr(frame.file.rfind('/') + 1), names), frame.line);
  if (frame.line_state == symbolize::LineState::Unknown) return {};
  return fmt::format("{}+{}", printable(frame.function, names), frame.shown_address - frame.function_start);
}

std::string range_of(Resolver& resolver, const CycleBlock& block, Names names) {
  Location first = block.last;
  first.ip.value -= block.end - block.start;
  const std::string from = line_at(resolver, first, names), to = line_at(resolver, block.last, names);
  return from.empty() || to.empty() ? fmt::format("[{:7x} -> {:7x}]", block.start, block.end)
                                    : fmt::format("[{} -> {}]", from, to).substr(0, kLongestRange);
}

// To perf, blocks of equal name and size are one, even in two modules: the first one counts. Blocks of equal
// share are sorted by name, descending.
std::vector<BlockRow> rows_of(const Entries& entries, std::span<const EntryId> rows, BlockCycles& cycles,
                              std::uint64_t& average_total) {
  using BlockKey = std::tuple<std::string_view, std::uint64_t, std::uint64_t>;
  std::map<BlockKey, BlockRow> blocks;
  std::unordered_map<SymbolId, std::vector<CycleBlock>> known;
  for (const EntryId row : rows) {
    const Function* const function = entries.facts(row).function;
    const auto [of_function, is_new] = known.try_emplace(function->symbol);
    if (is_new) of_function->second = cycles.blocks_of(*function);
    for (const CycleBlock& block : of_function->second) {
      average_total += block.cycles / block.branches;
      blocks.try_emplace({function->name(), block.start, block.end}, BlockRow{function, block});
    }
  }
  std::vector<BlockRow> all;
  all.reserve(blocks.size());
  for (const auto& [key, row] : blocks) all.push_back(row);
  std::ranges::stable_sort(all, std::greater(), [](const BlockRow& row) { return row.function->name(); });
  std::ranges::stable_sort(all, std::greater(), [&cycles](const BlockRow& row) {
    constexpr double kSteps = 100000;  // resolution of shares in perf
    return static_cast<std::int64_t>(share(row.block.cycles, cycles.total()) * kSteps);
  });
  return all;
}

void write_head(TextBuffer& out) {
  for (const bool is_name : {true, false}) {
    out.text("#");
    for (const auto& [header, width] : kColumns) {
      out.text(std::begin(kColumns)->header == header ? " " : "  ");
      out.text(is_name ? fmt::format("{:>{}}", header, width) : std::string(width, '.'));
    }
    out.character('\n');
  }
  out.text("#\n");
}

}  // namespace

void write_blocks(TextOutput& out, const Entries& entries, std::span<const EntryId> rows, BlockCycles& cycles,
                  Resolver& resolver, const TextOptions& options) {
  std::uint64_t average_total = 0;
  const auto all = rows_of(entries, rows, cycles, average_total);
  TextBuffer text;
  if (options.separator.empty()) write_head(text);
  std::size_t shown = 0;
  for (const BlockRow& row : all) {
    const double percent = 100 * share(row.block.cycles, cycles.total());
    if (percent < options.percent_limit) continue;
    if (options.top != 0 && shown++ == options.top) break;
    const std::uint64_t average = row.block.cycles / row.block.branches;
    const auto percents = [&](double number, std::size_t width) {
      const std::string cell =
          fmt::format("{:>{}}", fmt::format("{:.2f}%", number), options.separator.empty() ? width : 0);
      return options.has_colour ? coloured_share(number, cell) : cell;
    };
    const std::array<std::string, std::size(kColumns)> cells = {
        percents(percent, kColumns[0].width),
        rounded(row.block.cycles),
        percents(100 * share(average, average_total), kColumns[2].width),
        rounded(average),
        range_of(resolver, row.block, options.names),
        printable(row.function->module->short_name, options.names)};
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (options.separator.empty()) {
        text.text("  ");
        text.text(fmt::format("{:>{}}", cells[i], i == 0 || i == 2 ? 0 : kColumns[i].width));
      } else {
        if (i > 0) text.text(options.separator);
        text.text(cells[i]);
      }
    }
    text.character('\n');
  }
  out.text(text.view());
}

void BranchStatistics::add_branch(std::uint64_t from, std::uint64_t to, BranchType type,
                                  std::uint64_t count) {
  constexpr unsigned kPage = 12, kLargePage = 21;  // bits of an address within
  if (type.type == BranchType::kUnknown || from == 0) return;
  (type.type == BranchType::kExtended ? extended_[type.extended] : types_[type.type]) += count;
  if (type.type == BranchType::kConditional) (to > from ? forward_ : backward_) += count;
  if (from >> kLargePage != to >> kLargePage) {
    cross_2m_ += count;
  } else if (from >> kPage != to >> kPage) {
    cross_4k_ += count;
  }
}

// As perf, whose last line has no line end, and which adds extended types to no total.
void BranchStatistics::write(TextOutput& out) const {
  const std::uint64_t total = std::accumulate(types_.begin(), types_.end(), std::uint64_t{0});
  if (total == 0) return;
  out.text("\n#\n# Branch Statistics:\n#");
  const auto line = [&](std::string_view name, std::uint64_t count) {
    if (count == 0) return;
    out.text(fmt::format("\n{:>8}: {:5.1f}%", name, percent_of(count, total)));
  };
  line("COND_FWD", forward_);
  line("COND_BWD", backward_);
  line("CROSS_4K", cross_4k_);
  line("CROSS_2M", cross_2m_);
  for (unsigned type = 0; type < BranchType::kCount; ++type) line(branch_type_name({type, 0}), types_[type]);
  for (unsigned type = 0; type < BranchType::kCount; ++type)
    line(branch_type_name({BranchType::kExtended, type}), extended_[type]);
}

}  // namespace tacho::report
