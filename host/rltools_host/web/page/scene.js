// A flight in 3-D on a canvas: the drone with its rotors' speeds and thrusts, its target, its trail
// and the wind. Its arms are drawn 0.16 m long, or as they are where they are longer.
const NEAR = 0.05, TRAIL_S = 3, SQUARE = 0.5, SQUARES = 5, FLOOR = -1;
const ARM = 0.16, FOCAL = 1.25, GRAB = 48, PIXELS_A_M_S = 50;
const HUBS = [[1, -1], [-1, -1], [-1, 1], [1, 1]]; // forward and left, in the contract's order
const COLORS = ["--first", "--second", "--third", "--good", "--faint", "--line"];
const TURN = 2 * Math.PI, CORNERS = 28; // of what is drawn as a circle

const add = (a, b, scale = 1) => [a[0] + scale * b[0], a[1] + scale * b[1], a[2] + scale * b[2]];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];

/** Turns a vector by the quaternion (w, x, y, z). */
export function turned([w, x, y, z], v) {
  const a = y * v[2] - z * v[1] + w * v[0], b = z * v[0] - x * v[2] + w * v[1];
  const c = x * v[1] - y * v[0] + w * v[2];
  return [v[0] + 2 * (y * c - z * b), v[1] + 2 * (z * a - x * c), v[2] + 2 * (x * b - y * a)];
}

export class Scene {
  constructor(canvas) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d");
    this.isLookedUp = false; // size and colors
    this.yaw = -2.2;
    this.pitch = 0.38;
    this.zoom = 1;
    this.center = [0, 0, 0];
    this.distance = 2;
    this.clear();
  }

  clear() {
    this.trail = [];
    this.spin = [0, 0, 0, 0];
  }

  /** Adapts to a changed size or colors of the page. */
  lookUp() {
    this.isLookedUp = false;
  }

  turn(right, up) {
    this.yaw -= right;
    this.pitch = Math.max(-0.15, Math.min(1.5, this.pitch + up));
  }
  nearer(factor) {
    this.zoom = Math.max(0.4, Math.min(4, this.zoom * factor));
  }

  /** Returns right, up and away in the world, as they are seen. */
  directions() {
    const c = Math.cos(this.yaw), s = Math.sin(this.yaw);
    return { right: [-s, c, 0], up: [0, 0, 1], away: [-c, -s, 0] };
  }

  /** Returns whether the pointer, in pixels of the page, is at the drone. */
  isAtDrone(x, y) {
    const at = this.moment && this.#project(this.moment.position_m);
    return Boolean(at) && Math.hypot(at[0] - x, at[1] - y) < GRAB;
  }
  /** Returns the push, in m/s in the world, of a pull of the drone to this pixel; `limit` at most. */
  pull(x, y, limit) {
    const at = this.#project(this.moment.position_m);
    if (!at) return [0, 0, 0];
    const { right } = this.directions();
    const across = (x - at[0]) / PIXELS_A_M_S, up = (at[1] - y) / PIXELS_A_M_S;
    const scale = Math.min(1, limit / Math.max(1e-6, Math.hypot(across, up)));
    return add([0, 0, 0].map((_, i) => scale * across * right[i]), this.up, scale * up);
  }

  /** Draws the state of a moment; `seconds` since the one before; `pull`: m/s, or null. */
  draw(moment, seconds, { rotors, radius, pull }) {
    this.moment = moment;
    if (!this.isLookedUp) this.#fit(), this.#lookUpColors();
    this.isLookedUp = true;
    this.#look(moment, seconds);
    const { position_m: p, target_position_m: target } = moment;
    this.pen.clearRect(0, 0, this.width, this.height);
    this.#floor(p, target);
    this.#target(target, radius);
    this.#trail(moment, seconds);
    this.#drone(moment, seconds, rotors);
    this.#wind(p, moment.gust_m_s2);
    if (pull) this.#arrow(p, add(p, pull, 0.25), "--second", 3);
  }

  #fit() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const ratio = Math.min(2, devicePixelRatio || 1);
    this.width = width;
    this.height = height;
    const [across, down] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.canvas.width !== across || this.canvas.height !== down) {
      this.canvas.width = across;
      this.canvas.height = down;
    }
    this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.pen.lineCap = this.pen.lineJoin = "round";
    this.pen.font = "12px system-ui, sans-serif";
  }

  #lookUpColors() {
    const style = getComputedStyle(this.canvas);
    this.color = Object.fromEntries(COLORS.map((name) => [name, style.getPropertyValue(name)]));
  }

  // The camera follows what is between drone and target, and has both in its view.
  #look({ position_m: p, target_position_m: target }, seconds) {
    const between = add(p, target).map((value) => value / 2);
    const apart = Math.hypot(...add(p, target, -1));
    const part = seconds > 0 ? 1 - Math.exp(-2 * seconds) : 0;
    this.center = add(this.center, add(between, this.center, -1), part);
    this.distance += part * (1.3 + 1.2 * apart - this.distance);
    const cy = Math.cos(this.yaw), sy = Math.sin(this.yaw);
    const cp = Math.cos(this.pitch), sp = Math.sin(this.pitch);
    this.eye = add(this.center, [cp * cy, cp * sy, sp], this.distance / this.zoom);
    this.forward = [-cp * cy, -cp * sy, -sp];
    this.right = [-sy, cy, 0];
    this.up = [-sp * cy, -sp * sy, cp];
    this.focal = FOCAL * Math.min(this.width, this.height);
  }

  #seen(point) {
    const from = add(point, this.eye, -1);
    return [dot(from, this.right), dot(from, this.up), dot(from, this.forward)];
  }
  #flat([x, y, depth]) {
    return [this.width / 2 + (this.focal * x) / depth, this.height / 2 - (this.focal * y) / depth];
  }
  #project(point) {
    const seen = this.#seen(point);
    return seen[2] > NEAR ? this.#flat(seen) : null;
  }

  // Draws through these points of the world; what is behind the eye is left out.
  #line(points, color, thickness, { alpha = 1, fill = 0 } = {}) {
    const { pen } = this;
    let before = null, isCut = false;
    pen.beginPath();
    for (const point of points) {
      const seen = this.#seen(point);
      if (before && before[2] > NEAR !== seen[2] > NEAR) {
        const part = (NEAR * 1.01 - before[2]) / (seen[2] - before[2]);
        const edge = add(before, add(seen, before, -1), part);
        if (before[2] > NEAR) pen.lineTo(...this.#flat(edge));
        else pen.moveTo(...this.#flat(edge));
      }
      if (seen[2] <= NEAR) isCut = true;
      else if (before) pen.lineTo(...this.#flat(seen));
      else pen.moveTo(...this.#flat(seen));
      before = seen;
    }
    if (fill && !isCut) {
      pen.globalAlpha = fill;
      pen.fillStyle = this.color[color];
      pen.fill();
    }
    pen.globalAlpha = alpha;
    pen.strokeStyle = this.color[color];
    pen.lineWidth = thickness;
    if (thickness > 0) pen.stroke();
    pen.globalAlpha = 1;
  }
  #circle(at, color, thickness, options) {
    const angles = Array.from({ length: CORNERS + 1 }, (_, k) => (TURN * k) / CORNERS);
    this.#line(angles.map((angle) => at(Math.cos(angle), Math.sin(angle))), color, thickness, options);
  }
  #arrow(from, to, color, thickness) {
    const a = this.#project(from), b = this.#project(to);
    if (!a || !b) return null;
    const angle = Math.atan2(b[1] - a[1], b[0] - a[0]), { pen } = this;
    pen.strokeStyle = this.color[color];
    pen.lineWidth = thickness;
    pen.beginPath();
    pen.moveTo(...a);
    pen.lineTo(...b);
    for (const side of [-2.6, 2.6]) {
      pen.moveTo(...b);
      pen.lineTo(b[0] + 9 * Math.cos(angle + side), b[1] + 9 * Math.sin(angle + side));
    }
    pen.stroke();
    return a;
  }
  #text(text, x, y) {
    this.pen.fillStyle = this.color["--faint"];
    const { width } = this.pen.measureText(text);
    this.pen.fillText(text, Math.max(4, Math.min(x, this.width - width - 4)), Math.max(14, y));
  }

  #floor(p, target) {
    const z = target[2] + FLOOR, reach = SQUARES * SQUARE;
    const x0 = Math.round(target[0] / SQUARE) * SQUARE, y0 = Math.round(target[1] / SQUARE) * SQUARE;
    for (let k = -SQUARES; k <= SQUARES; k++) {
      const at = k * SQUARE;
      this.#line([[x0 + at, y0 - reach, z], [x0 + at, y0 + reach, z]], "--line", 1);
      this.#line([[x0 - reach, y0 + at, z], [x0 + reach, y0 + at, z]], "--line", 1);
    }
    if (p[2] > z) {
      this.#circle((c, s) => [p[0] + 0.8 * ARM * c, p[1] + 0.8 * ARM * s, z], "--faint", 0, { fill: 0.3 });
      this.#line([p, [p[0], p[1], z]], "--faint", 1, { alpha: 0.4 });
    }
    this.#text(`squares of ${SQUARE} m`, 10, this.height - 10);
  }

  #target(target, radius) {
    const options = { alpha: 0.6 };
    this.#circle((c, s) => add(target, [radius * c, radius * s, 0]), "--good", 1.5, { ...options, fill: 0.12 });
    this.#circle((c, s) => add(target, [radius * c, 0, radius * s]), "--good", 1, options);
    this.#circle((c, s) => add(target, [0, radius * c, radius * s]), "--good", 1, options);
  }

  #trail({ position_m: p, tick_s: now }, seconds) {
    if (seconds > 0 || !this.trail.length) this.trail.push({ p, now });
    this.trail = this.trail.filter((each) => each.now > now - TRAIL_S);
    const part = Math.ceil(this.trail.length / 6);
    for (let k = 0; k < this.trail.length; k += part) {
      const points = this.trail.slice(k, k + part + 1).map((each) => each.p);
      this.#line(points, "--first", 2.5, { alpha: 0.08 + (0.6 * (k + part)) / (this.trail.length + part) });
    }
  }

  #drone(moment, seconds, [reachX, reachY]) {
    const { position_m: p, attitude, rotor_speed: speeds, thrusts } = moment;
    const larger = Math.max(1, ARM / Math.hypot(reachX, reachY));
    const [x, y] = [reachX * larger, reachY * larger], size = Math.hypot(x, y);
    const at = (v) => add(p, turned(attitude, v));
    const hubs = HUBS.map(([front, left]) => [front * x, left * y, 0]);
    const farther = hubs.map((hub, k) => [this.#seen(at(hub))[2], k]).sort((a, b) => b[0] - a[0]);
    for (const [, k] of farther) {
      const [hx, hy] = hubs[k], top = 0.2 * size, disc = 0.55 * size;
      const color = k === 0 || k === 3 ? "--second" : "--faint";
      this.#line([at([0, 0, 0]), at(hubs[k]), at([hx, hy, top])], "--third", 3);
      const round = (c, s) => at([hx + disc * c, hy + disc * s, top]);
      this.#circle(round, color, 1.5, { fill: 0.08 + 0.4 * speeds[k] });
      this.spin[k] += (k % 2 ? -1 : 1) * TURN * 4 * speeds[k] * Math.min(seconds, 0.05);
      const c = Math.cos(this.spin[k]), s = Math.sin(this.spin[k]);
      this.#line([round(c, s), round(-c, -s)], color, 2);
      const reach = top + 1.6 * size * thrusts[k];
      if (thrusts[k] > 0.01) this.#line([at([hx, hy, top]), at([hx, hy, reach])], "--good", 3);
    }
    this.#line([at([0, 0, 0]), at([1.3 * size, 0, 0])], "--second", 4); // forward
  }

  #wind(p, wind) {
    const strength = Math.hypot(...wind);
    if (!(strength > 0.2)) return;
    const along = wind.map((axis) => axis / strength), length = Math.min(0.9, 0.15 + 0.08 * strength);
    const tip = add(p, along, -0.3);
    const tail = this.#arrow(add(tip, along, -length), tip, "--faint", 2.5);
    if (tail) this.#text(`wind ${strength.toFixed(1)} m/s²`, tail[0] + 6, tail[1] - 8);
  }
}
