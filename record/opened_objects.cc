#include "record/opened_objects.h"

#include <string>
#include <string_view>
#include <utility>

#include "bpf/user_object.h"
#include "record/followed_functions.h"
#include "record/followed_objects.h"
#include "record/object_options.h"
#include "record/recorder_listing.h"

namespace tacho::record {
namespace {

Result<bpf::UserObject> open_object(const EventRequest& request, const bpf::ObjectOptions& options) {
  if (request.recorder.empty()) return bpf::UserObject::open(request.path, options);
  const auto bytes = object_of(request);
  if (!bytes) return bytes.error();
  return bpf::UserObject::open_shipped(request.recorder, *bytes, options);
}

}  // namespace

Result<> open_objects(const std::vector<EventRequest>& requests, const Messages& messages, Prepared& out) {
  bpf::ObjectOptions options;
  options.stop = out.stop;
  options.log = [messages](std::string_view line) { messages.detail(line); };
  for (const EventRequest& written : requests) {
    if (written.kind != EventKind::BpfObject) continue;
    auto object = open_object(written, options);
    if (!object) return std::move(object.error());
    const bool follows = follows_objects(*object);
    const EventRequest& request = follows ? with_members_joined(written, *object) : written;
    if (auto done = set_constants(*object, request); !done) return std::move(done.error());
    if (!object->constant("tacho_preloads").empty()) {
      if (!out.environment.empty())
        return use_error("-e " + request.text +
                         ": a second one would have every call twice; give -e fastcalls once");
      auto variables = preloaded_calls(request, *object, out.stop, out.attachments, messages);
      if (!variables) return std::move(variables.error());
      out.environment = std::move(*variables);
    }
    if (object->wants_functions()) {
      auto functions = follows ? followed_objects(request, *object, messages)
                               : followed_functions(request, *object, messages);
      if (!functions) return std::move(functions.error());
      if (object->wanted_functions().empty()) {
        auto done = add_function_types(*object, *functions, out.stop, out.attachments, messages);
        if (!done) return done;
      }
      if (const std::size_t cheap = choose_cheap_places(*functions); cheap != 0)
        messages.detail(std::to_string(cheap) + " probes stand behind the endbr64 of their functions");
      object->follow_functions(std::move(*functions));
    }
    out.objects.push_back(std::move(*object));
  }
  return Done{};
}

}  // namespace tacho::record
