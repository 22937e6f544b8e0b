#!/usr/bin/env python3
# Opens the dashboard's page in Chromium against a server with a synthetic run:
# every view renders, shows the numbers that were sent, obeys the keyboard and
# survives a restart of the job; nothing leaves the origin. Prints the frame rate
# with 20,000 handles.
#
# usage: page_test.py [-v] [NAME ...]   skipped (77) without selenium or Chromium
import sys
import time
import unittest

sys.dont_write_bytecode = True  # the source tree stays as it is
from page_case import PageCase  # first: it skips the test if there is no browser
from fixture_server import PAGE, FixtureServer, large_run
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from synthetic_run import DONE, SyntheticRun

VIEWS = ["graph", "timeline", "why", "progress", "collectives", "actors"]
MOST_BYTES = 144 * 1024

# How many colours a canvas has; 1 is blank.
COLORS = """
const canvas = document.querySelector(arguments[0]);
const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
return new Set(new Uint32Array(data.buffer)).size;
"""

# How many pixels of the graph are yellow, as edges with new messages are.
YELLOW = """
const canvas = document.querySelector('#view_graph canvas.touch');
const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
let yellow = 0;
for (let i = 0; i < data.length; i += 4) {
  const [red, green, blue, alpha] = data.subarray(i, i + 4);
  yellow += alpha > 50 && red > 150 && Math.abs(red - green) < 30 && blue < red / 2;
}
return yellow;
"""

# A `recv` in flight, and what came for it from another rank: names of the ops of the
# chain that the page draws, and the row of the parcel.
PARCEL = """
const done = arguments[0];
const modules = ['slices', 'timeline_flow', 'timeline_rows'].map(name => import(`/${name}.js`));
Promise.all(modules).then(([{slices, PENDING, PARCEL, NO_WORKER}, {flow_to}, {timeline_rows}]) => {
  const handles = [{type: 'send', device: 1}, {type: 'recv', device: 0}];
  const graph = {handles, devices: ['cpu:0', 'cpu:1'], is_op: [1, 1], from: [0], distance: [0],
                 in_edges: handle => (handle === 1 ? [0] : [])};
  const store = {graph, slices: new slices(), run: {workers: 1, ranks: [{rank: 0, workers: 1}]}};
  store.slices.add(18, 0, 0, NO_WORKER, 7, PARCEL);
  store.slices.add(12, 7, 1, NO_WORKER, 7, PENDING);
  const rows = new timeline_rows(store);
  rows.update();
  const chain = flow_to(store, store.slices.row(1)).map(slice => handles[slice[2]].type);
  done([chain, rows.rows[rows.of(0, NO_WORKER, PARCEL)].text]);
});
"""

# Three slices in flight, of which two overlap: their lanes, and the rows.
LANES = """
const done = arguments[0];
const modules = ['slices', 'timeline_rows'].map(name => import(`/${name}.js`));
Promise.all(modules).then(([{slices, PENDING, NO_WORKER}, {timeline_rows}]) => {
  const graph = {handles: [{type: 'send', device: 0, op: true}], devices: ['cpu:0']};
  const store = {graph, slices: new slices(), run: {workers: 1, ranks: [{rank: 0, workers: 1}]}};
  const rows = new timeline_rows(store);
  for (const [begin, length] of [[0, 5], [3, 6], [10, 2]]) {
    store.slices.add(begin, length, 0, NO_WORKER, 1, PENDING);
    rows.update();
  }
  done([[...store.slices.lane.slice(0, 3)], rows.rows.map(({text, lanes}) => [text, lanes])]);
});
"""

# A step whose time and loss come with a later frame, after the next step's.
LATER = """
const done = arguments[0];
import('/series.js').then(({series}) => {
  const all = new series();
  all.add(1, NaN, NaN, NaN, NaN);
  all.add(2, 0.5, 6, 1, 1);
  all.add(1, 0.5, 5, 1, 1);
  done([all.steps, all.ms]);
});
"""

# Texts of the rows of a timeline of the page's slices: by worker, and by stream. The
# page's own objects are not in reach: the server is asked for the same.
ROWS = """
const done = arguments[0];
const read = path => fetch(path).then(answer => answer.json());
Promise.all([import('/slices.js'), import('/timeline_rows.js'), read('/api/v1/graph'),
             read('/api/v1/timeline'), read('/api/v1/run')]).then(
  ([{slices}, {timeline_rows, worker_name}, graph, timeline, run]) => {
    const store = {graph, slices: new slices(), run};
    store.slices.replace(timeline.slices);
    const rows = new timeline_rows(store);
    done([false, true].map(by_stream => {
      rows.set_by_stream(by_stream);
      rows.update();
      return rows.rows.map(({text, worker}) => (
        by_stream && worker >= 0 ? `${text}, ${worker_name(run, worker)}` : text));
    }));
  });
"""

# Texts of the next picture of the timeline.
DRAWN = """
const done = arguments[0];
const own = CanvasRenderingContext2D.prototype;
const {clearRect, fillText} = own;
let drawn = null;
own.fillText = function (...all) {
  if (this.canvas.matches('#view_timeline canvas')) drawn?.push(all[0]);
  return fillText.apply(this, all);
};
own.clearRect = function (...all) {
  if (this.canvas.matches('#view_timeline canvas')) {
    if (drawn) {
      Object.assign(own, {clearRect, fillText});
      done(drawn);
    }
    drawn = [];
  }
  return clearRect.apply(this, all);
};
"""

PICTURE = "return document.querySelector(arguments[0]).toDataURL();"

FRAME_RATE = """
const [ms, done] = arguments;
const begin = performance.now();
let frames = 0;
let longest = 0;
let before = begin;
function count(now) {
  frames += 1;
  longest = Math.max(longest, now - before);
  before = now;
  const key = frames % 40 < 20 ? 'ArrowRight' : 'ArrowLeft';
  document.body.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
  if (now - begin < ms) requestAnimationFrame(count);
  else done([1000 * frames / (now - begin), longest]);
}
requestAnimationFrame(count);
"""

CONTRAST = """
const style = getComputedStyle(document.documentElement);
const luminance = name => {
  const text = style.getPropertyValue(name).trim();
  const part = at => {
    const value = parseInt(text.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
};
const [high, low] = [luminance(arguments[0]), luminance(arguments[1])].sort((a, b) => b - a);
return (high + 0.05) / (low + 0.05);
"""


class PageTest(PageCase):
    def test_every_view_renders(self):
        self.open()
        self.wait_live()
        for view in VIEWS:
            self.show(view)
            shown = self.script("""return [...document.querySelectorAll('main > *')]
                .filter(view => !view.hidden).map(view => view.id)""")
            self.assertEqual(shown, [f"view_{view}"])
            self.wait(lambda: len(self.text(f"#view_{view}") or "") > 20, view)
        for view, canvas in (("graph", "canvas.touch"), ("timeline", "canvas"),
                             ("progress", ".curve canvas")):
            self.show(view)
            self.wait(lambda: self.script(COLORS, f"#view_{view} {canvas}") > 5,
                      f"the canvas of {view} is not blank")

    def test_the_head_line_shows_what_was_sent(self):
        self.open()
        self.wait_live()
        self.pause()
        head = self.server.last_head
        series = self.server.run.series
        loss = next(x for s, x in zip(series["steps"][::-1], series["loss"][::-1])
                    if x == x or s in self.server.run.nan_steps)
        loss = "NaN" if loss != loss else f"{loss:.4f}"
        self.wait_equal(self.head, {
            "state": "\u2016 paused", "step": str(head["step"]), "loss": loss,
            "steps/s": "2.4", "messages/s": "2,481", "lost events": "0", "level": "messages",
            "overhead": "0.4 %"})

    def test_the_graph_shows_what_was_sent(self):
        self.open()
        self.wait_live()
        self.pause()
        run = self.server.run
        counts = [run.handle_state.count(state) for state in range(4)]
        self.wait_equal(
            lambda: self.script("""return [...document.querySelectorAll(
                '#view_graph .legend .number')].map(one => Number(one.textContent)).slice(0, 4)"""),
            counts)
        chosen = next(h for h, one in enumerate(run.graph.handles)
                      if one["op"] and run.handle_state[h] == DONE and run.graph.inputs[h])
        handle = run.graph.handles[chosen]
        self.press("/")
        self.find("input[type=search]").send_keys(handle["name"], Keys.ENTER)
        self.wait_equal(lambda: self.text(".details h2"), handle["name"])
        facts = self.text(".details dl")
        self.assertIn(f"device cpu:{handle['device']}", facts)
        self.assertIn(f"layer {handle['layer']}", facts)
        self.assertIn("done", facts)
        self.assertIn(f"messages {run.arrived[chosen]} of {handle['needs']} arrived", facts)
        self.assertIn(f"runs {run.runs[chosen]}", facts)
        senders = [run.graph.handles[run.graph.edges[e][0]]["name"]
                   for e in run.graph.inputs[chosen]]
        self.assertEqual(self.text(".details ul").split(" "), senders)
        # An input is a link to its own details.
        self.find(".details ul button").click()
        self.wait_equal(lambda: self.text(".details h2"), senders[0])

    def test_edges_glow_while_messages_go_over_them(self):
        self.open()
        self.wait_live()
        self.wait(lambda: self.script(YELLOW) > 100, "edges glow")
        self.pause()
        self.wait(lambda: self.script(YELLOW) == 0, "edges fade")

    def test_a_search_lists_and_marks_what_it_finds(self):
        self.open()
        self.wait_live()
        self.pause()
        time.sleep(2)  # until no edge is lit
        picture = lambda: self.script(PICTURE, "#view_graph canvas.touch")
        before = picture()
        self.find("input[type=search]").send_keys("adam cpu:1")
        names = [h["name"] for h in self.server.run.graph.handles
                 if "adam" in h["name"] and "cpu:1" in h["name"]]
        self.wait_equal(lambda: self.text(".search .number"), str(len(names)))
        self.assertEqual(self.text(".found").split(" "), names[:12])
        self.wait(lambda: picture() != before, "marks")
        self.find("input[type=search]").send_keys(Keys.ESCAPE)
        self.wait_equal(lambda: self.text(".search .number"), "")
        self.wait(lambda: picture() == before, "no marks")

    def test_a_click_on_a_box_chooses_it(self):
        self.open()
        self.wait_live()
        self.find("input[type=search]").send_keys("relu#2@cpu:0", Keys.ENTER)
        self.wait_equal(lambda: self.text(".details h2"), "relu#2@cpu:0")
        self.find("input[type=search]").send_keys(Keys.ESCAPE, Keys.ESCAPE)
        self.press(Keys.ESCAPE)
        self.wait(lambda: self.text(".details") is None, "closed")
        # It was in the middle of the canvas, which had the details beside it.
        canvas = self.find("#view_graph canvas.touch")
        middle = (canvas.size["width"] - 300) // 2 - canvas.size["width"] // 2
        ActionChains(self.driver).move_to_element_with_offset(canvas, middle, 0).click().perform()
        self.wait_equal(lambda: self.text(".details h2"), "relu#2@cpu:0")

    def test_why_shows_the_chain_that_the_server_sent(self):
        self.open()
        self.wait_live()
        self.pause()
        links = self.server.change(lambda run: run.why(None))["links"]
        self.press("3")
        read = lambda: self.script("""return [...document.querySelectorAll('.chain li')].map(
            li => [li.querySelector('.link').textContent, li.querySelector('p').textContent])""")
        self.wait_equal(read, [[link["name"], link["text"]] for link in links])
        self.find(".chain .link").click()
        self.wait_equal(lambda: self.text(".details h2"), links[0]["name"])
        # The button of the details asks for that handle.
        self.find(".details .wide").click()
        self.wait_equal(lambda: self.text("#view_why h2"), f"Why does {links[0]['name']} wait?")
        self.wait_equal(read, [[link["name"], link["text"]] for link in links])

    def test_progress_shows_steps_and_memory(self):
        self.open(warm_steps=48)
        self.wait_live()
        self.pause()
        self.show("progress")
        series = self.server.run.series
        nan = self.server.run.nan_steps
        self.assertTrue(nan)
        self.wait_equal(lambda: [row[:2] for row in self.rows("progress", "Last steps")],
                        [[str(s), "NaN" if s in nan else "\u2013" if x != x else f"{x:.4f}"]
                         for s, x in list(zip(series["steps"], series["loss"]))[:-13:-1]])
        self.assertEqual(self.text("#view_progress .note.bad"),
                         f"The loss was NaN in step{'s' if len(nan) > 1 else ''} "
                         f"{', '.join(map(str, nan))}.")
        self.server.change(lambda run: run.nan_steps.extend(range(1000, 1100)))
        self.wait_equal(lambda: self.text("#view_progress .note.bad"),
                        f"The loss was NaN in {len(nan)} steps: first in {nan[0]}, last in "
                        + ", ".join(f"{step:,}" for step in range(1093, 1100)) + ".")
        used = self.server.last_head["memory"][1]["bytes"] / 2**20
        self.wait_equal(lambda: self.rows("progress", "Memory")[1][:3],
                        ["cpu:1", f"{used:.1f} MiB", "58.2 MiB"])
        self.wait_equal(lambda: self.rows("progress", "What holds it")[0],
                        ["cpu:0", "conv_1.tmp_0", "16.0 MiB"])
        speed = self.script("return import('/format.js').then(m => m.short(arguments[0]))",
                            series["samples_per_s"][-1])
        self.wait_equal(lambda: self.text(".curve:nth-of-type(3) .value"), speed)
        self.assertEqual(self.rows("progress", "Last steps")[0][4], speed)
        # All curves show the values of the step under the pointer.
        canvas = self.find(".curve canvas")
        ActionChains(self.driver).move_to_element_with_offset(
            canvas, 60 - canvas.size["width"] // 2, 0).perform()
        self.wait(lambda: (self.text(".curve .value") or "").startswith("step 0: "), "hover")

    def test_collectives_show_who_is_missing(self):
        self.open()
        self.wait_live()
        # Until somebody waits for somebody.
        waits = lambda run: any(c["waiting_ns"] for c in run.collectives())
        self.server.change(lambda run: run.control("slow", 1000))
        self.wait(lambda: self.server.change(lambda run: (run.advance(3000), waits(run))[1]),
                  "a collective waits")
        self.pause()
        self.show("collectives")
        expected = sorted(self.server.change(lambda run: run.collectives()),
                          key=lambda one: -one["waiting_ns"])
        self.assertTrue(expected[0]["missing"])
        names = lambda one, what, sign: " ".join(
            f"{sign} {d} (rank {r})"
            for d, r in zip(one[what], one[what + "_ranks"])) or "\u2013"
        self.wait_equal(
            lambda: [row[:6] + row[8:] for row in self.rows("collectives", "Collectives")],
            [[one["name"], str(one["step"]), f"{len(one['arrived'])} of {len(one['devices'])}",
              names(one, "arrived", "\u2713"), names(one, "missing", "\u25cb"),
              "12.5 ms" if one["waiting_ns"] else "\u2013",
              f"{one['values'][0]} and {len(one['values']) - 1} more"] for one in expected])

    def test_updates_that_merge_gradients_say_what_they_wait_for(self):
        run = SyntheticRun(merges_in_updates=True)
        self.open(run)
        self.wait_live()
        self.pause()
        self.show("collectives")
        self.wait(lambda: self.rows("collectives", "Collectives"), "updates")
        self.assertIn("Each row is the update of a parameter", self.text("#view_collectives"))
        self.assertIn("strategy reduce", self.text("#view_collectives"))
        graph = run.graph
        parts = lambda op: [graph.edges[e][0] for e in graph.inputs[op]
                            if "@GRAD" in graph.handles[graph.edges[e][0]]["type"]]
        done = lambda op: [run.handle_state[part] == DONE for part in parts(op)]
        devices = lambda op, is_there, sign: " ".join(
            f"{sign} cpu:{d} (rank {d})" for d in range(2)
            if done(op)[d] == is_there) or "\u2013"
        merges = [op for op, h in enumerate(graph.handles) if h["type"] == "adam"]
        self.wait_equal(
            lambda: sorted(row[:1] + row[2:5] + row[8:]
                           for row in self.rows("collectives", "Collectives")),
            sorted([graph.handles[op]["name"], f"{sum(done(op))} of 2",
                    devices(op, True, "\u2713"), devices(op, False, "\u25cb"),
                    graph.handles[parts(op)[0]]["type"]] for op in merges))

    def test_a_run_of_one_device_has_nothing_to_merge(self):
        self.open(SyntheticRun(devices=1))
        self.wait_live()
        self.show("collectives")
        self.wait_equal(lambda: self.text("#view_collectives .empty"),
                        "One device: there is nothing to merge.")

    def test_a_rank_of_a_job_says_which_it_is(self):
        run = SyntheticRun()
        own = run.run_json
        rank = {"rank": 1, "host": "ada", "pid": 4711, "workers": 2}
        run.run_json = lambda: {**own(), "process": 1, "processes": 2, "ranks": [rank]}
        self.open(run)
        self.wait_live()
        self.assertIn("rank 1 of 2 (each rank prints links of its own)", self.text("#run_line"))

    def test_files_of_several_ranks_say_whose_they_are(self):
        run = SyntheticRun()
        own = run.run_json
        ranks = [{"rank": r, "host": "ada", "pid": 4711 + r, "workers": 1} for r in range(2)]
        run.run_json = lambda: {**own(), "processes": 2, "recorded": True, "ranks": ranks}
        self.open(run)
        self.wait(lambda: self.text("#connection") == "a file", "a file")
        self.wait(lambda: self.text("#run_line"), "what is shown")
        self.assertTrue(self.text("#run_line").endswith(
            "on ada, ranks 0, 1 of 2, pid 4711, 4712"), self.text("#run_line"))
        self.press("2")
        workers, _ = self.driver.execute_async_script(ROWS)
        self.assertEqual(workers[:2], ["rank 0 worker 0", "rank 1 worker 0"])

    def test_the_level_is_told_in_one_place(self):
        self.open()
        self.wait_live()
        self.show("actors")
        self.wait(lambda: len(self.rows("actors", "Run")) > 3, "facts of the run")
        self.assertNotIn("Level", [row[0] for row in self.rows("actors", "Run")])
        self.server.change(lambda run: setattr(run, "level", "steps"))
        self.wait_equal(lambda: self.head()["level"], "steps")

    def test_a_parcel_is_what_a_recv_waited_for(self):
        self.open()
        chain, row = self.driver.execute_async_script(PARCEL)
        self.assertEqual(chain, ["recv", "send"])
        self.assertEqual(row, "cpu:1 parcels")

    def test_rows_of_the_timeline_are_workers_or_streams(self):
        self.open()
        self.wait_live()
        self.pause()
        self.press("2")
        rows = lambda: self.driver.execute_async_script(ROWS)
        workers, streams = rows()
        self.assertEqual(workers, ["worker 0", "worker 1", "cpu:0 merges"])
        compute = [f"cpu:{d} compute, worker {w}" for d in range(2) for w in range(2)]
        self.assertLess(set(compute), set(streams))
        self.assertIn("cpu:0 merges", streams)
        self.assertTrue(any(row.startswith("cpu:0 collective, worker") for row in streams))
        self.assertEqual(streams, sorted(streams, key=lambda row: (
            row[:5], row.endswith("merges"), row)))
        picture = lambda: self.script(PICTURE, "#view_timeline canvas")
        self.press("f")
        time.sleep(0.3)
        before = picture()
        self.press("s")
        self.wait(lambda: picture() != before, "other rows")
        pressed = "#view_timeline [aria-keyshortcuts=s][aria-pressed=true]"
        self.assertEqual(self.text(pressed), "By stream")
        self.find(pressed).click()
        self.wait(lambda: picture() == before, "the rows of workers")

    def drawn(self):
        return self.driver.execute_async_script(DRAWN)

    def seconds(self):
        """Those of the axis of the timeline."""
        return [float(text[:-2]) for text in self.drawn() if text.endswith("\u2009s")]

    def test_a_short_file_opens_with_all_of_its_timeline(self):
        run = SyntheticRun()
        own = run.run_json
        run.run_json = lambda: {**own(), "recorded": True}
        for _ in range(2):
            run.advance(400)
        run.frame()
        run.state = "ended"
        self.open(run, warm_steps=0)
        self.wait(lambda: self.text("#connection") == "a file", "a file")
        self.press("2")
        self.wait(lambda: max(self.seconds(), default=9) <= 0.8, "no more than the file has")
        self.assertGreaterEqual(min(self.seconds()), 0)
        self.assertGreaterEqual(max(self.seconds()), 0.6)

    def test_the_timeline_of_a_job_begins_with_it(self):
        self.open(warm_steps=1)
        self.wait_live()
        self.press("2")
        self.assertEqual([s for s in self.seconds() if s < 0], [])

    def test_names_of_rows_are_whole_also_on_a_phone(self):
        run = SyntheticRun()
        own = run.run_json
        ranks = [{"rank": r, "host": "ada", "pid": 4711 + r, "workers": 1} for r in range(2)]
        run.run_json = lambda: {**own(), "processes": 2, "ranks": ranks}
        self.open(run)
        self.wait_live()
        self.press("2")
        for width in (1280, 360):
            self.look(width, 740)
            for key, names in (("", {"rank 0 worker 0", "rank 1 worker 0", "cpu:0 merges"}),
                               ("s", {"cpu:0 compute", "cpu:0 collective", "cpu:0 merges"})):
                self.press(*key)
                self.wait(lambda: names <= set(self.drawn()), f"{names} at {width}")
            self.press("s")

    def test_a_long_name_of_a_row_is_told_under_the_pointer(self):
        run = SyntheticRun()
        long = "a_device_with_a_name_that_is_rather_long:0"
        run.graph.devices[0] = long
        self.look(360, 740)
        self.open(run)
        self.wait_live()
        self.pause()
        self.press("2", "s")
        self.wait(lambda: any(text.startswith("a_device") and text.endswith("\u2026")
                              for text in self.drawn()), "a name that is cut")
        canvas = self.find("#view_timeline canvas")
        at = (20 - canvas.size["width"] // 2, 40 - canvas.size["height"] // 2)
        tip = lambda: self.text("#view_timeline .tooltip") or ""
        ActionChains(self.driver).move_to_element_with_offset(canvas, *at).perform()
        self.wait(lambda: tip().startswith(long), "the whole name")
        self.assertRegex(tip(), " worker [01]$")

    def test_families_of_ops_have_the_same_colours_in_all_runs(self):
        self.open()
        self.wait_live()
        self.press("2")
        types = {"conv2d_grad": "convolutions", "gathered_mul_grad": "products",
                 "matmul_v2": "products", "batch_norm": "norms",
                 "fused_batch_norm_act_grad": "norms", "p_norm": "other",
                 "relu_grad": "element-wise", "elementwise_add": "element-wise",
                 "gathered_momentum": "updates", "adamw": "updates", "all_reduce": "collectives",
                 "reduce_mean": "other", "recv": "collectives", "own_op": "other"}
        families, colors = self.script("""
            return import('/colors.js').then(({FAMILIES, family_of, op_color}) => [
              arguments[0].map(type => FAMILIES[family_of({type})][0]),
              FAMILIES.map(([, color]) => color)]);""", list(types))
        self.assertEqual(dict(zip(types, families)), types)
        self.assertEqual(len(set(colors)), len(colors))
        # The legend has those of this run.
        self.assertEqual(
            self.script("""return [...document.querySelectorAll('#view_timeline .legend li')]
                .map(one => one.textContent)"""),
            ["convolutions", "products", "element-wise", "updates", "collectives", "other",
             "gradient: darker"])

    def test_actors_show_what_was_sent(self):
        self.open()
        self.wait_live()
        self.pause()
        self.show("actors")
        sent = self.server.change(lambda run: run.actors())
        self.wait_equal(
            lambda: dict(self.rows("actors", "Actors and messages")),
            {"Actors of the graph": str(sent["actors"]), "Op actors": str(sent["op_actors"]),
             "Variable actors": str(sent["variable_actors"]),
             "Stream actors": str(sent["stream_actors"]), "Application actors": "3",
             "Messages": f"{sent['messages']:,}",
             "Messages per step": str(sent["messages_per_step"]), "Steps": str(sent["steps"])})

    def test_actors_of_the_application_have_mailboxes_and_reasons(self):
        self.open()
        self.wait_live()
        self.show("actors")
        table = lambda: self.rows("actors", "Actors of the application")
        self.wait_equal(lambda: [row[0] for row in table()],
                        ["feeder#40", "reporter#41", "main#42"])
        failed, running, sender = table()
        self.assertIn("failed", failed[1])
        self.assertEqual(failed[7], "runtime_error: no more data")
        self.assertEqual(running[2:5], ["3", "9", "8"])
        self.assertEqual(running[6], "('feed', i32)")
        self.assertIn("sends only", sender[1])
        self.assertEqual(sender[2], "\u2013")
        self.assertEqual(self.rows("actors", "Queues of streams")[0][1:], ["compute", "2", "1"])

    def test_a_slice_shows_what_it_waited_for(self):
        self.open()
        self.wait_live()
        self.pause()
        self.press("2", "f")
        canvas = self.find("#view_timeline canvas")
        seen = set()
        for x in range(200, 1200, 40):
            ActionChains(self.driver).move_to_element_with_offset(
                canvas, x - canvas.size["width"] // 2, 40 - canvas.size["height"] // 2,
            ).click().perform()
            seen.add(self.text(".slice_facts"))
        run = self.server.run
        ops = {run.graph.handles[s[2]]["name"] for s in run.slices}
        chosen = [text for text in seen if text.split(" ")[0] in ops]
        self.assertTrue(chosen, seen)
        self.assertTrue(any("It waited for" in text for text in chosen), chosen)
        for text in chosen:
            self.assertRegex(text, r"^\S+ ran in step \d+ on worker 0 for [\d.]+ (ms|\u00b5s)\. ")

    def test_keys_do_what_the_help_says(self):
        self.open()
        self.wait_live()
        for number, view in enumerate(VIEWS, 1):
            self.press(str(number))
            self.assertTrue(self.find(f"#view_{view}").is_displayed(), view)
        self.press(" ")
        self.wait(lambda: self.server.run.state == "paused", "paused by the space bar")
        self.wait(lambda: self.text("#controls button") == "Resume", "paused in the page")
        ended = self.server.run.steps_ended
        self.press("n")
        self.wait(lambda: self.server.run.steps_ended == ended + 1
                  and self.server.run.state == "paused", "one step")
        self.wait(lambda: self.text("#controls button") == "Resume", "paused again")
        self.press(" ")
        self.wait(lambda: self.server.run.state == "running", "resumed")
        self.press("2")
        pressed = lambda: self.find("#view_timeline [aria-pressed]").get_attribute("aria-pressed")
        self.assertEqual(pressed(), "true")
        self.press("f")
        self.assertEqual(pressed(), "false")
        self.press("/")
        self.assertEqual(self.script("return document.activeElement.type"), "search")
        self.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
        self.press("?")
        self.assertTrue(self.find("#help").is_displayed())
        self.find("#help").send_keys(Keys.ESCAPE)
        self.wait(lambda: not self.find("#help").is_displayed(), "help closed")

    def test_keys_move_the_graph(self):
        self.look(1280, 860, motion="reduce")
        self.open()
        self.wait_live()
        self.pause()
        picture = lambda: self.script(PICTURE, "#view_graph canvas.touch")
        self.press("0")
        time.sleep(0.5)
        fitted = picture()
        for key in ("+", "-", Keys.ARROW_LEFT, Keys.ARROW_UP):
            before = picture()
            self.press(key)
            self.wait(lambda: picture() != before, f"the key {key!r} changes the picture")
        self.press("0")
        self.wait(lambda: picture() == fitted, "the graph fits again")

    def test_slow_motion_is_sent(self):
        self.open()
        self.wait_live()
        self.find("#controls input").send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
        self.wait(lambda: self.server.run.op_delay_ms == 50, "slow motion")
        self.assertEqual(self.text("#controls output"), "50 ms per op")

    def test_a_dump_is_asked_for_and_its_file_shown(self):
        self.open()
        self.wait_live()
        self.driver.find_element(By.XPATH, "//div[@id='controls']/button[.='Dump']").click()
        self.wait_equal(lambda: self.text("#controls .muted"), "/runs/troupe-7-1.trt")

    def test_who_may_only_look_sees_no_controls(self):
        self.open(SyntheticRun(may_control=False))
        self.wait_live()
        self.assertIsNone(self.text("#controls"))
        self.press(" ", "n")
        time.sleep(0.5)
        self.assertNotIn("/api/v1/control", self.server.paths)

    def test_the_page_connects_to_the_next_job(self):
        self.expected_log += ("ERR_CONNECTION", "WebSocket")
        self.open()
        self.wait_live()
        port = self.server.port
        self.server.stop()
        self.wait(lambda: self.text("#connection") == "connection lost, trying again", "lost")
        self.server = FixtureServer(SyntheticRun(run="5eed0002", devices=3, blocks=4), port).start()
        self.wait_live()
        self.pause()
        self.wait_equal(
            lambda: sum(self.script("""return [...document.querySelectorAll(
                '#view_graph .legend .number')].map(one => Number(one.textContent))""")),
            len(self.server.run.graph.handles))
        self.press("6")
        self.wait_equal(lambda: self.rows("actors", "Run")[0], ["Run", "5eed0002"])

    def test_a_frame_of_another_run_makes_the_page_read_all_again(self):
        self.open()
        self.wait_live()
        self.show("progress")
        self.wait(lambda: self.rows("progress", "Last steps"), "steps of the first run")
        # As behind a proxy, which keeps the connection.
        self.server.run = SyntheticRun(run="5eed0003")
        self.wait(lambda: self.head()["step"] in ("0", "1", "2"), "steps of the second run")
        self.press("6")
        self.wait_equal(lambda: self.rows("actors", "Run")[0], ["Run", "5eed0003"])

    def test_the_page_shows_a_graph_that_is_built_later(self):
        self.open(has_graph=False, empty=True)
        self.wait(lambda: self.text("#view_graph .empty") == "The graph has not been built yet.",
                  "no graph")
        self.server.empty = False
        time.sleep(1)
        self.server.has_graph = True
        self.wait(lambda: self.script(COLORS, "#view_graph canvas.touch") > 5, "a graph")
        self.assertIsNone(self.text("#view_graph .empty"))

    def test_a_level_that_records_less_shows_what_there_is(self):
        run = SyntheticRun()
        run.level = "steps"
        self.open(run)
        self.wait_live()
        for view in VIEWS:
            self.show(view)
            time.sleep(0.2)
        self.assertEqual(self.head()["level"], "steps")
        self.show("timeline")
        self.wait(lambda: "Nothing has run yet." in self.text("#view_timeline"), "no slices")
        self.show("progress")
        self.wait(lambda: len(self.rows("progress", "Last steps")) == 12, "steps")

    def test_a_file_that_lacks_ops_or_its_end_says_so(self):
        run = SyntheticRun()
        run.level, run.has_values = "steps", False
        own = run.run_json
        run.run_json = lambda: {**own(), "recorded": True, "cut": True}
        run.why = lambda _: {"links": [], "missing": "", "missing_ranks": [], "text": ""}
        run.collectives = lambda: []
        self.open(run)
        self.wait(lambda: self.text("#connection") == "a file", "a file")
        self.assertIn("the file is cut", self.text("#run_line"))
        for view in ("graph", "timeline", "why", "progress", "collectives"):
            self.show(view)
            self.wait(lambda: "record with --trace-level ops" in self.text(f"#view_{view}"), view)
        self.show("progress")
        self.wait_equal(
            lambda: [self.text(f".curve:nth-of-type({n}) .empty") for n in (1, 2, 3, 4)],
            3 * ["A file of a run does not have this."] + [None])

    def test_a_run_that_is_pausing_can_be_resumed(self):
        self.open()
        self.wait_live()
        self.server.change(lambda run: setattr(run, "state", "pausing"))
        self.wait(lambda: self.head()["state"].endswith("pausing"), "pausing")
        self.assertEqual(self.text("#controls button"), "Resume")

    def test_slices_of_a_row_that_overlap_have_lanes(self):
        self.open()
        lanes, rows = self.driver.execute_async_script(LANES)
        self.assertEqual(lanes, [0, 1, 0])
        self.assertEqual(rows, [["worker 0", 1], ["cpu:0 in flight", 2]])

    def test_what_is_known_of_a_step_later_is_shown(self):
        self.open()
        self.assertEqual(self.driver.execute_async_script(LATER), [[1, 2], [5, 6]])

    def test_a_failure_is_said(self):
        self.open()
        self.wait_live()

        def fail(run):
            run.state, run.failure = "failed", "conv2d#4@cpu:0: out of memory"

        self.server.change(fail)
        self.wait_equal(lambda: self.text("#banner"),
                        "The run failed: conv2d#4@cpu:0: out of memory")
        self.assertFalse(self.find("#controls button").is_enabled())

    def test_a_warning_is_said_for_a_minute(self):
        self.open()
        self.wait_live()

        def warn(run):
            run.warning, run.warning_ms = "step 7 has not ended for 5.0 s", run.time_ms
            run.warnings += 1

        self.server.change(warn)
        self.wait_equal(lambda: self.text("#banner"), "step 7 has not ended for 5.0 s")
        self.server.change(lambda run: setattr(run, "warning_ms", run.time_ms - 60_000))
        self.wait(lambda: not self.find("#banner").is_displayed(), "no banner")

    def test_a_control_that_is_refused_is_said(self):
        self.expected_log += ("404",)
        self.open()
        self.wait_live()
        self.server.change(lambda run: setattr(run, "control", lambda *_: None))
        self.press(" ")
        self.wait_equal(lambda: self.text("#controls .bad"), "Not done: no such path")

    def test_no_access_is_said(self):
        self.expected_log += ("401",)
        self.open(denied=True)
        self.wait(lambda: "open the link that" in (self.text("#banner") or ""), "a banner")

    def test_empty_views_say_so(self):
        self.open(warm_steps=0, empty=True)
        self.wait(lambda: self.find("#tab_graph").is_displayed(), "tabs")
        for view, words in (("timeline", "Nothing has run yet."),
                            ("progress", "No step has ended yet."),
                            ("collectives", "No collective has run yet.")):
            self.show(view)
            self.wait(lambda: words in (self.text(f"#view_{view}") or ""), words)

    def test_names_of_the_run_are_never_markup(self):
        run = SyntheticRun()
        for handle in run.graph.handles:
            handle["name"] = f"<img src=x onerror=alert(1)>{handle['name']}"
            handle["layer"] = "<b>layer</b>"
        run.run_json = lambda: {**SyntheticRun.run_json(run), "command": "<b>train</b>"}
        self.open(run)
        self.wait_live()
        self.find("input[type=search]").send_keys("adam", Keys.ENTER)
        self.wait(lambda: "<img" in (self.text(".details h2") or ""), "details")
        for view in VIEWS:
            self.show(view)
            time.sleep(0.2)
        self.assertIn("<b>train</b>", self.text("#run_line"))
        self.assertEqual(self.script(
            "return document.querySelectorAll('img, main td b, dd b, header b').length"), 0)

    def test_all_tabs_are_seen_at_the_width_of_a_phone(self):
        self.open()
        for width in (320, 360, 400):
            self.look(width, 740)
            cut = self.script("""return [...document.querySelectorAll('[role=tab]')].filter(tab => {
                const {left, right} = tab.getBoundingClientRect();
                return left < 0 || right > innerWidth || tab.scrollWidth > tab.clientWidth;
              }).map(tab => tab.textContent)""")
            self.assertEqual(cut, [], width)

    def test_a_phone_shows_all_views_without_scrolling_sideways(self):
        self.look(360, 740)
        self.open()
        self.wait_live()
        self.find("input[type=search]").send_keys("relu#2@cpu:0", Keys.ENTER)
        for view in VIEWS:
            self.script(f"document.querySelector('#tab_{view}').click()")
            time.sleep(0.2)
            self.assertLessEqual(
                self.script("return document.documentElement.scrollWidth"), 360, view)
        self.script("document.querySelector('#tab_graph').click()")
        boxes = self.script("""return ['.canvases', '.details'].map(name =>
            document.querySelector(`#view_graph ${name}`).getBoundingClientRect().top)""")
        self.assertLess(boxes[0], boxes[1])

    def test_a_phone_keeps_most_of_its_height_for_the_view(self):
        self.look(360, 740)
        run = SyntheticRun()
        own = run.run_json
        run.run_json = lambda: {**own(), "processes": 2}
        self.open(run)
        self.wait_live()
        self.show("progress")
        self.assertLess(self.script(
            "return document.querySelector('main').getBoundingClientRect().top"), 200)

    def test_words_of_a_table_stay_whole_on_a_phone_and_it_scrolls(self):
        self.look(360, 740)
        self.open()
        self.wait_live()
        self.pause()
        self.show("collectives")
        self.wait(lambda: self.rows("collectives", "Collectives"), "collectives")
        cell, table, place, view = self.script("""
            const view = document.querySelector('#view_collectives');
            const [table] = view.querySelectorAll('table');
            const [cell] = table.tBodies[0].rows[0].cells;
            return [cell.querySelector('.link').getClientRects().length,
                    table.scrollWidth, table.parentElement.clientWidth,
                    view.scrollWidth - view.clientWidth];""")
        self.assertEqual(cell, 1)
        self.assertGreater(table, place)  # it scrolls in its place
        self.assertEqual(view, 0)
        self.assertLess(self.script("""
            return document.querySelector('#view_collectives table').tBodies[0].rows[0]
              .offsetHeight"""), 40)

    def test_long_names_make_no_scroll_bar_in_why(self):
        self.look(360, 740)
        run = SyntheticRun()
        name = "_".join(["softmax_with_cross_entropy"] * 4) + "#1@cpu:0"
        link = {"handle": 0, "name": name, "step": 1, "state": "waiting", "text": f"{name}: waits"}
        run.why = lambda _: {"links": [link], "missing": name, "missing_ranks": [],
                             "text": f"what {name} sends has not arrived"}
        self.open(run)
        self.wait_live()
        self.show("why")
        self.wait(lambda: name in (self.text("#view_why .chain") or ""), "the chain")
        self.assertEqual(self.script("""
            const view = document.querySelector('#view_why');
            return view.scrollWidth - view.clientWidth;"""), 0)

    def test_the_names_of_devices_are_painted_over_all_else(self):
        self.look(360, 740)
        self.open()
        self.wait_live()
        drawn = self.driver.execute_async_script("""
            const done = arguments[0];
            const touch = document.querySelector('#view_graph canvas.touch');
            const own = CanvasRenderingContext2D.prototype;
            const {clearRect, fillRect, fillText} = own;
            let drawn = [];
            const watch = (name, act, note) => {
              own[name] = function (...all) {
                if (this.canvas === touch) note(all);
                return act.apply(this, all);
              };
            };
            watch('clearRect', clearRect, () => {
              if (drawn.length) {
                Object.assign(own, {clearRect, fillRect, fillText});
                done(drawn);
              }
            });
            watch('fillRect', fillRect, () => drawn.push('box'));
            watch('fillText', fillText, ([text]) => drawn.push(text));""")
        self.assertEqual(drawn[-3:], ["cpu:0", "box", "cpu:1"])

    def test_colours_can_be_read(self):
        self.open()
        for theme in ("dark", "light"):
            self.look(1280, 860, theme)
            for ground in ("--ground", "--panel"):
                for ink in ("--text", "--muted", "--accent", "--bad"):
                    self.assertGreaterEqual(self.script(CONTRAST, ink, ground), 4.5,
                                            f"{theme}: {ink} on {ground}")
                for ink in ("--waiting", "--ready", "--running", "--done", "--control"):
                    self.assertGreaterEqual(self.script(CONTRAST, ink, ground), 3,
                                            f"{theme}: {ink} on {ground}")
            self.assertGreaterEqual(self.script(CONTRAST, "--text", "--raised"), 4.5)

    def test_all_controls_have_names(self):
        self.open()
        self.wait_live()
        nameless = self.script("""return [...document.querySelectorAll('button, input, select')]
            .filter(one => !one.textContent.trim() && !one.getAttribute('aria-label')
                           && !one.labels?.length).map(one => one.outerHTML)""")
        self.assertEqual(nameless, [])

    def test_the_page_is_small(self):
        loaded = (".css", ".html", ".js")  # the schema is for scripts
        total = sum(file.stat().st_size for file in PAGE.iterdir() if file.suffix in loaded)
        print(f"page: {total} bytes", file=sys.stderr)
        self.assertLess(total, MOST_BYTES)

    def test_frame_rate_with_many_handles(self):
        run = large_run()
        self.open(run, warm_steps=3)
        self.wait_live()
        handles, edges = len(run.graph.handles), len(run.graph.edges)
        self.wait(lambda: self.script(COLORS, "#view_graph canvas.touch") > 5, "a picture")
        self.measure(f"{handles} handles, {edges} edges: layers")
        self.find("input[type=search]").send_keys(
            run.graph.handles[handles // 2]["name"], Keys.ENTER, Keys.ESCAPE, Keys.ESCAPE)
        for zoom in ("boxes with names", "boxes"):
            self.measure(f"{handles} handles, {edges} edges: {zoom}")
            self.press(*"-----")
        self.press("2")
        self.measure("timeline")

    def measure(self, what):
        rate, longest = self.driver.execute_async_script(FRAME_RATE, 3000)
        print(f"{what}: {rate:.0f} frames/s, longest {longest:.0f} ms", file=sys.stderr)
        self.assertGreater(rate, 0)


if __name__ == "__main__":
    unittest.main()
