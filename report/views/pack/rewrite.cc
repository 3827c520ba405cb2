#include "report/views/pack/rewrite.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "cli/shell_word.h"
#include "format/base/file.h"
#include "format/base/output.h"
#include "format/container/capture_reader.h"
#include "format/container/capture_writer.h"
#include "report/output/whole_capture.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;
using format::CaptureReader;

Result<> check(const CaptureReader& reader, const format::Diagnostics& diagnostics,
               const std::string& input) {
  const format::CaptureLayout& layout = reader.layout();
  const std::string remedy =
      "; 'tacho convert -i " + cli::shell_word(input) + " -o FILE' makes one that can be";
  if (layout.is_pipe)
    return Error{input + ": has the form of a pipe, to which nothing can be added" + remedy};
  if (layout.order != std::endian::native)
    return Error{input + ": was recorded in the other byte order and is not rewritten" + remedy};
  return check_whole(reader, diagnostics, input, "rewritten");
}

// u64 count, then {u64 offset in the file, u64 size} of each AUXTRACE record: they move with the data.
void move_aux_index(format::Features& features, std::uint64_t moved_by, format::Features& late) {
  const auto index = std::ranges::find(features.raw, abi::kFeatureAuxtrace, &format::RawSection::feature);
  if (index == features.raw.end()) return;
  format::Cursor in(index->bytes);
  format::ByteWriter out;
  out.u64(in.u64());
  while (in.left() >= 2 * sizeof(std::uint64_t)) {
    const std::uint64_t offset = in.u64();
    out.u64(offset + moved_by).u64(in.u64());
  }
  format::keep_section(late, abi::kFeatureAuxtrace, out.view());
}

// Where what is written goes in the end: behind a link, the file that it names.
std::string real_path(const std::string& path) {
  std::error_code ignored;
  const auto real = std::filesystem::canonical(path, ignored);
  return real.empty() ? path : real.string();
}

}  // namespace

Result<> check_rewritable(const std::string& input) {
  if (input == "-") return Error{"standard input cannot be rewritten; name a file"};
  format::Diagnostics diagnostics;
  if (auto checked = check_no_folder(input, "rewritten"); !checked) return checked;
  const auto reader = CaptureReader::open(input, diagnostics);
  if (!reader) return reader.error();
  return check(*reader, diagnostics, input);
}

Result<> rewrite(const RewriteOptions& options, const std::function<Result<>(format::Features&)>& change) {
  format::Diagnostics diagnostics;
  format::ReadOptions reading;
  reading.keep_all = true;
  const auto before = FileState::of(options.input);
  if (!before) return before.error();
  auto source = format::open_input(options.input);
  if (!source) return std::move(source.error());
  auto reader = CaptureReader::open(options.input, diagnostics, reading);
  if (!reader) return std::move(reader.error());
  if (auto checked = check(*reader, diagnostics, options.input); !checked) return checked;
  format::Features features = reader->take_features();
  if (auto changed = change(features); !changed) return changed;

  const bool is_in_place = options.output.empty();
  const std::string target = is_in_place ? real_path(options.input) : options.output;
  auto output = format::WholeOutput::create(
      target, is_in_place ? format::WholeOutput::Old::Replaced : format::WholeOutput::Old::Kept);
  if (!output) return std::move(output.error());
  auto file = output->duplicate();
  if (!file) return std::move(file.error());
  format::Features late;
  const format::CaptureLayout& layout = reader->layout();
  format::WriteOptions writing;
  writing.as_given = writing.copies_data = true;
  auto writer = format::CaptureWriter::create(std::move(*file), reader->events(), features, writing);
  if (!writer) return std::move(writer.error()).in(target);
  move_aux_index(features, writer->next_offset() - layout.data_offset, late);
  if (auto copied = writer->copy_data(source->get(), layout.data_offset, layout.data_size); !copied)
    return std::move(copied.error()).in(target);
  if (auto closed = writer->close(late); !closed) return std::move(closed.error()).in(target);
  if (auto same = before->check_same(options.input); !same) return same;
  return output->finish();
}

}  // namespace tacho::report
