// The dense layer's three products by a block's threads. Each computes tiles of the result in its
// registers; the loop that a tile replaces is that of kernels/register_tile.h.
#pragma once

#include "rltools/kernels/block/threads.h"
#include "rltools/kernels/register_tile.h"
#include "rltools/nn/dense.h"

namespace rlt {

namespace block {

struct Tile {
  int rows, columns;
};

// Return the tile with which the threads take the fewest instructions for a product (rows,
// columns): one for each multiply-add of a term, and a quarter of one for each operand, as four are
// loaded at once. At most 40 sums are held in registers.
constexpr Tile tile_of(int rows, int columns) {
  constexpr int kRows[] = {10, 8, 5, 4, 2, 1}, kColumns[] = {8, 4, 2, 1};
  Tile best{1, 1};
  long least = -1;
  for (const int tile_rows : kRows) {
    for (const int tile_columns : kColumns) {
      const int sums = tile_rows * tile_columns;
      if (rows % tile_rows != 0 || columns % tile_columns != 0 || sums > 40) continue;
      const long tiles = static_cast<long>(rows / tile_rows) * (columns / tile_columns);
      const long cost = (tiles + kThreads - 1) / kThreads * (4 * sums + tile_rows + tile_columns);
      if (least >= 0 && cost >= least) continue;
      least = cost;
      best = {tile_rows, tile_columns};
    }
  }
  return best;
}

// Rows that are whole vectors of four numbers are loaded as such, where the first one begins at
// one: networks' and batches' do, but for layers behind one of an odd width.
template <class A>
constexpr bool kHasVectors = (A::kRow == 1 ? A::kColumn : A::kRow) % 4 == 0;
constexpr int kVectorBytes = 16;

template <class A>
bool begins_at_vector(const float* array) {
  return !kHasVectors<A> || reinterpret_cast<std::uintptr_t>(array) % kVectorBytes == 0;
}
template <class A>
const float* as_vectors(const float* array) {
  if constexpr (!kHasVectors<A>) return array;
  return static_cast<const float*>(__builtin_assume_aligned(array, kVectorBytes));
}

// The product of a (Rows, Depth) and b (Depth, Columns): start and finish as in product_tile(). The
// threads with the fewest tiles begin to call beside(0), beside(1), … up to Beside-1.
template <int Rows, int Columns, int Depth, class A, class B, int Beside = 0, class Start,
          class Finish, class Task>
void product(Block device, const float* a, const float* b, const Start& start, const Finish& finish,
             const Task& beside) {
  const auto work_beside = [beside](int thread) {
    for (int i = kThreads - 1 - thread; i < Beside; i += kThreads) beside(i);
  };
  if (begins_at_vector<A>(a) && begins_at_vector<B>(b)) {
    device.threads->run([a, b, start, finish, work_beside](int thread) {
      constexpr Tile kTile = tile_of(Rows, Columns);
      constexpr int kAcross = Columns / kTile.columns, kTiles = Rows / kTile.rows * kAcross;
      for (int tile = thread; tile < kTiles; tile += kThreads) {
        kernels::product_tile<kTile.rows, kTile.columns, Depth, A, B>(
            as_vectors<A>(a), as_vectors<B>(b), tile / kAcross * kTile.rows,
            tile % kAcross * kTile.columns, start, finish);
      }
      work_beside(thread);
    });
  } else {
    device.threads->run([a, b, start, finish, work_beside](int thread) {
      for (int i = thread; i < Rows * Columns; i += kThreads) {
        kernels::product_tile<1, 1, Depth, A, B>(a, b, i / Columns, i % Columns, start, finish);
      }
      work_beside(thread);
    });
  }
}

}  // namespace block

template <Activation A, int Batch, int In, int Out>
Block dense_forward(Block device, const float* weights, const float* bias, const float* input,
                    float* output) {
  const block::Input<float> from(device, input, Batch * In);
  const block::Output<float> to(device, output, Batch * Out);
  if (!block::are_shared(weights, bias, from.data, to.data)) {
    dense_forward<A, Batch, In, Out>(Generic{}, weights, bias, input, output);
    return device;
  }
  block::product<Batch, Out, In, kernels::Strides<In, 1>, kernels::Strides<Out, 1>>(
      device, from.data, weights, [bias](int, int out) { return bias[out]; },
      [result = to.data](int row, int out, float sum) {
        result[row * Out + out] = activation_value<A>(sum + 0.0f);
      },
      [](int) {});
  to.copy_back();
  return device;
}

template <int Batch, int In, int Out>
Block dense_backward_weights(Block device, const float* input, const float* output_gradient,
                             float* weights_gradient, float* bias_gradient) {
  if (!block::are_shared(input, output_gradient, weights_gradient, bias_gradient)) {
    dense_backward_weights<Batch, In, Out>(Generic{}, input, output_gradient, weights_gradient,
                                           bias_gradient);
    return device;
  }
  block::product<In, Out, Batch, kernels::Strides<1, In>, kernels::Strides<Out, 1>, Out>(
      device, input, output_gradient,
      [weights_gradient](int in, int out) { return weights_gradient[in * Out + out]; },
      [weights_gradient](int in, int out, float sum) { weights_gradient[in * Out + out] = sum; },
      [output_gradient, bias_gradient](int out) {
        float sum = bias_gradient[out];
        for (int row = 0; row < Batch; row++) sum += output_gradient[row * Out + out];
        bias_gradient[out] = sum;
      });
  return device;
}

template <Activation A, int Batch, int In, int Out>
Block dense_backward_input(Block device, const float* weights, const float* output_gradient,
                           const float* pre_activation, const float* input, float* input_gradient) {
  if (!block::are_shared(weights, output_gradient, pre_activation, input, input_gradient)) {
    dense_backward_input<A, Batch, In, Out>(Generic{}, weights, output_gradient, pre_activation,
                                            input, input_gradient);
    return device;
  }
  block::product<Batch, In, Out, kernels::Strides<Out, 1>, kernels::Strides<1, Out>>(
      device, output_gradient, weights, [](int, int) { return 0.0f; },
      [pre_activation, input, input_gradient](int row, int in, float sum) {
        const int i = row * In + in;
        input_gradient[i] = activation_gradient<A>(pre_activation, input, i, sum);
      },
      [](int) {});
  return device;
}

template <Activation A, int Count>
Block activation_forward(Block device, const float* input, float* output) {
  return block::for_each_element<Count>(
      device, [=](int i) { output[i] = activation_value<A>(input[i]); }, input, output);
}

template <Activation A, int Count>
Block activation_backward(Block device, const float* pre_activation, const float* output,
                          float* gradient) {
  if constexpr (A == Activation::identity) return device;
  return block::for_each_element<Count>(
      device,
      [=](int i) { gradient[i] = activation_gradient<A>(pre_activation, output, i, gradient[i]); },
      pre_activation, output, gradient);
}

}  // namespace rlt
