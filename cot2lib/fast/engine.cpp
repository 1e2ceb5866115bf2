// The fused CPU engine: whole training steps and evaluations of small models, each one call, one run at a time.
//
// The torch stack (`cot2lib/model/stack.py`) is what readers read, and what runs on a GPU. This file computes the same
// with everything in the core's cache; parity tests bind the two. Functions have torch's names, and `NAME_back` is the
// gradient of NAME by hand. `__init__.py` builds and calls it, and says what the structures of `Shape` to `Work` hold.
//
// Rows of all arrays are positions x inputs: position 0 of every input first. So a pass over some positions finds the
// keys and values of those before it in place. Inputs may come by their padding, and rows of padding be left out:
// `starts` says where each position begins. The last layer computes queries and MLP for the scored positions alone.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

typedef int64_t Int;
typedef uint64_t Key;

// Vectors ------------------------------------------------------------------------------------------------------------

#if defined(__AVX512F__)
constexpr Int LANES = 16, ROWS = 8;  // floats of a vector; rows of a product that stay in registers
#elif defined(__AVX__)
constexpr Int LANES = 8, ROWS = 4;
#elif defined(__aarch64__)
constexpr Int LANES = 4, ROWS = 8;
#else
constexpr Int LANES = 4, ROWS = 4;
#endif
constexpr Int PADDED = 16, EIGHT = 8;  // keys and vocabulary are padded to multiples of the one, widths are of the other

template <int N> struct Lanes;
#define LANES_OF(N)                                             \
  template <> struct Lanes<N> {                                 \
    typedef float floats __attribute__((vector_size(4 * N)));   \
    typedef int32_t ints __attribute__((vector_size(4 * N)));   \
    typedef uint16_t draws __attribute__((vector_size(2 * N))); \
  };
LANES_OF(4)
LANES_OF(8)
LANES_OF(16)
typedef Lanes<LANES>::floats vec;
typedef Lanes<EIGHT>::floats vec8;
typedef Key keys8 __attribute__((vector_size(64)));
template <class V> constexpr int N_OF = sizeof(V) / 4;
template <class V> using Ints = typename Lanes<N_OF<V>>::ints;
#define INLINE inline __attribute__((always_inline))

template <class V, class T> INLINE V load(const T* from) {
  V v;
  memcpy(&v, from, sizeof v);
  return v;
}
template <class V, class T> INLINE void store(T* to, V v) { memcpy(to, &v, sizeof v); }

// f(vector type, j) at j = 0, LANES, ... of n floats, a multiple of eight.
template <class F> INLINE void vectors(Int n, F f) {
  Int j = 0;
  for (; j + LANES <= n; j += LANES) f(vec(), j);
  if (LANES > EIGHT && j < n) f(vec8(), j);
}

INLINE float sum(Lanes<4>::floats v) { return (v[0] + v[2]) + (v[1] + v[3]); }
template <class V> INLINE float sum(V v) {
  typename Lanes<N_OF<V> / 2>::floats half[2];
  memcpy(half, &v, sizeof v);
  return sum(half[0] + half[1]);
}
INLINE float greatest(Lanes<4>::floats v) { return std::max(std::max(v[0], v[2]), std::max(v[1], v[3])); }
template <class V> INLINE float greatest(V v) {
  typename Lanes<N_OF<V> / 2>::floats half[2];
  memcpy(half, &v, sizeof v);
  return greatest(half[0] > half[1] ? half[0] : half[1]);
}

// Sum of f(vector type, j) over n floats.
template <class F> INLINE float sum_over(Int n, F f) {
  vec total = {};
  Int j = 0;
  for (; j + LANES <= n; j += LANES) total += f(vec(), j);
  float all = sum(total);
  if (LANES > EIGHT && j < n) all += sum(f(vec8(), j));
  return all;
}

// e^x within 3e-7 of itself: 2^n times a polynomial on |f| <= ln(2) / 2; exactly 0 below -88.
template <class V> INLINE V exp_of(V x) {
  constexpr float LOG2E = 1.44269504f, LN2_HIGH = 0.693359375f, LN2_LOW = -2.12194440e-4f;
  constexpr int32_t SIGN = INT32_MIN, HALF = 0x3f000000;
  const V lowest = V() - 88.0f, highest = V() + 88.0f;
  x = x < lowest ? lowest : x;
  x = x > highest ? highest : x;
  V y = x * LOG2E;
  Ints<V> n = __builtin_convertvector(y + (V)(((Ints<V>)y & SIGN) | HALF), Ints<V>);
  V whole = __builtin_convertvector(n, V), f = (x - whole * LN2_HIGH) - whole * LN2_LOW;
  V tail = V() + 1.0f / 720;
  for (float c : {1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f}) tail = tail * f + c;
  return tail * (V)((n + 127) << 23);
}

// x^(-1/2) within 1e-7 of itself: three of Newton's steps, which cost less than a processor's root.
template <class V> INLINE V inverse_root(V x) {
  V y = (V)(0x5f3759df - ((Ints<V>)x >> 1));
  for (int step = 0; step < 3; step++) y = y * (1.5f - 0.5f * x * y * y);
  return y;
}

// Products -----------------------------------------------------------------------------------------------------------

// c (R rows, C vectors) = init + a b, over k; a (row, k) and its two strides, b (k, column), columns are neighbours.
template <class V, int R, int C>
INLINE void tile(Int k, const float* a, Int a_row, Int a_k, const float* b, Int b_k, float* c, Int c_row,
                 const float* init, Int init_row) {
  V sums[R][C];
  for (int r = 0; r < R; r++)
    for (int v = 0; v < C; v++) sums[r][v] = init ? load<V>(init + r * init_row + v * N_OF<V>) : V();
  for (Int step = 0; step < k; step++, a += a_k, b += b_k) {
    V column[C];
    for (int v = 0; v < C; v++) column[v] = load<V>(b + v * N_OF<V>);
    for (int r = 0; r < R; r++)
      for (int v = 0; v < C; v++) sums[r][v] += column[v] * a[r * a_row];
  }
  for (int r = 0; r < R; r++)
    for (int v = 0; v < C; v++) store(c + r * c_row + v * N_OF<V>, sums[r][v]);
}

template <class V, int R, int C>
INLINE Int tiles(Int i, Int rows, Int k, const float* a, Int a_row, Int a_k, const float* b, Int b_k, float* c,
                 Int c_row, const float* init, Int init_row) {
  for (; i + R <= rows; i += R)
    tile<V, R, C>(k, a + i * a_row, a_row, a_k, b, b_k, c + i * c_row, c_row, init ? init + i * init_row : init,
                  init_row);
  return i;
}

// All rows of c for C vectors of columns: tiles of many rows, then of fewer.
template <class V, int C>
__attribute__((noinline)) void strip(Int rows, Int k, const float* a, Int a_row, Int a_k, const float* b, Int b_k,
                                     float* c, Int c_row, const float* init, Int init_row) {
  Int i = tiles<V, ROWS, C>(0, rows, k, a, a_row, a_k, b, b_k, c, c_row, init, init_row);
  if (ROWS > 4) i = tiles<V, 4, C>(i, rows, k, a, a_row, a_k, b, b_k, c, c_row, init, init_row);
  i = tiles<V, 2, C>(i, rows, k, a, a_row, a_k, b, b_k, c, c_row, init, init_row);
  tiles<V, 1, C>(i, rows, k, a, a_row, a_k, b, b_k, c, c_row, init, init_row);
}

// c (rows, columns) = init + a b over k. `init` is null for zeros, a row (of stride 0), or c itself; columns are a
// multiple of eight. Panels of rows and of k stay in the core's first cache; every entry adds up in the same order.
void product(Int rows, Int columns, Int k, const float* a, Int a_row, Int a_k, const float* b, Int b_k, float* c,
             Int c_row, const float* init = nullptr, Int init_row = 0) {
  constexpr Int ROW_PANEL = 64, K_PANEL = 128;
  for (Int begin = 0; begin < k; begin += K_PANEL, init = c, init_row = c_row) {
    Int many = std::min(k - begin, K_PANEL);
    for (Int i = 0; i < rows; i += ROW_PANEL) {
      Int some = std::min(rows - i, ROW_PANEL), j = 0;
      const float *ai = a + i * a_row + begin * a_k, *bk = b + begin * b_k, *start = init ? init + i * init_row : init;
      float* ci = c + i * c_row;
      auto at = [&](Int column) { return start ? start + column : start; };
      for (; j + 2 * LANES <= columns; j += 2 * LANES)
        strip<vec, 2>(some, many, ai, a_row, a_k, bk + j, b_k, ci + j, c_row, at(j), init_row);
      for (; j + LANES <= columns; j += LANES)
        strip<vec, 1>(some, many, ai, a_row, a_k, bk + j, b_k, ci + j, c_row, at(j), init_row);
      if (LANES > EIGHT && j < columns)
        strip<vec8, 1>(some, many, ai, a_row, a_k, bk + j, b_k, ci + j, c_row, at(j), init_row);
    }
  }
}

void transpose(const float* a, Int rows, Int columns, float* out, Int out_row) {
  for (Int j = 0; j < columns; j++)
    for (Int i = 0; i < rows; i++) out[j * out_row + i] = a[i * columns + j];
}

// What Python hands over: packed fields of eight bytes each, an array as its address and its sizes -------------------

template <class T, int D> struct Array {
  T* at;
  Int size[D];
  T& operator[](Int i) const { return at[i]; }
};
typedef Array<const Int, 1> Ints1;
typedef Array<const Int, 2> Ints2;

struct Shape {
  Int vocab, places, width, layers, heads, batch, positions, scored, shared, branches, own;
};

struct Data {
  Ints2 prompts;
  Ints1 padding, shift, outputs, starts, tokens;
  Array<const float, 1> weights;
  Int steps, ending, mean, sequence;

  // First and last entry of an input's target at an output.
  void entries(Int variant, Int input, Int output, Int* first, Int* last) const {
    Int k = (variant * prompts.size[0] + input) * steps + output;
    *first = starts[k], *last = starts[k + 1];
  }
};

struct Noise {
  Key key;
  Array<const Key, 1> counter;
  Int threshold;  // of a 16-bit lane, 0 for no dropout
  double scale;
};

struct Optimiser {
  Array<float, 1> mean, square;
  Array<const float, 1> rates;
  double decay, beta2;
  Int frozen;
};

struct Work {
  Array<float, 1> gradient;
  Array<Key, 1> draws;
  Array<float, 1> scratch;
};

struct Pass {
  Int low, high, scored, lane, end;  // positions, of which the last are scored; its dropout multipliers
};

// A run and its arrays -----------------------------------------------------------------------------------------------

struct Linear {
  Int in, out, pitch;  // pitch: floats from one row of the weight to the next
  const float *weight, *bias, *transposed;
  float *d_weight, *d_bias;

  Linear columns(Int first, Int count) const {
    return {in, count, pitch, weight + first, bias + first, transposed + first * in, d_weight + first, d_bias + first};
  }
};

struct Norm {
  const float *weight, *bias;
  float *d_weight, *d_bias, *hat, *inverse, *out;
};

struct Block {
  Norm ln_1, ln_2;
  Linear c_attn, attn_proj, c_fc, mlp_proj;
  float *x, *qkv, *weights, *attended, *middle, *act, *slope;  // weights: of attention, before dropout
  float *d_qkv, *d_attn, *d_fc, *d_mlp;                        // gradients of what the linear maps give
};

struct Run {
  const Shape& s;
  const Int d, b, rows, keys, vocab, head, wide;  // keys, vocab and wide (of a head) are padded
  float* flat;
  const float *wte, *wpe;
  float *d_wte, *d_wpe, *wte_T;
  std::vector<Block> blocks;
  Norm ln_f;
  float *x, *logits, *alpha, *hidden;  // x: out of the last layer; alpha: own thoughts; hidden: keys of other branches
  float *d_x, *d_normed, *d_thought, *d_alpha;
  float *query, *key, *value, *out, *d_key, *d_value, *turned, *scores, *dropped;  // of one head
  uint16_t* lanes;
  std::vector<Int> inputs, padding, shift, first, starts;
  float* next;

  Run(float* flat, const Shape& s, const Work& w, float* begin);

  static Int padded(Int n, Int to) { return (n + to - 1) / to * to; }
  float* take(Int count) {
    float* taken = next;
    next += padded(count, PADDED);
    return taken;
  }
  Norm norm(const float* (&at), float* (&d_at)) {
    Norm n = {at, at + d, d_at, d_at + d, take(rows * d), take(rows), take(rows * d)};
    at += 2 * d, d_at += 2 * d;
    return n;
  }
  Linear linear(const float* (&at), float* (&d_at), Int in, Int out) {
    Linear l = {in, out, out, at, at + in * out, take(in * out), d_at, d_at + in * out};
    at += in * out + out, d_at += in * out + out;
    return l;
  }
  float* rows_of(float* array, Int position, Int width) const { return array + starts[position] * width; }
};

constexpr Int QUERIES = 32;  // that attend together

Run::Run(float* flat, const Shape& s, const Work& w, float* begin)
    : s(s), d(s.width), b(s.batch), rows(s.positions * b), keys(padded(s.positions, PADDED)),
      vocab(padded(s.vocab, PADDED)), head(d / s.heads), wide(padded(head, EIGHT)), flat(flat), blocks(s.layers),
      inputs(b), padding(b), shift(b), first(b), starts(s.positions + 1), next(begin) {
  const float* at = flat;
  float* d_at = w.gradient.at;
  wte = at, wpe = at += s.vocab * d, at += s.places * d;
  d_wte = d_at, d_wpe = d_at += s.vocab * d, d_at += s.places * d;
  float *d_qkv = nullptr, *d_attn = nullptr, *d_fc = nullptr, *d_mlp = nullptr;
  for (Int layer = 0; layer < s.layers; layer++) {
    Block& k = blocks[layer];
    k.ln_1 = norm(at, d_at);
    k.c_attn = linear(at, d_at, d, 3 * d);
    k.attn_proj = linear(at, d_at, d, d);
    k.ln_2 = norm(at, d_at);
    k.c_fc = linear(at, d_at, d, 4 * d);
    k.mlp_proj = linear(at, d_at, 4 * d, d);
    k.x = take(rows * d), k.qkv = take(rows * 3 * d), k.weights = take(b * s.heads * s.positions * keys);
    k.attended = take(rows * d), k.middle = take(rows * d), k.act = take(rows * 4 * d), k.slope = take(rows * 4 * d);
    if (layer == 0 || (s.own && s.branches == 1)) {  // layers share these, unless later passes need them
      d_qkv = take(rows * 3 * d), d_attn = take(rows * d), d_fc = take(rows * 4 * d), d_mlp = take(rows * d);
    }
    k.d_qkv = d_qkv, k.d_attn = d_attn, k.d_fc = d_fc, k.d_mlp = d_mlp;
  }
  ln_f = norm(at, d_at);
  wte_T = take(d * vocab), x = take(rows * d), logits = take(rows * vocab), alpha = take(s.own * b * vocab);
  hidden = take(s.branches * keys);
  d_x = take(rows * d), d_normed = take(rows * d), d_thought = take(b * d), d_alpha = take(b * vocab);
  query = take(s.positions * wide), key = take(s.positions * wide), value = take(s.positions * wide);
  out = take(s.positions * wide), d_key = take(s.positions * wide), d_value = take(s.positions * wide);
  turned = take(wide * keys), scores = take(QUERIES * keys), dropped = take(QUERIES * keys);
  lanes = (uint16_t*)w.draws.at;
  for (Int p = 0; p <= s.positions; p++) starts[p] = p * b;
}

// A run's arrays in its scratch, from the start of a cache line on.
Run run_of(const Array<float, 1>& flat, const Shape& s, const Work& w) {
  return Run(flat.at, s, w, (float*)(((uintptr_t)w.scratch.at + 63) / 64 * 64));
}

// Transposed copies of all matrices, which gradients are multiplied by; the table's gives the logits too.
void transpose_weights(Run& r) {
  transpose(r.wte, r.s.vocab, r.d, r.wte_T, r.vocab);
  for (Block& k : r.blocks)
    for (Linear* l : {&k.c_attn, &k.attn_proj, &k.c_fc, &k.mlp_proj})
      transpose(l->weight, l->in, l->out, const_cast<float*>(l->transposed), l->in);
}

// Rows of a batch: inputs as they come, or if it is `sparse` by their padding, whose rows are left out.
void arrange(Run& r, const Data& data, const Int* inputs, bool sparse) {
  std::copy(inputs, inputs + r.b, r.inputs.begin());
  if (sparse)
    std::stable_sort(r.inputs.begin(), r.inputs.end(), [&](Int a, Int b) { return data.padding[a] < data.padding[b]; });
  for (Int i = 0; i < r.b; i++) {
    r.padding[i] = data.padding[r.inputs[i]], r.shift[i] = data.shift[r.inputs[i]];
    r.first[i] = sparse ? r.padding[i] : 0;
  }
  for (Int p = 0, there = 0; p < r.s.positions; p++) {
    while (there < r.b && r.first[there] <= p) there++;
    r.starts[p + 1] = r.starts[p] + there;
  }
}

// Element by element -------------------------------------------------------------------------------------------------

// x += times other.
INLINE void add_row(float* x, const float* other, float times, Int n) {
  vectors(n, [&](auto v, Int j) {
    typedef decltype(v) V;
    store(x + j, load<V>(x + j) + times * load<V>(other + j));
  });
}

// x becomes its tanh GELU, x sigmoid(2u) with u = sqrt(2/pi) (x + .044715 x^3); slope its derivative.
void gelu(float* x, float* slope, Int n) {
  constexpr float TWICE = 2 * 0.7978845608f, CUBE = 0.044715f;
  vectors(n, [&](auto v, Int j) {
    typedef decltype(v) V;
    V h = load<V>(x + j), square = h * h;
    V s = 1.0f / (1.0f + exp_of(-TWICE * h * (1.0f + CUBE * square)));
    store(x + j, h * s);
    store(slope + j, s + h * s * (1.0f - s) * TWICE * (1.0f + 3 * CUBE * square));
  });
}

// out = weight hat + bias, hat = (x - mean) inverse, inverse = (variance + 1e-5)^(-1/2), of rows begin..end.
void layer_norm(const Norm& l, const float* x, Int begin, Int end, Int d) {
  for (Int i = begin; i < end; i++) {
    const float* row = x + i * d;
    float mean = sum_over(d, [&](auto v, Int j) { return load<decltype(v)>(row + j); }) / d;
    float square = sum_over(d, [&](auto v, Int j) {
      auto gap = load<decltype(v)>(row + j) - mean;
      return gap * gap;
    });
    float inverse = l.inverse[i] = 1 / std::sqrt(square / d + 1e-5f);
    vectors(d, [&](auto v, Int j) {
      typedef decltype(v) V;
      V hat = (load<V>(row + j) - mean) * inverse;
      store(l.hat + i * d + j, hat);
      store(l.out + i * d + j, hat * load<V>(l.weight + j) + load<V>(l.bias + j));
    });
  }
}

// d_x += inverse (g - mean(g) - hat mean(g hat)), g = d_out weight.
void layer_norm_back(const Norm& l, const float* d_out, float* d_x, Int begin, Int end, Int d) {
  for (Int i = begin; i < end; i++) {
    const float *given = d_out + i * d, *hat = l.hat + i * d;
    auto g = [&](auto v, Int j) { return load<decltype(v)>(given + j) * load<decltype(v)>(l.weight + j); };
    float mean = sum_over(d, g) / d, inverse = l.inverse[i];
    float along = sum_over(d, [&](auto v, Int j) { return g(v, j) * load<decltype(v)>(hat + j); }) / d;
    vectors(d, [&](auto v, Int j) {
      typedef decltype(v) V;
      V slope = load<V>(given + j), at = load<V>(hat + j);
      store(l.d_bias + j, load<V>(l.d_bias + j) + slope);
      store(l.d_weight + j, load<V>(l.d_weight + j) + slope * at);
      store(d_x + i * d + j, load<V>(d_x + i * d + j) + inverse * (g(v, j) - mean - at * along));
    });
  }
}

struct Softmax {
  float top, total;
  double log_sum() const { return top + std::log((double)total); }
};

// Floats begin..end of a row become the softmax over first..last of scale x + hidden, and zero elsewhere. Nothing is
// seen where nothing lies between first and last; begin and end are multiples of `PADDED`.
INLINE Softmax softmax(float* row, Int begin, Int end, Int first, Int last, float scale = 1,
                       const float* hidden = nullptr) {
  typedef Ints<vec> Places;
  const vec least = vec() - 1e30f;
  vec highest = vec() - 1e29f, sums = {};
  Places places = {};
  for (Int lane = 0; lane < LANES; lane++) places[lane] = begin + lane;
  for (Int k = begin; k < end; k += LANES, places += (int32_t)LANES) {
    vec x = load<vec>(row + k) * scale;
    if (hidden) x += load<vec>(hidden + k);
    x = (places >= (int32_t)first) & (places < (int32_t)last) ? x : least;
    store(row + k, x);
    highest = x > highest ? x : highest;
  }
  float top = greatest(highest);
  for (Int k = begin; k < end; k += LANES) {
    vec raised = exp_of(load<vec>(row + k) - top);
    store(row + k, raised);
    sums += raised;
  }
  float total = sum(sums), share = 1 / (total + 1e-30f);
  for (Int k = begin; k < end; k += LANES) store(row + k, load<vec>(row + k) * share);
  return {top, total};
}

// Gradients of a softmax's result become gradients of its x: scale p (g - sum(p g)), whatever g is where p is zero.
INLINE void softmax_back(const float* p, float* given, Int begin, Int end, float scale) {
  vec along = {};
  auto g = [&](Int k) { return load<vec>(p + k) > 0.0f ? load<vec>(given + k) : vec(); };
  for (Int k = begin; k < end; k += LANES) along += load<vec>(p + k) * g(k);
  float all = sum(along);
  for (Int k = begin; k < end; k += LANES) store(given + k, scale * load<vec>(p + k) * (g(k) - all));
}

// One step of torch.optim.AdamW (beta_1 = .9, eps 1e-8); `step` counts from 1.
void adamw(Run& r, const float* gradient, const Optimiser& o, double rate, Int step) {
  const float keep = 1 - rate * o.decay, size = rate / (1 - std::pow(0.9, step));
  const float scale = 1 / std::sqrt(1 - std::pow(o.beta2, step)), b1 = 0.1f, b2 = o.beta2;
  Int n = o.mean.size[0] - o.frozen;
  float *weight = r.flat + o.frozen, *mean = o.mean.at + o.frozen, *square = o.square.at + o.frozen;
  gradient += o.frozen;
  vectors(n, [&](auto v, Int j) {
    typedef decltype(v) V;
    V g = load<V>(gradient + j), m = load<V>(mean + j), s = b2 * load<V>(square + j) + (1 - b2) * g * g;
    m += b1 * (g - m);
    store(mean + j, m), store(square + j, s);
    V root = s * inverse_root(s) * scale;
    store(weight + j, load<V>(weight + j) * keep - size * m / (root + 1e-8f));
  });
}

// Keyed randomness, as in `cot2lib.kit.random` -------------------------------------------------------------------------

constexpr Key GOLDEN = 0x9E3779B97F4A7C15, SIGNS = 0x8000800080008000;

template <class K> INLINE K mix(K x) {  // the SplitMix64 finaliser
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

Key fold(Key key, Key part) { return mix(mix(key + GOLDEN) + part); }

// Dropout multipliers of a pass of a step: draws of four 16-bit lanes, whose sign bits are turned as in torch. Passes
// after the first have keys of their own.
void draw(const Work& w, const Noise& noise, Int step, Int number, Int begin, Int end) {
  Key here = number ? fold(fold(noise.key, step), number) : fold(noise.key, step);
  Key* draws = w.draws.at + begin;
  Int i = 0;
  for (; begin + i + 8 <= end; i += 8) store(draws + i, mix(load<keys8>(noise.counter.at + i) ^ here) ^ SIGNS);
  for (; begin + i < end; i++) draws[i] = mix(noise.counter[i] ^ here) ^ SIGNS;
}

template <class V> INLINE V multiplier(const uint16_t* lanes, const Noise& noise) {
  auto drawn = __builtin_convertvector(load<typename Lanes<N_OF<V>>::draws>(lanes), Ints<V>);
  return (V)((drawn >= (int32_t)noise.threshold) & (Ints<V>)(V() + (float)noise.scale));
}

// out = dropout(x), plus a residual if there is one, in rows begin..end; multipliers run input by input.
void dropout(const Run& r, const float* x, const float* residual, float* out, Int begin, Int end, Int lane,
             const Noise& noise) {
  Int d = r.d, positions = (end - begin) / r.b;
  auto give = [&](auto v, Int at, auto value) {
    store(out + at, residual ? value + load<decltype(v)>(residual + at) : value);
  };
  if (!noise.threshold) {
    vectors((end - begin) * d, [&](auto v, Int j) { give(v, begin * d + j, load<decltype(v)>(x + begin * d + j)); });
    return;
  }
  for (Int p = 0; p < positions; p++)
    for (Int i = 0; i < r.b; i++) {
      Int row = (begin + p * r.b + i) * d;
      const uint16_t* lanes = r.lanes + lane + (i * positions + p) * d;
      vectors(d, [&](auto v, Int j) {
        typedef decltype(v) V;
        give(v, row + j, load<V>(x + row + j) * multiplier<V>(lanes + j, noise));
      });
    }
}

// The keys that a branch must not see, those of others, as scores to be added (`cot2lib.model.branches`).
void hide_branches(Run& r) {
  for (Int branch = 0; branch < r.s.branches; branch++)
    for (Int k = 0; k < r.keys; k++)
      r.hidden[branch * r.keys + k] = k < r.s.shared || (k - r.s.shared) % r.s.branches == branch ? 0 : -1e30f;
}

// Linear maps --------------------------------------------------------------------------------------------------------

// y = x W + bias; x has l.in columns, rows of y are y_row apart.
void linear(const Linear& l, const float* x, float* y, Int y_row, Int rows) {
  product(rows, l.out, l.in, x, l.in, 1, l.weight, l.pitch, y, y_row, l.bias, 0);
}

// d_x = d_y W^T, or += if it is `more`.
void linear_back(const Linear& l, const float* d_y, Int y_row, float* d_x, Int rows, bool more = false) {
  product(rows, l.in, l.out, d_y, y_row, 1, l.transposed, l.in, d_x, l.in, more ? d_x : nullptr, l.in);
}

// d_W += x^T d_y, d_bias += sum of d_y over rows.
void linear_weights(const Linear& l, const float* x, const float* d_y, Int y_row, Int rows) {
  product(l.in, l.out, rows, x, 1, l.in, d_y, y_row, l.d_weight, l.pitch, l.d_weight, l.pitch);
  vectors(l.out, [&](auto v, Int j) {
    typedef decltype(v) V;
    V total = load<V>(l.d_bias + j);
    for (Int i = 0; i < rows; i++) total += load<V>(d_y + i * y_row + j);
    store(l.d_bias + j, total);
  });
}

// Attention: every input and head by itself, in blocks of queries ------------------------------------------------------

// A block of queries meets the keys up to its last one, without the padding before them. Rows of one input lie apart,
// often by a multiple of 4 KiB, where they compete for the same places of the cache: a head's rows are gathered first.

INLINE void take_row(float* to, const float* from, Int wide) {
  for (Int j = 0; j < wide; j += EIGHT) store(to + j, load<vec8>(from + j));
}
INLINE void give_row(float* to, const float* from, Int head) {
  Int j = 0;
  for (; j + EIGHT <= head; j += EIGHT) store(to + j, load<vec8>(from + j));
  for (; j < head; j++) to[j] = from[j];
}
INLINE void turn_row(float* to, const float* from, Int head, Int pitch) {
  for (Int j = 0; j < head; j++) to[j * pitch] = from[j];
}

struct Queries {
  Int low, last, begin, end;  // queries low..last see keys from begin on, a multiple of `PADDED`, up to end

  Queries(Int low, Int high, Int padding)
      : low(low), last(std::min(low + QUERIES, high)), begin(std::min(padding / PADDED * PADDED, last)),
        end((last + PADDED - 1) / PADDED * PADDED) {}
  Int rows() const { return last - low; }
  Int seen() const { return last - begin; }
};

// Rows of attention weights (query, key) times dropout multipliers, whose first row's begin at `lanes`.
void drop_weights(const Run& r, const float* x, float* out, const Queries& q, Int high, const uint16_t* lanes,
                  const Noise& noise) {
  for (Int row = 0; row < q.rows(); row++)
    for (Int k = q.begin; k < q.end; k += LANES)
      store(out + row * r.keys + k,
            load<vec>(x + row * r.keys + k) * multiplier<vec>(lanes + row * high + k, noise));
}

// attended = softmax(q k^T / sqrt(head)) v of every input and head, for queries low..high over keys 0..high.
void attention(Run& r, const Block& block, Int low, Int high, Int lane, const Noise& noise) {
  const Int d = r.d, wide = r.wide, head = r.head, keys = r.keys;
  const float scale = 1 / std::sqrt((float)head);
  for (Int i = 0; i < r.b; i++)
    for (Int h = 0; h < r.s.heads; h++) {
      Int there = r.first[i], begun = std::max(low, there), number = i * r.s.heads + h;
      float* weights = block.weights + number * r.s.positions * keys;
      for (Int p = there; p < high; p++) {
        const float* row = block.qkv + (r.starts[p] + i) * 3 * d + h * head;
        turn_row(r.turned + p, row + d, head, keys);
        take_row(r.value + p * wide, row + 2 * d, wide);
        if (p >= begun) take_row(r.query + p * wide, row, wide);
      }
      for (Int first = begun; first < high; first += QUERIES) {
        Queries q(first, high, r.padding[i]);
        float *out = r.out + first * wide, *seen = weights + first * keys;
        product(q.rows(), q.end - q.begin, head, r.query + first * wide, wide, 1, r.turned + q.begin, keys,
                seen + q.begin, keys);
        for (Int p = first; p < q.last; p++) {
          const float* hidden = p < r.s.shared ? nullptr : r.hidden + (p - r.s.shared) % r.s.branches * keys;
          softmax(weights + p * keys, q.begin, q.end, r.padding[i], p + 1, scale, r.s.branches > 1 ? hidden : nullptr);
        }
        if (noise.threshold) {
          const uint16_t* lanes = r.lanes + lane + (number * (high - low) + first - low) * high;
          drop_weights(r, seen, r.dropped, q, high, lanes, noise);
          seen = r.dropped;
        }
        if (q.seen())
          product(q.rows(), wide, q.seen(), seen + q.begin, keys, 1, r.value + q.begin * wide, wide, out, wide);
        else
          std::fill(out, out + q.rows() * wide, 0.0f);
      }
      for (Int p = begun; p < high; p++)
        give_row(block.attended + (r.starts[p] + i) * d + h * head, r.out + p * wide, head);
    }
}

// d_qkv of queries low..high, and what they add to that of keys and values, from d_normed, the gradient of `attended`.
// Without a pass that came later nothing is there to add to.
void attention_back(Run& r, const Block& block, Int low, Int high, bool later, Int lane, const Noise& noise) {
  const Int d = r.d, wide = r.wide, head = r.head, keys = r.keys;
  const float scale = 1 / std::sqrt((float)head);
  float* given = r.out;
  for (Int i = 0; i < r.b; i++)
    for (Int h = 0; h < r.s.heads; h++) {
      Int there = r.first[i], begun = std::max(low, there), number = i * r.s.heads + h;
      const float* weights = block.weights + number * r.s.positions * keys;
      for (Int p = there; p < high; p++) {
        Int row = r.starts[p] + i;
        const float *qkv = block.qkv + row * 3 * d + h * head, *before = block.d_qkv + row * 3 * d + h * head;
        turn_row(r.turned + p, qkv + 2 * d, head, keys);
        take_row(r.key + p * wide, qkv + d, wide);
        if (p >= begun) take_row(r.query + p * wide, qkv, wide);
        if (p >= begun) take_row(given + p * wide, r.d_normed + row * d + h * head, wide);
        if (later) take_row(r.d_key + p * wide, before + d, wide), take_row(r.d_value + p * wide, before + 2 * d, wide);
      }
      if (!later) {
        std::fill(r.d_key + there * wide, r.d_key + high * wide, 0.0f);
        std::fill(r.d_value + there * wide, r.d_value + high * wide, 0.0f);
      }
      for (Int first = begun; first < high; first += QUERIES) {
        Queries q(first, high, r.padding[i]);
        float *query = r.query + first * wide, *d_out = given + first * wide, *d_scores = r.scores;
        float *d_key = r.d_key + q.begin * wide, *d_value = r.d_value + q.begin * wide;
        const float* seen = weights + first * keys;
        if (!q.seen()) {
          std::fill(query, query + q.rows() * wide, 0.0f);
          continue;
        }
        product(q.rows(), q.end - q.begin, head, d_out, wide, 1, r.turned + q.begin, keys, d_scores + q.begin, keys);
        if (noise.threshold) {
          const uint16_t* lanes = r.lanes + lane + (number * (high - low) + first - low) * high;
          drop_weights(r, seen, r.dropped, q, high, lanes, noise);
          drop_weights(r, d_scores, d_scores, q, high, lanes, noise);
          seen = r.dropped;
        }
        product(q.seen(), wide, q.rows(), seen + q.begin, 1, keys, d_out, wide, d_value, wide, d_value, wide);
        for (Int p = first; p < q.last; p++)
          softmax_back(weights + p * keys, d_scores + (p - first) * keys, q.begin, q.end, scale);
        product(q.seen(), wide, q.rows(), d_scores + q.begin, 1, keys, query, wide, d_key, wide, d_key, wide);
        product(q.rows(), wide, q.seen(), d_scores + q.begin, keys, 1, r.key + q.begin * wide, wide, query, wide);
      }
      for (Int p = there; p < high; p++) {
        float* row = block.d_qkv + (r.starts[p] + i) * 3 * d + h * head;
        if (p >= begun) give_row(row, r.query + p * wide, head);
        give_row(row + d, r.d_key + p * wide, head);
        give_row(row + 2 * d, r.d_value + p * wide, head);
      }
    }
}

// The model ------------------------------------------------------------------------------------------------------------

float* place_of(const Run& r, float* wpe, Int depth, Int i) { return wpe + std::max(depth - r.shift[i], Int(0)) * r.d; }

// x_0 = embedding of each prompt's token, then E^T alpha* of each fed target, plus that of its position.
void embed(Run& r, const Data& data, Int positions, Int variant) {
  const Int d = r.d, tokens = data.prompts.size[1], vocab = r.s.vocab;
  float* x = r.s.layers ? r.blocks[0].x : r.x;
  for (Int p = 0; p < positions; p++)
    for (Int row = r.starts[p], i = 0; row < r.starts[p + 1]; row++, i++) {
      float* here = x + row * d;
      memcpy(here, place_of(r, const_cast<float*>(r.wpe), p, i), d * sizeof *here);
      if (p < tokens) {
        Int token = data.prompts[r.inputs[i] * tokens + p];
        add_row(here, r.wte + token % vocab * d, 1, d);
        if (token >= vocab) add_row(here, r.wte + (token / vocab - 1) * d, 1, d);  // a pair
        continue;
      }
      Int entry, last;
      data.entries(variant, r.inputs[i], p - tokens, &entry, &last);
      for (; entry < last; entry++) add_row(here, r.wte + data.tokens[entry] * d, data.weights[entry], d);
    }
}

// Adds d_x to the gradients of what `embed` has looked up; the first `own` thoughts were not looked up.
void embed_back(Run& r, const Data& data, Int positions, Int variant, Int own) {
  const Int d = r.d, tokens = data.prompts.size[1], vocab = r.s.vocab;
  for (Int p = 0; p < positions; p++)
    for (Int row = r.starts[p], i = 0; row < r.starts[p + 1]; row++, i++) {
      const float* given = r.d_x + row * d;
      add_row(place_of(r, r.d_wpe, p, i), given, 1, d);
      if (p < tokens) {
        Int token = data.prompts[r.inputs[i] * tokens + p];
        add_row(r.d_wte + token % vocab * d, given, 1, d);
        if (token >= vocab) add_row(r.d_wte + (token / vocab - 1) * d, given, 1, d);
      } else if (p >= tokens + own) {
        Int entry, last;
        data.entries(variant, r.inputs[i], p - tokens, &entry, &last);
        for (; entry < last; entry++) add_row(r.d_wte + data.tokens[entry] * d, given, data.weights[entry], d);
      }
    }
}

// x_0 of positions to come: E^T alpha of thoughts (row, token) plus the embedding of their place.
void mix(Run& r, const float* alpha, Int position, Int rows, Int depth) {
  float* x = r.rows_of(r.blocks[0].x, position, r.d);
  for (Int row = 0; row < rows; row++)
    memcpy(x + row * r.d, place_of(r, const_cast<float*>(r.wpe), depth, row % r.b), r.d * sizeof *x);
  product(rows, r.d, r.s.vocab, alpha, r.vocab, 1, r.wte, r.d, x, r.d, x, r.d);
}

// What a layer computes of a pass: keys and values of rows begin..end, all else of rows `rows`..end, from position
// `first` on; where its dropout multipliers begin: of attention's weights, of its projection, of the MLP.
struct Part {
  Int first, rows, begin, end, weights, attn, mlp;

  Part(const Run& r, const Pass& p, Int layer)
      : first(layer + 1 == r.s.layers ? p.high - p.scored : p.low), rows(r.starts[first]), begin(r.starts[p.low]),
        end(r.starts[p.high]), weights(p.lane + r.b * (p.high - p.low) * (r.d + layer * (r.s.heads * p.high + 2 * r.d))),
        attn(weights + r.b * r.s.heads * (p.high - first) * p.high), mlp(attn + r.b * (p.high - first) * r.d) {}
  Int count() const { return end - rows; }
};

// All layers for the positions of a pass, whose keys and values join those of the positions before. Leaves logits in
// the rows of the last scored positions.
void forward(Run& r, const Pass& p, const Noise& noise) {
  const Int d = r.d;
  if (noise.threshold) {
    float* x = r.blocks[0].x;
    dropout(r, x, nullptr, x, r.starts[p.low], r.starts[p.high], p.lane, noise);
  }
  for (Int layer = 0; layer < r.s.layers; layer++) {
    Block& k = r.blocks[layer];
    Part at(r, p, layer);
    float *middle = k.middle, *act = k.act + at.rows * 4 * d, *y = layer + 1 < r.s.layers ? r.blocks[layer + 1].x : r.x;
    layer_norm(k.ln_1, k.x, at.begin, at.end, d);
    linear(k.c_attn.columns(0, d), k.ln_1.out + at.rows * d, k.qkv + at.rows * 3 * d, 3 * d, at.count());
    linear(k.c_attn.columns(d, 2 * d), k.ln_1.out + at.begin * d, k.qkv + at.begin * 3 * d + d, 3 * d,
           at.end - at.begin);
    attention(r, k, at.first, p.high, at.weights, noise);
    linear(k.attn_proj, k.attended + at.rows * d, middle + at.rows * d, d, at.count());
    dropout(r, middle, k.x, middle, at.rows, at.end, at.attn, noise);
    layer_norm(k.ln_2, middle, at.rows, at.end, d);
    linear(k.c_fc, k.ln_2.out + at.rows * d, act, 4 * d, at.count());
    gelu(act, k.slope + at.rows * 4 * d, at.count() * 4 * d);
    linear(k.mlp_proj, act, y + at.rows * d, d, at.count());
    dropout(r, y, middle, y, at.rows, at.end, at.mlp, noise);
  }
  Int rows = r.starts[p.high - p.scored], end = r.starts[p.high];
  layer_norm(r.ln_f, r.x, rows, end, d);
  product(end - rows, r.vocab, d, r.ln_f.out + rows * d, d, 1, r.wte_T, r.vocab, r.logits + rows * r.vocab, r.vocab);
}

// Gradients of a layer's matrices, from what `backward` has left of a pass.
void block_weights(Run& r, Block& k, const Part& at) {
  const Int d = r.d, n = at.count();
  linear_weights(k.mlp_proj, k.act + at.rows * 4 * d, k.d_mlp + at.rows * d, d, n);
  linear_weights(k.c_fc, k.ln_2.out + at.rows * d, k.d_fc + at.rows * 4 * d, 4 * d, n);
  linear_weights(k.attn_proj, k.attended + at.rows * d, k.d_attn + at.rows * d, d, n);
  linear_weights(k.c_attn.columns(0, d), k.ln_1.out + at.rows * d, k.d_qkv + at.rows * 3 * d, 3 * d, n);
  linear_weights(k.c_attn.columns(d, 2 * d), k.ln_1.out + at.begin * d, k.d_qkv + at.begin * 3 * d + d, 3 * d,
                 at.end - at.begin);
}

// dE += dl^T h of the last `scored` positions before `high`.
void logits_weights(Run& r, Int high, Int scored) {
  Int rows = r.starts[high - scored], count = r.starts[high] - rows;
  product(r.s.vocab, r.d, count, r.logits + rows * r.vocab, 1, r.vocab, r.ln_f.out + rows * r.d, r.d, r.d_wte, r.d,
          r.d_wte, r.d);
}

// Backward from dh of a pass, which is in d_normed, to that of its embeddings, which is left in d_x. Adds what the pass
// does to the gradients of keys and values of earlier positions, and of norms; those of matrices if `whole`, where
// layers share what they need. `later`: whether other passes have followed.
void backward(Run& r, const Pass& p, const Noise& noise, bool later, bool weights) {
  const Int d = r.d;
  std::fill(r.rows_of(r.d_x, p.low, d), r.rows_of(r.d_x, p.high, d), 0.0f);
  layer_norm_back(r.ln_f, r.d_normed, r.d_x, r.starts[p.high - p.scored], r.starts[p.high], d);
  for (Int layer = r.s.layers - 1; layer >= 0; layer--) {
    Block& k = r.blocks[layer];
    Part at(r, p, layer);
    const Int n = at.count();
    float *d_fc = k.d_fc + at.rows * 4 * d, *slope = k.slope + at.rows * 4 * d, *d_normed = r.d_normed + at.rows * d;
    dropout(r, r.d_x, nullptr, k.d_mlp, at.rows, at.end, at.mlp, noise);
    linear_back(k.mlp_proj, k.d_mlp + at.rows * d, d, d_fc, n);
    vectors(n * 4 * d, [&](auto v, Int j) {
      store(d_fc + j, load<decltype(v)>(d_fc + j) * load<decltype(v)>(slope + j));
    });
    linear_back(k.c_fc, d_fc, 4 * d, d_normed, n);
    layer_norm_back(k.ln_2, r.d_normed, r.d_x, at.rows, at.end, d);
    dropout(r, r.d_x, nullptr, k.d_attn, at.rows, at.end, at.attn, noise);
    linear_back(k.attn_proj, k.d_attn + at.rows * d, d, d_normed, n);
    attention_back(r, k, at.first, p.high, later, at.weights, noise);
    linear_back(k.c_attn.columns(d, 2 * d), k.d_qkv + at.begin * 3 * d + d, 3 * d, r.d_normed + at.begin * d,
                at.end - at.begin);
    linear_back(k.c_attn.columns(0, d), k.d_qkv + at.rows * 3 * d, 3 * d, d_normed, n, true);
    layer_norm_back(k.ln_1, r.d_normed, r.d_x, at.begin, at.end, d);
    if (weights) block_weights(r, k, at);
  }
  if (noise.threshold)
    dropout(r, r.d_x, nullptr, r.d_x, r.starts[p.low], r.starts[p.high], p.lane, noise);
}

// dh of a pass from the gradient of its logits, into d_normed.
void logits_back(Run& r, const Pass& p) {
  Int rows = r.starts[p.high - p.scored];
  product(r.starts[p.high] - rows, r.d, r.s.vocab, r.logits + rows * r.vocab, r.vocab, 1, r.wte, r.d,
          r.d_normed + rows * r.d, r.d);
}

// Soft cross-entropy of the scored positions; their logits become its gradient, weight (alpha sum(t) - t). The first
// `skipped` outputs do not count, as far as they come before the answer.
double cross_entropy(Run& r, const Data& data, Int variant, Int skipped) {
  double loss = 0;
  const Int tokens = data.prompts.size[1];
  for (Int p = r.s.positions - r.s.scored; p < r.s.positions; p++)
    for (Int i = 0; i < r.b; i++) {
      float* row = r.logits + (r.starts[p] + i) * r.vocab;
      const Int input = r.inputs[i], output = p - tokens + 1, outputs = data.outputs[input];
      const Int least = std::min(skipped, std::max(outputs - data.ending - 1, Int(0)));
      if (output >= outputs || (0 <= output && output < least)) {
        std::fill(row, row + r.vocab, 0.0f);
        continue;
      }
      const Int scored = outputs - least + (data.sequence ? tokens - 1 : 0);
      const float weight = data.mean ? 1.0 / (r.b * scored) : 1.0 / r.b;
      const Int token = data.prompts[input * tokens + std::min(p + 1, tokens - 1)];
      Int first = 0, last = 0;
      if (output >= 0) data.entries(variant, input, output, &first, &last);
      double shown = output < 0, along = output < 0 ? row[token] : 0;
      for (Int e = first; e < last; e++) shown += data.weights[e], along += data.weights[e] * row[data.tokens[e]];
      loss += weight * (shown * softmax(row, 0, r.vocab, 0, r.s.vocab).log_sum() - along);
      vectors(r.vocab, [&](auto v, Int j) { store(row + j, load<decltype(v)>(row + j) * (float)(weight * shown)); });
      if (output < 0) row[token] -= weight;
      for (Int e = first; e < last; e++) row[data.tokens[e]] -= weight * data.weights[e];
    }
  return loss;
}

// Own thoughts ---------------------------------------------------------------------------------------------------------

// The passes of a step follow each other, each finding the keys and values of those before: the prompt, one pass for
// each thought, and what follows. Backward they are walked the other way. A pass's first position's gradient goes
// through the thought that was fed there into the pass before:
//
//     Base:      z = E^T alpha, alpha = softmax(l):   dE += alpha dz^T,  dl += alpha (E dz - alpha . E dz)
//     Hidden:    z = h, the last hidden state:        dh += dz
//     ZeroSlot:  z = h of the slot itself, computed with zeros in it by a pass of its own, which is computed again
enum Kind { BASE, HIDDEN, SLOT };

struct Thoughts {
  Array<const Pass, 2> passes;
  Int own, kind, skipped;  // of how many thoughts; which are fed; how many outputs are not scored

  Int count() const { return passes.size[0]; }
  bool is_slot(Int number) const {
    return number > 0 && number + 1 < count() && passes[number].low == passes[number + 1].low;
  }
};

// x_0 of the thought that a pass begins with, made from the pass before; zeros for a slot.
void feed(Run& r, const Thoughts& t, Int position, Int tokens, bool slot) {
  const Int d = r.d, begin = position * r.b;
  if (t.kind == BASE) {
    float* alpha = r.alpha + (begin - tokens * r.b) * r.vocab;
    memcpy(alpha, r.logits + (begin - r.b) * r.vocab, r.b * r.vocab * sizeof *alpha);
    for (Int i = 0; i < r.b; i++) softmax(alpha + i * r.vocab, 0, r.vocab, 0, r.s.vocab);
    return mix(r, alpha, position, r.b, position);
  }
  const float* states = r.ln_f.out + (t.kind == SLOT ? begin : begin - r.b) * d;
  float* x = r.blocks[0].x + begin * d;
  for (Int i = 0; i < r.b; i++) {
    memcpy(x + i * d, place_of(r, const_cast<float*>(r.wpe), position, i), d * sizeof *x);
    if (!slot) add_row(x + i * d, states + i * d, 1, d);
  }
}

// dl of the position before from dz of the mixtures at a position.
void mixture_back(Run& r, Int position, Int tokens) {
  const Int begin = position * r.b;
  const float* alpha = r.alpha + (begin - tokens * r.b) * r.vocab;
  product(r.b, r.vocab, r.d, r.d_x + begin * r.d, r.d, 1, r.wte_T, r.vocab, r.d_alpha, r.vocab);
  for (Int i = 0; i < r.b; i++) {
    float *d_alpha = r.d_alpha + i * r.vocab, *d_logits = r.logits + (begin - r.b + i) * r.vocab;
    softmax_back(alpha + i * r.vocab, d_alpha, 0, r.vocab, 1);
    add_row(d_logits, d_alpha, 1, r.vocab);
  }
}

// dE += alpha dz^T of `rows` mixtures from a position on.
void mixture_weights(Run& r, Int position, Int rows) {
  const float* d_x = r.rows_of(r.d_x, position, r.d);
  product(r.s.vocab, r.d, rows, r.alpha, 1, r.vocab, d_x, r.d, r.d_wte, r.d, r.d_wte, r.d);
}

// Backward through the pass that computed a slot, from dz, which is in d_x; d_x becomes that of the place's embedding.
// The pass is computed again, since that of the thought has overwritten what it left.
void slot_back(Run& r, const Thoughts& t, const Pass& p, Int tokens, const Noise& noise) {
  const Int d = r.d, n = r.b * d;
  float *d_x = r.d_x + p.low * n, *d_normed = r.d_normed + p.low * n;
  feed(r, t, p.low, tokens, true);
  forward(r, p, noise);
  memcpy(r.d_thought, d_x, n * sizeof *d_x), memcpy(d_normed, d_x, n * sizeof *d_x);
  for (Block& k : r.blocks) std::fill(k.d_qkv + p.low * 3 * n, k.d_qkv + p.high * 3 * n, 0.0f);
  backward(r, p, noise, true, true);
  add_row(d_x, r.d_thought, 1, n);
}

// A pass backward, and through the thought that it begins with.
void pass_back(Run& r, const Thoughts& t, Int number, Int tokens, const Noise& noise, bool weights) {
  const Pass& p = t.passes[number];
  logits_back(r, p);
  if (weights) logits_weights(r, p.high, p.scored);
  if (t.kind == HIDDEN && number + 1 < t.count())  // the next pass was fed the last states of this one
    add_row(r.d_normed + (p.high - 1) * r.b * r.d, r.d_x + p.high * r.b * r.d, 1, r.b * r.d);
  backward(r, p, noise, t.count() > 1, weights);
  if (number && t.kind == BASE) mixture_back(r, p.low, tokens);
  if (number && t.kind == SLOT) slot_back(r, t, t.passes[number - 1], tokens, noise);
}

// A supervised step: forward, loss and gradients of a batch; its loss. The targets of `data` are scored and those of
// `fed` are fed, but for the first `t.own` thoughts, which are the model's.
double gradients(Run& r, const Data& data, const Data& fed, const Int* inputs, Int variant, const Thoughts& t,
                 const Noise& noise, Int step, const Work& w) {
  const Int tokens = data.prompts.size[1], passes = t.count();
  const bool one = passes == 1, at_once = !one && t.kind != SLOT;  // gradients of matrices after all passes
  transpose_weights(r);
  arrange(r, data, inputs, one && !noise.threshold && !data.sequence);
  embed(r, fed, r.s.positions, variant);
  for (Int number = 0; number < passes; number++) {
    const Pass& p = t.passes[number];
    if (noise.threshold) draw(w, noise, step, number, p.lane / 4, p.end / 4);
    if (number) feed(r, t, p.low, tokens, t.is_slot(number));
    forward(r, p, noise);
  }
  double loss = cross_entropy(r, data, variant, t.skipped);
  std::fill(w.gradient.at, w.gradient.at + w.gradient.size[0], 0.0f);
  if (!one)
    for (Block& k : r.blocks) std::fill(k.d_qkv, k.d_qkv + r.rows * 3 * r.d, 0.0f);
  for (Int number = passes - 1; number >= 0; number--)
    if (!t.is_slot(number)) pass_back(r, t, number, tokens, noise, !at_once);
  if (at_once) {
    Pass whole = {0, r.s.positions, r.s.scored, 0, 0};
    for (Int layer = 0; layer < r.s.layers; layer++) block_weights(r, r.blocks[layer], Part(r, whole, layer));
    logits_weights(r, r.s.positions, r.s.scored);
    if (t.kind == BASE) mixture_weights(r, tokens, t.own * r.b);
  }
  embed_back(r, fed, r.s.positions, variant, t.own);
  return loss;
}
// Decoding -------------------------------------------------------------------------------------------------------------

// A row of logits becomes the thought that is fed, the likeliest token if `greedy`, else the mixture of all. Gives the
// likeliest token, and the entropy of the softmax in nats.
struct Thought {
  Int best;
  double entropy;

  Thought(float* row, Int vocab, Int padded, bool greedy) : best(std::max_element(row, row + vocab) - row) {
    float along = 0, top = row[best];
    std::vector<float> gaps(row, row + vocab);
    Softmax sums = softmax(row, 0, padded, 0, vocab);
    for (Int j = 0; j < vocab; j++) along += row[j] * (gaps[j] - top);
    entropy = std::log(sums.total) - along;
    if (!greedy) return;
    std::fill(row, row + vocab, 0.0f);
    row[best] = 1;
  }
};

// GRPO -----------------------------------------------------------------------------------------------------------------

// What `cot2lib.thoughts.sampled.MTS` and `cot2lib.thoughts.simplex.Dirichlet` do for tensors, for one row of a softmax
// alpha: draws by the same keys, log-densities, and gradients. The last are with respect to log alpha as if the alpha_j
// were free, h_j; those of the scores l are then (h_j - alpha_j sum(h)) / temperature.
enum Rule { TOKENS, POINT };
enum Ratio { GEOMETRIC, PRODUCT, PER_DRAW };

struct Policy {
  Int kind, draws, most;  // K tokens, or one point; the most tokens of a point that have entries of their own
  double temperature, gamma, floor;
  Int masked;
};

struct Terms {
  Int ratio;
  double clip, kl;
  Int scaled, updates;
};

struct Traces {
  Array<Int, 3> tokens;     // (thought, rollout, token)
  Array<Int, 2> apart;      // (thought, rollout) how many tokens of a point have entries of their own
  Array<double, 3> points;  // (thought, rollout, token + 1) logarithms of a point's entries
  Array<Int, 1> answers;    // (rollout,)
  Array<double, 3> before, now, reference;  // (output, rollout, draw) log-densities
};

constexpr double LEAST = 1e-30, LEAST_SPREAD = 1e-12;  // as in `cot2lib.kit.dirichlet`, `cot2lib.losses`
constexpr Int PROPOSALS = 4, UNIFORMS = 6;             // as in `cot2lib.kit.dirichlet`

float uniform(Key key, Int index) { return ((mix(mix((index + 1) * GOLDEN) ^ key) >> 41) + 0.5f) * 0x1p-23f; }

// Logarithm of a gamma variate from draws of number `first` on, as `cot2lib.kit.dirichlet.log_gammas`.
double log_gamma(double shape, Key key, Int first) {
  double d = shape + 2.0 / 3, refused = 1, taken = 0;  // d = (shape + 1) - 1/3
  for (Int proposal = 0; proposal < PROPOSALS; proposal++) {
    Int pair = proposal % 2;
    double angle = 2 * M_PI * uniform(key, first + pair + 2);
    double z = std::sqrt(-2 * std::log(uniform(key, first + pair)));
    z *= proposal < 2 ? std::cos(angle) : std::sin(angle);
    taken = 3 * std::log(std::max(1 + z / std::sqrt(9 * d), LEAST));
    refused *= 1 - std::min(std::exp(z * z / 2 + d * (1 - std::exp(taken) + taken)), 1.0);
    if (uniform(key, first + PROPOSALS) >= refused) break;
  }
  return std::log(d) + taken + std::log((double)uniform(key, first + PROPOSALS + 1)) / shape;
}

// psi(x), x > 0: psi(x) = psi(x + 1) - 1/x up to x >= 6, then the asymptotic series.
double digamma(double x) {
  double less = 0;
  for (; x < 6; x++) less += 1 / x;
  double square = 1 / (x * x);
  double series = square * (1.0 / 12 - square * (1.0 / 120 - square * (1.0 / 252 - square * (1.0 / 240 - square / 132))));
  return std::log(x) - 1 / (2 * x) - series - less;
}

// A Dirichlet point of a softmax alpha: entries of some tokens of their own, and one that all others share.
struct Point {
  const Policy& policy;
  const float* alpha;
  Int vocab, *tokens, apart;
  double* entries;  // their logarithms; the last is the shared one's
  double total = 1, shared = 0;

  double& last() const { return entries[policy.most]; }
  double share(Int e) const {
    return (policy.masked ? std::max((double)alpha[tokens[e]], policy.floor) : alpha[tokens[e]]) / total;
  }
  double shape(double share) const { return std::max(policy.gamma * share, LEAST); }

  void find_shares() {
    double own = 0, every = 0;
    total = 1;
    for (Int e = 0; e < apart; e++) own += share(e);
    for (Int j = 0; j < vocab; j++) every += alpha[j];
    total = policy.masked ? own : 1;
    shared = policy.masked || apart == vocab ? 0 : std::max(every - own, 0.0);
  }

  // Draws of a rollout; leaves the mixture in `fed` (token,).
  void draw(Key key, Int rollout, float* fed) {
    const Int most = policy.most;
    std::vector<float> left(alpha, alpha + vocab);
    double beyond = 0, highest = -INFINITY, mass = 0;
    for (float weight : left) beyond += weight;
    float top = 0;
    for (apart = 0; apart < most; apart++) {
      Int best = std::max_element(left.begin(), left.end()) - left.begin();
      float value = left[best];
      beyond -= value;
      top = apart ? top : value;
      bool enough = value >= policy.floor;
      if (!(policy.masked ? enough || value == top : enough && (beyond >= policy.floor || !policy.floor))) break;
      tokens[apart] = best, left[best] = -1;
    }
    find_shares();
    for (Int e = 0; e <= most; e++) {
      double weight = e < apart ? share(e) : e == most ? shared : 0;
      entries[e] = weight > 0 ? log_gamma(shape(weight), key, (rollout * (most + 1) + e) * UNIFORMS) : -INFINITY;
      highest = std::max(highest, entries[e]);
    }
    for (Int e = 0; e <= most; e++) mass += std::exp(entries[e] - highest);
    double inside = std::exp(last() - highest) / mass / std::max(shared, LEAST);
    for (Int j = 0; j < vocab; j++) fed[j] = left[j] >= 0 ? alpha[j] * inside : 0;
    for (Int e = 0; e <= most; e++) {
      entries[e] -= highest + std::log(mass);
      if (e < apart) fed[tokens[e]] = std::exp(entries[e]);
    }
  }

  // lgamma(sum a) + sum(a log x - lgamma(a)), as `cot2lib.kit.dirichlet.log_density`.
  double log_density() {
    find_shares();
    double whole = 0, value = 0;
    for (Int e = 0; e <= apart; e++) {
      double x = e < apart ? entries[e] : last();
      if (x == -INFINITY) continue;
      double a = shape(e < apart ? share(e) : shared);
      whole += a, value += a * x + std::log(a) - std::lgamma(a + 1);
    }
    return value + std::lgamma(whole);
  }

  // Adds `times` the derivatives of the log-density to h, as d/da = log x - psi(a) + psi(sum a). Returns what is still
  // to be added for every token in units of its alpha.
  double log_density_back(double times, double* h) {
    find_shares();
    const bool there = last() > -INFINITY;
    double whole = there ? shape(shared) : 0, along = 0, scale = times * policy.gamma;
    for (Int e = 0; e < apart; e++) whole += shape(share(e));
    double middle = digamma(whole), rest = there ? scale * (last() - digamma(shape(shared)) + middle) : 0;
    for (Int e = 0; e < apart && policy.masked; e++)  // shares are divided by their sum
      along += share(e) * (entries[e] - digamma(shape(share(e))) + middle);
    for (Int e = 0; e < apart; e++) {
      double weight = alpha[tokens[e]], a = policy.gamma * share(e);
      if (policy.masked && weight < policy.floor) continue;
      double by_share = a > LEAST ? scale * (entries[e] - digamma(a) + middle - along) / total : 0;
      h[tokens[e]] += weight * (by_share - rest);
    }
    return rest;
  }
};

// Rollouts of a batch, each prompt's side by side as branches: see `cot2lib.training.grpo`. Prompts are encoded once;
// the branches follow, step by step, as `cot2lib.model.branches` lays them out. What a rollout leaves in the arrays is
// what its replay would compute.
struct Rollouts {
  Run& r;
  const Data& data;
  const Ints1& last;  // (input,) at which step each is answered
  const Policy& policy;
  const Terms& terms;
  const Traces& t;
  const Int group = r.s.branches, shared = r.s.shared, outputs = t.now.size[0], most = policy.most;
  std::vector<double> gains = std::vector<double>(r.b * group), coefficients = std::vector<double>(policy.draws);

  Int end(Int i) const { return last[r.inputs[i]]; }
  double heat(Int output, Int i) const { return output < end(i) ? policy.temperature : 1; }
  // The softmax of an output of a branch: the prompt's last for all branches of the first.
  float* softmax_of(Int output, Int i, Int branch) const {
    return r.logits + ((output ? shared + (output - 1) * group + branch : shared - 1) * r.b + i) * r.vocab;
  }
  Point point(const float* alpha, Int thought, Int rollout) const {
    Int at = thought * r.b * group + rollout;
    return {policy, alpha, r.s.vocab, t.tokens.at + at * most, t.apart[at], t.points.at + at * (most + 1)};
  }
  Int* tokens(Int thought, Int rollout) const { return t.tokens.at + (thought * r.b * group + rollout) * most; }
  double* draws(const Array<double, 3>& of, Int output, Int rollout) const {
    return of.at + (output * r.b * group + rollout) * policy.draws;
  }

  void soften(Int output) {
    for (Int branch = 0; branch < (output ? group : 1); branch++)
      for (Int i = 0; i < r.b; i++)
        softmax(softmax_of(output, i, branch), 0, r.vocab, 0, r.s.vocab, 1 / (float)heat(output, i));
  }

  void feed(Int thought) {
    Int rows = group * r.b;
    mix(r, r.alpha + thought * rows * r.vocab, shared + thought * group, rows, shared + thought);
  }

  // Thoughts and answers of all branches, by the draws of `cot2lib.decode.keyed_noise`.
  void roll_out(Key key, const Noise& silent) {
    embed(r, data, shared, 0);
    for (Int output = 0; output < outputs; output++) {
      Int low = output ? shared + (output - 1) * group : 0;
      forward(r, {low, shared + output * group, output ? group : 1, 0, 0}, silent);
      soften(output);
      draw(output, fold(key, output), fold(key, outputs - 1));
      if (output + 1 < outputs) feed(output);
    }
  }

  // Draws of all branches at an output: a thought, or the answer by the draws of the last one.
  void draw(Int output, Key here, Key final) {
    std::vector<float> cumulated(r.s.vocab);
    auto draw_token = [&](Key key, Int index) {  // whose cumulated weight first exceeds a uniform draw
      float x = uniform(key, index) * cumulated.back();
      Int below = std::upper_bound(cumulated.begin(), cumulated.end(), x) - cumulated.begin();
      return std::min(below, r.s.vocab - 1);
    };
    for (Int i = 0; i < r.b; i++)
      for (Int branch = 0; branch < group; branch++) {
        Int rollout = i * group + branch;
        const float* alpha = softmax_of(output, i, branch);
        double total = 0;
        if (output || !branch)
          for (Int j = 0; j < r.s.vocab; j++) cumulated[j] = total += alpha[j];
        if (output == end(i)) t.answers[rollout] = draw_token(final, rollout);
        if (output + 1 == outputs) continue;
        float* fed = r.alpha + ((output * group + branch) * r.b + i) * r.vocab;
        if (policy.kind == POINT) {
          Point drawn = point(alpha, output, rollout);
          drawn.draw(here, rollout, fed);
          t.apart[output * r.b * group + rollout] = drawn.apart;
          continue;
        }
        std::fill(fed, fed + r.vocab, 0.0f);
        for (Int c = 0; c < policy.draws; c++) {
          Int token = tokens(output, rollout)[c] = draw_token(here, rollout * policy.draws + c);
          fed[token] += 1 / (float)policy.draws;
        }
      }
  }

  // The mean reward; advantages of all rollouts within their groups.
  double reward(const Array<const uint8_t, 2>& right) {
    double every = 0;
    for (Int i = 0; i < r.b; i++) {
      double total = 0, *gain = &gains[i * group];
      for (Int n = 0; n < group; n++)
        total += gain[n] = right[r.inputs[i] * right.size[1] + t.answers[i * group + n]] ? 1 : 0;
      double mean = total / group, spread = std::max(std::sqrt(mean * (1 - mean)), LEAST_SPREAD);
      for (Int n = 0; n < group; n++) gain[n] = (gain[n] - mean) / (terms.scaled ? spread : 1);
      every += mean;
    }
    return every / r.b;
  }

  // One forward pass over prompts and all thoughts that were fed, with dropout where there is some.
  void replay(const Noise& noise, const Work& w, Int step, Int update) {
    transpose_weights(r);
    embed(r, data, shared, 0);
    for (Int thought = 0; thought + 1 < outputs; thought++) feed(thought);
    if (noise.threshold) ::draw(w, noise, step, update, 0, w.draws.size[0]);
    forward(r, whole(), noise);
    for (Int output = 0; output < outputs; output++) soften(output);
  }
  Pass whole() const { return {0, r.s.positions, r.s.scored, 0, 0}; }

  // Log-densities of what rollouts drew, under the distributions that are there.
  void log_densities(const Array<double, 3>& out) {
    for (Int output = 0; output < outputs; output++)
      for (Int rollout = 0; rollout < r.b * group; rollout++) {
        Int i = rollout / group;
        const float* alpha = softmax_of(output, i, rollout % group);
        double* density = draws(out, output, rollout);
        if (output == end(i)) density[0] = std::log((double)alpha[t.answers[rollout]]);
        if (output >= end(i)) continue;
        if (policy.kind == POINT) {
          density[0] = point(alpha, output, rollout).log_density();
          continue;
        }
        for (Int c = 0; c < policy.draws; c++) density[c] = std::log((double)alpha[tokens(output, rollout)[c]]);
      }
  }

  // Derivatives of a rollout's part of the objective, at an output, by its new log-densities (in `coefficients`). The
  // part is weight (kl k - surrogate); see `cot2lib.losses`. Returns the share of ratios outside the clip range.
  double surrogate_back(Int output, Int rollout, Int count, double weight) {
    const double *now = draws(t.now, output, rollout), *before = draws(t.before, output, rollout);
    const double *reference = draws(t.reference, output, rollout), gain = gains[rollout];
    double all = 0, gap = 0, outside = 0, power = terms.ratio == GEOMETRIC ? 1.0 / count : 1;
    for (Int c = 0; c < count; c++) all += now[c] - before[c], gap += reference[c] - now[c];
    double pull = terms.kl > 0 ? power * std::expm1(power * gap) * terms.kl : 0;
    for (Int c = 0; c < count; c++) {
      double change = terms.ratio == PER_DRAW ? now[c] - before[c] : power * all, ratio = std::exp(change);
      outside += std::abs(std::expm1(change)) > terms.clip ? 1.0 / count : 0;
      double bounded = std::min(std::max(ratio, 1 - terms.clip), 1 + terms.clip);
      bool kept = ratio == bounded || ratio * gain < bounded * gain;  // the lesser of the two has this gradient
      coefficients[c] = -weight * ((kept ? power * ratio * gain : 0) + pull);
    }
    return outside;
  }

  // Distributions become gradients of logits; returns the share of ratios outside the clip range. What a rollout's
  // draws do to h is added up, what all tokens get of their alpha in `common`.
  double objective_back() {
    double outside = 0, common = 0;
    std::vector<double> h(r.s.vocab);
    for (Int output = 0; output < outputs; output++)
      for (Int rollout = 0; rollout < r.b * group; rollout++) {
        Int i = rollout / group, branch = rollout % group, count = output < end(i) ? policy.draws : 1;
        double weight = 1.0 / (r.b * group * (end(i) + 1));
        float* alpha = softmax_of(output, i, branch);
        if (output || !branch) std::fill(h.begin(), h.end(), common = 0);
        if (output <= end(i)) outside += weight * surrogate_back(output, rollout, count, weight);
        if (output == end(i)) h[t.answers[rollout]] += coefficients[0];
        if (output < end(i) && policy.kind == POINT && coefficients[0])
          common += point(alpha, output, rollout).log_density_back(coefficients[0], h.data());
        if (output < end(i) && policy.kind == TOKENS)
          for (Int c = 0; c < count; c++) h[tokens(output, rollout)[c]] += coefficients[c];
        if (!output && branch + 1 < group) continue;
        double all = common, scale = 1 / heat(output, i);  // alpha adds up to one
        for (double each : h) all += each;
        for (Int j = 0; j < r.s.vocab; j++) alpha[j] = (h[j] + alpha[j] * (common - all)) * scale;
      }
    return outside;
  }

  // Gradients of all parameters from those of the logits.
  void backward(const Noise& noise, const Work& w) {
    std::fill(w.gradient.at, w.gradient.at + w.gradient.size[0], 0.0f);
    logits_back(r, whole());
    logits_weights(r, r.s.positions, r.s.scored);
    ::backward(r, whole(), noise, false, true);
    embed_back(r, data, shared, 0, 0);
    Int rows = (r.s.positions - shared) * r.b;
    mixture_weights(r, shared, rows);
    for (Int row = 0; row < rows; row++)
      add_row(place_of(r, r.d_wpe, shared + row / (group * r.b), row % r.b), r.d_x + (shared * r.b + row) * r.d, 1, r.d);
  }
};
}  // namespace

extern "C" {

// Floats of scratch that a run of a shape needs.
Int scratch(const Shape& s) {
  Work none = {};
  float* start = nullptr;
  return Run(nullptr, s, none, start).next - start + PADDED;
}

// Train on the batches of `order` (step, batch), the first of which is step number `first` of the run. Leaves each
// batch's loss in `losses` (step,) and the last one's gradients in the work's `gradient`.
void train(const Array<float, 1>& flat, const Shape& shape, const Data& data, const Data& fed, const Ints2& order,
           const Int& variant, const Thoughts& thoughts, const Optimiser& optimiser, const Noise& noise, const Int& first,
           const Array<float, 1>& losses, const Work& work) {
  Run r = run_of(flat, shape, work);
  for (Int s = 0; s < order.size[0]; s++) {
    losses[s] = gradients(r, data, fed, order.at + s * order.size[1], variant, thoughts, noise, first + s, work);
    adamw(r, work.gradient.at, optimiser, optimiser.rates[s], first + s + 1);
  }
}

// Answers (input,) to all inputs, and the sum of each step's entropies (step,) in nats. The shape scores one position;
// its batch is decoded at once. `inputs` are rows of the data, `last` the steps at which they are answered. Thoughts are
// the likeliest token if `greedy`, else the mixture of all.
void decode(const Array<float, 1>& flat, const Shape& shape, const Data& data, const Ints1& inputs, const Ints1& last,
            const Int& greedy, const Array<Int, 1>& answers, const Array<double, 1>& entropies, const Work& work) {
  Run r = run_of(flat, shape, work);
  const Int tokens = data.prompts.size[1], steps = entropies.size[0], all = inputs.size[0];
  std::vector<Int> chunk(r.b);
  transpose_weights(r);
  for (Int begin = 0; begin < all; begin += r.b) {
    for (Int i = 0; i < r.b; i++) chunk[i] = inputs[std::min(begin + i, all - 1)];
    arrange(r, data, chunk.data(), false);
    embed(r, data, tokens, 0);
    for (Int step = 0, low = 0, high = tokens; step < steps; step++, low = high++) {
      forward(r, {low, high, 1, 0, 0}, Noise());
      float* logits = r.rows_of(r.logits, high - 1, r.vocab);
      for (Int i = 0; i < std::min(r.b, all - begin); i++) {
        Thought thought(logits + i * r.vocab, shape.vocab, r.vocab, greedy);
        if (step <= last[begin + i]) entropies[step] += thought.entropy;
        if (step == last[begin + i]) answers[begin + i] = thought.best;
      }
      if (step + 1 < steps) mix(r, logits, high, r.b, high);
    }
  }
}

// Train by reward, as `train` does by targets. Leaves each batch's share of failed rollouts in `losses` (step,), the
// last update's gradients in the work's `gradient` and its share of clipped ratios in `clipped` (1,). `right` (input,
// token) says which answers are rewarded, `last` (input,) at which step each input is answered; `reference` is the flat
// array of the start, `key` the rollouts'.
void grpo(const Array<float, 1>& flat, const Shape& shape, const Data& data, const Array<const uint8_t, 2>& right,
          const Ints1& last, const Ints2& order, const Policy& policy, const Terms& terms,
          const Array<float, 1>& reference, const Key& key, const Optimiser& optimiser, const Noise& noise,
          const Int& first, const Array<float, 1>& losses, const Array<float, 1>& clipped, const Traces& t,
          const Work& work) {
  Run r = run_of(flat, shape, work), start = run_of(reference, shape, work);
  Rollouts rollouts{r, data, last, policy, terms, t}, old{start, data, last, policy, terms, t};
  hide_branches(r);
  for (Int s = 0; s < order.size[0]; s++) {
    const Int step = first + s, *inputs = order.at + s * order.size[1];
    transpose_weights(r);
    arrange(r, data, inputs, false);
    rollouts.roll_out(fold(key, step), Noise());
    losses[s] = 1 - rollouts.reward(right);
    if (noise.threshold) rollouts.log_densities(t.before);
    if (terms.kl > 0) {
      arrange(start, data, inputs, false);
      old.replay(Noise(), work, step, 0);
      old.log_densities(t.reference);
    }
    for (Int update = 0; update < terms.updates; update++) {
      if (update || terms.kl > 0 || noise.threshold) rollouts.replay(noise, work, step, update);
      rollouts.log_densities(t.now);
      if (!update && !noise.threshold)  // so that at equal weights every ratio is exactly one
        std::copy(t.now.at, t.now.at + t.now.size[0] * t.now.size[1] * t.now.size[2], t.before.at);
      clipped[0] = rollouts.objective_back();
      rollouts.backward(noise, work);
      adamw(r, work.gradient.at, optimiser, optimiser.rates[s], step * terms.updates + update + 1);
    }
  }
}
}  // extern "C"
