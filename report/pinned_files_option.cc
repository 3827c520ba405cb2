#include "report/pinned_files_option.h"

#include <string>
#include <string_view>
#include <utility>

#include "format/base/parse_text.h"

namespace tacho::report {

cli::Option pinned_files_option(std::optional<symbolize::PinnedFiles>& pinned) {
  return {"--pinned-files", cli::Takes::Value, "FD",
          "internal, for tacho-record: a list of files that it kept open",
          [&pinned](std::string_view text) -> Result<> {
            const auto listing = format::whole_number<int>(text);
            if (!listing || *listing < 0)
              return use_error("--pinned-files: '" + std::string(text) + "' is no descriptor");
            auto read = symbolize::PinnedFiles::read(*listing);
            if (!read) return std::move(read.error()).in("--pinned-files");
            pinned = std::move(*read);
            return Done{};
          }};
}

}  // namespace tacho::report
