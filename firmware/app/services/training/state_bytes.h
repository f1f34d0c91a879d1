// The training state as one array of bytes: the tensors' bytes one after another in the order of
// the visitor, without a copy. This is the checkpoint's payload, and what state_sha256 is taken
// over (docs/protocol.md, "Checkpoint").
#pragma once

#include "rltools/core/sha256.h"
#include "rltools/rl/training.h"

namespace rlt {

// Call visit(std::uint8_t* part, std::uint32_t bytes) for the memory behind bytes [offset, offset
// + count). Pieces before and behind them are not walked through: a file is read in some ten
// thousand parts, and the fields of many environments are a hundred thousand pieces.
template <class E, class Visit>
void for_each_state_part(Training<E>& training, std::uint32_t offset, std::uint32_t count,
                         Visit&& visit) {
  std::uint32_t behind = 0;  // the tensors so far
  for_each_state_tensor(training, [&](const TensorInfo& info, void* data) {
    const std::uint32_t begin = behind;
    behind += info.bytes();
    if (behind <= offset || begin >= offset + count) return;
    const std::uint32_t bytes = info.bytes() / info.pieces;
    const std::uint32_t passed = offset > begin ? (offset - begin) / bytes : 0;
    std::uint8_t* piece = static_cast<std::uint8_t*>(data) + passed * info.stride;
    std::uint32_t at = begin + passed * bytes;
    for (std::uint32_t i = passed; i < info.pieces && at < offset + count; i++) {
      const std::uint32_t first = offset > at ? offset : at;
      const std::uint32_t last = offset + count < at + bytes ? offset + count : at + bytes;
      visit(piece + (first - at), last - first);
      piece += info.stride;
      at += bytes;
    }
  });
}

template <class E>
void read_state(Training<E>& training, std::uint32_t offset, std::uint8_t* destination,
                std::uint32_t count) {
  for_each_state_part(training, offset, count, [&](const std::uint8_t* part, std::uint32_t bytes) {
    __builtin_memcpy(destination, part, bytes);
    destination += bytes;
  });
}

template <class E>
void write_state(Training<E>& training, std::uint32_t offset, const std::uint8_t* source,
                 std::uint32_t count) {
  for_each_state_part(training, offset, count, [&](std::uint8_t* part, std::uint32_t bytes) {
    __builtin_memcpy(part, source, bytes);
    source += bytes;
  });
}

template <class E>
void hash_state(Training<E>& training, std::uint8_t (&sha256)[Sha256::kDigestBytes]) {
  Sha256 hash;
  for_each_state_tensor(training, [&](const TensorInfo& info, const void* data) {
    for_each_piece(info, data,
                   [&](const void* piece, std::uint32_t bytes) { hash.update(piece, bytes); });
  });
  hash.finish(sha256);
}

// Return whether all weights and optimizer moments are finite numbers: the arrays of networks'
// layers.
template <class E>
bool networks_are_finite(Training<E>& training) {
  bool finite = true;
  for_each_state_tensor(training, [&](const TensorInfo& info, const void* data) {
    if (info.part == nullptr || info.type != DataType::f32) return;
    const std::uint32_t count = info.rows * info.columns;
    const std::uint8_t* bytes = static_cast<const std::uint8_t*>(data);
    for (std::uint32_t i = 0; i < count; i++) {
      std::uint32_t bits;
      __builtin_memcpy(&bits, bytes + 4 * i, 4);
      if ((bits & 0x7f800000u) == 0x7f800000u) finite = false;  // the exponent of infinity and NaN
    }
  });
  return finite;
}

}  // namespace rlt
