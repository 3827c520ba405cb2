#include "report/views/why/wait_facts.h"

#include <algorithm>
#include <utility>

namespace tacho::report {
namespace {

constexpr std::pair<std::string_view, WaitObject> kObjects[] = {
    {"futex", WaitObject::Futex},         {"mutex", WaitObject::Mutex},
    {"rwlock", WaitObject::RwLock},       {"file", WaitObject::File},
    {"accepted", WaitObject::Accepted},   {"connected", WaitObject::Connected},
    {"listening", WaitObject::Listening}, {"pipe", WaitObject::Pipe},
    {"epoll", WaitObject::Epoll},         {"other_fd", WaitObject::OtherFile},
};

WaitObject object_of(std::string_view name) {
  const auto* const row = std::ranges::find(kObjects, name, &std::pair<std::string_view, WaitObject>::first);
  return row == std::end(kObjects) ? WaitObject::Unknown : row->second;
}

constexpr std::size_t kMostTexts = std::size_t{1} << 20;

}  // namespace

WaitFactsTable::WaitFactsTable(Session& session)
    : schemas_(session.events(), session.features()), kept_(1), facts_(1) {
  for (std::size_t event = 0; event < session.events().size(); ++event) fields_of(event);
}

const WaitFactsTable::Fields* WaitFactsTable::fields_of(std::size_t event) {
  const auto [known, is_new] = fields_.try_emplace(event);
  const PayloadSchema* const schema = is_new ? schemas_.schema_of(event) : nullptr;
  if (schema == nullptr) return &known->second;
  Fields& fields = known->second;
  for (const auto& [name, field] :
       {std::pair("object", &fields.object), std::pair("ready", &fields.ready),
        std::pair("lock", &fields.lock), std::pair("holder_tid", &fields.holder_tid),
        std::pair("holder", &fields.holder), std::pair("name", &fields.name), std::pair("disk", &fields.disk),
        std::pair("call", &fields.call), std::pair("throttled", &fields.throttled),
        std::pair("state", &fields.state), std::pair("began_before", &fields.began_before),
        std::pair("unfinished", &fields.unfinished), std::pair("runner_pid", &fields.runner_pid),
        std::pair("runner", &fields.runner)})
    *field = field_named(*schema, name);
  has_objects_ = has_objects_ || fields.object != nullptr;
  return &fields;
}

std::uint64_t WaitFactsTable::number_of(const PayloadField* field, const ResolvedSample& sample) const {
  const auto number = field == nullptr ? std::nullopt : read_number(*field, sample.fields->raw, sample.order);
  return number ? static_cast<std::uint64_t>(*number) : 0;
}

// A text of the payload, or the name of an enumerator.
std::string_view WaitFactsTable::text_of(const PayloadField* field, const ResolvedSample& sample) {
  const auto value = field == nullptr ? std::nullopt : read_field(*field, sample.fields->raw, sample.order);
  if (!value) return {};
  const auto* const text = std::get_if<std::string_view>(&*value);
  const std::string_view named = text != nullptr ? *text : name_of(*field, *value);
  if (named.empty() || (texts_.size() >= kMostTexts && !texts_.contains(std::string(named)))) return {};
  return *texts_.emplace(named).first;
}

std::uint32_t WaitFactsTable::keep(const ResolvedSample& sample) {
  const Fields& fields = *fields_of(sample.event_index);
  if (fields.object == nullptr) return 0;
  WaitFacts made{.object = object_of(text_of(fields.object, sample)),
                 .ready = object_of(text_of(fields.ready, sample)),
                 .lock = number_of(fields.lock, sample),
                 .pid = sample.pid(),
                 .holder_tid = static_cast<std::uint32_t>(number_of(fields.holder_tid, sample)),
                 .holder = text_of(fields.holder, sample),
                 .name = text_of(fields.name, sample),
                 .disk = text_of(fields.disk, sample),
                 .call = text_of(fields.call, sample),
                 .is_throttled = number_of(fields.throttled, sample) != 0,
                 .is_stopped = text_of(fields.state, sample) == "T" || text_of(fields.state, sample) == "t",
                 .began_before = number_of(fields.began_before, sample) != 0,
                 .is_unfinished = number_of(fields.unfinished, sample) != 0,
                 .runner_pid = static_cast<std::uint32_t>(number_of(fields.runner_pid, sample)),
                 .runner = text_of(fields.runner, sample)};
  if (made.call == "none") made.call = {};
  const unsigned flags = (made.is_throttled ? 1U : 0) | (made.is_stopped ? 2U : 0) |
                         (made.began_before ? 4U : 0) | (made.is_unfinished ? 8U : 0);
  const PayloadKey key(made.object, made.ready, made.lock, made.pid, made.holder_tid, made.name.data(),
                       made.call.data(), flags, made.runner_pid, made.runner.data(), made.disk.data());
  const auto [known, is_new] = by_payload_.try_emplace(key, static_cast<std::uint32_t>(kept_.size()));
  if (!is_new) return known->second;
  if (made.lock != 0) made.variable = sample.locate(made.lock).id;
  kept_.push_back(made);
  return known->second;
}

std::uint32_t WaitFactsTable::facts_of(const Wait& wait) {
  const Waker* const waker = wait.wakers.empty() ? nullptr : &wait.wakers.front();
  const bool is_long = wait.duration >= kLongWait;
  if (waker == nullptr && wait.kept == 0 && !is_long) return 0;
  const Waker none;
  const Waker& by = waker == nullptr ? none : *waker;
  const WakerKey key(wait.kept, wait.pid, by.tid, by.comm.data(), by.stack, by.frames, is_long);
  const auto [known, is_new] = by_waker_.try_emplace(key, static_cast<std::uint32_t>(facts_.size()));
  if (!is_new) return known->second;
  WaitFacts& made = facts_.emplace_back(kept_[wait.kept]);
  made.pid = wait.pid;
  made.waker = by;
  made.is_long = is_long;
  return known->second;
}

}  // namespace tacho::report
