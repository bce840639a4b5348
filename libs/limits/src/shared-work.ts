interface Running<T> {
  result: Promise<T>;
  /** When the caller that has begun it stops waiting, in ms since the epoch. */
  until: number;
}

/** Work that callers with the same key, at the same time, share. One that failed only because its caller stopped waiting is done again for the others. */
export class SharedWork<Key, T> {
  private readonly running = new Map<Key, Running<T>>();

  /** @param until when this caller stops waiting, in ms since the epoch */
  async do(key: Key, until: number, work: () => Promise<T>): Promise<T> {
    const running = this.running.get(key);
    if (!running) {
      const result = work().finally(() => this.running.delete(key));
      this.running.set(key, { result, until });
      return result;
    }
    try {
      return await running.result;
    } catch (error) {
      if (Date.now() < running.until || Date.now() >= until) throw error;
      return this.do(key, until, work);
    }
  }
}
