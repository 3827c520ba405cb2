// StackTable: interns call chains as lists of locations.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "format/base/large_pages.h"
#include "report/samples/chain_reader.h"
#include "report/samples/location_table.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/tables.h"
#include "symbolize/address_space.h"

namespace tacho::report {

// Belongs to one thread. Stacks never change.
class StackTable {
 public:
  // `location_table` has the locations of frames, and must outlive it.
  explicit StackTable(LocationTable& location_table) : location_table_(&location_table) {}

  ChainReader& reader() { return reader_; }
  // Before the first lookup: chains with the same frames are one stack, and digests are kept in a small
  // cache. For merged locations (FunctionMerging): then there are few stacks for many chains.
  void merge_by_frames();

  const Stack& stack_of(const Chain& chain, const symbolize::SpaceVersion& space);
  // The stack with these frames, which is made if it is new. Only with merge_by_frames().
  const Stack& intern(std::span<const LocationId> frames);
  // Appends a stack without looking for an equal one.
  const Stack& add_stack(std::span<const LocationId> frames);
  // Frees everything but the stacks. Equal chains of a later run (of a pipe) become new stacks.
  void end_lookups();

 private:
  struct Cached {
    ChainDigest key;
    const Stack* stack = nullptr;
  };
  // Uses the high half of key.low, in which equal chains of two address spaces differ.
  std::size_t slot_of(const ChainDigest& key, std::size_t size) const { return key.low >> 32 & (size - 1); }

  LocationTable* location_table_;
  ChainReader reader_;
  IndexTable<StackId> by_chain_, by_frames_;
  StableArray<ChainDigest> keys_;  // of the stacks from first_key_ on
  StableArray<Stack, StackId> stacks_;
  ListStore<LocationId> frames_;
  // With merge_by_frames(), in place of by_chain_ and keys_: a direct-mapped cache, whose size is a power of
  // two.
  std::vector<Cached, format::LargePages<Cached>> cache_;
  std::size_t first_key_ = 0;  // index of the first stack of this run
  bool is_by_frames_ = false;
};

}  // namespace tacho::report
