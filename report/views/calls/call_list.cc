#include "report/views/calls/call_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "report/query/value_field.h"
#include "report/samples/address_name.h"

namespace tacho::report {
namespace {

constexpr std::uint64_t kMostDepth = 1 << 20;  // deeper is no stack
constexpr std::size_t kMostValues = 1024;      // that an event tells of a call beside its time and place

const PayloadField* field_of(const PayloadSchema& schema, std::string_view role) {
  const auto field = std::ranges::find(schema.fields, role, &PayloadField::role);
  return field == schema.fields.end() ? nullptr : &*field;
}

bool is_whole(const PayloadField& field) {
  return field.kind != format::FieldKind::Text && field.kind != format::FieldKind::Float;
}

}  // namespace

Result<> CallList::find_events() {
  bool has_calls = false;
  for (std::size_t i = 0; i < session_->events().size(); ++i) {
    events_.emplace_back();
    const PayloadSchema* const schema = schemas_.of(i);
    if (schema == nullptr) continue;
    EventFacts facts{value_field(*schema), field_of(*schema, "function"), field_of(*schema, "depth"), {}};
    if (facts.time == nullptr || facts.time->unit != "ns" || facts.function == nullptr ||
        facts.depth == nullptr)
      continue;
    for (const PayloadField& field : schema->fields) {
      const bool is_own = &field == facts.time || &field == facts.function || &field == facts.depth;
      if (is_own || !is_whole(field)) continue;
      const std::uint32_t count = is_list(field) ? field.count : 1;
      if (count > kMostValues - facts.others.size())
        return use_error(
            fmt::format("{}: tells of more than {} values of a call", schema->event, kMostValues));
      for (std::uint32_t k = 0; k < count; ++k)
        facts.others.emplace_back(
            &field, number_of(is_list(field) ? fmt::format("{}{}", field.name, k + 1) : field.name));
    }
    events_.back() = std::move(facts);
    has_calls = true;
  }
  if (has_calls) return Done{};
  return use_error(
      "no event of the capture tells of calls; record with -e \"calls/binary='./prog'/\" or -e "
      "\"follow/type=struct bio/\"");
}

std::uint32_t CallList::number_of(std::string text) {
  const auto [entry, is_new] =
      numbers_.try_emplace(std::move(text), static_cast<std::uint32_t>(texts_.size()));
  if (is_new) texts_.push_back(&entry->first);
  return entry->second;
}

std::uint32_t CallList::name_of(const ResolvedSample& sample, std::uint64_t address) {
  const symbolize::Frame* const frame = frame_at(session_->resolver(), sample, address);
  if (frame == nullptr || frame->function.empty()) return number_of(fmt::format("{:#x}", address));
  return number_of(std::string(frame->function));
}

Sink::Flow CallList::on_sample(const ResolvedSample& sample) {
  const auto& facts = events_[sample.event_index];
  if (!facts) return Flow::GoOn;
  const format::Bytes payload = sample.raw->raw;
  const auto time = read_number(*facts->time, payload, sample.order);
  const auto function = read_field(*facts->function, payload, sample.order);
  const auto depth = read_number(*facts->depth, payload, sample.order);
  if (!time || !function || !depth) return Flow::GoOn;
  Call call;
  call.end = sample.raw->time;
  const auto duration = static_cast<std::uint64_t>(std::max<std::int64_t>(*time, 0));
  call.begin = call.end - std::min(call.end, duration);
  call.pid = sample.pid();
  call.tid = sample.tid();
  call.name = name_of(sample, bits_of(*function));
  call.comm = number_of(std::string(sample.comm));
  call.depth = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(static_cast<std::uint64_t>(*depth), 1, kMostDepth));
  call.more = static_cast<std::uint32_t>(values_end_.size());
  std::uint32_t element = 0;
  const PayloadField* last = nullptr;
  for (const auto& [field, name] : facts->others) {
    element = field == last ? element + 1 : 0;
    last = field;
    if (const auto value = read_field(*field, payload, sample.order, element))
      values_.push_back({name, !is_shown_in_hex(*field), bits_of(*value)});
  }
  const auto own =
      values_.begin() + static_cast<std::ptrdiff_t>(values_end_.empty() ? 0 : values_end_.back());
  const bool is_wanted = !object_ || std::any_of(own, values_.end(), [this](const CallValue& one) {
    return !one.is_number && one.value == *object_;
  });
  if (!is_wanted) {
    values_.erase(own, values_.end());
    return Flow::GoOn;
  }
  values_end_.push_back(values_.size());
  calls_.push_back(call);
  return Flow::GoOn;
}

// A sample's time is that of its writing. An interrupt between a return and its sample moves the whole call,
// which then begins later than calls inside it; they tell by how much at least. Calls return the innermost
// first.
void CallList::move_to_callees() {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<const Call*>> returned;  // of no caller yet
  for (Call& call : calls_) {
    auto& callees = returned[{call.pid, call.tid}];
    std::uint64_t begin = call.begin;
    for (; !callees.empty() && callees.back()->depth > call.depth; callees.pop_back())
      if (callees.back()->end > begin) begin = std::min(begin, callees.back()->begin);
    call.end -= call.begin - begin;
    call.begin = begin;
    callees.push_back(&call);
  }
}

void CallList::sort() {
  move_to_callees();
  std::ranges::stable_sort(calls_, [](const Call& a, const Call& b) {
    return std::tuple(a.begin, a.depth, b.end) < std::tuple(b.begin, b.depth, a.end);
  });
}

std::vector<CallValue> CallList::values(const Call& call) const {
  const std::size_t begin = call.more == 0 ? 0 : values_end_[call.more - 1];
  return {values_.begin() + static_cast<std::ptrdiff_t>(begin),
          values_.begin() + static_cast<std::ptrdiff_t>(values_end_[call.more])};
}

}  // namespace tacho::report
