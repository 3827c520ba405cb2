// The names that frames of call chains have in folded stacks and flame graphs, each made once for each
// function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/profile/function_table.h"
#include "report/samples/by_number.h"
#include "report/samples/resolver.h"
#include "report/samples/session.h"
#include "symbolize/frame.h"

namespace tacho::report {

// Source lines of functions that a picture shows: "main.c:12", looked up for what is drawn and nothing else.

// Where a function was met first.
struct FramePlace {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::uint32_t location = kNone;
  std::uint32_t inlined = 0;  // which of the calls at that location, the innermost first
};

// The line where the function starts; of names that were packed into the capture, where it was met first; of
// a call that was inlined, the place in it. Safe to print. Empty: nothing knows the line. A file whose lines
// cannot be read is from then on among what Resolver::report_missing() adds.
std::string source_line(Resolver& resolver, const FramePlace& place);

// flamegraph.pl has colours for these endings.
inline constexpr std::string_view kInlinedMark = "_[i]", kKernelMark = "_[k]", kJitMark = "_[j]";

// What names say beside the function.
struct FrameMarks {
  bool kernel = false;     // end with kKernelMark
  bool jit = false;        // end with kJitMark
  bool addresses = false;  // of code without a name
};

// The names of a frame, the caller first: one, or of code made at run time several, where the JIT compiler
// wrote "outer->inner"; all but the first end with kInlinedMark. `is_java`: the process's name begins so, and
// names of the JIT compiler are tidied more.
std::vector<std::string> names_of_frame(const symbolize::Frame& frame, const FrameMarks& marks, bool is_java);
// A JIT compiler's name without parameters, quotes and semicolons.
std::string tidied_name(std::string name, bool is_java);
// Whether that path is a perf map, /tmp/perf-PID.map.
bool is_jit_map(std::string_view module);

// What a frame's code is: pictures colour frames by it, and their files have the letters.
enum class CodeKind : char {
  User = 'u',     // a function of a file
  Kernel = 'k',   // of the kernel or one of its modules
  Inlined = 'i',  // a call that was inlined
  Jit = 'j',      // made at run time
  Bpf = 'b',      // a BPF program
  Unnamed = 'n',  // code without a symbol
};
CodeKind code_kind(const symbolize::Frame& frame);

class FrameNames {
 public:
  enum class Order : std::uint8_t { RootFirst, LeafFirst };
  // Whether all places of a function have the same names.
  enum class Of : std::uint8_t { Functions, Places };
  // Appends the numbers that a view gives to the names of a frame, innermost first. With Of::Functions
  // nothing is set in the frame but its module, its function's name and start, and whether it is inlined.
  // `place`: where it was met first.
  using Make = std::function<void(const symbolize::Frame& frame, const FramePlace& place, bool is_java,
                                  std::vector<std::uint32_t>& names)>;
  // The session must outlive this.
  FrameNames(Session& session, Of of, Make make)
      : functions_(session, ChainKey::Function, Grain::Names),
        resolver_(&session.resolver()),
        of_(of),
        make_(std::move(make)) {}

  // Appends the numbers of the names of frames, which are given by their locations, leaf first. `is_java`:
  // the process's name begins so.
  void append(std::span<const std::uint32_t> frames, Order order, bool is_java,
              std::vector<std::uint32_t>& names);

 private:
  // The names of a frame, or of all frames of a place, innermost first: mostly one, which stands here itself;
  // several stand in several_.
  struct NameList {
    static constexpr std::uint32_t kNotMade = ~std::uint32_t{0};
    std::uint32_t count = kNotMade;
    std::uint32_t first = 0;  // the name, or where in several_ they begin
  };
  void add(const NameList& list, std::vector<std::uint32_t>& names) const;
  NameList of_place(std::uint32_t location, bool is_java);
  NameList of_function(std::uint32_t function, const FramePlace& place, bool is_java);
  NameList kept(std::span<const std::uint32_t> names);

  FunctionTable functions_;
  Resolver* resolver_;
  Of of_;
  Make make_;
  // Two of each: for Java's processes and for others.
  ByNumber<NameList> by_function_[2];
  ByNumber<NameList> by_place_[2];  // with Of::Places
  std::vector<std::uint32_t> several_, made_;
};

}  // namespace tacho::report
