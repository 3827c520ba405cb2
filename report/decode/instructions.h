// Machine instructions, as far as the texts here need them: how long each is, and whether it may jump.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "format/cursor.h"

namespace tacho::report {

struct Instruction {
  std::size_t size = 0;  // bytes; 0: what stands there is none
  bool is_branch = false;
};

enum class WordSize : std::uint8_t { Bits32, Bits64 };

class Instructions {
 public:
  // `arch` as in the capture's header. Of machines other than x86 and 64-bit Arm nothing is known.
  Instructions(std::string_view arch, WordSize words);
  Instructions(Instructions&&) noexcept;
  Instructions& operator=(Instructions&&) noexcept;
  ~Instructions();

  Instruction first_of(format::Bytes code) const;

 private:
  struct State;
  std::unique_ptr<State> state_;  // null: not a known machine
};

}  // namespace tacho::report
