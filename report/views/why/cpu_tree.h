// What threads do on the CPU: call trees by program, and the functions in them that take most of the time.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/profile/wall_times.h"
#include "report/views/why/causes.h"

namespace tacho::report {

// A function with what it calls, of all its callers: the deepest that has most of the time of one of them.
struct CpuPart {
  Cause cause = Cause::Cpu;  // or Spin, Syscall
  double time = 0;           // ns
  std::uint64_t samples = 0;
  std::string function, call;
  std::vector<std::string> stack;                       // root first, up to the function
  std::vector<std::pair<std::string, double>> callees;  // the heaviest first; empty: the function itself
  std::map<std::uint32_t, double> threads;              // by number
  std::vector<std::uint32_t> rows;                      // indices in WallTimes::rows()
};

class CpuTrees {
 public:
  CpuTrees(Session& session, NamedChains& stacks, const WallTimes& times);
  // The index of a row of WallState::OnCpu, and its number of samples.
  void add_row(std::uint32_t index, std::uint64_t samples);
  // After the last row.
  std::vector<CpuPart> take_parts();
  // ns that are in no part.
  double rest() const { return rest_; }

 private:
  struct Node {
    std::string_view name;
    Node* parent = nullptr;
    bool is_library = false;
    bool has_own = false;                       // it is a function of the program, or calls one
    bool is_chosen = false;                     // a part
    bool has_chosen = false;                    // calls one
    double self = 0, total = 0, in_kernel = 0;  // ns; in_kernel of `self`
    std::map<std::string_view, double> calls;   // of in_kernel
    std::map<std::uint64_t, double> addresses;  // of `self` in user code: by the place in its mapping
    const Location* location = nullptr;         // of one of them
    std::uint64_t samples = 0;                  // of `self`
    std::map<std::uint32_t, double> threads;    // likewise
    std::vector<std::uint32_t> rows;            // likewise
    std::map<std::string_view, Node> children;
  };
  struct Sums {
    double in_kernel = 0, in_spin_locks = 0;
    std::uint64_t samples = 0;
    std::map<std::string_view, double> calls;
    std::map<std::uint32_t, double> threads;
    std::vector<std::uint32_t> rows;
  };
  static double add_up(Node& node);
  static void sum(const Node& node, Sums& sums);
  static bool choose(Node& node, double all);
  static void add_names(const Node& node, std::set<std::string_view>& names);
  static void gather(const Node& node, const std::set<std::string_view>& names,
                     std::vector<const Node*>& nodes);
  CpuPart part_of(const std::vector<const Node*>& nodes);
  bool spins(const Node& node);

  Session* session_;
  NamedChains* stacks_;
  const WallTimes* times_;
  std::map<std::uint32_t, std::string> programs_;  // by pid: processes of one program have one name
  std::map<std::string, Node> roots_;              // by program
  double rest_ = 0;
};

}  // namespace tacho::report
