// Debug files from debuginfod servers.
#pragma once

#include <memory>
#include <string>

#include "format/base/file.h"
#include "format/base/result.h"
#include "format/records/build_id.h"

namespace tacho::symbolize {

// Fetches debug files from debuginfod servers by build id. libdebuginfod is loaded on first use and optional.
class Debuginfod {
 public:
  // Uses the servers in the environment variable DEBUGINFOD_URLS.
  static Result<Debuginfod> connect();
  Debuginfod(Debuginfod&&) noexcept;
  Debuginfod& operator=(Debuginfod&&) noexcept;
  Debuginfod(const Debuginfod&) = delete;
  Debuginfod& operator=(const Debuginfod&) = delete;
  ~Debuginfod();

  // Fetch the file with debug information, or the executable. The caller has to check the build id of the
  // result.
  Result<format::Fd> debug_information(const format::BuildId& id);
  Result<format::Fd> executable(const format::BuildId& id);
  // Why the first question without an answer had none (a server cannot be reached, or is too slow). Empty:
  // all were answered.
  const std::string& failure() const;

 private:
  struct State;
  explicit Debuginfod(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tacho::symbolize
