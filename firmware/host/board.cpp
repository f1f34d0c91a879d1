// The board that is a process on this machine: standard input and output are its link.
#include "board_api.h"

#include <cerrno>
#include <cfenv>
#include <chrono>
#include <csignal>

#include <poll.h>
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

int link_output = STDOUT_FILENO;
bool gone = false;
bool host_absent = false;
std::uint64_t next_poll_us = 0;

bool is_ready(int descriptor, short events, int timeout_ms) {
  pollfd request{descriptor, events, 0};
  return ::poll(&request, 1, timeout_ms) > 0;
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
  // The link keeps the descriptor for itself: what a library prints must not come between the
  // messages.
  const int copy = ::dup(STDOUT_FILENO);
  if (copy >= 0 && ::dup2(STDERR_FILENO, STDOUT_FILENO) >= 0) link_output = copy;
}

std::size_t read(std::uint8_t* destination, std::size_t capacity) {
  const std::uint64_t now_us = counter();
  if (gone || now_us < next_poll_us) return 0;
  if (!is_ready(STDIN_FILENO, POLLIN, 0)) {
    next_poll_us = now_us + kPollInterval_us;
    return 0;
  }
  const ssize_t count = ::read(STDIN_FILENO, destination, capacity);
  if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN)) gone = true;
  return count > 0 ? static_cast<std::size_t>(count) : 0;
}

void write(const std::uint8_t* source, std::size_t count) {
  while (count > 0 && !gone) {
    // A pipe that is ready takes PIPE_BUF bytes, which is more than a message, without blocking.
    if (!is_ready(link_output, POLLOUT, host_absent ? 0 : kPatience_ms)) {
      host_absent = true;
      return;
    }
    host_absent = false;
    const ssize_t written = ::write(link_output, source, count);
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
  if (!gone) is_ready(STDIN_FILENO, POLLIN, kIdle_ms);
  next_poll_us = 0;
}

bool should_exit() { return gone; }

}  // namespace rlt::board
