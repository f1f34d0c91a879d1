// Program of a GPU: block i of the grid trains agent i, and evaluates it on the way as a board does
// (app/services/training). Its thread 0 is the leader, which has its warp alone, and the warps
// behind it share the leader's operations (kernels/block/threads.h). An agent's scratch memory is
// the block's shared memory, where it fits; what it learns, its replay buffer and its environments
// are in global memory.
#include RLT_DEVICE_HEADER
#include RLT_EXPERIMENT_HEADER

#include "app/services/training/state_bytes.h"
#include "rltools/rl/evaluation.h"
#include "rltools/rl/policy_of_training.h"
#include "rltools/rl/reports.h"
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
template <class Experiment>
constexpr int tile_rows() {
  constexpr int kBatch = Experiment::kBatchSize;
  if constexpr (kHasWindows<Experiment>) {
    return Experiment::kTileRows;
  } else {
    constexpr int kFitting = largest_tile<divisor_up_to(kBatch, 512)>();
    return kFitting > 0 ? kFitting : divisor_up_to(kBatch, 64);
  }
}
constexpr int kTileRows = tile_rows<RLT_EXPERIMENT>();
constexpr bool kIsShared = fits<kTileRows>();
using E = WithTileRows<RLT_EXPERIMENT, kTileRows>;

enum class Fault : std::uint32_t {
  none,
  hyperparameter,  // one of them was refused
  not_finite       // a loss, a weight, an action, or a number that an environment gave
};

// What an agent has done, for the host to read while others train.
struct Status {
  std::uint32_t step, is_finished;
  Fault fault;
  std::uint32_t records;  // of the launch
};

// A message of a board on its way (lib/protocol/rltools.xml): RLT_PROGRESS or RLT_EVALUATION.
struct Record {
  std::uint32_t is_evaluation, step;
  union {
    struct {
      std::uint32_t updates, episodes, episodes_ended;
      float last_return, best_return, episode_return, episode_length;
      float metrics[kMaxMetrics];
    } progress;
    EvaluationReport evaluation;
  };
};

// The records of an agent in a launch. The host takes them after it.
class Records {
 public:
  static constexpr std::uint32_t kCount = 16;

  explicit Records(Record* records) : records_(records) {}
  Record& add() { return records_[count_++]; }
  std::uint32_t count() const { return count_; }
  // Return whether there is room for all that a piece of work adds.
  bool have_room() const { return count_ < kCount; }

 private:
  Record* const records_;
  std::uint32_t count_ = 0;
};

enum class Work : std::uint32_t {
  training,
  evaluating,
  keeping  // the policy that was evaluated best so far
};

struct Agent {
  Learner<E> learner;
  Replay<E> replay;
  RunHyperparameters<E> hyperparameters;
  std::conditional_t<kIsShared, char, Scratch<E>> scratch;
  Fault fault;
  Work work;
  SinceReport<E> since;
  Evaluation<E> evaluation;
  Sha256 hash;  // of the state whose policy is kept
  std::uint32_t hashed_bytes;
  float best_mean;  // return of its evaluation, from which on there is one
  bool is_evaluated;
  std::uint8_t best[kPolicyImageBytes<E>];  // zeros: there is none
};

constexpr int kWarp = 32;

std::uint32_t agent_index() { return static_cast<std::uint32_t>(__nvvm_read_ptx_sreg_ctaid_x()); }

__attribute__((address_space(3))) unsigned char threads_memory[sizeof(block::Threads)]
    __attribute__((aligned(16)));
Scratch<E>& scratch_of(char&) { return *(Scratch<E>*)(scratch_memory); }
Scratch<E>& scratch_of(Scratch<E>& own) { return own; }

// -- Work of the leader: no piece takes longer than a training step -------------------------------

constexpr int kEvaluationSteps = 20;
constexpr std::uint32_t kHashedBytes = 16384;

[[gnu::noinline]] void begin_evaluating(Block device, Agent& agent, Training<E>& training) {
  if (!networks_are_finite(training)) {
    agent.fault = Fault::not_finite;
    return;
  }
  begin_evaluation(device, training, agent.evaluation);
  agent.work = Work::evaluating;
}

[[gnu::noinline]] void report_progress(Agent& agent, const Training<E>& training, Record& record) {
  const auto& progress = training.learner.progress;
  record.is_evaluation = 0;
  record.step = progress.step;
  auto& content = record.progress;
  content.updates = progress.updates;
  content.episodes = episodes_ended(training.learner.environments);
  content.episodes_ended = agent.since.episodes;
  content.last_return = static_cast<float>(progress.last_return);
  content.best_return = static_cast<float>(progress.best_return);
  content.episode_return = agent.since.mean_return();
  content.episode_length = agent.since.mean_steps();
  for (int i = 0; i < kMaxMetrics; i++) {
    const bool is_there = i < E::Algorithm::Metrics::kCount;
    content.metrics[i] = is_there ? agent.since.metrics.get(i) : 0.0f;
  }
  agent.since.clear();
}

void train(Block device, Agent& agent, Training<E>& training, Records& records) {
  const std::uint32_t before = steps_done(training);
  const StepReport<E> report = train_step(device, training);
  agent.since.add(report);
  if (!report.finite) {
    agent.fault = Fault::not_finite;
    return;
  }
  if (is_report_due(training, before)) report_progress(agent, training, records.add());
  if (is_evaluation_due(training, before)) begin_evaluating(device, agent, training);
}

[[gnu::noinline]] void evaluate(Block device, Agent& agent, Training<E>& training,
                                Records& records) {
  for (int i = 0; i < kEvaluationSteps; i++) {
    if (evaluate_step(device, training, agent.evaluation)) continue;
    const auto& non_finite = agent.evaluation.non_finite;
    if (non_finite.environment != non_finite.kNone) {
      agent.fault = Fault::not_finite;
      return;
    }
    Record& record = records.add();
    record.is_evaluation = 1;
    record.step = steps_done(training);
    record.evaluation = evaluation_report(agent.evaluation);
    const float mean = record.evaluation.mean;
    agent.work = Work::training;
    if (mean == mean && (!agent.is_evaluated || mean > agent.best_mean)) {
      agent.is_evaluated = true;
      agent.best_mean = mean;
      agent.hash.restart();
      agent.hashed_bytes = 0;
      agent.work = Work::keeping;
    }
    return;
  }
}

[[gnu::noinline]] void write_policy(Training<E>& training, const std::uint8_t* sha256,
                                    std::uint8_t* image) {
  using Digest = const std::uint8_t(&)[Sha256::kDigestBytes];
  using Image = std::uint8_t(&)[kPolicyImageBytes<E>];
  build_policy_image(Generic{}, training, (Digest)(*sha256), (Image)(*image));
}

[[gnu::noinline]] void keep(Agent& agent, Training<E>& training) {
  for_each_state_part(training, agent.hashed_bytes, kHashedBytes,
                      [&](const std::uint8_t* part, std::uint32_t bytes) {
                        agent.hash.update(part, bytes);
                        agent.hashed_bytes += bytes;
                      });
  if (agent.hashed_bytes < state_bytes(training)) return;
  std::uint8_t sha256[Sha256::kDigestBytes];
  agent.hash.finish(sha256);
  write_policy(training, sha256, agent.best);
  agent.work = Work::training;
}

bool is_done(const Agent& agent, const Training<E>& training) {
  return agent.work == Work::training && finished(training);
}

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
extern "C" const std::uint32_t status_bytes = sizeof(Status);
extern "C" const std::uint32_t record_bytes = sizeof(Record);
extern "C" const std::uint32_t record_count = Records::kCount;
extern "C" const std::uint32_t policy_bytes = kPolicyImageBytes<E>;

// Begin with the hyperparameters `values` (agents, their number), the four bytes of each in the
// order of the experiment's description.
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
    agent.work = Work::training;
    agent.since.clear();
    agent.is_evaluated = false;
    for (std::uint8_t& byte : agent.best) byte = 0;
    initialize(device, training);
  });
}

// Do `pieces` pieces of work, or less: to the end of the run, or until `records` (agents,
// Records::kCount) are full; none where `stops` (agents) is not 0. `statuses` (agents) say where
// they stand.
extern "C" __attribute__((nvptx_kernel)) void train_agents(Agent* agents, std::uint32_t pieces,
                                                           const std::uint8_t* stops,
                                                           Record* records, Status* statuses) {
  lead(agents, [=](Block device, Agent& agent, Training<E>& training) {
    Records own(records + std::uint64_t{agent_index()} * Records::kCount);
    for (std::uint32_t left = stops[agent_index()] != 0 ? 0 : pieces;
         left > 0 && agent.fault == Fault::none && own.have_room() && !is_done(agent, training);
         left--) {
      switch (agent.work) {
        case Work::training: train(device, agent, training, own); break;
        case Work::evaluating: evaluate(device, agent, training, own); break;
        case Work::keeping: keep(agent, training); break;
      }
    }
    statuses[agent_index()] = {steps_done(training), is_done(agent, training) ? 1u : 0u,
                               agent.fault, own.count()};
  });
}

// Copy the state to or from the agent's row of `bytes`: a checkpoint's payload.
template <class Copy>
void copy_state(Block device, Training<E>& training, std::uint8_t* bytes, std::uint32_t row_bytes,
                const Copy& copy) {
  std::uint8_t* row = bytes + std::uint64_t{agent_index()} * row_bytes;
  for_each_state_tensor(training, [&](const TensorInfo& info, void* data) {
    for_each_piece(info, data, [&](std::uint8_t* piece, std::uint32_t count) {
      block::for_each_element(
          device, static_cast<int>(count), [=](int i) { copy(piece + i, row + i); }, piece);
      row += count;
    });
  });
}

// Copy the states to rows of `bytes` (agents, row_bytes).
extern "C" __attribute__((nvptx_kernel)) void read_states(Agent* agents, std::uint8_t* bytes,
                                                          std::uint32_t row_bytes) {
  lead(agents, [=](Block device, Agent&, Training<E>& training) {
    copy_state(device, training, bytes, row_bytes,
               [](const std::uint8_t* state, std::uint8_t* row) { *row = *state; });
  });
}

// Copy the states from rows of `bytes` (agents, row_bytes). Where `evaluates` is not 0, the agents
// go on with an evaluation, unless they still learn from their last steps.
extern "C" __attribute__((nvptx_kernel)) void write_states(Agent* agents, std::uint8_t* bytes,
                                                           std::uint32_t row_bytes,
                                                           std::uint32_t evaluates) {
  lead(agents, [=](Block device, Agent& agent, Training<E>& training) {
    copy_state(device, training, bytes, row_bytes,
               [](std::uint8_t* state, const std::uint8_t* row) { *state = *row; });
    if (evaluates != 0 && may_evaluate(training)) begin_evaluating(device, agent, training);
  });
}

// Write the policies to rows of `images` (agents, 2 policy_bytes): that of the present state, whose
// hash `hashes` (agents, 32) has, and that of the best evaluation, zeros before there is one.
extern "C" __attribute__((nvptx_kernel)) void read_policies(Agent* agents,
                                                            const std::uint8_t* hashes,
                                                            std::uint8_t* images) {
  lead(agents, [hashes, images](Block, Agent& agent, Training<E>& training) {
    constexpr std::uint64_t kBytes = kPolicyImageBytes<E>;
    std::uint8_t* last = images + 2 * kBytes * agent_index();
    write_policy(training, hashes + Sha256::kDigestBytes * std::uint64_t{agent_index()}, last);
    const std::uint8_t* best = agent.work == Work::keeping ? last : agent.best;
    for (std::uint64_t i = 0; i < kBytes; i++) last[kBytes + i] = best[i];
  });
}
