// Program of a GPU: block i of the grid trains agent i. Its thread 0 is the leader, which has its
// warp alone, and the warps behind it share the leader's operations (kernels/block/threads.h). An
// agent's scratch memory is the block's shared memory, where it fits; what it learns, its replay
// buffer and its environments are in global memory.
#include RLT_DEVICE_HEADER
#include RLT_EXPERIMENT_HEADER

#include "rltools/rl/training.h"
#include "rltools/rl/windows.h"

// As large as the program that starts this one says.
extern "C" __attribute__((address_space(3), aligned(64))) unsigned char scratch_memory[];

namespace {

using namespace rlt;

// True for tiles of a batch whose scratch memory fits into shared memory, beside what the block's
// threads have in common.
template <int Rows>
constexpr bool fits() {
  return sizeof(Scratch<WithTileRows<RLT_EXPERIMENT, Rows>>) + sizeof(block::Threads) <=
         RLT_SHARED_BYTES;
}
constexpr int divisor_up_to(int number, int most) {
  while (number % most != 0) most--;
  return most;
}
// Return the largest tile of at most `Rows` rows that fits; 0 where none does.
template <int Rows>
constexpr int largest_tile() {
  if constexpr (fits<Rows>()) {
    return Rows;
  } else if constexpr (Rows == 1) {
    return 0;
  } else {
    return largest_tile<divisor_up_to(RLT_EXPERIMENT::kBatchSize, Rows - 1)>();
  }
}
// Elsewhere scratch memory is global, in tiles whose activations stay in the cache. Windows of
// recurrent networks have the experiment's tiles.
constexpr int tile_rows() {
  constexpr int kBatch = RLT_EXPERIMENT::kBatchSize;
  if constexpr (kHasWindows<RLT_EXPERIMENT>) {
    return RLT_EXPERIMENT::kTileRows;
  } else {
    constexpr int kFitting = largest_tile<divisor_up_to(kBatch, 512)>();
    return kFitting > 0 ? kFitting : divisor_up_to(kBatch, 64);
  }
}
constexpr bool kIsShared = fits<tile_rows()>();
using E = WithTileRows<RLT_EXPERIMENT, tile_rows()>;

enum class Fault : std::uint32_t {
  none,
  hyperparameter,  // one of them was refused
  not_finite       // a loss, an action, or a number that an environment gave
};

// What an agent has done, for the host to read while others train.
struct Report {
  std::uint32_t step, is_finished;
  Fault fault;
};

struct Agent {
  Learner<E> learner;
  Replay<E> replay;
  RunHyperparameters<E> hyperparameters;
  std::conditional_t<kIsShared, char, Scratch<E>> scratch;
  Fault fault;
};

constexpr int kWarp = 32;

std::uint32_t agent_index() { return static_cast<std::uint32_t>(__nvvm_read_ptx_sreg_ctaid_x()); }

__attribute__((address_space(3))) unsigned char threads_memory[sizeof(block::Threads)]
    __attribute__((aligned(16)));
Scratch<E>& scratch_of(char&) { return *(Scratch<E>*)(scratch_memory); }
Scratch<E>& scratch_of(Scratch<E>& own) { return own; }

// Call function(device, agent, training) on the leader, with the other threads at its service.
template <class Function>
void lead(Agent* agents, Function&& function) {
  auto* threads = (block::Threads*)(threads_memory);
  const int thread = static_cast<int>(__nvvm_read_ptx_sreg_tid_x());
  if (thread >= kWarp) {
    threads->serve(thread - kWarp);
  } else if (thread == 0) {
    Agent& agent = agents[agent_index()];
    Block device;
    device.threads = threads;
    Training<E> training{agent.hyperparameters, agent.learner, agent.replay,
                         scratch_of(agent.scratch)};
    function(device, agent, training);
    threads->dismiss();
  }
}

}  // namespace

// Sizes for the program that starts this one.
extern "C" const std::uint32_t agent_bytes = sizeof(Agent);
extern "C" const std::uint32_t shared_bytes = kIsShared ? sizeof(Scratch<E>) : 0;
extern "C" const std::uint32_t rows_of_tile = E::kTileRows;
extern "C" const std::uint32_t block_threads = kWarp + block::kThreads;
extern "C" const std::uint32_t hyperparameter_count = RunHyperparameters<E>::kCount;
extern "C" const std::uint32_t report_bytes = sizeof(Report);

// Begin with the hyperparameters `values` (agents, hyperparameter_count), the four bytes of each in
// the order of the experiment's description.
extern "C" __attribute__((nvptx_kernel)) void initialize_agents(Agent* agents,
                                                                const std::uint32_t* values) {
  lead(agents, [values](Block device, Agent& agent, Training<E>& training) {
    constexpr int kCount = RunHyperparameters<E>::kCount;
    training.hyperparameters = RunHyperparameters<E>{};
    agent.fault = Fault::none;
    for (int i = 0; i < kCount; i++) {
      const std::uint32_t bits = values[agent_index() * kCount + i];
      if (!training.hyperparameters.set_bits(i, bits)) agent.fault = Fault::hyperparameter;
    }
    agent.hyperparameters = training.hyperparameters;
    initialize(device, training);
  });
}

// Train until `steps` steps are done, or the run is over; `reports` (agents) say where it stands.
extern "C" __attribute__((nvptx_kernel)) void train_agents(Agent* agents, std::uint32_t steps,
                                                           Report* reports) {
  lead(agents, [steps, reports](Block device, Agent& agent, Training<E>& training) {
    while (agent.fault == Fault::none && !finished(training) && steps_done(training) < steps) {
      if (!train_step(device, training).finite) agent.fault = Fault::not_finite;
    }
    reports[agent_index()] = {steps_done(training), finished(training) ? 1u : 0u, agent.fault};
  });
}

// Copy the states to or from rows of `bytes` (agents, row_bytes): a checkpoint's payload each.
template <class Copy>
void copy_states(Agent* agents, std::uint8_t* bytes, std::uint32_t row_bytes, const Copy& copy) {
  lead(agents, [=](Block device, Agent&, Training<E>& training) {
    std::uint8_t* row = bytes + std::uint64_t{agent_index()} * row_bytes;
    for_each_state_tensor(training, [&](const TensorInfo& info, void* data) {
      for_each_piece(info, data, [&](std::uint8_t* piece, std::uint32_t count) {
        block::for_each_element(
            device, static_cast<int>(count), [=](int i) { copy(piece + i, row + i); }, piece);
        row += count;
      });
    });
  });
}
extern "C" __attribute__((nvptx_kernel)) void read_states(Agent* agents, std::uint8_t* bytes,
                                                          std::uint32_t row_bytes) {
  copy_states(agents, bytes, row_bytes,
              [](const std::uint8_t* state, std::uint8_t* row) { *row = *state; });
}
extern "C" __attribute__((nvptx_kernel)) void write_states(Agent* agents, std::uint8_t* bytes,
                                                           std::uint32_t row_bytes) {
  copy_states(agents, bytes, row_bytes,
              [](std::uint8_t* state, const std::uint8_t* row) { *state = *row; });
}
