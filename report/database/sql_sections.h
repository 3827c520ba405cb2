// The SQL of fleet/, by sections: "-- section: NAME" begins one.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"

namespace tacho::report {

extern const std::string_view kDuckDbSql, kClickHouseSql;  // fleet/*.sql, embedded

// Texts in place of @NAME@.
using SqlParts = std::map<std::string, std::string, std::less<>>;

// The section with this name, in which @NAME@ is one of `parts`, else the section NAME. An error: there is
// none.
Result<std::string> sql_section(std::string_view file, std::string_view name, const SqlParts& parts = {});

// The statements of a text, without the ';' between them; a ';' in quotes or in a comment ends nothing.
std::vector<std::string> sql_statements(std::string_view text);

// 'it''s'
std::string sql_quoted(std::string_view text);
// The same of each part.
SqlParts sql_quoted(SqlParts parts);

}  // namespace tacho::report
