#include "record/session/capture_end.h"

#include <algorithm>
#include <utility>

#include "format/base/byte_writer.h"
#include "format/container/features.h"
#include "format/records/record.h"
#include "record/plan/stack_choice.h"
#include "record/session/recording_losses.h"

namespace tacho::record {

std::vector<DroppingProgram> new_dropping_programs(const OpenedRecording& recording) {
  auto now = dropping_programs(recording.plan, recording.events, recording.objects);
  std::erase_if(now, [&](const DroppingProgram& each) {
    return std::ranges::any_of(recording.dropping, [&](const DroppingProgram& known) {
      return known.program.id == each.program.id;
    });
  });
  return now;
}

Result<> CaptureEnd::write(const RecordCounts& counts, CaptureOutput& output) {
  format::ByteWriter records;
  const std::vector<Losses> losses = reported_.take_unreported(recording_losses(recording_, channels_));
  // Ring buffers of BPF objects have no LOST records. Read after the losses, so that none of them is missing.
  std::uint64_t lost_by_rings = 0;
  for (const Losses& loss : recording_.events.losses()) lost_by_rings += loss.lost;
  in_lost_records_ += counts.lost;
  counted_before_ =
      std::exchange(counted_before_next_, lost_by_rings - std::min(lost_by_rings, in_lost_records_));
  for (const Losses& loss : losses)
    format::write_lost_samples(records, loss.lost, recording_.plan.events[loss.event].attr, loss.id);
  if (!records.empty()) {
    if (auto done = output.write_plain(records.view()); !done) return done;
    if (auto done = output.finish_round(); !done) return done;
  }
  format::Features late;
  if (counts.samples != 0) late.environment.sample_time = {counts.first_time, counts.last_time};
  late.environment.losses = losses_in_capture(losses, counts, recording_, cgroups_);
  late.environment.losses.counted_before = counted_before_;
  if (auto added = new_dropping_programs(recording_); !added.empty()) {
    added.insert(added.begin(), recording_.dropping.begin(), recording_.dropping.end());
    late.environment.attached_programs = attached_programs(recording_.objects, added);
  }
  late.environment.cpu_changes = recording_.events.noted_cpus();
  if (recording_.stacks) {
    const StackCounts now = recording_.stacks->counts();
    late.environment.user_stacks = facts_of_choice(recording_.plan);
    for (auto& fact : stack_counts_facts(now - reported_stacks_))
      late.environment.user_stacks.push_back(std::move(fact));
    reported_stacks_ = now;
  }
  return output.close_capture(late);
}

}  // namespace tacho::record
