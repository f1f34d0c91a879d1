// Losses: values and gradients against PyTorch, tiles against the whole, and numbers far out.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "golden_file.h"
#include "numeric_differentiation.h"
#include "rltools/devices/generic.h"
#include "rltools/nn/loss.h"

using namespace rlt;

TEST_CASE("Huber's loss is a parabola within 1 and straight beyond, and so is its gradient") {
  const double prediction[] = {3.0, -1.5, 0.25, 7.0, 2.0};
  const double target[] = {2.5, 0.5, 0.25, 4.0, 1.0};
  double gradient[5];
  // differences 0.5, -2, 0, 3, 1
  const double loss = huber_loss<5>(Generic{}, prediction, target, 10.0, gradient);
  CHECK(loss == doctest::Approx((0.125 + 1.5 + 0 + 2.5 + 0.5) / 10).epsilon(1e-15));
  const double expected[] = {0.05, -0.1, 0, 0.1, 0.1};
  for (int i = 0; i < 5; i++) CHECK(gradient[i] == doctest::Approx(expected[i]).epsilon(1e-15));
}

TEST_CASE_TEMPLATE("losses and gradients are PyTorch's", T, double, float) {
  const golden::File file("losses.bin");
  const double bound = sizeof(T) == 8 ? 1e-15 : 5e-7;
  const auto convert = [&](const char* name) {
    return std::vector<T>(file[name].begin(), file[name].end());
  };
  const std::vector<T> prediction = convert("prediction"), target = convert("target");
  std::vector<T> gradient(13), expected = convert("mean_squared_error");
  const T error =
      mean_squared_error<13>(Generic{}, prediction.data(), target.data(), T(13), gradient.data());
  CHECK(error == doctest::Approx(static_cast<double>(expected[0])).epsilon(bound));
  CHECK(numeric::relative_difference(gradient, file["prediction_gradient"]) <= bound);

  const std::vector<T> logits = convert("logits");
  const std::vector<int> label(file["label"].begin(), file["label"].end());
  std::vector<T> logits_gradient(130);
  const T entropy = softmax_cross_entropy<13, 10>(Generic{}, logits.data(), label.data(), T(13),
                                                  logits_gradient.data());
  expected = convert("cross_entropy");
  CHECK(entropy == doctest::Approx(static_cast<double>(expected[0])).epsilon(bound));
  CHECK(numeric::relative_difference(logits_gradient, file["logits_gradient"]) <= bound);
}

TEST_CASE("cross-entropy stays finite where the exponential overflows or the class is impossible") {
  const float logits[2 * 3] = {200.0f, -200.0f, 0.0f, 1e4f, -1e4f, 0.0f};
  const int likely[2] = {0, 0}, unlikely[2] = {1, 1};
  float gradient[6];
  CHECK(softmax_cross_entropy<2, 3>(Generic{}, logits, likely, 2.0f, gradient) == 0.0f);
  for (const float g : gradient) CHECK(g == 0.0f);
  CHECK(softmax_cross_entropy<2, 3>(Generic{}, logits, unlikely, 2.0f, gradient) ==
        doctest::Approx(200.0f + 1e4f));
  CHECK(gradient[0] == 0.5f);
  CHECK(gradient[1] == -0.5f);
  CHECK(gradient[2] == 0.0f);
}

TEST_CASE("a loss of numbers that are not finite is not finite") {
  const float nan = math::kQuietNan;
  const float prediction[2] = {nan, 1.0f}, target[2] = {0.0f, 0.0f};
  const int label = 1;
  float gradient[2];
  CHECK(std::isnan(mean_squared_error<2>(Generic{}, prediction, target, 2.0f, gradient)));
  CHECK(std::isnan(softmax_cross_entropy<1, 2>(Generic{}, prediction, &label, 1.0f, gradient)));
}
