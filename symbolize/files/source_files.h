// Source files that debug information names: which of them may be read, and their MD5 sums.
//
// Debug information is untrusted and may name any file, and captures with copies of sources are given to
// others. So a file is read only if it has the name of a source file, is a regular file, and the user who
// made the debug information could read it too; read_source() has the rules.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/result.h"
#include "format/extensions/attachment.h"

namespace tacho::symbolize {

// Whether the path's last part is the name of a source file: by its extension, or a header of the C++
// library, which has none.
bool is_source_name(std::string_view path);

struct SourceBytes {
  std::vector<std::byte> bytes;
  std::int64_t modified = 0;  // nanoseconds since 1970
};

// Reads a source file, of at most 64 MB. `root`: the recording host's "/" (--symfs), which no link leaves;
// empty: this machine's. `program`: the file on this machine whose debug information names the source; empty:
// unknown.
//
// For root, two conditions. No other user can change the file, or a folder or link on the way. And, since
// root's rights cover every file: all users may read the file, or it belongs to the owner of the program, and
// no other user can change the program. For another user: the user's own rights decide; but if others can
// change a folder or link on the way, all users must be allowed to read the file.
//
// Error codes: ENOENT and ENOTDIR: there is no such file; EPERM: it is refused.
Result<SourceBytes> read_source(const std::string& root, const std::string& path, const std::string& program);

using Md5 = std::array<std::byte, 16>;
Md5 md5_of(format::Bytes bytes);
// MD5 sums of source files when programs were compiled, by path: several if they were compiled from several
// texts.
using SourceSums = std::map<std::string, std::vector<Md5>, std::less<>>;
// Adds the sums that `to` does not have for the path.
void add_sums(SourceSums& to, std::string_view path, std::span<const Md5> sums);

// The attachment of a capture with the sums of the source files that its symbol pack names, in lines as
// md5sum prints them (`tacho pack`).
inline constexpr std::string_view kAttachedSums = "source-md5";
Result<format::Attachment> attach_sums(const SourceSums& sums);
// Ignores lines that have no sum.
SourceSums sums_in(const format::Attachment& attachment);

// The text of a source file by lines. Takes the memory of the text and an eighth of a byte for each line.
class SourceText {
 public:
  SourceText() = default;
  explicit SourceText(std::vector<std::byte> bytes);
  std::size_t lines() const { return lines_; }
  // Line `number`, from 1 up, without its end; empty: there are fewer.
  std::string_view line(std::size_t number) const;

 private:
  static constexpr std::size_t kStep = 64;
  std::string_view text() const { return format::as_text(bytes_); }

  std::vector<std::byte> bytes_;
  std::vector<std::size_t> starts_;  // of every kStep-th line
  std::size_t lines_ = 0;
};

}  // namespace tacho::symbolize
