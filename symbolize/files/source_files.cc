#include "symbolize/files/source_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <span>
#include <utility>

#include "format/base/file.h"
#include "format/base/trusted_path.h"
#include "symbolize/files/debug_files.h"
#include "symbolize/files/decompress.h"
#include "symbolize/symbol_options.h"

namespace tacho::symbolize {
namespace {

constexpr std::uint64_t kLargestSource = std::uint64_t{64} << 20;  // bytes

constexpr std::string_view kEndings[] = {
    ".ada", ".adb", ".ads",  ".asm", ".c",   ".c++",  ".cc",  ".cl",   ".cp",    ".cpp",   ".cppm", ".cr",
    ".cs",  ".cu",  ".cuh",  ".cxx", ".d",   ".dart", ".def", ".el",   ".erl",   ".ex",    ".f",    ".f03",
    ".f08", ".f77", ".f90",  ".f95", ".for", ".fs",   ".go",  ".h",    ".h++",   ".hh",    ".hip",  ".hpp",
    ".hs",  ".hxx", ".i",    ".ii",  ".inc", ".inl",  ".ipp", ".ispc", ".ixx",   ".java",  ".jl",   ".js",
    ".kt",  ".l",   ".lex",  ".lhs", ".ll",  ".lua",  ".m",   ".mjs",  ".ml",    ".mli",   ".mll",  ".mly",
    ".mm",  ".nim", ".odin", ".p",   ".pas", ".php",  ".pl",  ".pm",   ".pp",    ".py",    ".pyx",  ".pxd",
    ".re",  ".rb",  ".rl",   ".rs",  ".s",   ".scm",  ".sx",  ".spp",  ".scala", ".swift", ".tcc",  ".td",
    ".tpp", ".ts",  ".tsx",  ".txx", ".v",   ".vala", ".y",   ".yy",   ".ypp",   ".zig"};

// The headers of the C++ library, which have no extension.
constexpr std::string_view kLibraryHeaders[] = {"algorithm",
                                                "any",
                                                "array",
                                                "atomic",
                                                "barrier",
                                                "bit",
                                                "bitset",
                                                "cassert",
                                                "cctype",
                                                "cerrno",
                                                "cfenv",
                                                "cfloat",
                                                "charconv",
                                                "chrono",
                                                "cinttypes",
                                                "climits",
                                                "clocale",
                                                "cmath",
                                                "codecvt",
                                                "compare",
                                                "complex",
                                                "concepts",
                                                "condition_variable",
                                                "coroutine",
                                                "csetjmp",
                                                "csignal",
                                                "cstdarg",
                                                "cstddef",
                                                "cstdint",
                                                "cstdio",
                                                "cstdlib",
                                                "cstring",
                                                "ctime",
                                                "cuchar",
                                                "cwchar",
                                                "cwctype",
                                                "deque",
                                                "exception",
                                                "execution",
                                                "expected",
                                                "filesystem",
                                                "flat_map",
                                                "flat_set",
                                                "format",
                                                "forward_list",
                                                "fstream",
                                                "functional",
                                                "future",
                                                "generator",
                                                "initializer_list",
                                                "iomanip",
                                                "ios",
                                                "iosfwd",
                                                "iostream",
                                                "istream",
                                                "iterator",
                                                "latch",
                                                "limits",
                                                "list",
                                                "locale",
                                                "map",
                                                "mdspan",
                                                "memory",
                                                "memory_resource",
                                                "mutex",
                                                "new",
                                                "numbers",
                                                "numeric",
                                                "optional",
                                                "ostream",
                                                "print",
                                                "queue",
                                                "random",
                                                "ranges",
                                                "ratio",
                                                "regex",
                                                "scoped_allocator",
                                                "semaphore",
                                                "set",
                                                "shared_mutex",
                                                "source_location",
                                                "span",
                                                "spanstream",
                                                "sstream",
                                                "stack",
                                                "stacktrace",
                                                "stdexcept",
                                                "stdfloat",
                                                "stop_token",
                                                "streambuf",
                                                "string",
                                                "string_view",
                                                "strstream",
                                                "syncstream",
                                                "system_error",
                                                "thread",
                                                "tuple",
                                                "type_traits",
                                                "typeindex",
                                                "typeinfo",
                                                "unordered_map",
                                                "unordered_set",
                                                "utility",
                                                "valarray",
                                                "variant",
                                                "vector",
                                                "version"};

// Fortran and assembly with preprocessor have an upper-case extension.
bool is_ending(std::string_view ending) {
  std::string lower(ending);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return std::ranges::find(kEndings, lower) != std::end(kEndings);
}

bool is_missing(const Error& error) { return error.code == ENOENT || error.code == ENOTDIR; }

// Whether the program belongs to `owner`, and no other user can change it.
bool is_program_of(uid_t owner, const std::string& program) {
  if (program.empty()) return false;
  const auto found = format::find_on_way({}, program);
  return found && found->objection.empty() && S_ISREG(found->status.st_mode) && found->status.st_uid == owner;
}

// Opens the file for reading; without /proc, by its name.
Result<format::Fd> open_again(const format::FileOnWay& found, const std::string& name) {
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  const std::string by_number = "/proc/self/fd/" + std::to_string(found.file.get());
  format::Fd file(::open(by_number.c_str(), kFlags));
  if (!file && errno == ENOENT) file = format::Fd(::open(name.c_str(), kFlags));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return Error{::strerror(errno), errno};
  const bool is_same = status.st_dev == found.status.st_dev && status.st_ino == found.status.st_ino;
  return is_same ? std::move(file) : Result<format::Fd>(Error{"it changed meanwhile", EINVAL});
}

// Why a file must not be read; empty: it may be.
std::string refusal(const format::FileOnWay& found, const std::string& program) {
  if (found.is_public && (found.objection.empty() || ::geteuid() != 0)) return {};
  if (!found.objection.empty())
    return found.objection + (::geteuid() == 0
                                  ? ", and root reads no source that another user could have put there"
                                  : ", and not all users may read the file");
  if (::geteuid() != 0 || is_program_of(found.status.st_uid, program)) return {};
  return "not all users may read it, and it does not belong to the owner of the program";
}

}  // namespace

bool is_source_name(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const auto dot = name.rfind('.');
  if (dot == std::string_view::npos)
    return std::ranges::find(kLibraryHeaders, name) != std::end(kLibraryHeaders);
  return dot != 0 && is_ending(name.substr(dot));
}

Result<SourceBytes> read_source(const std::string& root, const std::string& path,
                                const std::string& program) {
  if (root == kNoFiles) return Error{path + ": no file is read", ENOENT};
  const auto found = format::find_on_way(root, path);
  if (!found && is_missing(found.error())) return found.error();
  if (!is_source_name(path)) return Error{"it does not have the name of a source file", EPERM};
  if (!found) return found.error();
  if (!S_ISREG(found->status.st_mode) || is_pseudo_file(found->file.get()))
    return Error{"it is not a regular file", EPERM};
  if (std::string why = refusal(*found, program); !why.empty()) return Error{std::move(why), EPERM};
  if (static_cast<std::uint64_t>(found->status.st_size) > kLargestSource)
    return Error{"it is larger than 64 MB", EFBIG};
  const auto file = open_again(*found, root + path);
  if (!file) return Error{"it cannot be opened: " + file.error().what, EACCES};
  auto bytes = format::read_at(file->get(), 0, static_cast<std::size_t>(found->status.st_size));
  if (!bytes) return std::move(bytes.error());
  constexpr std::int64_t kSecond = 1'000'000'000;
  return SourceBytes{std::move(*bytes),
                     found->status.st_mtim.tv_sec * kSecond + found->status.st_mtim.tv_nsec};
}

namespace {

// RFC 1321.
class Md5Sum {
 public:
  void add_block(const std::byte* block) {
    constexpr int kShifts[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
    // Bits of |sin(i + 1)|.
    static constexpr std::uint32_t kSines[64] = {
        0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
        0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
        0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
        0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
        0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
        0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
        0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
        0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};
    std::array<std::uint32_t, 16> words{};
    for (std::size_t i = 0; i < 64; ++i)
      words.at(i / 4) |= std::to_integer<std::uint32_t>(block[i]) << (8 * (i % 4));
    auto [a, b, c, d] = state_;
    for (std::uint32_t i = 0; i < 64; ++i) {
      const std::uint32_t round = i / 16;
      const std::uint32_t mixed = round == 0   ? (b & c) | (~b & d)
                                  : round == 1 ? (d & b) | (~d & c)
                                  : round == 2 ? b ^ c ^ d
                                               : c ^ (b | ~d);
      const std::uint32_t word = round == 0 ? i : round == 1 ? 5 * i + 1 : round == 2 ? 3 * i + 5 : 7 * i;
      const std::uint32_t sum = a + mixed + kSines[i] + words.at(word % 16);
      a = d;
      d = c;
      c = b;
      b += std::rotl(sum, kShifts[round][i % 4]);
    }
    state_[0] += a;
    state_[1] += b;
    state_[2] += c;
    state_[3] += d;
  }
  Md5 finish() const {
    Md5 sum{};
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum.at(i) = static_cast<std::byte>(state_.at(i / 4) >> (8 * (i % 4)));
    return sum;
  }

 private:
  std::array<std::uint32_t, 4> state_ = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
};

}  // namespace

Md5 md5_of(format::Bytes bytes) {
  constexpr std::size_t kBlock = 64, kLength = 8;
  Md5Sum sum;
  const std::uint64_t bits = std::uint64_t{8} * bytes.size();
  for (; bytes.size() >= kBlock; bytes = bytes.subspan(kBlock)) sum.add_block(bytes.data());
  std::array<std::byte, 2 * kBlock> last{};
  std::ranges::copy(bytes, last.begin());
  last.at(bytes.size()) = std::byte{0x80};
  const std::size_t size = bytes.size() + 1 + kLength <= kBlock ? kBlock : 2 * kBlock;
  for (std::size_t i = 0; i < kLength; ++i)
    last.at(size - kLength + i) = static_cast<std::byte>(bits >> (8 * i));
  for (std::size_t at = 0; at < size; at += kBlock) sum.add_block(last.data() + at);
  return sum.finish();
}

namespace {

std::string hex_of(const Md5& sum) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : sum) {
    text += kDigits[std::to_integer<std::size_t>(byte) >> 4];
    text += kDigits[std::to_integer<std::size_t>(byte) & 15U];
  }
  return text;
}

bool read_hex(std::string_view text, Md5& sum) {
  for (std::size_t i = 0; i < 2 * sum.size(); ++i) {
    const char c = text[i];
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) return false;
    sum.at(i / 2) = static_cast<std::byte>(std::to_integer<int>(sum.at(i / 2)) << 4 | digit);
  }
  return true;
}

}  // namespace

void add_sums(SourceSums& to, std::string_view path, std::span<const Md5> sums) {
  if (sums.empty()) return;
  std::vector<Md5>& known = to[std::string(path)];
  for (const Md5& sum : sums)
    if (std::ranges::find(known, sum) == known.end()) known.push_back(sum);
}

Result<format::Attachment> attach_sums(const SourceSums& sums) {
  std::string text;
  for (const auto& [path, all] : sums) {
    if (path.find('\n') != std::string::npos) continue;
    for (const Md5& sum : all) text.append(hex_of(sum)).append("  ").append(path).append("\n");
  }
  return format::pack_attachment(std::string(kAttachedSums), "DWARF", std::as_bytes(std::span(text)));
}

SourceSums sums_in(const format::Attachment& attachment) {
  constexpr std::size_t kBefore = 2 * sizeof(Md5) + 2;  // the sum and two blanks
  SourceSums sums;
  const auto bytes = unpack_attached_text(attachment);
  if (!bytes) return sums;
  for (std::string_view rest = format::as_text(*bytes); !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    Md5 sum{};
    if (line.size() <= kBefore || !read_hex(line, sum)) continue;
    sums[std::string(line.substr(kBefore))].push_back(sum);
  }
  return sums;
}

SourceText::SourceText(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {
  const std::string_view all = text();
  for (std::size_t at = 0; at < all.size(); ++lines_) {
    if (lines_ % kStep == 0) starts_.push_back(at);
    at = std::min(all.find('\n', at), all.size() - 1) + 1;
  }
}

std::string_view SourceText::line(std::size_t number) const {
  if (number == 0 || number > lines_) return {};
  std::string_view rest = text().substr(starts_[(number - 1) / kStep]);
  for (std::size_t left = (number - 1) % kStep; left > 0; --left) rest.remove_prefix(rest.find('\n') + 1);
  return rest.substr(0, rest.find('\n'));
}

}  // namespace tacho::symbolize
