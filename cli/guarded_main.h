// What every main() does: about descriptors that are closed at its start, and about memory and threads that
// the system refuses (one line and an exit status). Everything else that can fail is a value
// (format/base/result.h); running out of memory can happen anywhere, so it is caught here only.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>
#include <system_error>

#include "cli/exit_status.h"
#include "cli/standard_descriptors.h"

namespace tacho::cli {

// For places that cannot be unwound (a worker thread, a callback from a C library): prints what the system
// refused and exits; a fault of this program aborts as usual. Needs no memory.
[[noreturn]] inline void leave_refused() noexcept {
  const auto say = [](std::string_view line) { (void)!::write(STDERR_FILENO, line.data(), line.size()); };
  if (const auto fault = std::current_exception()) {
    try {
      std::rethrow_exception(fault);
    } catch (const std::bad_alloc&) {
      say("tacho: out of memory; the result is not whole\n");
      std::_Exit(kUnreadable);
    } catch (const std::system_error&) {
      say("tacho: the system refuses a thread; the result is not whole\n");
      std::_Exit(kUnreadable);
    } catch (const std::exception& other) {
      say("tacho: ");
      say(other.what());
      say("\n");
    } catch (...) {
      say("tacho: an unknown exception\n");
    }
  }
  // A library's function that promises not to throw left the promise: std::filesystem's do when memory is
  // refused, and the exception cannot be looked at then.
  if (std::uncaught_exceptions() > 0) {
    say("tacho: out of memory; the result is not whole\n");
    std::_Exit(kUnreadable);
  }
  std::abort();
}

// Runs `body`, which gives the exit status.
template <class Body>
int guarded_main(const char* program, Body&& body) {
  if (!take_standard_descriptors()) return kUnreadable;  // nowhere to say so
  std::set_terminate(leave_refused);
  try {
    return body();
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: out of memory; the result is not whole\n", program);
  } catch (const std::system_error& refused) {
    std::fprintf(stderr, "%s: refused by the system: %s\n", program, refused.what());
  }
  return kUnreadable;
}

}  // namespace tacho::cli
