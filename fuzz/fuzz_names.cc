// Names for every target, and lines to be folded: what comes out must be safe.
#include <cstdlib>

#include "format/base/file.h"
#include "report/output/text_output.h"
#include "report/views/folded/folded.h"

using namespace tacho;
using namespace tacho::report;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = format::as_text(std::as_bytes(std::span(data, size)));
  const std::string safe = printable(text);
  for (const char c : safe) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) std::abort();
  }
  if (printable(safe) != safe) std::abort();
  if (printable_folded(text).find(';') != std::string::npos) std::abort();
  for (const bool is_java : {false, true}) {
    for (const std::string& name : fold_frame(text, {.marks = {true, true, true}}, is_java)) {
      if (name.find(';') != std::string::npos) std::abort();
    }
  }
  FoldedStart start;
  fold_start(text, start);
  return 0;
}
