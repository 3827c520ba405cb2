// Source files by lines, each read once.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "report/samples/resolver.h"

namespace tacho::report {

class SourceFiles {
 public:
  explicit SourceFiles(Resolver& resolver) : resolver_(&resolver) {}

  // The lines of a file, without their ends. None when it cannot be read, which is not tried again. As long
  // as this.
  const std::vector<std::string>& lines_of(std::string_view file);

 private:
  Resolver* resolver_;
  std::map<std::string, std::vector<std::string>, std::less<>> files_;
};

}  // namespace tacho::report
