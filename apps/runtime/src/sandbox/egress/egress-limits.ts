/** What connections of components may use; times in ms. The first three are of an account, the others of a connection. */
export interface EgressLimits {
  /** Connections at a time. More of them wait: refusing would break a `Promise.all` over a hundred requests */
  connections: number;
  waiting: number;
  perMinute: number;
  /** To send the CONNECT request */
  headMs: number;
  /** To be connected, and the longest wait in line */
  connectMs: number;
  /** Without a byte in either direction */
  idleMs: number;
  lifeMs: number;
  bytesDown: number;
  bytesUp: number;
}

export const defaultEgressLimits: EgressLimits = {
  connections: 256,
  waiting: 500,
  perMinute: 1200,
  headMs: 5_000,
  connectMs: 10_000,
  idleMs: 60_000,
  lifeMs: 300_000,
  bytesDown: 64 << 20,
  bytesUp: 16 << 20,
};
