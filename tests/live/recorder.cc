#include "recorder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>
#include <variant>

#include "format/records/perf_abi.h"
#include "format/records/record.h"
#include "format/records/sample.h"

namespace tacho::live {
namespace {

namespace abi = format::abi;

[[noreturn]] void exec(std::vector<std::string> command, const std::string& folder, const std::string& log,
                       Program::Limits limits) {
  if (chdir(folder.c_str()) != 0) _exit(125);
  const int errors = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  const int nothing = open("/dev/null", O_RDWR);
  dup2(nothing, 0);
  dup2(nothing, 1);
  dup2(errors, 2);
  if (limits.file_bytes != 0) {
    const rlimit limit{limits.file_bytes, limits.file_bytes};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  _exit(126);
}

void add_sample(const format::Sample& sample, const std::string& event, CaptureSeen& seen) {
  SampleSeen& out = seen.samples.emplace_back();
  out.event = event;
  out.pid = sample.pid;
  out.tid = sample.tid;
  out.cpu = sample.cpu;
  out.first_payload_word = format::Cursor(sample.raw).u64();
  for (std::size_t i = 0; i < sample.callchain.size(); ++i) {
    out.has_kernel_frames |= sample.callchain[i] == abi::kContextKernel;
    out.has_user_frames |= sample.callchain[i] == abi::kContextUser;
  }
}

void add_record(const format::Record& record, CaptureSeen& seen) {
  if (const auto* lost = std::get_if<format::LostSamplesRecord>(&record)) seen.lost += lost->lost;
  if (const auto* comm = std::get_if<format::CommRecord>(&record); comm != nullptr && comm->is_exec) {
    seen.exec_names.emplace_back(comm->name);
  }
  if (const auto* mapping = std::get_if<format::MmapRecord>(&record);
      mapping != nullptr && mapping->is_mmap2) {
    seen.mapped.emplace_back(mapping->filename);
    seen.mapped_by.emplace_back(mapping->pid, mapping->filename);
    seen.mapped_with_build_id += mapping->build_id.empty() ? 0 : 1;
  }
}

}  // namespace

Program Program::start(const std::vector<std::string>& command, const std::string& folder, Limits limits) {
  std::string log = folder + "/stderr-XXXXXX";
  close(mkstemp(log.data()));
  const pid_t pid = fork();
  if (pid == 0) exec(command, folder, log, limits);
  return {pid, log};
}

Program::Program(Program&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), log_(std::move(other.log_)), status_(other.status_) {}

Program::~Program() {
  if (pid_ < 0 || status_) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Program::send(int signal) const { kill(pid_, signal); }

int Program::wait(int seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  int how = 0;
  while (!status_ && waitpid(pid_, &how, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) {
      kill(pid_, SIGKILL);
      waitpid(pid_, &how, 0);
      status_ = -1;
      return -1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (!status_) status_ = WIFSIGNALED(how) ? 1000 + WTERMSIG(how) : WEXITSTATUS(how);
  return *status_;
}

std::string Program::errors() const {
  std::stringstream text;
  text << std::ifstream(log_).rdbuf();
  return text.str();
}

std::uint64_t CaptureSeen::count(const std::string& event) const {
  std::uint64_t found = 0;
  for (const SampleSeen& sample : samples) found += sample.event == event ? 1 : 0;
  return found;
}

CaptureSeen read_capture(const std::string& path) {
  CaptureSeen seen;
  format::Diagnostics diagnostics;
  auto reader = format::CaptureReader::open(path, diagnostics);
  EXPECT_TRUE(reader) << (reader ? "" : reader.error().what);
  if (!reader) {
    seen.has_damage = true;
    return seen;
  }
  while (const auto view = reader->next_record()) {
    const auto index = reader->events().event_of(*view);
    if (!index) continue;
    const format::Event& event = reader->events()[*index];
    if (view->type == abi::kRecordSample) {
      const auto sample = format::parse_sample(*view, event.attr);
      EXPECT_TRUE(sample) << "a sample that cannot be read at " << view->offset;
      if (sample) add_sample(*sample, event.name, seen);
      continue;
    }
    if (const auto record = format::parse_record(*view, event.attr)) add_record(*record, seen);
  }
  seen.features = reader->features();
  seen.is_closed = reader->layout().is_closed;
  for (const format::Finding& finding : diagnostics.findings()) {
    const bool is_damage =
        finding.kind == format::Damage::BadRecord || finding.kind == format::Damage::BadFeature ||
        finding.kind == format::Damage::BadFrame || finding.kind == format::Damage::UnknownEvent;
    seen.has_damage |= is_damage;
  }
  return seen;
}

std::size_t samples_in(const std::string& path) {
  format::Diagnostics diagnostics;
  auto reader = format::CaptureReader::open(path, diagnostics);
  std::size_t samples = 0;
  if (!reader) return samples;
  while (const auto view = reader->next_record()) samples += view->type == abi::kRecordSample ? 1 : 0;
  return samples;
}

std::string missing_to_record() {
  if (geteuid() != 0) return "needs root (perf events of the whole system)";
  if (access("/proc/sys/kernel/perf_event_paranoid", F_OK) != 0) return "needs a kernel with perf events";
  return {};
}

std::string missing_to_compile() {
  if (auto missing = missing_to_record(); !missing.empty()) return missing;
  if (access("/sys/kernel/btf/vmlinux", F_OK) != 0) return "needs a kernel with BPF and BTF";
  if (std::system("clang --version > /dev/null 2>&1") != 0) return "needs clang";
  return {};
}

std::string tacho_record() { return TACHO_RECORD; }
std::string getppid_load() { return TACHO_GETPPID_LOAD; }
std::string worker_load() { return TACHO_WORKER_LOAD; }
std::string refusals() { return TACHO_REFUSALS; }
std::string source(const char* name) { return std::string(TACHO_LIVE_SOURCES) + "/" + name; }

}  // namespace tacho::live
