// Result: a value or an error. Callers add where it happened while they return it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace tacho {

// Decides the exit status (cli/exit_status.h).
enum class Fault : std::uint8_t {
  Use,     // a wrong command line
  Input,   // a file, the kernel or missing rights
  Output,  // the output could not be written
};

struct Error {
  std::string what;
  int code = 0;  // errno of a system call, otherwise 0
  Fault fault = Fault::Input;

  // Adds where it happened in front: "a.data: feature: total_mem: cut short".
  Error in(std::string_view place) && {
    what = std::string(place) + ": " + what;
    return std::move(*this);
  }
};

inline Error use_error(std::string what) { return Error{std::move(what), 0, Fault::Use}; }
inline Error output_error(std::string what, int code = 0) {
  return Error{std::move(what), code, Fault::Output};
}
// "WHAT: No such file or directory". `code`: errno as it was when the call failed.
Error system_error(std::string_view what, int code);
// The same, when the output cannot be written.
Error output_system_error(std::string_view what, int code);

struct Done {};  // success without a value

template <class T = Done>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT: a value is a result
  Result(Error error) : state_(std::move(error)) {}  // NOLINT: so is an error
  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() { return std::get<0>(state_); }
  const T& operator*() const { return std::get<0>(state_); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  Error& error() { return std::get<1>(state_); }
  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

// Sets `target` to the value, if there is one.
template <class Target, class Value>
Result<> store(Target& target, Result<Value> value) {
  if (!value) return std::move(value.error());
  target = static_cast<Target>(std::move(*value));
  return Done{};
}
// The same; Error::in() adds `where` to the error.
template <class Target, class Value>
Result<> store(Target& target, Result<Value> value, std::string_view where) {
  if (!value) return std::move(value.error()).in(where);
  return store(target, std::move(value));
}

}  // namespace tacho
