// Categorical policies, whose outputs are logits: the probability of choice i of n is
//   pi(i) = exp(z_i) / sum_j exp(z_j)
// and of an action with several choices the product. How far one has moved from another, for an
// action that was drawn with logits z and has logits z' now, summed over its choices:
//   log ratio = log pi'(a) - log pi(a),  KL(pi || pi') = sum_i pi(i) (log pi(i) - log pi'(i))
//   H = -sum_i pi'(i) log pi'(i)
//   dlog pi'(a)/dz'_i = [i = a] - pi'(i),  dH/dz'_i = -pi'(i) (log pi'(i) + H)
// Sums are in the order of the choices, on the core's own exponential and logarithm: the same bits
// on each device.
#pragma once

#include "rltools/core/math.h"
#include "rltools/rl/clipped_objective.h"
#include "rltools/rl/environment.h"

namespace rlt {

// The logit of what is forbidden: its probability is exactly 0, and nothing is learned from it.
constexpr double kMaskedLogit = -1e30;

// Mask the logits of the choices that an observation of the environment E forbids, where not all
// choices of an action are forbidden.
template <class E, class T>
void mask_actions([[maybe_unused]] const T* observation, [[maybe_unused]] T* logit) {
  if constexpr (kChoiceMasks<E>.any) {
    for (int i = 0, first = 0; i < E::kActionDim; i++) {
      const int end = first + choice_count(E::kActions[i]);
      bool any = false;
      for (int k = first; k < end; k++) any = any || is_allowed<E>(observation, k);
      for (int k = first; any && k < end; k++) {
        if (!is_allowed<E>(observation, k)) logit[k] = static_cast<T>(kMaskedLogit);
      }
      first = end;
    }
  }
}

// Compute log_probability (count) from logits (count).
template <class T>
void log_softmax(const T* logit, int count, T* log_probability) {
  const T largest = logit[largest_output(logit, count)];
  T sum = T(0);
  for (int i = 0; i < count; i++) sum += math::exp(logit[i] - largest);
  const T log_sum = math::log(sum);
  for (int i = 0; i < count; i++) log_probability[i] = logit[i] - largest - log_sum;
}

// Draw one of `count` choices, with a uniform number of [0, 1).
template <class T>
int draw_choice(const T* logit, int count, T uniform) {
  const T largest = logit[largest_output(logit, count)];
  T sum = T(0);
  for (int i = 0; i < count; i++) sum += math::exp(logit[i] - largest);
  const T drawn = uniform * sum;
  T passed = T(0);
  for (int i = 0; i < count - 1; i++) {
    passed += math::exp(logit[i] - largest);
    if (drawn < passed) return i;
  }
  return count - 1;
}

// Terms that a row adds to the sums of a minibatch.
template <class T>
struct ChoiceRow {
  T objective, kl, entropy;
  std::uint32_t is_clipped;
};

// Compute PPO's clipped objective of an action (ActionDim) of the environment E that was drawn with
// the logits `before` (kOutputDim) and has `outputs`; what was forbidden is so still. gradient
// (kOutputDim) is that of the loss, -(J + ent_coef H) / batch_size, in `outputs`.
template <class E, class T>
ChoiceRow<T> clipped_choices(const T* action, const T* before, const T* outputs, T advantage,
                             T clip_range, T ent_coef, T batch_size, T* gradient) {
  T now[kOutputDim<E>];
  for (int i = 0; i < kOutputDim<E>; i++) {
    const bool is_masked = before[i] <= static_cast<T>(kMaskedLogit);
    now[i] = is_masked ? static_cast<T>(kMaskedLogit) : outputs[i];
  }
  T log_before[kOutputDim<E>], log_now[kOutputDim<E>];
  T log_ratio = T(0), kl = T(0);
  for (int branch = 0, first = 0; branch < E::kActionDim; branch++) {
    const int count = choice_count(E::kActions[branch]);
    log_softmax(before + first, count, log_before + first);
    log_softmax(now + first, count, log_now + first);
    const int chosen = first + static_cast<int>(action[branch]);
    log_ratio += log_now[chosen] - log_before[chosen];
    for (int i = first; i < first + count; i++) {
      kl = math::fma(math::exp(log_before[i]), log_before[i] - log_now[i], kl);
    }
    first += count;
  }
  const auto [objective, slope, is_clipped] =
      clipped_objective(math::exp(log_ratio), advantage, clip_range, batch_size);
  const T weight = ent_coef / batch_size;
  T entropy = T(0);
  for (int branch = 0, first = 0; branch < E::kActionDim; branch++) {
    const int count = choice_count(E::kActions[branch]);
    const int chosen = first + static_cast<int>(action[branch]);
    T own = T(0);
    for (int i = first; i < first + count; i++) {
      own = math::fma(-math::exp(log_now[i]), log_now[i], own);
    }
    for (int i = first; i < first + count; i++) {
      const T probability = math::exp(log_now[i]);
      const T score = (i == chosen ? T(1) : T(0)) - probability;
      gradient[i] = math::fma(slope, score, weight * probability * (log_now[i] + own));
    }
    entropy += own;
    first += count;
  }
  return {objective, kl, entropy, is_clipped};
}

}  // namespace rlt
