#include "report/views/calls/call_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "report/query/value_field.h"
#include "report/samples/address_name.h"

namespace tacho::report {
namespace {

constexpr std::uint64_t kMostDepth = 1 << 20;  // deeper is no stack
constexpr std::size_t kMostValues = 1024;      // of an event about a call, beside its time and place
constexpr std::uint8_t kMostTexts = 16, kNoRegister = 0xff;

// What `calls --json` says of every call (call_forms.cc, call_values.cc).
constexpr std::string_view kOwnNames[] = {"function", "comm",     "pid",       "tid",     "depth",
                                          "begin",    "duration", "arguments", "returned"};

const PayloadField* field_of(const PayloadSchema& schema, std::string_view role) {
  const auto field = std::ranges::find(schema.fields, role, &PayloadField::role);
  return field == schema.fields.end() ? nullptr : &*field;
}

bool is_whole(const PayloadField& field) {
  return field.kind != format::FieldKind::Text && field.kind != format::FieldKind::Float;
}

Error too_many(const PayloadSchema& schema) {
  return use_error(fmt::format("{}: has more than {} values of a call", schema.event, kMostValues));
}

// An object of JSON has each name once, and a member of a followed object may be called like what every call
// has: it is "object.pid" then.
std::string free_name(std::string name, std::set<std::string>& taken) {
  if (taken.insert(name).second) return name;
  name.insert(0, "object.");
  if (taken.insert(name).second) return name;
  std::size_t number = 1;
  std::string numbered;
  do {
    numbered = fmt::format("{}.{}", name, ++number);
  } while (!taken.insert(numbered).second);
  return numbered;
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
    if (auto added = add_others(*schema, facts); !added) return added;
    events_.back() = std::move(facts);
    has_calls = true;
  }
  if (has_calls) return Done{};
  return use_error(
      "no event of the capture is about calls; record with -e \"calls/binary='./prog'/\" or -e "
      "\"follow/type=struct bio/\"");
}

Result<> CallList::add_others(const PayloadSchema& schema, EventFacts& facts) {
  using Is = CallValue::Is;
  std::uint8_t texts = 0;
  bool has_returned_text = false;
  std::set<std::string> taken(std::begin(kOwnNames), std::end(kOwnNames));
  const auto has_room = [&facts](std::size_t count) {
    return facts.others.size() < kMostValues && count <= kMostValues - facts.others.size();
  };
  for (const PayloadField& field : schema.fields) {
    const bool is_own = &field == facts.time || &field == facts.function || &field == facts.depth;
    const bool is_argument_text = field.role == "argument_text";
    if (field.kind == format::FieldKind::Text && (is_argument_text || field.role == "returned_text")) {
      if (is_argument_text ? texts == kMostTexts : std::exchange(has_returned_text, true)) continue;
      if (!has_room(1)) return too_many(schema);
      facts.others.push_back({&field,
                              0,
                              {.is = is_argument_text ? Is::ArgumentText : Is::ReturnedText,
                               .place = is_argument_text ? texts++ : std::uint8_t{0},
                               .name = number_of(field.name)}});
    }
    if (is_own || !is_whole(field)) continue;
    const std::uint32_t count = is_list(field) ? field.count : 1;
    if (!has_room(count)) return too_many(schema);
    const Is is = field.role == "arguments"      ? Is::Argument
                  : field.role == "returned"     ? Is::Returned
                  : field.role == "unread_texts" ? Is::Unread
                                                 : Is::Other;
    for (std::uint32_t k = 0; k < count; ++k)
      facts.others.push_back(
          {&field,
           k,
           {.is = is,
            .place = static_cast<std::uint8_t>(std::min<std::uint32_t>(k, kNoRegister)),
            .name = number_of(
                free_name(is_list(field) ? fmt::format("{}{}", field.name, k + 1) : field.name, taken)),
            .is_number = !is_shown_in_hex(field)}});
  }
  return Done{};
}

std::uint32_t CallList::number_of(std::string text) {
  const auto [entry, is_new] =
      numbers_.try_emplace(std::move(text), static_cast<std::uint32_t>(texts_.size()));
  if (is_new) texts_.push_back(&entry->first);
  return entry->second;
}

// A place in user code is shown as a place in its file.
std::uint32_t CallList::function_of(const symbolize::Frame* frame, std::uint64_t address) {
  CallFunction function{{}, address};
  if (frame != nullptr && frame->module != nullptr) function = {frame->module->path, frame->shown_address};
  const auto [known, is_new] = function_numbers_.try_emplace({function.file, function.offset},
                                                             static_cast<std::uint32_t>(functions_.size()));
  if (is_new) functions_.push_back(function);
  return known->second;
}

// A register that holds no argument has what was there before.
bool CallList::has_object(const Prototype* prototype, const CallValue& value) const {
  using Is = CallValue::Is;
  if (value.is_text() || value.is_number || value.value != *object_) return false;
  if (prototype == nullptr) return true;
  if (value.is == Is::Returned) return prototype->returned.has_value();
  return value.is != Is::Argument ||
         std::ranges::find(prototype->arguments, value.place, &symbolize::Argument::word) !=
             prototype->arguments.end();
}

Sink::Flow CallList::on_sample(const ResolvedSample& sample) {
  if (sample.event_index >= events_.size()) return Flow::GoOn;  // a pipe brought it after find_events()
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
  const std::uint64_t address = bits_of(*function);
  const symbolize::Frame* const frame = frame_at(session_->resolver(), sample, address);
  const bool has_name = frame != nullptr && !frame->function.empty();
  call.name = number_of(has_name ? std::string(frame->function) : fmt::format("{:#x}", address));
  call.function = function_of(frame, address);
  call.comm = number_of(std::string(sample.comm));
  call.depth = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(static_cast<std::uint64_t>(*depth), 1, kMostDepth));
  call.more = static_cast<std::uint32_t>(values_end_.size());
  for (const EventFacts::Other& other : facts->others) {
    const auto value = read_field(*other.field, payload, sample.order, other.element);
    if (!value) continue;
    CallValue& made = values_.emplace_back(other.shape);
    const auto* const text = std::get_if<std::string_view>(&*value);
    made.value = text != nullptr ? number_of(std::string(*text)) : bits_of(*value);
  }
  const auto own =
      values_.begin() + static_cast<std::ptrdiff_t>(values_end_.empty() ? 0 : values_end_.back());
  const Prototype* const prototype = object_ ? types_->of(this->function(call)) : nullptr;
  const bool is_wanted = !object_ || std::any_of(own, values_.end(), [&](const CallValue& one) {
    return has_object(prototype, one);
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
// which then begins later than calls inside it; they say by how much at least. Calls return the innermost
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
