// A print format (the first half of the input) as a tracepoint's own, compiled, and run over a record (the
// second half): it must not crash, and must give the result of libtraceevent.
#include <cstdlib>
#include <string>

#include "format/base/file.h"
#include "report/decode/payload.h"
#include "report/decode/tracepoint_text.h"

using namespace tacho;
using namespace tacho::report;

namespace {

// Fields of each kind, as tracefs describes them; only the print format is foreign.
constexpr std::string_view kHead =
    "name: fuzz\nID: 7\nformat:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
    "\tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n"
    "\tfield:unsigned long b;\toffset:16;\tsize:8;\tsigned:0;\n"
    "\tfield:u8 c;\toffset:24;\tsize:1;\tsigned:0;\n"
    "\tfield:short d;\toffset:26;\tsize:2;\tsigned:1;\n"
    "\tfield:char name[8];\toffset:28;\tsize:8;\tsigned:0;\n"
    "\tfield:__data_loc char[] path;\toffset:36;\tsize:4;\tsigned:0;\n"
    "\tfield:unsigned long list[3];\toffset:40;\tsize:24;\tsigned:0;\n"
    "\nprint fmt: ";

std::string text_of_record(const format::TracingData& tracing, format::Bytes record,
                           TracepointText::Evaluation evaluation, bool& is_compiled) {
  TracepointText texts(tracing, {}, evaluation);
  const auto text = texts.text_of(7, record, 0, std::endian::native);
  is_compiled = texts.is_compiled(7);
  return text ? std::string(*text) : std::string();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const format::Bytes bytes = std::as_bytes(std::span(data, size));
  const std::size_t cut = size - std::min<std::size_t>(size / 2, 96);
  std::string print_format(format::as_text(bytes.first(cut)));
  std::erase(print_format, '\0');
  format::TracingData tracing;
  tracing.formats.push_back({"fuzz", std::string(kHead) + print_format + "\n"});
  // The record's first two bytes are its tracepoint's number.
  std::vector<std::byte> record{std::byte{7}, std::byte{0}};
  record.insert(record.end(), bytes.begin() + static_cast<std::ptrdiff_t>(cut), bytes.end());
  bool is_compiled = false;
  bool ignored = false;
  const auto fast = text_of_record(tracing, record, TracepointText::Evaluation::Fast, is_compiled);
  if (!is_compiled || print_format.find(".*") != std::string::npos)
    return 0;  // the library does not do those
  if (fast != text_of_record(tracing, record, TracepointText::Evaluation::Library, ignored)) std::abort();
  return 0;
}
