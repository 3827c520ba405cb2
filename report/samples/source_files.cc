#include "report/samples/source_files.h"

#include <utility>

namespace tacho::report {

const symbolize::SourceText& SourceFiles::text_of(const symbolize::Module* module, std::string_view file,
                                                  std::uint32_t line) {
  auto known = files_.find(file);
  if (known == files_.end()) {
    known = files_.emplace(file, symbolize::SourceText()).first;
    auto bytes = resolver_->source_file(module, known->first);
    if (bytes && bytes->size() > room_) {
      resolver_->note_source(known->first, "is not shown as source: 256 MB of other files are shown already");
    } else if (bytes) {
      room_ -= bytes->size();
      known->second = symbolize::SourceText(std::move(*bytes));
    }
  }
  symbolize::SourceText& text = known->second;
  if (text.lines() != 0 && line > text.lines()) {
    resolver_->note_other_text(known->first, line, text.lines());
    text = symbolize::SourceText();
  }
  return text;
}

}  // namespace tacho::report
