#include "report/database/duckdb.h"

#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "cli/option_rows.h"
#include "report/database/sql_sections.h"
namespace tacho::report {

// The declarations of duckdb.h that are used here (https://duckdb.org/docs/stable/clients/c/api); handles are
// opaque pointers. In a named namespace: GCC 14 crashes on members of DuckDb::Library whose types are in an
// unnamed one.
namespace duckdb_api {
using Handle = void*;
using Index = std::uint64_t;
enum class State : int { Success = 0, Error = 1 };
struct ResultRows {  // duckdb_result; the library alone knows its members
  Index counts[3];
  void* columns;
  char* error;
  void* data;
};
}  // namespace duckdb_api

namespace {

using duckdb_api::Handle, duckdb_api::Index, duckdb_api::ResultRows, duckdb_api::State;
struct StringCell {  // duckdb_string_t: up to 12 bytes are stored in it
  std::uint32_t size;
  char inlined[4];
  union {
    char more[8];
    const char* pointer;
  };
};
constexpr std::uint32_t kInlined = 12;  // bytes
constexpr int kSelect = 1;              // DUCKDB_STATEMENT_TYPE_SELECT
constexpr int kRows = 3;                // DUCKDB_RESULT_TYPE_QUERY_RESULT
constexpr int kText = 17;               // DUCKDB_TYPE_VARCHAR
constexpr int kNumber = 9, kList = 24;  // DUCKDB_TYPE_UBIGINT, DUCKDB_TYPE_LIST
struct ListCell {                       // duckdb_list_entry: in the child vector
  Index offset, length;
};

// DUCKDB_TYPE_TINYINT to DOUBLE, HUGEINT, DECIMAL, UHUGEINT.
bool is_number(int type) { return (type >= 2 && type <= 11) || type == 16 || type == 19 || type == 32; }

constexpr std::string_view kInstall =
    "; install DuckDB's shared library (libduckdb-linux-*.zip of https://duckdb.org/install, or the npm "
    "package "
    "@duckdb/node-api, which has it in @duckdb/node-bindings-linux-x64) and name it with --duckdb PATH or "
    "TACHO_DUCKDB";

// The first line of an engine's message; the next ones quote the statement.
std::string message_of(const char* why, std::string_view otherwise) {
  const std::string_view text = why != nullptr ? std::string_view(why) : otherwise;
  return "DuckDB: " + std::string(text.substr(0, text.find('\n')));
}

std::string_view text_of(const StringCell& cell) {
  if (cell.size > kInlined) return {cell.pointer, cell.size};
  return {reinterpret_cast<const char*>(&cell) + sizeof cell.size, cell.size};
}

}  // namespace

// The functions of the library that are used.
struct DuckDb::Library {
  void* handle = nullptr;
  State (*open_ext)(const char*, Handle*, Handle config, char** error) = nullptr;
  State (*create_config)(Handle*) = nullptr;
  State (*set_config)(Handle, const char*, const char*) = nullptr;
  void (*destroy_config)(Handle*) = nullptr;
  void (*close)(Handle*) = nullptr;
  State (*connect)(Handle, Handle*) = nullptr;
  void (*disconnect)(Handle*) = nullptr;
  void (*free)(void*) = nullptr;
  State (*prepare)(Handle, const char*, Handle*) = nullptr;
  const char* (*prepare_error)(Handle) = nullptr;
  void (*destroy_prepare)(Handle*) = nullptr;
  Index (*nparams)(Handle) = nullptr;
  const char* (*parameter_name)(Handle, Index) = nullptr;
  int (*prepared_statement_type)(Handle) = nullptr;
  Index (*prepared_statement_column_count)(Handle) = nullptr;
  const char* (*prepared_statement_column_name)(Handle, Index) = nullptr;
  int (*prepared_statement_column_type)(Handle, Index) = nullptr;
  State (*bind_varchar_length)(Handle, Index, const char*, Index) = nullptr;
  State (*execute_prepared)(Handle, ResultRows*) = nullptr;
  void (*destroy_result)(ResultRows*) = nullptr;
  const char* (*result_error)(ResultRows*) = nullptr;
  Index (*column_count)(ResultRows*) = nullptr;
  const char* (*column_name)(ResultRows*, Index) = nullptr;
  int (*column_type)(ResultRows*, Index) = nullptr;
  int (*result_return_type)(ResultRows) = nullptr;
  Handle (*fetch_chunk)(ResultRows) = nullptr;
  void (*destroy_data_chunk)(Handle*) = nullptr;
  Index (*data_chunk_get_size)(Handle) = nullptr;
  Handle (*data_chunk_get_vector)(Handle, Index) = nullptr;
  void* (*vector_get_data)(Handle) = nullptr;
  const std::uint64_t* (*vector_get_validity)(Handle) = nullptr;
  Handle (*list_vector_get_child)(Handle) = nullptr;

  static Result<Library> load(const std::string& given);
};

// The library stays loaded until the program ends.
Result<DuckDb::Library> DuckDb::Library::load(const std::string& given) {
#ifdef TACHO_STATIC  // glibc's dlopen() would need the glibc that the program was linked with
  return Error{"DuckDB: this static tacho-report loads no libraries; that of the packages does"};
#endif
  const char* const named = std::getenv("TACHO_DUCKDB");
  const std::string path = !given.empty()                       ? given
                           : named != nullptr && *named != '\0' ? named
                                                                : "libduckdb.so";
  Library library;
  library.handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library.handle == nullptr) return Error{std::string("DuckDB: ") + ::dlerror() + std::string(kInstall)};
  const char* missing = nullptr;
  const auto find = [&](const char* name, auto& function) {
    void* const found = ::dlsym(library.handle, name);
    if (found == nullptr && missing == nullptr) missing = name;
    std::memcpy(&function, &found, sizeof function);
  };
#define TACHO_FIND(name) find("duckdb_" #name, library.name)
  TACHO_FIND(open_ext);
  TACHO_FIND(create_config);
  TACHO_FIND(set_config);
  TACHO_FIND(destroy_config);
  TACHO_FIND(close);
  TACHO_FIND(connect);
  TACHO_FIND(disconnect);
  TACHO_FIND(free);
  TACHO_FIND(prepare);
  TACHO_FIND(prepare_error);
  TACHO_FIND(destroy_prepare);
  TACHO_FIND(nparams);
  TACHO_FIND(parameter_name);
  TACHO_FIND(prepared_statement_type);
  TACHO_FIND(prepared_statement_column_count);
  TACHO_FIND(prepared_statement_column_name);
  TACHO_FIND(prepared_statement_column_type);
  TACHO_FIND(bind_varchar_length);
  TACHO_FIND(execute_prepared);
  TACHO_FIND(destroy_result);
  TACHO_FIND(result_error);
  TACHO_FIND(result_return_type);
  TACHO_FIND(column_count);
  TACHO_FIND(column_name);
  TACHO_FIND(column_type);
  TACHO_FIND(fetch_chunk);
  TACHO_FIND(destroy_data_chunk);
  TACHO_FIND(data_chunk_get_size);
  TACHO_FIND(data_chunk_get_vector);
  TACHO_FIND(vector_get_data);
  TACHO_FIND(vector_get_validity);
  TACHO_FIND(list_vector_get_child);
#undef TACHO_FIND
  if (missing != nullptr)
    return Error{path + " is no DuckDB of version 1.0 or newer: it lacks " + missing + std::string(kInstall)};
  return library;
}

struct DuckDb::Connection {
  Library library;
  Handle database = nullptr, connection = nullptr;

  explicit Connection(const Library& loaded) : library(loaded) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    if (connection != nullptr) library.disconnect(&connection);
    if (database != nullptr) library.close(&database);
  }

  // A handle of the library that is destroyed by `destroy`.
  struct Owned {
    Handle handle = nullptr;
    void (*destroy)(Handle*) = nullptr;
    explicit Owned(void (*with)(Handle*)) : destroy(with) {}
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;
    ~Owned() {
      if (handle != nullptr) destroy(&handle);
    }
  };

  Result<> open(const std::string& file, Access access);
  Result<> run(const std::string& statement, const SqlValues& values, const SqlReader& reader);
  Result<> prepare(const std::string& text, Owned& statement) const;
  Result<> bind(Handle statement, const SqlValues& values) const;
  std::vector<SqlColumn> columns_of(Handle statement) const;
  Result<> execute(Handle statement, std::span<const SqlColumn> columns, const SqlReader& reader);
  void read(ResultRows& rows, const SqlReader& reader) const;
  Result<> execute_to(Handle statement, ResultRows& rows) const;
  Result<> read_lists(const std::string& query, const SqlValues& values, const ListRow& row) const;
};

// No extension is fetched from a network, none is loaded unasked.
Result<> DuckDb::Connection::open(const std::string& file, Access access) {
  Owned config(library.destroy_config);
  if (library.create_config(&config.handle) != State::Success) return Error{"DuckDB: no memory"};
  for (const char* const option : {"autoinstall_known_extensions", "autoload_known_extensions"})
    (void)library.set_config(config.handle, option, "false");
  if (access == Access::Read) (void)library.set_config(config.handle, "access_mode", "READ_ONLY");
  char* error = nullptr;
  const char* const path = file.empty() ? nullptr : file.c_str();
  if (library.open_ext(path, &database, config.handle, &error) != State::Success) {
    Error failed{message_of(error, "cannot open it")};
    if (error != nullptr) library.free(error);
    return failed;
  }
  if (library.connect(database, &connection) != State::Success) return Error{"DuckDB: cannot connect"};
  return Done{};
}

Result<> DuckDb::Connection::bind(Handle statement, const SqlValues& values) const {
  const Index count = library.nparams(statement);
  for (Index i = 1; i <= count; ++i) {
    const char* const given = library.parameter_name(statement, i);
    const std::string name = given != nullptr ? given : "";
    if (given != nullptr) library.free(const_cast<char*>(given));
    const auto value = values.find(name);
    if (value == values.end()) return use_error("$" + name + " has no value");
    if (library.bind_varchar_length(statement, i, value->second.data(), value->second.size()) !=
        State::Success)
      return Error{"DuckDB: cannot bind $" + name};
  }
  return Done{};
}

// Every column is text. NULLs have no bit in the mask.
void DuckDb::Connection::read(ResultRows& rows, const SqlReader& reader) const {
  const Index columns = library.column_count(&rows);
  std::vector<SqlCell> cells(columns);
  for (;;) {
    Owned chunk(library.destroy_data_chunk);
    chunk.handle = library.fetch_chunk(rows);
    if (chunk.handle == nullptr) return;
    const Index size = library.data_chunk_get_size(chunk.handle);
    for (Index row = 0; row < size; ++row) {
      for (Index column = 0; column < columns; ++column) {
        const Handle vector = library.data_chunk_get_vector(chunk.handle, column);
        const std::uint64_t* const valid = library.vector_get_validity(vector);
        const bool is_null = valid != nullptr && (valid[row / 64] >> row % 64 & 1) == 0;
        cells[column] =
            is_null ? SqlCell()
                    : SqlCell(text_of(static_cast<const StringCell*>(library.vector_get_data(vector))[row]));
      }
      reader.row(cells);
    }
  }
}

// `rows` is to be destroyed if there is no error.
Result<> DuckDb::Connection::execute_to(Handle statement, ResultRows& rows) const {
  if (library.execute_prepared(statement, &rows) == State::Success) return Done{};
  Error failed{message_of(library.result_error(&rows), "the statement failed")};
  library.destroy_result(&rows);
  return failed;
}

Result<> DuckDb::Connection::read_lists(const std::string& query, const SqlValues& values,
                                        const ListRow& row) const {
  Owned statement(library.destroy_prepare);
  if (auto prepared = prepare(query, statement); !prepared) return prepared;
  if (auto bound = bind(statement.handle, values); !bound) return bound;
  ResultRows rows{};
  if (auto done = execute_to(statement.handle, rows); !done) return done;
  const bool is_known = library.column_count(&rows) == 2 && library.column_type(&rows, 0) == kList &&
                        library.column_type(&rows, 1) == kNumber;
  while (is_known) {
    Owned chunk(library.destroy_data_chunk);
    chunk.handle = library.fetch_chunk(rows);
    if (chunk.handle == nullptr) break;
    const Handle lists = library.data_chunk_get_vector(chunk.handle, 0);
    const auto* const entries = static_cast<const ListCell*>(library.vector_get_data(lists));
    const auto* const items =
        static_cast<const std::uint64_t*>(library.vector_get_data(library.list_vector_get_child(lists)));
    const auto* const numbers = static_cast<const std::uint64_t*>(
        library.vector_get_data(library.data_chunk_get_vector(chunk.handle, 1)));
    for (Index i = 0; i < library.data_chunk_get_size(chunk.handle); ++i)
      row({items + entries[i].offset, entries[i].length}, numbers[i]);
  }
  library.destroy_result(&rows);
  return is_known ? Result<>(Done{})
                  : Result<>(Error{"DuckDB: the query has other columns than a list and a number"});
}

Result<> DuckDb::Connection::execute(Handle statement, std::span<const SqlColumn> columns,
                                     const SqlReader& reader) {
  ResultRows rows{};
  if (auto done = execute_to(statement, rows); !done) return done;
  const Index count = library.column_count(&rows);
  bool is_text = count == columns.size() && count > 0;
  for (Index i = 0; i < count; ++i) is_text = is_text && library.column_type(&rows, i) == kText;
  if (is_text && reader.row) {
    if (reader.head) reader.head(columns);
    read(rows, reader);
  }
  const bool is_lost = !is_text && reader.row && count > 0 && library.result_return_type(rows) == kRows;
  library.destroy_result(&rows);
  if (is_lost)
    return use_error(
        "DuckDB: it ran, but its rows are not shown, as they are not those of a SELECT; ask for them by one");
  return Done{};
}

Result<> DuckDb::Connection::prepare(const std::string& text, Owned& statement) const {
  if (library.prepare(connection, text.c_str(), &statement.handle) == State::Success) return Done{};
  const char* const why = statement.handle == nullptr ? nullptr : library.prepare_error(statement.handle);
  return use_error(message_of(why, "cannot prepare the statement"));
}

std::vector<SqlColumn> DuckDb::Connection::columns_of(Handle statement) const {
  std::vector<SqlColumn> columns;
  for (Index i = 0; i < library.prepared_statement_column_count(statement); ++i) {
    const char* const name = library.prepared_statement_column_name(statement, i);
    columns.push_back(
        {name != nullptr ? name : "", is_number(library.prepared_statement_column_type(statement, i))});
    if (name != nullptr) library.free(const_cast<char*>(name));
  }
  return columns;
}

// Of a query, the engine makes all columns text: they may be lists and maps.
Result<> DuckDb::Connection::run(const std::string& statement, const SqlValues& values,
                                 const SqlReader& reader) {
  Owned given(library.destroy_prepare), cast(library.destroy_prepare);
  if (auto prepared = prepare(statement, given); !prepared) return prepared;
  const bool is_query = library.prepared_statement_type(given.handle) == kSelect;
  if (is_query) {
    const std::string as_text = "SELECT CAST(COLUMNS(*) AS VARCHAR) FROM (\n" + statement + "\n)";
    if (auto prepared = prepare(as_text, cast); !prepared) return prepared;
  }
  const Handle ready = is_query ? cast.handle : given.handle;
  if (auto bound = bind(ready, values); !bound) return bound;
  return execute(ready, columns_of(given.handle), reader);
}

Result<> DuckDb::check(const std::string& library) {
  const auto loaded = Library::load(library);
  return loaded ? Result<>(Done{}) : Result<>(loaded.error());
}

Result<DuckDb> DuckDb::open(const std::string& library, const std::string& file, Access access) {
  const auto loaded = Library::load(library);
  if (!loaded) return loaded.error();
  auto connection = std::make_unique<Connection>(*loaded);
  if (auto opened = connection->open(file, access); !opened) return std::move(opened.error());
  return DuckDb(std::move(connection));
}

DuckDb::DuckDb(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
DuckDb::DuckDb(DuckDb&&) noexcept = default;
DuckDb& DuckDb::operator=(DuckDb&&) noexcept = default;
DuckDb::~DuckDb() = default;

Result<> DuckDb::run_sql(const std::string& sql, const SqlValues& values, const SqlReader& reader) {
  for (const std::string& statement : sql_statements(sql))
    if (auto done = connection_->run(statement, values, reader); !done) return done;
  return Done{};
}

Result<> DuckDb::read_lists(const std::string& query, const SqlValues& values, const ListRow& row) {
  return connection_->read_lists(query, values, row);
}

cli::Option duckdb_option(std::string& library) {
  return cli::text(
      "--duckdb", "PATH",
      "DuckDB's shared library (default: TACHO_DUCKDB, else libduckdb.so of the loader's folders)", library);
}

}  // namespace tacho::report
