import type { OutgoingRecord, Publisher } from '#messaging';

/** What is handed to the publisher at a time: it puts no more than one such share into a request. */
const SHARE_BYTES = 256 * 1024;

/**
 * The records that a batch of events makes, sent together and in their order. Each of the events waits for all of them:
 * that costs nothing, for they travel in one request anyway.
 */
export class TriggerBatch {
  private readonly shares: OutgoingRecord[][] = [];
  private bytes = Infinity;
  private sending: Promise<void> | undefined;

  constructor(private readonly publisher: Publisher) {}

  add(record: OutgoingRecord): void {
    const size = record.value?.length ?? 0;
    if (this.bytes + size > SHARE_BYTES) {
      this.shares.push([]);
      this.bytes = 0;
    }
    this.shares.at(-1)?.push(record);
    this.bytes += size;
  }

  /** Resolves when Kafka has them all. A call after a failure sends them all again. */
  send(): Promise<void> {
    this.sending ??= Promise.all(this.shares.map((share) => this.publisher.send(share))).then(
      () => undefined,
      (error: Error) => {
        this.sending = undefined;
        throw error;
      },
    );
    return this.sending;
  }
}
