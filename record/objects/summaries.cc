#include "record/objects/summaries.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <set>
#include <utility>

#include "cli/message_text.h"
#include "record/objects/ring_event.h"
#include "record/objects/ring_layout.h"

namespace tacho::record {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kSizeAt = 6;  // offset of the size in a record's header
// The time that iterators may take: they run on the thread of the record loop.
constexpr std::chrono::seconds kMostGathering{10};

}  // namespace

Result<> Summaries::find_event(Source& source, const KernelEvents& events) {
  for (const OpenEvent& event : events.open_events()) {
    if (event.event != source.event) continue;
    source.id = event.id;
    source.cpu = static_cast<std::uint32_t>(std::max(event.cpu, 0));
    return Done{};
  }
  return Error{"the event of the summary '" + source.name + "' is not open"};
}

Result<Summaries::Source> Summaries::open_source(const OpenedRecording& recording,
                                                 const Connection& connection, const bpf::Channel& channel) {
  const bpf::LoadedObject& object = recording.objects[connection.object];
  auto reader = object.open_map(connection.map);
  if (!reader) return std::move(reader.error());
  Source source{
      .object = connection.object,
      .probe = {},
      .event = connection.event,
      .map = connection.map,
      .name = recording.plan.events[connection.event].name,
      .layout = *channel.summary,
      .own = OwnNumbers(recording.numbers, object.is_shipped() ? &channel.summary->schema() : nullptr),
      .reader = std::move(*reader)};
  for (const std::string& named : source.layout.stack_maps()) {
    const std::string map = named.empty() ? object.stack_map() : named;
    if (map.empty())
      return use_error(object.path() + ": SUMMARY(" + source.name +
                       "): ROLE(\"stack\") needs one map of type BPF_MAP_TYPE_STACK_TRACE; if there are "
                       "several, name one: ROLE(\"stack:MAP\")");
    auto stacks = object.open_map(map);
    if (!stacks) return std::move(stacks.error());
    source.stacks.push_back(std::move(*stacks));
  }
  return source;
}

Result<Summaries> Summaries::open(const OpenedRecording& recording, const KernelEvents& events,
                                  const SummaryReading& reading) {
  Summaries all(recording, reading);
  for (const Connection& connection : recording.plan.connections) {
    if (!bpf::is_summary(connection.kind)) continue;
    const auto& channels = recording.objects[connection.object].channels();
    const auto channel = std::ranges::find(channels, connection.map, &bpf::Channel::map);
    if (channel == channels.end() || !channel->summary) continue;
    auto source = open_source(recording, connection, *channel);
    if (!source) return std::move(source.error());
    if (auto done = find_event(*source, events); !done) return std::move(done.error());
    // Values of iterators include the time before the recording.
    const bool began_before = connection.kind == bpf::ChannelKind::PlainSummary ||
                              recording.objects[connection.object].has_iterators();
    source->keeps = !source->layout.is_live() &&
                    (reading.interval || reading.is_split || reading.is_switched || began_before);
    all.sources_.push_back(std::move(*source));
  }
  for (std::size_t i = 0; i < recording.plan.argument_probes.size(); ++i) {
    const ArgumentProbe& probe = recording.plan.argument_probes[i];
    if (!probe.sum) continue;
    const std::string& name = recording.plan.events[probe.event].name;
    Source source{.object = {},
                  .probe = i,
                  .event = probe.event,
                  .map = "counts",
                  .name = name,
                  .layout = bpf::layout_of_probe(name, probe.arguments, *probe.sum),
                  .own = {},  // set below
                  .reader = recording.argument_probes.counts(i)};
    source.own = OwnNumbers(recording.numbers, &source.layout.schema());
    if (auto done = find_event(source, events); !done) return std::move(done.error());
    source.keeps = true;  // a probe counts from its start on
    all.sources_.push_back(std::move(source));
  }
  return all;
}

void Summaries::switch_samples(std::span<const std::size_t> events, Sampling now) {
  const bool is_on = now == Sampling::On;
  // The first interval begins now.
  const std::uint64_t time = monotonic_now();
  const bool is_first = std::ranges::none_of(sources_, &Source::is_on);
  std::vector<Source*> due;
  for (Source& source : sources_) {
    if (source.is_on == is_on || std::ranges::find(events, source.event) == events.end()) continue;
    if (is_on && is_first && reading_.interval) due_at_ = Clock::now() + *reading_.interval;
    source.is_on = is_on;
    source.was_ever_on |= is_on;
    if (!source.layout.is_live() && (!is_on || source.keeps)) due.push_back(&source);
  }
  if (auto done = gather(due); !done) {
    if (!failure_) failure_ = std::move(done.error());
    return;
  }
  for (Source* source : due) {
    auto done = read_source(*source, !is_on, time);
    // The next read_maps() reports a failure.
    if (!done && !is_on && !failure_) failure_ = std::move(done.error()).in("summary '" + source->name + "'");
  }
}

bool Summaries::are_read_at_intervals() const {
  return std::ranges::any_of(sources_, [](const Source& source) { return !source.layout.is_live(); });
}

bool Summaries::waits_for_time() const {
  if (!reading_.interval || has_more()) return false;
  return std::ranges::any_of(sources_,
                             [](const Source& source) { return source.is_on && !source.layout.is_live(); });
}

bool Summaries::is_due() const { return waits_for_time() && Clock::now() >= due_at_; }

milliseconds Summaries::until_due(milliseconds most) const {
  if (!waits_for_time()) return most;
  const auto left = std::chrono::ceil<milliseconds>(due_at_ - Clock::now());
  return std::clamp(left, milliseconds(1), most);
}

// The time of the samples: for --interval the time at which the reading was due, so that each reading is in
// its own interval even if it is late; it is later than all earlier samples.
std::uint64_t Summaries::take_time(bool is_last) {
  const auto now = Clock::now();
  if (is_last || !reading_.interval || now < due_at_) return monotonic_now();
  const auto due = due_at_ + (now - due_at_) / *reading_.interval * *reading_.interval;
  due_at_ = due + *reading_.interval;
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(due.time_since_epoch()).count());
}

Result<> Summaries::read_maps(bool is_last) {
  const std::uint64_t time = take_time(is_last);
  if (failure_) return *std::exchange(failure_, std::nullopt);
  std::vector<Source*> due;
  for (Source& source : sources_) {
    // If events are disabled, the counts were read when that happened.
    const bool is_reported_now = source.layout.is_live() ? is_last && source.was_ever_on : source.is_on;
    if (is_reported_now) due.push_back(&source);
  }
  if (auto done = gather(due); !done) return done;
  for (Source* source : due)
    if (auto done = read_source(*source, true, time); !done)
      return std::move(done.error()).in("summary '" + source->name + "'");
  return Done{};
}

// One run of an iterator fills all summaries of its object: with a run for each, sums would be doubled.
Result<> Summaries::gather(const std::vector<Source*>& due) const {
  const auto until = Clock::now() + kMostGathering;
  std::set<std::size_t> objects;
  for (const Source* source : due)
    if (source->object) objects.insert(*source->object);
  for (const std::size_t object : objects) {
    auto done = recording_->objects[object].run_iterators(until);
    if (!done && done.error().code == ETIMEDOUT)
      return std::move(done.error())
          .in(fmt::format("a reading of summaries may take {} s", kMostGathering.count()));
    if (!done) return done;
  }
  return Done{};
}

Result<> Summaries::read_source(Source& source, bool is_reported, std::uint64_t time) {
  const std::uint64_t reading = ++source.readings;
  const bpf::MapFacts& facts = source.reader.facts();
  std::vector<std::byte> sum(facts.value_bytes);
  std::uint64_t entries = 0;
  auto done = source.reader.read_entries([&](format::Bytes key, const std::vector<format::Bytes>& values) {
    Known& known = source.known[std::string(reinterpret_cast<const char*>(key.data()), key.size())];
    if (std::exchange(known.reading, reading) == reading) return;  // the kernel returned the key twice
    ++entries;
    std::ranges::copy(values.front(), sum.begin());
    for (std::size_t cpu = 1; cpu < values.size(); ++cpu) source.layout.add_up(sum, values[cpu]);
    if (is_reported)
      source.layout.expand(key, sum, known.value, [&](const bpf::SummaryLayout::Sample& sample) {
        write_sample(source, sample, time);
      });
    if (source.keeps) known.value.assign(sum.begin(), sum.end());
  });
  source.is_full |= !facts.is_array() && !facts.is_lru() && entries >= facts.most_entries;
  const std::size_t gone =
      std::erase_if(source.known, [&](const auto& each) { return each.second.reading != reading; });
  if (facts.is_lru() && is_reported) source.forgotten += gone;  // else their counts were not wanted
  if (!source.keeps) source.known.clear();
  return done;
}

void Summaries::write_sample(Source& source, const bpf::SummaryLayout::Sample& sample, std::uint64_t time) {
  ChainBuilder chain;
  const auto key_bytes = source.layout.stack_key_bytes();
  for (std::size_t i = 0; i < sample.stacks.size(); ++i) {
    const std::int64_t id = sample.stacks[i];
    const auto short_id = static_cast<std::int32_t>(id);
    const bool is_short = key_bytes[i] == sizeof short_id;
    if (id == -EEXIST || id == -ENOMEM) ++source.without_stack;
    if (id < 0 || (id == 0 && !is_short)) continue;
    const auto bytes = source.stacks[i].value(is_short ? std::as_bytes(std::span(&short_id, 1))
                                                       : std::as_bytes(std::span(&id, 1)));
    if (bytes.empty() && !is_short) ++source.without_stack;
    for (std::size_t at = 0; at + sizeof(std::uint64_t) <= bytes.size(); at += sizeof(std::uint64_t)) {
      std::uint64_t address = 0;
      std::memcpy(&address, bytes.data() + at, sizeof address);
      if (!chain.add_address(address)) break;
    }
  }
  RingEvent event{.time = time,
                  .cpu = source.cpu,
                  .process = sample.process.value_or(~0U),
                  .thread = sample.thread.value_or(~0U),
                  .cgroup = sample.cgroup,
                  .payload = sample.payload};
  source.own.translate(event);
  const auto& attr = recording_->plan.events[source.event].attr;
  if (!append_sample(waiting_, event, source.id, attr,
                     SampleParts{std::move(chain).take_chain(), sample.period}))
    ++source.too_large;
}

void Summaries::take_samples(std::vector<std::byte>& to, std::size_t most) {
  std::size_t end = taken_;
  while (end < waiting_.size()) {
    std::uint16_t size = 0;
    std::memcpy(&size, waiting_.data() + end + kSizeAt, sizeof size);
    if (end > taken_ && end + size - taken_ > most) break;
    end += size;
  }
  const auto at = [this](std::size_t bytes) { return waiting_.begin() + static_cast<std::ptrdiff_t>(bytes); };
  to.insert(to.end(), at(taken_), at(end));
  taken_ = end;
  if (has_more()) return;
  waiting_ = {};
  taken_ = 0;
}

std::vector<Losses> Summaries::losses() const {
  std::vector<Losses> all;
  for (const Source& source : sources_) {
    const std::uint64_t lost = source.object ? recording_->objects[*source.object].lost_by_ring(source.map)
                                             : recording_->argument_probes.lost(*source.probe);
    if (lost != 0) all.push_back({source.event, source.id, lost});
  }
  return all;
}

std::vector<std::string> Summaries::troubles() const {
  std::vector<std::string> lines;
  for (const Source& source : sources_) {
    const std::string summary = "warning: summary '" + source.name + "': ";
    const std::uint32_t most = source.reader.facts().most_entries;
    if (source.is_full)
      lines.push_back(
          fmt::format("{}its map '{}' is full ({}), so events with other keys are not counted; give it a "
                      "larger max_entries",
                      summary, source.map, cli::counted(most, "entry")));
    if (source.forgotten != 0)
      lines.push_back(fmt::format(
          "{}{} evicted from its map '{}' (LRU, max_entries {}), with the counts since the last reading",
          summary, cli::counted(source.forgotten, "key"), source.map, most));
    if (source.without_stack != 0)
      lines.push_back(
          fmt::format("{}{} without a stack, since another stack had its slot in the stack map; give that a "
                      "larger max_entries",
                      summary, cli::counted(source.without_stack, "entry")));
    if (source.too_large != 0)
      lines.push_back(
          fmt::format("{}{} larger than a sample can be", summary, cli::counted(source.too_large, "entry")));
  }
  return lines;
}

}  // namespace tacho::record
