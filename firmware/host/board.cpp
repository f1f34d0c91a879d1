// The board that is a process on this machine. Its link is a TCP connection to the host that has
// started it: the environment variable RLT_LINK says PORT:TOKEN, a port of this machine and what is
// sent there first, so that the host knows its own program.
#include "board_api.h"

#include <cfenv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "rltools/rl/environments/external/socket.h"

#if defined(_WIN32)
#include <windows.h>
#endif

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

external::Socket host;
bool gone = false;
bool host_absent = false;
std::uint64_t next_poll_us = 0;

// Leave Ctrl-C to the host, as a terminal sends it to the whole group: the host decides what it
// means, and ends this program by closing the link. A write that fails says so by its result.
void ignore_signals() {
#if defined(_WIN32)
  SetConsoleCtrlHandler(nullptr, TRUE);
#else
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow
#endif
}

}  // namespace

const bool kCountsInstructions = false;

void initialize() {
  ignore_signals();
  std::fesetenv(FE_DFL_ENV);
  const char* text = std::getenv("RLT_LINK");
  if (text == nullptr || !host.connect_to_port(text, kUnread_bytes)) {
    std::fprintf(stderr, "no host listens for this board's program: `rlt train` starts it\n");
    std::_Exit(2);
  }
}

std::size_t read(std::uint8_t* destination, std::size_t capacity) {
  const std::uint64_t now_us = counter();
  if (gone || now_us < next_poll_us) return 0;
  if (!host.has_input(0)) {
    next_poll_us = now_us + kPollInterval_us;
    return 0;
  }
  const long count = host.receive(destination, capacity);
  if (count < 0) gone = true;
  return count > 0 ? static_cast<std::size_t>(count) : 0;
}

void write(const std::uint8_t* source, std::size_t count) {
  while (count > 0 && !gone) {
    if (!host.takes_output(host_absent ? 0 : kPatience_ms)) {
      host_absent = true;
      return;
    }
    host_absent = false;
    const long written = host.send_now(source, count);
    if (written < 0) {
      gone = true;
      return;
    }
    source += written;
    count -= static_cast<std::size_t>(written);
  }
}

std::uint64_t counter() {
#if defined(_WIN32)
  LARGE_INTEGER ticks, a_second;
  QueryPerformanceCounter(&ticks);
  QueryPerformanceFrequency(&a_second);
  const auto count = static_cast<std::uint64_t>(ticks.QuadPart);
  const auto rate = static_cast<std::uint64_t>(a_second.QuadPart);
  return count / rate * 1000000 + count % rate * 1000000 / rate;
#else
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000 +
         static_cast<std::uint64_t>(now.tv_nsec) / 1000;
#endif
}

void unique_id(std::uint8_t (&id)[16]) {
  for (std::uint8_t& byte : id) byte = 0;
}

StackUse stack_use() { return {0, 0}; }

void idle() {
  if (!gone) host.has_input(kIdle_ms);
  next_poll_us = 0;
}

bool should_exit() { return gone; }

}  // namespace rlt::board
