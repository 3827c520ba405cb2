#include "report/database/clickhouse.h"

#include <fmt/format.h>
#include <netdb.h>
#include <nss.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <vector>

#include "format/base/file.h"

namespace tacho::report {
namespace {

constexpr std::string_view kScheme = "http://", kDefaultPort = "8123";
constexpr timeval kPatience{300, 0};                       // a server may think that long
constexpr std::size_t kMostAnswer = std::size_t{4} << 30;  // bytes

std::string percent_encoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const bool is_plain =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
    encoded += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return encoded;
}

// A cell of TabSeparated: \t, \n, \\ and so on.
std::string unescaped(std::string_view cell) {
  constexpr std::string_view kLetters = "bfrnt0", kBytes{"\b\f\r\n\t\0", 6};
  std::string text;
  for (std::size_t i = 0; i < cell.size(); ++i) {
    if (cell[i] != '\\' || i + 1 == cell.size()) {
      text += cell[i];
      continue;
    }
    const auto letter = kLetters.find(cell[++i]);
    text += letter == std::string_view::npos ? cell[i] : kBytes[letter];
  }
  return text;
}

std::vector<std::string_view> split_cells(std::string_view line) {
  std::vector<std::string_view> cells;
  for (;;) {
    const auto tab = line.find('\t');
    cells.push_back(line.substr(0, tab));
    if (tab == std::string_view::npos) return cells;
    line.remove_prefix(tab + 1);
  }
}

// Whether ClickHouse has such a type: another server's page has none in its second line.
bool is_type(std::string_view type) {
  constexpr std::string_view kTypes[] = {
      "Int",   "UInt",     "Float", "Decimal",   "String",          "FixedString",
      "Array", "DateTime", "Date",  "Nullable(", "LowCardinality(", "Bool",
      "UUID",  "Enum",     "Tuple", "Map(",      "Nothing",         "IPv"};
  return std::ranges::any_of(kTypes, [type](std::string_view known) { return type.starts_with(known); });
}

bool is_number_type(std::string_view type) {
  if (type.starts_with("Nullable(")) type.remove_prefix(std::string_view("Nullable(").size());
  return type.starts_with("Int") || type.starts_with("UInt") || type.starts_with("Float") ||
         type.starts_with("Decimal");
}

// TabSeparatedWithNamesAndTypes. Another text is an error, as is an answer that ends within a row.
Result<> read_rows(std::string_view text, const SqlReader& reader) {
  const Error no_table{"ClickHouse: its answer is no table with the columns that were asked for"};
  std::vector<SqlColumn> columns;
  std::vector<std::string> texts;
  std::vector<SqlCell> cells;
  std::size_t number = 0;
  for (; !text.empty(); ++number) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) return no_table;
    const auto line = split_cells(text.substr(0, end));
    text.remove_prefix(end + 1);
    if (number == 0) {
      for (const std::string_view name : line) columns.push_back({unescaped(name), false});
      continue;
    }
    if (line.size() != columns.size() || columns.size() < reader.columns) return no_table;
    if (number == 1) {
      if (!std::ranges::all_of(line, is_type)) return no_table;
      for (std::size_t i = 0; i < line.size(); ++i) columns[i].is_number = is_number_type(line[i]);
      if (reader.head) reader.head(columns);
      continue;
    }
    texts.clear();
    cells.clear();
    for (const std::string_view cell : line) texts.push_back(unescaped(cell));
    for (std::size_t i = 0; i < line.size(); ++i)
      cells.push_back(line[i] == "\\N" ? SqlCell() : SqlCell(texts[i]));
    reader.row(cells);
  }
  return number < 2 ? Result<>(no_table) : Result<>(Done{});
}

Result<format::Fd> connect_to(const ClickHousePlace& place) {
#ifdef TACHO_STATIC  // other sources of names are libraries, which a static program cannot load
  (void)::__nss_configure_lookup("hosts", "files dns");
#endif
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(place.host.c_str(), place.port.c_str(), &wanted, &found);
  if (failed != 0) return Error{place.host + ": " + ::gai_strerror(failed)};
  int code = 0;
  format::Fd connected;
  for (const addrinfo* one = found; one != nullptr && !connected; one = one->ai_next) {
    format::Fd socket(::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol));
    if (!socket) {
      code = errno;
      continue;
    }
    (void)::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
    (void)::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
    if (::connect(socket.get(), one->ai_addr, one->ai_addrlen) == 0)
      connected = std::move(socket);
    else
      code = errno;
  }
  ::freeaddrinfo(found);
  if (!connected) return system_error("ClickHouse at " + place.host + ":" + place.port, code);
  return connected;
}

Result<> send_all(int to, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return system_error("ClickHouse: sending", errno);
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return Done{};
}

Result<> send_file(int to, int file, std::uint64_t size) {
  off_t at = 0;
  while (static_cast<std::uint64_t>(at) < size) {
    const ssize_t sent =
        ::sendfile(to, file, &at, static_cast<std::size_t>(size - static_cast<std::uint64_t>(at)));
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return system_error("ClickHouse: sending", errno);
    if (sent == 0) return Error{"ClickHouse: the file became shorter while it was sent"};
  }
  return Done{};
}

// As the head of an answer says; nullopt: it does not.
std::optional<std::uint64_t> content_length(std::string_view head) {
  constexpr std::string_view kName = "content-length:";
  for (std::size_t at = 0; (at = head.find("\r\n", at)) != std::string_view::npos;) {
    at += 2;
    const std::string_view line = head.substr(at, head.find("\r\n", at) - at);
    const bool is_named =
        line.size() > kName.size() && std::ranges::equal(line.substr(0, kName.size()), kName, {}, [](char c) {
          return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        });
    if (!is_named) continue;
    const std::string_view digits =
        line.substr(std::min(line.find_first_not_of(' ', kName.size()), line.size()));
    std::uint64_t length = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), length).ec == std::errc())
      return length;
  }
  return std::nullopt;
}

// The answer's body. HTTP 1.0: it ends where the connection does.
Result<std::string> read_answer(int from) {
  std::string answer;
  std::vector<char> piece(std::size_t{1} << 18);
  for (;;) {
    const ssize_t got = ::recv(from, piece.data(), piece.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return Error{"ClickHouse: there is no answer"};
    if (got < 0) return system_error("ClickHouse: its answer", errno);
    if (got == 0) break;
    answer.append(piece.data(), static_cast<std::size_t>(got));
    if (answer.size() > kMostAnswer) return Error{"ClickHouse: its answer is larger than 4 GB"};
  }
  if (answer.empty()) return Error{"ClickHouse: the connection ended without an answer", ECONNRESET};
  const auto head = answer.find("\r\n\r\n");
  const auto status = answer.find(' ');
  if (head == std::string::npos || status > head) return Error{"ClickHouse: its answer is no HTTP"};
  const std::string code = answer.substr(status + 1, 3);
  const auto length = content_length(std::string_view(answer).substr(0, head + 2));
  answer.erase(0, head + 4);
  if (length && answer.size() < *length) return Error{"ClickHouse: the connection ended within its answer"};
  if (code == "200") return answer;
  return Error{"ClickHouse: " + answer.substr(0, std::min(answer.find('\n'), std::size_t{500}))};
}

}  // namespace

Result<ClickHousePlace> ClickHousePlace::parse(std::string_view url) {
  const auto wrong = [url] {
    return use_error("--db: '" + std::string(url) + "' is not http://HOST:PORT/DATABASE");
  };
  if (!url.starts_with(kScheme)) return wrong();
  std::string_view rest = url.substr(kScheme.size());
  ClickHousePlace place;
  const auto slash = std::min(rest.find('/'), rest.size());
  place.database = rest.substr(std::min(slash + 1, rest.size()));
  rest = rest.substr(0, slash);
  const auto colon = rest.rfind(':');
  const bool has_port = colon != std::string_view::npos && rest.find(']', colon) == std::string_view::npos;
  place.port = has_port ? rest.substr(colon + 1) : kDefaultPort;
  place.host = has_port ? rest.substr(0, colon) : rest;
  if (place.host.starts_with('[') && place.host.ends_with(']'))  // IPv6
    place.host = place.host.substr(1, place.host.size() - 2);
  const bool is_sound = !place.host.empty() && !place.port.empty() &&
                        std::ranges::all_of(place.port, [](char c) { return c >= '0' && c <= '9'; }) &&
                        place.host.find_first_of(" \r\n@") == std::string::npos;
  if (!is_sound) return wrong();
  if (place.database.empty()) place.database = "default";
  return place;
}

// wait_end_of_query: a statement that fails later has an error as its status.
std::string ClickHouse::target_of(const SqlValues& parameters) const {
  std::string target = "/?wait_end_of_query=1&database=" + percent_encoded(place_.database);
  for (const auto& [name, value] : parameters) target += "&" + name + "=" + percent_encoded(value);
  return target;
}

Result<std::string> ClickHouse::ask(const std::string& target, std::string_view body, std::uint64_t size,
                                    int file) {
  auto socket = connect_to(place_);
  if (!socket) return std::move(socket.error());
  std::string head = fmt::format("POST {} HTTP/1.0\r\nHost: {}:{}\r\nContent-Length: {}\r\n", target,
                                 place_.host, place_.port, size);
  for (const auto& [variable, field] :
       {std::pair("CLICKHOUSE_USER", "X-ClickHouse-User"), {"CLICKHOUSE_PASSWORD", "X-ClickHouse-Key"}}) {
    const char* const value = std::getenv(variable);
    if (value != nullptr && std::string_view(value).find_first_of("\r\n") == std::string_view::npos)
      head += fmt::format("{}: {}\r\n", field, value);
  }
  auto sent = send_all(socket->get(), head + "\r\n");
  if (sent) sent = file >= 0 ? send_file(socket->get(), file, size) : send_all(socket->get(), body);
  if (sent) return read_answer(socket->get());
  // A server that refuses a statement may close the connection before it has read all: its reason says more.
  const bool is_closed = sent.error().code == EPIPE || sent.error().code == ECONNRESET;
  auto answer = is_closed ? read_answer(socket->get()) : Result<std::string>(sent.error());
  return !answer && answer.error().code == 0 ? answer : Result<std::string>(std::move(sent.error()));
}

Result<> ClickHouse::run_statement(const std::string& statement, const SqlValues& values,
                                   const SqlReader& reader) {
  SqlValues parameters;
  // The server unescapes a parameter as a cell of TabSeparated.
  for (const auto& [name, value] : values) {
    std::string escaped;
    for (const char c : value)
      escaped += c == '\\' ? "\\\\" : c == '\t' ? "\\t" : c == '\n' ? "\\n" : std::string(1, c);
    parameters.emplace("param_" + name, std::move(escaped));
  }
  if (reader.row) parameters.emplace("default_format", "TabSeparatedWithNamesAndTypes");
  const auto answer = ask(target_of(parameters), statement, statement.size(), -1);
  if (!answer) return answer.error();
  return reader.row ? read_rows(*answer, reader) : Result<>(Done{});
}

Result<> ClickHouse::insert(std::string_view table, const std::string& path) {
  const auto file = format::open_input(path);
  if (!file) return file.error();
  struct stat status {};
  if (::fstat(file->get(), &status) != 0) return system_error(path, errno);
  const std::string query = "INSERT INTO " + std::string(table) + " FORMAT CSVWithNames";
  const auto answer =
      ask(target_of({{"query", query}}), {}, static_cast<std::uint64_t>(status.st_size), file->get());
  return answer ? Result<>(Done{}) : Result<>(answer.error());
}

}  // namespace tacho::report
