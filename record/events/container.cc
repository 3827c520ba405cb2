#include "record/events/container.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "record/events/cgroup.h"

namespace tacho::record {
namespace {

// So many are named in a message.
constexpr std::size_t kMostNamed = 8;
// Ids made by runtimes are 64 letters; a shorter text of hexadecimal letters may be anything.
constexpr std::size_t kWholeId = 64;

// Runtimes whose cgroups are "RUNTIME-ID.scope". Monitors of containers, which run beside them, are named
// "RUNTIME-conmon-ID.scope".
constexpr std::array<std::string_view, 8> kRuntimes{"docker",     "cri-containerd", "crio",     "libpod",
                                                    "containerd", "nerdctl",        "buildkit", "podman"};

bool is_hexadecimal(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool take_begin(std::string_view& text, std::string_view begin) {
  if (!text.starts_with(begin)) return false;
  text.remove_prefix(begin.size());
  return true;
}

bool take_end(std::string_view& text, std::string_view end) {
  if (!text.ends_with(end)) return false;
  text.remove_suffix(end.size());
  return true;
}

int digit_of(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

// systemd writes letters that mean something in the name of a unit as \x2d.
std::string without_escapes(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool is_escape = text.substr(at, 2) == "\\x" && at + 3 < text.size() &&
                           digit_of(text[at + 2]) >= 0 && digit_of(text[at + 3]) >= 0;
    out += is_escape ? static_cast<char>(digit_of(text[at + 2]) * 16 + digit_of(text[at + 3])) : text[at];
    if (is_escape) at += 3;
  }
  return out;
}

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }
std::string_view parent_of(std::string_view path) {
  return path.substr(0, std::min(path.rfind('/'), path.size()));
}

struct Found {
  std::string cgroup, id;
};

using NameOf = std::string (*)(std::string_view path);

// An LXC container of old is a folder below one called lxc.
std::string container_at(std::string_view path) {
  const std::string_view above = last_part(parent_of(path));
  if (above == "lxc" || above == "lxc.payload") return std::string(last_part(path));
  return container_of(last_part(path));
}
std::string pod_at(std::string_view path) { return pod_of(last_part(path)); }

std::string listed(const std::vector<Found>& found) {
  std::string text;
  for (std::size_t i = 0; i < std::min(found.size(), kMostNamed); ++i)
    text += "\n  " + found[i].id + "  (" + found[i].cgroup + ")";
  if (found.size() > kMostNamed) text += "\n  ... (" + std::to_string(found.size()) + " in all)";
  return text;
}

Result<std::string> find(const std::string& mount, const std::string& name, NameOf name_of,
                         std::string what) {
  const std::string option = "--" + what + ": ";
  if (name.empty()) return use_error(option + "the name is empty");
  std::vector<Found> all, alike;
  for (const std::string& cgroup : all_cgroups(mount)) {
    std::string id = name_of(cgroup);
    if (id.empty()) continue;
    if (id == name) return cgroup;
    if (id.starts_with(name)) alike.push_back({cgroup, id});
    all.push_back({cgroup, std::move(id)});
  }
  if (alike.size() == 1) return alike.front().cgroup;
  if (alike.size() > 1)
    return use_error(option + "'" + name + "' is the begin of " + std::to_string(alike.size()) +
                     " here; say more:" + listed(alike));
  if (all.empty()) {
    return use_error(option + "there is no " + what + " below " + mount + "; what cgroups there are: ls " +
                     mount + ", and -G takes one by its path");
  }
  return use_error(
      option + "there is no " + what + " '" + name +
      "'; names that only its runtime knows are not found (docker inspect -f '{{.Id}}' NAME says the id). "
      "Here run:" +
      listed(all));
}

}  // namespace

std::string container_of(std::string_view cgroup) {
  if (cgroup.size() == kWholeId && is_hexadecimal(cgroup)) return std::string(cgroup);
  if (std::string_view name = cgroup; take_begin(name, "lxc.payload.")) return std::string(name);
  if (std::string_view name = cgroup; take_begin(name, "systemd-nspawn@") && take_end(name, ".service"))
    return without_escapes(name);
  std::string_view rest = cgroup;
  if (!take_end(rest, ".scope")) return {};
  if (std::string_view name = rest; take_begin(name, "machine-")) return without_escapes(name);
  for (const std::string_view runtime : kRuntimes) {
    std::string_view id = rest;
    if (take_begin(id, runtime) && take_begin(id, "-") && is_hexadecimal(id)) return std::string(id);
  }
  return {};
}

std::string pod_of(std::string_view cgroup) {
  std::string_view name = cgroup;
  if (take_end(name, ".slice")) {
    if (std::string_view id = name; take_begin(id, "machine-libpod_pod_")) return std::string(id);
    const auto pod = name.rfind("-pod");
    if (!name.starts_with("kubepods") || pod == std::string_view::npos) return {};
    name.remove_prefix(pod + 1);
  }
  if (!take_begin(name, "pod") || name.empty()) return {};
  std::string id(name);
  std::ranges::replace(id, '_', '-');  // systemd would take a dash for a level
  return is_hexadecimal(id.substr(0, 1)) ? id : std::string();
}

Result<std::string> cgroup_of_container(const std::string& mount, const std::string& name) {
  return find(mount, name, container_at, "container");
}

Result<std::string> cgroup_of_pod(const std::string& mount, const std::string& name) {
  return find(mount, name, pod_at, "pod");
}

}  // namespace tacho::record
