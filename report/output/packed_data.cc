#include "report/output/packed_data.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <bit>

namespace tacho::report {

void PackedColumn::varint(std::uint64_t number) {
  used_bits_ |= number;
  for (; number >= 0x80; number >>= 7) bytes_ += static_cast<char>(number | 0x80);
  bytes_ += static_cast<char>(number);
}

void PackedColumn::add_number(std::uint64_t number) {
  varint(number);
  ++count_;
}

void PackedColumn::add_signed(std::int64_t number) {
  std::int64_t shown = number;
  if (form_ == ColumnForm::Differences) {
    shown = static_cast<std::int64_t>(static_cast<std::uint64_t>(number) - static_cast<std::uint64_t>(last_));
    last_ = number;
  }
  varint((static_cast<std::uint64_t>(shown) << 1) ^ static_cast<std::uint64_t>(shown >> 63));
  ++count_;
}

void PackedColumn::add_real(double number) {
  const auto bits = std::bit_cast<std::uint64_t>(number);
  for (int shift = 0; shift < 64; shift += 8) bytes_ += static_cast<char>(bits >> shift);
  ++count_;
}

std::string PackedColumn::packed() const {
  if (!is_of_planes()) return bytes_;
  std::string packed(packed_size(), '\0');
  std::size_t at = 0;
  each([&, planes = planes()](std::uint64_t number) {
    for (std::size_t plane = 0; plane < planes; ++plane)
      packed[plane * count_ + at] = static_cast<char>(number >> (8 * plane));
    ++at;
  });
  return packed;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t word = 0;
    const std::size_t size = std::min<std::size_t>(3, bytes.size() - at);
    for (std::size_t i = 0; i < 3; ++i)
      word = word << 8 | (i < size ? static_cast<std::uint8_t>(bytes[at + i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i) text += i <= size ? kDigits[word >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

namespace {

// Bytes of an element: a multiple of 3, so that its base64 needs no padding.
constexpr std::size_t kElement = std::size_t{3} << 20;
constexpr std::size_t kBlock = std::size_t{256} << 10;      // bytes that one worker compresses at a time
constexpr std::size_t kBlocks = 16;                         // blocks that are compressed in parallel
constexpr std::size_t kDictionary = std::size_t{32} << 10;  // bytes before a block that are its dictionary

struct PackedBlock {
  std::string bytes;
  std::uint32_t checksum = 0;
};

// A part of a deflate stream, up to a byte's end.
Result<PackedBlock> pack_block(std::string_view dictionary, std::string_view block, bool is_last) {
  constexpr int kLevel = 6, kRaw = -MAX_WBITS, kMemory = 9;
  const auto start = [](std::string_view bytes) {
    return reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  };
  z_stream stream{};
  if (::deflateInit2(&stream, kLevel, Z_DEFLATED, kRaw, kMemory, Z_DEFAULT_STRATEGY) != Z_OK)
    return Error{"zlib has no memory to pack data"};
  if (!dictionary.empty())
    ::deflateSetDictionary(&stream, start(dictionary), static_cast<uInt>(dictionary.size()));
  PackedBlock packed;
  stream.next_in = start(block);
  stream.avail_in = static_cast<uInt>(block.size());
  do {
    const std::size_t size = packed.bytes.size();
    packed.bytes.resize(size + kBlock / 2);
    stream.next_out = reinterpret_cast<Bytef*>(packed.bytes.data() + size);
    stream.avail_out = static_cast<uInt>(kBlock / 2);
    ::deflate(&stream, is_last ? Z_FINISH : Z_SYNC_FLUSH);
    packed.bytes.resize(packed.bytes.size() - stream.avail_out);
  } while (stream.avail_out == 0);
  ::deflateEnd(&stream);
  packed.checksum = static_cast<std::uint32_t>(::crc32(0, start(block), static_cast<uInt>(block.size())));
  return packed;
}

std::string little_endian(std::uint32_t number) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(number >> shift);
  return bytes;
}

// Writes the columns: compresses what is added into elements <script type="application/octet-stream"
// class="data"> of some megabytes each: one gzip stream, whose blocks the workers of a pool compress in
// parallel. The end of the previous block is a block's dictionary, so the stream is the same for any number
// of workers.
class PackedElements {
 public:
  // Both must outlive it.
  PackedElements(TextOutput& out, format::WorkerPool& pool) : out_(out), pool_(pool) {
    constexpr std::string_view kGzipHeader("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10);  // deflate, no time, Unix
    packed_ = kGzipHeader;
  }

  void add(std::string_view bytes) {
    while (!bytes.empty() && result_) {
      const std::size_t taken = std::min(bytes.size(), dictionary_ + kBlocks * kBlock - pending_.size());
      pending_ += bytes.substr(0, taken);
      bytes.remove_prefix(taken);
      if (pending_.size() == dictionary_ + kBlocks * kBlock) result_ = pack(false);
    }
  }

  Result<> finish() {
    if (result_) result_ = pack(true);
    if (!result_) return result_;
    packed_ += little_endian(checksum_) + little_endian(size_);
    write_element(packed_.size());
    return Done{};
  }

 private:
  Result<> pack(bool is_last) {
    const std::string_view all = pending_;
    const std::size_t size = all.size() - dictionary_;
    const std::size_t blocks = std::max<std::size_t>((size + kBlock - 1) / kBlock, 1);
    std::vector<PackedBlock> packed(blocks);
    auto done = pool_.run_tasks(blocks, [&](std::size_t number, unsigned) -> Result<> {
      const std::size_t begin = dictionary_ + number * kBlock, before = std::min(begin, kDictionary);
      auto block = pack_block(all.substr(begin - before, before), all.substr(begin, kBlock),
                              is_last && number + 1 == blocks);
      if (!block) return std::move(block.error());
      packed[number] = std::move(*block);
      return Done{};
    });
    if (!done) return done;
    for (std::size_t number = 0; number < blocks; ++number) {
      const std::size_t length = std::min(kBlock, size - number * kBlock);
      checksum_ = static_cast<std::uint32_t>(
          ::crc32_combine(checksum_, packed[number].checksum, static_cast<z_off_t>(length)));
      packed_ += packed[number].bytes;
      while (packed_.size() >= kElement) write_element(kElement);
    }
    size_ += static_cast<std::uint32_t>(size);
    pending_.erase(0, pending_.size() - std::min(pending_.size(), kDictionary));
    dictionary_ = pending_.size();
    return Done{};
  }

  void write_element(std::size_t size) {
    out_.text("<script type=\"application/octet-stream\" class=\"data\">");
    out_.text(base64(std::string_view(packed_).substr(0, size)));
    out_.text("</script>\n");
    out_.line_end();
    packed_.erase(0, size);
  }

  TextOutput& out_;
  format::WorkerPool& pool_;
  std::string pending_;         // the dictionary (the last bytes already compressed), then bytes to compress
  std::size_t dictionary_ = 0;  // its size in `pending_`
  std::string packed_;
  std::uint32_t checksum_ = 0;
  std::uint32_t size_ = 0;  // bytes compressed so far, modulo 2^32
  Result<> result_ = Done{};
};

}  // namespace

Result<> write_packed_data(TextOutput& out, std::string_view head, const std::vector<PackedColumn>& columns,
                           format::WorkerPool& pool) {
  std::string list;
  for (const PackedColumn& column : columns)
    list += fmt::format("{}[\"{}\",\"{}\",{},{}]", list.empty() ? "" : ",", column.name(),
                        static_cast<char>(column.form()), column.count(), column.packed_size());
  const std::string json = fmt::format("{{\"columns\":[{}],\"head\":{}}}", list, head);
  PackedElements packed(out, pool);
  packed.add(little_endian(static_cast<std::uint32_t>(json.size())));
  packed.add(json);
  for (const PackedColumn& column : columns) packed.add(column.packed());
  return packed.finish();
}

}  // namespace tacho::report
