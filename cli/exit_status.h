// Exit statuses of every program here (docs: tacho(1), EXIT STATUS).
#pragma once

#include "format/base/result.h"

namespace tacho::cli {

enum ExitStatus : int {
  kWhole = 0,        // the result is complete
  kWrongUse = 1,     // the command line is wrong
  kUnreadable = 2,   // an input cannot be read, or the kernel refused
  kIncomplete = 3,   // the result lacks something; stderr says what
  kNoOutput = 4,     // the output could not be written
  kCheckFailed = 5,  // tacho check: a rule failed
  kLastStatus = kCheckFailed,
};

inline ExitStatus status_of(const Error& error) {
  switch (error.fault) {
    case Fault::Use:
      return kWrongUse;
    case Fault::Output:
      return kNoOutput;
    case Fault::Input:
      break;
  }
  return kUnreadable;
}

}  // namespace tacho::cli
