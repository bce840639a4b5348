import type { Admin } from 'kafkajs';
import type { KafkaClient } from './kafka.js';

/**
 * An admin client that stays connected until something fails, for work that is repeated every few seconds: a new connection costs both sides more than the
 * work.
 */
export class KeptAdmin implements Pick<KafkaClient, 'withAdmin'> {
  private connected: Promise<Admin> | undefined;

  constructor(private readonly kafka: KafkaClient) {}

  async withAdmin<T>(work: (admin: Admin) => Promise<T>): Promise<T> {
    try {
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
    const admin = this.kafka.admin();
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
