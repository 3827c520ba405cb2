// Numbers of interned things, from 0 up. Each kind is a type of its own, so that the compiler refuses one in
// place of another.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tacho::report {

enum class LocationId : std::uint32_t {};    // Location::id
enum class StackId : std::uint32_t {};       // Stack::id, of one table of stacks
enum class FunctionId : std::uint32_t {};    // of a FunctionTable
enum class SymbolId : std::uint32_t {};      // Function::symbol
enum class NameId : std::uint32_t {};        // the name of a function, of a FunctionNames
enum class ChainKeyId : std::uint32_t {};    // Function::chain_key
enum class ChainId : std::uint32_t {};       // a chain of functions, of a FunctionStacks
enum class StepId : std::uint32_t {};        // an end of a branch, of a BranchSteps
enum class WaitNameId : std::uint32_t {};    // the name of a waker, or the mark before its stack
enum class NamedStackId : std::uint32_t {};  // a stack of a picture, of a NamedStacks
enum class RowId : std::uint32_t {};         // a row of a Profile, or of another SumView
enum class FactsId : std::uint32_t {};       // the facts of a row of a Profile
enum class BlockId : std::uint32_t {};       // an EventBlock
enum class EntryId : std::uint32_t {};       // a row of a report: of Entries
enum class GroupId : std::uint32_t {};       // entries that differ by their function only
enum class TreeRowId : std::uint32_t {};     // a row of a Hierarchy
enum class LaneGroupId : std::uint32_t {};   // a group of a SumLane

// None of a kind.
template <class Id>
inline constexpr Id kNo{~std::uint32_t{0}};

// The index of what has this number, in an array of its kind.
template <class Id>
constexpr std::size_t index_of(Id id) {
  return static_cast<std::size_t>(id);
}
// A number as an integer, e.g. as a fact of a sample; and back.
template <class Id>
constexpr std::uint32_t value_of(Id id) {
  return static_cast<std::uint32_t>(id);
}
template <class Id>
constexpr Id id_of(std::uint64_t value) {
  return Id{static_cast<std::uint32_t>(value)};
}

// All ids from 0 up to a count, to be visited in order.
template <class Id>
struct Ids {
  struct Iterator {
    std::size_t at;
    constexpr Id operator*() const { return id_of<Id>(at); }
    constexpr Iterator& operator++() { return ++at, *this; }
    constexpr bool operator==(const Iterator&) const = default;
  };
  constexpr Iterator begin() const { return {0}; }
  constexpr Iterator end() const { return {count}; }
  std::size_t count = 0;
};

}  // namespace tacho::report
