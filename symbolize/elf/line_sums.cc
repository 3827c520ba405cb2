#include "symbolize/elf/line_sums.h"

#include <dwarf.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>

#include "format/base/digest.h"
#include "unwind/leb128.h"

namespace tacho::symbolize {
namespace {

struct Field {
  std::uint64_t content = 0, form = 0;  // DW_LNCT_*, DW_FORM_*
};

// A folder or file of a line table.
struct Entry {
  std::string_view name;
  std::uint64_t folder = 0;
  std::optional<Md5> sum;
};

// Many entries may name one text or folder, so a long one is cut.
constexpr std::size_t kLongest = 4096;  // bytes

std::string_view line_text_at(format::Bytes section, std::uint64_t offset) {
  if (offset >= section.size()) return {};
  const std::string_view text =
      format::as_text(section.subspan(static_cast<std::size_t>(offset))).substr(0, kLongest);
  return text.substr(0, text.find('\0'));
}

class EntryReader {
 public:
  EntryReader(const LineSums::Sections& sections, bool is_64_bit)
      : sections_(sections), is_64_bit_(is_64_bit) {}

  std::vector<Field> formats(format::Cursor& in) const {
    std::vector<Field> fields(in.u8());
    for (Field& field : fields) {
      field.content = unwind::read_uleb128(in);
      field.form = unwind::read_uleb128(in);
    }
    return fields;
  }
  Entry entry(format::Cursor& in, const std::vector<Field>& fields) const {
    Entry entry;
    for (const Field& field : fields) {
      std::string_view text;
      std::uint64_t number = 0;
      format::Bytes bytes;
      switch (field.form) {
        case DW_FORM_string:
          text = in.terminated().substr(0, kLongest);
          break;
        case DW_FORM_line_strp:
          text = line_text_at(sections_.line_texts, is_64_bit_ ? in.u64() : in.u32());
          break;
        case DW_FORM_strp:
          text = line_text_at(sections_.texts, is_64_bit_ ? in.u64() : in.u32());
          break;
        case DW_FORM_udata:
          number = unwind::read_uleb128(in);
          break;
        case DW_FORM_data1:
          number = in.u8();
          break;
        case DW_FORM_data2:
          number = in.u16();
          break;
        case DW_FORM_data4:
          number = in.u32();
          break;
        case DW_FORM_data8:
          number = in.u64();
          break;
        case DW_FORM_data16:
          bytes = in.take_bytes(sizeof(Md5));
          break;
        case DW_FORM_block:
          bytes = in.take_bytes(unwind::read_uleb128(in));
          break;
        default:
          in.fail();  // its size is unknown
      }
      if (field.content == DW_LNCT_path) entry.name = text;
      if (field.content == DW_LNCT_directory_index) entry.folder = number;
      if (field.content == DW_LNCT_MD5 && bytes.size() == sizeof(Md5))
        std::ranges::copy(bytes, entry.sum.emplace().begin());
    }
    return entry;
  }

 private:
  const LineSums::Sections& sections_;
  bool is_64_bit_;
};

// A path as libdw joins it: the table's first folder is that of the compilation.
void join(const std::vector<std::string_view>& folders, const Entry& file, std::string& path) {
  path.clear();
  if (!file.name.starts_with('/') && file.folder < folders.size()) {
    const std::string_view folder = folders[static_cast<std::size_t>(file.folder)];
    if (!folder.starts_with('/') && !folders[0].empty()) path.append(folders[0]).append("/");
    path.append(folder).append("/");
  }
  path.append(file.name);
}

std::uint64_t key_of(std::string_view path) { return format::digest(std::as_bytes(std::span(path))); }

}  // namespace

LineSums::LineSums(const Sections& sections) {
  constexpr std::uint32_t kIs64Bit = 0xffffffff;
  format::Cursor in(sections.lines, sections.order);
  while (in.left() > 0 && !in.failed()) {
    const format::Bytes rest = sections.lines.last(in.left());
    std::uint64_t size = in.u32();
    if (size == kIs64Bit) size = in.u64();
    in.skip(size);
    if (!in.failed())
      read_table(format::Cursor(rest.first(rest.size() - in.left()), sections.order), sections);
  }
}

void LineSums::read_table(format::Cursor in, const Sections& sections) {
  const bool is_64_bit = in.u32() == 0xffffffff;
  if (is_64_bit) in.u64();
  if (in.u16() != 5) return;
  in.skip(2);  // sizes of addresses and segments
  in.skip(is_64_bit ? 8 : 4);
  in.skip(5);  // about the line number program
  const std::uint8_t opcodes = in.u8();
  in.skip(std::max<std::size_t>(opcodes, 1) - 1);
  const EntryReader reader(sections, is_64_bit);
  std::vector<std::string_view> folders;
  const auto each = [&in](std::uint64_t count, auto&& visit) {
    for (; count > 0 && !in.failed(); --count) {
      const std::size_t before = in.left();
      visit();
      if (in.left() == before) return;  // an entry without bytes: the count is any number
    }
  };
  const auto of_folders = reader.formats(in);
  each(unwind::read_uleb128(in), [&] { folders.push_back(reader.entry(in, of_folders).name); });
  const auto of_files = reader.formats(in);
  if (std::ranges::find(of_files, std::uint64_t{DW_LNCT_MD5}, &Field::content) == of_files.end()) return;
  std::string path;
  each(unwind::read_uleb128(in), [&] {
    const Entry file = reader.entry(in, of_files);
    if (in.failed() || !file.sum) return;
    join(folders, file, path);
    constexpr std::size_t kMostOfOne = 8;
    auto& known = by_path_[key_of(path)];
    if (known.size() < kMostOfOne && std::ranges::find(known, *file.sum) == known.end())
      known.push_back(*file.sum);
  });
}

const std::vector<Md5>& LineSums::sums_of(std::string_view path) const {
  const auto found = by_path_.find(key_of(path));
  return found == by_path_.end() ? none_ : found->second;
}

}  // namespace tacho::symbolize
