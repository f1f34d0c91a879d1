// The board that is a process on this machine. Its link is a TCP connection to the host that has
// started it: the environment variable RLT_LINK says PORT:TOKEN, a port of this machine and what is
// sent there first, so that the host knows its own program.
#include "board_api.h"

#include <cerrno>
#include <cfenv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace rlt::board {

namespace {

// Interval at which a busy program asks the system for input, and the time for which an idle one
// waits for it.
constexpr std::uint64_t kPollInterval_us = 1000;
constexpr int kIdle_ms = 100;
// A host that has read nothing for so long is taken for absent: what would be written is dropped
// until it reads again.
constexpr int kPatience_ms = 2000;
// Bytes that the system may hold for a host that does not read; the rest is dropped, so that a
// host which reads again is not far behind.
constexpr int kUnread_bytes = 1 << 16;

int connection = -1;
bool gone = false;
bool host_absent = false;
std::uint64_t next_poll_us = 0;

bool is_ready(int descriptor, short events, int timeout_ms) {
  pollfd request{descriptor, events, 0};
  return ::poll(&request, 1, timeout_ms) > 0;
}

// Connect to the port and send the token, or return false.
bool connect_to_host(const char* text) {
  char* token = nullptr;
  const unsigned long port = std::strtoul(text, &token, 10);
  if (port == 0 || port > 65535 || *token != ':') return false;
  token++;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  connection = ::socket(AF_INET, SOCK_STREAM, 0);
  if (connection < 0) return false;
  const int unread_bytes = kUnread_bytes, at_once = 1;
  ::setsockopt(connection, SOL_SOCKET, SO_SNDBUF, &unread_bytes, sizeof unread_bytes);
  ::setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
  const auto length = static_cast<ssize_t>(std::strlen(token));
  return ::connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
         ::send(connection, token, std::strlen(token), 0) == length;
}

}  // namespace

const bool kCountsInstructions = false;

void initialize() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is a write that fails
  // Ctrl-C in a terminal goes to the whole group; the host decides what it means, and ends this
  // program by closing the link.
  std::signal(SIGINT, SIG_IGN);
  std::fesetenv(FE_DFL_ENV);
  const char* text = std::getenv("RLT_LINK");
  if (text == nullptr || !connect_to_host(text)) {
    std::fprintf(stderr, "no host listens for this board's program: `rlt train` starts it\n");
    std::_Exit(2);
  }
}

std::size_t read(std::uint8_t* destination, std::size_t capacity) {
  const std::uint64_t now_us = counter();
  if (gone || now_us < next_poll_us) return 0;
  if (!is_ready(connection, POLLIN, 0)) {
    next_poll_us = now_us + kPollInterval_us;
    return 0;
  }
  const ssize_t count = ::recv(connection, destination, capacity, 0);
  if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN)) gone = true;
  return count > 0 ? static_cast<std::size_t>(count) : 0;
}

void write(const std::uint8_t* source, std::size_t count) {
  while (count > 0 && !gone) {
    if (!is_ready(connection, POLLOUT, host_absent ? 0 : kPatience_ms)) {
      host_absent = true;
      return;
    }
    host_absent = false;
    const ssize_t written = ::send(connection, source, count, MSG_DONTWAIT);
    if (written >= 0) {
      source += written;
      count -= static_cast<std::size_t>(written);
    } else if (errno != EINTR && errno != EAGAIN) {
      gone = true;
    }
  }
}

std::uint64_t counter() {
  using std::chrono::duration_cast;
  const auto since_boot = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(duration_cast<std::chrono::microseconds>(since_boot).count());
}

void unique_id(std::uint8_t (&id)[16]) {
  for (std::uint8_t& byte : id) byte = 0;
}

StackUse stack_use() { return {0, 0}; }

void idle() {
  if (!gone) is_ready(connection, POLLIN, kIdle_ms);
  next_poll_us = 0;
}

bool should_exit() { return gone; }

}  // namespace rlt::board
