// A closed track: points of its center line, and what follows from them when it is compiled. At
// each point a gate stands across the track, along the bisector of the bend; its ends are points of
// the left and the right border. Between two gates lies a section, a convex quadrilateral, which is
// driven from the first gate to the second.
#pragma once

#include "rltools/core/math.h"

namespace rlt::racing_car {

constexpr int kGates = 72;
constexpr double kHalfWidth_m = 0.7;

// In meters; 32 m, anticlockwise, bends of 1 m to the right and to the left.
constexpr double kCenterLine_m[kGates][2] = {
    {0.00, 0.00},  {0.44, -0.02}, {0.89, -0.05}, {1.33, -0.08}, {1.78, -0.11}, {2.22, -0.13},
    {2.67, -0.15}, {3.11, -0.15}, {3.55, -0.14}, {4.00, -0.12}, {4.44, -0.09}, {4.89, -0.06},
    {5.33, -0.03}, {5.77, -0.01}, {6.22, 0.00},  {6.66, 0.00},  {7.11, 0.01},  {7.55, 0.05},
    {7.98, 0.14},  {8.40, 0.30},  {8.78, 0.53},  {9.11, 0.83},  {9.37, 1.18},  {9.55, 1.59},
    {9.60, 2.03},  {9.51, 2.46},  {9.30, 2.85},  {9.01, 3.19},  {8.65, 3.44},  {8.22, 3.56},
    {7.78, 3.56},  {7.34, 3.48},  {6.90, 3.39},  {6.47, 3.32},  {6.02, 3.29},  {5.58, 3.33},
    {5.15, 3.46},  {4.78, 3.69},  {4.53, 4.05},  {4.44, 4.49},  {4.42, 4.93},  {4.36, 5.37},
    {4.21, 5.79},  {3.94, 6.13},  {3.58, 6.40},  {3.17, 6.58},  {2.74, 6.68},  {2.30, 6.72},
    {1.85, 6.69},  {1.42, 6.61},  {1.00, 6.45},  {0.63, 6.21},  {0.38, 5.85},  {0.30, 5.41},
    {0.32, 4.97},  {0.35, 4.53},  {0.32, 4.08},  {0.11, 3.70},  {-0.24, 3.43}, {-0.63, 3.22},
    {-1.02, 3.01}, {-1.40, 2.77}, {-1.74, 2.48}, {-2.04, 2.16}, {-2.28, 1.78}, {-2.40, 1.36},
    {-2.32, 0.92}, {-2.08, 0.55}, {-1.73, 0.27}, {-1.33, 0.10}, {-0.89, 0.02}, {-0.44, 0.01},
};

template <class T>
struct Point {
  T x, y;
};

// normal . p - offset: how far a point lies on the side that the normal, of length 1, points to.
template <class T>
struct Line {
  T normal_x, normal_y, offset;

  [[gnu::always_inline]] T distance(T x, T y) const {
    return math::fma(normal_x, x, math::fma(normal_y, y, -offset));
  }
};

template <class T>
struct Track {
  Point<T> center[kGates], left[kGates], right[kGates];
  Line<T> gate[kGates];       // positive behind it
  Line<T> left_edge[kGates];  // of the section from this gate on, positive on the track
  Line<T> right_edge[kGates];
  T section_m[kGates];  // length of the center line
  T begin_m[kGates];    // from gate 0
  T length_m;
};

// Return the square root by Newton's method, for the compiler.
constexpr double square_root(double x) {
  double root = x > 1 ? x : 1;
  for (int i = 0; i < 60; i++) root = 0.5 * (root + x / root);
  return root;
}

constexpr double length(Point<double> p) { return square_root(p.x * p.x + p.y * p.y); }

constexpr Point<double> difference(Point<double> a, Point<double> b) {
  return {a.x - b.x, a.y - b.y};
}

// Return the line through `at` whose normal has the direction of `normal`.
template <class T>
constexpr Line<T> line_through(Point<double> at, Point<double> normal) {
  const double scale = 1 / length(normal);
  const double x = scale * normal.x, y = scale * normal.y;
  return {static_cast<T>(x), static_cast<T>(y), static_cast<T>(x * at.x + y * at.y)};
}

template <class T>
constexpr Track<T> make_track() {
  constexpr int kCount = kGates;
  const auto center = [](int i) {
    const auto& point = kCenterLine_m[(i + kCount) % kCount];
    return Point<double>{point[0], point[1]};
  };
  const auto border = [&](int i, double half_width) {
    const Point<double> along = difference(center(i + 1), center(i - 1));
    const double scale = half_width / length(along);
    return Point<double>{center(i).x - scale * along.y, center(i).y + scale * along.x};
  };
  const auto rounded = [](Point<double> p) {
    return Point<T>{static_cast<T>(p.x), static_cast<T>(p.y)};
  };
  Track<T> track{};
  double way_m = 0;
  for (int i = 0; i < kCount; i++) {
    const Point<double> left = border(i, kHalfWidth_m), right = border(i, -kHalfWidth_m);
    const Point<double> left_way = difference(border(i + 1, kHalfWidth_m), left);
    const Point<double> right_way = difference(border(i + 1, -kHalfWidth_m), right);
    track.center[i] = rounded(center(i));
    track.left[i] = rounded(left);
    track.right[i] = rounded(right);
    track.gate[i] = line_through<T>(center(i), difference(center(i + 1), center(i - 1)));
    track.left_edge[i] = line_through<T>(left, {left_way.y, -left_way.x});
    track.right_edge[i] = line_through<T>(right, {-right_way.y, right_way.x});
    const double section_m = length(difference(center(i + 1), center(i)));
    track.section_m[i] = static_cast<T>(section_m);
    track.begin_m[i] = static_cast<T>(way_m);
    way_m += section_m;
  }
  track.length_m = static_cast<T>(way_m);
  return track;
}

template <class T>
inline constexpr Track<T> kTrack = make_track<T>();

// The position of a point on the track: the way along the center line from gate 0, by its share of
// the distance between two gates, which has no jumps; and how far the nearer border is, negative
// off the track, where there is no way.
template <class T>
struct TrackPosition {
  T way_m, clearance_m;
};

template <class T>
TrackPosition<T> track_position(T x, T y) {
  constexpr const Track<T>& track = kTrack<T>;
  TrackPosition<T> found{T(0), T(-1)};
  T behind = track.gate[0].distance(x, y);
  for (int i = 0; i < kGates; i++) {
    const T next_behind = track.gate[i + 1 < kGates ? i + 1 : 0].distance(x, y);
    const T left = track.left_edge[i].distance(x, y), right = track.right_edge[i].distance(x, y);
    const bool is_here =
        ((behind >= T(0)) & (next_behind < T(0)) & (left >= T(0)) & (right >= T(0))) != 0;
    const T share = behind / (behind - next_behind);
    found.way_m = is_here ? math::fma(share, track.section_m[i], track.begin_m[i]) : found.way_m;
    found.clearance_m = is_here ? math::minimum(left, right) : found.clearance_m;
    behind = next_behind;
  }
  return found;
}

// The position of a point as seen along each ray: ahead by `along`, and to its left by `across`.
template <class T, int Rays>
struct Sight {
  T along[Rays], across[Rays];
};

// distance_m[i] = from (x, y) along the direction `ray[i]`, of length 1, to the nearest border;
// max_range_m where that is farther away.
//
// Cast the rays. A ray crosses the border between two of its points if they lie on different sides
// of it. The side of a point is the same for the pieces on both of its sides, so that no ray passes
// between them.
template <class T, int Rays>
void cast_rays(T x, T y, const Point<T> (&ray)[Rays], T max_range_m, T* distance_m) {
  constexpr const Track<T>& track = kTrack<T>;
  for (int i = 0; i < Rays; i++) distance_m[i] = max_range_m;
  const auto see = [&](const Point<T>& point, Sight<T, Rays>& sight) {
    const T dx = point.x - x, dy = point.y - y;
    for (int i = 0; i < Rays; i++) {
      sight.along[i] = math::fma(ray[i].x, dx, ray[i].y * dy);
      sight.across[i] = math::fma(ray[i].x, dy, -(ray[i].y * dx));
    }
  };
  const auto look_at = [&](const Point<T>(&border)[kGates]) {
    Sight<T, Rays> last, next;
    see(border[kGates - 1], last);
    for (const Point<T>& point : border) {
      see(point, next);
      for (int i = 0; i < Rays; i++) {
        const T share = last.across[i] / (last.across[i] - next.across[i]);
        const T distance = math::fma(share, next.along[i] - last.along[i], last.along[i]);
        const bool is_seen = (((last.across[i] < T(0)) != (next.across[i] < T(0))) &
                              (distance >= T(0)) & (distance < distance_m[i])) != 0;
        distance_m[i] = is_seen ? distance : distance_m[i];
      }
      last = next;
    }
  };
  look_at(track.left);
  look_at(track.right);
}

}  // namespace rlt::racing_car
