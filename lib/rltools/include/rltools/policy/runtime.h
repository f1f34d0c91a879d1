// Runs a policy image (docs/policy_image.md) of any shape: what a board does with a policy that it
// is sent. Nothing is allocated, and the numbers are those of forward() in nn/mlp.h and of
// forward_step() in nn/window_passes.h.
#pragma once

#include "rltools/policy/contract_check.h"

namespace rlt {

// Return the floats of scratch memory that policy_forward() needs: each layer's input and output;
// for recurrent ones the maximum of products, and the hidden state after the step.
constexpr std::size_t scratch_floats_to_run(std::size_t widest, std::size_t max_products,
                                            std::size_t state_dim) {
  return 2 * widest + max_products + state_dim;
}
// Return the floats of a recurrent layer's products: 6 widths of a GRU, 8 of an LSTM.
constexpr std::size_t products_of(int gates, std::size_t width) {
  return 2 * static_cast<std::size_t>(gates) * width;
}
inline std::size_t scratch_floats_to_run(const PolicyView& policy) {
  return scratch_floats_to_run(policy.widest, policy.max_products, state_dim(policy));
}
// Return where in the scratch memory the hidden state (state_dim) lies that the last step has led
// to.
inline float* next_state(const PolicyView& policy, float* scratch) {
  return scratch + scratch_floats_to_run(policy) - state_dim(policy);
}

// Return those that check_examples() needs: an output and an action besides.
inline std::size_t scratch_floats_to_accept(const PolicyView& policy) {
  return scratch_floats_to_run(policy) + policy.output_dim + policy.header->action_dim;
}

// Run the network on the normalized observation (observation_dim), and return where in `scratch`,
// which has scratch_floats_to_run(), its outputs (output_dim) lie: a step from the hidden state
// `state` (state_dim), which may be next_state(); null where that is zero, or there is none.
// visit(values, count) sees the output of every layer, which of a GRU is its state.
template <class Device, class Visit>
const float* policy_outputs(Device device, const PolicyView& policy,
                            const AliasingFloat* observation, const float* state, float* scratch,
                            Visit&& visit) {
  const PolicyImageHeader& header = *policy.header;
  float* input = scratch;
  float* result = scratch + policy.widest;
  float* products = result + policy.widest;
  float* next = next_state(policy, scratch);
  if (state == nullptr) {
    for (std::uint32_t i = 0; i < state_dim(policy); i++) next[i] = 0.0f;
    state = next;
  }
  for (int i = 0; i < header.observation_dim; i++) {
    input[i] = policy.mean == nullptr ? observation[i]
                                      : (observation[i] - policy.mean[i]) * policy.inverse_std[i];
  }
  const AliasingFloat* weights = policy.parameters;
  for (int layer = 0; layer < header.layer_count; layer++) {
    const int in = policy.layers[layer].input_dim;
    const int out = policy.layers[layer].output_dim;
    if (is_recurrent(policy.layers[layer])) {
      const int gates = gate_count(policy.layers[layer]);
      const RecurrentParameters parameters = recurrent_parameters(gates, in, out, weights);
      recurrent_forward_at_run_time(device, gates, in, out, parameters, input, state, products,
                                    next, result);
      state += state_dim(policy.layers[layer]);
      next += state_dim(policy.layers[layer]);
      weights = parameters.end;
    } else {
      const AliasingFloat* bias = weights + static_cast<std::size_t>(in) * out;
      dense_forward_at_run_time(device, static_cast<Activation>(policy.layers[layer].activation),
                                in, out, weights, bias, input, result);
      weights = bias + out;
    }
    visit(static_cast<const float*>(result), out);
    float* previous = input;
    input = result;
    result = previous;
  }
  return input;
}

// Set output (output_dim) to the same, in [-1, 1] where the last activation is tanh. `state` moves
// on; null as above.
template <class Device, class Visit>
void policy_forward(Device device, const PolicyView& policy, const AliasingFloat* observation,
                    float* state, float* output, float* scratch, Visit&& visit) {
  const float* outputs = policy_outputs(device, policy, observation, state, scratch, visit);
  for (std::uint32_t i = 0; i < policy.output_dim; i++) output[i] = outputs[i];
  if (state == nullptr) return;
  const float* next = next_state(policy, scratch);
  for (std::uint32_t i = 0; i < state_dim(policy); i++) state[i] = next[i];
}
template <class Device>
void policy_forward(Device device, const PolicyView& policy, const AliasingFloat* observation,
                    float* state, float* output, float* scratch) {
  policy_forward(device, policy, observation, state, output, scratch, [](const float*, int) {});
}

// Do the same, and return the checksum of all layers' outputs.
template <class Device>
std::uint32_t policy_trace(Device device, const PolicyView& policy,
                           const AliasingFloat* observation, float* state, float* output,
                           float* scratch) {
  std::uint32_t trace = 0;
  policy_forward(device, policy, observation, state, output, scratch,
                 [&trace](const float* values, int count) {
                   trace = crc32(values, sizeof(float) * static_cast<std::size_t>(count), trace);
                 });
  return trace;
}

// Set each choice to the number of its largest output that the observation (observation_dim) does
// not forbid, the first of equal ones; scale what is no choice.
template <class Observation>
inline void choose_action(const PolicyView& policy, const Observation* observation,
                          const float* output, float* action) {
  const PolicyImageChoice* choices = policy.choices;
  for (int i = 0; i < policy.header->action_dim; i++) {
    const PolicyImageChannel& channel = policy.actions[i];
    const int count = detail::choice_count(channel);
    const auto is_allowed = [&](int number) {
      if (!policy.is_masked) return true;
      const int mask = detail::mask_of(policy, i, choices[number]);
      return mask < 0 || observation[mask] >= kMinAllowed;
    };
    action[i] = count > 0 ? static_cast<float>(largest_allowed(output, count, is_allowed))
                          : physical_action(*output, channel.minimum, channel.maximum);
    output += count > 0 ? count : 1;
    choices += count;
  }
}

// Compute action (action_dim) in the contract's units, from the network's output (output_dim),
// which is finite, for this observation; the two may be the same array.
template <class Observation>
inline void scale_action(const PolicyView& policy, const Observation* observation,
                         const float* output, float* action) {
  if (policy.choices != nullptr) return choose_action(policy, observation, output, action);
  for (int i = 0; i < policy.header->action_dim; i++) {
    action[i] = physical_action(output[i], policy.actions[i].minimum, policy.actions[i].maximum);
  }
}

// Run the image's examples and compare every bit, of all layers, outputs and actions, and so of
// the hidden states; `where` is the example.
template <class Device>
PolicyVerdict check_examples(Device device, const PolicyView& policy, float* scratch,
                             std::size_t scratch_floats) {
  const PolicyImageHeader& header = *policy.header;
  if (scratch_floats < scratch_floats_to_accept(policy)) return {PolicyReason::too_large, 0};
  float* output = scratch + scratch_floats_to_run(policy);
  float* action = output + policy.output_dim;
  for (std::uint32_t i = 0; i < header.example_count; i++) {
    const AliasingFloat* observation = example_observation(policy, i);
    const AliasingFloat* expected = observation + header.observation_dim;
    const bool continues = policy.recurrence != nullptr && detail::begins_word(policy, i) == 0;
    float* state = continues ? next_state(policy, scratch) : nullptr;
    const std::uint32_t trace = policy_trace(device, policy, observation, state, output, scratch);
    scale_action(policy, observation, output, action);
    // trace, output and action lie one after another, in the image as here
    if (__builtin_memcmp(&trace, expected, 4) != 0 ||
        __builtin_memcmp(output, expected + 1,
                         sizeof(float) * (policy.output_dim + header.action_dim)) != 0) {
      return {PolicyReason::example_not_reproduced, i};
    }
  }
  return {PolicyReason::accepted, 0};
}

// Sources of an action. All but `from_policy` are faults: the action is the safe one then.
enum class ActionSource : std::uint8_t {
  from_policy,
  no_policy,               // none has been accepted
  observation_not_finite,  // an element is infinite or not a number
  output_not_finite,       // of the network
};

namespace detail {
// Index of a past action in the history, or kSumIndex and the observation that is summed up; it
// lies in scratch memory.
typedef std::uint16_t __attribute__((__may_alias__)) AliasingIndex;
constexpr std::uint32_t kSumIndex = 0x8000u;

// The copy of an image that is checked and runs, which nobody else can write; with 0 bytes none.
template <std::size_t Bytes>
struct ImageCopy {
  alignas(4) std::uint8_t bytes[Bytes] = {};
  const std::uint8_t* take(const std::uint8_t* image, std::size_t count) {
    if (count != 0) __builtin_memcpy(bytes, image, count);  // `image` may be null
    return bytes;
  }
};
template <>
struct ImageCopy<0> {
  const std::uint8_t* take(const std::uint8_t* image, std::size_t) { return image; }
};
}  // namespace detail

// Runs one accepted image, and nothing else. With `ImageBytes` it copies an image of at most as
// many bytes before it checks it; without, it runs the image in place, whose bytes outlive it and
// do not change (a slot's do not). It takes images that need at most `ScratchFloats`
// (scratch_floats_to_accept; behind what it takes to run there is the hidden state, and an index
// for every two past actions or sums), past actions of at most `HistoryTicks` ticks ago, and sums
// and a hidden state where there is a history. To keep the last good policy until the next one is
// accepted takes two runners, or slots.h.
template <std::size_t ScratchFloats, int HistoryTicks = 0, std::size_t ImageBytes = 0>
class PolicyRunner : detail::ImageCopy<ImageBytes> {
 public:
  // Limits of an accepted image.
  static constexpr std::size_t kMaxInputs = ScratchFloats / 2;

  explicit constexpr PolicyRunner(const PolicyContract& contract) : contract_(contract) {}
  PolicyRunner(const PolicyRunner&) = delete;
  PolicyRunner& operator=(const PolicyRunner&) = delete;

  // Accept an image if it passes all checks; one that is not copied lies on a four-byte boundary.
  // The policy that was here is given up.
  template <class Device>
  PolicyVerdict accept(Device device, const std::uint8_t* image, std::size_t count) {
    is_accepted_ = false;
    if (ImageBytes != 0 && count > ImageBytes) return {PolicyReason::too_large, 0};
    image = detail::ImageCopy<ImageBytes>::take(image, count);
    PolicyVerdict verdict = parse_policy(image, count, view_);
    if (verdict.accepted()) verdict = check_contract(view_, contract_, std::uint32_t{HistoryTicks});
    if (verdict.accepted() && HistoryTicks == 0 && view_.recurrence != nullptr) {
      verdict = {PolicyReason::state_not_kept, 0};
    }
    if (verdict.accepted()) verdict = check_examples(device, view_, scratch_, ScratchFloats);
    if (verdict.accepted()) verdict = find_added_inputs();
    is_accepted_ = verdict.accepted();
    if (is_accepted_) reset_state();
    return verdict;
  }
  void give_up() { is_accepted_ = false; }

  // Return the accepted image's parts; null where none has been accepted.
  const PolicyView* view() const { return is_accepted_ ? &view_ : nullptr; }
  const PolicyContract& contract() const { return contract_; }

  // Compute action (action_dim) in the contract's units for an observation (observation_dim):
  // finite and within the channels' ranges, whatever the observation.
  template <class Device>
  ActionSource act(Device device, const float* observation, float* action) {
    static_assert(HistoryTicks == 0, "a policy that may see its last actions acts in time");
    const ActionSource source = run(device, observation, action);
    if (source != ActionSource::from_policy) take_safe_action(contract_, action);
    return source;
  }

  // Do the same without what a caller has checked already: an accepted policy, a finite input. The
  // input is all that the image takes, past actions and sums too. A hidden state is zero before,
  // and the one that is kept stays. Return false where an output is not finite.
  template <class Device>
  bool forward(Device device, const float* input, float* action) {
    return forward(device, input, action, [](const float*, int) {});
  }
  // Do the same, and call visit(values, count) with the output of every layer; `state`: the hidden
  // one before.
  template <class Device, class Visit>
  bool forward(Device device, const float* input, float* action, Visit&& visit,
               const float* state = nullptr) {
    const float* output = policy_outputs(device, view_, input, state, scratch_, visit);
    if (!all_finite(output, view_.output_dim)) return false;
    scale_action(view_, input, output, action);
    return true;
  }
  // Do the same for the contract's observation: past actions come from an ActionHistory of
  // `HistoryTicks`, and sums from `sums`. normalized (action_dim) is what belongs into the history
  // next: the network's output, clamped to [-1, 1], as training has it; of a choice its number,
  // from -1 for the first to 1 for the last. The hidden state is the one of reset_state() or
  // take_state().
  template <class Device, class History>
  bool forward_in_time(Device device, const float* observation, const History& history,
                       const ObservationSums& sums, float* normalized, float* action) {
    const int observed = contract_.observation_dim;
    const std::uint32_t added = added_input_count(view_, contract_);
    const detail::AliasingIndex* indices = added_indices();
    for (int i = 0; i < observed; i++) scratch_[i] = observation[i];
    const float* sum = sums.values;
    for (std::uint32_t i = 0; i < added; i++) {
      const std::uint32_t index = indices[i];
      scratch_[observed + i] = (index & detail::kSumIndex) != 0 ? *sum++ : history.at(index);
    }
    const float* output =
        policy_outputs(device, view_, scratch_, state(), scratch_, [](const float*, int) {});
    if (!all_finite(output, view_.output_dim)) return false;
    scale_action(view_, observation, output, action);
    normalize_output(output, action, normalized);
    return true;
  }
  // Set the hidden state from which steps go to zero; take the one that was kept; keep the one that
  // the last step has led to.
  void reset_state() {
    for (std::uint32_t i = 0; i < state_dim(view_); i++) state()[i] = 0.0f;
  }
  void take_state() {
    for (std::uint32_t i = 0; i < state_dim(view_); i++) state()[i] = kept_state()[i];
  }
  void keep_state() {
    const float* next = next_state(view_, scratch_);
    for (std::uint32_t i = 0; i < state_dim(view_); i++) kept_state()[i] = next[i];
  }
  // Return the hidden state (state_dim) of the accepted image, after the last step.
  const float* last_state() { return next_state(view_, scratch_); }
  // Add the contract's observation, on which the policy has acted, to the sums that it asks for.
  void sum_up(const float* observation, ObservationSums& sums) {
    const std::uint32_t added = added_input_count(view_, contract_);
    const float step_s = sum_step_s<float>(contract_.step_interval_us);
    float* sum = sums.values;
    for (std::uint32_t i = 0; i < added; i++) {
      const std::uint32_t index = added_indices()[i];
      if ((index & detail::kSumIndex) == 0) continue;
      const PolicyImageChannel& channel = view_.observations[contract_.observation_dim + i];
      const float value = observation[index - detail::kSumIndex];
      *sum = next_sum(*sum, value, step_s, channel.minimum, channel.maximum);
      sum++;
    }
  }

 private:
  template <class Device>
  ActionSource run(Device device, const float* observation, float* action) {
    if (!is_accepted_) return ActionSource::no_policy;
    if (!all_finite(observation, static_cast<std::uint64_t>(contract_.observation_dim))) {
      return ActionSource::observation_not_finite;
    }
    return forward(device, observation, action) ? ActionSource::from_policy
                                                : ActionSource::output_not_finite;
  }

  void normalize_output(const float* output, const float* action, float* normalized) const {
    for (int i = 0; i < contract_.action_dim; i++) {
      const Channel& channel = contract_.actions[i];
      normalized[i] = view_.choices == nullptr
                          ? math::clamp(output[i], -1.0f, 1.0f)
                          : normalized_action(action[i], channel.minimum, channel.maximum);
    }
  }

  float* state() { return scratch_ + scratch_floats_to_run(view_); }
  float* kept_state() { return state() + state_dim(view_); }
  detail::AliasingIndex* added_indices() {
    float* behind = kept_state() + state_dim(view_);
    return reinterpret_cast<detail::AliasingIndex*>(behind);
  }
  // Look up the past actions and sums that the image asks for, once, so that no tick compares
  // names.
  PolicyVerdict find_added_inputs() {
    const std::uint32_t count = added_input_count(view_, contract_);
    if (scratch_floats_to_run(view_) + 2 * state_dim(view_) + (count + 1) / 2 > ScratchFloats) {
      return {PolicyReason::too_large, 0};
    }
    for (std::uint32_t i = 0; i < count; i++) {
      const PolicyImageChannel& channel = view_.observations[contract_.observation_dim + i];
      const int summed = summed_observation(channel, contract_);
      const std::uint32_t index = summed >= 0
                                      ? detail::kSumIndex + static_cast<std::uint32_t>(summed)
                                      : history_index(past_action(channel, contract_), contract_);
      added_indices()[i] = static_cast<detail::AliasingIndex>(index);
    }
    return {PolicyReason::accepted, 0};
  }

  const PolicyContract contract_;
  float scratch_[ScratchFloats] = {};
  PolicyView view_ = {};
  bool is_accepted_ = false;
};

}  // namespace rlt
