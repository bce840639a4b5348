/** A semaphore. Callers that find no free slot wait in order. */
export class Slots {
  private readonly waiters = new Set<(got: boolean) => void>();

  constructor(private free: number) {}

  get waiting(): number {
    return this.waiters.size;
  }

  /** @param ms the longest wait; default: no limit @returns false if no slot became free in time */
  async take(ms?: number): Promise<boolean> {
    if (this.free > 0) {
      this.free--;
      return true;
    }
    return new Promise((resolve) => {
      const timer = ms === undefined ? undefined : setTimeout(() => settle(false), ms);
      const settle = (got: boolean): void => {
        clearTimeout(timer);
        this.waiters.delete(settle);
        resolve(got);
      };
      this.waiters.add(settle);
    });
  }

  give(): void {
    const [next] = this.waiters;
    if (next) next(true);
    else this.free++;
  }

  /** Adds slots. */
  grow(by: number): void {
    const served = Math.min(by, this.waiters.size);
    for (let i = 0; i < served; i++) this.give();
    this.free += by - served;
  }
}
