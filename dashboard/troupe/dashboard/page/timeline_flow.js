// For whom a slice waited.
import {HELP, MERGE} from '/slices.js';

const MOST_LINKS = 24;

// Slices as rows [begin, ms, handle, worker, step, kind]. The answer begins with
// `row`; each next one is the input of the one before that ended last in its step.
export function flow_to(store, row) {
  const chain = [row];
  const ended = runs_of_step(store.slices, row[4]);
  while (chain.length < MOST_LINKS) {
    const last = chain.at(-1);
    let best = null;
    for (const op of input_ops(store.graph, last[2])) {
      const run = ended.get(op);
      if (run && (!best || run[0] + run[1] > best[0] + best[1])) best = run;
    }
    if (!best || chain.includes(best) || best[0] > last[0] + last[1]) break;
    chain.push(best);
  }
  return chain;
}

function runs_of_step(slices, step) {
  const runs = new Map();
  for (let i = 0; i < slices.count; i++) {
    if (slices.step[i] !== step || slices.kind[i] === HELP || slices.kind[i] === MERGE) continue;
    runs.set(slices.handle[i], slices.row(i));
  }
  return runs;
}

// Ops that send to `op` in its own step, through variables or directly.
function input_ops(graph, op) {
  const ops = new Set();
  const look = handle => {
    for (const edge of graph.in_edges(handle)) {
      if (graph.distance[edge] > 0) continue;
      const sender = graph.from[edge];
      if (graph.is_op[sender]) ops.add(sender);
      else look(sender);
    }
  };
  look(op);
  return ops;
}
