// Text that a worker makes and its parent writes: memory that both have, for the text, and two pipes that say
// whose it is. The parent has the output (a terminal, a pager, a file that is made), and what it takes from
// the worker it does not trust.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "cli/exit_status.h"
#include "format/base/file.h"
#include "format/base/result.h"
#include "report/output/output_file.h"

namespace tacho::report {

class TextChannel {
 public:
  static Result<TextChannel> make();
  TextChannel(TextChannel&& other) noexcept;
  TextChannel& operator=(TextChannel&&) = delete;
  ~TextChannel();

  enum class Asks : std::uint8_t {
    Begin,   // nothing: the worker is behind its walls, and reads what others made from here on
    Open,    // text will come: whether a person reads it
    Write,   // this text
    Finish,  // that was all of it
    Fail,    // nothing: the work failed with this error, and the worker ends
    End,     // nothing: the work is done, with this exit status, and the worker ends
  };
  struct Question {
    Asks asks = Asks::End;
    std::string_view text;  // of Write, until the answer
    Error error;            // of Fail
    cli::ExitStatus status = cli::kWhole;
  };
  enum class Answer : std::uint8_t { Yes, No, ReaderGone, Leave };

  // In the worker, behind the fork; each of these blocks until the parent has answered, but for pieces of
  // text: of these some may be under way. When the parent is gone, or says so, they end the process.
  // be_worker() gives the descriptors that the others need.
  std::array<int, 2> be_worker();
  void begin();
  // `at_once`: no piece is under way when a write returns, as somebody waits for the text.
  OutputFile open_output(bool at_once);
  void fail(const Error& error);
  void end(cli::ExitStatus status);
  // Whether ask_to_stop() was called.
  bool is_asked_to_stop() const;

  // In the parent, behind the fork.
  void be_parent();
  // What is asked next; nothing: it said nothing for so long, or has_ended() is true by now. What does not
  // make sense is an error.
  Result<std::optional<Question>> next(int milliseconds);
  bool has_ended() const { return has_ended_; }
  // To each Open (Yes: a person reads it), Write and Finish one answer.
  Result<> answer(Answer answer);
  void ask_to_stop();

 private:
  struct Shared;
  struct Message;
  TextChannel() = default;
  void send(const Message& message);
  Answer await();
  void await_all();
  Result<OutputFile::Reader> write(std::string_view text, bool at_once);
  std::string_view slot(const Message& message) const;

  Shared* shared_ = nullptr;
  format::Fd questions_[2], answers_[2];  // ends to read from and to write to
  std::uint32_t next_slot_ = 0, under_way_ = 0;
  bool is_reader_gone_ = false, has_ended_ = false;
};

}  // namespace tacho::report
