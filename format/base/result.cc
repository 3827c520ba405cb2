#include "format/base/result.h"

#include <system_error>

namespace tacho {

Error system_error(std::string_view what, int code) {
  return Error{std::string(what) + ": " + std::generic_category().message(code), code, Fault::Input};
}

}  // namespace tacho
