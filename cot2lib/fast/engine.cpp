// The fused CPU engine: whole training steps and evaluations of small models, each one call, one run at a time.
//
// The torch stack (`cot2lib/model/stack.py`) is what readers read, and what runs on a GPU. This file computes the same
// with everything in the core's cache; parity tests bind the two. Functions have torch's names; `NAME_back` is the
// gradient of NAME by hand, as far as inputs go, and `NAME_weights` that of its weights. `__init__.py` builds it.
//
// Rows of all arrays are positions x inputs: position 0 of every input first. So a pass over some positions finds the
// keys and values of those before it in place. Inputs may come by their padding, and rows of padding be left out:
// `starts` says where each position begins. The last layer computes queries and MLP for the scored positions alone.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

namespace {

typedef int64_t Int;
typedef uint64_t Key;
#define INLINE inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))

// Vectors ------------------------------------------------------------------------------------------------------------
#if defined(__AVX512F__)
constexpr Int LANES = 16, ROWS = 8;  // floats of a vector; rows of a product that stay in registers
#elif defined(__AVX__)
constexpr Int LANES = 8, ROWS = 4;
#else
constexpr Int LANES = 4, ROWS = 8;
#endif
constexpr Int PADDED = 16, EIGHT = 8;  // keys and vocabulary are padded to multiples of 16, widths are those of 8

template <class T, int N> struct Vector { typedef T type __attribute__((vector_size(N * sizeof(T)))); };
typedef Vector<float, LANES>::type vec;
typedef Vector<float, 8>::type vec8;
typedef Vector<float, 4>::type vec4;
template <class V> constexpr int N_OF = sizeof(V) / 4;
template <class V> using Ints = typename Vector<int32_t, N_OF<V>>::type;

template <class V, class T> INLINE V load(const T* from) {
  V v;
  memcpy(&v, from, sizeof v);
  return v;
}
template <class V, class T> INLINE void store(T* to, V v) { memcpy(to, &v, sizeof v); }

// f(vector, j) at j = 0, LANES, ... of n floats, a multiple of eight; the vector says of how many.
template <class F> INLINE void vectors(Int n, F f) {
  Int j = 0;
  for (; j + LANES <= n; j += LANES) f(vec(), j);
  if (LANES > EIGHT && j < n) f(vec8(), j);
}

// A vector's entries joined by f, by halves.
template <class F> INLINE float joined(vec4 v, F f) { return f(f(v[0], v[2]), f(v[1], v[3])); }
template <class V, class F> INLINE float joined(V v, F f) {
  typename Vector<float, N_OF<V> / 2>::type half[2];
  memcpy(half, &v, sizeof v);
  return joined(f(half[0], half[1]), f);
}
template <class V> INLINE float sum(V v) { return joined(v, [](auto a, auto b) { return a + b; }); }
template <class V> INLINE float greatest(V v) { return joined(v, [](auto a, auto b) { return a > b ? a : b; }); }

// The sum of f(vector, j) over n floats.
template <class F> INLINE float sum_over(Int n, F f) {
  vec total = {};
  Int j = 0;
  for (; j + LANES <= n; j += LANES) total += f(vec(), j);
  return sum(total) + (LANES > EIGHT && j < n ? sum(f(vec8(), j)) : 0);
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

enum Side { PLAIN, TURNED };

// c (row, column) = init + a b, each with the distance of its rows: a (row, k), or (k, row) if turned; b (k, column);
// init null for zeros, a row (at a distance of 0), or c itself.
struct Product {
  const float* a; Side side; Int a_row;
  const float* b; Int b_row;
  float* c; Int c_row;
  const float* init = nullptr; Int init_row = 0;
};

// R rows and C vectors of columns, whose sums stay in registers while k runs.
template <class V, int R, int C, Side side> INLINE void tile(const Product& p, Int i, Int j, Int k) {
  V sums[R][C];
  const Int row = side ? 1 : p.a_row, next = side ? p.a_row : 1, c_row = p.c_row, init_row = p.init_row;
  const float *a = p.a + i * row, *b = p.b + j, *init = p.init ? p.init + i * init_row + j : nullptr;
  float* c = p.c + i * c_row + j;
  for (int r = 0; r < R; r++)
    for (int v = 0; v < C; v++) sums[r][v] = init ? load<V>(init + r * init_row + v * N_OF<V>) : V();
  for (Int step = 0; step < k; step++, a += next, b += p.b_row)
    for (int r = 0; r < R; r++)
      for (int v = 0; v < C; v++) sums[r][v] += load<V>(b + v * N_OF<V>) * a[r * row];
  for (int r = 0; r < R; r++)
    for (int v = 0; v < C; v++) store(c + r * c_row + v * N_OF<V>, sums[r][v]);
}

// Rows i..last for C vectors of columns.
template <class V, int C, Side side> NOINLINE void strip(const Product& p, Int i, Int last, Int j, Int k) {
  for (; i + ROWS <= last; i += ROWS) tile<V, ROWS, C, side>(p, i, j, k);
  if (i + 4 <= last) tile<V, 4, C, side>(p, i, j, k), i += 4;
  if (i + 2 <= last) tile<V, 2, C, side>(p, i, j, k), i += 2;
  if (i < last) tile<V, 1, C, side>(p, i, j, k);
}

// All of a product, of which the columns are a multiple of eight. Panels of rows and of k stay in the core's first
// cache; every entry adds up in the same order.
template <Side side> void panels(Int rows, Int columns, Int k, Product& p) {
  constexpr Int ROW_PANEL = 64, K_PANEL = 128;
  do {
    Int many = std::min(k, K_PANEL);
    for (Int i = 0; i < rows; i += ROW_PANEL) {
      Int last = std::min(i + ROW_PANEL, rows), j = 0;
      for (; j + 2 * LANES <= columns; j += 2 * LANES) strip<vec, 2, side>(p, i, last, j, many);
      for (; j + LANES <= columns; j += LANES) strip<vec, 1, side>(p, i, last, j, many);
      if (LANES > EIGHT && j < columns) strip<vec8, 1, side>(p, i, last, j, many);
    }
    p.a += many * (side ? p.a_row : 1), p.b += many * p.b_row, p.init = p.c, p.init_row = p.c_row;
  } while ((k -= K_PANEL) > 0);
}

void product(Int rows, Int columns, Int k, Product&& p) {
  p.side ? panels<TURNED>(rows, columns, k, p) : panels<PLAIN>(rows, columns, k, p);
}

// What Python hands over, field by field in eight bytes each, an array as its address and its sizes ------------------
template <class T, int D = 1> struct Array {
  T* at;
  Int size[D];
  T& operator[](Int i) const { return at[i]; }
  T* row(Int i, Int j = 0) const { return at + (D == 2 ? i : i * size[1] + j) * size[D - 1]; }
};
typedef Array<const Int> Ints1;
typedef Array<const Int, 2> Ints2;
typedef Array<float> Floats;
typedef Array<double, 3> Densities;

// scored: the last positions, whose logits are needed; shared: positions that all branches share, laid out as in
// `cot2lib.model.branches`; own: positions that are fed with thoughts that the model makes.
struct Shape { Int vocab, places, width, layers, heads, batch, positions, scored, shared, branches, own; };

// Inputs and sparse targets: entries starts[k]..starts[k + 1] belong to k = (variant, input, output).
struct Data {
  Ints2 prompts;
  Ints1 padding, shift, outputs, starts, tokens;  // places before the first that counts; how many outputs are scored
  Array<const float> weights;
  Int steps, ending, mean, sequence;  // most outputs; those after the answer; whether the mean, and prompts, are scored
  Array<const float, 2> mask;         // (query, key): what is added to scores of attention; empty for nothing

  // f(token, weight) for every entry of an input's target at an output.
  template <class F> void each_entry(Int variant, Int input, Int output, F f) const {
    Int k = (variant * prompts.size[0] + input) * steps + output;
    for (Int e = starts[k]; e < starts[k + 1]; e++) f(tokens[e], weights[e]);
  }
};

// Positions low..high that are computed together, the last of them scored; dropout lanes; whether it computes the slot
// of the thought that the next pass is fed.
struct Pass { Int low, high, scored, lane = 0, end = 0, slot = 0; };
enum Kind { BASE, HIDDEN, SLOT };  // in the order of `cot2lib.training.fused.KINDS`
struct Thoughts { Array<const Pass, 2> passes; Int own, kind, skipped; };  // the first are the model's own
struct Noise { Key key; Int threshold; double scale; };  // a threshold of 0 is no dropout
struct Optimiser { Floats mean, square; Array<const float> rates; double decay, beta2; Int frozen; };
struct Work { Floats gradient; Array<Key> draws; Floats scratch; };

// A rule that samples thoughts, tokens (paper, section 5.1) or a point of a simplex (5.2): draws, most tokens of one.
struct Policy { Int kind, draws, most; double temperature, gamma, floor; Int masked; };
enum Rule { TOKENS, POINT };
struct Terms { Int ratio; double clip, kl; Int scaled, updates; };  // the objective, and how often it is descended
enum Ratio { GEOMETRIC, PRODUCT, PER_DRAW };                        // in the order of `cot2lib.losses.RATIOS`

// Rollouts, each prompt's side by side: by thought their tokens, of a point how many have entries of their own and the
// logarithms of its entries; answers; log-densities (output, rollout, draw) under three policies.
struct Traces {
  Array<Int, 3> tokens; Array<Int, 2> apart; Densities points; Array<Int> answers; Densities old, now, reference;
};

// A run and its arrays -----------------------------------------------------------------------------------------------
struct Linear {
  Int in, out, first, width;  // columns of x; of y, from the first on, in rows of some width
  float *weight, *bias, *transposed, *d_weight, *d_bias;

  Linear columns(Int at, Int count) const {
    return {in, count, at, width, weight + at, bias + at, transposed + at * in, d_weight + at, d_bias + at};
  }
};

struct Norm { float *weight, *bias, *d_weight, *d_bias, *hat, *inverse, *out; };

struct Block {
  Norm ln_1, ln_2;
  Linear c_attn, attn_proj, c_fc, mlp_proj;
  float *x, *y, *qkv, *seen, *attended, *middle, *act, *slope;  // x: into it, y: out of it; seen: attention weights
  float *d_qkv, *d_attn, *d_fc, *d_mlp;                         // gradients of what the linear maps give
};

constexpr Int QUERIES = 16;  // that attend together

Int padded(Int n, Int to = PADDED) { return (n + to - 1) / to * to; }

struct Run {
  float* const flat;
  const Shape& s;
  const Data& data;
  Noise noise;
  const Work& work;
  const Int tokens = data.prompts.size[1], d = s.width, b = s.batch, rows = s.positions * b, head = d / s.heads;
  const Int keys = padded(s.positions), vocab = padded(s.vocab), wide = padded(head, EIGHT);  // wide: of a head
  float *gradient = work.gradient.at, *next = (float*)padded((Int)work.scratch.at, 64);
  uint16_t* const lanes = (uint16_t*)work.draws.at;
  std::vector<Int> slots = std::vector<Int>(b), inputs = slots, padding = slots, shift = slots, first = slots;
  std::vector<Int> starts = {0};
  std::vector<Block> blocks = std::vector<Block>(s.layers);
  Norm ln_f;
  Linear lm_head;  // whose transposed weight is the table of tokens
  float *logits, *alpha, *hidden, *d_x, *d_normed, *d_thought;  // alpha: thoughts; hidden: other branches
  float *query, *key, *value, *out, *d_key, *d_value, *turned, *scores, *dropped;  // of one head

  Run(float* flat, const Shape& s, const Data& data, const Noise& noise, const Work& work)
      : flat(flat), s(s), data(data), noise(noise), work(work) {
    Int at = (s.vocab + s.places) * d;  // in the stack's order of parameters
    auto norm = [&] {
      float *weight = flat + at, *d_weight = gradient + at;
      at += 2 * d;
      return Norm{weight, weight + d, d_weight, d_weight + d, take(rows * d), take(rows), take(rows * d)};
    };
    auto linear = [&](Int in, Int out) {
      float *weight = flat + at, *d_weight = gradient + at;
      at += in * out + out;
      return Linear{in, out, 0, out, weight, weight + in * out, take(in * out), d_weight, d_weight + in * out};
    };
    for (Block& k : blocks) {
      const Block* before = &k == &blocks[0] ? nullptr : &k - 1;
      const bool shares = before && (!s.own || s.branches > 1);  // no later pass needs the gradients of this
      auto given = [&](float* Block::*array, Int width) { k.*array = shares ? before->*array : take(rows * width); };
      k.ln_1 = norm(), k.c_attn = linear(d, 3 * d), k.attn_proj = linear(d, d);
      k.ln_2 = norm(), k.c_fc = linear(d, 4 * d), k.mlp_proj = linear(4 * d, d);
      k.x = before ? before->y : take(rows * d), k.y = take(rows * d), k.middle = take(rows * d);
      k.qkv = take(rows * 3 * d), k.seen = take(b * s.heads * s.positions * keys), k.attended = take(rows * d);
      k.act = take(rows * 4 * d), k.slope = take(rows * 4 * d);
      given(&Block::d_qkv, 3 * d), given(&Block::d_attn, d), given(&Block::d_fc, 4 * d), given(&Block::d_mlp, d);
    }
    ln_f = norm(), lm_head = {d, vocab, 0, vocab, take(d * vocab), nullptr, flat, nullptr, nullptr};
    logits = take(rows * vocab), alpha = take(s.own * b * vocab), hidden = take(s.branches * keys);
    d_x = take(rows * d), d_normed = take(rows * d), d_thought = take(b * std::max(vocab, d));
    for (float** side : {&query, &key, &value, &out, &d_key, &d_value}) *side = take(s.positions * wide);
    turned = take(wide * keys), scores = take(QUERIES * keys), dropped = take(QUERIES * keys);
    for (Int p = 0; p < s.positions; p++) starts.push_back((p + 1) * b);
  }

  // Floats that begin with a line of the cache.
  float* take(Int count) { return std::exchange(next, next + padded(count)); }
  float* rows_at(float* array, Int position, Int width) const { return array + starts[position] * width; }
  // Where in the flat array the embedding of input i's place begins.
  Int place(Int depth, Int i) const { return (s.vocab + std::max(depth - shift[i], Int(0))) * d; }
};

void transpose(const float* a, Int rows, Int columns, float* out, Int out_row) {
  Int i = 0;
  for (; i + EIGHT <= rows; i += EIGHT)
    for (Int j = 0; j < columns; j++) {
      vec8 column;
      for (Int n = 0; n < EIGHT; n++) column[n] = a[(i + n) * columns + j];
      store(out + j * out_row + i, column);
    }
  for (; i < rows; i++)
    for (Int j = 0; j < columns; j++) out[j * out_row + i] = a[i * columns + j];
}

// Transposed copies of all matrices, which gradients are multiplied by; the table's gives the logits too.
void transpose_weights(Run& r) {
  transpose(r.flat, r.s.vocab, r.d, r.lm_head.weight, r.vocab);
  for (Block& k : r.blocks)
    for (Linear* l : {&k.c_attn, &k.attn_proj, &k.c_fc, &k.mlp_proj})
      transpose(l->weight, l->in, l->out, l->transposed, l->in);
}

// Rows of a batch: inputs as they come, or if it is `sparse` by their padding, whose rows are left out. `slots` says
// where in the batch each came.
void arrange(Run& r, const Int* inputs, bool sparse) {
  std::iota(r.slots.begin(), r.slots.end(), 0);
  if (sparse)
    std::ranges::stable_sort(r.slots, {}, [&](Int slot) { return r.data.padding[inputs[slot]]; });
  for (Int i = 0; i < r.b; i++) {
    r.inputs[i] = inputs[r.slots[i]];
    r.padding[i] = r.data.padding[r.inputs[i]], r.shift[i] = r.data.shift[r.inputs[i]];
    r.first[i] = sparse ? r.padding[i] : 0;
  }
  for (Int p = 0, there = 0; p < r.s.positions; p++) {
    while (there < r.b && r.first[there] <= p) there++;
    r.starts[p + 1] = r.starts[p] + there;
  }
}

// Element by element -------------------------------------------------------------------------------------------------
// x += times other.
INLINE void add(float* x, const float* other, float times, Int n) {
  vectors(n, [&]<class V>(V, Int j) {
    store(x + j, load<V>(x + j) + times * load<V>(other + j));
  });
}

// x becomes its tanh GELU, x sigmoid(2u) with u = sqrt(2/pi) (x + .044715 x^3); slope its derivative.
void gelu(float* x, float* slope, Int begin, Int end) {
  constexpr float TWICE = 2 * 0.7978845608f, CUBE = 0.044715f;
  vectors(end - begin, [&]<class V>(V, Int j) {
    V h = load<V>(x + begin + j), square = h * h, s = 1.0f / (1.0f + exp_of(-TWICE * h * (1.0f + CUBE * square)));
    store(x + begin + j, h * s);
    store(slope + begin + j, s + h * s * (1.0f - s) * TWICE * (1.0f + 3 * CUBE * square));
  });
}

void gelu_back(float* given, const float* slope, Int begin, Int end) {
  vectors(end - begin, [&]<class V>(V, Int j) {
    store(given + begin + j, load<V>(given + begin + j) * load<V>(slope + begin + j));
  });
}

// out = weight hat + bias, hat = (x - mean) inverse, inverse = (variance + 1e-5)^(-1/2), of rows begin..end.
void layer_norm(const Norm& l, const float* x, Int begin, Int end, Int d) {
  for (Int i = begin; i < end; i++) {
    const float* row = x + i * d;
    float mean = sum_over(d, [&]<class V>(V, Int j) { return load<V>(row + j); }) / d;
    auto gap = [&]<class V>(V, Int j) { return load<V>(row + j) - mean; };
    float square = sum_over(d, [&]<class V>(V v, Int j) { return gap(v, j) * gap(v, j); });
    float inverse = l.inverse[i] = 1 / std::sqrt(square / d + 1e-5f);
    vectors(d, [&]<class V>(V, Int j) {
      V hat = gap(V(), j) * inverse;
      store(l.hat + i * d + j, hat);
      store(l.out + i * d + j, hat * load<V>(l.weight + j) + load<V>(l.bias + j));
    });
  }
}

// d_x += inverse (g - mean(g) - hat mean(g hat)), g = d_out weight.
void layer_norm_back(const Norm& l, const float* d_out, float* d_x, Int begin, Int end, Int d) {
  for (Int i = begin; i < end; i++) {
    const float *given = d_out + i * d, *hat = l.hat + i * d;
    auto g = [&]<class V>(V, Int j) { return load<V>(given + j) * load<V>(l.weight + j); };
    float mean = sum_over(d, g) / d, inverse = l.inverse[i];
    float along = sum_over(d, [&]<class V>(V, Int j) { return g(V(), j) * load<V>(hat + j); }) / d;
    vectors(d, [&]<class V>(V, Int j) {
      V slope = load<V>(given + j), at = load<V>(hat + j);
      store(l.d_bias + j, load<V>(l.d_bias + j) + slope);
      store(l.d_weight + j, load<V>(l.d_weight + j) + slope * at);
      store(d_x + i * d + j, load<V>(d_x + i * d + j) + inverse * (g(V(), j) - mean - at * along));
    });
  }
}

// Floats begin..end of a row, multiples of `PADDED`, become the softmax over first..last of scale x + hidden, and zero
// elsewhere. Nothing is seen where nothing lies between first and last. Returns the
// logarithm of the sum of e^x.
INLINE double softmax(float* row, Int begin, Int end, Int first, Int last, float scale = 1,
                      const float* hidden = nullptr) {
  const vec least = vec() - 1e30f;
  vec highest = vec() - 1e29f, sums = {};
  Ints<vec> places = {};
  for (Int lane = 0; lane < LANES; lane++) places[lane] = begin + lane;
  for (Int k = begin; k < end; k += LANES, places += (int32_t)LANES) {
    vec x = load<vec>(row + k) * scale;
    if (hidden) x += load<vec>(hidden + k);
    x = ((places >= (int32_t)first) & (places < (int32_t)last)) ? x : least;
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
  return top + std::log((double)total);
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
void adamw(Run& r, const Optimiser& o, double rate, Int step) {
  const float keep = 1 - rate * o.decay, size = rate / (1 - std::pow(0.9, step));
  const float scale = 1 / std::sqrt(1 - std::pow(o.beta2, step)), b1 = 0.1f, b2 = o.beta2;
  vectors(o.mean.size[0] - o.frozen, [&]<class V>(V, Int j) {
    j += o.frozen;
    V g = load<V>(r.gradient + j), m = load<V>(&o.mean[j]), s = b2 * load<V>(&o.square[j]) + (1 - b2) * g * g;
    m += b1 * (g - m);
    store(&o.mean[j], m), store(&o.square[j], s);
    store(r.flat + j, load<V>(r.flat + j) * keep - size * m / (s * inverse_root(s) * scale + 1e-8f));
  });
}

// Keyed randomness, as in `cot2lib.kit.random` -----------------------------------------------------------------------
constexpr Key GOLDEN = 0x9E3779B97F4A7C15, SIGNS = 0x8000800080008000;

INLINE Key mixed(Key x) {  // the SplitMix64 finaliser
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

Key fold(Key key, Key part) { return mixed(mixed(key + GOLDEN) + part); }

INLINE Key drawn(Key key, Int index) { return mixed(mixed((index + 1) * GOLDEN) ^ key); }

float uniform(Key key, Int index) { return ((drawn(key, index) >> 41) + 0.5f) * 0x1p-23f; }

// Dropout multipliers of a pass of a step, from one lane to another: draws of four 16-bit lanes, whose sign bits are
// turned as in torch. Passes after the first have keys of their own.
void draw_lanes(Run& r, Int step, Int number, Int from, Int to) {
  if (!r.noise.threshold) return;
  const Key key = fold(r.noise.key, step), here = number ? fold(key, number) : key;
  Key* draws = &r.work.draws[from / 4];
  for (Int i = 0; i < (to - from + 3) / 4; i++) draws[i] = drawn(here, i) ^ SIGNS;
}

template <class V> INLINE V multiplier(const uint16_t* lanes, const Noise& noise) {
  auto wide = __builtin_convertvector(load<typename Vector<uint16_t, N_OF<V>>::type>(lanes), Ints<V>);
  return (V)((wide >= (int32_t)noise.threshold) & (Ints<V>)(V() + (float)noise.scale));
}

// out = dropout(x) + residual (null for none), at positions low..high; multipliers run input by input of the batch.
void dropout(const Run& r, const float* x, const float* residual, float* out, Int low, Int high, Int lane) {
  const Int d = r.d, begin = r.starts[low], end = r.starts[high];
  auto give = [&]<class V>(Int at, V x) { store(out + at, residual ? x + load<V>(residual + at) : x); };
  if (!r.noise.threshold)
    return vectors((end - begin) * d, [&]<class V>(V, Int j) { give(begin * d + j, load<V>(x + begin * d + j)); });
  for (Int p = low; p < high; p++)
    for (Int row = r.starts[p], i = 0; row < r.starts[p + 1]; row++, i++) {
      const uint16_t* lanes = r.lanes + lane + (r.slots[i] * (high - low) + p - low) * d;
      vectors(d, [&]<class V>(V, Int j) {
        give(row * d + j, load<V>(x + row * d + j) * multiplier<V>(lanes + j, r.noise));
      });
    }
}

// Linear maps, in rows begin..end ------------------------------------------------------------------------------------
// y = x W + bias.
void linear(const Linear& l, const float* x, float* y, Int begin, Int end) {
  y += begin * l.width + l.first;
  product(end - begin, l.out, l.in, {x + begin * l.in, PLAIN, l.in, l.weight, l.width, y, l.width, l.bias, 0});
}

// d_x = d_y W^T, or += if there is `more`.
void linear_back(const Linear& l, const float* d_y, float* d_x, Int begin, Int end, bool more = false) {
  d_y += begin * l.width + l.first, d_x += begin * l.in;
  product(end - begin, l.in, l.out, {d_y, PLAIN, l.width, l.transposed, l.in, d_x, l.in, more ? d_x : nullptr, l.in});
}

// d_W += x^T d_y, d_bias += sum of d_y over rows.
void linear_weights(const Linear& l, const float* x, const float* d_y, Int begin, Int end) {
  const Int rows = end - begin;
  x += begin * l.in, d_y += begin * l.width + l.first;
  product(l.in, l.out, rows, {x, TURNED, l.in, d_y, l.width, l.d_weight, l.width, l.d_weight, l.width});
  for (Int i = 0; i < rows; i++) add(l.d_bias, d_y + i * l.width, 1, l.out);
}

// Attention: every input and head by itself, in blocks of queries ----------------------------------------------------
// One head of one input, from a column on. Rows of an input lie apart, often by a multiple of 4 KiB, where they
// compete for the same places of the cache. So a head's rows are gathered first, padded by what follows them.
struct Head {
  const Run& r;
  const Int input, number, column = number * r.head;

  float* row(float* array, Int width, Int p) const { return array + (r.starts[p] + input) * width + column; }
  void take(float* to, float* array, Int width, Int low, Int high) const {
    for (Int p = low, wide = r.wide; p < high; p++) {
      const float* from = row(array, width, p);
      vectors(wide, [&]<class V>(V, Int j) { store(to + p * wide + j, load<V>(from + j)); });
    }
  }
  void give(const float* from, float* array, Int width, Int low, Int high) const {
    for (Int p = low, j = 0, head = r.head, wide = r.wide; p < high; p++, j = 0) {
      float* to = row(array, width, p);
      for (; j + EIGHT <= head; j += EIGHT) store(to + j, load<vec8>(from + p * wide + j));
      for (; j < head; j++) to[j] = from[p * wide + j];
    }
  }
  // Dropout multipliers of a query's row, in a pass of queries low..high that begins at a lane.
  const uint16_t* lanes(Int lane, Int low, Int high, Int query) const {
    return r.lanes + lane + ((r.slots[input] * r.s.heads + number) * (high - low) + query - low) * high;
  }
};

// A block of queries low..last. They see keys from `begin` on, most of the padding before them left out, up to `end`.
struct Queries {
  const Int low, high, padding, last = std::min(low + QUERIES, high), end = padded(last);
  const Int begin = std::min(padding, last) / PADDED * PADDED, rows = last - low, keys = last - begin;
};

// f(place, multipliers) for each vector of a block's attention weights (query, key), by lanes in rows of `high`.
template <class F> INLINE void each_multiplier(const Run& r, const Queries& q, Int high, const uint16_t* lanes, F f) {
  for (Int i = 0; i < q.rows; i++)
    for (Int k = q.begin; k < q.end; k += LANES) f(i * r.keys + k, multiplier<vec>(lanes + i * high + k, r.noise));
}

// attended = softmax(q k^T / sqrt(head)) v of every input and head, for queries low..high over keys 0..high.
void attention(Run& r, const Block& block, Int low, Int high, Int lane) {
  const Int d = r.d, wide = r.wide, keys = r.keys;
  const float scale = 1 / std::sqrt((float)r.head);
  for (Int n = 0; n < r.b * r.s.heads; n++) {
    const Head head{r, n / r.s.heads, n % r.s.heads};
    const Int there = r.first[head.input], begun = std::max(low, there), padding = r.padding[head.input];
    float* all = block.seen + n * r.s.positions * keys;
    head.take(r.query, block.qkv, 3 * d, begun, high);
    head.take(r.key, block.qkv + d, 3 * d, there, high);
    transpose(r.key + there * wide, high - there, wide, r.turned + there, keys);
    head.take(r.value, block.qkv + 2 * d, 3 * d, there, high);
    for (Int query = begun; query < high; query += QUERIES) {
      const Queries q{query, high, padding};
      float *out = r.out + q.low * wide, *seen = all + q.low * keys;
      product(q.rows, q.end - q.begin, r.head,
              {r.query + q.low * wide, PLAIN, wide, r.turned + q.begin, keys, seen + q.begin, keys});
      for (Int p = q.low; p < q.last; p++) {
        bool alone = r.s.branches == 1 || p < r.s.shared;
        const float* hidden = r.data.mask.size[0] ? r.data.mask.row(p) : nullptr;
        if (!alone) hidden = r.hidden + (p - r.s.shared) % r.s.branches * keys;
        softmax(all + p * keys, q.begin, q.end, padding, p + 1, scale, hidden);
      }
      if (r.noise.threshold) {
        each_multiplier(r, q, high, head.lanes(lane, low, high, q.low),
                        [&](Int at, vec times) { store(r.dropped + at, load<vec>(seen + at) * times); });
        seen = r.dropped;
      }
      product(q.rows, wide, q.keys, {seen + q.begin, PLAIN, keys, r.value + q.begin * wide, wide, out, wide});
    }
    head.give(r.out, block.attended, d, begun, high);
  }
}

// d_qkv of queries low..high, and what they add to that of keys and values, from d_normed, the gradient of `attended`.
// Nothing is there to add to unless other passes come `later`.
void attention_back(Run& r, const Block& block, Int low, Int high, bool later, Int lane) {
  const Int d = r.d, wide = r.wide, keys = r.keys;
  const float scale = 1 / std::sqrt((float)r.head);
  for (Int n = 0; n < r.b * r.s.heads; n++) {
    const Head head{r, n / r.s.heads, n % r.s.heads};
    const Int there = r.first[head.input], begun = std::max(low, there);  // there: the first position that has a row
    const float* all = block.seen + n * r.s.positions * keys;
    head.take(r.query, block.qkv, 3 * d, begun, high);
    head.take(r.key, block.qkv + d, 3 * d, there, high);
    head.take(r.value, block.qkv + 2 * d, 3 * d, there, high);
    transpose(r.value + there * wide, high - there, wide, r.turned + there, keys);
    head.take(r.out, r.d_normed, d, begun, high);
    if (later) {
      head.take(r.d_key, block.d_qkv + d, 3 * d, there, high);
      head.take(r.d_value, block.d_qkv + 2 * d, 3 * d, there, high);
    } else {
      for (float* sums : {r.d_key, r.d_value}) std::fill(sums + there * wide, sums + high * wide, 0.0f);
    }
    for (Int low_query = begun; low_query < high; low_query += QUERIES) {
      const Queries q{low_query, high, r.padding[head.input]};
      float *query = r.query + q.low * wide, *d_out = r.out + q.low * wide, *d_scores = r.scores + q.begin;
      float *d_key = r.d_key + q.begin * wide, *d_value = r.d_value + q.begin * wide;
      const float* seen = all + q.low * keys;
      product(q.rows, q.end - q.begin, r.head, {d_out, PLAIN, wide, r.turned + q.begin, keys, d_scores, keys});
      if (r.noise.threshold) {
        each_multiplier(r, q, high, head.lanes(lane, low, high, q.low), [&](Int at, vec times) {
          store(r.dropped + at, load<vec>(seen + at) * times);
          store(r.scores + at, load<vec>(r.scores + at) * times);
        });
        seen = r.dropped;
      }
      product(q.keys, wide, q.rows, {seen + q.begin, TURNED, keys, d_out, wide, d_value, wide, d_value, wide});
      for (Int p = q.low; p < q.last; p++)
        softmax_back(all + p * keys, r.scores + (p - q.low) * keys, q.begin, q.end, scale);
      product(q.keys, wide, q.rows, {d_scores, TURNED, keys, query, wide, d_key, wide, d_key, wide});
      product(q.rows, wide, q.keys, {d_scores, PLAIN, keys, r.key + q.begin * wide, wide, query, wide});
    }
    head.give(r.query, block.d_qkv, 3 * d, begun, high);
    head.give(r.d_key, block.d_qkv + d, 3 * d, there, high);
    head.give(r.d_value, block.d_qkv + 2 * d, 3 * d, there, high);
  }
}

// The model ----------------------------------------------------------------------------------------------------------
// f(row, at, weight) for each embedding that makes up a row, which begins at `at` of the flat array: that of its place
// first, of a prompt's token, and of the entries of a fed target, but for the first `own` thoughts.
template <class F> void each_embedding(const Run& r, const Data& fed, Int positions, Int variant, Int own, F f) {
  const Int d = r.d, tokens = r.tokens, vocab = r.s.vocab;
  for (Int p = 0; p < positions; p++)
    for (Int row = r.starts[p], i = 0; row < r.starts[p + 1]; row++, i++) {
      f(row, r.place(p, i), 1.0f);
      if (p < tokens) {
        Int token = r.data.prompts.row(r.inputs[i])[p];
        f(row, token % vocab * d, 1.0f);
        if (token >= vocab) f(row, (token / vocab - 1) * d, 1.0f);  // a pair
      } else if (p >= tokens + own) {
        fed.each_entry(variant, r.inputs[i], p - tokens, [&](Int token, float weight) { f(row, token * d, weight); });
      }
    }
}

// x_0 of positions: prompts, then E^T alpha* of each fed target.
void embed(Run& r, const Data& fed, Int positions, Int variant, Int own) {
  each_embedding(r, fed, positions, variant, own, [&](Int row, Int at, float weight) {
    float* x = r.blocks[0].x + row * r.d;
    if (at >= r.s.vocab * r.d) return void(std::copy_n(r.flat + at, r.d, x));
    add(x, r.flat + at, weight, r.d);
  });
}

void embed_back(Run& r, const Data& fed, Int positions, Int variant, Int own) {
  each_embedding(r, fed, positions, variant, own, [&](Int row, Int at, float weight) {
    add(r.gradient + at, r.d_x + row * r.d, weight, r.d);
  });
}

// x_0 of rows from a position on: E^T alpha of thoughts (row, token) plus the embedding of their place.
void mix(Run& r, const float* alpha, Int position, Int rows, Int depth) {
  float* x = r.rows_at(r.blocks[0].x, position, r.d);
  for (Int row = 0; row < rows; row++) std::copy_n(r.flat + r.place(depth, row % r.b), r.d, x + row * r.d);
  product(rows, r.d, r.s.vocab, {alpha, PLAIN, r.vocab, r.flat, r.d, x, r.d, x, r.d});
}

// dE += a^T x of rows that have an entry for each token, and of states: dl^T h of logits, alpha^T dz of mixtures.
void table_weights(Run& r, const float* a, const float* x, Int rows) {
  product(r.s.vocab, r.d, rows, {a, TURNED, r.vocab, x, r.d, r.gradient, r.d, r.gradient, r.d});
}

// What a layer computes of a pass: keys and values of rows begin..end, all else of rows low..end, from position
// `first` on; where its dropout multipliers begin: of attention's weights, of its projection, of the MLP.
struct Part {
  const Run& r;
  const Pass& p;
  const Int layer, first = layer + 1 == r.s.layers ? p.high - p.scored : p.low;
  const Int low = r.starts[first], begin = r.starts[p.low], end = r.starts[p.high];
  const Int weights = p.lane + r.b * (p.high - p.low) * (r.d + layer * (r.s.heads * p.high + 2 * r.d));
  const Int attn = weights + r.b * r.s.heads * (p.high - first) * p.high, mlp = attn + r.b * (p.high - first) * r.d;
};

constexpr Int CHUNK = 256;  // rows that go through an MLP together, which keeps them in the core's cache

void mlp(Run& r, Block& k, Int begin, Int end) {
  layer_norm(k.ln_2, k.middle, begin, end, r.d);
  linear(k.c_fc, k.ln_2.out, k.act, begin, end);
  gelu(k.act, k.slope, begin * 4 * r.d, end * 4 * r.d);
  linear(k.mlp_proj, k.act, k.y, begin, end);
}

void mlp_weights(Block& k, Int begin, Int end) {
  linear_weights(k.mlp_proj, k.act, k.d_mlp, begin, end);
  linear_weights(k.c_fc, k.ln_2.out, k.d_fc, begin, end);
}

void mlp_back(Run& r, Block& k, Int begin, Int end, bool weights) {
  linear_back(k.mlp_proj, k.d_mlp, k.d_fc, begin, end);
  gelu_back(k.d_fc, k.slope, begin * 4 * r.d, end * 4 * r.d);
  linear_back(k.c_fc, k.d_fc, r.d_normed, begin, end);
  layer_norm_back(k.ln_2, r.d_normed, r.d_x, begin, end, r.d);
  if (weights) mlp_weights(k, begin, end);
}

void attention_weights(Block& k, const Part& at, Int d) {
  linear_weights(k.attn_proj, k.attended, k.d_attn, at.low, at.end);
  linear_weights(k.c_attn.columns(0, d), k.ln_1.out, k.d_qkv, at.low, at.end);
  linear_weights(k.c_attn.columns(d, 2 * d), k.ln_1.out, k.d_qkv, at.begin, at.end);
}

// All layers for the positions of a pass, whose keys and values join those of the positions before. Leaves logits in
// the rows of the last scored positions.
void forward(Run& r, const Pass& p) {
  const Int d = r.d;
  if (float* x = r.blocks[0].x; r.noise.threshold) dropout(r, x, nullptr, x, p.low, p.high, p.lane);
  for (Int layer = 0; layer < r.s.layers; layer++) {
    Block& k = r.blocks[layer];
    const Part at{r, p, layer};
    layer_norm(k.ln_1, k.x, at.begin, at.end, d);
    linear(k.c_attn.columns(0, d), k.ln_1.out, k.qkv, at.low, at.end);
    linear(k.c_attn.columns(d, 2 * d), k.ln_1.out, k.qkv, at.begin, at.end);
    attention(r, k, at.first, p.high, at.weights);
    linear(k.attn_proj, k.attended, k.middle, at.low, at.end);
    dropout(r, k.middle, k.x, k.middle, at.first, p.high, at.attn);
    for (Int row = at.low; row < at.end; row += CHUNK) mlp(r, k, row, std::min(row + CHUNK, at.end));
    dropout(r, k.y, k.middle, k.y, at.first, p.high, at.mlp);
  }
  Int low = r.starts[p.high - p.scored], end = r.starts[p.high];
  layer_norm(r.ln_f, r.blocks.back().y, low, end, d);
  linear(r.lm_head, r.ln_f.out, r.logits, low, end);
}

// Backward from dh of a pass, which is in d_normed, to that of its embeddings, which is left in d_x. Adds what the
// pass does to the gradients of keys and values of earlier positions, of norms, and if `weights` those of matrices.
void backward(Run& r, const Pass& p, bool later, bool weights) {
  const Int d = r.d;
  std::fill(r.rows_at(r.d_x, p.low, d), r.rows_at(r.d_x, p.high, d), 0.0f);
  layer_norm_back(r.ln_f, r.d_normed, r.d_x, r.starts[p.high - p.scored], r.starts[p.high], d);
  for (Int layer = r.s.layers - 1; layer >= 0; layer--) {
    Block& k = r.blocks[layer];
    const Part at{r, p, layer};
    dropout(r, r.d_x, nullptr, k.d_mlp, at.first, p.high, at.mlp);
    for (Int row = at.low; row < at.end; row += CHUNK) mlp_back(r, k, row, std::min(row + CHUNK, at.end), weights);
    dropout(r, r.d_x, nullptr, k.d_attn, at.first, p.high, at.attn);
    linear_back(k.attn_proj, k.d_attn, r.d_normed, at.low, at.end);
    attention_back(r, k, at.first, p.high, later, at.weights);
    linear_back(k.c_attn.columns(d, 2 * d), k.d_qkv, r.d_normed, at.begin, at.end);
    linear_back(k.c_attn.columns(0, d), k.d_qkv, r.d_normed, at.low, at.end, true);
    layer_norm_back(k.ln_1, r.d_normed, r.d_x, at.begin, at.end, d);
    if (weights) attention_weights(k, at, d);
  }
  if (r.noise.threshold) dropout(r, r.d_x, nullptr, r.d_x, p.low, p.high, p.lane);
}

// dh of a pass from the gradient of its logits, into d_normed. Rows beyond the table meet gradients that are zero.
void logits_back(Run& r, const Pass& p) {
  linear_back(r.lm_head, r.logits, r.d_normed, r.starts[p.high - p.scored], r.starts[p.high]);
}

void logits_weights(Run& r, const Pass& p) {
  const Int low = p.high - p.scored, rows = r.starts[p.high] - r.starts[low];
  table_weights(r, r.rows_at(r.logits, low, r.vocab), r.rows_at(r.ln_f.out, low, r.d), rows);
}

// Soft cross-entropy of the scored positions; their logits become its gradient, weight (alpha sum(t) - t). The first
// `skipped` outputs do not count, as far as they come before the answer.
double cross_entropy(Run& r, Int variant, Int skipped) {
  double loss = 0;
  const Data& data = r.data;
  for (Int p = r.s.positions - r.s.scored; p < r.s.positions; p++)
    for (Int i = 0; i < r.b; i++) {
      float* row = r.logits + (r.starts[p] + i) * r.vocab;
      const Int input = r.inputs[i], output = p - r.tokens + 1, outputs = data.outputs[input];
      const Int least = std::min(skipped, std::max(outputs - data.ending - 1, Int(0)));
      if (output >= outputs || (0 <= output && output < least)) {
        std::fill(row, row + r.vocab, 0.0f);
        continue;
      }
      const Int scored = outputs - least + (data.sequence ? r.tokens - 1 : 0);
      const float weight = data.mean ? 1.0 / (r.b * scored) : 1.0 / r.b;
      auto each_target = [&](auto f) {
        if (output < 0) return f(data.prompts.row(input)[p + 1], 1.0f);
        data.each_entry(variant, input, output, f);
      };
      double shown = 0, along = 0;
      each_target([&](Int token, float share) { shown += share, along += share * row[token]; });
      loss += weight * (shown * softmax(row, 0, r.vocab, 0, r.s.vocab) - along);
      vectors(r.vocab, [&]<class V>(V, Int j) { store(row + j, load<V>(row + j) * (float)(weight * shown)); });
      each_target([&](Int token, float share) { row[token] -= weight * share; });
    }
  return loss;
}

// Supervised steps ---------------------------------------------------------------------------------------------------
// The passes of a step follow each other, each finding the keys and values of those before: the prompt, one pass for
// each own thought, and what follows. Backward they are walked the other way. A pass's first position's gradient goes
// through the thought that was fed there into the pass before:
//
//     Base:      z = E^T alpha, alpha = softmax(l):   dE += alpha dz^T,  dl += alpha (E dz - alpha . E dz)
//     Hidden:    z = h, the last hidden state:        dh += dz
//     ZeroSlot:  z = h of the slot itself, computed with zeros in it by a pass of its own, which is computed again

// x_0 of the thought that a pass begins with, made from the pass before; zeros for a slot.
void feed(Run& r, const Thoughts& t, const Pass& p) {
  const Int d = r.d, begin = p.low * r.b;
  if (t.kind == BASE) {
    float* alpha = r.alpha + (begin - r.tokens * r.b) * r.vocab;
    std::copy_n(r.logits + (begin - r.b) * r.vocab, r.b * r.vocab, alpha);
    for (Int i = 0; i < r.b; i++) softmax(alpha + i * r.vocab, 0, r.vocab, 0, r.s.vocab);
    return mix(r, alpha, p.low, r.b, p.low);
  }
  const float* states = r.ln_f.out + (t.kind == SLOT ? begin : begin - r.b) * d;
  float* x = r.blocks[0].x + begin * d;
  for (Int i = 0; i < r.b; i++) {
    std::copy_n(r.flat + r.place(p.low, i), d, x + i * d);
    if (!p.slot) add(x + i * d, states + i * d, 1, d);
  }
}

// Gradients through the thoughts at a position, from d_x, into the pass before.
void feed_back(Run& r, const Thoughts& t, Int number) {
  const Int b = r.b, d = r.d, begin = t.passes[number].low * b;
  float *d_x = r.d_x + begin * d, *kept = r.d_thought;
  if (t.kind == BASE) {
    linear(r.lm_head, d_x, kept, 0, b);
    for (Int i = 0; i < b; i++)
      softmax_back(r.alpha + (begin - r.tokens * b + i) * r.vocab, kept + i * r.vocab, 0, r.vocab, 1);
    add(r.logits + (begin - b) * r.vocab, kept, 1, b * r.vocab);
  } else if (t.kind == SLOT) {  // the slot's pass again, since that of the thought has overwritten what it left
    const Pass& slot = t.passes[number - 1];
    feed(r, t, slot);
    forward(r, slot);
    std::copy_n(d_x, b * d, kept), std::copy_n(d_x, b * d, r.d_normed + begin * d);
    for (Block& k : r.blocks) std::fill_n(k.d_qkv + begin * 3 * d, b * 3 * d, 0.0f);
    backward(r, slot, true, true);
    add(d_x, kept, 1, b * d);
  }
}

// Loss and gradients of a batch, the step number `step`. The run's targets are scored, those of `fed` are fed, but for
// the first thoughts, which are the model's own.
double supervised(Run& r, const Data& fed, const Int* inputs, Int variant, const Thoughts& t, Int step) {
  const Int passes = t.passes.size[0];
  const bool one = passes == 1, at_once = !one && t.kind != SLOT;  // gradients of matrices after all passes
  transpose_weights(r);
  arrange(r, inputs, one && !r.data.sequence);
  embed(r, fed, r.s.positions, variant, t.own);
  for (Int number = 0; number < passes; number++) {
    const Pass& p = t.passes[number];
    draw_lanes(r, step, number, p.lane, p.end);
    if (number) feed(r, t, p);
    forward(r, p);
  }
  double loss = cross_entropy(r, variant, t.skipped);
  std::fill_n(r.gradient, r.work.gradient.size[0], 0.0f);
  for (Block& k : r.blocks) std::fill_n(k.d_qkv, one ? 0 : r.rows * 3 * r.d, 0.0f);
  for (Int number = passes - 1; number >= 0; number--) {
    const Pass& p = t.passes[number];
    if (p.slot) continue;
    logits_back(r, p);
    if (!at_once) logits_weights(r, p);
    if (t.kind == HIDDEN && number + 1 < passes)  // the next pass was fed the last states of this one
      add(r.d_normed + (p.high - 1) * r.b * r.d, r.d_x + p.high * r.b * r.d, 1, r.b * r.d);
    backward(r, p, !one, !at_once);
    if (number) feed_back(r, t, number);
  }
  if (at_once) {
    Pass whole = {0, r.s.positions, r.s.scored};
    for (Int layer = 0; layer < r.s.layers; layer++) {
      const Part at{r, whole, layer};
      mlp_weights(r.blocks[layer], at.low, at.end), attention_weights(r.blocks[layer], at, r.d);
    }
    logits_weights(r, whole);
    if (t.kind == BASE) table_weights(r, r.alpha, r.rows_at(r.d_x, r.tokens, r.d), t.own * r.b);
  }
  embed_back(r, fed, r.s.positions, variant, t.own);
  return loss;
}

// GRPO ---------------------------------------------------------------------------------------------------------------
constexpr double LEAST = 1e-30, LEAST_SPREAD = 1e-12;  // as in `cot2lib.kit.dirichlet` and `cot2lib.losses`
constexpr Int PROPOSALS = 4, UNIFORMS = 6;             // as in `cot2lib.kit.dirichlet`

// Logarithm of a gamma variate from draws of number `first` on, as `cot2lib.kit.dirichlet.log_gammas`.
double log_gamma(double shape, Key key, Int first) {
  double d = shape + 2.0 / 3, refused = 1, taken = 0;  // d = (shape + 1) - 1/3
  for (Int proposal = 0; proposal < PROPOSALS; proposal++) {
    Int pair = proposal % 2;
    double angle = 2 * M_PI * uniform(key, first + pair + 2), z = std::sqrt(-2 * std::log(uniform(key, first + pair)));
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
  double y = 1 / (x * x), series = 1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y / 132)));
  return std::log(x) - 1 / (2 * x) - y * series - less;
}

// A Dirichlet point of a softmax alpha, as of `cot2lib.thoughts.simplex`: some tokens have entries of their own, one
// is shared by all others.
struct Point {
  const Policy& policy;
  const float* alpha;
  Int vocab, *tokens, &apart;  // apart: how many tokens have entries of their own
  double *entries, &last;      // logarithms; the last is the shared one's
  double divisor = 1, shared = 0;

  double share(Int e) const {
    return (policy.masked ? std::max((double)alpha[tokens[e]], policy.floor) : alpha[tokens[e]]) / divisor;
  }
  double shape(double share) const { return std::max(policy.gamma * share, LEAST); }

  void find_shares() {
    double own = 0, every = std::accumulate(alpha, alpha + vocab, 0.0);
    for (Int e = 0; e < apart; e++) own += share(e);
    divisor = policy.masked ? own : 1;
    shared = policy.masked || apart == vocab ? 0 : std::max(every - own, 0.0);
  }

  // Draws a rollout's point; leaves the mixture in `fed` (token,).
  void draw(Key key, Int rollout, float* fed) {
    const Int most = policy.most;
    std::vector<Int> order(vocab);
    for (Int j = 0; j < vocab; j++) order[j] = j;
    std::partial_sort(order.begin(), order.begin() + most, order.end(),
                      [&](Int a, Int b) { return alpha[a] > alpha[b] || (alpha[a] == alpha[b] && a < b); });
    double beyond = std::accumulate(alpha, alpha + vocab, 0.0), top = -INFINITY, mass = 0;
    for (apart = 0; apart < most; apart++) {
      const float value = alpha[order[apart]];
      beyond -= value;
      bool greatest = value == alpha[order[0]], rest = beyond >= policy.floor || !policy.floor;
      if (policy.masked ? value < policy.floor && !greatest : value < policy.floor || !rest) break;
      tokens[apart] = order[apart];
    }
    find_shares();
    for (Int e = 0; e <= most; e++) {
      double weight = e < apart ? share(e) : e == most ? shared : 0;
      entries[e] = weight > 0 ? log_gamma(shape(weight), key, (rollout * (most + 1) + e) * UNIFORMS) : -INFINITY;
      top = std::max(top, entries[e]);
    }
    for (Int e = 0; e <= most; e++) mass += std::exp(entries[e] - top);
    double inside = std::exp(last - top) / mass / std::max(shared, LEAST);
    for (Int j = 0; j < vocab; j++) fed[j] = alpha[j] * inside;
    for (Int e = 0; e <= most; e++) {
      entries[e] -= top + std::log(mass);
      if (e < apart) fed[tokens[e]] = std::exp(entries[e]);
    }
  }

  // lgamma(sum a) + sum(a log x - lgamma(a)), as `cot2lib.kit.dirichlet.log_density`.
  double log_density() {
    double whole = 0, value = 0;
    find_shares();
    for (Int e = 0; e <= apart; e++) {
      double x = e < apart ? entries[e] : last, a = shape(e < apart ? share(e) : shared);
      if (x > -INFINITY) whole += a, value += a * x + std::log(a) - std::lgamma(a + 1);
    }
    return value + std::lgamma(whole);
  }

  // Adds `times` the derivatives of the log-density to h, as d/da = log x - psi(a) + psi(sum a), but for a multiple of
  // alpha, which leaves those of the scores as they are.
  void log_density_back(double times, float* h) {
    find_shares();
    const bool there = last > -INFINITY;
    double whole = there ? shape(shared) : 0, along = 0, scale = times * policy.gamma;
    for (Int e = 0; e < apart; e++) whole += shape(share(e));
    const double middle = digamma(whole), rest = there ? scale * (last - digamma(shape(shared)) + middle) : 0;
    auto slope = [&](Int e) { return entries[e] - digamma(shape(share(e))) + middle; };
    for (Int e = 0; e < apart && policy.masked; e++) along += share(e) * slope(e);  // shares are divided by their sum
    for (Int e = 0; e < apart; e++) {
      double weight = alpha[tokens[e]];
      if (policy.masked && weight < policy.floor) continue;
      h[tokens[e]] += weight * ((policy.gamma * share(e) > LEAST ? scale * (slope(e) - along) / divisor : 0) - rest);
    }
  }
};

// Rollouts of a batch (`cot2lib.training.grpo`), each prompt's as branches (`cot2lib.model.branches`). They leave in
// the arrays what their replay would compute. Gradients h_j are with respect to log alpha_j as if all were free; those
// of the scores are (h_j - alpha_j sum(h)) / temperature.
struct Rollouts {
  Run& r;
  const Ints1& answered;  // (input,) at which step
  const Policy& policy;
  const Terms& terms;
  const Traces& t;
  const Int group = r.s.branches, count = group * r.b, shared = r.s.shared, outputs = t.now.size[0];
  const Pass whole = {0, r.s.positions, r.s.scored};
  std::vector<double> gains = std::vector<double>(count), slopes = std::vector<double>(policy.draws);

  Int end(Int rollout) const { return answered[r.inputs[rollout / group]]; }
  // The row of an output: the prompt's last for all branches of the first.
  float* alpha(Int output, Int rollout) const {
    Int place = output ? shared + (output - 1) * group + rollout % group : shared - 1;
    return r.logits + (place * r.b + rollout / group) * r.vocab;
  }
  float* mixture(Int thought, Int rollout) const {
    return r.alpha + ((thought * group + rollout % group) * r.b + rollout / group) * r.vocab;
  }
  Point point(Int thought, Int n) const {
    double *entries = t.points.row(thought, n), *last = entries + policy.most;
    return {policy, alpha(thought, n), r.s.vocab, t.tokens.row(thought, n), t.apart.row(thought)[n], entries, *last};
  }

  void soften(Int output) {
    for (Int rollout = 0; rollout < count; rollout += output ? 1 : group) {
      double heat = output < end(rollout) ? policy.temperature : 1;
      softmax(alpha(output, rollout), 0, r.vocab, 0, r.s.vocab, 1 / (float)heat);
    }
  }

  void feed(Int thought) { mix(r, mixture(thought, 0), shared + thought * group, count, shared + thought); }

  // Thoughts and answers of all branches, by the draws of `cot2lib.decode.keyed_noise`.
  void roll_out(Key key) {
    embed(r, r.data, shared, 0, 0);
    for (Int output = 0; output < outputs; output++) {
      forward(r, {output ? shared + (output - 1) * group : 0, shared + output * group, output ? group : 1});
      soften(output);
      for (Int first = 0; first < count; first += group) draw(first, output, fold(key, output), fold(key, outputs - 1));
      if (output + 1 < outputs) feed(output);
    }
  }

  // Draws of a prompt's branches at an output: a thought, or the answer by the draws of the last one.
  void draw(Int first, Int output, Key here, Key final) {
    const Int vocab = r.s.vocab;
    std::vector<float> cumulated(group * vocab);
    std::vector<double> totals(group);
    const float* row = alpha(output, first);
    const Int next = alpha(output, first + 1) - row;
    for (Int j = 0; j < vocab; j++)
      for (Int branch = 0; branch < group; branch++)  // sums of one branch would wait for each other
        cumulated[branch * vocab + j] = totals[branch] += row[branch * next + j];
    for (Int rollout = first; rollout < first + group; rollout++) {
      const float* weights = &cumulated[(rollout - first) * vocab];
      auto token = [&](Key key, Int index) {  // whose cumulated weight first exceeds a uniform draw
        float x = uniform(key, index) * weights[vocab - 1];
        int below = 0;
        for (Int j = 0; j < vocab; j++) below += weights[j] <= x;
        return std::min(Int(below), vocab - 1);
      };
      if (output == end(rollout)) t.answers[rollout] = token(final, rollout);
      if (output + 1 == outputs) continue;
      float* fed = mixture(output, rollout);
      std::fill_n(fed, r.vocab, 0.0f);
      if (policy.kind == POINT) point(output, rollout).draw(here, rollout, fed);
      for (Int c = 0, *tokens = t.tokens.row(output, rollout); c < policy.draws && policy.kind == TOKENS; c++)
        fed[tokens[c] = token(here, rollout * policy.draws + c)] += 1 / (float)policy.draws;
    }
  }

  // The mean reward; advantages of all rollouts within their groups.
  double reward(const Array<const uint8_t, 2>& right) {
    double every = 0;
    for (Int i = 0; i < r.b; i++) {
      double total = 0, *gain = &gains[i * group];
      for (Int n = 0; n < group; n++)
        total += gain[n] = right.row(r.inputs[i])[t.answers[i * group + n]] ? 1 : 0;
      double mean = total / group, spread = std::max(std::sqrt(mean * (1 - mean)), LEAST_SPREAD);
      for (Int n = 0; n < group; n++) gain[n] = (gain[n] - mean) / (terms.scaled ? spread : 1);
      every += mean;
    }
    return every / r.b;
  }

  // One forward pass over prompts and all thoughts that were fed, with dropout where there is some.
  void replay(Int step, Int update) {
    transpose_weights(r);
    embed(r, r.data, shared, 0, 0);
    for (Int thought = 0; thought + 1 < outputs; thought++) feed(thought);
    draw_lanes(r, step, update, 0, r.work.draws.size[0] * 4);
    forward(r, whole);
    for (Int output = 0; output < outputs; output++) soften(output);
  }

  // Log-densities of what rollouts drew, under the distributions that are there.
  void log_densities(const Densities& out) {
    for (Int output = 0; output < outputs; output++)
      for (Int rollout = 0; rollout < count; rollout++) {
        double* density = out.row(output, rollout);
        const float* row = alpha(output, rollout);
        auto of_token = [&](Int token) { return std::log((double)row[token]); };
        if (output == end(rollout)) density[0] = of_token(t.answers[rollout]);
        if (output >= end(rollout)) continue;
        if (policy.kind == POINT) density[0] = point(output, rollout).log_density();
        for (Int c = 0, *token = t.tokens.row(output, rollout); c < policy.draws && policy.kind == TOKENS; c++)
          density[c] = of_token(token[c]);
      }
  }

  // Derivatives of a rollout's part of the objective, at an output, by its log-densities now (in `slopes`). The part is
  // weight (kl k - surrogate); see `cot2lib.losses`. Returns the share of ratios outside the clip range.
  double surrogate_back(Int output, Int rollout, Int many, double weight) {
    const double *now = t.now.row(output, rollout), *old = t.old.row(output, rollout);
    const double *reference = t.reference.row(output, rollout), gain = gains[rollout];
    double all = 0, gap = 0, outside = 0, power = terms.ratio == GEOMETRIC ? 1.0 / many : 1;
    for (Int c = 0; c < many; c++) all += now[c] - old[c], gap += reference[c] - now[c];
    double pull = terms.kl > 0 ? power * (std::exp(power * gap) - 1) * terms.kl : 0;
    for (Int c = 0; c < many; c++) {
      double change = terms.ratio == PER_DRAW ? now[c] - old[c] : power * all, ratio = std::exp(change);
      outside += std::abs(std::expm1(change)) > terms.clip ? 1.0 / many : 0;
      double bounded = std::min(std::max(ratio, 1 - terms.clip), 1 + terms.clip);
      bool kept = ratio == bounded || ratio * gain < bounded * gain;  // the lesser of the two has this gradient
      slopes[c] = -weight * ((kept ? power * ratio * gain : 0) + pull);
    }
    return outside;
  }

  // Distributions become gradients of logits; returns the share of ratios outside the clip range. What a row's rollouts
  // draw is added up in h.
  double objective_back() {
    double outside = 0;
    std::vector<float> h(r.vocab);
    for (Int output = 0; output < outputs; output++)
      for (Int rollout = 0; rollout < count; rollout++) {
        const Int last = end(rollout), many = output < last ? policy.draws : 1;
        const double weight = 1.0 / (count * (last + 1));
        float* row = alpha(output, rollout);
        if (output || rollout % group == 0) std::fill(h.begin(), h.end(), 0.0f);
        if (output <= last) outside += weight * surrogate_back(output, rollout, many, weight);
        if (output == last) h[t.answers[rollout]] += slopes[0];
        if (output < last && policy.kind == POINT && slopes[0])
          point(output, rollout).log_density_back(slopes[0], h.data());
        for (Int c = 0; c < many && output < last && policy.kind == TOKENS; c++)
          h[t.tokens.row(output, rollout)[c]] += slopes[c];
        if (!output && (rollout + 1) % group) continue;
        float own = sum_over(r.vocab, [&]<class V>(V, Int j) { return load<V>(&h[j]); });
        float scale = 1 / (output < last ? policy.temperature : 1);
        vectors(r.vocab, [&]<class V>(V, Int j) { store(row + j, (load<V>(&h[j]) - load<V>(row + j) * own) * scale); });
      }
    return outside;
  }

  // Gradients of all parameters from those of the logits.
  void back() {
    std::fill_n(r.gradient, r.work.gradient.size[0], 0.0f);
    logits_back(r, whole), logits_weights(r, whole);
    backward(r, whole, false, true);
    embed_back(r, r.data, shared, 0, 0);
    const float* d_x = r.rows_at(r.d_x, shared, r.d);
    const Int rows = r.rows - shared * r.b;
    table_weights(r, r.alpha, d_x, rows);
    for (Int row = 0; row < rows; row++)
      add(r.gradient + r.place(shared + row / count, row % r.b), d_x + row * r.d, 1, r.d);
  }
};
}  // namespace

// Entries ------------------------------------------------------------------------------------------------------------
extern "C" {

// Floats of scratch that a run of a shape needs.
Int scratch(const Shape& s) {
  return (Int)Run(nullptr, s, {}, {}, {}).next / sizeof(float) + PADDED;
}

// Train on the batches of `order` (step, batch), the first of which is step number `first` of the run. Leaves each
// batch's loss in `losses` (step,) and the last one's gradients in the work's `gradient`.
void train(const Floats& flat, const Shape& shape, const Data& data, const Data& fed, const Ints2& order,
           const Int& variant, const Thoughts& thoughts, const Optimiser& optimiser, const Noise& noise,
           const Int& first, const Floats& losses, const Work& work) {
  Run r(flat.at, shape, data, noise, work);
  for (Int s = 0; s < order.size[0]; s++) {
    losses[s] = supervised(r, fed, order.row(s), variant, thoughts, first + s);
    adamw(r, optimiser, optimiser.rates[s], first + s + 1);
  }
}

// Answers (input,) to rows of the data, each at the step `last`, and the sum of each step's entropies (step,) in nats.
// The shape's batch is decoded at once. Thoughts are the likeliest token if `greedy`, else the mixture of all.
void decode(const Floats& flat, const Shape& shape, const Data& data, const Ints1& inputs, const Ints1& last,
            const Int& greedy, const Array<Int>& answers, const Array<double>& entropies, const Work& work) {
  Run r(flat.at, shape, data, {}, work);
  const Int steps = entropies.size[0], all = inputs.size[0];
  std::vector<Int> chunk(r.b);
  transpose_weights(r);
  for (Int begin = 0; begin < all; begin += r.b) {
    for (Int i = 0; i < r.b; i++) chunk[i] = inputs[std::min(begin + i, all - 1)];
    arrange(r, chunk.data(), false);
    embed(r, data, r.tokens, 0, 0);
    for (Int step = 0, low = 0, high = r.tokens; step < steps; step++, low = high++) {
      forward(r, {low, high, 1});
      for (Int i = 0; i < r.b; i++) {
        float *row = r.rows_at(r.logits, high - 1, r.vocab) + i * r.vocab, along = 0;
        std::vector<float> logits(row, row + shape.vocab);
        Int best = std::max_element(logits.begin(), logits.end()) - logits.begin(), item = begin + i;
        double log_sum = softmax(row, 0, r.vocab, 0, shape.vocab);
        for (Int j = 0; j < shape.vocab; j++) along += row[j] * (logits[j] - logits[best]);
        if (item < all && step <= last[item]) entropies[step] += log_sum - logits[best] - along;
        if (item < all && step == last[item]) answers[item] = best;
        for (Int j = 0; j < shape.vocab && greedy; j++) row[j] = j == best;
      }
      if (step + 1 < steps) mix(r, r.rows_at(r.logits, high - 1, r.vocab), high, r.b, high);
    }
  }
}

// Train by reward, as `train` does by targets. Leaves each batch's share of failed rollouts in `losses` (step,) and
// the last update's share of clipped ratios in `clipped` (1,). `right` (input, token) says which answers are rewarded,
// `answered` (input,) at which step; `reference` is the flat array of the start, `key` the rollouts'.
void grpo(const Floats& flat, const Shape& shape, const Data& data, const Array<const uint8_t, 2>& right,
          const Ints1& answered, const Ints2& order, const Policy& policy, const Terms& terms, const Floats& reference,
          const Key& key, const Optimiser& optimiser, const Noise& noise, const Int& first, const Floats& losses,
          const Floats& clipped, const Traces& t, const Work& work) {
  Run r(flat.at, shape, data, noise, work), start(reference.at, shape, data, {}, work);
  Rollouts rollouts{r, answered, policy, terms, t}, before{start, answered, policy, terms, t};
  for (Int branch = 0; branch < shape.branches; branch++)  // keys of other branches are not seen
    for (Int k = 0; k < r.keys; k++)
      r.hidden[branch * r.keys + k] = k < shape.shared || (k - shape.shared) % shape.branches == branch ? 0 : -1e30f;
  for (Int s = 0; s < order.size[0]; s++) {
    const Int step = first + s;
    transpose_weights(r);
    for (Run* each : {&r, &start}) arrange(*each, order.row(s), false);
    r.noise.threshold = 0;
    rollouts.roll_out(fold(key, step));
    losses[s] = 1 - rollouts.reward(right);
    if (noise.threshold) rollouts.log_densities(t.old);
    if (terms.kl > 0) before.replay(step, 0), before.log_densities(t.reference);
    r.noise = noise;
    for (Int update = 0; update < terms.updates; update++) {
      if (update || terms.kl > 0 || noise.threshold) rollouts.replay(step, update);
      rollouts.log_densities(t.now);
      if (!update && !noise.threshold)  // so that at equal weights every ratio is exactly one
        std::copy_n(t.now.at, t.now.size[0] * t.now.size[1] * t.now.size[2], t.old.at);
      clipped[0] = rollouts.objective_back();
      rollouts.back();
      adamw(r, optimiser, optimiser.rates[s], step * terms.updates + update + 1);
    }
  }
}
}  // extern "C"
