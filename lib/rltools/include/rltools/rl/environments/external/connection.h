// The connection to the program that plays an experiment's episodes, by the environment variable
// RLT_ENVIRONMENT_SERVER: a name or PORT:TOKEN (socket.h). The host tools have the other end
// (host/rltools_host/environments/server_socket.py) and choose: a round trip over TCP takes half as
// long again, and other systems than Linux have TCP alone.
//
// All numbers are 32 bits wide, in this machine's byte order. First a greeting, which is sent back
// as it is where both ends agree; then one request at a time. A request is a header and `count`
// actions, and has an answer for each of them, in this order; a reset has no action and one answer.
// An answer is a header and an observation. The other end reads a whole request before it answers,
// and this one sends the next when it has read all answers: neither waits to write while the other
// does. The greeting has the digest of all that was compiled of the task, so that no program learns
// one task while another is played.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "rltools/rl/environments/external/socket.h"

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
    const bool is_port = std::strchr(name, ':') != nullptr;
    if (!(is_port ? socket_.connect_to_port(name) : socket_.connect_to_name(name))) {
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

  void flush() {
    if (unsent_ > 0 && unavailable() == nullptr && !socket_.send_all(sent_, unsent_)) say_ended();
    unsent_ = 0;
  }

  // Receive `count` bytes. All that has arrived is fetched at once, and kept until it is asked for.
  bool receive(void* data, std::size_t count) {
    char* rest = static_cast<char*>(data);
    while (count > 0 && unavailable() == nullptr) {
      if (taken_ == arrived_) {
        const long received = socket_.receive(received_, kBuffer);
        if (received < 0) say_ended();
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
  Socket socket_;
  std::uint32_t awaited_ = 0;
  std::size_t unsent_ = 0, taken_ = 0, arrived_ = 0;
  char sent_[kBuffer], received_[kBuffer];
  char sentence_[256] = "";
};

}  // namespace rlt::external
