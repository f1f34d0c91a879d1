// The link of the board that is a process: a host that reads, that is slow, that does not read, and
// that has ended.
#include <doctest/doctest.h>

#include "host/board.cpp"

#include <array>
#include <string>
#include <vector>

namespace board = rlt::board;

namespace {

// A host that listens, and a board as after its start.
struct Host {
  int connection = -1;

  Host() {
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(::bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(listener, 1) == 0);
    REQUIRE(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    const std::string link = std::to_string(ntohs(address.sin_port)) + ":token";
    REQUIRE(::setenv("RLT_LINK", link.c_str(), 1) == 0);
    board::gone = board::host_absent = false;
    board::next_poll_us = 0;
    board::initialize();
    connection = ::accept(listener, nullptr, nullptr);
    ::close(listener);
    CHECK(read(5) == std::vector<std::uint8_t>{'t', 'o', 'k', 'e', 'n'});
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  ~Host() { ::close(connection); }

  std::vector<std::uint8_t> read(std::size_t most = 1 << 17) const {
    std::vector<std::uint8_t> bytes(most);
    const ssize_t count = ::recv(connection, bytes.data(), bytes.size(), 0);
    bytes.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
    return bytes;
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
  REQUIRE(::send(host.connection, sent.data(), 2, 0) == 2);
  std::array<std::uint8_t, 4> taken{};
  CHECK(board::read(taken.data(), taken.size()) == 2);
  CHECK(taken[1] == 6);
  CHECK(board::read(taken.data(), taken.size()) == 0);
  CHECK_FALSE(board::should_exit());
}

TEST_CASE("the board ends when its host has ended, whether it reads or writes") {
  const std::array<std::uint8_t, 3> bytes{9, 8, 7};
  {
    const Host host;
    ::shutdown(host.connection, SHUT_RDWR);
    for (int i = 0; i < 100 && !board::should_exit(); i++) {
      board::write(bytes.data(), bytes.size());  // returns; the first one is not yet refused
    }
    CHECK(board::should_exit());
  }
  const Host host;
  std::uint8_t byte = 0;
  ::shutdown(host.connection, SHUT_WR);
  CHECK_FALSE(board::should_exit());
  CHECK(board::read(&byte, 1) == 0);
  CHECK(board::should_exit());
}

TEST_CASE("a host that does not read is waited for once, and is not far behind then") {
  const Host host;
  const std::vector<std::uint8_t> message(280, 1);
  const std::uint64_t start_us = board::counter();
  for (int i = 0; i < 100'000; i++) board::write(message.data(), message.size());
  CHECK(board::counter() - start_us >= 1000 * board::kPatience_ms);
  CHECK(board::host_absent);
  std::size_t kept = 0;
  pollfd request{host.connection, POLLIN, 0};
  while (::poll(&request, 1, 100) > 0) kept += host.read().size();
  CHECK(kept > 10'000);
  CHECK(kept < 100'000 * message.size() / 2);
  board::write(message.data(), message.size());
  CHECK_FALSE(board::host_absent);
  CHECK(host.read() == message);
}
