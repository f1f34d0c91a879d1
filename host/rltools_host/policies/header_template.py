"""The text of the header that `rlt export RUN --to c` writes; policies/export.py fills it in."""

HEADER_TEMPLATE = """\
// {title}
// Written by `rlt export RUN --to c`. Self-contained: C++17, GCC or Clang, no allocation, no
// library. A processor without fused multiply-add (Cortex-M4F and M7, x86-64-v3 and AArch64 have
// it) computes it on integers: slower, with the same bits.
//
// Call evaluate() every {step_interval_us:,} us. It always sets the action: to the policy's, or to
// kSafeAction where there is none, and then it returns false. Observations:
{observation_comment}
// Actions:
{action_comment}
//
// verify() runs the examples below: true where this processor computes the bits of the one that
// trained the policy. Weights are stored (in, out); each output starts at its bias and accumulates
// over the inputs in order, one fused multiply-add each.
#pragma once

#include <cstdint>

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "this policy needs IEEE-754 arithmetic: compile without -ffast-math and -ffinite-math-only"
#endif

namespace {name} {{

inline constexpr char kExperiment[] = {experiment};
inline constexpr char kEnvironment[] = {environment};
// SHA-256 of the training state that the policy was taken from.
inline constexpr char kStateSha256[] =
    "{state_sha256}";
inline constexpr std::uint32_t kTrainingSteps = {step};
inline constexpr std::uint32_t kTrainingSeed = {seed};
inline constexpr std::uint32_t kStepInterval_us = {step_interval_us};
inline constexpr int kObservationDim = {observation_dim};
inline constexpr int kActionDim = {action_dim};
inline constexpr int kExampleCount = {example_count};

struct Channel {{
  const char* name;
  const char* unit;
  float minimum, maximum;
}};

inline constexpr Channel kObservations[kObservationDim] = {{
{observations}
}};

inline constexpr Channel kActions[kActionDim] = {{
{actions}
}};

// What is done where the policy gives no finite action: the safe action of the contract that it is
// made for, or else the middle of every range. kSafeOutput is the same normalised to [-1, 1].
inline constexpr float kSafeAction[kActionDim] = {{{safe_action}}};
inline constexpr float kSafeOutput[kActionDim] = {{{safe_output}}};

// What the device that wrote the policy computed: `output` is the action normalised to [-1, 1],
// `action` the same in its unit, `trace` the CRC-32 of every layer's output.
struct Example {{
  float observation[kObservationDim];
  float output[kActionDim];
  float action[kActionDim];
  std::uint32_t trace;
}};

inline constexpr Example kExamples[kExampleCount] = {{
{examples}
}};

namespace detail {{

{parameters}

{core_math}

{activations}

// outputs [first, first + Count) of a layer
template <int In, int Out, int Count, class Activation>
inline void dense_outputs(const float* weights, const float* bias, const float* input,
                          float* output, int first, Activation activation) {{
  float sum[Count];
  for (int k = 0; k < Count; k++) sum[k] = bias[first + k];
  for (int i = 0; i < In; i++) {{
    for (int k = 0; k < Count; k++) {{
      sum[k] = fma(input[i], weights[i * Out + first + k], sum[k]);
    }}
  }}
  for (int k = 0; k < Count; k++) output[first + k] = activation(sum[k] + 0.0f);
}}

template <int In, int Out, class Activation>
inline void dense(const float (&weights)[In * Out], const float (&bias)[Out], const float* input,
                  float* output, Activation activation) {{
  constexpr int kBlock = 8;
  constexpr int kWhole = Out / kBlock * kBlock;
  for (int first = 0; first < kWhole; first += kBlock) {{
    dense_outputs<In, Out, kBlock>(weights, bias, input, output, first, activation);
  }}
  if constexpr (kWhole < Out) {{
    dense_outputs<In, Out, Out - kWhole>(weights, bias, input, output, kWhole, activation);
  }}
}}

// The network; visit(values, count) sees the output of every layer.
template <class Visitor>
inline void forward(const float* observation, float* output, Visitor&& visit) {{
{input}
{layers}
}}

// False where one is infinite or not a number.
inline bool all_finite(const float* values, int count) {{
  for (int i = 0; i < count; i++) {{
    if (!(absolute(values[i]) <= 0x1.fffffep127f)) return false;
  }}
  return true;
}}

inline void scale_action(const float* output, float* action) {{
  for (int i = 0; i < kActionDim; i++) {{
    const float half_range = 0.5f * (kActions[i].maximum - kActions[i].minimum);
    const float centre = 0.5f * (kActions[i].maximum + kActions[i].minimum);
    const float physical = fma(clamp(output[i], -1.0f, 1.0f), half_range, centre);
    action[i] = clamp(physical, kActions[i].minimum, kActions[i].maximum);
  }}
}}

inline std::uint32_t crc32(const float* values, int count, std::uint32_t previous) {{
  std::uint32_t remainder = ~previous;
  for (int i = 0; i < count; i++) {{
    std::uint32_t word;
    __builtin_memcpy(&word, values + i, 4);
    remainder ^= word;
    for (int bit = 0; bit < 32; bit++) {{
      remainder = (remainder >> 1) ^ ((remainder & 1u) != 0u ? 0xedb88320u : 0u);
    }}
  }}
  return ~remainder;
}}

}}  // namespace detail

// Action normalised to [-1, 1] for an observation in its units. True: it is the policy's. False: an
// element of the observation or of the network's output is infinite or not a number, and the action
// is kSafeOutput.
inline bool evaluate_normalised(const float* observation, float* output) {{
  if (detail::all_finite(observation, kObservationDim)) {{
    detail::forward(observation, output, [](const float*, int) {{}});
    if (detail::all_finite(output, kActionDim)) return true;
  }}
  for (int i = 0; i < kActionDim; i++) output[i] = kSafeOutput[i];
  return false;
}}

// Action in its unit, within its range, for an observation in its units. True: it is the policy's.
// False, as above: it is kSafeAction.
inline bool evaluate(const float* observation, float* action) {{
  float output[kActionDim];
  if (evaluate_normalised(observation, output)) {{
    detail::scale_action(output, action);
    return true;
  }}
  for (int i = 0; i < kActionDim; i++) action[i] = kSafeAction[i];
  return false;
}}

// True where every bit of the examples is reproduced: every layer, output and action.
inline bool verify() {{
  for (const Example& example : kExamples) {{
    float output[kActionDim], action[kActionDim];
    std::uint32_t trace = 0;
    detail::forward(example.observation, output, [&trace](const float* values, int count) {{
      trace = detail::crc32(values, count, trace);
    }});
    detail::scale_action(output, action);
    if (trace != example.trace || __builtin_memcmp(output, example.output, sizeof(output)) != 0 ||
        __builtin_memcmp(action, example.action, sizeof(action)) != 0) {{
      return false;
    }}
  }}
  return true;
}}

}}  // namespace {name}
"""
