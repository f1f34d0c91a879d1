// The connection to the program that plays an experiment's episodes: a Unix-domain socket in Linux'
// abstract namespace, whose name the environment variable RLT_ENVIRONMENT_SERVER has. No file is
// left of it when that program ends. One request at a time, and one answer to each. The host tools
// have the other end (host/rltools_host/gymnasium_tasks/server_socket.py).
//
// All numbers are 32 bits wide, in this machine's byte order. First a greeting, which is sent back
// as it is where both ends agree; then requests, each with an action, and answers, each with an
// observation. The greeting has the digest of all that was compiled of the task, so that no program
// learns one task while another is played.
#pragma once

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
constexpr std::uint32_t kVersion = 2;

enum class Request : std::uint32_t { reset = 1, step = 2 };
struct RequestHeader {
  Request request;
  std::uint32_t slot;  // which environment
  std::uint32_t seed;  // of a reset
  std::uint32_t reserved;
};

// A step that is lost was not taken, as the environment failed; `over` is the last answer.
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

  // One sentence, or null as long as there is somebody who answers.
  const char* unavailable() const { return sentence_[0] == '\0' ? nullptr : sentence_; }

  // False where there is no answer, nor will be; observation is then as before.
  template <int ObservationDim, int ActionDim>
  bool ask(const RequestHeader& request, const float* action, AnswerHeader& answer,
           float (&observation)[ObservationDim]) {
    if (unavailable() != nullptr) return false;
    unsigned char sent[sizeof request + ActionDim * sizeof(float)];
    __builtin_memcpy(sent, &request, sizeof request);
    __builtin_memcpy(sent + sizeof request, action, ActionDim * sizeof(float));
    unsigned char received[sizeof answer + ObservationDim * sizeof(float)];
    if (!send_all(sent, sizeof sent) || !receive_all(received, sizeof received)) {
      say("the program that plays its episodes has ended", "");
      return false;
    }
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
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::size_t length = std::strlen(name);
    if (length >= sizeof address.sun_path) {
      return say("the name of its environment's socket is too long: %s", name);
    }
    __builtin_memcpy(address.sun_path + 1, name, length);  // a zero before it: it is no path
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
    socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket_ < 0 || ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
        !is_of_this_user()) {
      return say("no program answers at its environment's socket %s", name);
    }
    Greeting answer{};
    if (!send_all(&greeting, sizeof greeting) || !receive_all(&answer, sizeof answer) ||
        __builtin_memcmp(&answer, &greeting, sizeof greeting) != 0) {
      say("the program at %s plays another task than this one was compiled for", name);
    }
  }

  // Names in the abstract namespace are open to every user of the machine.
  bool is_of_this_user() const {
    ucred other{};
    socklen_t size = sizeof other;
    return ::getsockopt(socket_, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 &&
           other.uid == ::getuid();
  }

  bool send_all(const void* data, std::size_t count) {
    const char* rest = static_cast<const char*>(data);
    while (count > 0) {
      const ssize_t sent = ::send(socket_, rest, count, MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return false;
      rest += sent;
      count -= static_cast<std::size_t>(sent);
    }
    return true;
  }

  bool receive_all(void* data, std::size_t count) {
    char* rest = static_cast<char*>(data);
    while (count > 0) {
      const ssize_t received = ::recv(socket_, rest, count, 0);
      if (received < 0 && errno == EINTR) continue;
      if (received <= 0) return false;
      rest += received;
      count -= static_cast<std::size_t>(received);
    }
    return true;
  }

  void say(const char* format, const char* value) {
    std::snprintf(sentence_, sizeof sentence_, format, value);
  }

  int socket_ = -1;
  char sentence_[256] = "";
};

}  // namespace rlt::external
