// Fetches debug files from debuginfod servers by build id. libdebuginfod is loaded on first use and optional.
#pragma once

#include <memory>

#include "format/base/file.h"
#include "format/base/result.h"
#include "format/records/build_id.h"

namespace tacho::symbolize {

class Debuginfod {
 public:
  // The servers are those of the environment variable DEBUGINFOD_URLS, as every tool that asks them has it.
  static Result<Debuginfod> connect();
  Debuginfod(Debuginfod&&) noexcept;
  Debuginfod& operator=(Debuginfod&&) noexcept;
  ~Debuginfod();

  // The file with the debugging sections, and the one that ran. Whether what came has that build id is for
  // the caller to see.
  Result<format::Fd> debug_information(const format::BuildId& id);
  Result<format::Fd> executable(const format::BuildId& id);

 private:
  struct State;
  explicit Debuginfod(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tacho::symbolize
