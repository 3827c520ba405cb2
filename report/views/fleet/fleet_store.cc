#include "report/views/fleet/fleet_store.h"

#include <charconv>
#include <utility>
#include <vector>

#include "report/database/clickhouse.h"
#include "report/database/sql_sections.h"

namespace tacho::report {
namespace {

class DuckDbStore : public FleetStore {
 public:
  explicit DuckDbStore(DuckDb database) : database_(std::move(database)) {}

  Result<> make_schema() override { return ask("schema", {}, {}); }

  Result<> load(const TableFiles& files) override {
    const auto sql = sql_section(kDuckDbSql, "load", sql_quoted(files.paths()));
    if (!sql) return sql.error();
    auto loaded = database_.run_sql(*sql, {{"capture", files.capture_id}});
    if (!loaded) (void)database_.run_sql("ROLLBACK");
    return loaded;
  }

  Result<> read_stacks(std::string_view section, const SqlValues& values,
                       const DuckDb::ListRow& row) override {
    const auto sql = sql_section(kDuckDbSql, section);
    if (!sql) return sql.error();
    return database_.read_lists(*sql, values, row);
  }

  Result<> ask(std::string_view section, const SqlValues& values, const SqlReader& reader) override {
    const auto sql = sql_section(kDuckDbSql, section);
    if (!sql) return sql.error();
    return database_.run_sql(*sql, values, reader);
  }

 private:
  DuckDb database_;
};

// "[1,2,3]"
void read_list(std::string_view list, std::vector<std::uint64_t>& numbers) {
  numbers.clear();
  const char* at = list.data();
  const char* const end = at + list.size();
  while (at != end) {
    std::uint64_t number = 0;
    const auto read = std::from_chars(at, end, number);
    if (read.ec == std::errc()) numbers.push_back(number);
    at = read.ptr == at ? at + 1 : read.ptr;
  }
}

class ClickHouseStore : public FleetStore {
 public:
  explicit ClickHouseStore(ClickHousePlace place) : server_(std::move(place)) {}

  Result<> make_schema() override { return run_all("schema", {}); }

  // There are no transactions: the capture's own row comes last, and what an interrupted load left is
  // removed.
  Result<> load(const TableFiles& files) override {
    const SqlValues capture{{"capture", files.capture_id}};
    if (auto cleared = run_all("clear", capture); !cleared) return cleared;
    for (const TableId table :
         {TableId::Samples, TableId::Stacks, TableId::Frames, TableId::Events, TableId::Losses})
      if (auto done = server_.insert(layout_of(table).name, files.path_of(table)); !done) return done;
    return server_.insert(layout_of(TableId::Captures).name, files.path_of(TableId::Captures));
  }

  Result<> read_stacks(std::string_view section, const SqlValues& values,
                       const DuckDb::ListRow& row) override {
    std::vector<std::uint64_t> frames;
    return ask(section, values,
               {.row =
                    [&](std::span<const SqlCell> cells) {
                      read_list(cells[0].value_or(""), frames);
                      const std::string_view value = cells[1].value_or("");
                      std::uint64_t number = 0;
                      std::from_chars(value.data(), value.data() + value.size(), number);
                      row(frames, number);
                    },
                .columns = 2});
  }

  Result<> ask(std::string_view section, const SqlValues& values, const SqlReader& reader) override {
    const auto sql = sql_section(kClickHouseSql, section);
    return sql ? server_.run_statement(*sql, values, reader) : Result<>(sql.error());
  }

 private:
  Result<> run_all(std::string_view section, const SqlValues& values) {
    const auto sql = sql_section(kClickHouseSql, section);
    if (!sql) return sql.error();
    for (const std::string& statement : sql_statements(*sql))
      if (auto done = server_.run_statement(statement, values); !done) return done;
    return Done{};
  }
  ClickHouse server_;
};

Result<std::unique_ptr<FleetStore>> open_store(const FleetPlace& place, FleetUse use) {
  if (place.is_server()) {
    auto server = ClickHousePlace::parse(place.database);
    if (!server) return std::move(server.error());
    return std::unique_ptr<FleetStore>(std::make_unique<ClickHouseStore>(std::move(*server)));
  }
  auto database = DuckDb::open(place.library, place.database,
                               use == FleetUse::Load ? DuckDb::Access::Write : DuckDb::Access::Read);
  if (!database) return std::move(database.error()).in(printable(place.database));
  return std::unique_ptr<FleetStore>(std::make_unique<DuckDbStore>(std::move(*database)));
}

}  // namespace

Result<bool> FleetStore::has_capture(const std::string& id) {
  bool is_there = false;
  auto asked = ask("has_capture", {{"capture", id}},
                   {.row = [&is_there](std::span<const SqlCell>) { is_there = true; }, .columns = 1});
  return asked ? Result<bool>(is_there) : Result<bool>(std::move(asked.error()));
}

Result<> check_fleet(const FleetPlace& place) {
  return place.is_server() ? Result<>(Done{}) : DuckDb::check(place.library);
}

Result<std::unique_ptr<FleetStore>> open_fleet(const FleetPlace& place, FleetUse use) {
  if (!place.is_server() && place.database.find("://") != std::string::npos)
    return use_error("--db: '" + printable(place.database) + "': a server is http://HOST:PORT/DATABASE");
  if (place.database.empty())
    return use_error("--db: name the fleet's database, a file or http://HOST:PORT/DATABASE");
  auto store = open_store(place, use);
  if (!store || use == FleetUse::Ask) return store;
  if (auto made = (*store)->make_schema(); !made)
    return std::move(made.error()).in(printable(place.database));
  return store;
}

}  // namespace tacho::report
