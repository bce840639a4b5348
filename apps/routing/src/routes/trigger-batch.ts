import { type OutgoingRecord, type Publisher, shares } from '#messaging';

/**
 * The records that a batch of events makes, sent together and in their order. Each of the events waits for all of them:
 * that costs nothing, for they travel in one request anyway.
 */
export class TriggerBatch {
  private readonly records: OutgoingRecord[] = [];
  private sending: Promise<void> | undefined;

  constructor(private readonly publisher: Publisher) {}

  add(record: OutgoingRecord): void {
    this.records.push(record);
  }

  /** Resolves when Kafka has them all. A call after a failure sends them all again. */
  send(): Promise<void> {
    this.sending ??= Promise.all(shares(this.records).map((share) => this.publisher.send(share))).then(
      () => undefined,
      (error: Error) => {
        this.sending = undefined;
        throw error;
      },
    );
    return this.sending;
  }
}
