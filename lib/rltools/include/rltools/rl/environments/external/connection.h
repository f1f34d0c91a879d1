// The connection to the program that plays an experiment's episodes: a Unix-domain socket, whose
// path the environment variable RLT_ENVIRONMENT_SERVER has. One request at a time, and one answer
// to each. The host tools have the other end (host/rltools_host/gymnasium_tasks/wire.py).
//
// All numbers are 32 bits wide, in this machine's byte order. First a greeting, which is sent back
// as it is where both ends agree; then requests, each with an action, and answers, each with an
// observation.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace rlt::external {

struct Greeting {
  std::uint32_t magic, version, observation_dim, action_dim;
};
constexpr std::uint32_t kMagic = 0x45544c52u;  // "RLTE"
constexpr std::uint32_t kVersion = 1;

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
  Connection(std::uint32_t observation_dim, std::uint32_t action_dim) {
    open(std::getenv("RLT_ENVIRONMENT_SERVER"), {kMagic, kVersion, observation_dim, action_dim});
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
  void open(const char* path, const Greeting& greeting) {
    if (path == nullptr || path[0] == '\0') {
      return say("no program plays its episodes: `rlt train` starts one", "");
    }
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (std::snprintf(address.sun_path, sizeof address.sun_path, "%s", path) >=
        static_cast<int>(sizeof address.sun_path)) {
      return say("the path of its environment's socket is too long: %s", path);
    }
    socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket_ < 0 ||
        ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      return say("no program answers at its environment's socket %s", path);
    }
    Greeting answer{};
    if (!send_all(&greeting, sizeof greeting) || !receive_all(&answer, sizeof answer) ||
        __builtin_memcmp(&answer, &greeting, sizeof greeting) != 0) {
      say("the program at %s plays another task", path);
    }
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
