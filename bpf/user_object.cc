#include "bpf/user_object.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "bpf/object/compile.h"
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
constexpr std::string_view kOwnPrefix = "tacho_";
constexpr const char* kFilter = "tacho_filter";

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
  ObjectOptions options;
  ObjectSettings settings;
  std::optional<Object> object;  // opened by libbpf, never loaded

  Result<> read();
  // The globals that a user may set: all but tacho's.
  std::vector<Global> settable() const;
  bool has_filter(const std::string& name) {
    return object->constant(name).size() == kMostFilterSteps * sizeof(FilterStep);
  }
  void keep_filter(const std::string& name, std::span<const FilterStep> steps);
};

UserObject::UserObject(std::unique_ptr<State> state) : state_(std::move(state)) {}
UserObject::UserObject(UserObject&&) noexcept = default;
UserObject& UserObject::operator=(UserObject&&) noexcept = default;
UserObject::~UserObject() = default;

const std::string& UserObject::path() const { return state_->settings.path; }
format::Bytes UserObject::elf() const { return state_->settings.elf; }
const std::vector<Channel>& UserObject::channels() const { return state_->settings.channels; }
std::vector<std::pair<std::string, std::string>> UserObject::unfinished_channels() const {
  std::vector<std::pair<std::string, std::string>> found;
  for (const std::string& map : state_->object->ring_buffers())
    if (map.starts_with(kUnfinished)) found.emplace_back(map, map.substr(kUnfinished.size()));
  return found;
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
  state->settings.path = path;
  state->options = options;
  if (auto trusted = format::check_trusted_path(path); !trusted) return not_trusted(path, trusted.error());
  auto bytes =
      path.ends_with(".c") ? compile(path, options.log, options.stop) : format::read_file(path, kMaxObject);
  if (!bytes) return std::move(bytes.error());
  state->settings.elf = std::move(*bytes);

  if (!path.ends_with(".c")) {
    if (const auto elf = parse_elf_object(state->settings.elf); !elf) return Error{elf.error()}.in(path);
    if (auto sound = try_object(state->settings.elf, object_name(path), options.stop); !sound)
      return std::move(sound.error()).in(path);
  }
  if (auto done = state->read(); !done) return std::move(done.error()).in(path);
  return UserObject(std::move(state));
}

Result<UserObject> UserObject::open_shipped(const std::string& name, format::Bytes elf,
                                            const ObjectOptions& options) {
  auto state = std::make_unique<State>();
  state->settings.path = name;
  state->settings.is_shipped = true;
  state->options = options;
  state->settings.elf.assign(elf.begin(), elf.end());
  if (auto done = state->read(); !done) return std::move(done.error()).in(name);
  return UserObject(std::move(state));
}

// Reads the bytes in `elf`; nothing is loaded.
Result<> UserObject::State::read() {
  const auto parsed = parse_elf_object(settings.elf);
  if (!parsed) return parsed.error();
  if (auto maps = refuse_legacy_maps(*parsed); !maps) return maps;
  if (const ElfSection* types = parsed->find_section(".BTF"); types != nullptr) {
    settings.btf.assign(types->content.begin(), types->content.end());
    if (auto done = store(settings.declared, read_declarations(types->content)); !done) return done;
  }
  auto fresh = Object::open(settings.elf, object_name(settings.path), options.log);
  if (!fresh) return std::move(fresh.error());
  if (fresh->programs().empty())
    return Error{"has no BPF program; put SEC(\"tracepoint/...\") or similar before a function"};
  if (auto done = store(settings.channels, channels_of(*fresh, settings.declared)); !done) return done;
  object = std::move(*fresh);
  return Done{};
}

std::vector<ObjectOption> UserObject::constants() const {
  std::vector<ObjectOption> found;
  for (const Global& global : state_->settings.declared.globals) {
    if (!global.is_constant() || global.help.empty() || global.layout.fields.empty()) continue;
    found.push_back({global.name, type_in_words(global.layout.fields.front()), global.help});
  }
  return found;
}

std::vector<Hooks> UserObject::hooks() const {
  std::vector<Hooks> found;
  std::vector<std::string> sets;  // of `found`
  for (const Candidate& each : candidates_of(*state_->object, state_->settings.declared)) {
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
    if (state_->settings.is_shipped) return no_such_option(globals);
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
  auto set = std::ranges::find(state_->settings.constants, variable,
                               &std::pair<std::string, std::vector<std::byte>>::first);
  if (set == state_->settings.constants.end())
    set = state_->settings.constants.insert(set, {variable, {initial.begin(), initial.end()}});
  if (auto refused = put_constant(*global, name, value, set->second)) return refused;
  choose_members(state_->settings.channels, *state_->object, state_->settings.declared, variable,
                 set->second);
  say(state_->options.log,
      state_->settings.path + ": " + std::string(name) + " = " + std::string(value.value_or("true")));
  return std::nullopt;
}

bool UserObject::set_threads(int table_fd) {
  const bool asks = calls_wants(*state_->object);
  if (asks) state_->settings.table_of_threads = table_fd;
  return asks;
}

bool UserObject::set_rate(const EventRate& rate) {
  const bool asks = !state_->object->constant("tacho_one_in").empty() &&
                    !state_->object->constant("tacho_most_a_second").empty();
  if (asks) state_->settings.rate = rate;
  return asks;
}

std::vector<Global> UserObject::State::settable() const {
  std::vector<Global> all = settings.declared.globals;
  std::erase_if(all, [](const Global& global) { return global.name.starts_with(kOwnPrefix); });
  return all;
}

void UserObject::State::keep_filter(const std::string& name, std::span<const FilterStep> steps) {
  std::vector<std::byte> bytes(kMostFilterSteps * sizeof(FilterStep));
  const auto given = std::as_bytes(steps.first(std::min(steps.size(), kMostFilterSteps)));
  std::ranges::copy(given, bytes.begin());
  if (has_filter(name)) settings.constants.emplace_back(name, std::move(bytes));
}

bool UserObject::supports_filter() const { return state_->has_filter(kFilter); }
bool UserObject::supports_filter_of(const Channel& channel) const {
  return state_->has_filter(filter_of(channel));
}

void UserObject::set_filter(std::span<const FilterStep> steps) {
  state_->keep_filter(kFilter, steps);
  for (const Channel& channel : state_->settings.channels)
    if (channel.kind == ChannelKind::PerfEventArray) set_filter(channel, steps);
}
void UserObject::set_filter(const Channel& channel, std::span<const FilterStep> steps) {
  state_->keep_filter(filter_of(channel), steps);
}

bool UserObject::wants_functions() const {
  return std::ranges::any_of(state_->object->programs(), is_for_functions);
}
std::vector<std::string> UserObject::wanted_functions() const {
  return names_of_functions(state_->object->programs());
}
void UserObject::set_functions(FunctionTargets targets) { state_->settings.functions = std::move(targets); }

std::vector<std::byte> UserObject::constant(std::string_view name) const {
  for (const auto& [variable, bytes] : state_->settings.constants)
    if (variable == name) return bytes;
  const auto initial = state_->object->constant(name);
  return {initial.begin(), initial.end()};
}

WalkUse UserObject::walk_use() const { return walk_use_of(state_->settings.elf); }

Result<LoadedObject> UserObject::load(MapsByName walker_maps) const {
  LinkedWalk walk;
  if (!walker_maps.empty())
    if (auto done = link_walker(walk, state_->settings.elf, std::move(walker_maps)); !done)
      return std::move(done.error()).in(path());
  return LoadedObject::load(state_->settings, walk, state_->options.log);
}

const Declarations& UserObject::declared() const { return state_->settings.declared; }

std::vector<std::string> UserObject::unsupported_output() const {
  const bool has_summaries = std::ranges::any_of(
      state_->settings.channels, [](const Channel& channel) { return is_summary(channel.kind); });
  return unsupported_output_of(*state_->object, has_summaries);
}

void UserObject::set_own(const std::string& name, format::Bytes bytes) {
  if (state_->object->constant(name).size() == bytes.size())
    state_->settings.constants.emplace_back(name, std::vector<std::byte>(bytes.begin(), bytes.end()));
}

void UserObject::set_fields(std::string_view field, const std::vector<format::PayloadField>& instead) {
  for (Channel& channel : state_->settings.channels)
    if (channel.schema) replace_tail(*channel.schema, field, instead);
}

}  // namespace tacho::bpf
