// The thought rules of the paper, and a model that thinks and answers by one of them.
"use strict";

Object.assign(window.COT2, (function () {
  const { softmax } = window.COT2;
  const FLOOR = 1e-3; // share of a Dirichlet thought's concentration below which a token has no entry of its own
  const MOST = 16; // entries of a Dirichlet thought

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

  /**
   * Think and answer: a list of {logits, alpha, weights}, one for each step, the answer last.
   *
   * @param asked what `Reader.asked` returns for a question
   * @param thoughts how many thoughts there are before the answer
   * @param rule one of the rules' names
   * @param options a seed, K (`k`) or gamma of at least 1, `removed`: tokens that each thought must do without, and
   *   `given`: weights that are fed at a step as they are
   */
  function respond(asked, thoughts, rule, options = {}) {
    const { seed = 0, removed = [], given = [] } = options;
    const now = asked.reader.fork();
    const draw = uniforms(seed);
    const steps = [];
    let { logits } = asked;
    for (let step = 0; step < thoughts; step++) {
      const alpha = softmax(logits);
      const weights = given[step] ?? rules[rule](without(alpha, removed[step] ?? []), draw, options);
      steps.push({ logits, alpha, weights });
      logits = now.logits(now.read(now.mix(weights)));
    }
    const alpha = softmax(logits);
    return [...steps, { logits, alpha, weights: rules.greedy(alpha) }];
  }

  /** A distribution with some tokens taken out and the rest scaled to one. */
  function without(alpha, tokens) {
    if (!tokens.length) return alpha;
    const left = alpha.map((share, token) => (tokens.includes(token) ? 0 : share));
    const total = left.reduce((a, b) => a + b, 0);
    return left.map((share) => share / total);
  }

  return { respond };
})());
