// A small GPT-2 in plain loops, for pages that run trained models. Its weights are cot2lib's; a test compares the logits
// of both.
"use strict";

Object.assign(window.COT2, (function () {
  const EPSILON = 1e-5; // of layer norms

  /** Weights of a model, by name, as {data, shape}. */
  function unpack(model) {
    const { buffer } = Uint8Array.from(atob(model.data), (c) => c.charCodeAt(0));
    const numbers = new Float32Array(buffer);
    const weights = {};
    for (const [name, [offset, ...shape]] of Object.entries(model.tensors)) {
      const size = shape.reduce((a, b) => a * b, 1);
      weights[name] = { data: numbers.subarray(offset, offset + size), shape };
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

    /** A copy that has read a question, without its padding, and its scores of the next token. */
    asked({ tokens }) {
      const copy = this.fork();
      const states = [...tokens, ...this.model.tail].map((id) => copy.read(copy.embed(id)));
      return { reader: copy, logits: copy.logits(states.pop()) };
    }

    /** The embedding of an id: a token's, or the sum of two tokens' where it stands for a pair. */
    embed(id) {
      const { d, vocab } = this.model;
      const table = this.get("wte.weight").data;
      const row = (token) => Float64Array.from(table.subarray(token * d, (token + 1) * d));
      return id < vocab ? row(id) : plus(row(id % vocab), row(Math.floor(id / vocab) - 1));
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

    /** Read one embedding; returns the last state after it. */
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
      return layerNorm(x, this.get("ln_f.weight"), this.get("ln_f.bias"));
    }

    /** Scores of all tokens. */
    logits(state) {
      const { d, vocab } = this.model;
      const table = this.get("wte.weight").data;
      return Array.from({ length: vocab }, (_, token) => {
        let score = 0;
        for (let i = 0; i < d; i++) score += state[i] * table[token * d + i];
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

  return { Reader, softmax };
})());
