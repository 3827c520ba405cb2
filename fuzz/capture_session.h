// A session over a capture that a fuzzer made up. It finds no file that the capture names.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fuzz/memory_file.h"
#include "report/samples/session.h"

namespace tacho::fuzz {

// Runs the session into a Sink, made from it as View(Session&), and gives both to `after`.
template <class View, class After>
void show_capture(const std::uint8_t* data, std::size_t size, After&& after) {
  const MemoryFile file(data, size);
  report::SessionOptions options;
  options.input = file.path();
  options.symbols.symfs = "/proc/self/fdinfo";  // a folder with nothing that a capture names
  options.symbols.perf_map_dir = "/nonexistent";
  auto session = report::Session::open(options);
  if (!session) return;
  View sink(*session);
  session->run(sink);
  after(*session, sink);
  session->report_missing_symbols();
}

}  // namespace tacho::fuzz
