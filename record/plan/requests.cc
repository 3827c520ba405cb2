#include "record/plan/requests.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "record/events/recorders.h"
#include "record/events/tracepoint.h"
#include "record/host/pfm_events.h"
#include "record/parse_text.h"

namespace tacho::record {

namespace {

namespace abi = format::abi;

// "inst_retired:any_p": an event of the CPU by its vendor's name. If there is none, returns the tracepoint's
// error with the reason.
Result<EventRequest> as_counter(const EventRequest& request, Error no_tracepoint) {
  const std::string name = request.tracepoint()->system + ":" + request.tracepoint()->name;
  no_tracepoint = std::move(no_tracepoint).in("-e " + request.text);
  if (is_glob(name)) return no_tracepoint;
  const auto library = PfmLibrary::open();
  const auto found = library ? library->event(name) : Result<EventRequest>(Error{library.error()});
  if (!found) {
    no_tracepoint.what += "; nor an event of the processor: " + found.error().what;
    return no_tracepoint;
  }
  EventRequest counter = request;
  counter.what = CounterRequest{};
  counter.type = found->type;
  counter.config = found->config;
  counter.config1 = found->config1;
  counter.config2 = found->config2;
  return counter;
}

std::vector<std::string> names_of_fields(std::string_view format) {
  std::vector<std::string> names;
  for (const std::string& field : fields_in(format)) names.push_back(name_of_field(field));
  return names;
}

// "prev_comm, prev_pid"; empty if the description cannot be read.
std::string fields_in_words(const Tracefs& tracefs, const Tracepoint& tracepoint) {
  const auto described = tracefs.formats_of({&tracepoint, 1});
  if (!described || described->formats.empty()) return {};
  return fmt::format("{}", fmt::join(names_of_fields(described->formats.front().text), ", "));
}

// Offsets of the fields by which a program at the tracepoint counts.
Result<> place_fields(const Tracefs& tracefs, const Tracepoint& tracepoint, EventRequest& request) {
  const auto described = tracefs.formats_of({&tracepoint, 1});
  if (!described) return Error{described.error()};
  for (const ArgumentRequest& asked : request.arguments) {
    auto argument = field_argument(described->formats.front().text, asked.source);
    if (!argument) return std::move(argument.error());
    request.placed_arguments.push_back(std::move(*argument));
  }
  if (request.sum->has_value && bpf::is_text(request.placed_arguments[request.sum->keys]))
    return use_error("a text has no distribution; key= counts each of its values");
  return Done{};
}

// Requests with globs replaced by the matching tracepoints; `found` gets every tracepoint once.
Result<std::vector<EventRequest>> find_tracepoints(const std::vector<EventRequest>& requests,
                                                   std::vector<Tracepoint>& found,
                                                   const Result<Tracefs>& tracefs) {
  std::vector<EventRequest> out;
  for (const EventRequest& request : requests) {
    const TracepointRequest* const written = request.tracepoint();
    if (written == nullptr) {
      out.push_back(request);
      continue;
    }
    auto tracepoints = tracefs ? tracefs->matching(written->system, written->name)
                               : Result<std::vector<Tracepoint>>(Error{tracefs.error()});
    if (!tracepoints) {
      auto counter = as_counter(request, std::move(tracepoints.error()));
      if (!counter) return std::move(counter.error());
      out.push_back(std::move(*counter));
      continue;
    }
    const std::string as_written = written->system + ":" + written->name;
    for (Tracepoint& tracepoint : *tracepoints) {
      EventRequest one = request;
      one.config = tracepoint.id;
      if (!request.filter.empty()) one.filter_fields = fields_in_words(*tracefs, tracepoint);
      if (request.sum) {
        if (auto done = place_fields(*tracefs, tracepoint, one); !done)
          return std::move(done.error())
              .in("-e " + request.text + ": " + tracepoint.system + ":" + tracepoint.name);
      }
      if (request.name.starts_with(as_written)) {  // else the user named it
        one.name = tracepoint.system + ":" + tracepoint.name + request.name.substr(as_written.size());
      }
      out.push_back(std::move(one));
      const bool known = std::ranges::find(found, tracepoint.id, &Tracepoint::id) != found.end();
      if (!known) found.push_back(std::move(tracepoint));
    }
  }
  return out;
}

// An error if a tracepoint lacks the requested fields.
Result<> check_fields(const std::vector<EventRequest>& requests, const Tracefs& tracefs) {
  for (const EventRequest& request : requests) {
    const TracepointRequest* const written = request.tracepoint();
    if (written == nullptr || written->needs.empty()) continue;
    const auto tracepoints = tracefs.matching(written->system, written->name);
    if (!tracepoints) continue;  // an event of the CPU
    const auto described = tracefs.formats_of(*tracepoints);
    if (!described) return Error{described.error()};
    for (const NeededField& needed : written->needs) {
      std::optional<Error> unknown;
      for (const auto& one : described->formats) {
        unknown = unknown_field(needed, written->system + ":" + written->name, names_of_fields(one.text));
        if (!unknown) break;
      }
      if (unknown) return std::move(*unknown);
    }
  }
  return Done{};
}

// "cpu-clock:u", "cycles:ppu", "sched:sched_switch:u", "cpu/event=1/u".
std::string with_user_modifier(const EventRequest& request) {
  return request.name + (request.name_has_modifiers || request.name.ends_with('/') ? "u" : ":u");
}

}  // namespace

Result<std::vector<EventRequest>> resolve_tracepoints(const std::vector<EventRequest>& requests,
                                                      format::TracingData& tracing) {
  if (std::ranges::none_of(requests, [](const EventRequest& each) { return each.tracepoint() != nullptr; }))
    return requests;
  const auto tracefs = Tracefs::find();
  std::vector<Tracepoint> found;
  if (tracefs) {
    if (auto known = check_fields(requests, *tracefs); !known) return std::move(known.error());
  }
  auto out = find_tracepoints(requests, found, tracefs);
  if (!out || found.empty()) return out;
  auto described = tracefs->formats_of(found);
  if (!described) return std::move(described.error());
  tracing = std::move(*described);
  return out;
}

bool may_exclude_kernel(const RecordOptions& options) {
  return options.target.watch != Watch::System && !options.sampling.all_user && !options.sampling.all_kernel;
}

std::size_t exclude_kernel(std::vector<EventRequest>& requests) {
  std::size_t changed = 0;
  for (EventRequest& request : requests) {
    const bool is_of_kernel = request.is_counter() || request.tracepoint() != nullptr;
    if (!is_of_kernel || (request.flags & (abi::kExcludeUser | abi::kExcludeKernel)) != 0) continue;
    request.flags |= abi::kExcludeKernel | abi::kExcludeHv;
    request.name = with_user_modifier(request);
    ++changed;
  }
  return changed;
}

}  // namespace tacho::record
