// Before the includes: curses defines macros ("lines", "columns") that would break other sources of a unity
// build.
#define NCURSES_WIDECHAR 1
#define NCURSES_NOMACROS 1
#include "report/views/tui/screen.h"

#include <curses.h>
#include <fcntl.h>
#include <langinfo.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <span>
#include <string_view>
#include <utility>

#include "format/base/output.h"

namespace tacho::report {
namespace {

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

// What a signal handler needs to restore the terminal: the escape sequence that leaves the screen, and the
// terminal's modes from before. Global, since a handler has no argument for them.
struct SavedTerminal {
  std::array<char, 256> leave{};
  std::size_t size = 0;  // bytes of `leave`
  termios modes{};
  int terminal = STDIN_FILENO;
  std::atomic<bool> is_on_screen{false};
};
SavedTerminal& saved_terminal() {
  static SavedTerminal one;
  return one;
}

constexpr std::array kFatalSignals = {SIGINT,  SIGTERM, SIGHUP, SIGQUIT, SIGSEGV,
                                      SIGABRT, SIGBUS,  SIGFPE, SIGILL};

// Async-signal-safe calls only.
void restore_and_raise(int signal) {
  SavedTerminal& saved = saved_terminal();
  if (saved.is_on_screen.exchange(false)) {
    (void)!::write(STDOUT_FILENO, saved.leave.data(), saved.size);
    ::tcsetattr(saved.terminal, TCSADRAIN, &saved.modes);
  }
  std::signal(signal, SIG_DFL);
  ::raise(signal);
}

constexpr const char* kMouseOff = "\033[?1006l\033[?1000l";

void save_leave_sequence() {
  SavedTerminal& saved = saved_terminal();
  saved.size = 0;
  const std::array<const char*, 6> sequences = {kMouseOff,     exit_attribute_mode, keypad_local,
                                                cursor_normal, exit_ca_mode,        "\r"};
  for (const char* const text : sequences) {
    if (text == nullptr || text == reinterpret_cast<const char*>(-1)) continue;
    const std::size_t size = std::strlen(text);
    if (saved.size + size > saved.leave.size()) continue;
    std::memcpy(saved.leave.data() + saved.size, text, size);
    saved.size += size;
  }
}

// Foreground and background of each style; -1: the terminal's own.
struct Look {
  short foreground, background;
  attr_t mono;  // for terminals without colours
};
constexpr std::array<Look, static_cast<std::size_t>(Style::kCount)> kLooks = {{
    {-1, -1, A_NORMAL},                     // Normal
    {COLOR_WHITE, COLOR_BLUE, A_REVERSE},   // Bar, as in perf
    {-1, -1, A_BOLD},                       // Heading
    {COLOR_RED, -1, A_BOLD},                // High
    {COLOR_GREEN, -1, A_NORMAL},            // Medium
    {COLOR_MAGENTA, -1, A_NORMAL},          // Address
    {COLOR_BLUE, -1, A_NORMAL},             // Jump
    {COLOR_CYAN, -1, A_DIM},                // Quiet
    {COLOR_YELLOW, -1, A_BOLD},             // Notice
    {COLOR_BLACK, COLOR_WHITE, A_REVERSE},  // Box
    {COLOR_WHITE, COLOR_BLUE, A_NORMAL},    // Heat1
    {COLOR_BLACK, COLOR_CYAN, A_NORMAL},    // Heat2
    {COLOR_BLACK, COLOR_GREEN, A_NORMAL},   // Heat3
    {COLOR_BLACK, COLOR_YELLOW, A_BOLD},    // Heat4
    {COLOR_WHITE, COLOR_RED, A_BOLD},       // Heat5
    {COLOR_GREEN, -1, A_NORMAL},            // User
    {COLOR_MAGENTA, -1, A_BOLD}             // Kernel
}};
// Heat1 to Heat5 with 256 colours: dark blue to yellow, as in `tacho heatmap`.
constexpr std::array<short, kHeatStyles> kHeatColours = {24, 31, 66, 179, 227};
constexpr short kSelectedPair = 32;

// The ASCII replacement of line drawing, arrows and blocks, if the locale is not UTF-8.
char ascii_of(char32_t character) {
  constexpr std::u32string_view kDrawn = U"│┼├└┌─►→←↑↓";
  constexpr std::string_view kReplacements = "|++++->><^v";
  if (const auto at = kDrawn.find(character); at != kDrawn.npos) return kReplacements[at];
  if (character < 0x80) return static_cast<char>(character);
  return character >= 0x2580 && character <= 0x259f ? '#' : '?';
}

bool has_a_child_ended() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

}  // namespace

struct Screen::State {
  format::Fd keys, to_keys;
  format::Fd saved_file;     // memfd with the content of a file to be written
  std::string capture_path;  // empty: captures are not written
  std::FILE* input = stdin;
  KeyPress last_key;    // a file is written only after its key, since the reading process is untrusted
  std::string pending;  // bytes of an incomplete frame
  SCREEN* screen = nullptr;
  bool is_open = false, has_colours = false, is_unicode = false;
  ScreenSize last;
  std::array<struct sigaction, kFatalSignals.size()> actions_before{};

  Result<> open();
  void close();
  Result<> take(std::string_view text);
  Result<> show(const Frame& frame);
  void draw(const Frame& frame);
  void draw_run(int row, const StyledText& run);
  attr_t look(Style style, bool is_selected, short& pair) const;
  Result<> answer(KeyPress press);
  KeyPress save(const Frame& frame);
  int terminal() const { return ::fileno(input); }
  KeyPress read_key(bool waits);
  KeyPress key_of(int result, wint_t code);
  KeyPress mouse_key();
  static ScreenSize size();
};

std::string why_no_screen() {
  const std::string_view term = variable("TERM");
  if (term.empty()) return "TERM is not set";
  int error = 0;
  if (term == "dumb" || ::setupterm(nullptr, STDOUT_FILENO, &error) != OK)
    return "TERM=" + std::string(term) + (term == "dumb" ? " has no cursor to move" : " is not known here");
  const bool can_move = cursor_address != nullptr && cursor_address != reinterpret_cast<char*>(-1);
  return can_move ? "" : "TERM=" + std::string(term) + " has no cursor to move";
}

Result<Screen> Screen::make() {
  auto state = std::make_unique<State>();
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return system_error("a pipe for keys", errno);
  state->keys = format::Fd(ends[0]);
  state->to_keys = format::Fd(ends[1]);
  state->saved_file = format::Fd(::memfd_create("tacho", MFD_CLOEXEC));
  if (!state->saved_file) return system_error("a file in memory", errno);
  if (::isatty(STDIN_FILENO) == 0) {
    state->input = std::fopen("/dev/tty", "re");
    if (state->input == nullptr) return system_error("the terminal's keys: /dev/tty", errno);
  }
  return Screen(std::move(state));
}

Screen::Screen(std::unique_ptr<State> state) : state_(std::move(state)) {}
Screen::Screen(Screen&&) noexcept = default;
Screen::~Screen() {
  if (!state_) return;
  state_->close();
  if (state_->input != stdin) std::fclose(state_->input);
}

int Screen::keys() const { return state_->keys.get(); }

int Screen::saved_file() const { return state_->saved_file.get(); }
void Screen::save_captures(std::string path) { state_->capture_path = std::move(path); }

// Writes the file under a new name (O_EXCL): never overwrites a file or follows a link.
KeyPress Screen::State::save(const Frame& frame) {
  constexpr unsigned kMostNames = 10'000;
  const auto failed = [](int code) {
    return KeyPress{.key = Key::NotSaved, .size = {}, .row = 0, .column = static_cast<std::uint16_t>(code)};
  };
  const bool is_capture = frame.saved_as == SavedAs::Capture;
  const bool is_asked_for = std::exchange(last_key, {}).is(is_capture ? 'w' : 'P');
  if (!is_asked_for || (is_capture && capture_path.empty())) return failed(EINVAL);
  const std::uint64_t bytes = frame.saved_bytes;
  for (unsigned number = 0; number < kMostNames; ++number) {
    const std::string path = saved_path(frame.saved_as, is_capture ? capture_path : frame.saved_name, number);
    if (!format::check_output_way(path)) return failed(EACCES);
    format::Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file && errno == EEXIST) continue;
    if (!file) return failed(errno);
    int code = 0;
    std::array<char, std::size_t{64} << 10> piece{};
    for (std::uint64_t at = 0; at < bytes && code == 0;) {
      const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), bytes - at));
      const ssize_t got = ::pread(saved_file.get(), piece.data(), wanted, static_cast<off_t>(at));
      const ssize_t done = got > 0 ? ::write(file.get(), piece.data(), static_cast<std::size_t>(got)) : got;
      if (done <= 0) code = done < 0 ? errno : EIO;
      at += static_cast<std::uint64_t>(std::max<ssize_t>(done, 0));
    }
    if (::close(file.release()) != 0 && code == 0) code = errno;
    if (code == 0)
      return {.key = Key::Saved, .size = {}, .row = 0, .column = static_cast<std::uint16_t>(number)};
    (void)::unlink(path.c_str());
    return failed(code);
  }
  return failed(EEXIST);
}

ScreenPlan Screen::plan() const {
  const auto open_output = [state = state_.get()]() -> Result<OutputFile> {
    return OutputFile(sandbox::Output{.write = [state](std::string_view text) -> Result<OutputFile::Reader> {
                                        if (auto done = state->take(text); !done)
                                          return std::move(done.error());
                                        return OutputFile::Reader::There;
                                      },
                                      .finish = [state]() -> Result<> {
                                        state->close();
                                        return Done{};
                                      },
                                      .is_reader_gone = [] { return false; },
                                      .is_for_person = true});
  };
  return {.open_output = open_output, .kept = {keys(), saved_file()}};
}

Result<> Screen::State::open() {
  if (is_open) return Done{};
  if (screen == nullptr) {
    std::setlocale(LC_CTYPE, "");
    is_unicode = std::string_view(::nl_langinfo(CODESET)) == "UTF-8";
    saved_terminal().terminal = terminal();
    ::tcgetattr(terminal(), &saved_terminal().modes);
    ::use_tioctl(TRUE);
    screen = ::newterm(nullptr, stdout, input);
    if (screen == nullptr)
      return Error{"curses has no description of the terminal '" + std::string(variable("TERM")) + "'"};
    ::set_escdelay(25);
    has_colours = ::has_colors() && variable("NO_COLOR").empty();
    if (has_colours) {
      ::start_color();
      ::use_default_colors();
      for (std::size_t i = 1; i < kLooks.size(); ++i)
        ::init_pair(static_cast<short>(i), kLooks[i].foreground, kLooks[i].background);
      constexpr int kManyColours = 256;
      for (std::size_t i = 0; COLORS >= kManyColours && i < kHeatStyles; ++i)
        ::init_pair(static_cast<short>(heat_style(i)), i < kHeatStyles / 2 ? COLOR_WHITE : COLOR_BLACK,
                    kHeatColours[i]);
      ::init_pair(kSelectedPair, COLOR_BLACK, COLOR_YELLOW);
    }
    save_leave_sequence();
  }
  // Ctrl-C stays a signal, so that it ends this process also while the other one is busy.
  ::cbreak();
  ::noecho();
  ::nonl();
  ::keypad(::stdscr, TRUE);
  // Home and End of terminals with a wrong TERM: tmux with TERM=xterm, the Linux console.
  for (const auto& [sequence, key] : {std::pair{"\033[1~", KEY_HOME},
                                      {"\033[7~", KEY_HOME},
                                      {"\033[H", KEY_HOME},
                                      {"\033OH", KEY_HOME},
                                      {"\033[4~", KEY_END},
                                      {"\033[8~", KEY_END},
                                      {"\033[F", KEY_END},
                                      {"\033OF", KEY_END}})
    (void)::define_key(sequence, key);
  ::meta(::stdscr, TRUE);
  termios modes{};
  if (::tcgetattr(terminal(), &modes) == 0) {
    modes.c_cc[VSUSP] = _POSIX_VDISABLE;  // Ctrl-Z is read as a key, so that the terminal is restored before
                                          // this process stops
    modes.c_iflag &= ~static_cast<tcflag_t>(IXON);
    ::tcsetattr(terminal(), TCSADRAIN, &modes);
  }
  ::mousemask(BUTTON1_PRESSED | BUTTON1_CLICKED | BUTTON1_DOUBLE_CLICKED | BUTTON4_PRESSED | BUTTON5_PRESSED,
              nullptr);
  ::mouseinterval(0);
  saved_terminal().is_on_screen = true;
  struct sigaction action {};
  action.sa_handler = restore_and_raise;
  for (std::size_t i = 0; i < kFatalSignals.size(); ++i) {
    ::sigaction(kFatalSignals[i], nullptr, &actions_before[i]);
    if (actions_before[i].sa_handler != SIG_IGN) ::sigaction(kFatalSignals[i], &action, nullptr);
  }
  is_open = true;
  return Done{};
}

void Screen::State::close() {
  if (!is_open) return;
  ::mousemask(0, nullptr);
  ::curs_set(1);
  ::endwin();
  saved_terminal().is_on_screen = false;
  ::tcsetattr(terminal(), TCSADRAIN, &saved_terminal().modes);
  for (std::size_t i = 0; i < kFatalSignals.size(); ++i)
    ::sigaction(kFatalSignals[i], &actions_before[i], nullptr);
  is_open = false;
}

Result<> Screen::State::take(std::string_view text) {
  pending += text;
  while (pending.size() >= kLengthBytes) {
    format::Cursor in(std::as_bytes(std::span(pending)), std::endian::little);
    const auto length = in.read<std::uint32_t>();
    if (length > kMostFrameBytes) return Error{"a frame of the screen is too long"};
    if (in.left() < length) return Done{};
    auto frame = decode_frame(in.take_bytes(length));
    if (!frame) return std::move(frame.error());
    pending.erase(0, kLengthBytes + length);
    if (auto done = show(*frame); !done) return done;
  }
  return Done{};
}

Result<> Screen::State::show(const Frame& frame) {
  if (auto done = open(); !done) return done;
  if (frame.begins) {
    // Drops keys that an earlier reading process did not read.
    std::array<char, kKeyBytes> key{};
    pollfd news{keys.get(), POLLIN, 0};
    while (::poll(&news, 1, 0) > 0 && ::read(keys.get(), key.data(), key.size()) > 0) {
    }
  }
  // The first frame is empty and requests the size.
  if (frame.draws && frame.size == size()) draw(frame);
  if (frame.saved_bytes == 0) return answer(read_key(frame.waits));
  const KeyPress saved = save(frame);
  (void)!::ftruncate(saved_file.get(), 0);
  return answer(saved);
}

attr_t Screen::State::look(Style style, bool is_selected, short& pair) const {
  const Look& one = kLooks.at(static_cast<std::size_t>(style));
  pair = 0;
  if (!has_colours) return is_selected ? A_REVERSE : one.mono;
  pair = is_selected ? kSelectedPair : static_cast<short>(style);
  return style == Style::Heading || style == Style::Notice ? A_BOLD : A_NORMAL;
}

void Screen::State::draw_run(int row, const StyledText& run) {
  std::wstring wide;
  std::string_view rest = run.text;
  int column = run.column;
  const int right = COLS;
  while (!rest.empty()) {
    const auto [character, size] = first_character(rest);
    rest.remove_prefix(size);
    // wcwidth() of the system decides here, since curses uses it.
    wchar_t shown = static_cast<wchar_t>(character);
    if (!is_unicode || ::wcwidth(shown) < 0) shown = static_cast<wchar_t>(ascii_of(character));
    const int width = std::max(::wcwidth(shown), 0);
    if (column + width > right) break;
    column += width;
    wide += shown;
  }
  if (!wide.empty()) ::mvaddnwstr(row, run.column, wide.c_str(), static_cast<int>(wide.size()));
}

void Screen::State::draw(const Frame& frame) {
  ::curs_set(0);
  ::erase();
  for (std::size_t row = 0; row < frame.rows.size() && static_cast<int>(row) < LINES; ++row) {
    const FrameRow& one = frame.rows[row];
    short pair = 0;
    const attr_t fill = look(one.fill, one.is_selected, pair);
    ::attr_set(fill, pair, nullptr);
    if (fill != A_NORMAL || pair != 0) ::mvhline(static_cast<int>(row), 0, ' ', COLS);
    for (const StyledText& run : one.runs) {
      const bool is_selected = one.is_selected && run.style != Style::Box && run.style != Style::Bar;
      const attr_t attributes = look(run.style, is_selected, pair);
      ::attr_set(attributes, pair, nullptr);
      draw_run(static_cast<int>(row), run);
    }
  }
  ::attr_set(A_NORMAL, 0, nullptr);
  if (frame.cursor) {
    ::move(frame.cursor->first, frame.cursor->second);
    ::curs_set(1);
  }
  ::refresh();
}

ScreenSize Screen::State::size() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {std::min<std::uint16_t>(size.ws_col, kMostSide), std::min<std::uint16_t>(size.ws_row, kMostSide)};
}

Result<> Screen::State::answer(KeyPress press) {
  press.size = last = size();
  if (press.key != Key::None) last_key = press;
  const std::string bytes = encode(press);
  if (::write(to_keys.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
    return system_error("the pipe for keys", errno);
  return Done{};
}

// None: the frame does not wait and no key was pressed, or the other process exited.
KeyPress Screen::State::read_key(bool waits) {
  constexpr int kLookEvery = 200;  // ms between checks whether the other process exited
  for (;;) {
    ::timeout(waits ? kLookEvery : 0);
    wint_t code = 0;
    const int result = ::get_wch(&code);
    if (result != ERR) {
      const KeyPress press = key_of(result, code);
      if (press.key != Key::None || !waits) return press;
      continue;
    }
    if (size() != last) {
      ::resizeterm(size().height, size().width);
      return {.key = Key::Resize, .size = {}};
    }
    if (!waits || has_a_child_ended()) return {};
    // A terminal that hung up gives no more keys.
    pollfd news{terminal(), POLLIN, 0};
    if (::poll(&news, 1, 0) > 0 && (news.revents & (POLLHUP | POLLERR)) != 0) ::raise(SIGHUP);
  }
}

KeyPress Screen::State::mouse_key() {
  MEVENT event{};
  if (::getmouse(&event) != OK) return {};
  KeyPress press;
  if ((event.bstate & BUTTON4_PRESSED) != 0) press.key = Key::WheelUp;
  if ((event.bstate & BUTTON5_PRESSED) != 0) press.key = Key::WheelDown;
  if ((event.bstate & (BUTTON1_PRESSED | BUTTON1_CLICKED)) != 0) press.key = Key::Click;
  if ((event.bstate & BUTTON1_DOUBLE_CLICKED) != 0) press.key = Key::DoubleClick;
  press.row = static_cast<std::uint16_t>(std::max(event.y, 0));
  press.column = static_cast<std::uint16_t>(std::max(event.x, 0));
  return press;
}

KeyPress Screen::State::key_of(int result, wint_t code) {
  struct Pair {
    int curses;
    Key key;
  };
  static constexpr Pair kKeys[] = {{KEY_UP, Key::Up},
                                   {KEY_DOWN, Key::Down},
                                   {KEY_LEFT, Key::Left},
                                   {KEY_RIGHT, Key::Right},
                                   {KEY_PPAGE, Key::PageUp},
                                   {KEY_NPAGE, Key::PageDown},
                                   {KEY_HOME, Key::Home},
                                   {KEY_END, Key::End},
                                   {KEY_BTAB, Key::BackTab},
                                   {KEY_DC, Key::Delete},
                                   {KEY_BACKSPACE, Key::Backspace},
                                   {KEY_ENTER, Key::Enter},
                                   {KEY_F(1), Key::F1},
                                   {KEY_RESIZE, Key::Resize}};
  if (result == KEY_CODE_YES) {
    if (code == KEY_MOUSE) return mouse_key();
    const auto* const pair = std::ranges::find(kKeys, static_cast<int>(code), &Pair::curses);
    return {.key = pair == std::end(kKeys) ? Key::None : pair->key, .size = {}};
  }
  constexpr wint_t kStop = 26, kErase = 8, kRedraw = 12;  // Ctrl-Z, Ctrl-H, Ctrl-L
  if (code == kStop) {
    close();
    ::kill(0, SIGSTOP);  // the process group, as the terminal would
    (void)open();
  }
  if (code == kStop || code == kRedraw) {
    ::clearok(::stdscr, TRUE);
    return {.key = Key::Resize, .size = {}};
  }
  if (code == '\r') return {.key = Key::Enter, .size = {}};
  if (code == kErase) return {.key = Key::Backspace, .size = {}};
  return {.key = static_cast<Key>(code), .size = {}};
}

}  // namespace tacho::report
