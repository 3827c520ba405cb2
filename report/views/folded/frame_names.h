// The names that folded stacks have for the frames of call chains, each made once for each function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "report/profile/function_table.h"
#include "report/samples/by_number.h"
#include "report/samples/session.h"
#include "report/views/folded/folded.h"
#include "report/views/folded/folded_inlines.h"

namespace tacho::report {

class FrameNames {
 public:
  enum class Order : std::uint8_t { RootFirst, LeafFirst };
  struct Inlines {
    bool are_expanded = false;  // --inline: names as addr2line tells them
    Context context = Context::None;
  };
  // The session and the stacks, which number the names, must outlive this.
  FrameNames(Session& session, FoldedStacks& folded, const FoldOptions& options, Inlines inlines)
      : functions_(session, ChainKey::Function, Grain::Names),
        resolver_(&session.resolver()),
        folded_(&folded),
        options_(options),
        inlines_(inlines) {}

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
  // Whether places in one function may have different names.
  bool tells_places() const { return options_.shows_addresses || inlines_.context == Context::FileAndLine; }
  void add(const NameList& list, std::vector<std::uint32_t>& names) const;
  NameList of_place(std::uint32_t location, bool is_java);
  NameList of_function(std::uint32_t function, bool is_java);
  void make(const symbolize::Frame& frame, bool is_java, std::vector<std::uint32_t>& names);
  NameList kept(std::span<const std::uint32_t> names);

  FunctionTable functions_;
  Resolver* resolver_;
  FoldedStacks* folded_;
  FoldOptions options_;
  Inlines inlines_;
  // Two of each: for Java's processes and for others.
  ByNumber<NameList> by_function_[2];
  ByNumber<NameList> by_place_[2];  // with tells_places()
  std::vector<std::uint32_t> several_, made_;
};

}  // namespace tacho::report
