#include "record/host/answers.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <system_error>

#include "format/base/byte_writer.h"
#include "format/base/cursor.h"
#include "format/base/file.h"
#include "record/parse_text.h"

namespace tacho::record {

namespace {

using Answer = Result<std::vector<std::byte>>;
constexpr std::uint64_t kAnswerPiece = std::uint64_t{8} << 20;  // bytes that a slow disk reads in time

// In a child: reads a piece of a file, and returns one byte if there is more.
Answer read_piece(format::Bytes argument) {
  format::Cursor in(argument);
  const std::uint64_t offset = in.u64();
  const auto path = path_of_program(std::string(format::as_text(in.rest())));
  const auto file = path ? format::open_input(*path) : Error{"none"};
  if (!file) return std::vector<std::byte>();
  const auto bytes = format::read_at(file->get(), offset, kAnswerPiece);
  return std::vector<std::byte>(bytes && bytes->size() == kAnswerPiece ? 1 : 0);
}

}  // namespace

Result<> check_file_answers(ForeignReader& reader, const std::string& path) {
  std::error_code failed;
  const bool is_path = path.find('/') != std::string::npos;  // else a program of PATH
  const std::string whole = is_path ? std::filesystem::absolute(path, failed).string() : path;
  for (std::uint64_t offset = 0;; offset += kAnswerPiece) {
    format::ByteWriter argument;
    argument.u64(offset).bytes(std::as_bytes(std::span(whole)));
    const auto more = reader.run(read_piece, argument.view(), whole, whole);
    if (!more && more.error().code == ETIMEDOUT)
      return Error{path + ": its file system does not answer", ETIMEDOUT};
    if (!more || more->empty()) return Done{};
  }
}

Result<> check_answers(ForeignReader& reader, std::span<const std::string> command,
                       std::span<const EventRequest> events, Watch watch, const TargetTasks& tasks) {
  std::vector<std::string> files;
  if (!command.empty()) files.push_back(command.front());
  const auto add_path = [&files](const std::string& file) {
    if (file.find('/') != std::string::npos) files.push_back(file);  // others are names of libraries
  };
  for (const EventRequest& request : events) {
    if (request.probe() != nullptr) add_path(request.probe()->path);
    if (request.object() == nullptr) continue;
    for (const std::string_view name : {"binary", "lib"}) add_path(unquoted(request.value_of(name)));
  }
  for (const std::string& file : files)
    if (auto done = check_file_answers(reader, file); !done) return done;
  if (watch != Watch::Processes && watch != Watch::Threads) return Done{};
  for (const int process : tasks.processes)
    if (!reader.answers(fmt::format("/proc/{}/auxv", process)))
      return Error{
          fmt::format("process {} is in an execve that waits for a file system; it cannot be recorded",
                      process),
          ETIMEDOUT};
  return Done{};
}

}  // namespace tacho::record
