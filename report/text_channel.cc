#include "report/text_channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <new>
#include <utility>

namespace tacho::report {
namespace {

constexpr std::uint32_t kSlots = 4;
constexpr std::size_t kSlotSize = std::size_t{1} << 20;  // bytes

}  // namespace

struct TextChannel::Shared {
  std::atomic<bool> is_asked_to_stop;
  std::array<std::array<char, kSlotSize>, kSlots> slots;
};

// Short enough that the kernel writes it whole or not at all.
struct TextChannel::Message {
  Asks asks = Asks::End;
  std::uint8_t detail = 0;  // the fault of an error, the exit status of an end
  std::uint16_t unused = 0;
  std::uint32_t slot = 0, size = 0;
};

Result<TextChannel> TextChannel::make() {
  TextChannel channel;
  void* const memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return system_error("memory for text", errno);
  channel.shared_ = ::new (memory) Shared;
  channel.shared_->is_asked_to_stop.store(false);
  for (auto* const pair : {&channel.questions_, &channel.answers_}) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return system_error("a pipe for text", errno);
    (*pair)[0] = format::Fd(ends[0]);
    (*pair)[1] = format::Fd(ends[1]);
  }
  return channel;
}

TextChannel::TextChannel(TextChannel&& other) noexcept
    : shared_(std::exchange(other.shared_, nullptr)),
      questions_{std::move(other.questions_[0]), std::move(other.questions_[1])},
      answers_{std::move(other.answers_[0]), std::move(other.answers_[1])} {}

TextChannel::~TextChannel() {
  if (shared_ != nullptr) ::munmap(shared_, sizeof(Shared));
}

std::array<int, 2> TextChannel::be_worker() {
  questions_[0] = format::Fd();
  answers_[1] = format::Fd();
  return {questions_[1].get(), answers_[0].get()};
}

void TextChannel::be_parent() {
  questions_[1] = format::Fd();
  answers_[0] = format::Fd();
}

void TextChannel::send(const Message& message) {
  ssize_t sent = 0;
  while ((sent = ::write(questions_[1].get(), &message, sizeof message)) < 0 && errno == EINTR) {
  }
  if (sent != sizeof message) ::_exit(0);
}

TextChannel::Answer TextChannel::await() {
  Answer answer = Answer::Leave;
  ssize_t got = 0;
  while ((got = ::read(answers_[0].get(), &answer, sizeof answer)) < 0 && errno == EINTR) {
  }
  if (got != sizeof answer || answer == Answer::Leave) ::_exit(0);
  return answer;
}

// Of every piece that is under way.
void TextChannel::await_all() {
  for (; under_way_ > 0; --under_way_) is_reader_gone_ = await() == Answer::ReaderGone || is_reader_gone_;
}

void TextChannel::begin() { send({.asks = Asks::Begin}); }

Result<OutputFile::Reader> TextChannel::write(std::string_view text, bool at_once) {
  while (!text.empty() && !is_reader_gone_) {
    const std::size_t size = std::min(text.size(), kSlotSize);
    text.copy(shared_->slots.at(next_slot_).data(), size);
    text.remove_prefix(size);
    send({Asks::Write, 0, 0, next_slot_, static_cast<std::uint32_t>(size)});
    next_slot_ = (next_slot_ + 1) % kSlots;
    ++under_way_;
    // The next one to be filled must be free.
    for (const std::uint32_t most = at_once ? 0 : kSlots - 1; under_way_ > most; --under_way_)
      is_reader_gone_ = await() == Answer::ReaderGone || is_reader_gone_;
  }
  return is_reader_gone_ ? OutputFile::Reader::Gone : OutputFile::Reader::There;
}

OutputFile TextChannel::open_output(bool at_once) {
  send({.asks = Asks::Open});
  const bool is_for_person = await() == Answer::Yes;
  return OutputFile(OutputFile::Elsewhere{
      .write = [this,
                at_once = at_once || is_for_person](std::string_view text) { return write(text, at_once); },
      .finish = [this]() -> Result<> {
        await_all();
        send({.asks = Asks::Finish});
        (void)await();
        return Done{};
      },
      .is_reader_gone = [this] { return is_reader_gone_; },
      .is_for_person = is_for_person});
}

// Nothing is under way: the text was finished, or it is of no use.
void TextChannel::fail(const Error& error) {
  await_all();
  const std::size_t size = std::min(error.what.size(), kSlotSize);
  error.what.copy(shared_->slots[0].data(), size);
  send({Asks::Fail, static_cast<std::uint8_t>(error.fault), 0, 0, static_cast<std::uint32_t>(size)});
}

void TextChannel::end(cli::ExitStatus status) {
  await_all();
  send({.asks = Asks::End, .detail = static_cast<std::uint8_t>(status)});
}

bool TextChannel::is_asked_to_stop() const { return shared_->is_asked_to_stop.load(); }
void TextChannel::ask_to_stop() { shared_->is_asked_to_stop.store(true); }

std::string_view TextChannel::slot(const Message& message) const {
  return {shared_->slots.at(message.slot).data(), message.size};
}

Result<std::optional<TextChannel::Question>> TextChannel::next(int milliseconds) {
  pollfd news{questions_[0].get(), POLLIN, 0};
  if (::poll(&news, 1, milliseconds) <= 0) return std::optional<Question>();
  Message message;
  const ssize_t got = ::read(questions_[0].get(), &message, sizeof message);
  if (got < 0 && errno == EINTR) return std::optional<Question>();
  if (got < 0) return system_error("what the process that reads the files says", errno);
  if (got == 0) {
    has_ended_ = true;
    return std::optional<Question>();
  }
  const bool is_sound = got == sizeof message && message.asks <= Asks::End && message.slot < kSlots &&
                        message.size <= kSlotSize && message.detail <= cli::kNoOutput;
  if (!is_sound) return Error{"the process that reads the files says what makes no sense"};
  Question question;
  question.asks = message.asks;
  question.text = slot(message);
  if (question.asks == Asks::Fail) {
    question.error.what = question.text;
    question.error.fault = message.detail == static_cast<std::uint8_t>(Fault::Use)      ? Fault::Use
                           : message.detail == static_cast<std::uint8_t>(Fault::Output) ? Fault::Output
                                                                                        : Fault::Input;
  }
  if (question.asks == Asks::End) question.status = static_cast<cli::ExitStatus>(message.detail);
  return std::optional<Question>(std::move(question));
}

Result<> TextChannel::answer(Answer answer) {
  ssize_t sent = 0;
  while ((sent = ::write(answers_[1].get(), &answer, sizeof answer)) < 0 && errno == EINTR) {
  }
  if (sent < 0 && errno != EPIPE) return system_error("the process that reads the files", errno);
  return Done{};  // whom nobody reads from any more has ended, which next() tells
}

}  // namespace tacho::report
