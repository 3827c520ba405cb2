#include "record/host/pfm_events.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <utility>

#include "format/records/perf_abi.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

// The used part of libpfm4's interface, stable since 2010; its headers are not needed to build. The structs
// begin with their size, which identifies their version to libpfm4.
constexpr const char* kLibrary = "libpfm.so.4";
constexpr int kSuccess = 0;
// pfm_os_t: PFM_OS_PERF_EVENT_EXT, perf_event_attr with perf's own modifiers.
constexpr int kPerfEventExtended = 2;
constexpr int kKernelAndUser = 0x01 | 0x08;  // levels of privilege
constexpr int kMostPmus = 4096;
constexpr int kUnitMask = 1;    // a type of attribute
constexpr int kGenericPmu = 3;  // type of the PMU of the kernel's generic events, which perf's parser handles

struct EncodeArguments {
  perf_event_attr* attr = nullptr;
  char** full_name = nullptr;
  std::size_t size = sizeof(EncodeArguments);
  int index = 0, cpu = -1, flags = 0, unused = 0;
};
struct PmuInfo {
  const char* name = nullptr;
  const char* description = nullptr;
  std::size_t size = sizeof(PmuInfo);
  int pmu = 0, type = 0, events = 0, first_event = 0, max_encoding = 0, counters = 0, fixed_counters = 0;
  unsigned flags = 0;  // bit 0: this host has such a PMU
};
struct EventInfo {
  const char* name = nullptr;
  const char* description = nullptr;
  const char* equal_to = nullptr;
  std::size_t size = sizeof(EventInfo);
  std::uint64_t code = 0;
  int pmu = 0, type = 0, index = 0, attributes = 0, unused = 0;
  unsigned flags = 0;
};
struct AttributeInfo {
  const char* name = nullptr;
  const char* description = nullptr;
  const char* equal_to = nullptr;
  std::size_t size = sizeof(AttributeInfo);
  std::uint64_t code = 0;
  int type = 0, index = 0, control = 0;
  unsigned flags = 0;
  std::uint64_t otherwise = 0;
};
static_assert(sizeof(void*) != 8 || (sizeof(PmuInfo) == 56 && sizeof(EventInfo) == 64 &&
                                     sizeof(AttributeInfo) == 64 && sizeof(EncodeArguments) == 40));

// A static program cannot load it: glibc's dlopen() would need the glibc that the program was linked with.
#ifdef TACHO_STATIC
constexpr std::string_view kAbsence = "this static tacho-record cannot load";
void* load_library() { return nullptr; }
#else
constexpr std::string_view kAbsence = "is not installed (apt-get install libpfm4)";
void* load_library() { return ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL); }
#endif

std::string or_empty(const char* text) { return text == nullptr ? std::string() : std::string(text); }

}  // namespace

struct PfmLibrary::State {
  void* library = nullptr;
  int (*initialize)() = nullptr;
  const char* (*error_text)(int) = nullptr;
  int (*encode)(const char*, int, int, void*) = nullptr;
  int (*pmu_info)(int, void*) = nullptr;
  int (*event_info)(int, int, void*) = nullptr;
  int (*attribute_info)(int, int, int, void*) = nullptr;
  int (*next_event)(int) = nullptr;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (library != nullptr) ::dlclose(library);
  }
  template <class Function>
  bool find(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(::dlsym(library, name));
    return function != nullptr;
  }
};

PfmLibrary::PfmLibrary(std::unique_ptr<State> state) : state_(std::move(state)) {}
PfmLibrary::PfmLibrary(PfmLibrary&&) noexcept = default;
PfmLibrary::~PfmLibrary() = default;

Result<PfmLibrary> PfmLibrary::open() {
  auto state = std::make_unique<State>();
  state->library = load_library();
  if (state->library == nullptr)
    return Error{
        fmt::format("vendors' names of CPU events need libpfm4, which {}; "
                    "cpu/event=0xNN,umask=0xNN/ and rUUEE name them by number",
                    kAbsence)};
  const bool is_whole = state->find("pfm_initialize", state->initialize) &&
                        state->find("pfm_strerror", state->error_text) &&
                        state->find("pfm_get_os_event_encoding", state->encode) &&
                        state->find("pfm_get_pmu_info", state->pmu_info) &&
                        state->find("pfm_get_event_info", state->event_info) &&
                        state->find("pfm_get_event_attr_info", state->attribute_info) &&
                        state->find("pfm_get_event_next", state->next_event);
  if (!is_whole) return Error{std::string(kLibrary) + " lacks a function; install another version"};
  // Encode events of other CPUs as well (the kernel refuses them). The setting is an environment variable,
  // which a recorded command must not inherit.
  constexpr const char* kInactive = "LIBPFM_ENCODE_INACTIVE";
  const bool is_ours = std::getenv(kInactive) == nullptr;
  if (is_ours) ::setenv(kInactive, "1", 1);
  const int code = state->initialize();
  if (is_ours) ::unsetenv(kInactive);
  if (code != kSuccess) return Error{std::string(kLibrary) + ": " + or_empty(state->error_text(code))};
  return PfmLibrary(std::move(state));
}

Result<EventRequest> PfmLibrary::event(const std::string& text) const {
  // A newer library may have a larger struct.
  struct {
    perf_event_attr attr{};
    std::array<std::byte, 256> room{};
  } storage;
  perf_event_attr& attr = storage.attr;
  attr.size = sizeof(attr);
  EncodeArguments arguments;
  arguments.attr = &attr;
  const int code = state_->encode(text.c_str(), kKernelAndUser, kPerfEventExtended, &arguments);
  if (code != kSuccess) return use_error(fmt::format("'{}': {}", text, or_empty(state_->error_text(code))));
  if (arguments.cpu >= 0)
    return use_error(fmt::format("'{}': cpu= is for the whole recording: -C {}", text, arguments.cpu));
  EventRequest request;
  request.text = request.name = text;
  request.type = attr.type;
  request.config = attr.config;
  request.config1 = attr.config1;
  request.config2 = attr.config2;
  if (attr.exclude_user != 0) request.flags |= abi::kExcludeUser;
  if (attr.exclude_kernel != 0) request.flags |= abi::kExcludeKernel;
  if (attr.exclude_hv != 0) request.flags |= abi::kExcludeHv;
  if (attr.exclude_guest == 0) request.flags &= ~std::uint64_t{abi::kExcludeGuest};
  request.flags |= std::uint64_t{attr.precise_ip} << abi::kPreciseIpShift;
  if (attr.pinned != 0) request.flags |= abi::kPinned;
  if (attr.exclusive != 0) request.flags |= abi::kExclusive;
  if (attr.freq != 0) {
    request.frequency = attr.sample_freq;
  } else if (attr.sample_period != 0) {
    request.period = attr.sample_period;
  }
  return request;
}

void PfmLibrary::each_event(Which which, const Seen& seen) const {
  for (int pmu = 0; pmu < kMostPmus; ++pmu) {
    PmuInfo found;
    if (state_->pmu_info(pmu, &found) != kSuccess || found.name == nullptr) continue;
    const bool is_here = (found.flags & 1U) != 0;
    if (found.type == kGenericPmu || (which == Which::Here && !is_here)) continue;
    for (int index = found.first_event; index != -1; index = state_->next_event(index)) {
      EventInfo event;
      if (state_->event_info(index, kPerfEventExtended, &event) != kSuccess || event.name == nullptr) break;
      const std::string name = or_empty(found.name) + "::" + event.name;
      bool has_masks = false;
      for (int i = 0; i < event.attributes; ++i) {
        AttributeInfo attribute;
        if (state_->attribute_info(index, i, kPerfEventExtended, &attribute) != kSuccess) break;
        if (attribute.type != kUnitMask || attribute.name == nullptr) continue;
        has_masks = true;
        seen(name + ":" + attribute.name, or_empty(attribute.description));
      }
      if (!has_masks) seen(name, or_empty(event.description));
    }
  }
}

Result<std::vector<EventRequest>> parse_pfm_events(std::string_view text) {
  const auto library = PfmLibrary::open();
  if (!library) return Error{library.error()}.in("--pfm-events");
  std::vector<EventRequest> out;
  std::size_t groups = 0;
  bool is_in_group = false;
  while (!text.empty()) {
    if (text.starts_with('{')) {
      if (is_in_group) return use_error("--pfm-events: groups cannot be nested");
      is_in_group = true;
      ++groups;
      text.remove_prefix(1);
    }
    const std::size_t end = std::min(text.find_first_of(",}"), text.size());
    auto request = library->event(std::string(text.substr(0, end)));
    if (!request) return std::move(request.error()).in("--pfm-events");
    if (is_in_group) request->group = groups;
    out.push_back(std::move(*request));
    text.remove_prefix(end);
    if (text.starts_with('}')) {
      if (!is_in_group) return use_error("--pfm-events: there is a '}' without its '{'");
      is_in_group = false;
      text.remove_prefix(1);
    }
    if (text.starts_with(',')) text.remove_prefix(1);
  }
  if (is_in_group) return use_error("--pfm-events: the closing '}' is missing");
  if (out.empty()) return use_error("--pfm-events: the name of an event is missing");
  return out;
}

}  // namespace tacho::record
