// The connection to the program that plays an experiment's episodes, by the environment variable
// RLT_ENVIRONMENT_SERVER: the name of a Unix-domain socket in Linux' abstract namespace, of which
// no file is left when that program ends; or PORT:TOKEN, a TCP port of this machine and what is
// sent there first. The host tools have the other end
// (host/rltools_host/environments/server_socket.py) and choose: a round trip over TCP takes half as
// long again, and other systems have TCP alone.
//
// All numbers are 32 bits wide, in this machine's byte order. First a greeting, which is sent back
// as it is where both ends agree; then one request at a time. A request is a header and `count`
// actions, and has an answer for each of them, in this order; a reset has no action and one answer.
// An answer is a header and an observation. The other end reads a whole request before it answers,
// and this one sends the next when it has read all answers: neither waits to write while the other
// does. The greeting has the digest of all that was compiled of the task, so that no program learns
// one task while another is played.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace rlt::external {

struct Greeting {
  std::uint32_t magic, version, observation_dim, action_dim;
  std::uint32_t task[4];  // the digest of its headers
};
constexpr std::uint32_t kMagic = 0x45544c52u;  // "RLTE"
constexpr std::uint32_t kVersion = 3;

enum class Request : std::uint32_t { reset = 1, step = 2 };
struct RequestHeader {
  Request request;
  std::uint32_t slot;   // which environment: the first of those that step, which follow each other
  std::uint32_t seed;   // of a reset
  std::uint32_t count;  // of the environments that step
};

// A step that is lost was not taken, as the environment failed; `over` is the last answer, whatever
// the request.
enum class Answer : std::uint32_t { done = 0, lost = 1, over = 2 };
struct AnswerHeader {
  Answer answer;
  float reward;
  std::uint32_t terminated, truncated;
};

class Connection {
 public:
  Connection(std::uint32_t observation_dim, std::uint32_t action_dim,
             const std::uint32_t (&task)[4]) {
    open(std::getenv("RLT_ENVIRONMENT_SERVER"),
         {kMagic, kVersion, observation_dim, action_dim, {task[0], task[1], task[2], task[3]}});
  }
  ~Connection() {
    if (socket_ >= 0) ::close(socket_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Return one sentence, or null as long as the other program answers.
  const char* unavailable() const { return sentence_[0] == '\0' ? nullptr : sentence_; }

  // Begin a request, whose actions put() adds.
  void ask(const RequestHeader& request) {
    put(&request, sizeof request);
    if (unavailable() == nullptr) awaited_ = request.count > 0 ? request.count : 1;
  }

  // Put bytes of a request. They are sent at the latest when the answer is taken.
  void put(const void* data, std::size_t count) {
    const char* rest = static_cast<const char*>(data);
    while (count > 0 && unavailable() == nullptr) {
      const std::size_t room = kBuffer - unsent_;
      const std::size_t part = count < room ? count : room;
      __builtin_memcpy(sent_ + unsent_, rest, part);
      unsent_ += part;
      rest += part;
      count -= part;
      if (unsent_ == kBuffer) flush();
    }
  }

  // Return whether answers to the last request are still to be taken.
  bool is_awaiting() const { return awaited_ > 0; }

  // Take the next answer to the last request. Return false where there is none, nor will be;
  // observation is then as before, as it is where the step is lost.
  template <int ObservationDim>
  bool take(AnswerHeader& answer, float (&observation)[ObservationDim]) {
    flush();
    unsigned char received[sizeof answer + ObservationDim * sizeof(float)];
    if (!receive(received, sizeof received)) return false;
    awaited_--;
    __builtin_memcpy(&answer, received, sizeof answer);
    if (answer.answer == Answer::over) {
      say("the program that plays its episodes has given up", "");
      return false;
    }
    if (answer.answer == Answer::done) {
      __builtin_memcpy(observation, received + sizeof answer, ObservationDim * sizeof(float));
    }
    return true;
  }

 private:
  void open(const char* name, const Greeting& greeting) {
    if (name == nullptr || name[0] == '\0') {
      return say("no program plays its episodes: `rlt train` starts one", "");
    }
    const char* token = std::strchr(name, ':');
    if (!(token != nullptr ? connect_to_port(name, token + 1) : connect_to_name(name))) {
      return say("no program answers at its environment's socket %s", name);
    }
    Greeting answer{};
    put(&greeting, sizeof greeting);
    flush();
    if (!receive(&answer, sizeof answer) ||
        __builtin_memcmp(&answer, &greeting, sizeof greeting) != 0) {
      say("the program at %s plays another task than this one was compiled for", name);
    }
  }

  bool connect_to_port(const char* port, const char* token) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(std::strtoul(port, nullptr, 10)));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int at_once = 1;
    if (!connect_to(AF_INET, &address, sizeof address) ||
        ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once) != 0) {
      return false;
    }
    put(token, std::strlen(token));  // sent with the greeting
    return true;
  }

  bool connect_to(int family, const void* address, std::size_t size) {
    socket_ = ::socket(family, SOCK_STREAM, 0);
    return socket_ >= 0 && ::connect(socket_, static_cast<const sockaddr*>(address),
                                     static_cast<socklen_t>(size)) == 0;
  }

#ifdef __linux__
  bool connect_to_name(const char* name) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::size_t length = std::strlen(name);
    if (length >= sizeof address.sun_path) return false;
    __builtin_memcpy(address.sun_path + 1, name, length);  // a zero before it: it is no path
    return connect_to(AF_UNIX, &address, offsetof(sockaddr_un, sun_path) + 1 + length) &&
           is_of_this_user();
  }

  // Return whether the other end is this user's: names in the abstract namespace are open to every
  // user of the machine.
  bool is_of_this_user() const {
    ucred other{};
    socklen_t size = sizeof other;
    return ::getsockopt(socket_, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 &&
           other.uid == ::getuid();
  }
  static constexpr int kNoSignal = MSG_NOSIGNAL;
#else
  bool connect_to_name(const char*) { return false; }
  static constexpr int kNoSignal = 0;  // board.cpp ignores it
#endif

  void flush() {
    const char* rest = sent_;
    while (unsent_ > 0 && unavailable() == nullptr) {
      const ssize_t sent = ::send(socket_, rest, unsent_, kNoSignal);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return say_ended();
      rest += sent;
      unsent_ -= static_cast<std::size_t>(sent);
    }
  }

  // Receive `count` bytes. All that has arrived is fetched at once, and kept until it is asked for.
  bool receive(void* data, std::size_t count) {
    char* rest = static_cast<char*>(data);
    while (count > 0 && unavailable() == nullptr) {
      if (taken_ == arrived_) {
        const ssize_t received = ::recv(socket_, received_, kBuffer, 0);
        if (received < 0 && errno == EINTR) continue;
        if (received <= 0) say_ended();
        taken_ = 0;
        arrived_ = received > 0 ? static_cast<std::size_t>(received) : 0;
      }
      const std::size_t there = arrived_ - taken_;
      const std::size_t part = count < there ? count : there;
      __builtin_memcpy(rest, received_ + taken_, part);
      taken_ += part;
      rest += part;
      count -= part;
    }
    return unavailable() == nullptr;
  }

  void say_ended() { say("the program that plays its episodes has ended", ""); }

  void say(const char* format, const char* value) {
    std::snprintf(sentence_, sizeof sentence_, format, value);
    awaited_ = 0;
  }

  static constexpr std::size_t kBuffer = 16384;
  int socket_ = -1;
  std::uint32_t awaited_ = 0;
  std::size_t unsent_ = 0, taken_ = 0, arrived_ = 0;
  char sent_[kBuffer], received_[kBuffer];
  char sentence_[256] = "";
};

}  // namespace rlt::external
