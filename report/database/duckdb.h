// DuckDB through the C interface of its shared library, which is loaded when it is needed: no package of
// Debian 12 has it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"
#include "format/base/result.h"

namespace tacho::report {

struct SqlColumn {
  std::string name;
  bool is_number = false;
};
// A cell as text; nullopt: NULL.
using SqlCell = std::optional<std::string_view>;
// The values of $name in a statement. They are bound, never a part of its text.
using SqlValues = std::map<std::string, std::string, std::less<>>;

// Takes the rows of a result; both may be empty.
struct SqlReader {
  std::function<void(std::span<const SqlColumn>)> head{};
  std::function<void(std::span<const SqlCell>)> row{};
  std::size_t columns = 0;  // that `row` needs: an answer with fewer is an error
};

class DuckDb {
 public:
  // Read: the file must be there, and others may read it, too.
  enum class Access : std::uint8_t { Write, Read };
  // `library`: its path; empty: TACHO_DUCKDB, else libduckdb.so as the loader finds it. `file`: of the
  // database; empty: one in memory. An error says what to install.
  static Result<DuckDb> open(const std::string& library, const std::string& file, Access access);
  // Whether the library can be loaded, before work that would be lost without it. Starts no thread.
  static Result<> check(const std::string& library);
  DuckDb(DuckDb&&) noexcept;
  DuckDb& operator=(DuckDb&&) noexcept;
  ~DuckDb();

  // Runs all statements of `sql`, in their order. `reader` gets the rows of each statement that has some.
  // Cells become text in the engine.
  Result<> run_sql(const std::string& sql, const SqlValues& values = {}, const SqlReader& reader = {});

  // Gives the rows of one query whose columns are a list of UBIGINTs and a UBIGINT, without making them text.
  using ListRow = std::function<void(std::span<const std::uint64_t> list, std::uint64_t number)>;
  Result<> read_lists(const std::string& query, const SqlValues& values, const ListRow& row);

 private:
  struct Library;
  struct Connection;
  explicit DuckDb(std::unique_ptr<Connection> connection);
  std::unique_ptr<Connection> connection_;
};

// --duckdb, which sets the path of the library.
cli::Option duckdb_option(std::string& library);

}  // namespace tacho::report
