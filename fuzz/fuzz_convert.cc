// A whole capture through convert: the first byte says into which form. What convert calls done can be read.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "format/container/capture_reader.h"
#include "fuzz/memory_file.h"
#include "report/views/convert/convert.h"

using namespace tacho;
using namespace tacho::report;

namespace {

// A folder of this process for the results; tmpfs, where there is one.
const std::string& folder() {
  static const std::string path = [] {
    std::error_code none;
    std::string made = std::filesystem::is_directory("/dev/shm", none) ? "/dev/shm" : "/tmp";
    made += "/fuzz_convert-XXXXXX";
    if (::mkdtemp(made.data()) == nullptr) std::abort();
    static std::string kept = made;
    std::atexit([] {
      std::error_code ignored;
      std::filesystem::remove_all(kept, ignored);
    });
    return made;
  }();
  return path;
}

ConvertOptions options_of(std::uint8_t choice, const std::string& input) {
  ConvertOptions options;
  options.input = input;
  options.output = folder() + "/out.data";
  options.form = (choice & 1) != 0 ? CaptureForm::Pipe : CaptureForm::File;
  options.packing = (choice & 2) != 0 ? Packing::Compressed : Packing::Plain;
  if ((choice & 4) != 0) options.packing = Packing::AsItIs;
  if ((choice & 8) != 0) options.times = "10%-60%";
  if ((choice & 16) != 0) options.events = {"cpu-clock"};
  return options;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const fuzz::MemoryFile file(data + 1, size - 1);
  const ConvertOptions options = options_of(data[0], file.path());
  format::Diagnostics diagnostics;
  auto target = CaptureTarget::open({.input = options.input, .output = options.output});
  if (!target) return 0;
  const auto done = convert(options, target->here(), diagnostics);
  if (done) {
    format::Diagnostics found;
    auto reader = format::CaptureReader::open(options.output, found);
    if (!reader) __builtin_trap();
    while (reader->next_record()) {
    }
  }
  // Else it would be kept as .old, again and again.
  ::unlink(options.output.c_str());
  return 0;
}
