// integrations/c/rlt_policy.h beside the core's reader and runtime, on the policy images
// argv[2] and following. Each pair must agree in every bit. argv[1]: damaged copies of each image.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "rlt_policy.h"
#include "rltools/devices/generic.h"
#include "rltools/policy/runtime.h"

namespace {

using Bytes = std::vector<std::uint8_t>;
std::mt19937 draws(1);

void require(bool condition, const char* what) {
  if (condition) return;
  std::printf("differs: %s\n", what);
  std::exit(1);
}
std::uint32_t below(std::uint32_t count) { return static_cast<std::uint32_t>(draws() % count); }

// An array that ends where the image does, so that a sanitizer sees what is read beyond.
struct Words {
  explicit Words(const Bytes& image)
      : values(new std::uint32_t[image.size() / 4 + 1]), bytes(image.size()) {
    words = values.get() + (image.size() % 4 == 0 ? 1 : 0);
    if (bytes != 0) std::memcpy(words, image.data(), bytes);
  }
  std::unique_ptr<std::uint32_t[]> values;
  std::uint32_t* words;
  std::size_t bytes;
  const std::uint8_t* image() const { return reinterpret_cast<const std::uint8_t*>(words); }
};

// -- the reader -----------------------------------------------------------------------------------

bool both_accept(const Words& image, rlt::PolicyView& view, rlt_policy_t& policy) {
  const rlt::PolicyVerdict verdict = rlt::parse_policy(image.image(), image.bytes, view);
  const rlt_reason_t reason = rlt_policy_open(image.words, image.bytes, RLT_WITH_ALL, &policy);
  if (static_cast<int>(verdict.reason) != static_cast<int>(reason)) {
    // A length that is no multiple of four: the core names it once it adds the sections up.
    if (image.bytes % 4 != 0 && reason == RLT_REASON_WRONG_SIZE) return false;
    std::printf("%s here, %s in the core\n", rlt_reason_text(reason),
                rlt::policy_reason_text(verdict.reason));
    require(false, "the reason");
  }
  return verdict.accepted();
}

// -- evaluation -----------------------------------------------------------------------------------

bool same(const float* a, const float* b, std::size_t count) {
  return count == 0 || std::memcmp(a, b, count * sizeof(float)) == 0;
}

std::vector<float> drawn(const rlt::PolicyImageChannel* channels, int count, bool is_wild) {
  static const float kSpecial[] = {0.0f,
                                   -0.0f,
                                   0.5f,
                                   -1e-42f,
                                   3.4028235e38f,
                                   -3.4028235e38f,
                                   __builtin_inff(),
                                   -__builtin_inff(),
                                   __builtin_nanf("")};
  std::vector<float> values;
  for (int i = 0; i < count; i++) {
    std::uniform_real_distribution<float> within(0.0f, 1.0f);
    float value = channels[i].minimum + within(draws) * (channels[i].maximum - channels[i].minimum);
    if (is_wild && below(4) == 0) value = kSpecial[below(9)];
    if (is_wild && below(8) == 0) value *= 1e6f;
    values.push_back(value);
  }
  return values;
}

void compare(const rlt::PolicyView& view, const rlt_policy_t& policy, int rows) {
  std::vector<float> scratch(rlt::scratch_floats_to_accept(view)), ours(rlt_verify_floats(&policy));
  require(scratch.size() == ours.size(), "the scratch memory");
  const std::uint32_t states = rlt::state_dim(view), outputs = view.output_dim;
  std::vector<float> state(states), our_state(states), output(outputs), our_output(outputs);
  std::vector<float> action(view.header->action_dim), our_action(view.header->action_dim);
  for (int row = 0; row < rows; row++) {
    const auto observation = drawn(view.observations, view.header->observation_dim, row % 2 == 1);
    std::vector<float> moved = state;
    bool acts = rlt::all_finite(observation.data(), observation.size());
    if (acts) {
      rlt::policy_forward(rlt::Generic{}, view, observation.data(),
                          states == 0 ? nullptr : moved.data(), output.data(), scratch.data());
      acts = rlt::all_finite(output.data(), outputs);
    }
    if (acts) {
      rlt::scale_action(view, observation.data(), output.data(), action.data());
      state = moved;
    } else if (states > 0 && (view.recurrence->reset_at & rlt::kResetAtFault) != 0) {
      state.assign(states, 0.0f);
    }
    const bool we_act = rlt_policy_evaluate(RLT_WITH_ALL, &policy, observation.data(),
                                            states == 0 ? nullptr : our_state.data(),
                                            our_output.data(), our_action.data(), ours.data());
    require(acts == we_act, "whether the policy acts");
    require(same(state.data(), our_state.data(), states), "the hidden state");
    if (!acts) continue;
    require(same(output.data(), our_output.data(), outputs), "the output");
    require(same(action.data(), our_action.data(), action.size()), "the action");
  }
}

void check_whole(const Words& words) {
  rlt::PolicyView view;
  rlt_policy_t policy;
  require(both_accept(words, view, policy), "the image is refused");
  std::vector<float> scratch(rlt_verify_floats(&policy));
  require(rlt_policy_verify(RLT_WITH_ALL, &policy, scratch.data()), "the examples");
  compare(view, policy, 400);
  std::vector<float> observation(policy.observation_dim), answer(view.output_dim);
  std::vector<float> action(policy.action_dim);
  for (std::uint32_t i = 0; i < policy.example_count; i++) {
    rlt_policy_example(&policy, i, observation.data(), answer.data(), action.data());
    const rlt::AliasingFloat* expected = rlt::example_observation(view, i);
    require(std::memcmp(observation.data(), expected, 4 * observation.size()) == 0, "an example");
    expected += observation.size() + 1;
    require(std::memcmp(answer.data(), expected, 4 * answer.size()) == 0, "an example's output");
    expected += answer.size();
    require(std::memcmp(action.data(), expected, 4 * action.size()) == 0, "an example's action");
  }
}

// Outputs of about every second observation are infinite, by the last layer's numbers: the image
// says what then becomes of the hidden state.
void check_overflowing(Bytes image) {
  rlt::PolicyView view;
  rlt_policy_t policy;
  const Words whole(image);
  require(both_accept(whole, view, policy), "the image is refused");
  const rlt::PolicyImageLayer& last = view.layers[view.header->layer_count - 1];
  if (rlt::is_recurrent(last)) return;
  const auto place = static_cast<std::size_t>(
      reinterpret_cast<const std::uint8_t*>(&last.activation) - whole.image());
  image[place] = static_cast<std::uint8_t>(rlt::Activation::identity);
  const std::uint32_t weights = std::uint32_t{last.input_dim} * last.output_dim;
  const auto first = static_cast<std::size_t>(reinterpret_cast<const std::uint8_t*>(view.examples) -
                                              whole.image()) -
                     4 * (weights + last.output_dim);
  for (std::uint32_t i = 0; i < weights + last.output_dim; i++) {
    const bool is_bias = i >= weights;
    const float value = is_bias || i / last.output_dim % 2 == 0 ? 3.4e38f : -3.4e38f;
    std::memcpy(&image[first + 4 * i], &value, 4);
  }
  const std::uint32_t sum = rlt::policy_image_crc32(image.data(), image.size());
  std::memcpy(&image[12], &sum, 4);
  const Words words(image);
  require(both_accept(words, view, policy), "the image is refused");
  compare(view, policy, 100);
}

// -- damaged images -------------------------------------------------------------------------------

void check_damaged(const Bytes& whole) {
  Bytes image = whole;
  if (below(3) == 0) {  // equal numbers, zeros of both signs: outputs that are equal, or -0
    const std::uint32_t words = static_cast<std::uint32_t>(image.size() / 4);
    const float kEqual[] = {0.0f, -0.0f, -0.0f, 0.5f};
    const float value = kEqual[below(4)];
    std::uint32_t place = 200 + below(words - 200);
    for (std::uint32_t left = below(words); left > 0 && place < words; left--, place++) {
      std::memcpy(&image[4 * place], &value, 4);
    }
  }
  for (std::uint32_t left = below(3); left > 0; left--) {
    // The tables most often, where a word decides about sizes.
    const std::size_t end = below(4) == 0 ? image.size() : image.size() < 900 ? image.size() : 900;
    const std::size_t place = below(static_cast<std::uint32_t>(end));
    const std::uint8_t values[] = {0, 1, 0xff, static_cast<std::uint8_t>(1u << below(8)),
                                   static_cast<std::uint8_t>(below(256))};
    image[place] =
        static_cast<std::uint8_t>(below(2) ? values[below(5)] : image[place] ^ (1u << below(8)));
  }
  if (below(16) == 0) {
    for (std::size_t i = 16 + below(160); i < image.size(); i++) {
      image[i] = static_cast<std::uint8_t>(draws());
    }
  }
  if (below(8) == 0) image.resize(below(static_cast<std::uint32_t>(image.size() + 1)));
  if (image.size() > 16 && below(8) != 0) {  // so that the checksum hides nothing
    const auto bytes = static_cast<std::uint32_t>(image.size());
    if (below(2)) std::memcpy(&image[8], &bytes, 4);
    const std::uint32_t sum = rlt::policy_image_crc32(image.data(), image.size());
    std::memcpy(&image[12], &sum, 4);
  }
  const Words words(image);
  rlt::PolicyView view;
  rlt_policy_t policy;
  if (!both_accept(words, view, policy)) return;
  std::vector<float> scratch(rlt::scratch_floats_to_accept(view)), ours(rlt_verify_floats(&policy));
  const bool is_good =
      rlt::check_examples(rlt::Generic{}, view, scratch.data(), scratch.size()).accepted();
  require(is_good == rlt_policy_verify(RLT_WITH_ALL, &policy, ours.data()), "the examples");
  compare(view, policy, 6);
}

}  // namespace

int main(int argument_count, char** arguments) {
  for (int i = 0; i < rlt::kPolicyReasonCount - 2; i++) {
    require(std::strcmp(rlt_reason_text(static_cast<rlt_reason_t>(i)),
                        rlt::policy_reason_text(static_cast<rlt::PolicyReason>(i))) == 0,
            "a reason's words");
  }
  for (int i = 2; i < argument_count; i++) {
    std::ifstream file(arguments[i], std::ios::binary);
    const Bytes image{std::istreambuf_iterator<char>(file), {}};
    std::printf("%s\n", arguments[i]);
    const Words words(image);
    check_whole(words);
    check_overflowing(image);
    for (int k = std::atoi(arguments[1]); k > 0; k--) check_damaged(image);
  }
  return 0;
}
