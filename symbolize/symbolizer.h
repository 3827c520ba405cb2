// The front door: mapping and address to frames. Chooses among the sources of names, keeps what it found, and
// counts what it lacked.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/diagnostics.h"
#include "format/features.h"
#include "symbolize/address_space.h"
#include "symbolize/frame.h"

namespace tacho::symbolize {

enum class Demangle : std::uint8_t { Yes, No };

struct SymbolOptions {
  std::string
      symfs;  // --symfs: a folder that stands for the recording host's root; empty: this machine's files
  std::string kallsyms;      // --kallsyms: a file; empty: the one attached to the capture
  std::string perf_map_dir;  // --perf-map-dir: where perf-PID.map lie; empty: /tmp
  Demangle demangle = Demangle::Yes;
};

class Symbolizer {
 public:
  // `features` gives the attachments; it and `spaces` must outlive the symbolizer. Reads nothing yet: sources
  // are opened when an address first needs them.
  Symbolizer(SymbolOptions options, const format::Features& features, const AddressSpaces& spaces);
  Symbolizer(Symbolizer&&) noexcept;
  Symbolizer& operator=(Symbolizer&&) noexcept;
  ~Symbolizer();

  // The frames at `ip`, innermost first; at least one, nameless when nothing is known. `mapping` may be null.
  // Kept: a second call with the same arguments costs one hash lookup and returns the same span. `cpumode` is
  // copied into the frames.
  std::span<const Frame> resolve(const Mapping* mapping, format::RuntimeAddress ip, std::uint8_t cpumode);

  // One line for each module that some address needed names of and that had none, with the reason:
  // "libfoo.so: no file with build id 0123... (looked at /usr/lib/libfoo.so: other build id)". Adds to
  // `diagnostics` as NoSymbols.
  void report_missing(format::Diagnostics& diagnostics) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tacho::symbolize
