/* The state of the view, and its copy in the fragment of the address, so that a link shows the same view. */

class View {
  constructor(agents, experiments, start) {
    this.agents = agents;
    this.experiments = experiments;
    this.start = start; // the experiment that the page opens with
    this.reset();
  }

  reset() {
    this.hidden = new Set();
    this.logX = false;
    this.logY = false;
    this.bands = true;
    this.experiment = this.start; // an index, or "all"
  }

  read(hash) {
    this.reset();
    const given = new URLSearchParams(hash.replace(/^#/, ""));
    this.hidden = new Set(given.getAll("hide").filter((agent) => this.agents.includes(agent)));
    this.logX = given.get("logx") === "1";
    this.logY = given.get("logy") === "1";
    this.bands = given.get("bands") !== "0";
    const wanted = given.get("show");
    if (wanted === null) return;
    const place = this.experiments.indexOf(wanted);
    this.experiment = place >= 0 ? place : wanted === "all" ? "all" : this.start;
  }

  write() {
    const kept = new URLSearchParams();
    if (this.experiment !== this.start) kept.append("show", this.experiment === "all" ? "all" : this.experiments[this.experiment]);
    for (const agent of this.agents) if (this.hidden.has(agent)) kept.append("hide", agent);
    if (this.logX) kept.append("logx", "1");
    if (this.logY) kept.append("logy", "1");
    if (!this.bands) kept.append("bands", "0");
    const hash = kept.toString();
    if (hash === location.hash.replace(/^#/, "")) return;
    try {
      history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
    } catch {
      location.hash = hash; // some viewers forbid changing the history
    }
  }
}
