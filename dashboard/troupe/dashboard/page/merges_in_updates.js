// Updates that add up the gradients of several devices themselves, without a collective.
import {DONE} from '/graph.js';

// A list of {op, gradient, parts}: the variables of the devices, by handle.
export function merges_in_updates(graph) {
  const found = [];
  graph.handles.forEach((handle, op) => {
    if (!handle.op || handle.collective) return;
    const parts = new Map();  // by gradient
    for (const edge of graph.in_edges(op)) {
      const from = graph.from[edge];
      const {op: is_op, type} = graph.handles[from];
      if (is_op || graph.distance[edge] > 0 || !type.includes('@GRAD')) continue;
      if (!parts.has(type)) parts.set(type, []);
      parts.get(type).push(from);
    }
    for (const [gradient, own] of parts) {
      const devices = new Set(own.map(one => graph.handles[one].device));
      if (devices.size > 1) found.push({op, gradient, parts: own});
    }
  });
  return found;
}

// The devices whose gradients are there, and those whose are not, in the step of each.
export function arrivals_of({parts}, {graph, state}) {
  const names = is_there => parts.filter(one => (state[one] === DONE) === is_there)
    .map(one => graph.devices[graph.handles[one].device]);
  return {here: names(true), missing: names(false)};
}
