// Lines of source files as `script -F srccode` shows them: each once, as long as its thread stays there.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>

#include "report/output/printable.h"
#include "report/output/text_output.h"
#include "report/samples/resolver.h"
#include "report/samples/source_files.h"

namespace tacho::report {

class SourceCode {
 public:
  SourceCode(Resolver& resolver, Names names) : files_(resolver), names_(names) {}

  // "|12       int main(void)" and the line's end; nothing where the line is not known or was shown last.
  void write(TextBuffer& out, const Thread& thread, const symbolize::Frame& frame);

 private:
  SourceFiles files_;
  Names names_;
  std::unordered_map<const Thread*, std::pair<std::string, std::uint32_t>> shown_last_;
};

}  // namespace tacho::report
