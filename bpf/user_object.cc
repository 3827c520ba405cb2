#include "bpf/user_object.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "bpf/object/compile.h"
#include "bpf/object/loaded_programs.h"
#include "bpf/object/object.h"
#include "bpf/object/program_choice.h"
#include "bpf/program_trial.h"
#include "bpf/support/kernel_support.h"
#include "bpf/support/section.h"
#include "format/base/file.h"
#include "format/base/trusted_path.h"

namespace tacho::bpf {
namespace {

constexpr std::uint64_t kMaxObject = std::uint64_t{256} << 20;
constexpr const char* kRecorderConstant = "tacho_recorder";
constexpr std::string_view kOwnPrefix = "tacho_";
constexpr const char* kFilter = "tacho_filter";

// Errnos that mean a missing kernel feature: then an alternative is tried. Others, such as the verifier's
// EACCES, are faults of the program, which an alternative must not hide.
constexpr std::array<int, 6> kCannot{EPERM, ENOENT, EOPNOTSUPP, EINVAL, ESRCH, kNotSupportedInKernel};

Error not_trusted(const std::string& path, const Error& why) {
  if (why.code != EPERM) return system_error(path, why.code);
  return Error{path + ": is not loaded into the kernel, since other users could change it: " + why.what +
                   "; copy it to a folder of your own",
               EACCES};
}

// The variable of emit.h with the condition of one channel.
std::string filter_of(const Channel& channel) {
  return channel.kind == ChannelKind::RingWithHeaders ? std::string(kFilter) + "_of_ring_" + channel.map
                                                      : std::string(kFilter) + "_of_" + channel.event;
}

}  // namespace

struct UserObject::State {
  std::string path;
  ObjectOptions options;
  bool is_shipped = false;
  std::vector<std::byte> elf;
  std::vector<std::byte> btf;
  Declarations declared;
  std::vector<Channel> channels;
  std::vector<format::AttachedProgram> programs;
  std::optional<Object> object;
  FunctionTargets functions;
  std::vector<std::size_t> loaded;                                        // indexes of programs
  std::vector<std::pair<std::string, std::vector<std::byte>>> constants;  // values that were set
  EventRate rate;                                                         // if the object applies it
  std::optional<int> table_of_threads;                                    // if the object uses it
  format::Fd statistics;  // open while the kernel counts runs of programs
  std::string tracefs;
  LinkedWalk walk;  // `elf` with the unwinder, if wanted

  template <class T>
  Result<T> within(Result<T> done) const {
    return done ? std::move(done) : std::move(done.error()).in(path);
  }
  Result<Object> opened(const Log& log) const {
    return Object::open(walk.elf.empty() ? elf : walk.elf, object_name(path), log);
  }
  std::size_t index_of(const std::string& program) const {
    return static_cast<std::size_t>(std::ranges::find(object->programs(), program, &Program::name) -
                                    object->programs().begin());
  }
  Hook hook_of(std::size_t program) const {
    const Program& one = object->programs()[program];
    const auto section = parse_section(one.section);
    if (section && section->hook == Hook::Iterator && one.name == kAtBegin) return Hook::AtBegin;
    return section ? section->hook : Hook::Other;
  }
  bool has_loaded(Hook hook) const {
    return std::ranges::any_of(loaded, [&](std::size_t program) { return hook_of(program) == hook; });
  }
  Result<> run_all(Hook hook, RunUntil until = RunUntil::max()) const {
    for (const std::size_t program : loaded) {
      if (hook_of(program) != hook) continue;
      if (auto done = object->run(program, until); !done) return within(std::move(done));
    }
    return Done{};
  }
  Result<> read();
  // The globals that a user may set: all but tacho's.
  std::vector<Global> settable() const;
  bool has_filter(const std::string& name) {
    return object->constant(name).size() == kMostFilterSteps * sizeof(FilterStep);
  }
  void keep_filter(const std::string& name, std::span<const FilterStep> steps);
  Result<> reject_missing(ProgramChoice& choice);
  std::optional<Refusal> try_to_run(const ProgramChoice& choice);
  void report(const ProgramChoice& choice);
};

UserObject::UserObject(std::unique_ptr<State> state) : state_(std::move(state)) {}
UserObject::UserObject(UserObject&&) noexcept = default;
UserObject& UserObject::operator=(UserObject&&) noexcept = default;
UserObject::~UserObject() = default;

const std::string& UserObject::path() const { return state_->path; }
bool UserObject::is_shipped() const { return state_->is_shipped; }
const std::vector<Channel>& UserObject::channels() const { return state_->channels; }
std::vector<std::pair<std::string, std::string>> UserObject::unfinished_channels() const {
  std::vector<std::pair<std::string, std::string>> found;
  for (const std::string& map : state_->object->ring_buffers())
    if (map.starts_with(kUnfinished)) found.emplace_back(map, map.substr(kUnfinished.size()));
  return found;
}
std::vector<std::byte> UserObject::btf() const { return state_->btf; }
std::vector<format::AttachedProgram> UserObject::programs() const { return state_->programs; }
std::vector<std::uint32_t> UserObject::dropping_programs() const {
  std::vector<std::uint32_t> ids;
  for (const std::size_t index : state_->loaded) {
    const bool drops = state_->hook_of(index) == Hook::Tracepoint && state_->object->may_drop_events(index);
    const auto running = drops ? state_->object->running(index) : std::nullopt;
    if (running) ids.push_back(running->id);
  }
  return ids;
}
std::vector<std::string> UserObject::perf_event_programs() const {
  std::vector<std::string> names;
  for (const Program& program : state_->object->programs()) {
    const auto section = parse_section(program.section);
    if (section && section->hook == Hook::PerfEvent) names.push_back(program.name);
  }
  return names;
}

Result<UserObject> UserObject::open(const std::string& path, const ObjectOptions& options) {
  auto state = std::make_unique<State>();
  state->path = path;
  state->options = options;
  if (auto trusted = format::check_trusted_path(path); !trusted) return not_trusted(path, trusted.error());
  auto bytes =
      path.ends_with(".c") ? compile(path, options.log, options.stop) : format::read_file(path, kMaxObject);
  if (!bytes) return std::move(bytes.error());
  state->elf = std::move(*bytes);

  if (!path.ends_with(".c")) {
    if (const auto elf = parse_elf_object(state->elf); !elf) return Error{elf.error()}.in(path);
    if (auto sound = try_object(state->elf, object_name(path), options.stop); !sound)
      return std::move(sound.error()).in(path);
  }
  if (auto done = state->read(); !done) return std::move(done.error()).in(path);
  return UserObject(std::move(state));
}

Result<UserObject> UserObject::open_shipped(const std::string& name, format::Bytes elf,
                                            const ObjectOptions& options) {
  auto state = std::make_unique<State>();
  state->path = name;
  state->is_shipped = true;
  state->options = options;
  state->elf.assign(elf.begin(), elf.end());
  if (auto done = state->read(); !done) return std::move(done.error()).in(name);
  return UserObject(std::move(state));
}

// Reads the bytes in `elf`; nothing is loaded.
Result<> UserObject::State::read() {
  const auto parsed = parse_elf_object(elf);
  if (!parsed) return parsed.error();
  if (auto maps = refuse_legacy_maps(*parsed); !maps) return maps;
  if (const ElfSection* types = parsed->find(".BTF"); types != nullptr) {
    btf.assign(types->content.begin(), types->content.end());
    if (auto done = store(declared, read_declarations(types->content)); !done) return done;
  }
  auto fresh = opened(options.log);
  if (!fresh) return std::move(fresh.error());
  if (fresh->programs().empty())
    return Error{"has no BPF program; put SEC(\"tracepoint/...\") or similar before a function"};
  if (auto done = store(channels, channels_of(*fresh, declared)); !done) return done;
  object = std::move(*fresh);
  return Done{};
}

std::vector<ObjectOption> UserObject::constants() const {
  std::vector<ObjectOption> found;
  for (const Global& global : state_->declared.globals) {
    if (!global.is_constant() || global.help.empty() || global.layout.fields.empty()) continue;
    found.push_back({global.name, type_in_words(global.layout.fields.front()), global.help});
  }
  return found;
}

std::vector<Hooks> UserObject::hooks() const {
  std::vector<Hooks> found;
  std::vector<std::string> sets;  // of `found`
  for (const Candidate& each : candidates_of(*state_->object, state_->declared)) {
    const std::string set = each.group.empty() ? "" : each.group + "/" + each.set;
    const auto known = std::ranges::find(sets, set);
    if (set.empty() || known == sets.end()) {
      found.push_back({{each.section}, each.group, each.optional});
      sets.push_back(set);
    } else {
      found[static_cast<std::size_t>(known - sets.begin())].sections.push_back(each.section);
    }
  }
  return found;
}

std::optional<ConstantFault> UserObject::set_constant(std::string_view name,
                                                      std::optional<std::string_view> value) {
  const auto fault = [](std::string what) { return ConstantFault{.what = std::move(what)}; };
  const auto globals = state_->settable();
  const std::string variable(variable_of(name));
  if (variable.starts_with(kOwnPrefix))
    return fault("names that begin with " + std::string(kOwnPrefix) +
                 " are reserved: options set them (--filter, --sample-rate, --max-rate, -p)");
  const auto global = std::ranges::find(globals, variable, &Global::name);
  if (global == globals.end()) {
    if (state_->is_shipped) return no_such_option(globals);
    const std::string known = constants_in_words(globals);
    return fault(known.empty()
                     ? "the object has no `const volatile` global"
                     : "there is no `const volatile` global '" + variable + "'; there are: " + known);
  }
  if (!global->is_constant())
    return fault(variable + " is not declared `const volatile`, so it cannot be set");
  const auto initial = state_->object->constant(variable);
  if (initial.size() != global->layout.size || initial.empty())
    return fault(global->problem.empty() ? variable + " is not in section .rodata" : global->problem);
  auto set =
      std::ranges::find(state_->constants, variable, &std::pair<std::string, std::vector<std::byte>>::first);
  if (set == state_->constants.end())
    set = state_->constants.insert(set, {variable, {initial.begin(), initial.end()}});
  if (auto refused = put_constant(*global, name, value, set->second)) return refused;
  choose_members(state_->channels, *state_->object, state_->declared, variable, set->second);
  say(state_->options.log,
      state_->path + ": " + std::string(name) + " = " + std::string(value.value_or("true")));
  return std::nullopt;
}

bool UserObject::follow(int table_fd) {
  const bool asks = calls_wants(*state_->object);
  if (asks) state_->table_of_threads = table_fd;
  return asks;
}

bool UserObject::limit(const EventRate& rate) {
  const bool asks = !state_->object->constant("tacho_one_in").empty() &&
                    !state_->object->constant("tacho_most_a_second").empty();
  if (asks) state_->rate = rate;
  return asks;
}

std::vector<Global> UserObject::State::settable() const {
  std::vector<Global> all = declared.globals;
  std::erase_if(all, [](const Global& global) { return global.name.starts_with(kOwnPrefix); });
  return all;
}

void UserObject::State::keep_filter(const std::string& name, std::span<const FilterStep> steps) {
  std::vector<std::byte> bytes(kMostFilterSteps * sizeof(FilterStep));
  const auto given = std::as_bytes(steps.first(std::min(steps.size(), kMostFilterSteps)));
  std::ranges::copy(given, bytes.begin());
  if (has_filter(name)) constants.emplace_back(name, std::move(bytes));
}

bool UserObject::supports_filter() const { return state_->has_filter(kFilter); }
bool UserObject::supports_filter_of(const Channel& channel) const {
  return state_->has_filter(filter_of(channel));
}

void UserObject::filter(std::span<const FilterStep> steps) {
  state_->keep_filter(kFilter, steps);
  for (const Channel& channel : state_->channels)
    if (channel.kind == ChannelKind::PerfEventArray) filter(channel, steps);
}
void UserObject::filter(const Channel& channel, std::span<const FilterStep> steps) {
  state_->keep_filter(filter_of(channel), steps);
}

bool UserObject::wants_functions() const {
  return std::ranges::any_of(state_->object->programs(), is_for_functions);
}
std::vector<std::string> UserObject::wanted_functions() const {
  return names_of_functions(state_->object->programs());
}
void UserObject::follow_functions(FunctionTargets targets) { state_->functions = std::move(targets); }

std::vector<std::byte> UserObject::constant(std::string_view name) const {
  for (const auto& [variable, bytes] : state_->constants)
    if (variable == name) return bytes;
  const auto initial = state_->object->constant(name);
  return {initial.begin(), initial.end()};
}

WalkUse UserObject::walk_use() const { return walk_use_of(state_->elf); }

Result<> UserObject::walk_stacks(MapsByName maps) {
  return state_->within(link_walker(state_->walk, state_->elf, std::move(maps)));
}

void UserObject::want_events(bool wanted) { state_->object->set_variable("tacho_is_on", wanted ? 1 : 0); }

bool UserObject::asks_for_sleeping_stacks() const {
  return state_->object->has_map(kSleepingStacks) && state_->has_loaded(Hook::AtBegin);
}
Result<> UserObject::put_sleeping_stack(std::uint32_t thread, std::uint64_t switches,
                                        std::span<const std::uint64_t> frames) const {
  const auto facts = state_->object->map_facts(kSleepingStacks);
  if (!facts) return Done{};
  std::vector<std::uint64_t> value(facts->value_bytes / sizeof switches);  // frames end with 0
  if (value.empty()) return Done{};
  value.front() = switches;
  std::ranges::copy(frames.first(std::min(frames.size(), value.size() - 1)), value.begin() + 1);
  return state_->within(state_->object->put(kSleepingStacks, std::as_bytes(std::span(&thread, 1)),
                                            std::as_bytes(std::span(value))));
}
Result<> UserObject::begin() const { return state_->run_all(Hook::AtBegin); }
Result<> UserObject::end() const { return state_->run_all(Hook::AtEnd); }
Result<> UserObject::gather(RunUntil until) const { return state_->run_all(Hook::Iterator, until); }

bool UserObject::has_iterators() const { return state_->has_loaded(Hook::Iterator); }
bool UserObject::has_summaries() const {
  return std::ranges::any_of(state_->channels,
                             [](const Channel& channel) { return is_summary(channel.kind); });
}

std::uint64_t UserObject::over_rate() const { return state_->object->counter("tacho_over_rate").value_or(0); }

const Declarations& UserObject::declared() const { return state_->declared; }

std::vector<std::string> UserObject::unsupported_output() const {
  return unsupported_output_of(*state_->object, has_summaries());
}
std::size_t UserObject::unprobed_functions() const { return state_->object->unprobed_functions(); }

void UserObject::set_own(const std::string& name, format::Bytes bytes) {
  if (state_->object->constant(name).size() == bytes.size())
    state_->constants.emplace_back(name, std::vector<std::byte>(bytes.begin(), bytes.end()));
}

void UserObject::set_fields(std::string_view field, const std::vector<format::PayloadField>& instead) {
  for (Channel& channel : state_->channels)
    if (channel.schema) replace_tail(*channel.schema, field, instead);
}

// Rejects programs that need not be tried.
Result<> UserObject::State::reject_missing(ProgramChoice& choice) {
  for (std::size_t i = 0; i < choice.candidates().size(); ++i) {
    const auto section = parse_section(choice.candidates()[i].section);
    std::optional<std::string> why;
    if (!section) why = section.error().what;
    const bool names_tracepoint = !functions.tracepoint.empty();
    if (section && section->hook == Hook::Functions && names_tracepoint) why = "a tracepoint is given";
    if (section && section->target == kNamedTracepoint) {
      if (names_tracepoint) continue;  // it exists
      why = "functions are given";
    }
    if (section && !why && section->hook == Hook::Tracepoint && tracefs.empty()) {
      if (auto found = store(tracefs, find_tracefs(options.log)); !found) why = found.error().what;
    }
    if (section && !why) why = missing_hook(*section, tracefs);
    if (!why) continue;
    if (auto rejected = choice.reject(i, *why); !rejected) return rejected;
  }
  return Done{};
}

std::optional<Refusal> UserObject::State::try_to_run(const ProgramChoice& choice) {
  for (std::size_t i = 0; i < choice.candidates().size(); ++i)
    object->want(index_of(choice.candidates()[i].name), choice.wanted(i));
  object->set_number(kRecorderConstant, static_cast<std::uint32_t>(::getpid()));
  object->set_number("tacho_is_switched", 1);
  object->set_number("tacho_one_in", rate.one_in);
  object->set_number("tacho_most_a_second", rate.most_a_second);
  MapsByName shared = walk.maps;
  if (table_of_threads) {
    object->set_number(kFollowsConstant, 1);
    shared.emplace_back(kFollowedMap, *table_of_threads);
  }
  if (auto done = object->replace_maps(shared); !done)
    return Refusal{"", done.error().code, done.error().what};
  for (const auto& [name, bytes] : constants) std::ranges::copy(bytes, object->constant(name).begin());
  object->follow_functions(functions);
  object->set_number("tacho_in_kernel", functions.in_kernel ? 1 : 0);
  if (auto refused = object->load(options.log)) return refused;

  loaded.clear();
  for (std::size_t i = 0; i < choice.candidates().size(); ++i) {
    if (!choice.wanted(i)) continue;
    const std::size_t program = index_of(choice.candidates()[i].name);
    const auto section = parse_section(choice.candidates()[i].section);
    loaded.push_back(program);
    if (section->hook == Hook::PerfEvent) continue;  // attached later, to an open event
    if (auto refused = object->attach(program, *section)) return refused;
  }
  if (!object->constant("tacho_wants_run_times").empty())
    if (auto counting = store(statistics, count_runs()); !counting)
      return Refusal{"", counting.error().code, counting.error().what};
  return std::nullopt;
}

// Collects the state of each program, for the capture and -v.
void UserObject::State::report(const ProgramChoice& choice) {
  programs.clear();
  if (const std::size_t count = object->unprobed_functions(); count != 0)
    say(options.log, path + ": functions that cannot be probed: " + std::to_string(count));
  for (std::size_t i = 0; i < choice.candidates().size(); ++i) {
    const Candidate& candidate = choice.candidates()[i];
    const auto running = choice.wanted(i) ? object->running(index_of(candidate.name)) : std::nullopt;
    programs.push_back({candidate.name, candidate.section, path, running ? running->id : 0,
                        choice.wanted(i) ? "attached" : choice.why_not(i)});
    const std::string place =
        path + ": " + (candidate.group.empty() ? "" : "alternatives '" + candidate.group + "': ");
    say(options.log, place + described(candidate) + ": " + programs.back().state);
  }
}

Result<> UserObject::load_and_attach() {
  if (auto allowed = check_may_load(); !allowed) return state_->within(std::move(allowed));
  ProgramChoice choice(candidates_of(*state_->object, state_->declared));
  if (auto possible = state_->reject_missing(choice); !possible) return state_->within(std::move(possible));
  // Each round succeeds, fails, or rejects a program, so the loop ends.
  for (;;) {
    // A failed load ruins the object: every round opens it again.
    auto fresh = state_->opened({});
    if (!fresh) return std::move(fresh.error()).in(state_->path);
    state_->object = std::move(*fresh);
    const auto refused = state_->try_to_run(choice);
    if (!refused) {
      state_->report(choice);
      return Done{};
    }
    const auto culprit = std::ranges::find(choice.candidates(), refused->program, &Candidate::name);
    if (culprit == choice.candidates().end()) return Error{refused->reason, refused->code}.in(state_->path);
    const auto index = static_cast<std::size_t>(culprit - choice.candidates().begin());
    if (std::ranges::find(kCannot, refused->code) == kCannot.end())
      return Error{"program " + described(*culprit) + ": " + refused->reason, refused->code}.in(state_->path);
    if (auto rejected = choice.reject(index, refused->reason); !rejected)
      return Error{rejected.error().what, refused->code}.in(state_->path);
  }
}

Result<> UserObject::connect(std::string_view map, int cpu, int event_fd) {
  const auto channel = std::ranges::find(state_->channels, map, &Channel::map);
  if (channel == state_->channels.end()) {
    std::string known;
    for (const Channel& each : state_->channels) known += (known.empty() ? "" : ", ") + each.map;
    return use_error(state_->path + ": has no perf event array '" + std::string(map) + "'; it has " +
                     (known.empty() ? "none" : known));
  }
  return state_->within(state_->object->put_event(channel->map, cpu, event_fd));
}

Result<Ring> UserObject::open_ring(const std::string& map) const {
  return state_->within(state_->object->open_ring(map));
}

Result<MapReader> UserObject::open_map(const std::string& map) const {
  return state_->within(state_->object->open_map(map));
}

std::string UserObject::stack_map() const {
  const auto maps = state_->object->stack_maps();
  return maps.size() == 1 ? maps.front() : "";
}

std::uint64_t UserObject::lost_by_ring(const std::string& map) const {
  return state_->object->counter(std::string(kLostCounter) + map).value_or(0);
}

std::uint64_t UserObject::too_deep() const { return state_->object->counter("tacho_too_deep").value_or(0); }

std::uint64_t UserObject::unseen_ends() const {
  return state_->object->counter("tacho_unseen_ends").value_or(0);
}

std::vector<std::pair<std::string, std::uint64_t>> UserObject::too_deep_by_function() const {
  std::vector<std::pair<std::string, std::uint64_t>> counts;
  const auto map = open_map("too_deep");
  if (!map) return counts;
  const std::vector<std::string>& called = state_->functions.shown_names;
  (void)map->read([&](format::Bytes key, const std::vector<format::Bytes>& values) {
    format::Cursor number(key), count(values.empty() ? format::Bytes() : values.front());
    const std::uint32_t function = number.u32();
    const std::uint64_t lost = count.u64();
    if (function != 0 && function <= called.size() && !count.failed() && lost != 0)
      counts.emplace_back(called[function - 1], lost);
  });
  std::ranges::sort(counts, std::greater<>(), &std::pair<std::string, std::uint64_t>::second);
  return counts;
}

Result<format::Fd> UserObject::attach_to_perf_event(std::string_view program, int event_fd) {
  for (const std::size_t each : state_->loaded)
    if (state_->object->programs()[each].name == program && state_->hook_of(each) == Hook::PerfEvent)
      return state_->within(state_->object->attach_to_event(each, event_fd));
  return format::Fd();
}

std::uint64_t UserObject::recursion_misses() const {
  std::uint64_t misses = 0;
  for (const std::size_t program : state_->loaded)
    if (const auto running = state_->object->running(program)) misses += running->recursion_misses;
  return misses;
}

}  // namespace tacho::bpf
