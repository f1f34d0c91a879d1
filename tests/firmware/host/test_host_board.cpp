// The link of the board that is a process: a host that reads, that is slow, that does not read, and
// that has ended.
#include <doctest/doctest.h>

#include "host/board.cpp"

#include <array>
#include <vector>

namespace board = rlt::board;

namespace {

// Pipes in the place of standard input and output, and a board as after its start.
struct Host {
  int saved_input = ::dup(STDIN_FILENO), saved_output = ::dup(STDOUT_FILENO);
  std::array<int, 2> to_board{}, from_board{};

  Host() {
    REQUIRE(::pipe(to_board.data()) == 0);
    REQUIRE(::pipe(from_board.data()) == 0);
    ::dup2(to_board[0], STDIN_FILENO);
    ::dup2(from_board[1], STDOUT_FILENO);
    ::close(to_board[0]);
    ::close(from_board[1]);
    board::gone = board::host_absent = false;
    board::next_poll_us = 0;
    board::initialize();
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  ~Host() {
    ::dup2(saved_input, STDIN_FILENO);
    ::dup2(saved_output, STDOUT_FILENO);
    for (const int each : {saved_input, saved_output, board::link_output}) ::close(each);
    stop_writing();
    stop_reading();
  }

  void stop_writing() { close_once(to_board[1]); }
  void stop_reading() { close_once(from_board[0]); }
  std::vector<std::uint8_t> read() const {
    std::vector<std::uint8_t> bytes(1 << 17);
    const ssize_t count = ::read(from_board[0], bytes.data(), bytes.size());
    bytes.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
    return bytes;
  }

 private:
  static void close_once(int& descriptor) {
    if (descriptor >= 0) ::close(descriptor);
    descriptor = -1;
  }
};

}  // namespace

TEST_CASE("each byte arrives, also one alone") {
  const Host host;
  const std::array<std::uint8_t, 3> bytes{9, 8, 7};
  board::write(bytes.data(), 1);
  CHECK(host.read() == std::vector<std::uint8_t>{9});
  board::write(bytes.data(), 3);
  CHECK(host.read() == std::vector<std::uint8_t>{9, 8, 7});
  const std::array<std::uint8_t, 2> sent{5, 6};
  REQUIRE(::write(host.to_board[1], sent.data(), 2) == 2);
  std::array<std::uint8_t, 4> taken{};
  CHECK(board::read(taken.data(), taken.size()) == 2);
  CHECK(taken[1] == 6);
  CHECK(board::read(taken.data(), taken.size()) == 0);
  CHECK_FALSE(board::should_exit());
}

TEST_CASE("what a library prints does not come between the messages") {
  const Host host;
  REQUIRE(::write(STDOUT_FILENO, "", 1) == 1);  // to standard error
  const std::uint8_t byte = 3;
  board::write(&byte, 1);
  CHECK(host.read() == std::vector<std::uint8_t>{3});
}

TEST_CASE("the board ends when its host has ended, whether it reads or writes") {
  const std::array<std::uint8_t, 3> bytes{9, 8, 7};
  {
    Host host;
    host.stop_reading();
    board::write(bytes.data(), bytes.size());  // returns
    CHECK(board::should_exit());
  }
  Host host;
  std::uint8_t byte = 0;
  host.stop_writing();
  CHECK_FALSE(board::should_exit());
  CHECK(board::read(&byte, 1) == 0);
  CHECK(board::should_exit());
}

TEST_CASE("a host that does not read is waited for once") {
  const Host host;
  const std::vector<std::uint8_t> message(280, 1);
  const std::uint64_t start_us = board::counter();
  for (int i = 0; i < 1000; i++) board::write(message.data(), message.size());
  CHECK(board::counter() - start_us >= 1000 * board::kPatience_ms);
  CHECK(board::host_absent);
  const std::size_t kept = host.read().size();
  CHECK(kept > 10'000);
  CHECK(kept <= 1 << 16);  // what a pipe holds; the rest was dropped
  board::write(message.data(), message.size());
  CHECK_FALSE(board::host_absent);
  CHECK(host.read() == message);
}
