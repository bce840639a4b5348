import { readConfig } from '#config';
import { MAX_EVENT_BYTES } from '#contracts';

export class LiveConfig {
  /** How often each client gets a comment, so that nobody between takes the connection for dead. */
  readonly heartbeatMs!: number;
  /** Open streams of one account at a time, in this process. */
  readonly maxPerAccount!: number;
  /** How long the log is read on after the last client has gone. */
  readonly lingerMs!: number;
  /** The store's own limit: what it doesn't take isn't shown. */
  readonly maxEventBytes!: number;

  static read(): LiveConfig {
    return readConfig((env) => ({
      heartbeatMs: env.integer('SLUICE_SSE_HEARTBEAT_MS', 15_000, { min: 10, max: 600_000 }),
      maxPerAccount: env.integer('SLUICE_SSE_STREAMS_PER_ACCOUNT', 2_000, { min: 1 }),
      lingerMs: env.integer('SLUICE_SSE_LINGER_MS', 5_000, { max: 600_000 }),
      maxEventBytes: env.integer('SLUICE_MAX_EVENT_BYTES', MAX_EVENT_BYTES, { min: 1024, max: MAX_EVENT_BYTES }),
    }));
  }
}
