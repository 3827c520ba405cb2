#include "symbolize/files/debuginfod.h"

#include <dlfcn.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

namespace tacho::symbolize {
namespace {

// From debuginfod.h of elfutils; a stable interface.
using Begin = void* (*)();
using Find = int (*)(void* client, const unsigned char* id, int size, char** path);
using End = void (*)(void* client);

template <class Function>
bool load(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

}  // namespace

struct Debuginfod::State {
  Begin begin = nullptr;
  End end = nullptr;
  Find find_debug = nullptr, find_executable = nullptr;
  void* client = nullptr;
  std::string failure;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (client) end(client);
  }
  Result<format::Fd> ask(Find find, const format::BuildId& id);
};

Debuginfod::Debuginfod(std::unique_ptr<State> state) : state_(std::move(state)) {}
Debuginfod::Debuginfod(Debuginfod&&) noexcept = default;
Debuginfod& Debuginfod::operator=(Debuginfod&&) noexcept = default;
Debuginfod::~Debuginfod() = default;

Result<Debuginfod> Debuginfod::connect() {
  const char* const urls = std::getenv("DEBUGINFOD_URLS");
  if (!urls || *urls == '\0') return Error{"debuginfod: DEBUGINFOD_URLS names no server; set it to its URL"};
#ifdef TACHO_STATIC  // glibc's dlopen() would need the glibc that the program was linked with
  return Error{"debuginfod: this static tacho-report loads no libraries; that of the packages does"};
#endif
  auto state = std::make_unique<State>();
  // Never unloaded, since its dependencies (curl, gnutls) do not support that.
  void* const library = ::dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) return Error{"debuginfod: libdebuginfod.so.1 is missing; install libdebuginfod1"};
  if (!load(library, "debuginfod_begin", state->begin) || !load(library, "debuginfod_end", state->end) ||
      !load(library, "debuginfod_find_debuginfo", state->find_debug) ||
      !load(library, "debuginfod_find_executable", state->find_executable)) {
    return Error{"debuginfod: libdebuginfod.so.1 lacks a function; install another version"};
  }
  state->client = state->begin();
  if (!state->client) return Error{"debuginfod: the library could not be started"};
  return Debuginfod(std::move(state));
}

Result<format::Fd> Debuginfod::State::ask(Find find, const format::BuildId& id) {
  if (id.empty()) return Error{"debuginfod: no build id to ask for"};
  const int fd = find(client, id.bytes.data(), id.size, nullptr);
  if (fd >= 0) return format::Fd(fd);
  Error refused = system_error("debuginfod: build id " + id.hex(), -fd);
  const bool is_unknown_file = fd == -ENOENT;
  if (!is_unknown_file && failure.empty())
    failure = refused.what + "; symbols may be missing that the servers in DEBUGINFOD_URLS have";
  return refused;
}

Result<format::Fd> Debuginfod::debug_information(const format::BuildId& id) {
  return state_->ask(state_->find_debug, id);
}
Result<format::Fd> Debuginfod::executable(const format::BuildId& id) {
  return state_->ask(state_->find_executable, id);
}
const std::string& Debuginfod::failure() const { return state_->failure; }

}  // namespace tacho::symbolize
