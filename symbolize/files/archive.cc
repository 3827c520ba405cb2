#include "symbolize/files/archive.h"

#include <bzlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace tacho::symbolize {
namespace {

constexpr std::size_t kBlock = 512;                             // bytes of a tar block
constexpr std::size_t kPiece = std::size_t{1} << 18;            // bytes that are read at a time
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;    // of all files together
constexpr std::uint64_t kMostOfBlock = std::uint64_t{1} << 26;  // decompressed bytes of a bzip2 block
constexpr std::size_t kMostFiles = 512;                         // each needs a descriptor
constexpr std::string_view kPacked = "BZh", kElf = "\177ELF", kTar = "ustar";
// Offsets and sizes of fields in a tar header.
constexpr std::size_t kTarAt = 257, kSumAt = 148, kSumSize = 8, kSizeAt = 124, kSizeSize = 12, kKindAt = 156;

// Parses a number of a tar header: octal digits, or GNU tar's binary form of large numbers.
std::optional<std::uint64_t> number_at(format::Bytes block, std::size_t at, std::size_t size) {
  constexpr unsigned kBase = 8, kBits = 8;
  std::uint64_t number = 0;
  const format::Bytes field = block.subspan(at, size);
  if (field[0] == std::byte{0x80}) {
    for (const std::byte one : field.subspan(1)) {
      if (number >> (64 - kBits) != 0) return std::nullopt;
      number = number << kBits | static_cast<std::uint64_t>(one);
    }
    return number;
  }
  std::string_view digits = format::as_text(field);
  digits.remove_prefix(std::min(digits.find_first_not_of(' '), digits.size()));
  for (const char digit : digits.substr(0, digits.find_first_not_of("01234567")))
    number = number * kBase + static_cast<unsigned>(digit - '0');  // 12 digits at most
  return number;
}

struct Entry {
  bool is_file = false;
  std::uint64_t size = 0;  // bytes after the header, without padding
};

// Parses the header of an entry; nothing: its checksum is wrong.
std::optional<Entry> parse_entry(format::Bytes block) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < block.size(); ++i)
    sum += i >= kSumAt && i < kSumAt + kSumSize ? ' ' : static_cast<unsigned>(block[i]);
  if (number_at(block, kSumAt, kSumSize) != sum) return std::nullopt;
  const auto size = number_at(block, kSizeAt, kSizeSize);
  if (!size || *size >> 62 != 0) return std::nullopt;
  const char kind = static_cast<char>(block[kKindAt]);
  const bool has_no_content = kind >= '1' && kind <= '6';  // links, devices and folders have no content
  return Entry{kind == '0' || kind == '\0', has_no_content ? 0 : *size};
}

// Reads the bytes of an archive, decompressed if needed. `left`: the limit of bytes of this archive and of
// the ones in it, which is counted down. 1 MB of bzip2 can hold 20 GB of zeros, a sparse file any number.
class Unpacker {
 public:
  Unpacker(format::Fd file, std::uint64_t& left) : file_(std::move(file)), left_(left) {}
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;
  ~Unpacker() {
    if (is_begun_) BZ2_bzDecompressEnd(&state_);
  }

  // Fills `to`; less only at the end.
  Result<std::size_t> read(std::span<std::byte> to) {
    auto got = unpack(to);
    if (!got) return got;
    if (*got > left_) return Error{"its contents exceed the limit of 2 GB"};
    left_ -= *got;
    return got;
  }

 private:
  Result<std::size_t> unpack(std::span<std::byte> to) {
    std::size_t done = 0;
    while (done < to.size()) {
      if (auto filled = fill(); !filled) return std::move(filled.error());
      if (rest_.empty() && is_begun_) return Error{"it is truncated"};
      if (rest_.empty()) break;
      if (!is_packed_) {
        const std::size_t size = std::min(rest_.size(), to.size() - done);
        std::ranges::copy(rest_.first(size), to.begin() + static_cast<std::ptrdiff_t>(done));
        rest_ = rest_.subspan(size);
        done += size;
        continue;
      }
      if (!is_begun_) {  // a parallel compressor writes several streams in a row
        state_ = {};
        if (BZ2_bzDecompressInit(&state_, 0, 0) != BZ_OK) return Error{"bzip2 could not be started"};
        is_begun_ = true;
      }
      const auto room = static_cast<unsigned>(std::min(to.size() - done, kPiece));
      state_.next_in = const_cast<char*>(format::as_text(rest_).data());
      state_.avail_in = static_cast<unsigned>(rest_.size());
      state_.next_out = reinterpret_cast<char*>(to.data() + done);
      state_.avail_out = room;
      const int status = BZ2_bzDecompress(&state_);
      rest_ = rest_.last(state_.avail_in);
      done += room - state_.avail_out;
      if (status == BZ_STREAM_END) {
        BZ2_bzDecompressEnd(&state_);
        is_begun_ = false;
      } else if (status != BZ_OK) {
        return Error{"its bzip2 part is damaged"};
      }
    }
    return done;
  }

  Result<> fill() {
    if (!rest_.empty() || is_at_end_) return Done{};
    piece_.resize(kPiece);
    ssize_t got = 0;
    do got = ::read(file_.get(), piece_.data(), piece_.size());
    while (got < 0 && errno == EINTR);
    if (got < 0) return system_error("read", errno);
    rest_ = format::Bytes(piece_).first(static_cast<std::size_t>(got));
    is_at_end_ = got == 0;
    if (!std::exchange(is_format_known_, true)) is_packed_ = format::as_text(rest_).starts_with(kPacked);
    return Done{};
  }

  format::Fd file_;
  std::uint64_t& left_;
  std::vector<std::byte> piece_;
  format::Bytes rest_;
  bool is_format_known_ = false, is_packed_ = false, is_begun_ = false, is_at_end_ = false;
  bz_stream state_{};
};

bool begins_archive(std::string_view head) {
  return head.starts_with(kPacked) || (head.size() >= kBlock && head.substr(kTarAt).starts_with(kTar));
}

// The sandboxed child may not call pwrite(2), so this is not format::write_at().
bool write_whole(int to, format::Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(to, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(wrote));
  }
  return true;
}

std::optional<format::BuildId> build_id_of(const format::Fd& file, std::uint64_t size) {
  void* const memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (memory == MAP_FAILED) return std::nullopt;
  const format::Mapping mapping(memory, size);
  return format::build_id_in_elf(mapping.bytes());
}

class Reader {
 public:
  Reader(format::Fd file, Archive& archive, std::uint64_t& left)
      : left_(left), bytes_(std::move(file), left), archive_(archive) {}

  // An error: the rest cannot be read.
  Result<> read_all() {
    for (;;) {
      const auto got = bytes_.read(std::span(piece_).first(kBlock));
      if (!got) return got.error();
      if (*got == 0) return Done{};
      if (*got != kBlock) return Error{"it is truncated"};
      const format::Bytes block = std::span(piece_).first(kBlock);
      if (std::ranges::all_of(block, [](std::byte one) { return one == std::byte{0}; })) return Done{};
      const auto entry = parse_entry(block);
      if (!entry) return no_header_error();
      auto done = entry->is_file && entry->size > 0 ? read_file(entry->size) : skip(entry->size);
      if (done) done = skip((kBlock - entry->size % kBlock) % kBlock);
      if (!done) return done;
    }
  }

  void report_left_out() {
    for (const auto& [why, count] : left_out_)
      archive_.ignored.push_back((count == 1 ? "one of its files is ignored: "
                                             : std::to_string(count) + " of its files are ignored: ") +
                                 why);
  }

 private:
  Result<> skip(std::uint64_t size) {
    while (size > 0) {
      const auto got = take(size);
      if (!got) return got.error();
      size -= *got;
    }
    return Done{};
  }

  // Reads the next `size` bytes to the start of piece_, or as many as it holds.
  Result<std::size_t> take(std::uint64_t size) {
    const std::size_t wanted = std::min<std::uint64_t>(size, piece_.size());
    auto got = bytes_.read(std::span(piece_).first(wanted));
    if (got && *got != wanted) return Error{"it is truncated"};
    return got;
  }

  // The error for a block that is no header. Damaged bzip2 is the more precise reason, and libbz2 finds it
  // only after the block that it has already returned, so the rest is read.
  Error no_header_error() {
    for (std::uint64_t done = 0; done < kMostOfBlock;) {
      const auto got = bytes_.read(piece_);
      if (!got) return got.error();
      if (*got == 0) break;
      done += *got;
    }
    return Error{"its tar is damaged"};
  }

  // Keeps an entry if it is a program or library with a build id.
  Result<> read_file(std::uint64_t size) {
    const auto got = take(size);
    if (!got) return got.error();
    const std::string_view head = format::as_text(std::span(piece_).first(*got));
    const bool holds_archive = !is_inner_ && begins_archive(head);
    if (!holds_archive && !head.starts_with(kElf)) return skip(size - *got);
    auto file = keep(size, *got);
    if (!file) return std::move(file.error());
    if (!*file) return Done{};
    if (holds_archive) {
      read_inner(std::move(*file), size);
      return Done{};
    }
    const auto id = build_id_of(*file, size);
    if (!id) return Done{};
    kept_ += size;
    archive_.files.push_back({*id, std::move(*file)});
    return Done{};
  }

  // Copies an entry to a memfd; the first `got` bytes are in the piece already. An entry that exceeds the
  // limits is skipped, and the result is an empty Fd.
  Result<format::Fd> keep(std::uint64_t size, std::size_t got) {
    std::uint64_t rest = size - got;
    format::Fd file;
    if (size > kMostBytes - kept_ || archive_.files.size() == kMostFiles)
      leave_out("the limit is 512 files and 1 GB");
    else if (file = format::Fd(::memfd_create("archived", MFD_CLOEXEC)); !file)
      leave_out(system_error("memory", errno).what);
    if (!file) {
      auto skipped = skip(rest);
      return skipped ? Result<format::Fd>(std::move(file)) : std::move(skipped.error());
    }
    bool is_whole = write_whole(file.get(), std::span(piece_).first(got));
    while (rest > 0) {
      const auto more = take(rest);
      if (!more) return more.error();
      is_whole = is_whole && write_whole(file.get(), std::span(piece_).first(*more));
      rest -= *more;
    }
    if (is_whole) return file;
    leave_out("there is not enough memory");
    return format::Fd();
  }

  // `perf archive --all` puts the archive and the capture into another archive.
  void read_inner(format::Fd file, std::uint64_t size) {
    if (::lseek(file.get(), 0, SEEK_SET) != 0) return leave_out(system_error("seek", errno).what);
    const auto inner = std::make_unique<Reader>(std::move(file), archive_, left_);
    inner->is_inner_ = true;
    inner->kept_ = kept_ + size;
    const auto done = inner->read_all();
    kept_ = inner->kept_ - size;
    for (const auto& [why, count] : inner->left_out_) left_out_[why] += count;
    if (!done) leave_out("in an archive in it: " + done.error().what);
  }

  void leave_out(const std::string& why) { ++left_out_[why]; }

  std::uint64_t& left_;
  Unpacker bytes_;
  Archive& archive_;
  std::array<std::byte, kPiece> piece_{};
  bool is_inner_ = false;                        // an archive in an archive; a third level is not read
  std::uint64_t kept_ = 0;                       // bytes of files
  std::map<std::string, std::size_t> left_out_;  // files, by the reason
};

}  // namespace

bool is_archive(const std::string& path) {
  const auto file = format::open_input(path);
  const auto head = file ? format::read_at(file->get(), 0, kBlock) : Result<std::vector<std::byte>>(Error{});
  if (!head) return false;
  return begins_archive(format::as_text(*head));
}

Result<Archive> read_archive(const std::string& path, std::uint64_t most) {
  auto file = format::open_input(path);
  if (!file) return std::move(file.error());
  Archive archive;
  const auto reader = std::make_unique<Reader>(std::move(*file), archive, most);
  const auto done = reader->read_all();
  if (!done && archive.files.empty()) return Error(done.error()).in(path);
  reader->report_left_out();
  if (!done)
    archive.ignored.push_back(
        "the rest after its first " +
        (archive.files.size() == 1 ? "file" : std::to_string(archive.files.size()) + " files") +
        " is ignored: " + done.error().what);
  return archive;
}

}  // namespace tacho::symbolize
