import type { Api } from './api.js';
import { http } from './api.js';

const EVERY_MS = 50;

/**
 * Calls the REST API repeatedly, each time over a new connection and through the next gateway. A gateway that refuses the connection,
 * or drops it without a response, is skipped, as load balancers do with requests that are safe to repeat. Anything else that fails is a
 * failure; so is a broken connection if there is only one address.
 */
export class Calls {
  private made = 0;
  private readonly failures: string[] = [];
  private readonly underWay = new Set<Promise<void>>();
  private readonly timer: NodeJS.Timeout;

  constructor(
    private readonly api: Api,
    /** Paths below the base URL. */
    private readonly paths: string[],
    private readonly baseUrls: () => string[],
  ) {
    // if a test fails before it stops them, they do not keep jest running
    this.timer = setInterval(() => this.begin(), EVERY_MS).unref();
  }

  /** The number of calls, and their failures. */
  async stop(): Promise<{ made: number; failures: string[] }> {
    clearInterval(this.timer);
    await Promise.all(this.underWay);
    return { made: this.made, failures: this.failures };
  }

  private begin(): void {
    const n = this.made++;
    const call = this.call(n).finally(() => this.underWay.delete(call));
    this.underWay.add(call);
  }

  private async call(n: number): Promise<void> {
    const path = this.paths[n % this.paths.length]!;
    const urls = this.baseUrls();
    const inTurn = urls.map((_, at) => urls[(n + at) % urls.length]!);
    for (const [at, url] of inTurn.entries()) {
      try {
        const { status, text } = await http('GET', url + path, {
          headers: { authorization: `Bearer ${this.api.account.api_key}` },
          agent: false,
        });
        if (status !== 200) this.failures.push(`${path}: ${status} ${text.slice(0, 200)}`);
        return;
      } catch (error) {
        const { code, message } = error as NodeJS.ErrnoException;
        if (!['ECONNREFUSED', 'ECONNRESET'].includes(code ?? '') || at === inTurn.length - 1)
          return void this.failures.push(`${path}: ${message}`);
      }
    }
  }
}
