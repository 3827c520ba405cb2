// `tacho stacks FILE`: threads of a capture of `tacho stacks`, joined by equal stacks.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "report/commands.h"
#include "report/decode/payload.h"
#include "report/filter_options.h"
#include "report/output/field_sinks.h"
#include "report/output/terminal.h"
#include "report/pinned_files_option.h"

namespace tacho::report {
namespace {

constexpr std::string_view kEvent = "stacks";
constexpr std::uint64_t kVersion = 1;     // of the JSON form
constexpr std::size_t kMostStack = 1024;  // frames
constexpr std::size_t kArguments = 6;

struct Options {
  ReadingOptions reading;
  std::optional<symbolize::PinnedFiles> pinned;
  bool as_json = false;
};

cli::CommandLine describe(Options& options) {
  auto line = command_line("stacks",
                           "Shows the threads of a capture that tacho stacks -o wrote: what each was doing, "
                           "and its stack; threads with equal stacks are shown together. tacho stacks -p PID "
                           "shows those of now.");
  line.synopsis = "FILE [options]";
  auto& rows = line.options;
  add_reading_options(rows, options.reading);
  rows.push_back(flag("--json", "one JSON object (docs/stacks.md)", options.as_json));
  rows.push_back(wide_option("--wide", options.reading));
  rows.push_back(pinned_files_option(options.pinned));
  rows.push_back(cli::number("--max-stack", "N", "at most N frames of a stack (default: 1024)", 1, 65535,
                             options.reading.session.max_stack));
  add_filter_options(rows, options.reading.session.filter);
  line.epilog.insert(0,
                     "Examples:\n"
                     "  tacho stacks -p 4711 -o hung.data    keeps what the threads do\n"
                     "  tacho stacks hung.data               shows it\n"
                     "\n");
  return line;
}

// ---- threads

struct ThreadNow {
  std::uint32_t pid = 0, tid = 0;
  std::string_view comm;
  std::string state, call, file;
  std::array<std::uint64_t, kArguments> arguments{};
  std::uint64_t lock = 0, paused_ns = 0;
  std::string lock_kind = "mutex", lock_name;  // of the variable; empty: unknown
  std::uint32_t owner = 0, owner_later = 0;    // at the first and the second look
  std::uint64_t moved = 0;                     // context switches between the looks
  std::uint64_t looks_ns = 0;                  // time between the looks; 0: there was one
  bool lacks_user_stack = false;
  const Stack* stack = nullptr;
};

class Threads : public Sink {
 public:
  explicit Threads(Session& session) : session_(&session), schemas_(session.events(), session.features()) {}

  Flow on_sample(const ResolvedSample& sample) override {
    const PayloadSchema* const schema = schemas_.schema_of(sample.event_index);
    if (sample.event().name != kEvent || schema == nullptr) return Flow::Continue;
    ThreadNow thread{.pid = sample.pid(), .tid = sample.tid(), .comm = sample.comm, .stack = sample.stack};
    for (const PayloadField& field : schema->fields) take(field, sample, thread);
    if (thread.lock != 0) thread.lock_name = address_name(session_->resolver(), sample, thread.lock);
    threads_.push_back(std::move(thread));
    return Flow::Continue;
  }

  const std::vector<ThreadNow>& all() const { return threads_; }

 private:
  static void take(const PayloadField& field, const ResolvedSample& sample, ThreadNow& thread) {
    const auto value = read_field(field, sample.fields->raw, sample.order);
    if (!value) return;
    if (field.name == "state") thread.state = show_value(field, *value, Names::Raw);
    if (field.name == "call" && name_of(field, *value) != "none")
      thread.call = show_value(field, *value, Names::Raw);
    if (field.name == "lock") thread.lock = bits_of(*value);
    if (field.name == "owner") thread.owner = static_cast<std::uint32_t>(bits_of(*value));
    if (field.name == "lock_kind") thread.lock_kind = show_value(field, *value, Names::Raw);
    if (field.name == "owner_later") thread.owner_later = static_cast<std::uint32_t>(bits_of(*value));
    if (field.name == "moved") thread.moved = bits_of(*value);
    if (field.name == "looks_ns") thread.looks_ns = bits_of(*value);
    if (field.name == "paused_ns") thread.paused_ns = bits_of(*value);
    if (field.name == "lacks_user_stack") thread.lacks_user_stack = bits_of(*value) != 0;
    if (const auto* text = std::get_if<std::string_view>(&*value); text != nullptr && field.name == "file")
      thread.file = *text;
    if (field.name != "args") return;
    for (std::uint32_t i = 0; i < kArguments; ++i)
      if (const auto one = read_field(field, sample.fields->raw, sample.order, i))
        thread.arguments[i] = bits_of(*one);
  }

  Session* session_;
  EventSchemas schemas_;
  std::vector<ThreadNow> threads_;
};

// ---- stacks

struct ShownFrame {
  std::string function;                            // empty: it has no name
  std::string module;                              // empty: no mapping at the address
  std::uint64_t address = 0, runtime_address = 0;  // as perf prints it; in the process
  bool is_inlined = false, is_kernel = false;
};

struct JoinedStack {
  std::vector<ShownFrame> frames;
  std::vector<const ThreadNow*> threads;
};

std::vector<ShownFrame> frames_of(Session& session, const ThreadNow& thread) {
  std::vector<ShownFrame> frames;
  if (thread.stack == nullptr) return frames;
  Resolver& resolver = session.resolver();
  for (const LocationId number : thread.stack->frames) {
    for (const symbolize::Frame& frame : resolver.frames(resolver.location(number))) {
      using symbolize::ModuleKind;
      const ModuleKind kind = frame.module == nullptr ? ModuleKind::User : frame.module->kind;
      frames.push_back({.function = std::string(frame.function),
                        .module = std::string(frame.module == nullptr ? "" : frame.module->path),
                        .address = frame.shown_address,
                        .runtime_address = frame.ip.value,
                        .is_inlined = frame.is_inlined,
                        .is_kernel = kind == ModuleKind::Kernel || kind == ModuleKind::KernelModule ||
                                     kind == ModuleKind::Bpf});
    }
  }
  // The outermost function of some programs has return address 0, and a caller at the byte before it.
  constexpr std::uint64_t kNowhere = ~std::uint64_t{0};
  if (!frames.empty() && frames.back().runtime_address == kNowhere) frames.pop_back();
  return frames;
}

// A key of the functions of a stack, and of the state: stacks are equal at any address within the functions.
std::string key_of(const ThreadNow& thread, std::span<const ShownFrame> frames) {
  std::string key = thread.state + '\0' + thread.call + '\0' + (thread.lacks_user_stack ? '1' : '0');
  for (const ShownFrame& each : frames) {
    key += each.function + '\0' + each.module + '\0' + (each.is_inlined ? '1' : '0');
    if (each.function.empty()) key += std::to_string(each.address);
    key += '\0';
  }
  return key;
}

// Most threads first, then by the first thread.
std::vector<JoinedStack> joined(Session& session, const std::vector<ThreadNow>& threads) {
  std::map<std::string, std::size_t> known;
  std::vector<JoinedStack> stacks;
  for (const ThreadNow& thread : threads) {
    auto frames = frames_of(session, thread);
    const auto [entry, is_new] = known.emplace(key_of(thread, frames), stacks.size());
    if (is_new) stacks.push_back({std::move(frames), {}});
    stacks[entry->second].threads.push_back(&thread);
  }
  std::ranges::stable_sort(stacks, std::greater<>(),
                           [](const JoinedStack& each) { return each.threads.size(); });
  return stacks;
}

// ---- locks

using ByNumber = std::map<std::uint32_t, const ThreadNow*>;

ByNumber by_number(const std::vector<ThreadNow>& threads) {
  ByNumber numbers;
  for (const ThreadNow& each : threads) numbers.emplace(each.tid, &each);
  return numbers;
}

// A cycle of threads, each of which waits for a lock of the next.
using Circle = std::vector<const ThreadNow*>;

// Whether a thread stood still between two looks, waiting for the same lock of the same owner.
bool stands_still(const ThreadNow& thread) {
  return thread.looks_ns != 0 && thread.moved == 0 && thread.owner_later == thread.owner;
}

// Cycles of threads that stand still: a thread that ran may have been given its lock.
std::vector<Circle> deadlocks_in(const std::vector<ThreadNow>& threads) {
  const ByNumber numbers = by_number(threads);
  std::set<const ThreadNow*> over;
  std::vector<Circle> circles;
  for (const ThreadNow& first : threads) {
    Circle way;
    for (const ThreadNow* at = &first;
         at != nullptr && at->lock != 0 && at->owner != 0 && stands_still(*at);) {
      const auto before = std::ranges::find(way, at);
      if (before != way.end()) {
        circles.emplace_back(before, way.end());
        break;
      }
      if (!over.insert(at).second) break;
      way.push_back(at);
      const auto owner = numbers.find(at->owner);
      at = owner == numbers.end() ? nullptr : owner->second;
    }
  }
  return circles;
}

// A lock for which threads wait, and which is in no deadlock.
struct HeldLock {
  std::vector<const ThreadNow*> waiting;
  const ThreadNow* owner = nullptr;  // null: it is not in the capture
  bool is_convoy = false;            // several threads take it in turn, each waiting for the others
};

// Those with most threads first.
std::vector<HeldLock> held_locks(const std::vector<ThreadNow>& threads, std::span<const Circle> deadlocks) {
  std::set<std::pair<std::uint32_t, std::uint64_t>> dead;
  for (const Circle& circle : deadlocks)
    for (const ThreadNow* each : circle) dead.emplace(each->pid, each->lock);
  const ByNumber numbers = by_number(threads);
  std::map<std::pair<std::uint32_t, std::uint64_t>, HeldLock> locks;
  for (const ThreadNow& each : threads) {
    if (each.lock == 0 || each.owner == 0 || each.looks_ns == 0 || dead.contains({each.pid, each.lock}))
      continue;
    HeldLock& lock = locks[{each.pid, each.lock}];
    lock.waiting.push_back(&each);
    lock.is_convoy |= !stands_still(each);
    const auto owner = numbers.find(each.owner);
    if (owner != numbers.end()) lock.owner = owner->second;
  }
  std::vector<HeldLock> found;
  for (auto& [key, lock] : locks) {
    lock.is_convoy &= lock.waiting.size() > 1;
    std::erase(lock.waiting, lock.owner);  // it waited at the first look, and had the lock later
    if (!lock.waiting.empty()) found.push_back(std::move(lock));
  }
  std::ranges::stable_sort(found, std::greater<>(), [](const HeldLock& each) { return each.waiting.size(); });
  return found;
}

// All threads of a convoy: those that wait, and the owner.
std::vector<const ThreadNow*> threads_of(const HeldLock& lock) {
  std::vector<const ThreadNow*> all = lock.waiting;
  if (lock.owner != nullptr) all.push_back(lock.owner);
  std::ranges::sort(all, {}, &ThreadNow::tid);
  return all;
}

// ---- text

std::string count_of(std::size_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

// "4711 4713-4720 4730", and the number of further ones if there are many.
std::string in_words(const std::vector<std::uint32_t>& numbers) {
  constexpr std::size_t kMostRanges = 20;
  std::string out;
  std::size_t ranges = 0;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (++ranges > kMostRanges) return out + fmt::format(" and {} more", numbers.size() - i);
    out += out.empty() ? "" : " ";
    out += end - i > 2 ? fmt::format("{}-{}", numbers[i], numbers[end - 1]) : std::to_string(numbers[i]);
    i = end - i > 2 ? end : i + 1;
  }
  return out;
}

class StacksText {
 public:
  // `room`: columns of a line of a stack; 0: no limit.
  StacksText(TextOutput& out, Names names, std::size_t room) : out_(out), names_(names), room_(room) {}

  void write(const std::vector<ThreadNow>& threads, std::span<const JoinedStack> stacks) {
    write_head(threads, stacks.size());
    const auto deadlocks = deadlocks_in(threads);
    for (const Circle& circle : deadlocks) write_deadlock(circle);
    const auto held = held_locks(threads, deadlocks);
    constexpr std::size_t kMostLocks = 10;
    for (const HeldLock& each : std::span(held).first(std::min(held.size(), kMostLocks)))
      write_held(each, stacks);
    if (held.size() > kMostLocks)
      out_.text(fmt::format("\nand {} more locks for which threads wait\n", held.size() - kMostLocks));
    for (const JoinedStack& each : stacks) write_stack(each);
  }

 private:
  std::string safe(std::string_view text) const { return printable(text, names_); }
  std::string name_of(const ThreadNow& thread) const {
    return fmt::format("{} ({})", thread.tid, safe(thread.comm));
  }

  void write_head(const std::vector<ThreadNow>& threads, std::size_t stacks) {
    std::set<std::uint32_t> processes;
    std::size_t stopped = 0;
    std::uint64_t longest = 0;
    for (const ThreadNow& each : threads) {
      processes.insert(each.pid);
      stopped += each.paused_ns != 0 ? 1 : 0;
      longest = std::max(longest, each.paused_ns);
    }
    out_.text(fmt::format("{} of {}, {}; ", count_of(threads.size(), "thread", "threads"),
                          count_of(processes.size(), "process", "processes"),
                          count_of(stacks, "stack", "stacks")));
    out_.text(stopped == 0
                  ? "none was stopped\n"
                  : fmt::format("{} stopped, each for {:.3f} ms at most\n", count_of(stopped, "was", "were"),
                                static_cast<double>(longest) / 1e6));
  }

  // "mutex 0x55d0c0 (cache_lock)"
  std::string lock_in_words(const ThreadNow& waiting) const {
    std::string text = fmt::format("{} {:#x}", safe(waiting.lock_kind), waiting.lock);
    return waiting.lock_name.empty() ? text : text + " (" + safe(waiting.lock_name) + ")";
  }

  void write_deadlock(const Circle& circle) {
    out_.text("\nDeadlock:\n");
    for (const ThreadNow* thread : circle)
      out_.text(fmt::format("  {} waits for the {}, which {} has\n", name_of(*thread), lock_in_words(*thread),
                            thread->owner));
  }

  // "23 times"
  static std::string moves(const ThreadNow& thread) {
    return thread.moved == 1 ? "once" : fmt::format("{} times", thread.moved);
  }

  void write_held(const HeldLock& lock, std::span<const JoinedStack> stacks) {
    const ThreadNow& first = *lock.waiting.front();
    const std::string time = fmt::format("{} ms", first.looks_ns / 1'000'000);
    const std::string owner = lock.owner == nullptr ? std::to_string(first.owner) : name_of(*lock.owner);
    const std::string waiting = count_of(lock.waiting.size(), "thread waits", "threads wait");
    if (lock.is_convoy) {
      out_.text(fmt::format("\nConvoy: threads take the {} in turn; {}, {} has it\n", lock_in_words(first),
                            waiting, owner));
      write_moves(lock, time);
    } else {
      out_.text(fmt::format("\n{} for the {}, which {} has\n", waiting, lock_in_words(first), owner));
    }
    if (lock.owner != nullptr) write_owner(*lock.owner, first.lock, time, stacks);
  }

  // How often each thread of a convoy was switched to, threads with equal counts together.
  void write_moves(const HeldLock& lock, const std::string& time) {
    std::map<std::uint64_t, std::vector<std::uint32_t>, std::greater<>> by_count;
    for (const ThreadNow* each : threads_of(lock)) by_count[each->moved].push_back(each->tid);
    out_.text(fmt::format("  moved in {}:", time));
    constexpr std::size_t kMostCounts = 20;
    std::size_t counts = 0;
    for (const auto& [count, numbers] : by_count) {
      if (++counts > kMostCounts) break;
      out_.text(fmt::format("{} {} {}", counts == 1 ? "" : ",", in_words(numbers),
                            count == 1 ? "once" : fmt::format("{} times", count)));
    }
    out_.text(by_count.size() > kMostCounts ? ", ...\n" : "\n");
  }

  // `lock`: which it has.
  void write_owner(const ThreadNow& owner, std::uint64_t lock, const std::string& time,
                   std::span<const JoinedStack> stacks) {
    const auto stack = std::ranges::find_if(stacks, [&](const JoinedStack& each) {
      return std::ranges::find(each.threads, &owner) != each.threads.end();
    });
    if (stack == stacks.end()) return;
    if (owner.lock == lock) {
      out_.text("  (its stack was copied before it had the lock)\n");
      return;
    }
    const std::string did = owner.moved == 0 ? fmt::format("did not move in {}", time)
                                             : fmt::format("moved {} in {}", moves(owner), time);
    out_.text(fmt::format("  {}, {}, {}:\n", name_of(owner), doing(*stack), did));
    if (owner.lacks_user_stack) out_.text("  (the user's part of the stack is missing)\n");
    for (const ShownFrame& frame : stack->frames) write_frame(frame);
    if (stack->frames.empty()) out_.text("      (no stack)\n");
    out_.line_end();
  }

  // "sleeping in futex(0x7f00, 0x80, 0x2, ...)", with the arguments that are equal in all threads.
  std::string doing(const JoinedStack& stack) const {
    const ThreadNow& first = *stack.threads.front();
    std::string text = safe(first.state);
    if (first.call.empty()) return text;
    text += " in " + safe(first.call);
    const bool are_equal = std::ranges::all_of(stack.threads, [&](const ThreadNow* each) {
      return each->arguments == first.arguments && each->file == first.file;
    });
    if (!are_equal) return text;
    text += "(";
    for (std::size_t i = 0; i < kArguments; ++i)
      text += fmt::format("{}{:#x}", i == 0 ? "" : ", ", first.arguments[i]);
    text += ")";
    if (!first.file.empty()) text += " of " + safe(first.file);
    return text;
  }

  void write_stack(const JoinedStack& stack) {
    out_.text(fmt::format("\n{}, {}\n", count_of(stack.threads.size(), "thread", "threads"), doing(stack)));
    write_threads(stack);
    write_locks(stack);
    if (stack.threads.front()->lacks_user_stack) out_.text("  (the user's part of the stack is missing)\n");
    for (const ShownFrame& frame : stack.frames) write_frame(frame);
    if (stack.frames.empty()) out_.text("      (no stack)\n");
    out_.line_end();
  }

  void write_threads(const JoinedStack& stack) {
    std::map<std::pair<std::string_view, std::uint32_t>, std::vector<std::uint32_t>> processes;
    for (const ThreadNow* each : stack.threads) processes[{each->comm, each->pid}].push_back(each->tid);
    constexpr std::size_t kMostLines = 20;
    std::size_t lines = 0;
    for (const auto& [process, numbers] : processes) {
      if (++lines > kMostLines) {
        out_.text(fmt::format("  and {} more\n", processes.size() - kMostLines));
        break;
      }
      out_.text(fmt::format("  {} {}", safe(process.first), process.second));
      if (numbers.size() > 1 || numbers.front() != process.second)
        out_.text(fmt::format(": {}", in_words(numbers)));
      out_.character('\n');
    }
  }

  void write_locks(const JoinedStack& stack) {
    std::map<std::pair<std::string, std::uint32_t>, std::vector<std::uint32_t>> locks;
    for (const ThreadNow* each : stack.threads)
      if (each->lock != 0) locks[{lock_in_words(*each), each->owner}].push_back(each->tid);
    for (const auto& [lock, numbers] : locks) {
      out_.text(fmt::format("  {}, which {} has", lock.first, lock.second));
      if (locks.size() > 1) out_.text(fmt::format(", awaited by {}", in_words(numbers)));
      out_.character('\n');
    }
  }

  void write_frame(const ShownFrame& frame) {
    constexpr std::string_view kIndent = "      ";
    const std::string module =
        fmt::format("  ({})", frame.is_inlined       ? std::string("inlined")
                              : frame.module.empty() ? std::string("nothing is mapped here")
                                                     : safe(frame.module));
    std::string function =
        frame.function.empty() ? fmt::format("{:#x}", frame.address) : safe(frame.function);
    if (room_ != 0) {
      const std::size_t used = kIndent.size() + shown_width(module);
      function = cut_in_the_middle(function, std::max(room_ - std::min(room_, used), kLeastNameWidth));
    }
    out_.text(fmt::format("{}{}{}\n", kIndent, function, module));
  }

  TextOutput& out_;
  Names names_;
  std::size_t room_;
};

// ---- JSON

void write_thread(JsonFields& to, const ThreadNow& thread) {
  to.begin_object({});
  to.number("pid", thread.pid);
  to.number("tid", thread.tid);
  to.text("comm", thread.comm);
  if (!thread.call.empty()) {
    to.begin_list("args");
    for (const std::uint64_t each : thread.arguments) to.hex({}, each);
    to.end_list();
  }
  if (!thread.file.empty()) to.text("file", thread.file);
  if (thread.lock != 0) {
    to.hex("lock", thread.lock);
    if (!thread.lock_name.empty()) to.text("lock_name", thread.lock_name);
    to.text("lock_kind", thread.lock_kind);
    to.number("owner", thread.owner);
    to.number("owner_later", thread.owner_later);
  }
  to.number("moved", thread.moved);
  to.number("paused_ns", thread.paused_ns);
  to.end_object();
}

void write_locks_json(JsonFields& to, const std::vector<ThreadNow>& threads) {
  const auto deadlocks = deadlocks_in(threads);
  to.begin_list("deadlocks");
  for (const Circle& circle : deadlocks) {
    to.begin_list({});
    for (const ThreadNow* each : circle) to.number({}, each->tid);
    to.end_list();
  }
  to.end_list();
  to.begin_list("held");
  for (const HeldLock& lock : held_locks(threads, deadlocks)) {
    const ThreadNow& first = *lock.waiting.front();
    to.begin_object({});
    to.number("pid", first.pid);
    to.hex("lock", first.lock);
    if (!first.lock_name.empty()) to.text("lock_name", first.lock_name);
    to.text("lock_kind", first.lock_kind);
    to.flag("convoy", lock.is_convoy);
    to.number("owner", lock.owner == nullptr ? first.owner : lock.owner->tid);
    to.begin_list("waiting");
    for (const ThreadNow* each : lock.waiting) to.number({}, each->tid);
    to.end_list();
    to.end_object();
  }
  to.end_list();
}

void write_json(TextOutput& out, const std::vector<ThreadNow>& threads, std::span<const JoinedStack> stacks) {
  JsonFields to(out);
  to.number("tacho_stacks", kVersion);
  to.number("threads", threads.size());
  to.number("looks_ns", threads.empty() ? 0 : threads.front().looks_ns);
  write_locks_json(to, threads);
  to.begin_list("stacks");
  for (const JoinedStack& stack : stacks) {
    const ThreadNow& first = *stack.threads.front();
    to.begin_object({});
    to.text("state", first.state);
    if (!first.call.empty()) to.text("call", first.call);
    to.flag("lacks_user_stack", first.lacks_user_stack);
    to.begin_list("threads");
    for (const ThreadNow* each : stack.threads) write_thread(to, *each);
    to.end_list();
    to.begin_list("frames");
    for (const ShownFrame& frame : stack.frames) {
      to.begin_object({});
      if (!frame.function.empty()) to.text("function", frame.function);
      if (!frame.module.empty()) to.text("module", frame.module);
      to.hex("address", frame.address);
      to.hex("ip", frame.runtime_address);
      if (frame.is_inlined) to.flag("inlined", true);
      if (frame.is_kernel) to.flag("kernel", true);
      to.end_object();
    }
    to.end_list();
    to.end_object();
  }
  to.end_list();
  to.finish();
  out.character('\n');
}

Result<Shown> show(Session& session, TextOutput& out, const Options& options) {
  read_head(session);
  if (std::ranges::find(session.events(), kEvent, &format::Event::name) == session.events().end())
    return Error{printable(options.reading.shown_input()) +
                 ": has no event 'stacks'; tacho stacks -p PID -o FILE makes such captures"};
  Threads threads(session);
  run_with_progress(session, threads, out);
  const auto stacks = joined(session, threads.all());
  if (options.as_json)
    write_json(out, threads.all(), stacks);
  else
    StacksText(out, options.reading.names, options.reading.room()).write(threads.all(), stacks);
  return Shown(Symbols::Used);
}

}  // namespace

Result<cli::ExitStatus> run_stacks(const std::vector<std::string>& arguments) {
  Options options;
  options.reading.session.max_stack = kMostStack;
  return run_command(describe(options), arguments, [&options] {
    if (options.pinned) options.reading.session.symbols.pinned = &*options.pinned;
    return show_session(options.reading, [&options](Session& session, TextOutput& out) {
      return show(session, out, options);
    });
  });
}

}  // namespace tacho::report
