#include "symbolize/files/debuginfod.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <utility>

namespace tacho::symbolize {
namespace {

// From debuginfod.h of elfutils, whose library promises to keep them.
using Begin = void* (*)();
using Find = int (*)(void* client, const unsigned char* id, int size, char** path);
using End = void (*)(void* client);

struct LibraryEnd {
  void operator()(void* library) const noexcept { ::dlclose(library); }
};

template <class Function>
bool load(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

}  // namespace

struct Debuginfod::State {
  std::unique_ptr<void, LibraryEnd> library;
  Begin begin = nullptr;
  End end = nullptr;
  Find find_debug = nullptr, find_executable = nullptr;
  void* client = nullptr;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (client) end(client);
  }
  Result<format::Fd> ask(Find find, const format::BuildId& id) const;
};

Debuginfod::Debuginfod(std::unique_ptr<State> state) : state_(std::move(state)) {}
Debuginfod::Debuginfod(Debuginfod&&) noexcept = default;
Debuginfod& Debuginfod::operator=(Debuginfod&&) noexcept = default;
Debuginfod::~Debuginfod() = default;

Result<Debuginfod> Debuginfod::connect() {
  const char* const urls = std::getenv("DEBUGINFOD_URLS");
  if (!urls || *urls == '\0') return Error{"debuginfod: DEBUGINFOD_URLS names no server; set it to its URL"};
  auto state = std::make_unique<State>();
  // Never unloaded: the libraries it brings (curl, gnutls) keep what they allocated until the process ends.
  state->library.reset(::dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE));
  if (!state->library) return Error{"debuginfod: libdebuginfod.so.1 is missing; install libdebuginfod1"};
  void* const library = state->library.get();
  if (!load(library, "debuginfod_begin", state->begin) || !load(library, "debuginfod_end", state->end) ||
      !load(library, "debuginfod_find_debuginfo", state->find_debug) ||
      !load(library, "debuginfod_find_executable", state->find_executable)) {
    return Error{"debuginfod: libdebuginfod.so.1 lacks a function; install another version"};
  }
  state->client = state->begin();
  if (!state->client) return Error{"debuginfod: the library could not be started"};
  return Debuginfod(std::move(state));
}

Result<format::Fd> Debuginfod::State::ask(Find find, const format::BuildId& id) const {
  if (id.empty()) return Error{"debuginfod: no build id to ask for"};
  const int fd = find(client, id.bytes.data(), id.size, nullptr);
  if (fd < 0) return system_error("debuginfod: build id " + id.hex(), -fd);
  return format::Fd(fd);
}

Result<format::Fd> Debuginfod::debug_information(const format::BuildId& id) {
  return state_->ask(state_->find_debug, id);
}
Result<format::Fd> Debuginfod::executable(const format::BuildId& id) {
  return state_->ask(state_->find_executable, id);
}

}  // namespace tacho::symbolize
