import type { Api } from './api.js';
import { eventually } from './eventually.js';
import { outsideProducer } from './producer.js';
import type { Receiver } from './receiver.js';

const SOURCES = 20;
const EVERY_MS = 100;
/** A slow machine gets no more load than this: the stories are about lost events, not about speed. */
const MOST_WAITING = 6000;
const CODE = "export default { name: 'loaded' };";

/** Emits events at a steady rate as an external producer, and compares them with the deliveries to one webhook. */
export class Load {
  private emitted = 0;
  private timer: NodeJS.Timeout | undefined;
  private sending: Promise<unknown> = Promise.resolve();
  private broken: unknown;
  /** The number of the receiver's deliveries that have been checked. */
  private seen = 0;
  private deliveries = 0;
  private readonly ids = new Set<string>();
  private readonly arrived = new Set<number>();

  private constructor(
    private readonly receiver: Receiver,
    private readonly producer: Awaited<ReturnType<typeof outsideProducer>>,
    private readonly sources: string[],
    private readonly path: string,
  ) {}

  static async start(api: Api, receiver: Receiver, { brokers, perSecond }: { brokers: string; perSecond: number }): Promise<Load> {
    const component = await api.component(CODE);
    const sources: string[] = [];
    for (let n = 0; n < SOURCES; n++) sources.push((await api.post('/sources', { component_id: component })).body.data.id as string);
    const path = `/load-${component}`;
    const webhook = await api.webhook(new URL(path, receiver.url).href);
    for (const source of sources) await api.subscribe(source, webhook);
    const load = new Load(receiver, await outsideProducer(brokers), sources, path);
    // the first events of new sources may take longer, so they are not part of the load
    load.emit(SOURCES);
    await load.settled();
    load.timer = setInterval(() => load.tick(Math.round((perSecond * EVERY_MS) / 1000)), EVERY_MS);
    return load;
  }

  /** Resolves when every event emitted so far has arrived. */
  async settled({ withinMs = 60_000 } = {}): Promise<void> {
    await this.sending;
    const upTo = this.emitted;
    await eventually(
      () => {
        if (this.broken) throw new Error('an event could not be produced', { cause: this.broken });
        this.look();
        const missing = Array.from({ length: upTo }, (_, n) => n).filter((n) => !this.arrived.has(n));
        if (missing.length > 0) throw new Error(`${missing.length} of ${upTo} events have not arrived, the first is ${missing[0]}`);
      },
      { withinMs },
    );
  }

  /** Stops emitting; resolves when everything has arrived. */
  async finish(): Promise<void> {
    clearInterval(this.timer);
    await this.settled();
  }

  /** The number of deliveries, and how many of them were repeats. */
  counted(): { deliveries: number; repeats: number } {
    this.look();
    return { deliveries: this.deliveries, repeats: this.deliveries - this.ids.size };
  }

  /** The last 100 events of each source, newest first. */
  lastHundred(): [source: string, numbers: number[]][] {
    return this.sources.map((source, at) => {
      const all = Array.from({ length: this.emitted }, (_, n) => n).filter((n) => n % SOURCES === at);
      return [source, all.slice(-100).reverse()];
    });
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.sending;
    await this.producer.close();
  }

  private tick(count: number): void {
    this.look();
    if (this.emitted - this.arrived.size < MOST_WAITING) this.emit(count);
  }

  private emit(count: number): void {
    const events = Array.from({ length: count }, () => this.emitted++);
    const records = events.map((n) => ({ emitterId: this.sources[n % SOURCES]!, event: { n } }));
    // one batch after the other, so that the events of each source keep their order
    this.sending = this.sending.then(() => this.producer.emitAll(records)).catch((error: unknown) => (this.broken ??= error));
  }

  /** Checks the deliveries since the last check. */
  private look(): void {
    const { received } = this.receiver;
    for (; this.seen < received.length; this.seen++) {
      const { path, headers, body } = received[this.seen]!;
      if (path !== this.path) continue;
      this.deliveries++;
      this.ids.add(String(headers['webhook-id']));
      this.arrived.add(body.n as number);
    }
  }
}
