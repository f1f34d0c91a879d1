// Test: threads
// Requests to the program that plays episodes, which a thread is here: all environments of a step
// in one, answers in their order, and what a run reports where the answers end.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "rltools/rl/environments/external/task.h"
#include "rltools/rl/vector_environment.h"

using namespace rlt;
using external::Answer;
using external::AnswerHeader;
using external::Connection;
using external::Greeting;
using external::Request;
using external::RequestHeader;

namespace {

constexpr std::uint32_t kTask[4] = {1, 2, 3, 4};

// A connection for each number, as a run's program has one for its environment.
template <int Number>
struct Distant : external::Task {
  using Scalar = float;
  static constexpr const char* kName = "distant";
  static constexpr int kObservationDim = 2, kActionDim = 1;
  static constexpr std::uint32_t kStepInterval_us = 1000;
  static constexpr Channel kObservations[] = {{"place", "1", -9.0f, 9.0f},
                                              {"given", "1", -9.0f, 9.0f}};
  static constexpr Channel kActions[] = {{"push", "1", -4.0f, 4.0f}};
  static constexpr std::uint32_t kTask[4] = {1, 2, 3, 4};
  using Observation = float[kObservationDim];
  RLT_DEFINE_FIELDS(State, RLT_EXTERNAL_STATE)
  RLT_DEFINE_CONSTANTS(Parameters, RLT_NO_FIELDS)
};

// The other end, in a thread: it says the greeting, and does then what `play` does with its socket.
// They listen by turns at a name and at a port, where they are told a token first.
class Player {
 public:
  explicit Player(std::function<void(int)> play) {
    static int count = 0;
    const bool is_tcp = count % 2 == 1;
    const int listener = is_tcp ? listen_at_port() : listen_at_name(count);
    count++;
    thread_ = std::thread([listener, is_tcp, play = std::move(play)] {
      const int socket = ::accept(listener, nullptr, nullptr);
      char token[sizeof kToken - 1];
      Greeting greeting{};
      if ((!is_tcp || (read(socket, token) && std::memcmp(token, kToken, sizeof token) == 0)) &&
          read(socket, greeting)) {
        write(socket, greeting);
        play(socket);
      }
      ::close(socket);
      ::close(listener);
    });
  }
  ~Player() { thread_.join(); }

  static constexpr char kToken[] = "token";

  static int listen_at_name(int count) {
    const std::string name = "rlt-test-" + std::to_string(::getpid()) + std::to_string(count);
    ::setenv("RLT_ENVIRONMENT_SERVER", name.c_str(), 1);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    __builtin_memcpy(address.sun_path + 1, name.data(), name.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    const int listener = ::socket(AF_UNIX, SOCK_STREAM, 0);
    REQUIRE(::bind(listener, reinterpret_cast<const sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(listener, 1) == 0);
    return listener;
  }

  static int listen_at_port() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(::bind(listener, reinterpret_cast<const sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(listener, 1) == 0);
    REQUIRE(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    const std::string name = std::to_string(ntohs(address.sin_port)) + ":" + kToken;
    ::setenv("RLT_ENVIRONMENT_SERVER", name.c_str(), 1);
    return listener;
  }

  template <class Data>
  static bool read(int socket, Data& data) {
    return read(socket, &data, sizeof data);
  }
  static bool read(int socket, void* data, std::size_t size) {
    return ::recv(socket, data, size, MSG_WAITALL) == static_cast<ssize_t>(size);
  }
  template <class Data>
  static void write(int socket, const Data& data) {
    write(socket, &data, sizeof data);
  }
  static void write(int socket, const void* data, std::size_t size) {
    CHECK(::send(socket, data, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size));
  }

 private:
  std::thread thread_;
};

struct Whole {  // an answer
  AnswerHeader header;
  float observation[2];
};

using Asked = std::vector<std::string>;

// Answers each environment's step as `answer_of` says, and notes what was asked.
std::function<void(int)> answering(Asked& asked,
                                   std::function<Answer(std::uint32_t slot, int step)> answer_of) {
  return [&asked, answer_of = std::move(answer_of)](int socket) {
    RequestHeader request{};
    for (int step = 0; Player::read(socket, request);) {
      const auto slot = std::to_string(request.slot);
      if (request.request == Request::reset) {
        asked.push_back("reset " + slot);
        Player::write(socket, Whole{{Answer::done, 0, 0, 0}, {0, 0}});
        continue;
      }
      asked.push_back("step " + slot + " and " + std::to_string(request.count));
      std::vector<float> actions(request.count);
      if (!Player::read(socket, actions.data(), actions.size() * sizeof(float))) return;
      for (std::uint32_t i = 0; i < request.count; i++) {
        const std::uint32_t at = request.slot + i;
        const Answer answer = answer_of(at, step);
        const std::uint32_t ends = step == 0 && at == 1;
        Player::write(socket, Whole{{answer, static_cast<float>(at), ends, 0},
                                    {static_cast<float>(at), actions[i]}});
        if (answer == Answer::over) return;
      }
      step++;
    }
  };
}

struct Noting {
  float (&rows)[4][2];
  Transition<float> (&transitions)[4];
  float (&first)[2];
  float* reached(int index, const Transition<float>& transition) const {
    transitions[index] = transition;
    return rows[index];
  }
  float* begun(int) const { return first; }
};

template <class E>
struct Four {
  VectorEnvironment<E, 4> environments{};
  float rows[4][2], first[2];
  Transition<float> transitions[4];

  Four() {
    begin_all(Generic{}, E{}, environments, 1, [&](int) { return first; });
  }
  void step(std::uint32_t number) {
    const float actions[4] = {-1.0f, -0.5f, 0.5f, 1.0f};
    step_all(Generic{}, E{}, environments, 1, number, 1000, actions,
             Noting{rows, transitions, first});
  }
};

}  // namespace

TEST_CASE("all environments step by one request, and episodes begin behind its answers") {
  Asked asked;
  Player player(answering(asked, [](std::uint32_t slot, int step) {
    return slot == 2 && step == 1   ? Answer::lost
           : slot == 1 && step == 2 ? Answer::over
                                    : Answer::done;
  }));
  Four<Distant<0>> run;
  run.step(0);
  const float physical[] = {-4.0f, -2.0f, 2.0f, 4.0f};
  for (int i = 0; i < 4; i++) {
    CAPTURE(i);
    CHECK(run.rows[i][0] == static_cast<float>(i));
    CHECK(run.rows[i][1] == physical[i]);
    CHECK(run.transitions[i].reward == static_cast<float>(i));
    CHECK(run.transitions[i].terminated == (i == 1));
  }
  run.step(4);
  for (int i = 0; i < 4; i++) CHECK(run.transitions[i].lost == (i == 2));
  CHECK(run.rows[2][1] == 2.0f);  // as before
  CHECK(unavailable(Generic{}, Distant<0>{}) == nullptr);
  run.step(8);
  for (int i = 0; i < 4; i++) CHECK(run.transitions[i].lost == (i >= 1));
  const std::string sentence = unavailable(Generic{}, Distant<0>{});
  CHECK(sentence == "the program that plays its episodes has given up");
  run.step(12);
  for (int i = 0; i < 4; i++) CHECK(run.transitions[i].lost);
  const Asked expected = {"reset 0", "reset 1",      "reset 2", "reset 3",     "step 0 and 4",
                          "reset 1", "step 0 and 4", "reset 2", "step 0 and 4"};
  CHECK(asked == expected);
}

TEST_CASE("one environment by itself asks for one step") {
  Asked asked;
  {
    Player player(answering(asked, [](std::uint32_t, int) { return Answer::done; }));
    Connection connection(2, 1, kTask);
    RequestHeader request{Request::reset, 7, 5, 0};
    AnswerHeader answer{};
    float observation[2] = {9, 9};
    CHECK_FALSE(connection.is_awaiting());
    connection.ask(request);
    CHECK(connection.is_awaiting());
    CHECK(connection.take(answer, observation));
    CHECK_FALSE(connection.is_awaiting());
    request = {Request::step, 7, 0, 1};
    const float action = 0.5f;
    connection.ask(request);
    connection.put(&action, sizeof action);
    CHECK(connection.take(answer, observation));
    CHECK(observation[1] == 0.5f);
  }
  CHECK(asked == Asked{"reset 7", "step 7 and 1"});
}

TEST_CASE("requests and answers may be larger than what a socket holds") {
  constexpr int kCount = 64, kWide = 4096;  // a mebibyte each way
  Player player([](int socket) {
    RequestHeader request{};
    if (!Player::read(socket, request)) return;
    std::vector<float> actions(kCount * kWide);
    if (!Player::read(socket, actions.data(), actions.size() * sizeof(float))) return;
    std::vector<unsigned char> answers;
    for (int i = 0; i < kCount; i++) {
      const AnswerHeader header{Answer::done, 0, 0, 0};
      const auto* from = reinterpret_cast<const unsigned char*>(&header);
      answers.insert(answers.end(), from, from + sizeof header);
      from = reinterpret_cast<const unsigned char*>(actions.data() + i * kWide);
      answers.insert(answers.end(), from, from + kWide * sizeof(float));
    }
    Player::write(socket, answers.data(), answers.size());
  });
  Connection connection(kWide, kWide, kTask);
  connection.ask({Request::step, 0, 0, kCount});
  static float action[kWide], observation[kWide];
  for (int i = 0; i < kCount; i++) {
    for (int k = 0; k < kWide; k++) action[k] = static_cast<float>(i * kWide + k);
    connection.put(action, sizeof action);
  }
  for (int i = 0; i < kCount; i++) {
    AnswerHeader answer{};
    REQUIRE(connection.take(answer, observation));
    bool is_same = true;
    for (int k = 0; k < kWide; k++) is_same &= observation[k] == static_cast<float>(i * kWide + k);
    CHECK(is_same);
  }
  CHECK(connection.unavailable() == nullptr);
}

TEST_CASE("answers that end within one leave what was observed, and are told") {
  Player player([](int socket) {
    RequestHeader request{};
    float actions[3];
    if (!Player::read(socket, request) || !Player::read(socket, actions)) return;
    const Whole whole{{Answer::done, 1, 0, 0}, {1, 2}};
    Player::write(socket, whole);
    Player::write(socket, &whole, sizeof whole - 1);  // as one that is killed
  });
  Connection connection(2, 1, kTask);
  connection.ask({Request::step, 0, 0, 3});
  const float actions[3] = {};
  connection.put(actions, sizeof actions);
  AnswerHeader answer{};
  float observation[2] = {};
  CHECK(connection.take(answer, observation));
  observation[0] = 7;
  CHECK_FALSE(connection.take(answer, observation));
  CHECK(observation[0] == 7);
  CHECK(std::string(connection.unavailable()) == "the program that plays its episodes has ended");
  CHECK_FALSE(connection.is_awaiting());
  CHECK_FALSE(connection.take(answer, observation));
}
