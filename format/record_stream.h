// Bytes in, records out: finds where each record ends, inflates compressed ones, and after a broken one finds
// the way back. Knows nothing of events and headers.
#pragma once

#include <bit>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "format/compression.h"
#include "format/diagnostics.h"
#include "format/inflate_ahead.h"
#include "format/record_view.h"
#include "format/time_order.h"

namespace tacho::format {

class RecordStream {
 public:
  static constexpr std::uint64_t kUntilTheEnd = ~std::uint64_t{0};

  // Reads from `fd`'s position, which is `offset` in the file, at most `size` bytes. `fd` and `diagnostics`
  // must outlive the stream. A compressed record may inflate to `inflate_limit` bytes.
  RecordStream(int fd, std::uint64_t offset, std::uint64_t size, std::endian order, std::size_t inflate_limit,
               Diagnostics& diagnostics);

  // Sets `record` to the next one that is no COMPRESSED record. False at the end.
  bool next(RecordView& record);
  // It is told already that the capture ends too early: a last record that goes on beyond is no news.
  void end_is_torn() { torn_end_is_told_ = true; }
  // What the last record's bytes lie in.
  const BlockRef& block() const { return given_; }
  // How many compressed records were opened so far.
  std::uint64_t compressed_records() const { return compressed_records_; }

 private:
  bool ensure(std::size_t size);
  std::shared_ptr<Block> free_block();
  RecordView header_at(Bytes bytes) const;
  bool next_plain(RecordView& record);
  bool next_inflated(RecordView& record);
  bool next_outer(RecordView& record);
  bool follow_payload(RecordView& record);
  void look_ahead();
  void inflate(const RecordView& record);
  void open_inflated(std::shared_ptr<Block> block, std::uint64_t offset);
  void search();
  void cut_short();

  int fd_;
  std::endian order_;
  std::size_t inflate_limit_;
  Diagnostics* diagnostics_;
  // Bytes [at_, end) of the outer block are read but not given out yet; in the file the first of them stands
  // at offset_. unread_ more bytes may be read after the block.
  std::shared_ptr<Block> outer_ = std::make_shared<Block>();
  std::size_t at_ = 0;
  std::vector<std::shared_ptr<Block>>
      used_;  // some blocks of before, to be filled again when nobody keeps them
  std::size_t oldest_used_ = 0;
  std::uint64_t offset_;
  std::uint64_t unread_;
  // Records out of a compressed one; null when none is open.
  std::shared_ptr<Block> inflated_;
  std::size_t inflated_at_ = 0;
  std::uint64_t inflated_offset_ = 0;
  std::optional<RecordInflater> inflater_;
  // Records read but not given out, so that frames which stand alone are inflated meanwhile.
  struct Ahead {
    RecordView record;
    BlockRef block;
    InflateAhead::JobRef job;  // null: a plain record, or one to be inflated in its turn
  };
  std::deque<Ahead> ahead_;
  std::size_t jobs_ahead_ = 0;
  bool may_look_ahead_;  // not on a pipe: what came must go out before more is waited for
  std::optional<InflateAhead> pool_;
  bool saw_compressed_ = false;
  std::uint64_t compressed_records_ = 0;
  bool stream_broken_ =
      false;  // a compressed record failed: until the next frame starts, nothing can be inflated
  bool torn_end_is_told_ = false;
  bool searching_ = false;  // in the middle of looking for the next sound record
  BlockRef given_;          // the block of the record given last
};

}  // namespace tacho::format
