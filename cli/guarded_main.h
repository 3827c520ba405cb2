// The frame of every main(): opens closed standard descriptors, stops ignoring SIGCHLD, and converts
// std::bad_alloc and a failed thread creation to a message and an exit status. All other failures are values
// (format/base/result.h).
#pragma once

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>
#include <system_error>

#include "cli/exit_status.h"
#include "cli/standard_descriptors.h"

namespace tacho::cli {

// For code from which exceptions cannot propagate (a thread, a callback from a C library): prints the reason
// and exits. Any other exception is a bug and aborts. Does not allocate.
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
  // A noexcept function of the library threw: std::filesystem's do when memory runs out. The exception
  // cannot be examined here.
  if (std::uncaught_exceptions() > 0) {
    say("tacho: out of memory; the result is not whole\n");
    std::_Exit(kUnreadable);
  }
  std::abort();
}

// Runs `body`, which gives the exit status.
template <class Body>
int guarded_main(const char* program, Body&& body) {
  if (!take_standard_descriptors()) return kUnreadable;  // no descriptor for a message
  std::signal(SIGCHLD, SIG_DFL);                         // inherited as SIG_IGN, it would make waitpid() fail
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
