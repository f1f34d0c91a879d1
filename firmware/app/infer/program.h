// The infer program: the application's memory, and the loop that a board's main() runs. Included by
// that one file; the build defines which contract, which device and which board (docs/design.md,
// "Names").
#pragma once

#include RLT_DEVICE_HEADER
#include RLT_CONTRACT_HEADER

#include "app/infer/application.h"
#include "app/link/board_node.h"

// A board with a storage that keeps policies over a reset names it: RLT_STORAGE_HEADER and
// RLT_STORAGE, a type that is default-constructible.
#if defined(RLT_STORAGE_HEADER)
#include RLT_STORAGE_HEADER
#endif

namespace rlt::program {

// A slot holds a network of 13-64-64-4 (23 KB), which needs 136 floats to be accepted, and one of
// 41-64-64-4 (32 KB), which sees its last seven actions.
#if !defined(RLT_POLICY_SLOT_BYTES)
#define RLT_POLICY_SLOT_BYTES 32768
#endif
#if !defined(RLT_POLICY_SCRATCH_FLOATS)
#define RLT_POLICY_SCRATCH_FLOATS 1024
#endif

#if defined(RLT_STORAGE)
using Storage = RLT_STORAGE;
#else
using Storage = RamStorage<2 * 256 + 2 * RLT_POLICY_SLOT_BYTES>;
#endif

using Application =
    InferApplication<contracts::RLT_CONTRACT, RLT_DEVICE, Storage, RLT_POLICY_SCRATCH_FLOATS>;

RLT_BULK Storage storage;

// Return only where the link can close.
inline void run() {
  board::initialize();
  static Application application{RLT_DEVICE{},
                                 storage,
                                 link::kBoardTransport,
                                 link::kBoardAddress,
                                 {RLT_BOARD_NAME, RLT_QUOTE(RLT_DEVICE)}};
  while (!board::should_exit()) application.poll();
}

}  // namespace rlt::program
