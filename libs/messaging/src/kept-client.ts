/** An admin client or a producer of kafkajs. */
interface Client {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
}

/** A client that is connected when it is needed, and kept until its user closes it, because something has failed or it is old. */
export class KeptClient<Kept extends Client> {
  private connected: Promise<Kept> | undefined;
  /** As from performance.now(). */
  private connectedAt = 0;

  constructor(
    private readonly make: () => Kept,
    private readonly maxAgeMs = Infinity,
  ) {}

  /** Whether another one should be used. */
  get isOld(): boolean {
    return performance.now() - this.connectedAt > this.maxAgeMs;
  }

  get(): Promise<Kept> {
    return (this.connected ??= this.connect());
  }

  async close(): Promise<void> {
    const { connected } = this;
    this.connected = undefined;
    await connected?.then((client) => client.disconnect()).catch(() => {});
  }

  private async connect(): Promise<Kept> {
    this.connectedAt = performance.now();
    const client = this.make();
    try {
      await client.connect();
    } catch (error) {
      // a refused login leaves its connection open
      await client.disconnect().catch(() => {});
      throw error;
    }
    return client;
  }
}
