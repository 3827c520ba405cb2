// ClickHouse by its HTTP interface: https://clickhouse.com/docs/interfaces/http.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "format/base/result.h"
#include "report/database/duckdb.h"

namespace tacho::report {

// A server: "http://host:8123/database".
struct ClickHousePlace {
  std::string host, port, database;
  static Result<ClickHousePlace> parse(std::string_view url);
};

// Each call is a request of its own, so a server that was away and came back is used again. User and password
// come from CLICKHOUSE_USER and CLICKHOUSE_PASSWORD, so that no list of processes shows them.
class ClickHouse {
 public:
  explicit ClickHouse(ClickHousePlace place) : place_(std::move(place)) {}

  // Runs one statement; `values` are those of {name:Type}.
  Result<> run_statement(const std::string& statement, const SqlValues& values = {},
                         const SqlReader& reader = {});
  // Inserts the rows of a CSV file with a first line of names.
  Result<> insert(std::string_view table, const std::string& path);

 private:
  Result<std::string> ask(const std::string& query, std::string_view body, std::uint64_t size, int file);
  std::string target_of(const SqlValues& parameters) const;
  ClickHousePlace place_;
};

}  // namespace tacho::report
