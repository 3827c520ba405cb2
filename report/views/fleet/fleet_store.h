// A database with the tables of many captures.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "format/base/result.h"
#include "report/database/duckdb.h"
#include "report/tables/table_stream.h"

namespace tacho::report {

class FleetStore {
 public:
  virtual ~FleetStore() = default;
  // Makes the tables that are missing.
  virtual Result<> make_schema() = 0;
  // Whether the capture is loaded.
  Result<bool> has_capture(const std::string& id);
  // Loads the tables of a capture, whole or not at all: CSV files that are not packed.
  virtual Result<> load(const TableFiles& files) = 0;
  // Sums by stack: the section stack_sums or stack_sums_between.
  virtual Result<> read_stacks(std::string_view section, const SqlValues& values,
                               const DuckDb::ListRow& row) = 0;
  // The rows of a section of fleet/*.sql.
  virtual Result<> ask(std::string_view section, const SqlValues& values, const SqlReader& reader) = 0;
};

struct FleetPlace {
  std::string database;  // a file of DuckDB, or http://HOST:PORT/DATABASE of ClickHouse
  std::string library;   // DuckDB's; see DuckDb::open()
  bool is_server() const { return database.starts_with("http://"); }
};
// Whether what the database needs here can be loaded.
Result<> check_fleet(const FleetPlace& place);
// Load: the database and its tables are made if they are not there.
enum class FleetUse : std::uint8_t { Load, Ask };
Result<std::unique_ptr<FleetStore>> open_fleet(const FleetPlace& place, FleetUse use);

}  // namespace tacho::report
