#include "report/tables/table_stream.h"

#include <fcntl.h>

#include <cerrno>

namespace tacho::report {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 18;  // bytes
constexpr std::size_t kHead = 5;                      // of a piece: its table, and its size, little endian
constexpr int kLevel = 1;                             // of zstd

template <std::size_t... kTable>
std::array<RowWriter, kTables> make_writers(RowFormat form, std::index_sequence<kTable...>) {
  return {RowWriter(form, table_layouts()[kTable])...};
}

}  // namespace

TableStream::TableStream(TextOutput& out, RowFormat form)
    : out_(&out), writers_(make_writers(form, std::make_index_sequence<kTables>())) {
  for (RowWriter& writer : writers_) writer.head();
}

void TableStream::end_row(TableId table) {
  RowWriter& writer = this->table(table);
  writer.end_row();
  if (writer.buffer().size() >= kPiece) write_piece(table);
}

void TableStream::write_piece(TableId table) {
  TextBuffer& rows = this->table(table).buffer();
  std::string_view left = rows.view();
  do {  // a row may be longer than a size has room for
    const std::string_view piece = left.substr(0, kPiece * 2);
    out_->character(static_cast<char>(table));
    for (std::size_t i = 0; i + 1 < kHead; ++i)
      out_->character(static_cast<char>(piece.size() >> 8 * i & 0xff));
    out_->text(piece);
    out_->line_end();
    left.remove_prefix(piece.size());
  } while (!left.empty());
  rows.clear();
}

void TableStream::finish() {
  for (std::size_t i = 0; i < kTables; ++i)
    if (writers_[i].buffer().size() > 0) write_piece(static_cast<TableId>(i));
}

std::map<std::string, std::string, std::less<>> TableFiles::paths() const {
  std::map<std::string, std::string, std::less<>> paths;
  for (std::size_t i = 0; i < kTables; ++i) {
    const auto table = static_cast<TableId>(i);
    paths.emplace(std::string(layout_of(table).name) + "_file", path_of(table));
  }
  return paths;
}

std::string TableFiles::path_of(TableId table) const {
  std::string path = folder + "/" + std::string(layout_of(table).name) + "." + capture_id;
  path += form == RowFormat::Csv ? ".csv" : ".ndjson";
  return packing == TablePacking::Zstd ? path + ".zst" : path;
}

Result<> TableOutput::File::write(std::string_view bytes) {
  std::string packed;
  if (packer) {
    if (auto added = packer->add_bytes(bytes, packed); !added) return added;
    bytes = packed;
  }
  auto done = file->write(bytes);
  return done ? Result<>(Done{}) : Result<>(std::move(done.error()));
}

Result<> TableOutput::File::finish() {
  std::string packed;
  if (packer) {
    if (auto ended = packer->finish(packed); !ended) return ended;
  }
  if (auto done = file->write(packed); !done) return std::move(done.error());
  return file->finish();
}

Result<TableOutput::File> TableOutput::open_file(TableId table) const {
  File made;
  const std::string path = where_.path_of(table);
  if (where_.naming == TableNaming::Scratch) {
    made.scratch = format::Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, where_.mode));
    if (!made.scratch) return output_system_error(path, errno);
    made.file.emplace(made.scratch.get(), path);
  } else {
    auto file = OutputFile::create(path, where_.mode);
    if (!file) return std::move(file.error());
    made.file.emplace(std::move(*file));
  }
  if (where_.packing == TablePacking::Plain) return made;
  auto packer = format::ZstdStream::create(kLevel);
  if (!packer) return std::move(packer.error());
  made.packer.emplace(std::move(*packer));
  return made;
}

Result<TableOutput> TableOutput::open(const TableFiles& files) {
  TableOutput output(files);
  if (auto opened = output.restart(); !opened) return std::move(opened.error());
  return output;
}

Result<> TableOutput::restart() {
  files_.clear();
  head_.clear();
  left_ = 0;
  for (std::size_t i = 0; i < kTables; ++i) {
    auto file = open_file(static_cast<TableId>(i));
    if (!file) return std::move(file.error());
    files_.push_back(std::move(*file));
  }
  return Done{};
}

Result<OutputFile::Reader> TableOutput::write(std::string_view bytes) {
  while (!bytes.empty()) {
    if (head_.size() < kHead) {
      head_ += bytes.front();
      bytes.remove_prefix(1);
      if (head_.size() < kHead) continue;
      for (std::size_t i = 1; i < kHead; ++i)
        left_ |= std::size_t{static_cast<unsigned char>(head_[i])} << 8 * (i - 1);
    }
    const auto table = static_cast<unsigned char>(head_[0]);
    if (table >= files_.size()) return Error{"the stream of tables is damaged"};
    const std::string_view piece = bytes.substr(0, left_);
    if (auto done = files_[table].write(piece); !done) return std::move(done.error());
    bytes.remove_prefix(piece.size());
    left_ -= piece.size();
    if (left_ == 0) head_.clear();
  }
  return OutputFile::Reader::There;
}

Result<> TableOutput::finish() {
  if (!head_.empty()) return Error{"the stream of tables is cut short"};
  for (std::size_t i = files_.size(); i-- > 0;)
    if (auto done = files_[i].finish(); !done) return done;
  return Done{};
}

}  // namespace tacho::report
