/* Search in a folder that no server serves: browsers refuse workers from files, so a hidden frame does their work. */
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      this.inside = frame.contentWindow;
      this.waiting = [];
      this.inside.postMessage = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      this.inside.importScripts = (...urls) =>
        urls.reduce((before, url) => before.then(() => this.load(url)), Promise.resolve());
      this.load(url).then(() => {
        this.ready = true;
        this.waiting.splice(0).forEach((data) => this.postMessage(data));
      });
    }

    load(url) {
      return new Promise((loaded, failed) => {
        const script = this.inside.document.createElement("script");
        script.src = url;
        script.onload = loaded;
        script.onerror = failed;
        this.inside.document.body.appendChild(script);
      });
    }

    postMessage(data) {
      if (!this.ready) this.waiting.push(data);
      else setTimeout(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.inside.frameElement.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
