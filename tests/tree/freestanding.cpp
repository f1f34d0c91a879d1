// What the standard headers of lib/freestanding do, asked of them and of this machine's own. The
// program ends with the line of the first check that fails.
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <tuple>
#include <type_traits>
#include <utility>

#define CHECK(...) \
  if (!(__VA_ARGS__)) __builtin_exit(1 + __LINE__ % 255)

namespace {

constexpr std::array<int, 3> kThree{{1, 2, 3}};
static_assert(kThree.size() == 3 && kThree[2] == 3 && std::array<int, 0>{}.size() == 0);
static_assert(std::is_same_v<decltype(kThree)::value_type, int>);

constexpr int total(const std::array<int, 3>& values) {
  int sum = 0;
  for (const int value : values) sum += value;
  return sum;
}
static_assert(total(kThree) == 6);

static_assert(std::is_same_v<std::conditional_t<true, int, char>, int>);
static_assert(std::is_same_v<std::remove_reference_t<int&&>, int>);
static_assert(std::is_same_v<std::remove_cv_t<const volatile int>, int>);
static_assert(std::is_same_v<std::decay_t<const int&>, int>);
static_assert(std::is_same_v<std::remove_all_extents_t<int[2][3]>, int>);
static_assert(std::extent_v<int[2][3], 1> == 3 && std::extent_v<int[2]> == 2);
static_assert(std::is_array_v<int[2]> && !std::is_array_v<int*>);
static_assert(std::is_floating_point_v<const float> && !std::is_floating_point_v<int>);
static_assert(std::is_null_pointer_v<const std::nullptr_t>);
static_assert(
    std::is_same_v<std::make_integer_sequence<int, 3>, std::integer_sequence<int, 0, 1, 2>>);
struct Base {};
struct Derived : Base {
  int field;
};
static_assert(std::is_base_of_v<Base, Derived> && !std::is_base_of_v<Derived, Base>);
static_assert(std::is_trivially_copyable_v<Derived>);
static_assert(std::true_type::value && !std::false_type{});
template <class T, class = void>
struct has_field : std::false_type {};
template <class T>
struct has_field<T, std::void_t<decltype(std::declval<T>().field)>> : std::true_type {};
static_assert(has_field<Derived>::value && !has_field<Base>::value);
template <class T, std::enable_if_t<std::is_floating_point_v<T>, int> = 0>
int kind(T) {
  return 1;
}
template <class T, std::enable_if_t<!std::is_floating_point_v<T>, int> = 0>
int kind(T) {
  return 2;
}
static_assert(sizeof(std::uint64_t) == 8 && sizeof(std::intptr_t) == sizeof(void*));

struct MoveOnly {
  explicit MoveOnly(int x) : value(x) {}
  MoveOnly(MoveOnly&& other) : value(other.value) { other.value = 0; }
  int value;
};

template <class F, class T>
decltype(auto) pass(F&& function, T&& value) {
  return function(std::forward<T>(value));
}

int sum_of(std::initializer_list<int> values) {
  int sum = static_cast<int>(values.size());
  for (const int value : values) sum += value;
  return sum;
}

}  // namespace

int main() {
  CHECK(kind(1.0f) == 1 && kind(1) == 2);
  std::array<int, 3> values = kThree;
  values[0] = 7;
  CHECK(*values.begin() == 7 && values.end() - values.begin() == 3 && *values.data() == 7);

  int a = 1;
  char b = 2;
  const std::tuple<int&, char&> both(a, b);
  std::apply([](auto&... each) { (each++, ...); }, both);
  CHECK(a == 2 && b == 3);
  CHECK(std::apply([](int x, int y, int z) { return x * 100 + y * 10 + z; },
                   std::tuple<int, int, int>(1, 2, 3)) == 123);
  const std::tuple<> nothing;
  CHECK(std::apply([] { return 5; }, nothing) == 5);

  MoveOnly first(9);
  const MoveOnly second(std::move(first));
  CHECK(second.value == 9 && first.value == 0);
  CHECK(pass([](int&) { return 1; }, a) == 1 && pass([](int&&) { return 2; }, 4) == 2);

  std::atomic<std::uint32_t> count{3};
  count.store(count.load(std::memory_order_acquire) + 1, std::memory_order_release);
  CHECK(count == 4 && (count = 8) == 8 && count.load() == 8);
  std::atomic_signal_fence(std::memory_order_release);
  std::atomic<bool> flag{false};
  flag = true;
  CHECK(flag);

  CHECK(sum_of({1, 2, 3}) == 9 && sum_of({}) == 0);
  for (const unsigned value : {4u, 5u}) a += static_cast<int>(value);
  CHECK(a == 11);
  return 0;
}
