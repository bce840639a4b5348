import { request } from 'node:http';

const RECONNECT_MS = 500;
/** The server sends a comment every 15 s. */
const SILENT_MS = 35_000;

/** A client of the live stream of an emitter, which reconnects with the id of the last event that it got, like a browser. */
export class EventStream {
  /** The numbers of the events, in the order of their arrival. @type {number[]} */
  numbers = [];
  connections = 0;
  closed = false;
  lastId = '';

  /** @param {import('./system.mjs').System} system @param {string} emitter */
  constructor(system, emitter) {
    this.system = system;
    this.emitter = emitter;
    this.connect();
  }

  connect() {
    if (this.closed) return;
    const { apiUrls, apiKey } = this.system;
    const url = `${apiUrls[this.connections++ % apiUrls.length]}/sources/${this.emitter}/sse`;
    const headers = { authorization: `Bearer ${apiKey}`, ...(this.lastId ? { 'last-event-id': this.lastId } : {}) };
    const outgoing = request(url, { agent: false, headers, timeout: SILENT_MS });
    this.outgoing = outgoing;
    let ended = false;
    const again = () => {
      if (ended) return;
      ended = true;
      setTimeout(() => this.connect(), RECONNECT_MS);
    };
    outgoing.on('timeout', () => outgoing.destroy());
    outgoing.on('error', again);
    outgoing.on('close', again);
    outgoing.on('response', (response) => {
      if (response.statusCode !== 200) return outgoing.destroy();
      let rest = '';
      response.setEncoding('utf8');
      response.on('error', again);
      response.on('close', again);
      response.on('data', (text) => {
        const frames = (rest + text).split('\n\n');
        rest = frames.pop() ?? '';
        for (const frame of frames) this.take(frame);
      });
    });
    outgoing.end();
  }

  /** @param {string} frame */
  take(frame) {
    const id = /^id: (.*)$/m.exec(frame)?.[1];
    const data = /^data: (.*)$/m.exec(frame)?.[1];
    if (!id || !data) return;
    this.lastId = id;
    const { n } = JSON.parse(data).event;
    if (typeof n === 'number') this.numbers.push(n);
  }

  close() {
    this.closed = true;
    this.outgoing?.destroy();
  }
}
