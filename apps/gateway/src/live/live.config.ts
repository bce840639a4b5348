import { Config, integer } from '#config';

/** The configuration of live streams. */
export class LiveConfig extends Config({
  heartbeatMs: integer('SLUICE_SSE_HEARTBEAT_MS', {
    fallback: 15_000,
    min: 10,
    // clients of Sluice take a connection that is silent for 40 s for a dead one
    max: 30_000,
    description:
      'Milliseconds between two comments on a live stream, at most 30000, which keep proxies and clients from closing it. A stream whose API key was revoked ends at the next one.',
  }),
  maxPerAccount: integer('SLUICE_SSE_STREAMS_PER_ACCOUNT', {
    fallback: 2_000,
    min: 1,
    description: 'Open live streams of one account in each gateway.',
  }),
  lingerMs: integer('SLUICE_SSE_LINGER_MS', {
    fallback: 5_000,
    max: 600_000,
    description: 'Milliseconds for which a gateway keeps reading events from Kafka after its last live client has disconnected.',
  }),
}) {}
