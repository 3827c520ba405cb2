#include "record/session/capture_place.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>

#include "format/base/output.h"
#include "record/output/writing_thread.h"

namespace tacho::record {

FileIdentity identity_of(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return std::nullopt;
  return std::pair{info.st_dev, info.st_ino};
}

Error without_unusable_file(Error failure, const FileIdentity& before, const std::string& output) {
  const FileIdentity now = identity_of(output);
  if (now && now != before) unlink(output.c_str());
  const std::string old = output + ".old";
  if (before && now != before && identity_of(old) == before)
    failure.what += "; nothing was recorded; the old file is now " + old;
  return failure;
}

Result<> check_disk(const RecordOptions& options) {
  if (!is_disk_short({.least_free = options.files.least_free, .path = folder_of_capture(options)}))
    return Done{};
  return output_error(options.output +
                      ": its file system has less free space than --min-free; nothing is recorded");
}

Result<> check_place(const RecordOptions& options) {
  if (auto done = check_disk(options); !done) return done;
  return format::check_output(options.output);
}

std::string folder_of_capture(const RecordOptions& options) {
  const auto slash = options.output.rfind('/');
  return slash == std::string::npos ? "." : options.output.substr(0, slash + 1);
}

void remove_output(const RecordOptions& options) {
  // With --overwrite the path may have an earlier capture, and a device is not removed.
  struct stat status {};
  const bool is_own = !options.files.to_pipe && !options.files.overwrite;
  if (is_own && ::lstat(options.output.c_str(), &status) == 0 && S_ISREG(status.st_mode))
    (void)::unlink(options.output.c_str());
}

Result<> check_size(const CaptureOutput& output, const RecordOptions& options) {
  const std::uint64_t most = options.files.most_bytes, head = output.bytes() + output.closing_room();
  if (most == 0 || head < most) return Done{};
  remove_output(options);
  return use_error(
      fmt::format("--max-size: the capture takes {:.1f} MB without any sample (what runs here, and "
                  "the kernel's names); nothing was recorded",
                  static_cast<double>(head) / (1 << 20)));
}

}  // namespace tacho::record
