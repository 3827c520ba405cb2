// Names of call chain frames in folded stacks and pictures.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/profile/frame_address.h"
#include "report/profile/function_table.h"
#include "report/samples/session.h"
#include "report/samples/tables.h"
#include "symbolize/frame.h"

namespace tacho::report {

// flamegraph.pl has colours for these endings.
inline constexpr std::string_view kInlinedMark = "_[i]", kKernelMark = "_[k]", kJitMark = "_[j]";

// Marks that names get.
struct FrameMarks {
  bool kernel = false;     // kKernelMark
  bool jit = false;        // end with kJitMark
  bool addresses = false;  // code without a name gets its address
};

// The name of a frame in folded stacks and pictures: the whole name of its function, with its mark;
// "[libc.so.6]" for code without a name.
std::string name_of_frame(const symbolize::Frame& frame, const FrameMarks& marks);
// Whether the path is a perf map, /tmp/perf-PID.map.
bool is_jit_map(std::string_view module);

// The kind of a frame: pictures colour frames by it, and their files contain the letters.
enum class FrameKind : char {
  All = 'a',      // the root frame
  Group = 't',    // a thread, a processor, a control group: no code
  User = 'u',     // a function of a file
  Kernel = 'k',   // of the kernel or one of its modules
  Inlined = 'i',  // a call that was inlined
  Jit = 'j',      // made at run time
  Bpf = 'b',      // a BPF program
  Unnamed = 'n',  // code without a symbol
  Waker = 'v',    // a frame of a waker
  Mark = 'x',     // between the stacks of a wait and of its waker
  // States of a thread: frames below its stacks in a graph of wall time.
  OnCpu = 'o',
  Runnable = 'r',
  Waiting = 'w',
};
FrameKind kind_of_code(const symbolize::Frame& frame);

// The names of call chain frames in folded stacks and flame graphs, each made once for each function.
class FrameNames {
 public:
  enum class Order : std::uint8_t { RootFirst, LeafFirst };
  // Whether all addresses of a function have the same names.
  enum class Of : std::uint8_t { Functions, Locations };
  // Appends the numbers that a view gives to a frame's names, innermost first: usually one. With
  // Of::Functions, the frame has only its module, its function's name and start, and whether it is inlined.
  // `address`: its first address.
  using Make = std::function<void(const symbolize::Frame& frame, const FrameAddress& address,
                                  std::vector<std::uint32_t>& names)>;
  // The session must outlive this.
  FrameNames(Session& session, Of of, Make make)
      : functions_(session, ChainKey::Function, Grain::Names),
        resolver_(&session.resolver()),
        of_(of),
        make_(std::move(make)) {}

  // Appends the numbers of the names of frames. `frames`: leaf first.
  void append(std::span<const LocationId> frames, Order order, std::vector<std::uint32_t>& names);

 private:
  // The names of a frame, or of all frames of an address, innermost first: usually one, which is stored here;
  // several are in several_.
  struct NameList {
    static constexpr std::uint32_t kNotMade = ~std::uint32_t{0};
    std::uint32_t count = kNotMade;
    std::uint32_t first = 0;  // the name, or the index of the first one in several_
  };
  void append_list(const NameList& list, std::vector<std::uint32_t>& names) const;
  NameList of_location(LocationId location);
  NameList of_function(FunctionId function, const FrameAddress& address);
  NameList kept(std::span<const std::uint32_t> names);

  FunctionTable functions_;
  Resolver* resolver_;
  Of of_;
  Make make_;
  IdMap<FunctionId, NameList> by_function_;
  IdMap<LocationId, NameList> by_location_;  // with Of::Locations
  std::vector<std::uint32_t> several_, made_;
};

}  // namespace tacho::report
