// A small GPT-2 in plain loops, and the thought rules of the paper, for the page `explorer`.
// Its weights are cot2lib's (`explorer-data.js`); a test compares the logits of both.
"use strict";

Object.assign(window.COT2, (function () {
  const EPSILON = 1e-5; // of layer norms
  const FLOOR = 1e-3; // share of a Dirichlet thought's concentration below which a token has no entry of its own
  const MOST = 16; // entries of a Dirichlet thought

  /** Weights of a model, by name, as {data, shape}. */
  function unpack(model) {
    const bytes = Uint8Array.from(atob(model.data), (c) => c.charCodeAt(0));
    const floats = new Float32Array(bytes.buffer);
    const weights = {};
    for (const [name, [offset, ...shape]] of Object.entries(model.tensors)) {
      const size = shape.reduce((a, b) => a * b, 1);
      weights[name] = { data: floats.subarray(offset, offset + size), shape };
    }
    return weights;
  }

  /** x W + b for W of (inputs, outputs). */
  function linear(x, weight, bias) {
    const [inputs, outputs] = weight.shape;
    const y = Float64Array.from(bias.data);
    for (let i = 0; i < inputs; i++) {
      for (let j = 0; j < outputs; j++) y[j] += x[i] * weight.data[i * outputs + j];
    }
    return y;
  }

  function layerNorm(x, weight, bias) {
    const mean = x.reduce((a, b) => a + b, 0) / x.length;
    const variance = x.reduce((a, b) => a + (b - mean) ** 2, 0) / x.length;
    const scale = 1 / Math.sqrt(variance + EPSILON);
    return x.map((v, i) => (v - mean) * scale * weight.data[i] + bias.data[i]);
  }

  function gelu(x) {
    return 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
  }

  function softmax(scores) {
    const top = Math.max(...scores);
    const powers = Array.from(scores, (s) => Math.exp(s - top));
    const total = powers.reduce((a, b) => a + b, 0);
    return powers.map((p) => p / total);
  }

  const plus = (x, y) => x.map((v, i) => v + y[i]);

  /** A model that reads embeddings one after the other and keeps keys and values. */
  class Reader {
    constructor(model) {
      this.model = model;
      this.weights = unpack(model);
      this.cache = Array.from({ length: model.layers }, () => ({ keys: [], values: [] }));
      this.place = 0;
    }

    get(name) {
      return this.weights["transformer." + name];
    }

    /** A copy that goes on from here on its own. */
    fork() {
      const copy = Object.create(Reader.prototype);
      const cache = this.cache.map(({ keys, values }) => ({ keys: [...keys], values: [...values] }));
      return Object.assign(copy, this, { cache });
    }

    /** The continuous token E^T weights. */
    mix(weights) {
      const table = this.get("wte.weight").data;
      const mixed = new Float64Array(this.model.d);
      weights.forEach((w, token) => {
        if (w !== 0) for (let i = 0; i < mixed.length; i++) mixed[i] += w * table[token * mixed.length + i];
      });
      return mixed;
    }

    token(id) {
      const one = new Array(this.model.vocab).fill(0);
      one[id] = 1;
      return this.read(this.mix(one));
    }

    /** Read one embedding; returns the logits after it. */
    read(embedding) {
      const { d, layers } = this.model;
      const places = this.get("wpe.weight").data;
      let x = embedding.map((v, i) => v + places[this.place * d + i]);
      for (let layer = 0; layer < layers; layer++) {
        const part = (name) => this.get(`h.${layer}.${name}`);
        const seen = layerNorm(x, part("ln_1.weight"), part("ln_1.bias"));
        x = plus(x, this.attend(layer, seen, part));
        const inner = layerNorm(x, part("ln_2.weight"), part("ln_2.bias"));
        const wide = linear(inner, part("mlp.c_fc.weight"), part("mlp.c_fc.bias")).map(gelu);
        x = plus(x, linear(wide, part("mlp.c_proj.weight"), part("mlp.c_proj.bias")));
      }
      this.place += 1;
      const last = layerNorm(x, this.get("ln_f.weight"), this.get("ln_f.bias"));
      const table = this.get("wte.weight").data;
      return Array.from({ length: this.model.vocab }, (_, token) => {
        let score = 0;
        for (let i = 0; i < d; i++) score += last[i] * table[token * d + i];
        return score;
      });
    }

    attend(layer, x, part) {
      const { d, heads } = this.model;
      const width = d / heads;
      const all = linear(x, part("attn.c_attn.weight"), part("attn.c_attn.bias")); // query, key, value
      const { keys, values } = this.cache[layer];
      keys.push(all.slice(d, 2 * d));
      values.push(all.slice(2 * d));
      const mixed = new Float64Array(d);
      for (let head = 0; head < heads; head++) {
        const from = head * width;
        const scores = keys.map((key) => {
          let score = 0;
          for (let i = from; i < from + width; i++) score += all[i] * key[i];
          return score / Math.sqrt(width);
        });
        softmax(scores).forEach((share, step) => {
          for (let i = from; i < from + width; i++) mixed[i] += share * values[step][i];
        });
      }
      return linear(mixed, part("attn.c_proj.weight"), part("attn.c_proj.bias"));
    }
  }

  /** A generator of uniform numbers from a seed (mulberry32). */
  function uniforms(seed) {
    let state = seed >>> 0;
    return () => {
      state = (state + 0x6d2b79f5) >>> 0;
      let t = Math.imul(state ^ (state >>> 15), state | 1);
      t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
  }

  function pick(weights, draw) {
    let left = draw();
    for (let token = 0; token < weights.length; token++) {
      left -= weights[token];
      if (left < 0) return token;
    }
    return weights.indexOf(Math.max(...weights));
  }

  function normal(draw) {
    return Math.sqrt(-2 * Math.log(1 - draw())) * Math.cos(2 * Math.PI * draw());
  }

  /** log of a gamma variate (Marsaglia and Tsang), finite for the smallest shapes too. */
  function logGamma(shape, draw) {
    if (shape < 1) return logGamma(shape + 1, draw) + Math.log(1 - draw()) / shape;
    const c = shape - 1 / 3;
    for (;;) {
      const z = normal(draw);
      const v = (1 + z / Math.sqrt(9 * c)) ** 3;
      if (v > 0 && Math.log(1 - draw()) < 0.5 * z * z + c - c * v + c * Math.log(v)) return Math.log(c * v);
    }
  }

  /** Tokens with entries of their own: of the 16 likeliest those with a floor in them and in all that come after. */
  function apart(alpha) {
    const order = alpha.map((_, token) => token).sort((a, b) => alpha[b] - alpha[a]);
    let left = 1;
    return order.slice(0, MOST).filter((token) => {
      left -= alpha[token];
      return alpha[token] >= FLOOR && left >= FLOOR;
    });
  }

  const oneHot = (token, size) => Array.from({ length: size }, (_, i) => Number(i === token));

  /** Rules: from a distribution to the weights that are fed. */
  const rules = {
    base: (alpha) => alpha,
    greedy: (alpha) => oneHot(alpha.indexOf(Math.max(...alpha)), alpha.length),
    sample: (alpha, draw) => oneHot(pick(alpha, draw), alpha.length),
    mts: (alpha, draw, { k }) => {
      const weights = new Array(alpha.length).fill(0);
      for (let i = 0; i < k; i++) weights[pick(alpha, draw)] += 1 / k;
      return weights;
    },
    dirichlet: (alpha, draw, { gamma }) => {
      const own = apart(alpha);
      const rest = 1 - own.reduce((sum, token) => sum + alpha[token], 0);
      const shares = softmax([...own.map((token) => alpha[token]), rest].map((s) => logGamma(gamma * s, draw)));
      const shared = shares.pop() / rest; // one entry for all others, split by their shares
      const weights = alpha.map((share) => share * shared);
      own.forEach((token, place) => (weights[token] = shares[place]));
      return weights;
    },
  };

  /** Think and answer by a rule, with K or gamma of at least 1: a list of {logits, alpha, weights}, one for each step, the answer last. */
  function respond(reader, digits, rule, options) {
    const { model } = reader;
    const { seed = 0, removed = [] } = options;
    const now = reader.fork();
    const draw = uniforms(seed);
    now.token(model.bos);
    const tokens = [...digits.map((digit) => model.digit0 + digit), ...model.tail]; // some have an arrow at the end
    let logits = tokens.map((token) => now.token(token)).pop();
    const steps = [];
    for (let step = 0; step < model.steps; step++) {
      const alpha = softmax(logits);
      if (step === model.steps - 1) return [...steps, { logits, alpha, weights: rules.greedy(alpha) }];
      const weights = without(rules[rule](alpha, draw, options), removed[step] || []);
      steps.push({ logits, alpha, weights });
      logits = now.read(now.mix(weights));
    }
    return steps;
  }

  /** Weights with some tokens taken out and the rest scaled to one; as they were if nothing would be left. */
  function without(weights, tokens) {
    const left = weights.map((w, token) => (tokens.includes(token) ? 0 : w));
    const total = left.reduce((a, b) => a + b, 0);
    return total > 0 ? left.map((w) => w / total) : weights;
  }

  return { Reader, respond };
})());
