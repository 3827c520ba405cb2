#include "format/base/result.h"

#include <cerrno>
#include <system_error>

namespace tacho {

Error system_error(std::string_view what, int code) {
  const char* const advice = code == EMFILE ? "; raise `ulimit -n`" : "";
  return Error{std::string(what) + ": " + std::generic_category().message(code) + advice, code, Fault::Input};
}

Error output_system_error(std::string_view what, int code) {
  return output_error(system_error(what, code).what, code);
}

}  // namespace tacho
