import type { Admin, AdminConfig } from 'kafkajs';
import type { KafkaClient } from './kafka.js';

/**
 * An admin client that stays connected until something fails, for work that is repeated every few seconds: a new connection costs both sides more than the
 * work.
 */
export class KeptAdmin implements Pick<KafkaClient, 'withAdmin'> {
  private connected: Promise<Admin> | undefined;
  /** As from performance.now(). */
  private connectedAt = 0;

  /** maxAgeMs: an older connection is replaced before it is used, because kafkajs keeps the partitions of a topic for five minutes. */
  constructor(
    private readonly kafka: Pick<KafkaClient, 'admin'>,
    private readonly config?: AdminConfig,
    private readonly maxAgeMs = Infinity,
  ) {}

  async withAdmin<T>(work: (admin: Admin) => Promise<T>): Promise<T> {
    try {
      if (performance.now() - this.connectedAt > this.maxAgeMs) await this.close();
      return await work(await (this.connected ??= this.connect()));
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    const { connected } = this;
    this.connected = undefined;
    await connected?.then((admin) => admin.disconnect()).catch(() => {});
  }

  private async connect(): Promise<Admin> {
    const admin = this.kafka.admin(this.config);
    this.connectedAt = performance.now();
    try {
      await admin.connect();
    } catch (error) {
      // a refused login leaves its connection open
      await admin.disconnect().catch(() => {});
      throw error;
    }
    return admin;
  }
}
