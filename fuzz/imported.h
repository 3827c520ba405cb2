// A profile through one format of tacho import: what is called done is a capture that can be read, with
// names.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "format/container/capture_reader.h"
#include "format/extensions/symbol_pack.h"
#include "report/views/import/import_formats.h"
#include "report/views/import/import_input.h"

namespace tacho::fuzz {

using ImportProfile = Result<> (*)(const report::ImportTask&, const report::CopyOutput&,
                                   format::Diagnostics&);

inline void import_bytes(const std::uint8_t* data, std::size_t size, ImportProfile import) {
  constexpr std::size_t kMost = std::size_t{1} << 24;  // bytes, unpacked
  const auto given = std::as_bytes(std::span(data, size));
  const auto bytes = report::unpack_gzip({given.begin(), given.end()}, kMost);
  if (!bytes) return;
  const format::Fd file(::memfd_create("imported", MFD_CLOEXEC));
  report::CopyOutput output;
  output.begin = [&file]() -> Result<format::Fd> {
    return format::Fd(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0));
  };
  output.write = [](format::Bytes) -> Result<> { return Done{}; };
  output.finish = []() -> Result<> { return Done{}; };
  format::Diagnostics diagnostics;
  const auto done = import({.bytes = *bytes, .source = "fuzz", .comm = {}}, output, diagnostics);
  if (!done) {
    if (done.error().what.empty() || done.error().what.find('\n') != std::string::npos) std::abort();
    return;
  }
  format::Diagnostics found;
  auto reader = format::CaptureReader::open("/proc/self/fd/" + std::to_string(file.get()), found);
  if (!reader || !format::parse_symbol_pack(reader->features().symbol_pack)) std::abort();
  while (reader->next_record()) {
  }
  if (found.incomplete()) std::abort();
}

}  // namespace tacho::fuzz
