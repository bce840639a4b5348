import type { Admin, AdminConfig } from 'kafkajs';
import type { KafkaClient } from './kafka.js';
import { KeptClient } from './kept-client.js';

/**
 * An admin client that stays connected until something fails, for work that is repeated every few seconds: a new connection costs both sides more than the
 * work.
 */
export class KeptAdmin implements Pick<KafkaClient, 'withAdmin'> {
  private readonly kept: KeptClient<Admin>;

  /** maxAgeMs: an older connection is replaced before it is used, because kafkajs keeps the partitions of a topic for five minutes. */
  constructor(kafka: Pick<KafkaClient, 'admin'>, config?: AdminConfig, maxAgeMs?: number) {
    this.kept = new KeptClient(() => kafka.admin(config), maxAgeMs);
  }

  async withAdmin<T>(work: (admin: Admin) => Promise<T>): Promise<T> {
    try {
      if (this.kept.isOld) await this.close();
      return await work(await this.kept.get());
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  close(): Promise<void> {
    return this.kept.close();
  }
}
