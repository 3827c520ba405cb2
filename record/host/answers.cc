#include "record/host/answers.h"

#include <fmt/format.h>

#include <algorithm>
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

constexpr std::uint64_t kAnswerPiece = std::uint64_t{8} << 20;  // bytes that a slow disk reads in time

// In a child: reads part of a file or a program of PATH. Returns one byte if there is more behind it.
Result<std::vector<std::byte>> read_part(format::Bytes argument) {
  format::Cursor in(argument);
  const std::uint64_t offset = in.u64(), size = in.u64();
  const auto path = path_of_program(std::string(format::as_text(in.rest())));
  const auto file = path ? format::open_input(*path) : Error{"none"};
  if (!file) return std::vector<std::byte>();
  const auto bytes = format::read_at(file->get(), offset, static_cast<std::size_t>(size));
  return std::vector<std::byte>(bytes && bytes->size() == size ? 1 : 0);
}

// Whether there is more behind the part; false also for a file that cannot be read.
Result<bool> part_answers(ForeignReader& reader, const std::string& path, std::uint64_t offset,
                          std::uint64_t size) {
  std::error_code failed;
  const bool is_path = path.find('/') != std::string::npos;  // else a program of PATH
  const std::string whole = is_path ? std::filesystem::absolute(path, failed).string() : path;
  format::ByteWriter argument;
  argument.u64(offset).u64(size).bytes(std::as_bytes(std::span(whole)));
  const auto more = reader.run_work(read_part, argument.view(), whole, whole);
  if (!more && more.error().code == ETIMEDOUT)
    return Error{path + ": its file system does not answer", ETIMEDOUT};
  return more && !more->empty();
}

}  // namespace

Result<> check_file_answers(ForeignReader& reader, const std::string& path) {
  for (std::uint64_t offset = 0;; offset += kAnswerPiece) {
    const auto has_more = part_answers(reader, path, offset, kAnswerPiece);
    if (!has_more) return has_more.error();
    if (!*has_more) return Done{};
  }
}

Result<> check_files_answer(ForeignReader& reader, std::span<const EventRequest> events) {
  std::vector<std::string> files;
  const auto add_path = [&files](std::string file) {
    const bool is_path = file.find('/') != std::string::npos;  // others are names of libraries
    if (is_path && std::ranges::find(files, file) == files.end()) files.push_back(std::move(file));
  };
  for (const EventRequest& request : events) {
    if (request.probe() != nullptr) add_path(request.probe()->path);
    if (request.object() == nullptr) continue;
    for (const std::string_view name : {"binary", "lib"}) add_path(unquoted(request.value_of(name)));
  }
  for (const std::string& file : files)
    if (auto done = check_file_answers(reader, file); !done) return done;
  return Done{};
}

Result<> check_target_answers(ForeignReader& reader, std::span<const std::string> command, Watch watch,
                              const TargetTasks& tasks) {
  if (!command.empty())
    if (auto done = part_answers(reader, command.front(), 0, 1); !done) return std::move(done.error());
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
