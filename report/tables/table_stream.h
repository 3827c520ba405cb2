// The way of tables from the sandboxed child, which has one output, to files: pieces of tables, each behind
// the number of its table and its size.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/base/file.h"
#include "format/base/result.h"
#include "format/codec/zstd_stream.h"
#include "report/output/output_file.h"
#include "report/tables/table_rows.h"

namespace tacho::report {

// In the child. A piece is a few hundred kilobytes, so memory does not follow the number of rows.
class TableStream {
 public:
  TableStream(TextOutput& out, RowFormat form);
  // For one row. end_row() ends it.
  RowWriter& table(TableId table) { return writers_[static_cast<std::size_t>(table)]; }
  void end_row(TableId table);
  // After the last row.
  void finish();
  bool is_done() const { return out_->is_done(); }

 private:
  void write_piece(TableId table);
  TextOutput* out_;
  std::array<RowWriter, kTables> writers_;
};

enum class TablePacking : std::uint8_t { Plain, Zstd };
// Named: files get their names when all are complete, that of captures last. Scratch: at once, and nothing
// waits for the disk.
enum class TableNaming : std::uint8_t { Named, Scratch };
struct TableFiles {
  std::string folder;      // exists
  std::string capture_id;  // in the names of the files
  RowFormat form = RowFormat::Csv;
  TablePacking packing = TablePacking::Zstd;
  TableNaming naming = TableNaming::Named;
  mode_t mode = 0600;
  // The path of a table's file: "FOLDER/samples.ID.csv.zst".
  std::string path_of(TableId table) const;
  // Of all tables, by "samples_file": the names that fleet/*.sql gives them.
  std::map<std::string, std::string, std::less<>> paths() const;
};

// In the parent: writes the tables of the stream to files.
class TableOutput {
 public:
  static Result<TableOutput> open(const TableFiles& files);
  Result<OutputFile::Reader> write(std::string_view bytes);
  Result<> finish();
  // Begins anew, with empty files.
  Result<> restart();

 private:
  struct File {
    format::Fd scratch{};
    std::optional<OutputFile> file{};
    std::optional<format::ZstdStream> packer{};
    Result<> write(std::string_view bytes);
    Result<> finish();
  };
  explicit TableOutput(TableFiles files) : where_(std::move(files)) {}
  Result<File> open_file(TableId table) const;

  TableFiles where_;
  std::vector<File> files_;  // by TableId
  std::string head_;         // of the piece, as far as it is read
  std::size_t left_ = 0;     // bytes of the piece
};

}  // namespace tacho::report
