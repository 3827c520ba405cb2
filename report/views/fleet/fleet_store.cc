#include "report/views/fleet/fleet_store.h"

#include <utility>

#include "report/database/sql_sections.h"

namespace tacho::report {
namespace {

class DuckDbStore : public FleetStore {
 public:
  explicit DuckDbStore(DuckDb database) : database_(std::move(database)) {}

  Result<> make_schema() override { return ask("schema", {}, {}); }

  Result<bool> has_capture(const std::string& id) override {
    bool is_there = false;
    auto asked = ask("has_capture", {{"capture", id}},
                     {.row = [&is_there](std::span<const SqlCell>) { is_there = true; }});
    return asked ? Result<bool>(is_there) : Result<bool>(std::move(asked.error()));
  }

  Result<> load(const TableFiles& files) override {
    SqlParts parts;
    for (std::size_t i = 0; i < kTables; ++i) {
      const auto table = static_cast<TableId>(i);
      parts.emplace(std::string(layout_of(table).name) + "_file", sql_quoted(files.path_of(table)));
    }
    const auto sql = sql_section(kDuckDbSql, "load", parts);
    if (!sql) return sql.error();
    auto loaded = database_.run(*sql, {{"capture", files.capture_id}});
    if (!loaded) (void)database_.run("ROLLBACK");
    return loaded;
  }

  Result<> ask(std::string_view section, const SqlValues& values, const SqlReader& reader) override {
    const auto sql = sql_section(kDuckDbSql, section);
    if (!sql) return sql.error();
    return database_.run(*sql, values, reader);
  }

 private:
  DuckDb database_;
};

}  // namespace

Result<std::unique_ptr<FleetStore>> open_fleet(const FleetPlace& place) {
  if (place.database.empty()) return use_error("--db: name the fleet's database, a file");
  auto database = DuckDb::open(place.library, place.database);
  if (!database) return std::move(database.error()).in(printable(place.database));
  std::unique_ptr<FleetStore> store = std::make_unique<DuckDbStore>(std::move(*database));
  if (auto made = store->make_schema(); !made) return std::move(made.error()).in(printable(place.database));
  return store;
}

}  // namespace tacho::report
