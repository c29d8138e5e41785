/* Tabs for the experiments, all of them visible, in groups if there are several; below, a sticky bar: one legend for all charts, and the switches. */

const SWITCHES = { bands: "95% intervals", logX: "log x", logY: "log y" };

class Controls {
  constructor(view, experiments, looks, changed) {
    this.view = view;
    this.changed = changed;
    this.agents = [...looks.keys()];
    const groups = [...new Set(experiments.map((experiment) => text(experiment.group)))];
    const members = groups.map((group) => [...experiments.keys()].filter((k) => text(experiments[k].group) === group));
    this.choices = [...members.flat(), ...(experiments.length > 1 ? ["all"] : [])];
    this.tabs = this.choices.map((choice) => this.tabOf(choice, experiments[choice]));
    this.chips = this.agents.map((agent) => this.chipOf(agent, looks.get(agent)));
    this.switches = Object.entries(SWITCHES).map(([key, label]) => this.switchOf(key, label));
    const tabs = { class: "tabs", role: "tablist", "aria-label": "Experiment", keydown: (event) => this.move(event) };
    this.row = el("div", tabs, ...(groups.length > 1 ? this.grouped(groups, members) : this.tabs));
    this.root = el("div", { class: "bar" });
    if (this.agents.length) this.root.append(this.legend(), this.tools());
  }

  tabOf(choice, experiment) {
    const name = choice === "all" ? "all together" : text(experiment.name) || `experiment ${choice + 1}`;
    const controlled = choice === "all" ? "experiments" : `experiment-${choice}`;
    return el("button", {
      type: "button", role: "tab", class: "tab", id: `tab-${choice}`, title: name, "aria-controls": controlled,
      click: () => this.choose(choice),
    }, name);
  }

  /* A row of tabs for every group, with its heading, which describes the tabs; the last tab stands alone. */
  grouped(groups, members) {
    const row = (k, heading, choices) => {
      const tabs = choices.map((choice) => this.tabs[this.choices.indexOf(choice)]);
      if (heading) for (const tab of tabs) tab.setAttribute("aria-describedby", `group-${k}`);
      return el("div", { class: "group" },
        el("span", { class: "group-heading", id: `group-${k}`, "aria-hidden": "true" }, heading),
        el("div", { class: "group-tabs" }, ...tabs));
    };
    return [...groups.map((group, k) => row(k, group, members[k])), row(groups.length, "", ["all"])];
  }

  choose(choice) {
    this.view.experiment = choice;
    this.changed();
  }

  move(event) {
    const now = this.choices.indexOf(this.view.experiment);
    const next = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: this.choices.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    const place = (next + this.choices.length) % this.choices.length;
    this.choose(this.choices[place]);
    this.tabs[place].focus();
  }

  chipOf(agent, look) {
    const ticked = () => this.tick(agent, box.checked);
    const box = el("input", { type: "checkbox", "aria-label": `Show ${agent}`, change: ticked });
    const label = el("label", { title: `Show or hide ${agent}` }, box, swatch(look));
    const title = `${agent} (click: only this one)`;
    const name = el("button", { type: "button", class: "name", title, click: () => this.solo(agent) }, agent);
    return { agent, box, root: el("li", { class: "chip" }, label, name) };
  }

  tick(agent, shown) {
    if (shown) this.view.hidden.delete(agent);
    else this.view.hidden.add(agent);
    this.changed();
  }

  solo(agent) {
    const alone = !this.view.hidden.has(agent) && this.view.hidden.size === this.agents.length - 1;
    this.view.hidden = new Set(alone ? [] : this.agents.filter((other) => other !== agent));
    this.changed();
  }

  switchOf(key, label) {
    const box = el("input", { type: "checkbox", id: `switch-${key}`, change: () => this.set(key, box.checked) });
    return { key, box, root: el("label", { class: "switch" }, box, label) };
  }

  set(key, value) {
    this.view[key] = value;
    this.changed();
  }

  button(label, title, act) {
    return el("button", { type: "button", class: "small", title, click: act }, label);
  }

  tools() {
    const reset = () => {
      const { experiment } = this.view;
      this.view.reset();
      this.set("experiment", experiment);
    };
    return el("div", { class: "tools", role: "group", "aria-label": "Drawing" },
      ...this.switches.map((item) => item.root),
      this.button("reset", "All agents, linear axes, intervals", reset));
  }

  legend() {
    const all = this.button("all", "Show all agents", () => this.set("hidden", new Set()));
    const none = this.button("none", "Hide all agents", () => this.set("hidden", new Set(this.agents)));
    return el("ul", { class: "legend", "aria-label": "Agents" },
      el("li", { class: "pick" }, all, none), ...this.chips.map((chip) => chip.root));
  }

  /* Update checkboxes and tabs from the view; agents that the experiment lacks are hidden. */
  show(present) {
    this.tabs.forEach((tab, place) => {
      const chosen = this.choices[place] === this.view.experiment;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
    });
    for (const { agent, box, root } of this.chips) {
      box.checked = !this.view.hidden.has(agent);
      root.classList.toggle("off", !box.checked);
      root.hidden = !present.has(agent);
    }
    for (const { key, box } of this.switches) box.checked = this.view[key];
  }
}
