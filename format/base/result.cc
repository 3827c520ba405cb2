#include "format/base/result.h"

#include <system_error>

namespace tacho {

Error system_error(std::string_view what, int code) {
  return Error{std::string(what) + ": " + std::generic_category().message(code), code, Fault::Input};
}

Error output_system_error(std::string_view what, int code) {
  return output_error(system_error(what, code).what, code);
}

}  // namespace tacho
