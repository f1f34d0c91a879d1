// Fuzz targets: a checkpoint that is uploaded to a board (firmware/app/services/training/). The
// input is a list of edits of a checkpoint that the board has made itself; then the header's
// SHA-256 and CRC are made right, unless the input says otherwise. A state that is accepted must
// train on.
#pragma once

#include "board.h"
#include "run_checkpoint.h"

namespace fuzz {

constexpr int kMaxEdits = 30;
constexpr int kStepsAfterwards = 3;
constexpr std::uint32_t kPart = 239;

template <class E>
Bytes checkpoint_after(std::uint32_t step) {
  BoardOf<E> board;
  board.train_and_pause(step);
  return run_checkpoint::checkpoint_of(board.run);
}

// Of three steps of a run.
template <class E>
const Bytes& valid_checkpoint(const std::uint32_t (&steps)[3], std::size_t number) {
  static const Bytes checkpoints[] = {checkpoint_after<E>(steps[0]), checkpoint_after<E>(steps[1]),
                                      checkpoint_after<E>(steps[2])};
  return checkpoints[number];
}

struct Tensor {
  std::size_t offset;  // in the checkpoint
  TensorInfo info;
};

template <class E>
std::vector<Tensor> list_tensors() {
  training_run::Run<E> run;
  std::vector<Tensor> found;
  std::size_t offset = kCheckpointHeaderBytes;
  for_each_state_tensor(run.training, [&](const TensorInfo& info, void*) {
    found.push_back({offset, info});
    offset += info.bytes();
  });
  return found;
}

template <class E>
const std::vector<Tensor>& tensors() {
  static const std::vector<Tensor> all = list_tensors<E>();
  return all;
}

// Overwrites an element of some tensor: the counters of a run as often as a network's weights.
template <class E>
void edit_tensor(Input& input, Bytes& checkpoint) {
  const std::vector<Tensor>& all = tensors<E>();
  const Tensor& tensor = all[input.take<std::uint8_t>() % all.size()];
  const std::uint32_t elements = tensor.info.rows * tensor.info.columns;
  const std::uint32_t bytes = tensor.info.bytes() / elements;
  const std::uint32_t element = input.take<std::uint8_t>() % elements;
  const auto value = input.take<std::uint32_t>();
  const std::uint32_t width =
      std::min<std::uint32_t>(bytes, sizeof(value));  // of a double the upper half
  std::memcpy(&checkpoint[tensor.offset + (element + 1) * bytes - width], &value, width);
}

inline void edit_bytes(Input& input, Bytes& checkpoint) {
  const std::size_t offset = input.take<std::uint16_t>() % checkpoint.size();
  const Bytes bytes = input.take_bytes(input.take<std::uint8_t>() % 16);
  const std::size_t count = std::min(bytes.size(), checkpoint.size() - offset);
  std::copy_n(bytes.begin(), count, checkpoint.begin() + static_cast<std::ptrdiff_t>(offset));
}

inline Bytes payload_of(const Bytes& checkpoint) {
  return {checkpoint.begin() + kCheckpointHeaderBytes, checkpoint.end()};
}

// The header's hash, step and checksum become those of what follows, but for the one `kept`.
enum class Kept : std::uint8_t { none, sha256, step, crc32 };

template <class E>
void correct_header(Bytes& checkpoint, Kept kept) {
  CheckpointHeader header;
  std::memcpy(&header, checkpoint.data(), sizeof(header));
  if (kept != Kept::sha256) {
    const auto digest = board_in_memory::sha256_of(payload_of(checkpoint));
    std::memcpy(header.sha256, digest.bytes, sizeof(digest.bytes));
  }
  if (kept != Kept::step) {
    for (const Tensor& tensor : tensors<E>()) {
      if (tensor.info.field == nullptr || std::strcmp(tensor.info.field, "step") != 0) continue;
      std::memcpy(&header.step, &checkpoint[tensor.offset], sizeof(header.step));
    }
  }
  if (kept != Kept::crc32) header.crc32 = header_checksum(header);
  std::memcpy(checkpoint.data(), &header, sizeof(header));
}

inline FileMessage make(FileOperation operation, std::uint32_t offset = 0) {
  static std::uint16_t sequence = 0;
  FileMessage request{};
  request.sequence = sequence++;
  request.operation = operation;
  request.offset = offset;
  return request;
}

// By way of the link, as a host does; a part may come twice, or not at all.
template <class E>
void upload(BoardOf<E>& board, const Bytes& checkpoint, std::uint8_t doubled,
            std::uint8_t left_out) {
  constexpr char kName[] = "/checkpoint.rltc";
  FileMessage request = make(FileOperation::create_file);
  request.size = sizeof(kName) - 1;
  std::memcpy(request.data, kName, request.size);
  board.put_request(request);
  std::uint8_t part = 1;
  for (std::uint32_t offset = 0; offset < checkpoint.size(); offset += kPart, part++) {
    request = make(FileOperation::write_file, offset);
    const auto left = static_cast<std::uint32_t>(checkpoint.size()) - offset;
    request.size = static_cast<std::uint8_t>(std::min(kPart, left));
    std::memcpy(request.data, &checkpoint[offset], request.size);
    if (part == left_out) continue;
    board.put_request(request);
    if (part == doubled) board.put_request(request);
  }
  board.put_request(make(FileOperation::terminate_session));
  board.turns(0);
}

template <class T, int S, int O, int A>
bool is_within(const ReplayBuffer<T, S, O, A>& replay) {
  return replay.size <= replay.kSlots && replay.position < replay.size;
}
template <class T, int S, int N, int O, int A, int C>
bool is_within(const RolloutBuffer<T, S, N, O, A, C>& rollout) {
  return rollout.size <= S;
}

template <class E>
void train_on(BoardOf<E>& board) {
  const std::uint32_t step = steps_done(board.run.training);
  board.check_state();
  board.put_command(MAV_CMD_RLT_RESUME);
  for (int i = 0; i < 200 && steps_done(board.run.training) - step < kStepsAfterwards; i++) {
    board.turns(1);
    require(is_within(board.run.training.replay), "what is stored next is within the memory");
    if (board.state() != RLT_STATE_TRAINING) return;  // at its end, or a number is not finite
  }
  board.put_command(MAV_CMD_RLT_PAUSE);
  board.turns(50);
  require(board.is_at_rest() || board.state() == RLT_STATE_FAULT, "a run can be paused");
  board.check_state();
}

// `steps` are those of three checkpoints.
template <class E>
void check_checkpoint(const std::uint32_t (&steps)[3], const std::uint8_t* bytes,
                      std::size_t count) {
  Input input(bytes, count);
  const auto choice = input.take<std::uint8_t>();
  const auto doubled = input.take<std::uint8_t>(), left_out = input.take<std::uint8_t>();
  Bytes checkpoint = valid_checkpoint<E>(steps, choice % 3);
  const Bytes valid = checkpoint;
  // Mostly none.
  const auto kept = input.take<std::uint8_t>();
  for (int i = 0; i < kMaxEdits && !input.is_empty(); i++) {
    if (input.take<std::uint8_t>() & 3) {
      edit_tensor<E>(input, checkpoint);
    } else {
      edit_bytes(input, checkpoint);
    }
  }
  correct_header<E>(checkpoint, kept < 4 ? static_cast<Kept>(kept) : Kept::none);
  BoardOf<E> board;
  upload(board, checkpoint, doubled, left_out);
  const bool is_whole = left_out == 0 || left_out > 1 + checkpoint.size() / kPart;
  if (checkpoint == valid && is_whole) {
    require(board.is_at_rest(), "a checkpoint that the board has made is accepted");
  }
  if (board.is_at_rest()) {
    const Bytes state = board.run.state();
    const auto digest = board_in_memory::sha256_of(state);
    require(std::memcmp(digest.bytes, &checkpoint[offsetof(CheckpointHeader, sha256)],
                        sizeof(digest.bytes)) == 0,
            "the state has the hash that the header states");
    // What was left out may have been in memory before.
    require(!is_whole || state == payload_of(checkpoint), "the state is that of the checkpoint");
    train_on(board);
  }
}

}  // namespace fuzz
