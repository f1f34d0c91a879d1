// Matrices of static shape, row-major, without allocation: `Matrix` owns its elements, `MatrixView`
// points to them.
#pragma once

#include <cstdint>

namespace rlt {

// For checks of shapes: compilers print both numbers where static_assert(Size<Given>::template
// kIs<Wanted>) fails.
template <int Given>
struct Size {
  template <int Wanted>
  static constexpr bool kIs = Given == Wanted;
};

// Tests define RLT_CHECKED_INDICES: an index beyond its bound ends the program.
inline int checked_index(int index, [[maybe_unused]] int bound) {
#if defined(RLT_CHECKED_INDICES)
  if (index < 0 || index >= bound) __builtin_trap();
#endif
  return index;
}

// Rows x Columns elements. As a batch: one sample a row.
template <class T, int Rows, int Columns>
struct Matrix {
  static_assert(Rows > 0 && Columns > 0, "a matrix needs at least one row and one column");
  using Scalar = T;
  static constexpr int kRows = Rows;
  static constexpr int kColumns = Columns;

  alignas(64) T values[Rows * Columns];

  T* data() { return values; }
  const T* data() const { return values; }
  T* row(int index) { return values + checked_index(index, Rows) * Columns; }
  const T* row(int index) const { return values + checked_index(index, Rows) * Columns; }
  T& operator()(int row, int column) {
    return values[checked_index(row, Rows) * Columns + checked_index(column, Columns)];
  }
  const T& operator()(int row, int column) const {
    return values[checked_index(row, Rows) * Columns + checked_index(column, Columns)];
  }
};

// Rows x Columns elements that live elsewhere, for example a tile of a batch. T may be const.
template <class T, int Rows, int Columns>
struct MatrixView {
  using Scalar = T;
  static constexpr int kRows = Rows;
  static constexpr int kColumns = Columns;

  T* values;

  T* data() const { return values; }
  T* row(int index) const { return values + checked_index(index, Rows) * Columns; }
  T& operator()(int row, int column) const {
    return values[checked_index(row, Rows) * Columns + checked_index(column, Columns)];
  }
};

// The `TileRows` rows of a matrix that begin at `first_row`.
template <int TileRows, class T, int Rows, int Columns>
MatrixView<T, TileRows, Columns> rows(Matrix<T, Rows, Columns>& matrix, int first_row) {
  static_assert(TileRows <= Rows, "the tile has more rows than the matrix");
  return {matrix.row(first_row)};
}
template <int TileRows, class T, int Rows, int Columns>
MatrixView<const T, TileRows, Columns> rows(const Matrix<T, Rows, Columns>& matrix, int first_row) {
  static_assert(TileRows <= Rows, "the tile has more rows than the matrix");
  return {matrix.row(first_row)};
}

// Types in which arrays of the training state are stored; the names are those of safetensors in
// lower case.
enum class DataType : std::uint8_t { f32, f64, u32, u8 };

constexpr std::uint32_t size_bytes(DataType type) {
  return type == DataType::f64 ? 8u : type == DataType::u8 ? 1u : 4u;
}

// As safetensors and the experiment's description have it.
constexpr const char* data_type_name(DataType type) {
  switch (type) {
    case DataType::f32: return "F32";
    case DataType::f64: return "F64";
    case DataType::u32: return "U32";
    case DataType::u8: return "U8";
  }
  return "unknown";
}

constexpr DataType data_type_of(const float*) { return DataType::f32; }
constexpr DataType data_type_of(const double*) { return DataType::f64; }
constexpr DataType data_type_of(const std::uint32_t*) { return DataType::u32; }
constexpr DataType data_type_of(const std::uint8_t*) { return DataType::u8; }

// One array of the training state. Its full name is `name`, `name/<layer>/<part>` for an array of a
// network's layer, or `name/<field>` for a field of a struct; `owner` and a slash before it, where
// it belongs to a run within the run.
struct TensorInfo {
  const char* name;
  DataType type;
  std::uint32_t rows, columns;
  int layer = -1;              // of the network, where `part` is set
  const char* part = nullptr;  // "weights" (in, out) or "bias" (1, out)
  const char* field = nullptr;
  bool may_be_nan = false;  // of a run at rest; any other float of the state is finite
  // The array lies in memory in this many equal pieces, each `stride` bytes behind the one before.
  std::uint32_t pieces = 1;
  std::uint32_t stride = 0;
  const char* owner = nullptr;

  constexpr std::uint32_t bytes() const { return rows * columns * size_bytes(type); }
};

// visit(piece, bytes) for the array's memory, which begins at `data`.
template <class Visit>
void for_each_piece(const TensorInfo& info, void* data, Visit&& visit) {
  const std::uint32_t bytes = info.bytes() / info.pieces;
  for (std::uint32_t i = 0; i < info.pieces; i++) {
    visit(static_cast<std::uint8_t*>(data) + i * info.stride, bytes);
  }
}
template <class Visit>
void for_each_piece(const TensorInfo& info, const void* data, Visit&& visit) {
  const std::uint32_t bytes = info.bytes() / info.pieces;
  for (std::uint32_t i = 0; i < info.pieces; i++) {
    visit(static_cast<const std::uint8_t*>(data) + i * info.stride, bytes);
  }
}

// Call put(character) for each character of the full name; a network has at most ten layers.
template <class Put>
void write_full_name(const TensorInfo& info, Put&& put) {
  if (info.owner != nullptr) {
    for (const char* c = info.owner; *c != '\0'; c++) put(*c);
    put('/');
  }
  for (const char* c = info.name; *c != '\0'; c++) put(*c);
  if (info.part != nullptr) {
    put('/');
    put(static_cast<char>('0' + info.layer));
    put('/');
    for (const char* c = info.part; *c != '\0'; c++) put(*c);
  }
  if (info.field != nullptr) {
    put('/');
    for (const char* c = info.field; *c != '\0'; c++) put(*c);
  }
}

}  // namespace rlt
