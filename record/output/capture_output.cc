#include "record/output/capture_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/bpf.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <iterator>
#include <string_view>
#include <utility>

#include "format/byte_writer.h"
#include "format/content_classes.h"
#include "format/cursor.h"
#include "format/perf_abi.h"
#include "format/pipe_writer.h"
#include "record/channel_rings.h"
#include "record/host/attachments.h"

namespace tacho::record {

namespace {

class FileOutput final : public CaptureOutput {
 public:
  explicit FileOutput(format::CaptureWriter writer) : writer_(std::move(writer)) {}
  Result<> write_plain(format::Bytes records) override { return writer_.write_plain(records); }
  Result<> write_records(format::Bytes records) override { return writer_.write_records(records); }
  Result<> write_packed(format::Bytes packed, std::uint64_t inflated, const RecordCounts&) override {
    return writer_.write_packed(packed, inflated);
  }
  Result<bool> write_within(format::Bytes records, std::uint64_t most_bytes) override {
    return writer_.write_records_within(records, most_bytes);
  }
  std::uint64_t closing_room() const override { return writer_.closing_room(); }
  Result<> finish_round() override { return writer_.finish_round(); }
  Result<> close(const format::Features& late) override { return writer_.close(late); }
  Result<> close_after_failure() override { return writer_.close_after_failure(); }
  std::uint64_t bytes() const override { return writer_.file_bytes(); }

 private:
  format::CaptureWriter writer_;
};

class PipeOutput final : public CaptureOutput {
 public:
  explicit PipeOutput(format::PipeWriter writer) : writer_(std::move(writer)) {}
  Result<> write_plain(format::Bytes records) override { return writer_.write_plain(records); }
  Result<> write_records(format::Bytes records) override { return writer_.write_records(records); }
  Result<bool> write_within(format::Bytes records, std::uint64_t most_bytes) override {
    return writer_.write_records_within(records, most_bytes);
  }
  std::uint64_t closing_room() const override { return writer_.closing_room(); }
  Result<> finish_round() override { return writer_.finish_round(); }
  Result<> close(const format::Features& late) override {
    for (std::uint32_t feature = 0; feature < format::abi::kFeatureCount; ++feature) {
      format::ByteWriter section;
      if (!format::write_feature(feature, late, section)) continue;
      if (auto done = writer_.write_section(feature, section.view()); !done) return done;
    }
    return Done{};
  }
  // What went through a pipe cannot be taken back.
  Result<> close_after_failure() override { return Done{}; }
  std::uint64_t bytes() const override { return writer_.bytes(); }

 private:
  format::PipeWriter writer_;
};

}  // namespace

Result<std::unique_ptr<CaptureOutput>> open_file_output(const std::string& path,
                                                        const format::EventSet& events,
                                                        format::Features features,
                                                        const format::WriteOptions& options) {
  features.environment.content = format::content_by_head(events, features);
  auto writer = format::CaptureWriter::create(path, events, std::move(features), options);
  if (!writer) return std::move(writer.error());
  return std::unique_ptr<CaptureOutput>(std::make_unique<FileOutput>(std::move(*writer)));
}

Result<std::unique_ptr<CaptureOutput>> open_pipe_output(format::Fd out, const format::EventSet& events,
                                                        format::Features features,
                                                        const format::WriteOptions& options) {
  features.environment.content = format::content_by_head(events, features);
  auto writer = format::PipeWriter::create(std::move(out), events, std::move(features), options);
  if (!writer) return std::move(writer.error());
  return std::unique_ptr<CaptureOutput>(std::make_unique<PipeOutput>(std::move(*writer)));
}

namespace {

// So many files may have been finished within a hundredth of a second.
constexpr int kMostOfOneTime = 1000;

// Never over a file that is there; file systems that cannot promise that are asked first.
int rename_new(const std::string& from, const std::string& to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  if (access(to.c_str(), F_OK) == 0) return EEXIST;
  return rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

}  // namespace

std::string time_for_name() {
  timespec now{};
  tm parts{};
  std::array<char, 32> text{};
  clock_gettime(CLOCK_REALTIME, &now);
  localtime_r(&now.tv_sec, &parts);
  const std::size_t size = strftime(text.data(), text.size(), "%Y%m%d%H%M%S", &parts);
  return fmt::format("{}{:02}", std::string_view(text.data(), size), now.tv_nsec / 10'000'000);
}

Result<> FinishedFiles::add() {
  struct stat info {};
  if (lstat(path_.c_str(), &info) != 0) return output_error(system_error(path_, errno).what, errno);
  const std::string wanted = path_ + "." + time_for_name();
  for (int number = 1; number <= kMostOfOneTime; ++number) {
    const std::string name = number == 1 ? wanted : fmt::format("{}-{}", wanted, number);
    const int code = rename_new(path_, name);
    if (code == EEXIST) continue;
    if (code != 0) return output_error(system_error(name, code).what, code);
    ++count_;
    files_.push_back({name, info.st_dev, info.st_ino});
    const std::lock_guard lock(mutex_);
    news_.push_back(name);
    return Done{};
  }
  return output_error(wanted + ": there are too many files of that time already");
}

// Only what we made: whoever put another file in its place keeps it.
void FinishedFiles::make_room() {
  while (most_ != 0 && files_.size() > most_ - 1) {
    const File oldest = std::move(files_.front());
    files_.pop_front();
    struct stat info {};
    const bool is_ours =
        lstat(oldest.name.c_str(), &info) == 0 && info.st_dev == oldest.device && info.st_ino == oldest.inode;
    if (is_ours) unlink(oldest.name.c_str());
  }
}

std::string FinishedFiles::place() const {
  if (count_ == 1 && !files_.empty()) return files_.back().name;
  const std::size_t removed = count_ - files_.size();
  return fmt::format("{} files {}.*{}", count_, path_,
                     removed == 0 ? "" : fmt::format(", the first {} removed again", removed));
}

std::vector<std::string> FinishedFiles::take_news() {
  const std::lock_guard lock(mutex_);
  return std::exchange(news_, {});
}

namespace {

// The schemas of the connected channels, under the names that their events have in this capture.
std::vector<format::PayloadSchema> schemas_of(const Plan& plan, std::span<const bpf::UserObject> objects) {
  std::vector<format::PayloadSchema> schemas;
  for (const Connection& connection : plan.connections) {
    const auto& channels = objects[connection.object].channels();
    const auto channel = std::ranges::find(channels, connection.map, &bpf::Channel::map);
    if (channel == channels.end() || !channel->schema) continue;
    format::PayloadSchema schema = *channel->schema;
    if (connection.kind != bpf::ChannelKind::PerfEventArray && !bpf::is_summary(connection.kind))
      schema = RingLayout::schema_of_rest(std::move(schema));
    schema.event = plan.events[connection.event].name;
    const auto same = [&](const format::PayloadSchema& other) { return other.event == schema.event; };
    if (std::ranges::none_of(schemas, same)) schemas.push_back(std::move(schema));
  }
  for (const ArgumentProbe& probe : plan.argument_probes) {
    const std::string& name = plan.events[probe.event].name;
    if (std::ranges::find(schemas, name, &format::PayloadSchema::event) == schemas.end())
      schemas.push_back(probe.sum ? bpf::layout_of(name, probe.arguments, *probe.sum).schema()
                                  : bpf::schema_of(name, probe.arguments));
  }
  return schemas;
}

// The kernel's number of a loaded program's BTF, out of its bpf_prog_info; 0 when it does not say.
std::uint32_t btf_id_of(const bpf::LoadedProgram& program) {
  format::Cursor info(program.info.info);
  info.skip(offsetof(bpf_prog_info, btf_id));
  return info.u32();
}

void add_objects(std::span<const bpf::UserObject> objects, const std::vector<bpf::LoadedProgram>& loaded,
                 format::Environment& environment) {
  for (const bpf::UserObject& object : objects) {
    std::uint32_t btf_id = 0;
    for (const format::AttachedProgram& program : object.programs()) {
      const auto same = std::ranges::find(loaded, program.id, &bpf::LoadedProgram::id);
      if (btf_id == 0 && program.id != 0 && same != loaded.end()) btf_id = btf_id_of(*same);
    }
    if (auto btf = object.btf(); !btf.empty()) environment.btf.push_back({btf_id, std::move(btf)});
  }
}

// Names of kernel functions and BPF programs matter only when some event looks there.
bool looks_into_kernel(const Plan& plan) {
  return std::ranges::any_of(plan.events, [](const PlannedEvent& event) {
    return !event.is_sideband && !event.attr.has(format::abi::kExcludeKernel);
  });
}

// Which events stand together: readers show their counts side by side.
std::vector<format::EventGroup> groups_of(const Plan& plan) {
  std::vector<format::EventGroup> groups;
  for (std::size_t event = 0; event < plan.events.size(); ++event) {
    const auto leader = plan.events[event].leader;
    if (!leader) continue;
    if (*leader == event) {
      const std::string& name = plan.events[event].group_name;
      groups.push_back({name.empty() ? "{anon_group}" : name, static_cast<std::uint32_t>(event), 0});
    }
    ++groups.back().members;
  }
  std::erase_if(groups, [](const format::EventGroup& group) { return group.members < 2; });
  return groups;
}

// The clock that times are taken from, when it is not the kernel's perf clock: how fine it is, and what the
// time of the day is by it.
void describe_clock(const format::EventAttr& attr, format::Environment& environment) {
  timespec resolution{}, wall{}, now{};
  if (!attr.has(format::abi::kUseClockid) || clock_getres(attr.clockid, &resolution) != 0) return;
  const auto nanoseconds = [](const timespec& time) {
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
  };
  environment.clock_resolution_ns = nanoseconds(resolution);
  if (clock_gettime(CLOCK_REALTIME, &wall) != 0 || clock_gettime(attr.clockid, &now) != 0) return;
  environment.clock_data = {static_cast<std::uint32_t>(attr.clockid), nanoseconds(wall), nanoseconds(now)};
}

}  // namespace

Result<CaptureHead> describe_capture(const Plan& plan, KernelSymbols kernel,
                                     std::span<const bpf::UserObject> objects, format::TracingData tracing,
                                     const std::vector<std::string>& command_line) {
  CaptureHead head;
  format::Features& features = head.features;
  features.environment = describe_host(command_line);
  features.environment.groups = groups_of(plan);
  describe_clock(plan.events.front().attr, features.environment);
  features.environment.has_branch_stack = std::ranges::any_of(
      plan.events, [](const auto& event) { return event.attr.samples(format::abi::kSampleBranchStack); });
  features.tracing = std::move(tracing);
  features.schemas = schemas_of(plan, objects);

  head.kernel_text = std::move(kernel.text);
  head.images = std::move(kernel.images);
  if (!kernel.lack.empty()) head.notes.push_back(std::move(kernel.lack));
  auto attached = gather_attachments(std::move(kernel.list));
  if (!attached) return std::move(attached.error());
  features.attachments = std::move(*attached);

  head.modules = loaded_modules();
  features.environment.build_ids = kernel_build_ids(head.modules);
  if (!looks_into_kernel(plan)) head.notes.clear();
  return head;
}

void add_programs(const Plan& plan, std::span<const bpf::UserObject> objects,
                  std::vector<format::AttachedProgram> attached, CaptureHead& head) {
  if (auto programs = bpf::loaded_programs()) {
    head.programs = std::move(*programs);
  } else if (looks_into_kernel(plan)) {
    head.notes.push_back("BPF programs that run already will have no names: " + programs.error().what);
  }
  format::Environment& environment = head.features.environment;
  for (const bpf::LoadedProgram& program : head.programs) environment.bpf_programs.push_back(program.info);
  environment.attached_programs = std::move(attached);
  add_objects(objects, head.programs, environment);
}

}  // namespace tacho::record
