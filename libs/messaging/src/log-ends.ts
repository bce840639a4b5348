import type { Batch } from 'kafkajs';
import type { Log } from '#observability';
import type { KafkaClient } from './kafka.js';

/**
 * Recognises a log that ends below the position of its reader: a fetch from there returns no records, so that nothing can be verified. The end that comes
 * with a fetch is not sufficient, because a new leader of a partition may not know it for some time: the brokers are asked.
 */
export class LogEnds {
  /** The partitions about which the brokers are being asked. */
  private readonly asked = new Set<string>();

  constructor(
    private readonly kafka: KafkaClient,
    private readonly log: Log,
    /** The log of a partition ends at `end`, below `next`. */
    private readonly endsEarly: (topic: string, partition: number, end: number, next: number) => void,
  ) {}

  /** A fetch of a partition returned no records, and this end. `next`: the offset of the reader's next record, if it is known. */
  check({ topic, partition, highWatermark }: Pick<Batch, 'topic' | 'partition' | 'highWatermark'>, next: number | undefined): void {
    const key = `${topic}/${partition}`;
    if (next === undefined || Number(highWatermark) >= next || this.asked.has(key)) return;
    this.asked.add(key);
    void this.kafka
      .withAdmin((admin) => admin.fetchTopicOffsets(topic), { retry: { retries: 0 } })
      .then((ends) => {
        const end = Number(ends.find((each) => each.partition === partition)?.high);
        if (end < next) this.endsEarly(topic, partition, end, next);
      })
      // the next fetch without records asks again
      .catch((error: Error) => this.log.debug({ topic, partition, err: error }, 'log.end-unknown'))
      .finally(() => this.asked.delete(key));
  }
}
