/** What became of a POST. */
export type Answer =
  | { kind: 'answered'; status: number; retryAfter?: string; body: string }
  /** `timeout`: the endpoint took the request, or would have, and said nothing in time. `reason` is written for the user. */
  | { kind: 'failed'; timeout: boolean; reason: string };

/** How a request leaves: an abstract class, because an interface can't be an injection token. */
export abstract class Poster {
  /** Sends the request, once, and never throws. */
  abstract post(to: { origin: string; path: string }, headers: Record<string, string>, body: Buffer): Promise<Answer>;
  abstract close(): Promise<void>;
}
