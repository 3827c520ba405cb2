#include "report/views/calls/call_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>

#include "format/extensions/attachment.h"
#include "report/query/field_choice.h"
#include "report/samples/resolver.h"
#include "symbolize/files/decompress.h"

namespace tacho::report {
namespace {

using ThreadIds = std::pair<std::uint32_t, std::uint32_t>;  // pid, tid

constexpr std::string_view kAttachment = "prototypes";
// Limits for all attachments together: bytes after decompression; functions, arguments and enumerators.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 26;
constexpr std::size_t kMostEntries = std::size_t{1} << 20;

}  // namespace

CallTypes::CallTypes(const format::Features& features) {
  std::uint64_t bytes = kMostBytes;
  std::size_t entries = kMostEntries;
  for (const format::Attachment& attachment : features.attachments) {
    if (attachment.name != kAttachment || attachment.raw_size > bytes) continue;
    bytes -= attachment.raw_size;  // even if it cannot be read, which takes as long
    const auto content = symbolize::unpack_attached_text(attachment);
    if (!content) continue;
    auto read = read_prototypes(format::as_text(*content), entries);
    // A file has several if several events trace its functions: the first one counts.
    prototypes_[attachment.origin].merge(read);
  }
}

const Prototype* CallTypes::prototype_of(const CallFunction& function) const {
  if (prototypes_.empty()) return nullptr;
  const auto file = prototypes_.find(std::string(function.file));
  if (file == prototypes_.end()) return nullptr;
  const auto found = file->second.find(function.offset);
  return found == file->second.end() ? nullptr : &found->second;
}

namespace {

constexpr std::uint64_t kMostDepth = 1 << 20;  // larger depths are wrong
constexpr std::size_t kMostValues = 1024;      // of a call, besides its time, function and depth
constexpr std::uint8_t kMostTexts = 16, kNoRegister = 0xff;

// The members that `calls --json` writes for every call.
constexpr std::string_view kOwnNames[] = {"function", "comm",     "pid",       "tid",     "depth",
                                          "begin",    "duration", "arguments", "returned"};

bool is_whole(const PayloadField& field) {
  return field.kind != format::FieldKind::Text && field.kind != format::FieldKind::Float;
}

Error too_many(const PayloadSchema& schema) {
  return use_error(fmt::format("{}: has more than {} values of a call", schema.event, kMostValues));
}

// A member of a traced object with the name of a call's own field ("pid") is "object.pid": names in a JSON
// object must be unique.
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
    const PayloadSchema* const schema = schemas_.schema_of(i);
    if (schema == nullptr) continue;
    EventFacts facts{
        value_field(*schema), field_with_role(*schema, "function"), field_with_role(*schema, "depth"), {}};
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
                               .index = is_argument_text ? texts++ : std::uint8_t{0},
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
            .index = static_cast<std::uint8_t>(std::min<std::uint32_t>(k, kNoRegister)),
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

// An address in user code is shown as an offset in its file.
std::uint32_t CallList::function_of(const symbolize::Frame* frame, std::uint64_t address) {
  CallFunction function{{}, address};
  if (frame != nullptr && frame->module != nullptr) function = {frame->module->path, frame->shown_address};
  const auto [known, is_new] = function_numbers_.try_emplace({function.file, function.offset},
                                                             static_cast<std::uint32_t>(functions_.size()));
  if (is_new) functions_.push_back(function);
  return known->second;
}

// Whether the value is the object. A register that holds no argument has an arbitrary value.
bool CallList::has_object(const Prototype* prototype, const CallValue& value) const {
  using Is = CallValue::Is;
  if (value.is_text() || value.is_number || value.value != *object_) return false;
  if (prototype == nullptr) return true;
  if (value.is == Is::Returned) return prototype->returned.has_value();
  return value.is != Is::Argument ||
         std::ranges::find(prototype->arguments, value.index, &symbolize::Argument::integer_register) !=
             prototype->arguments.end();
}

Sink::Flow CallList::on_sample(const ResolvedSample& sample) {
  if (sample.event_index >= events_.size()) {
    ++late_;
    return Flow::Continue;
  }
  const auto& facts = events_[sample.event_index];
  if (!facts) return Flow::Continue;
  const format::Bytes payload = sample.fields->raw;
  const auto time = read_number(*facts->time, payload, sample.order);
  const auto function = read_field(*facts->function, payload, sample.order);
  const auto depth = read_number(*facts->depth, payload, sample.order);
  if (!time || !function || !depth) return Flow::Continue;
  Call call;
  call.end = sample.fields->time;
  const auto duration = static_cast<std::uint64_t>(std::max<Int128>(*time, 0));
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
  const Prototype* const prototype = object_ ? types_->prototype_of(this->function(call)) : nullptr;
  const bool is_wanted = !object_ || std::any_of(own, values_.end(), [&](const CallValue& one) {
    return has_object(prototype, one);
  });
  if (!is_wanted) {
    values_.erase(own, values_.end());
    return Flow::Continue;
  }
  values_end_.push_back(values_.size());
  calls_.push_back(call);
  return Flow::Continue;
}

// A sample has the time when it was written. An interrupt between a return and its sample delays the call,
// which then seems to start after calls inside it. These give a lower bound of the delay, by which the call
// is moved back. Inner calls return first.
void CallList::move_to_callees() {
  std::map<ThreadIds, std::vector<const Call*>> returned;  // calls whose caller has not returned
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

namespace {

using OpenCalls = std::vector<std::uint32_t>;  // calls that have begun, the outermost first

// The open calls of one thread, with counts by function, since a stack may be too deep to be searched for
// each call.
class OpenFunctions {
 public:
  explicit OpenFunctions(const std::vector<Call>& calls) : calls_(&calls) {}
  bool empty() const { return stack_.empty(); }
  std::uint32_t innermost() const { return stack_.back(); }
  bool has(std::uint32_t name) const { return counts_.contains(name); }

  void enter(std::uint32_t call) {
    stack_.push_back(call);
    ++counts_[(*calls_)[call].name];
  }
  // Pops calls that ended before `call` began. A call whose end was lost is recognized by its depth.
  void leave_for(const Call& call) {
    while (!stack_.empty()) {
      const Call& last = (*calls_)[stack_.back()];
      if (last.depth < call.depth && last.end >= call.end) return;
      stack_.pop_back();
      const auto count = counts_.find(last.name);
      if (--count->second == 0) counts_.erase(count);
    }
  }

 private:
  const std::vector<Call>* calls_;
  OpenCalls stack_;
  std::unordered_map<std::uint32_t, std::uint32_t> counts_;  // by name
};

}  // namespace

Callers find_callers(const CallList& list) {
  const auto& calls = list.calls();
  Callers tree;
  tree.callers.assign(calls.size(), Callers::kNone);
  tree.in_callees.assign(calls.size(), 0);
  tree.has_callees.assign(calls.size(), false);
  tree.recurses.assign(calls.size(), false);
  std::map<ThreadIds, OpenFunctions> stacks;
  for (std::uint32_t i = 0; i < calls.size(); ++i) {
    OpenFunctions& open = stacks.try_emplace({calls[i].pid, calls[i].tid}, calls).first->second;
    open.leave_for(calls[i]);
    if (!open.empty()) {
      const std::uint32_t caller = open.innermost();
      tree.callers[i] = caller;
      tree.in_callees[caller] += calls[i].end - calls[i].begin;
      tree.has_callees[caller] = true;
      tree.recurses[i] = open.has(calls[i].name);
    }
    open.enter(i);
  }
  return tree;
}

std::vector<CallStep> call_steps(const CallList& list, const Callers& tree) {
  const auto& calls = list.calls();
  std::map<ThreadIds, std::vector<CallStep>> threads;
  std::map<ThreadIds, OpenCalls> stacks;
  const auto end_innermost = [&](std::vector<CallStep>& steps, OpenCalls& stack) {
    const std::uint32_t call = stack.back();
    stack.pop_back();
    if (tree.has_callees[call])
      steps.push_back({calls[call].end, call, static_cast<std::uint32_t>(stack.size()), true});
  };
  for (std::uint32_t i = 0; i < calls.size(); ++i) {
    const ThreadIds thread{calls[i].pid, calls[i].tid};
    OpenCalls& stack = stacks[thread];
    auto& steps = threads[thread];
    while (!stack.empty() && stack.back() != tree.callers[i]) end_innermost(steps, stack);
    steps.push_back({calls[i].begin, i, static_cast<std::uint32_t>(stack.size()), false});
    stack.push_back(i);
  }
  std::vector<CallStep> all;
  for (auto& [thread, steps] : threads) {
    while (!stacks[thread].empty()) end_innermost(steps, stacks[thread]);
    std::uint64_t latest = 0;  // a thread's steps stay in their order
    for (CallStep& step : steps) latest = step.time = std::max(step.time, latest);
    all.insert(all.end(), steps.begin(), steps.end());
  }
  std::ranges::stable_sort(all, {}, &CallStep::time);
  return all;
}

}  // namespace tacho::report
