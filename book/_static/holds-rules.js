// The rules that give verdicts, as `cot2lib.study.judge` and the kinds of claims apply them. A test compares both.
"use strict";

(function () {
  const LEVEL = 0.95, LOOSE = 3, FEWEST = 3, GAIN = 0.2, MOST_SEEDS = 1000;
  const [REPRODUCED, NEAR, PARTLY, NOT, OPEN] = ["reproduced", "near", "partly", "not reproduced", "open"];
  const TOO_FEW = `${OPEN}: fewer than ${FEWEST} seeds`, UNRUN = "not run: no seed is left";

  // Numbers

  const sum = (x) => x.reduce((a, b) => a + b, 0);
  const mean = (x) => sum(x) / x.length;
  const spread = (x) => Math.sqrt(sum(x.map((one) => (one - mean(x)) ** 2)) / (x.length - 1));
  const span = (x) => Math.max(...x) - Math.min(...x);

  // Half goes to the even digit, as in Python, and no zero is negative.
  function fixed(value, digits) {
    if (Number.isNaN(value)) return "nan";
    const text = value.toFixed(digits), exact = value.toFixed(digits + 40);
    const tie = /^50*$/.test(exact.slice(exact.indexOf(".") + 1 + digits));
    const down = exact.slice(0, exact.indexOf(".") + (digits ? digits + 1 : 0));
    return (tie && "02468".includes(down.at(-1)) ? down : text).replace(/^-(?=[0.]+$)/, "");
  }

  // Probability that Student's t lies within -t..t, by its finite series for whole degrees of freedom.
  function within(t, degrees) {
    const angle = Math.atan(t / Math.sqrt(degrees)), [sine, cosine] = [Math.sin(angle), Math.cos(angle)];
    const odd = degrees % 2;
    let [term, total] = odd ? [cosine, 0] : [1, 0];
    for (let k = odd; k <= degrees - 2; k += 2) {
      total += term;
      term *= (cosine * cosine * (k + 1)) / (k + 2);
    }
    return odd ? ((angle + sine * total) * 2) / Math.PI : sine * total;
  }

  const quantiles = {};
  function quantile(count) {
    if (count < 2) return NaN;
    let [low, high] = [1, 13];
    while (!(count in quantiles)) {
      const middle = (low + high) / 2;
      if (middle === low || middle === high) quantiles[count] = middle;
      else if (within(middle, count - 1) < LEVEL) low = middle;
      else high = middle;
    }
    return quantiles[count];
  }

  function interval(values, runs = Infinity, low = -Infinity, high = Infinity) {
    const middle = mean(values), half = predictedHalf(values.length > 1 ? spread(values) : NaN, values.length, runs);
    const ends = { low: Math.max(low, middle - half), high: Math.min(high, middle + half) };
    return { mean: middle, ...ends, half: (ends.high - ends.low) / 2 };
  }
  const predictedHalf = (deviation, count, runs) => quantile(count) * deviation * Math.sqrt(1 / count + 1 / runs);

  function seedsFor(values, half, runs = Infinity) {
    for (let count = 2; count <= MOST_SEEDS; count++) {
      if (predictedHalf(spread(values), count, runs) < half) return count;
    }
    return null;
  }

  function chanceOf(values) {
    const error = spread(values) / Math.sqrt(values.length);
    return error === 0 ? Number(mean(values) === 0) : 1 - within(Math.abs(mean(values)) / error, values.length - 1);
  }

  function holm(cells) {
    const chances = cells.map(chanceOf), sure = cells.map(() => false);
    const order = cells.map((_, place) => place).sort((a, b) => chances[a] - chances[b] || a - b);
    for (const [tried, place] of order.entries()) {
      if (!(chances[place] <= (1 - LEVEL) / (order.length - tried))) break;
      sure[place] = true;
    }
    return sure;
  }

  // Probability of at least so many right answers by guessing.
  function byLuck(right, asked, chance) {
    let [log, total] = [asked * Math.log1p(-chance), 0];
    for (let k = 0; k <= asked; k++) {
      if (k >= Math.round(right)) total += Math.exp(log);
      log += Math.log((asked - k) / (k + 1)) + Math.log(chance / (1 - chance));
    }
    return total;
  }

  // Words

  const text = (unit, amount) => `${fixed(amount, unit.digits)} ${unit.name}`;
  const loose = (unit) => LOOSE * unit.tight;
  const limit = (unit, stated) => Math.min(unit.tight, unit.share === null ? Infinity : unit.share * Math.abs(stated));
  const close = (unit, miss, stated = Infinity) => Math.abs(miss) < limit(unit, stated);
  const noted = (verdict, note) => (note ? `${verdict}${verdict.includes(":") ? ", " : ": "}${note}` : verdict);
  const plain = (verdict) => verdict.split(": ")[0].split(":")[0];
  const ends = (x, digits) => [...new Set([Math.min(...x), Math.max(...x)].map((end) => fixed(end, digits)))].join(" to ");

  function inWords(counts) {
    const count = counts.every(Boolean) ? `about ${Math.max(...counts)} seeds` : "not even a thousand seeds";
    return `${count} that spread as these would decide`;
  }

  function outcomes(values, stated, unit) {
    const ordered = [...values].sort((a, b) => a - b), gaps = ordered.slice(1).map((one, i) => one - ordered[i]);
    const cut = gaps.indexOf(Math.max(...gaps)) + 1, [low, high] = [ordered.slice(0, cut), ordered.slice(cut)];
    if (high[0] - low.at(-1) < Math.max(loose(unit), span(low), span(high))) return "";
    const fits = (x) => x[0] - unit.tight <= stated && stated <= x.at(-1) + unit.tight;
    const of = fits(low) ? "of the lower" : fits(high) ? "of the higher" : "of neither";
    const told = [high, low].map((x) => `${x.length} at ${ends(x, unit.digits)}`);
    return `of ${values.length} runs ${told[0]} and ${told[1]}, the paper's number is ${of}`;
  }

  function closing(values, stated, runs, unit) {
    const found = interval(values, runs), miss = found.mean - stated, near = found.half < loose(unit);
    const width = close(unit, miss, stated) ? (near ? unit.tight : loose(unit)) : Math.abs(miss);
    const count = seedsFor(values, width, runs);
    const one = runs > 1 ? `${runs} runs spread` : "one run spreads";
    const none = `no count of runs decides, for the paper's ${one} as much`;
    const says = count ? `about ${count} runs that spread as these would decide` : none;
    return [outcomes(values, stated, unit), says].filter(Boolean).join("; ");
  }

  // Rules: of the parameters of a claim, and the values of each of its lines by seed

  function numberVerdict(values, stated, runs, unit) {
    if (values.length < FEWEST) return `${OPEN}: ${values.length} of at least ${FEWEST} seeds`;
    const found = interval(values, runs), miss = found.mean - stated;
    if (close(unit, miss, stated)) {
      if (found.half < loose(unit)) return found.half < unit.tight ? REPRODUCED : NEAR;
    } else if (!(found.low <= stated && stated <= found.high)) {
      return `${NOT}: ours is ${text(unit, Math.abs(miss))} ${miss > 0 ? "higher" : "lower"}`;
    }
    return `${OPEN}: ${closing(values, stated, runs, unit)}`;
  }

  function unlearnt({ chance }, seeds) {
    if (!chance || seeds.length < FEWEST) return "";
    const least = (1 - LEVEL) / seeds.length;
    if (seeds.some((seed) => byLuck(chance.right[seed], chance.asked[seed], chance.share) < least)) return "";
    return chance.too ? `${REPRODUCED}: neither leaves chance` : "did not learn: ours stays at chance";
  }

  function number(rule, [line]) {
    if (rule.undecided) return `${OPEN}: ${rule.undecided}`;
    const verdict = unlearnt(rule, line.seeds) || numberVerdict(line.kept, line.stated, rule.runs, rule.unit);
    return noted(verdict, rule.given && `if ${rule.given}`);
  }

  function directionVerdict(cells, unit) {
    if (Math.min(...cells.map((x) => x.length)) < FEWEST) return TOO_FEW;
    const gaps = cells.map((x) => interval(x)), surely = holm(cells);
    if (gaps.every((gap) => gap.low > 0)) return REPRODUCED;
    if (gaps.some((gap, place) => surely[place] && gap.mean > 0)) return PARTLY;
    const wide = cells.filter((_, i) => gaps[i].low <= 0 && 0 <= gaps[i].high && gaps[i].half >= unit.tight);
    const counts = wide.map((x) => seedsFor(x, Math.max(Math.abs(mean(x)), unit.tight)));
    return wide.length ? `${OPEN}: ${inWords(counts)}` : NOT;
  }

  function direction(rule, lines) {
    const turned = lines.filter((line) => interval(line.kept).high < 0).map((line) => line.label);
    const notes = [["the other way round: ", turned.join("; ")], ["if ", rule.given], ["but ", rule.but]];
    const note = notes.filter(([, said]) => said).map((both) => both.join("")).join(", ");
    return noted(directionVerdict(lines.map((line) => line.kept), rule.unit), note);
  }

  function noGain(rule, lines) {
    const cells = lines.map((line) => line.kept), none = GAIN * rule.unit.tight;
    if (Math.min(...cells.map((x) => x.length)) < FEWEST) return TOO_FEW;
    if (cells.some((x) => interval(x).low > 0)) return NOT;
    const unsure = cells.filter((x) => interval(x).high >= none);
    const counts = unsure.map((x) => seedsFor(x, Math.max(mean(x), none - mean(x))));
    return unsure.length ? `${OPEN}: ${inWords(counts)}` : REPRODUCED;
  }

  function outside({ low, high }) {
    return Math.max(low, -high, 0);
  }

  function valueVerdict(cells, unit) {
    if (Math.min(...cells.map((x) => x.length)) < FEWEST) return TOO_FEW;
    const gaps = cells.map((x) => interval(x)), widest = Math.max(...gaps.map((gap) => gap.half));
    if (gaps.some((gap) => outside(gap) && !close(unit, gap.mean))) return NOT;
    if (widest < loose(unit) && gaps.every((gap) => close(unit, gap.mean))) {
      return widest < unit.tight ? REPRODUCED : NEAR;
    }
    const width = (gap) => (close(unit, gap.mean) ? loose(unit) : Math.abs(gap.mean));
    return `${OPEN}: ${inWords(cells.map((x, place) => seedsFor(x, width(gaps[place]))))}`;
  }

  function value(rule, lines) {
    const missed = (x) => text(rule.unit, outside(interval(x)));
    const told = lines.map((line) => {
      const other = missed(line.seeds.map((seed) => rule.others[line.label][seed]));
      return `at ${line.label} our interval misses it by ${missed(line.kept)}, ${rule.other} by ${other}`;
    });
    const notes = [...(rule.but ? [`but ${rule.but}`] : []), ...told];
    return noted(valueVerdict(lines.map((line) => line.kept), rule.unit), notes.join("; "));
  }

  function reaches(rule, lines) {
    const enough = lines.filter((line) => line.kept.length >= FEWEST);
    if (!enough.length) return TOO_FEW;
    return enough.some((line) => Math.min(...line.kept) >= line.stated) ? REPRODUCED : NOT;
  }

  function parts(rule, lines) {
    let done = 0;
    const verdicts = rule.parts.map((part) => {
      const mine = lines.slice(done, (done += part.lines));
      const unnamed = mine.map((line) => ({ ...line, label: line.label.slice(part.name.length + 2) }));
      return [part.name, plain(direction(part, unnamed))];
    });
    const kinds = new Set(verdicts.map(([, verdict]) => verdict));
    if (kinds.size === 1) return [...kinds][0];
    const some = kinds.has(REPRODUCED) || kinds.has(PARTLY) ? PARTLY : OPEN;
    return `${some}: ${verdicts.map((both) => both.join(" ")).join(", ")}`;
  }

  const RULES = { number, direction, "no gain": noGain, value, reaches, parts, fixed: (rule) => rule.verdict };

  // The verdict on a claim from those of its runs whose seeds are kept.
  function verdict(claim, seeds) {
    const chosen = new Set(seeds.map(String));
    const lines = claim.lines.map((line) => {
      const own = line.values.filter(([seed]) => chosen.has(String(seed)));
      return { ...line, seeds: own.map(([seed]) => seed), kept: own.map(([, one]) => one) };
    });
    const some = claim.rule.name === "reaches" ? lines.filter((line) => line.kept.length) : lines;
    if (!some.length || some.some((line) => !line.kept.length)) return UNRUN;
    return RULES[claim.rule.name](claim.rule, some);
  }

  window.COT2 = Object.assign(window.COT2 || {}, { verdict, interval, fixed });
})();
