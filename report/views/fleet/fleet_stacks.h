// Sums by stack from a fleet's database, with the names of their frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "format/base/result.h"
#include "format/base/seeded_hash.h"
#include "report/output/text_output.h"
#include "report/views/fleet/fleet_choice.h"
#include "tsl/robin_map.h"

namespace tacho::report {

// Which side of a comparison; one question has After alone.
enum class FleetSide : std::uint8_t { Before, After };

class FleetStacks {
 public:
  // Adds the stacks of a choice, whose event is named.
  Result<> read_choice(FleetStore& store, const FleetChoice& choice, FleetSide side);
  // After the stacks.
  Result<> read_names(FleetStore& store);

  struct Weights {
    std::uint64_t before = 0, after = 0;
    Weights& operator+=(const Weights& more) {
      before += more.before;
      after += more.after;
      return *this;
    }
  };
  const Weights& total() const { return total_; }

  struct Function {
    std::string name, module, kind, signature;
    Weights self, total;  // of count_functions()
  };
  // The functions with their weights, overloads with their parameters: self, and with all they called. A
  // function that calls itself counts once.
  const std::vector<Function>& count_functions();

  // Folded text, root first. Pictures know kinds of frames by marks (_[k]).
  enum class Marks : std::uint8_t { None, Kinds };
  // `is_compared`: both weights on each line.
  void write_folded(TextOutput& out, Marks marks, bool is_compared) const;

 private:
  struct Stack {
    std::size_t begin = 0, size = 0;  // in frames_
    Weights weights;
  };
  // The functions at a frame, the innermost first.
  std::span<const std::uint32_t> functions_of(std::uint32_t frame) const;
  std::uint32_t function_number(Function function);
  void show_parameters();

  std::vector<std::uint32_t> frames_;  // numbers of frames, of all stacks, leaf first
  std::vector<Stack> stacks_;
  std::vector<Function> functions_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
  struct FrameFunctions {
    std::uint32_t begin = 0, size = 0;  // in of_frames_
  };
  tsl::robin_map<std::uint64_t, std::uint32_t, format::SeededHash> frame_numbers_;  // by id
  std::vector<FrameFunctions> by_frame_;                                            // by number
  std::vector<std::uint32_t> of_frames_;
  Weights total_;
};

}  // namespace tacho::report
