#include "bpf/loaded_object.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <utility>

#include "bpf/object/loaded_programs.h"
#include "bpf/object/program_choice.h"
#include "bpf/support/kernel_support.h"
#include "format/base/cursor.h"

namespace tacho::bpf {
namespace {

constexpr const char* kRecorderConstant = "tacho_recorder";

// Errnos that mean a missing kernel feature: then an alternative is tried. Others, such as the verifier's
// EACCES, are faults of the program, which an alternative must not hide.
constexpr std::array<int, 6> kCannot{EPERM, ENOENT, EOPNOTSUPP, EINVAL, ESRCH, kNotSupportedInKernel};

Hook hook_of_program(const Program& program) {
  const auto section = parse_section(program.section);
  if (section && section->hook == Hook::Iterator && program.name == kAtBegin) return Hook::AtBegin;
  return section ? section->hook : Hook::Other;
}

std::size_t index_of(const Object& object, const std::string& program) {
  return static_cast<std::size_t>(std::ranges::find(object.programs(), program, &Program::name) -
                                  object.programs().begin());
}

}  // namespace

// One object on its way into the kernel: rounds, each with the programs that were not rejected before.
class LoadedObject::Loading {
 public:
  Loading(const ObjectSettings& settings, const LinkedWalk& walk, const Log& log)
      : settings_(settings), walk_(walk), log_(log) {}

  // A failed load ruins the object: every round opens it again.
  Result<Object> open() const {
    return Object::open(walk_.elf.empty() ? settings_.elf : walk_.elf, object_name(settings_.path), {});
  }
  // Rejects programs that need not be tried.
  Result<> reject_missing(ProgramChoice& choice);
  std::optional<Refusal> try_to_run(const ProgramChoice& choice, LoadedObject& out) const;
  // Collects the state of each program, for the capture and -v.
  void report(const ProgramChoice& choice, LoadedObject& out) const;

 private:
  std::optional<Refusal> apply_settings(const ProgramChoice& choice, Object& object) const;

  const ObjectSettings& settings_;
  const LinkedWalk& walk_;
  const Log& log_;
  std::string tracefs_;
};

Result<> LoadedObject::Loading::reject_missing(ProgramChoice& choice) {
  for (std::size_t i = 0; i < choice.candidates().size(); ++i) {
    const auto section = parse_section(choice.candidates()[i].section);
    std::optional<std::string> why;
    if (!section) why = section.error().what;
    const bool names_tracepoint = !settings_.functions.tracepoint.empty();
    if (section && section->hook == Hook::Functions && names_tracepoint) why = "a tracepoint is given";
    if (section && section->target == kNamedTracepoint) {
      if (names_tracepoint) continue;  // it exists
      why = "functions are given";
    }
    if (section && !why && section->hook == Hook::Tracepoint && tracefs_.empty()) {
      if (auto found = store(tracefs_, find_tracefs(log_)); !found) why = found.error().what;
    }
    if (section && !why) why = missing_hook(*section, tracefs_);
    if (!why) continue;
    if (auto rejected = choice.reject(i, *why); !rejected) return rejected;
  }
  return Done{};
}

// What must be set before the kernel sees the object.
std::optional<Refusal> LoadedObject::Loading::apply_settings(const ProgramChoice& choice,
                                                             Object& object) const {
  for (std::size_t i = 0; i < choice.candidates().size(); ++i)
    object.want(index_of(object, choice.candidates()[i].name), choice.wanted(i));
  object.set_number(kRecorderConstant, static_cast<std::uint32_t>(::getpid()));
  object.set_number("tacho_is_switched", 1);
  object.set_number("tacho_page_bytes", static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
  object.set_number("tacho_one_in", settings_.rate.one_in);
  object.set_number("tacho_most_a_second", settings_.rate.most_a_second);
  MapsByName shared = walk_.maps;
  if (settings_.table_of_threads) {
    object.set_number(kFollowsConstant, 1);
    shared.emplace_back(kFollowedMap, *settings_.table_of_threads);
  }
  if (auto done = object.replace_maps(shared); !done)
    return Refusal{"", done.error().code, done.error().what};
  for (const auto& [name, bytes] : settings_.constants)
    std::ranges::copy(bytes, object.constant(name).begin());
  object.follow_functions(settings_.functions);
  object.set_number("tacho_in_kernel", settings_.functions.in_kernel ? 1 : 0);
  return std::nullopt;
}

std::optional<Refusal> LoadedObject::Loading::try_to_run(const ProgramChoice& choice,
                                                         LoadedObject& out) const {
  Object& object = out.object_;
  if (auto refused = apply_settings(choice, object)) return refused;
  if (auto refused = object.load(log_)) return refused;
  for (std::size_t i = 0; i < choice.candidates().size(); ++i) {
    if (!choice.wanted(i)) continue;
    const std::size_t program = index_of(object, choice.candidates()[i].name);
    const auto section = parse_section(choice.candidates()[i].section);
    out.loaded_.push_back(program);
    if (section->hook == Hook::PerfEvent) continue;  // attached later, to an open event
    if (auto refused = object.attach(program, *section)) return refused;
  }
  if (!object.constant("tacho_wants_run_times").empty())
    if (auto counting = store(out.statistics_, count_runs()); !counting)
      return Refusal{"", counting.error().code, counting.error().what};
  return std::nullopt;
}

void LoadedObject::Loading::report(const ProgramChoice& choice, LoadedObject& out) const {
  const std::string& path = settings_.path;
  if (const std::size_t count = out.object_.unprobed_functions(); count != 0)
    say(log_, path + ": functions that cannot be probed: " + std::to_string(count));
  for (std::size_t i = 0; i < choice.candidates().size(); ++i) {
    const Candidate& candidate = choice.candidates()[i];
    const auto running =
        choice.wanted(i) ? out.object_.running(index_of(out.object_, candidate.name)) : std::nullopt;
    out.programs_.push_back({candidate.name, candidate.section, path, running ? running->id : 0,
                             choice.wanted(i) ? "attached" : choice.why_not(i)});
    const std::string place =
        path + ": " + (candidate.group.empty() ? "" : "alternatives '" + candidate.group + "': ");
    say(log_, place + candidate_text(candidate) + ": " + out.programs_.back().state);
  }
}

Result<LoadedObject> LoadedObject::load(const ObjectSettings& settings, const LinkedWalk& walk,
                                        const Log& log) {
  const std::string& path = settings.path;
  if (auto allowed = check_may_load(); !allowed) return std::move(allowed.error()).in(path);
  Loading loading(settings, walk, log);
  auto fresh = loading.open();
  if (!fresh) return std::move(fresh.error()).in(path);
  ProgramChoice choice(candidates_of(*fresh, settings.declared));
  if (auto possible = loading.reject_missing(choice); !possible) return std::move(possible.error()).in(path);
  // Each round succeeds, fails, or rejects a program, so the loop ends.
  for (;; fresh = loading.open()) {
    if (!fresh) return std::move(fresh.error()).in(path);
    LoadedObject out(std::move(*fresh));
    const auto refused = loading.try_to_run(choice, out);
    if (!refused) {
      loading.report(choice, out);
      out.path_ = path;
      out.is_shipped_ = settings.is_shipped;
      out.btf_ = settings.btf;
      out.channels_ = settings.channels;
      out.functions_ = settings.functions.shown_names;
      return out;
    }
    const auto culprit = std::ranges::find(choice.candidates(), refused->program, &Candidate::name);
    if (culprit == choice.candidates().end()) return Error{refused->reason, refused->code}.in(path);
    const auto index = static_cast<std::size_t>(culprit - choice.candidates().begin());
    if (std::ranges::find(kCannot, refused->code) == kCannot.end())
      return Error{"program " + candidate_text(*culprit) + ": " + refused->reason, refused->code}.in(path);
    if (auto rejected = choice.reject(index, refused->reason); !rejected)
      return Error{rejected.error().what, refused->code}.in(path);
  }
}

bool LoadedObject::has_loaded(Hook hook) const {
  return std::ranges::any_of(
      loaded_, [&](std::size_t program) { return hook_of_program(object_.programs()[program]) == hook; });
}

Result<> LoadedObject::run_programs(Hook hook, RunUntil until) const {
  for (const std::size_t program : loaded_) {
    if (hook_of_program(object_.programs()[program]) != hook) continue;
    if (auto done = object_.run_program(program, until); !done) return std::move(done.error()).in(path_);
  }
  return Done{};
}

std::vector<std::uint32_t> LoadedObject::dropping_programs() const {
  std::vector<std::uint32_t> ids;
  for (const std::size_t index : loaded_) {
    const bool drops =
        hook_of_program(object_.programs()[index]) == Hook::Tracepoint && object_.may_drop_events(index);
    const auto running = drops ? object_.running(index) : std::nullopt;
    if (running) ids.push_back(running->id);
  }
  return ids;
}

Result<> LoadedObject::connect_channel(std::string_view map, int cpu, int event_fd) {
  const auto channel = std::ranges::find(channels_, map, &Channel::map);
  if (channel == channels_.end()) {
    std::string known;
    for (const Channel& each : channels_) known += (known.empty() ? "" : ", ") + each.map;
    return use_error(path_ + ": has no perf event array '" + std::string(map) + "'; it has " +
                     (known.empty() ? "none" : known));
  }
  auto done = object_.put_event(channel->map, cpu, event_fd);
  return done ? std::move(done) : std::move(done.error()).in(path_);
}

Result<format::Fd> LoadedObject::attach_to_perf_event(std::string_view program, int event_fd) {
  for (const std::size_t each : loaded_) {
    const Program& loaded = object_.programs()[each];
    if (loaded.name != program || hook_of_program(loaded) != Hook::PerfEvent) continue;
    auto link = object_.attach_to_event(each, event_fd);
    return link ? std::move(link) : std::move(link.error()).in(path_);
  }
  return format::Fd();
}

Result<Ring> LoadedObject::open_ring(const std::string& map) const {
  auto ring = object_.open_ring(map);
  return ring ? std::move(ring) : std::move(ring.error()).in(path_);
}

Result<MapReader> LoadedObject::open_map(const std::string& map) const {
  auto reader = object_.open_map(map);
  return reader ? std::move(reader) : std::move(reader.error()).in(path_);
}

std::string LoadedObject::stack_map() const {
  const auto maps = object_.stack_maps();
  return maps.size() == 1 ? maps.front() : "";
}

void LoadedObject::want_events(bool wanted) { object_.set_variable("tacho_is_on", wanted ? 1 : 0); }

bool LoadedObject::asks_for_sleeping_stacks() const {
  return object_.has_map(kSleepingStacks) && has_loaded(Hook::AtBegin);
}

Result<> LoadedObject::put_sleeping_stack(std::uint32_t thread, std::uint64_t switches,
                                          std::span<const std::uint64_t> frames) const {
  const auto facts = object_.map_facts(kSleepingStacks);
  if (!facts) return Done{};
  std::vector<std::uint64_t> value(facts->value_bytes / sizeof switches);  // frames end with 0
  if (value.empty()) return Done{};
  value.front() = switches;
  std::ranges::copy(frames.first(std::min(frames.size(), value.size() - 1)), value.begin() + 1);
  auto done = object_.put_entry(kSleepingStacks, std::as_bytes(std::span(&thread, 1)),
                                std::as_bytes(std::span(value)));
  return done ? std::move(done) : std::move(done.error()).in(path_);
}

Result<> LoadedObject::run_at_begin() const { return run_programs(Hook::AtBegin, RunUntil::max()); }
Result<> LoadedObject::run_at_end() const { return run_programs(Hook::AtEnd, RunUntil::max()); }
bool LoadedObject::has_iterators() const { return has_loaded(Hook::Iterator); }
Result<> LoadedObject::run_iterators(RunUntil until) const { return run_programs(Hook::Iterator, until); }

std::uint64_t LoadedObject::events_over_rate() const {
  return object_.counter("tacho_over_rate").value_or(0);
}

std::uint64_t LoadedObject::lost_by_ring(const std::string& map) const {
  return object_.counter(std::string(kLostCounter) + map).value_or(0);
}

std::uint64_t LoadedObject::too_deep() const { return object_.counter("tacho_too_deep").value_or(0); }

std::vector<std::pair<std::string, std::uint64_t>> LoadedObject::too_deep_by_function() const {
  std::vector<std::pair<std::string, std::uint64_t>> counts;
  const auto map = open_map("too_deep");
  if (!map) return counts;
  (void)map->read_entries([&](format::Bytes key, const std::vector<format::Bytes>& values) {
    format::Cursor number(key), count(values.empty() ? format::Bytes() : values.front());
    const std::uint32_t function = number.u32();
    const std::uint64_t lost = count.u64();
    if (function != 0 && function <= functions_.size() && !count.failed() && lost != 0)
      counts.emplace_back(functions_[function - 1], lost);
  });
  std::ranges::sort(counts, std::greater<>(), &std::pair<std::string, std::uint64_t>::second);
  return counts;
}

std::uint64_t LoadedObject::unseen_ends() const { return object_.counter("tacho_unseen_ends").value_or(0); }

std::uint64_t LoadedObject::recursion_misses() const {
  std::uint64_t misses = 0;
  for (const std::size_t program : loaded_)
    if (const auto running = object_.running(program)) misses += running->recursion_misses;
  return misses;
}

}  // namespace tacho::bpf
