#include "report/views/fleet/fleet_load.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "cli/message_text.h"
#include "format/container/file_head.h"
#include "sandbox/job.h"

namespace tacho::report {
namespace {

enum class Loaded : std::uint8_t { Now, Before, SetAside, Later };

void tell_of_file(const std::string& file, const std::string& what) {
  std::fprintf(stderr, "tacho fleet: %s: %s\n", printable(file).c_str(),
               cli::printable_message(what).c_str());
}

// The captures in a folder, by name.
std::vector<std::string> captures_in(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code failed;
  for (std::filesystem::directory_iterator file(folder, failed), end; !failed && file != end;
       file.increment(failed))
    if (file->is_regular_file(failed) && format::is_capture_file(file->path().string()))
      paths.push_back(file->path().string());
  std::ranges::sort(paths);
  return paths;
}

// Whether its recorder has finished the file. perf writes the size of the data last; tacho says so in the
// table before the data. A pipe's file does not say it, nor does that of a recorder that was killed: they are
// taken once they have not changed for a while.
bool is_finished(const std::string& path, const struct stat& status) {
  constexpr std::time_t kQuietPipe = 5, kQuietFile = 60;  // s
  const std::time_t quiet = std::time(nullptr) - status.st_mtim.tv_sec;
  const auto file = format::open_input(path);
  if (!file) return false;
  const auto start = format::read_at(file->get(), 0, format::FileHead::kSize);
  if (!start) return false;
  const auto head = format::parse_file_head(*start);
  if (!head) return false;
  if (head->is_pipe) return quiet >= kQuietPipe;
  std::optional<format::EarlyTable> early;
  constexpr std::uint64_t kTrailer = format::EarlyTable::kTrailerSize;
  if (head->data.offset >= kTrailer) {
    const auto trailer = format::read_at(file->get(), head->data.offset - kTrailer, kTrailer);
    if (trailer) early = format::parse_early_trailer(*trailer, head->order);
  }
  return (early ? early->is_closed : head->data.size != 0) || quiet >= kQuietFile;
}

class Loader {
 public:
  explicit Loader(const LoadRequest& request, const std::string& scratch)
      : request_(&request), scratch_(scratch) {}

  Loaded load(FleetStore& store, const std::string& path) {
    const auto id = id_of_capture(path);
    if (!id) return set_aside(path, id.error());
    const auto is_there = store.has_capture(id->hex());
    if (!is_there) return later(path, is_there.error());
    if (*is_there) return count(Loaded::Before);
    const TableFiles files{.folder = scratch_,
                           .capture_id = id->hex(),
                           .packing = TablePacking::Plain,
                           .naming = TableNaming::Scratch};
    ReadingOptions reading = request_->reading;
    reading.session.input = path;
    const auto made =
        make_tables(std::move(reading), {request_->labels, DamagedCaptures::Refuse}, *id, files);
    const Loaded done = made ? load_tables(store, path, files) : set_aside(path, made.error());
    for (std::size_t i = 0; i < kTables; ++i) {
      std::error_code ignored;
      std::filesystem::remove(files.path_of(static_cast<TableId>(i)), ignored);
    }
    return done;
  }

  cli::ExitStatus tell_counts() const {
    std::printf("%s loaded, %zu there before, %zu set aside\n",
                fmt::format("{} capture{}", now_, now_ == 1 ? "" : "s").c_str(), before_, aside_);
    if (std::fflush(stdout) != 0) return cli::kNoOutput;
    return aside_ == 0 ? cli::kWhole : cli::kIncomplete;
  }

 private:
  Loaded load_tables(FleetStore& store, const std::string& path, const TableFiles& files) {
    auto loaded = store.load(files);
    return loaded ? count(Loaded::Now) : later(path, loaded.error());
  }
  // The database failed, not the capture: with --follow it is tried again.
  Loaded later(const std::string& path, const Error& error) {
    if (request_->followed.empty()) return set_aside(path, error);
    tell_of_file(path, error.what + "; it is tried again");
    return Loaded::Later;
  }
  Loaded set_aside(const std::string& path, const Error& error) {
    tell_of_file(path, "set aside: " + error.what);
    return count(Loaded::SetAside);
  }
  Loaded count(Loaded loaded) {
    ++(loaded == Loaded::Now ? now_ : loaded == Loaded::Before ? before_ : aside_);
    return loaded;
  }

  const LoadRequest* request_;
  std::string scratch_;
  std::size_t now_ = 0, before_ = 0, aside_ = 0;
};

Result<std::vector<std::string>> all_inputs(const LoadRequest& request) {
  std::vector<std::string> paths;
  for (const std::string& input : request.inputs) {
    std::error_code failed;
    if (!std::filesystem::is_directory(input, failed) ||
        std::filesystem::exists(std::filesystem::path(input) / "data", failed)) {
      paths.push_back(input);  // a directory of perf record --threads is a capture
      continue;
    }
    const auto inside = captures_in(input);
    if (inside.empty()) return Error{input + ": has no captures"};
    paths.insert(paths.end(), inside.begin(), inside.end());
  }
  return paths;
}

// Loads each file of the folder once it is finished, until Ctrl-C. Between two files the database is closed,
// so that others can ask it.
Result<cli::ExitStatus> follow_folder(const LoadRequest& request, Loader& loader) {
  auto interruption = sandbox::Interruption::watch();
  if (!interruption) return std::move(interruption.error());
  using Change = std::pair<std::int64_t, std::int64_t>;  // of a file: seconds and ns
  std::map<std::string, Change> known;
  // What failed is tried again, and less often while it fails.
  constexpr std::chrono::milliseconds kPause{200}, kLongest{10'000};
  auto pause = kPause;
  std::string last_error;
  while (!interruption->is_asked_for()) {
    std::vector<std::pair<std::string, Change>> ready;
    for (const std::string& path : captures_in(request.followed)) {
      struct stat file {};
      if (::stat(path.c_str(), &file) != 0) continue;
      const Change change{file.st_mtim.tv_sec, file.st_mtim.tv_nsec};
      const auto before = known.find(path);
      if ((before == known.end() || before->second != change) && is_finished(path, file))
        ready.emplace_back(path, change);
    }
    if (!ready.empty()) {
      auto store = open_fleet(request.place, FleetUse::Load);
      if (!store && std::exchange(last_error, store.error().what) != last_error)
        tell_of_file(request.followed, store.error().what + "; it is tried again");
      for (const auto& [path, change] : ready) {
        if (!store || interruption->is_asked_for()) break;
        const bool is_later = loader.load(**store, path) == Loaded::Later;
        pause = is_later ? std::min(2 * pause, kLongest) : kPause;
        if (!is_later) known[path] = change;
      }
    }
    // In steps, so that Ctrl-C ends it at once.
    for (auto left = pause; left.count() > 0 && !interruption->is_asked_for(); left -= kPause)
      std::this_thread::sleep_for(kPause);
  }
  return loader.tell_counts();
}

}  // namespace

Result<cli::ExitStatus> load_fleet(const LoadRequest& request) {
  if (auto there = check_fleet(request.place); !there) return std::move(there.error());
  const auto scratch = ScratchFolder::create();
  if (!scratch) return scratch.error();
  Loader loader(request, scratch->path());
  if (!request.followed.empty()) return follow_folder(request, loader);
  const auto paths = all_inputs(request);
  if (!paths) return paths.error();
  auto store = open_fleet(request.place, FleetUse::Load);
  if (!store) return std::move(store.error());
  for (const std::string& path : *paths) loader.load(**store, path);
  return loader.tell_counts();
}

}  // namespace tacho::report
