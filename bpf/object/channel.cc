#include "bpf/object/channel.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tacho::bpf {
namespace {

constexpr std::string_view kUnless = " unless ";

std::string_view condition_of(const format::PayloadField& field) {
  const std::size_t at = field.role.find(kUnless);
  return at == std::string::npos ? std::string_view()
                                 : std::string_view(field.role).substr(at + kUnless.size());
}

bool depends_on(const std::optional<format::PayloadSchema>& described, std::string_view constant) {
  return described && std::ranges::find(described->fields, constant, condition_of) != described->fields.end();
}

// Removes the members that are not used while `constant` is set.
void choose(std::optional<format::PayloadSchema>& described, std::string_view constant, bool is_set) {
  if (!described) return;
  if (is_set)
    std::erase_if(described->fields, [&](const auto& field) { return condition_of(field) == constant; });
  for (format::PayloadField& field : described->fields)
    field.role.resize(std::min(field.role.find(kUnless), field.role.size()));
}

SummaryLayout layout_of_map(SummaryTypes types, const MapFacts& facts, std::string_view constant,
                            bool is_set) {
  choose(types.key, constant, is_set);
  choose(types.value, constant, is_set);
  return {types, facts.key_bytes, facts.value_bytes};
}

Result<std::vector<Channel>> summaries_of(Object& object, const Declarations& declared) {
  const ChannelKind kind = calls_wants(object) ? ChannelKind::Summary : ChannelKind::PlainSummary;
  std::vector<Channel> channels;
  for (const SummaryTypes& types : declared.summaries) {
    const auto facts = object.map_facts(types.map);
    const std::string what = "SUMMARY(" + types.event + ", " + types.map + "): ";
    if (!facts) return Error{what + "the object has no such map"};
    if (!facts->holds_entries())
      return Error{
          what +
          "the map must be an array or a hash (BPF_MAP_TYPE_HASH, LRU_HASH, ARRAY, or their PERCPU types)"};
    SummaryLayout layout = layout_of_map(types, *facts, {}, false);
    channels.push_back({types.map, types.event, layout.schema(), kind, std::move(layout)});
  }
  return channels;
}

}  // namespace

bool calls_wants(Object& object) {
  return object.has_map(kFollowedMap) && object.constant(kFollowsConstant).size() == sizeof(std::uint32_t);
}

Result<std::vector<Channel>> channels_of(Object& object, const Declarations& declared) {
  std::vector<Channel> channels;
  for (const std::string& map : object.perf_event_arrays()) channels.push_back({map, map});
  for (const std::string& map : object.ring_buffers()) {
    if (map.starts_with(kUnfinished)) continue;
    const bool has_headers = std::ranges::find(declared.globals, std::string(kLostCounter) + map,
                                               &Global::name) != declared.globals.end();
    channels.push_back({map, map, {}, has_headers ? ChannelKind::RingWithHeaders : ChannelKind::PlainRing});
  }
  for (Channel& channel : channels) {
    const auto tag =
        std::ranges::find(declared.channels, channel.map, &std::pair<std::string, std::string>::first);
    if (tag != declared.channels.end()) channel.event = tag->second;
  }
  // The only channel without a tag belongs to the only EVENT.
  if (channels.size() == 1 && declared.events.size() == 1 && declared.channels.empty())
    channels.front().event = declared.events.front().event;
  for (Channel& channel : channels)
    if (const auto* schema = declared.event(channel.event)) channel.schema = *schema;
  auto summaries = summaries_of(object, declared);
  if (!summaries) return std::move(summaries.error());
  std::ranges::move(*summaries, std::back_inserter(channels));
  return channels;
}

void choose_members(std::vector<Channel>& channels, Object& object, const Declarations& declared,
                    std::string_view constant, format::Bytes value) {
  const bool is_set = std::ranges::count(value, std::byte{}) != std::ssize(value);
  for (const SummaryTypes& types : declared.summaries) {
    if (!depends_on(types.key, constant) && !depends_on(types.value, constant)) continue;
    const auto channel = std::ranges::find(channels, types.map, &Channel::map);
    const auto facts = object.map_facts(types.map);
    if (channel == channels.end() || !facts) continue;
    channel->summary = layout_of_map(types, *facts, constant, is_set);
    channel->schema = channel->summary->schema();
  }
}

void replace_tail(format::PayloadSchema& schema, std::string_view field,
                  const std::vector<format::PayloadField>& instead) {
  constexpr std::uint32_t kBitsOfByte = 8, kWordBits = 64;
  if (schema.fields.empty() || schema.fields.back().name != field) return;
  std::uint32_t bit = schema.fields.back().bit_offset;
  schema.fields.pop_back();
  for (const format::PayloadField& each : instead) {
    schema.fields.push_back(each);
    schema.fields.back().bit_offset = bit;
    bit += kWordBits;
  }
  schema.size = bit / kBitsOfByte;
}

}  // namespace tacho::bpf
