// The texts of source files, as annotate, script and pages show them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "report/samples/resolver.h"
#include "symbolize/files/source_files.h"

namespace tacho::report {

// Source files, each read once, up to 256 MB in all.
class SourceFiles {
 public:
  explicit SourceFiles(Resolver& resolver) : resolver_(&resolver) {}

  // The text of a file that the debug information of `module` names, with line `line` of it; without lines if
  // it cannot be shown. If the file has fewer lines, it is another text than the program was compiled from:
  // it is not shown from then on, and views of its lines end. The reference is valid as long as this.
  const symbolize::SourceText& text_of(const symbolize::Module* module, std::string_view file,
                                       std::uint32_t line);

 private:
  Resolver* resolver_;
  std::map<std::string, symbolize::SourceText, std::less<>> files_;
  std::uint64_t room_ = std::uint64_t{256} << 20;  // bytes
};

}  // namespace tacho::report
